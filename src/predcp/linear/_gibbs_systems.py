"""The normal regression inside a Gibbs sweep, with its coefficients integrated out or drawn.

Given tau, the local scales and the weights of the rows, the model is

    response ~ N(tau X Lambda u + alpha, W^-1),   u ~ N(0, I),   alpha ~ N(0, shared).

`RowSystem` factorises a matrix of rows by rows, `ColumnSystem` one of columns by columns. They
describe the same distribution; `Design.system` takes the smaller.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Bool, Float

from predcp.linear._parts import gram, predictor
from predcp.linear._reduced import Reduced

# Largest size of the group of columns with the largest local scales.
_MOST_LARGEST = 64


class LargestColumns(NamedTuple):
    """A random number of the columns with the largest local scales, and all the others.

    **Arguments**
    - `places`, `scales`: of the candidates, largest first; `chosen` marks those in the group.
    - `largest`, `rest`: local scales of the group and of the other columns, 0 elsewhere.
    - `room`: how much the log scales of the others may grow before one of them joins the group.
    """

    places: Array
    scales: Float[Array, " candidates"]
    chosen: Bool[Array, " candidates"]
    largest: Float[Array, " columns"]
    rest: Float[Array, " columns"]
    room: Float[Array, ""]

    @classmethod
    def among(cls, key: Array, local_scales: Float[Array, " columns"]) -> "LargestColumns":
        """Draw the size of the group on a log scale, so that small groups are more common."""
        most = min(_MOST_LARGEST, local_scales.size - 1)
        scales, places = jax.lax.top_k(local_scales, most + 1)
        log_count = jax.random.uniform(key, (), scales.dtype) * math.log(most + 1.0)
        count = jnp.clip(jnp.exp(log_count).astype(int), min(1, most), most)
        chosen = jnp.arange(most + 1) < count
        logs = jnp.log(scales)
        room = jnp.where(count > 0, logs[count - 1], jnp.inf) - logs[count]
        largest = jnp.zeros_like(local_scales).at[places].set(jnp.where(chosen, scales, 0.0))
        # Subtracting from the sum would lose the small scales to rounding.
        rest = local_scales.at[places].set(jnp.where(chosen, 0.0, scales))
        return cls(places, scales, chosen, largest, rest, room)

    @property
    def chosen_scales(self) -> Float[Array, " candidates"]:
        """Scales of the candidates in the group, 0 for the others."""
        return jnp.where(self.chosen, self.scales, 0.0)

    @property
    def unchosen_scales(self) -> Float[Array, " candidates"]:
        """Scales of the candidates outside of the group, 0 for the others."""
        return jnp.where(self.chosen, 0.0, self.scales)

    def local_scales(self, factor: Array) -> Float[Array, " columns"]:
        """All local scales, those of the group multiplied by `factor`."""
        return self.rest + factor * self.largest


class RowSystem(NamedTuple):
    """The regression through an N x N matrix, for few rows (Bhattacharya et al., 2016).

    **Arguments**
    - `candidates`: the columns of the design that may be in the group.
    - `rest_gram`, `largest_gram`: `X Lambda^2 X^T` of the two groups of columns.
    - `root`: square roots of the weights of the rows; `precision` multiplies all weights.
    - `response`: `(rows,)`; it and `root` are None until `observing` sets them.
    - `factor`: multiplies the local scales of the group.
    """

    x: Float[Array, "rows columns"]
    shared: float
    columns: LargestColumns
    candidates: Float[Array, "rows candidates"]
    rest_gram: Float[Array, "rows rows"]
    largest_gram: Float[Array, "rows rows"]
    root: Any = None
    response: Any = None
    precision: Any = 1.0
    factor: Any = 1.0

    def observing(self, response: Array, root: Array) -> "RowSystem":
        """The same for a response and the roots of its rows' weights."""
        return self._replace(response=response, root=root)

    @property
    def gram(self) -> Float[Array, "rows rows"]:
        """`X Lambda^2 X^T` of all columns."""
        return self.rest_gram + self.factor**2 * self.largest_gram

    def _roots(self) -> Float[Array, " rows"]:
        return jnp.sqrt(self.precision) * self.root

    def _factorised(self, log_tau: Array) -> Float[Array, "rows rows"]:
        """The Cholesky factor of `I + W^1/2 (tau^2 gram + shared) W^1/2`."""
        prior = jnp.exp(2.0 * log_tau) * self.gram + self.shared
        root = self._roots()
        eye = jnp.eye(root.size, dtype=root.dtype)
        return jnp.linalg.cholesky(eye + root[:, None] * prior * root)

    def log_marginal(self, log_tau: Array) -> Array:
        """The log density of the response with the coefficients integrated out."""
        lower, root = self._factorised(log_tau), self._roots()
        white = solve_triangular(lower, root * self.response, lower=True)
        log_scale = jnp.sum(jnp.log(root) - jnp.log(jnp.diagonal(lower)))
        return log_scale - 0.5 * jnp.sum(white**2)

    def reduced(self) -> Reduced:
        """The same in coordinates for many values of tau, the factor and the precision."""
        largest = self.candidates * self.columns.chosen_scales
        return Reduced.of(self.rest_gram, largest, self.root, self.response, self.shared)

    def draw(self, key: Array, log_tau: Array) -> tuple[Float[Array, " columns"], Array]:
        """`Lambda u` and alpha: a draw of the prior, corrected by its error in the rows."""
        x, root, tau = self.x, self._roots(), jnp.exp(log_tau)
        key_beta, key_alpha, key_rows = jax.random.split(key, 3)
        scales = self.columns.local_scales(self.factor)
        noise = jax.random.normal(key_beta, scales.shape, x.dtype)
        level = self.shared**0.5 * jax.random.normal(key_alpha, (), x.dtype)
        error = jax.random.normal(key_rows, root.shape, x.dtype)
        guess = root * (tau * predictor(x, scales * noise) + level) + error
        lower = self._factorised(log_tau)
        missing = root * cho_solve((lower, True), root * self.response - guess)
        direction = scales * (noise + tau * scales * (missing @ x))
        return direction, level + self.shared * jnp.sum(missing)


