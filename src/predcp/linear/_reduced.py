"""A normal regression by rows in coordinates in which a change of its scales costs little.

The marginal density of the response needs the determinant and the inverse of

    I + p W^1/2 (tau^2 (G + f^2 C C^T) + shared) W^1/2

for many values of tau, of the factor f of the largest columns C, and of the precision p. In the
coordinates in which `W^1/2 G W^1/2` is tridiagonal, each costs a number of operations in proportion to the
rows, where a Cholesky factor costs their third power.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float


class Reduced(NamedTuple):
    """The regression in tridiagonal coordinates.

    **Arguments**
    - `diagonal`, `beside` `(rows - 1,)`: of `Q^T W^1/2 G W^1/2 Q`.
    - `sides`: `Q^T W^1/2` times the response, the largest columns, and a vector of ones.
    - `shared`: prior variance of the intercept; `log_roots`, the sum of the logs of the roots of W.
    """

    diagonal: Float[Array, " rows"]
    beside: Float[Array, " between"]
    sides: Float[Array, "rows sides"]
    shared: float
    log_roots: Float[Array, ""]

    @classmethod
    def of(
        cls, gram: Array, largest: Array, root: Array, response: Array, shared: float
    ) -> "Reduced":
        """Reduce the matrix G, once.

        **Arguments**: `largest`, C; `root`, of the weights of the rows.
        """
        matrix, diagonal, beside, sizes = jax.lax.linalg.tridiagonal(
            root[:, None] * gram * root, lower=True
        )
        # The first coordinate is not turned.
        turn = jax.lax.linalg.householder_product(matrix[1:, :-1], sizes)
        sides = jnp.concatenate([response[:, None], largest, jnp.ones_like(root)[:, None]], axis=1)
        sides = root[:, None] * sides
        sides = jnp.concatenate([sides[:1], turn.T @ sides[1:]])
        return cls(diagonal, beside, sides, shared, jnp.sum(jnp.log(root)))

    def log_marginal(
        self, log_tau: Array, factor: Array | float = 1.0, precision: Array | float = 1.0
    ) -> Array:
        """The log density of the response with the coefficients integrated out."""
        rows, sides = self.sides.shape
        variance = precision * jnp.exp(2.0 * log_tau)
        pivots, solved = _eliminated(
            1.0 + variance * self.diagonal, variance * self.beside, self.sides
        )
        products = (solved / pivots[:, None]).T @ solved
        # The largest columns and the intercept add a matrix of low rank.
        widths = jnp.full(sides - 1, jnp.sqrt(variance) * factor, self.sides.dtype)
        widths = widths.at[-1].set(jnp.sqrt(precision * self.shared))
        inner = (
            jnp.eye(sides - 1, dtype=products.dtype) + widths[:, None] * products[1:, 1:] * widths
        )
        lower = jnp.linalg.cholesky(inner)
        explained = solve_triangular(lower, widths * products[1:, 0], lower=True)
        squares = precision * (products[0, 0] - jnp.sum(explained**2))
        log_determinant = jnp.sum(jnp.log(pivots)) + 2.0 * jnp.sum(jnp.log(jnp.diagonal(lower)))
        return self.log_roots + 0.5 * (rows * jnp.log(precision) - log_determinant - squares)


def _eliminated(diagonal: Array, beside: Array, sides: Array) -> tuple[Array, Array]:
    """Pivots D and `L^-1 sides` of a tridiagonal matrix `L D L^T`."""

    def step(
        last: tuple[Array, Array], given: tuple[Array, Array, Array]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        pivot, solved = last
        diagonal, beside, side = given
        ratio = beside / pivot
        following = diagonal - ratio * beside, side - ratio * solved
        return following, following

    first = diagonal[0], sides[0]
    _, (pivots, solved) = jax.lax.scan(step, first, (diagonal[1:], beside, sides[1:]))
    return jnp.append(first[0], pivots), jnp.concatenate([first[1][None], solved])
