"""A normal regression by rows in coordinates in which a change of its scales costs little.

The marginal density of the response needs `I + p W^1/2 (tau^2 G + shared) W^1/2` for many values of tau and of
the precision p. In the coordinates in which `W^1/2 G W^1/2` is tridiagonal, each costs a number of
operations in proportion to the rows, where a Cholesky factor costs their third power.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Reduced(NamedTuple):
    """The regression in tridiagonal coordinates.

    **Arguments**
    - `diagonal`, `beside` `(rows - 1,)`: of `Q^T W^1/2 G W^1/2 Q`.
    - `sides`: `Q^T W^1/2` times the response, and times a vector of ones.
    - `shared`: prior variance of the intercept; `log_roots`, the sum of the logs of the roots of W.
    """

    diagonal: Float[Array, " rows"]
    beside: Float[Array, " between"]
    sides: Float[Array, "rows two"]
    shared: float
    log_roots: Float[Array, ""]

    @classmethod
    def of(cls, gram: Array, root: Array, response: Array, shared: float) -> "Reduced":
        """Reduce the matrix G, once.

        **Arguments**: `root`, of the weights of the rows.
        """
        matrix, diagonal, beside, sizes = jax.lax.linalg.tridiagonal(
            root[:, None] * gram * root, lower=True
        )
        sides = _reflected(matrix, sizes, jnp.stack([root * response, root], axis=1))
        return cls(diagonal, beside, sides, shared, jnp.sum(jnp.log(root)))

    def log_marginal(self, log_tau: Array, precision: Array | float = 1.0) -> Array:
        """The log density of the response with the coefficients integrated out."""
        rows = self.diagonal.size
        variance = precision * jnp.exp(2.0 * log_tau)
        diagonal, beside = 1.0 + variance * self.diagonal, variance * self.beside
        pivots, solved = _eliminated(diagonal, beside, self.sides)
        products = (solved / pivots[:, None]).T @ solved
        # The intercept adds a matrix of rank one.
        shared = precision * self.shared
        level = 1.0 + shared * products[1, 1]
        squares = precision * (products[0, 0] - shared * products[0, 1] ** 2 / level)
        log_determinant = jnp.sum(jnp.log(pivots)) + jnp.log(level)
        log_scale = self.log_roots + 0.5 * rows * jnp.log(precision) - 0.5 * log_determinant
        return log_scale - 0.5 * squares


def _reflected(matrix: Array, sizes: Array, sides: Array) -> Array:
    """`Q^T sides` for Q as LAPACK gives it: a product of reflections, one in a column below the diagonal."""
    places = jnp.arange(len(matrix))

    def reflect(sides: Array, given: tuple[Array, Array, Array]) -> tuple[Array, None]:
        number, column, size = given
        normal = jnp.where(places > number + 1, column, (places == number + 1).astype(column.dtype))
        return sides - size * normal[:, None] * (normal @ sides), None

    given = jnp.arange(sizes.size), matrix.T[: sizes.size], sizes
    return jax.lax.scan(reflect, sides, given)[0]


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