class ColumnSystem(NamedTuple):
    """The regression through a D x D matrix, for few columns.

    The intercept is one more column, of ones, with prior variance `shared`.

    **Arguments**
    - `design`: X, with the column of ones where there is an intercept.
    - `information`: `design^T W design` and `score`: `design^T W response`, without `precision`.
    - the others as in `RowSystem`.
    """

    design: Float[Array, "rows wide"]
    shared: float
    columns: LargestColumns
    information: Any = None
    score: Any = None
    root: Any = None
    response: Any = None
    precision: Any = 1.0
    factor: Any = 1.0

    def observing(self, response: Array, root: Array) -> "ColumnSystem":
        """The same for a response and the roots of its rows' weights."""
        information = self.information
        if root is not self.root:
            information = information_of(self.design, root)
        score = (root**2 * response) @ self.design
        return self._replace(information=information, score=score, response=response, root=root)

    def _scales(self, log_tau: Array) -> Float[Array, " wide"]:
        """Prior standard deviations of the coefficients, the intercept's last."""
        scales = jnp.exp(log_tau) * self.columns.local_scales(self.factor)
        if not self.shared:
            return scales
        return jnp.append(scales, jnp.asarray(self.shared**0.5, scales.dtype))

    def _solved(self, log_tau: Array) -> tuple[Array, Array, Array]:
        """The prior scales, the Cholesky factor of u's precision, and the posterior mean of u."""
        scales = self._scales(log_tau)
        precision = self.precision * scales[:, None] * self.information * scales
        lower = jnp.linalg.cholesky(jnp.eye(scales.size, dtype=scales.dtype) + precision)
        return scales, lower, cho_solve((lower, True), self.precision * scales * self.score)

    def log_marginal(self, log_tau: Array) -> Array:
        """The log density of the response with the coefficients integrated out."""
        scales, lower, mean = self._solved(log_tau)
        root = jnp.sqrt(self.precision) * self.root
        # The smallest penalised sum of squares; as a difference it would cancel.
        residual = root * (self.response - self.design @ (scales * mean))
        log_scale = jnp.sum(jnp.log(root)) - jnp.sum(jnp.log(jnp.diagonal(lower)))
        return log_scale - 0.5 * (jnp.sum(residual**2) + jnp.sum(mean**2))

    def draw(self, key: Array, log_tau: Array) -> tuple[Float[Array, " columns"], Array]:
        """`Lambda u` and alpha."""
        _, lower, mean = self._solved(log_tau)
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        u = mean + solve_triangular(lower, noise, trans=1, lower=True)
        local_scales = self.columns.local_scales(self.factor)
        alpha = self.shared**0.5 * u[-1] if self.shared else jnp.zeros((), u.dtype)
        return local_scales * u[: local_scales.size], alpha


System = RowSystem | ColumnSystem


class Design(NamedTuple):
    """Quantities that do not change between sweeps.

    **Arguments**
    - `x`: the design; `shared`: the variance of alpha.
    - `wide`: the design with a column of ones where there is an intercept; None where the rows
      are fewer.
    - `root`, `information`: roots of the weights of the rows, and the information of the columns
      under them, where every sweep has the same weights.
    """

    x: Float[Array, "rows columns"]
    shared: float
    wide: Any = None
    root: Any = None
    information: Any = None

    @classmethod
    def of(cls, x: Array, shared: float, weights: Array | None = None) -> "Design":
        """The design, and the weights of its rows where they are known beforehand."""
        design = cls(x, shared)
        if weights is not None:
            design = design._replace(root=jnp.sqrt(weights))
        rows, columns = x.shape
        if columns + bool(shared) >= rows:
            return design
        wide = jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1) if shared else x
        if weights is not None:
            design = design._replace(information=information_of(wide, design.root))
        return design._replace(wide=wide)

    @property
    def by_rows(self) -> bool:
        """Whether the smaller matrices are those of rows by rows."""
        return self.wide is None

    def system(self, columns: LargestColumns, others: Array) -> System:
        """The regression given local scales, without a response as yet.

        **Arguments**: `others`, `X Lambda^2 X^T` over all columns but the candidates of the group.
        """
        if not self.by_rows:
            return ColumnSystem(self.wide, self.shared, columns, self.information, root=self.root)
        candidates = self.x[:, columns.places]
        rest = others + gram(candidates, columns.unchosen_scales)
        largest = gram(candidates, columns.chosen_scales)
        return RowSystem(self.x, self.shared, columns, candidates, rest, largest, root=self.root)


def information_of(wide: Array, root: Array) -> Float[Array, "wide wide"]:
    """`design^T W design`, `root` the roots of the weights."""
    scaled = wide * root[:, None]
    return scaled.T @ scaled
