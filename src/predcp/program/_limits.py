"""Moved sites at scale 0: whether they have a limit there, and the values that the user gives instead."""

from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# By site: from the values of the sites before it to its value.
Limits = tuple[tuple[str, Callable[[dict[str, Any]], Any]], ...]


class _Constant:
    """A value that depends on no other site; compares by value, so that nothing compiles again."""

    def __init__(self, value: Any):
        self.value = np.asarray(value)
        self._identity = self.value.shape, self.value.dtype.str, self.value.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __call__(self, values: dict[str, Any]) -> Any:
        return self.value


def as_limits(reference: Mapping[str, Any] | None) -> Limits:
    """The user's `reference`, a mapping of sites to values or functions."""
    if reference is None:
        return ()
    if not isinstance(reference, Mapping):
        raise ValueError(
            "reference must map names of sites to their values at scale 0, or to functions of the other "
            f"sites' values, got {type(reference).__name__}"
        )
    return tuple(
        (name, value if callable(value) else _Constant(value)) for name, value in reference.items()
    )


def limit_of(
    name: str, limit: Callable[..., Any], distribution: Any, trace: Mapping[str, Any]
) -> Array:
    """The value of a site at scale 0, from the sites of the program so far."""
    kinds = ("sample", "deterministic", "param")
    found = limit({site: each["value"] for site, each in trace.items() if each["type"] in kinds})
    shape = tuple(distribution.shape())
    try:
        return jnp.broadcast_to(jnp.asarray(found, jnp.result_type(float)), shape)
    except ValueError as error:
        raise ValueError(
            f"reference of site {name!r} must have the shape of the site, {shape}, "
            f"got {jnp.shape(found)}"
        ) from error


class Steps(NamedTuple):
    """How a program behaves near scale 0.

    - `steps`: by moved site, its distances from the reference at 1e-2 and 1e-5.
    - `lost`: by observed site, whether predictions are finite at 1 and not at 0.
    - `moves`: by factor of the predictions, how far each coordinate moves from 0 to 1.
    """

    steps: dict[str, Array]
    lost: dict[str, Array]
    moves: list[dict[str, Array]]


def require_limit(scale: str, given: Set[str], found: Steps) -> None:
    """Refuse a scale without a reference at 0 or without predictions, with the reason.

    **Arguments**: `given`, the sites whose value at 0 the user gave.
    """
    for name, distances in found.steps.items():
        far, near = np.asarray(distances)
        if not np.isfinite(near) and name not in given:
            raise ValueError(
                f"site {name!r} has no finite value where {scale!r} is 0: the reference model cannot "
                "be found there; is the scale a precision? then sample the standard deviation; "
                f"else give its value there with reference={{{name!r}: ...}}"
            )
        if not near <= max(0.5 * far, 1e-3):
            raise ValueError(
                f"site {name!r} does not approach {'its reference' if name in given else 'a limit'} as "
                f"{scale!r} goes to 0 (it is {near:.3g} away at 1e-5), so there is no reference model "
                "at scale 0; is the scale a precision or a rate? then sample its inverse"
            )
    for name, gone in found.lost.items():
        if gone:
            raise ValueError(
                f"the predictions of {name!r} are not finite where {scale!r} is 0, so there is no "
                "reference model. Is it the scale of the noise? A complexity prior is for effects that can "
                "vanish. Do the observations become those of another family there (counts without "
                "overdispersion, a Student-t that is normal)? Then use the map to that limit, such as "
                "predcp.NegativeBinomialLimit or predcp.StudentTLimit"
            )
    if all(float(gap) == 0.0 for each in found.moves for gap in each.values()):
        raise ValueError(f"the predictions are the same for every value of {scale!r}")
