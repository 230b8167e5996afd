"""Split a linear NumPyro program into its scales, and its coefficients given the scales."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro import handlers
from numpyro.distributions.transforms import Transform, biject_to

from predcp.linear._likelihood import Family
from predcp.linear._target import Target

# Names of the normal site in which the predictor is linear; the first one that is sampled.
_NOISES, _INTERCEPT = ("eta", "xi"), "alpha"
_FAMILIES: dict[type, Family] = {
    dist.BernoulliLogits: "bernoulli",
    dist.CategoricalLogits: "categorical",
    dist.Normal: "normal",
}


class Split(NamedTuple):
    """One position of the scales: minus its log density, and the scales of the coefficients.

    **Arguments**: `log_scales` `(P, K)`, the intercept's last where there is one; `log_noise`.
    """

    potential: Array
    log_scales: Float[Array, "columns outputs"]
    log_noise: Array


class Rows(NamedTuple):
    """Observed rows of the program: outcomes `(N,)` and how often each counts `(N,)`."""

    outcomes: Array
    weights: Float[Array, " rows"]


@dataclass(frozen=True)
class Scales:
    """The scales of a linear model, with its coefficients integrated out or drawn later.

    The program must take the design as its first argument, draw `xi` (or `eta`) from a normal
    around 0, name its coefficients `beta` (that times something positive) and its intercept, if
    any, `alpha`, normal around 0 as well.

    **Arguments**: `transforms` of every other latent site from unconstrained coordinates, and the
    `shapes` there; `noise`, the name; `coefficients`, the shape of beta; all found by `Scales.of`.
    """

    target: Target
    family: Family
    transforms: Mapping[str, Transform]
    shapes: Mapping[str, tuple[int, ...]]
    noise: str
    coefficients: tuple[int, ...]
    intercept: bool

    @classmethod
    def of(cls, target: Target, *data: Any) -> "Scales":
        """Split the program of a target; `data` of one problem."""
        found: dict[str, Any] = {}

        def look(*data: Any) -> None:
            # Only shapes are needed; to draw a scale its prior would have to be inverted.
            model = handlers.seed(target.model, jax.random.key(0))
            found.update(handlers.trace(model).get_trace(*data, **target.options))

        jax.eval_shape(look, *data)
        sites = {name: site for name, site in found.items() if site["type"] == "sample"}
        observed = [site for site in sites.values() if site["is_observed"]]
        family = _FAMILIES.get(type(observed[0]["fn"])) if len(observed) == 1 else None
        noise = next((name for name in _NOISES if name in sites), None)
        if family is None or noise is None or "beta" not in found:
            raise ValueError(
                "inference='laplace' needs a linear predictor: a program with normal `xi`, "
                "coefficients `beta` proportional to it and one normal, Bernoulli or categorical "
                f"outcome; it found the sites {', '.join(found)}. Use inference='nuts'"
            )
        scales = {
            name: site
            for name, site in sites.items()
            if not site["is_observed"] and name not in (noise, _INTERCEPT)
        }
        transforms = {name: biject_to(site["fn"].support) for name, site in scales.items()}
        shapes = {
            name: transforms[name].inverse_shape(np.shape(site["value"]))
            for name, site in scales.items()
        }
        shape = tuple(np.shape(found["beta"]["value"]))
        return cls(target, family, transforms, shapes, noise, shape, _INTERCEPT in sites)

    @property
    def dimension(self) -> int:
        """Number of unconstrained coordinates."""
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def start(self) -> Float[np.ndarray, " dim"]:
        """The middle of the coordinates, with predictors of the order of 1."""
        parts = {name: np.zeros(int(np.prod(shape))) for name, shape in self.shapes.items()}
        if "log_tau" in parts:
            # Standardised columns: the predictor's variance is the sum of as many squares.
            log_tau = -0.5 * np.log(self.coefficients[0])
            parts["log_tau"] += np.asarray(self.transforms["log_tau"].inv(log_tau))
        return np.concatenate([np.zeros(0), *parts.values()])

    def values(self, theta: Float[Array, " dim"]) -> tuple[dict[str, Array], Array]:
        """The sites at a position, and the log Jacobian of the transforms."""
        values, volume, begin = {}, jnp.zeros(()), 0
        for name, transform in self.transforms.items():
            end = begin + int(np.prod(self.shapes[name]))
            z = theta[begin:end].reshape(self.shapes[name])
            values[name] = transform(z)
            volume = volume + jnp.sum(transform.log_abs_det_jacobian(z, values[name]))
            begin = end
        return values, volume

    def split(self, theta: Float[Array, " dim"], *data: Any) -> tuple[Split, Rows]:
        """The scales at a position, and the observed rows, which are the same at every position."""
        values, log_density = self.values(theta)
        # With u = 1 the coefficients equal their scales.
        trace = self._trace(values, None, *data)
        for name in self.transforms:
            log_density = log_density + jnp.sum(trace[name]["fn"].log_prob(values[name]))
        scales = trace["beta"]["value"].reshape(self.coefficients[0], -1)
        if self.intercept:
            scales = jnp.concatenate([scales, trace[_INTERCEPT]["value"].reshape(1, -1)])
        (observed,) = (s for s in trace.values() if s["type"] == "sample" and s["is_observed"])
        noise = jnp.ones(())
        if self.family == "normal":
            noise = jnp.ravel(observed["fn"].scale)[0]
        outcomes = jnp.asarray(observed["value"])
        weights = jnp.ones(()) if observed["scale"] is None else observed["scale"]
        rows = Rows(outcomes, jnp.broadcast_to(weights, outcomes.shape))
        return Split(-log_density, jnp.log(scales), jnp.log(noise)), rows

    def sites(self, theta: Array, u: Array, *data: Any) -> dict[str, Array]:
        """Every latent and deterministic site, given the position of the scales and u `(P, K)`."""
        return {
            name: site["value"]
            for name, site in self._trace(self.values(theta)[0], u, *data).items()
            if site["type"] == "deterministic"
            or (site["type"] == "sample" and not site["is_observed"])
        }

    def _trace(self, values: Mapping[str, Array], u: Array | None, *data: Any) -> dict[str, Any]:
        """The program at given scales and u `(P, K)`, 1 if None."""

        def substituted(site: Any) -> Any:
            if site["name"] in values:
                return values[site["name"]]
            if site["type"] != "sample" or site["name"] not in (self.noise, _INTERCEPT):
                return None
            width = jnp.sqrt(site["fn"].variance)
            if u is None:
                return width
            part = u[: self.coefficients[0]] if site["name"] == self.noise else u[-1]
            return part.reshape(width.shape) * width

        seeded = handlers.seed(self.target.model, jax.random.key(0))
        model = handlers.substitute(seeded, substitute_fn=substituted)
        return handlers.trace(model).get_trace(*data, **self.target.options)
