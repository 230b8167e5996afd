"""The dependence of outputs on inputs, followed through the loops of traced programs."""

import jax
import jax.numpy as jnp

from predcp._numerics.dependence import Origin, dependencies

INPUTS = {
    "carry": jnp.ones(2),
    "constant": jnp.ones(2),
    "sequence": jnp.ones((3, 2)),
    "unused": jnp.ones(2),
}


def scanned(carry, constant, sequence, unused):
    def step(state, item):
        first, second = state
        return (first + constant, second), (item, second)

    (last, kept), (items, seconds) = jax.lax.scan(step, (carry, unused), sequence)
    return {"last": last, "kept": kept, "items": items, "seconds": seconds}


def test_scan_separates_constants_carry_and_sequences():
    found = dependencies(scanned, INPUTS)
    assert found == {
        "last": Origin(frozenset({"carry", "constant"})),
        "kept": Origin(frozenset({"unused"})),
        "items": Origin(frozenset({"sequence"})),
        "seconds": Origin(frozenset({"unused"})),
    }


def test_zeros_stay_zero_through_a_scan():
    found = dependencies(scanned, INPUTS, zero=("carry", "constant"))
    assert found["last"] == Origin(zero=True)


def test_loop_depends_on_its_test():
    def counted(limit, start):
        return jax.lax.while_loop(lambda n: n < limit, lambda n: n + 1.0, start)

    found = dependencies(counted, {"limit": jnp.ones(()), "start": jnp.zeros(())})
    assert found == Origin(frozenset({"limit", "start"}))


def test_zero_over_zero_is_not_zero():
    def quotients(x, y):
        return {"zero": x / (1.0 + y), "unknown": (x * y) / x}

    found = dependencies(quotients, {"x": jnp.ones(()), "y": jnp.ones(())}, zero=("x",))
    # Zeros carry no labels, so neither does the quotient: all that is said is that it may not be zero.
    assert found == {"zero": Origin(zero=True), "unknown": Origin()}
