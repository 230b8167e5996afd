"""Counts with a largest one behind a gate, read as categorical observations of every count."""

from math import lgamma
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.nn import log_sigmoid, log_softmax, logsumexp
from jaxtyping import Array

from predcp._divergences import _categorical  # noqa: F401  (registers the rules)
from predcp._divergences._beta_binomial import NEVER
from predcp._divergences._divergence import Coordinates, Member, most_trials


def _every_count(rest: Member) -> Coordinates | None:
    """Coordinates of a bounded count as a categorical observation; None for other families."""
    if rest.family is dist.Categorical:
        return rest.coordinates
    if rest.family is not dist.Binomial:
        return None
    logits, trials = (rest.coordinates[name][..., None] for name in ("logits", "total_count"))
    most = most_trials(trials)
    counts = np.arange(most + 1)
    table = jnp.asarray(np.array([lgamma(m + 1.0) for m in counts]), logits.dtype)
    left = jnp.clip(jnp.round(trials), 0, most).astype(int) - counts
    found = counts * logits - table - table[jnp.maximum(left, 0)]
    found = jnp.where(left >= 0, found, NEVER)
    found = jnp.where(trials <= most, found, jnp.nan)
    return {"logits": found, "total_count": jnp.broadcast_to(trials, found.shape)}


def gated_count(rest: Member, open_logits: Array, whole: Any, inflated: bool) -> Member | None:
    """A bounded count behind a gate; None for a count without a largest one.

    **Arguments**: the count; log odds that the gate is open; the distribution; whether an open gate may
    give a zero too.
    """
    found = _every_count(rest)
    if found is None:
        return None
    log_p = log_softmax(found["logits"], axis=-1)
    zero, others = log_p[..., :1], log_p[..., 1:]
    gate = jnp.asarray(open_logits, log_p.dtype)[..., None]
    log_open, log_shut = log_sigmoid(gate), log_sigmoid(-gate)
    if inflated:
        zero = jnp.logaddexp(log_shut, log_open + zero)
    else:
        zero = log_shut
        others = others - logsumexp(others, axis=-1, keepdims=True)
    batch, size = whole.batch_shape, log_p.shape[-1]
    parts = (
        jnp.broadcast_to(zero, (*batch, 1)),
        jnp.broadcast_to(log_open + others, (*batch, size - 1)),
    )
    wide = {name: jnp.broadcast_to(array, (*batch, size)) for name, array in found.items()}
    coordinates = {**wide, "logits": jnp.concatenate(parts, axis=-1)}
    return Member(dist.Categorical, coordinates, batch, 1)
