"""The inner loop: the parameters of one task, a few gradient steps from the shared parameters."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.fewshot._networks import Modules, Network

Objective = Literal["mean", "sum"]


def cross_entropy(
    logits: Float[Array, "n ways"], targets: Float[Array, "n ways"]
) -> Float[Array, " n"]:
    """Cross-entropy of each example; `targets` is 1 at its class and 0 elsewhere."""
    return -jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1)


def adapted(
    network: Network,
    theta: Modules,
    shared: Modules,
    log_sigma: Float[Array, " modules"],
    decay: Float[Array, ""],
    x: Float[Array, "n ..."],
    targets: Float[Array, "n ways"],
    steps: int,
    rate: float | Array,
    objective: Objective = "mean",
    first_order: bool = False,
    unroll: bool = False,
) -> Modules:
    """The task's parameters `phi + sigma eps` after gradient steps on eps from 0.

    The steps lower `cross-entropy(phi + sigma eps) + |eps|^2 / 2` (the MAP in non-centred form): in
    theta a step of size `rate sigma^2`, with a pull back to phi. With sigma = 1 and `decay` 0 they are
    MAML's.

    **Arguments**
    - `theta`: phi. `x`: prepared inputs of the support set.
    - `decay`: 1, or 0 for MAML, which has no prior on theta.
    - `objective`: `mean` of the cross-entropy, as MAML's (it tempers the likelihood), or its `sum`, the
        exact MAP.
    - `first_order`: treat the inner gradients as constants in the outer one.
    - `unroll`: unroll the loop over steps, which compiles longer and runs faster.
    """

    def loss(own: Modules, shared: Modules, x: Array) -> Array:
        each = cross_entropy(network.logits(own, shared, x), targets)
        return each.mean() if objective == "mean" else each.sum()

    slope = _constant(loss) if first_order else _twice_differentiable(loss)

    sigma = dict(zip(network.module_names, jnp.exp(log_sigma)))

    def parameters(eps: Modules) -> Modules:
        return {
            name: jax.tree.map(lambda phi, e, name=name: phi + sigma[name] * e, own, eps[name])
            for name, own in theta.items()
        }

    def step(eps: Modules, own: Modules) -> Modules:
        downhill = slope(own, shared, x)
        return {
            name: jax.tree.map(
                lambda e, g, name=name: e - rate * (sigma[name] * g + decay * e),
                eps[name],
                downhill[name],
            )
            for name in eps
        }

    eps = jax.tree.map(jnp.zeros_like, theta)
    if steps == 0:
        return theta
    # The first step is never in the loop: at phi all tasks share their weights, so products are larger.
    eps = step(eps, theta)
    if unroll:
        for _ in range(steps - 1):
            eps = step(eps, parameters(eps))
    elif steps > 1:
        eps, _ = jax.lax.scan(
            lambda eps, _: (step(eps, parameters(eps)), None), eps, None, length=steps - 1
        )
    return parameters(eps)


def _constant(loss: Callable[..., Array]) -> Callable[..., Modules]:
    """The gradient in the first argument, treated as a constant."""

    def slope(own: Modules, shared: Modules, x: Array) -> Modules:
        return jax.grad(loss)(*jax.lax.stop_gradient((own, shared, x)))

    return slope


def _twice_differentiable(loss: Callable[..., Array]) -> Callable[..., Modules]:
    """The gradient in the first argument, whose own derivative is a Hessian-vector product.

    The Hessian is symmetric, so the product that a reverse pass needs is a derivative along the
    vector, and forward over reverse takes fewer operations than reverse over reverse.
    """

    @jax.custom_vjp
    def slope(own: Modules, shared: Modules, x: Array) -> Modules:
        return jax.grad(loss)(own, shared, x)

    def forward(own: Modules, shared: Modules, x: Array) -> tuple[Modules, Any]:
        (value, _), along = jax.linearize(
            lambda own: jax.grad(loss, argnums=(0, 1))(own, shared, x), own
        )
        return value, along

    def backward(along: Any, vector: Modules) -> tuple[Modules, Modules, None]:
        return (*along(vector), None)

    slope.defvjp(forward, backward)
    return slope
