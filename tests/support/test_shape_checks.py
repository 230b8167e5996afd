"""The shapes that annotations state are checked wherever a test goes."""

import jax.numpy as jnp
import jaxtyping
import numpyro.distributions as dist
import pytest
from jaxtyping import Array, Float
from tests import shapecheck

from predcp._numerics.inverse import invert


def test_a_wrong_shape_is_an_error():
    with pytest.raises(jaxtyping.TypeCheckError):
        invert(lambda x: (x, jnp.zeros_like(x)), jnp.zeros(3), jnp.zeros(2), jnp.asarray(jnp.inf))


def test_only_functions_that_state_shapes_are_decorated():
    decorate = jaxtyping.jaxtyped(typechecker=shapecheck.shapes)

    def loose(x: Float[Array, "..."], name: str) -> list[int]:
        return [len(x), len(name)]

    def pair(x: Float[Array, " n"], y: Float[Array, " n"]) -> Float[Array, " n"]:
        return x + y

    assert decorate(loose) is loose
    checked = decorate(pair)
    assert checked(jnp.ones(2), jnp.ones(2)).shape == (2,)
    with pytest.raises(jaxtyping.TypeCheckError):
        checked(jnp.ones(2), jnp.ones(1))


def test_parameters_of_distributions_are_validated():
    with pytest.raises(ValueError, match="Normal distribution got invalid scale parameter"):
        dist.Normal(0.0, jnp.asarray([1.0, -1.0]), validate_args=True)
