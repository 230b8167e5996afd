"""Many fits over several devices: each device trains some of them, without communication."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def over_devices(tree: Any, devices: list[Any] | None = None) -> Any:
    """Arrays with a leading axis of fits, spread over the devices (all local ones by default).

    The axis is padded with copies of the last fit to a multiple of the number of devices; with one device
    the arrays stay as they are.
    """
    devices = jax.local_devices() if devices is None else devices
    if len(devices) == 1:
        return tree
    count = jax.tree.leaves(tree)[0].shape[0]
    extra = -count % len(devices)
    sharding = NamedSharding(Mesh(devices, ("fits",)), PartitionSpec("fits"))

    def spread(leaf):
        padded = jnp.concatenate([leaf, jnp.repeat(leaf[-1:], extra, axis=0)])
        return jax.device_put(padded, sharding)

    return jax.tree.map(spread, tree)
