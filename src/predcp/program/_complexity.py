"""The map from a scale of a NumPyro program to the divergence of its predictions."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from predcp._divergences import Divergence, abstract_members, kl
from predcp._maps import PredictiveComplexity
from predcp._support.arrays import as_float, concrete
from predcp._support.compiled import compiled
from predcp._support.reads import reads
from predcp.program._noise import at_step, drawn, make_noise, mask_of, without_mask
from predcp.program._options import refuse_ambiguous_options
from predcp.program._run import Structure, run
from predcp.program._structure import ProgramStructure, ScaleStructure

# Where a map is looked at to see whether it increases: from e^-9 to e^9 around 1.
_GRID = np.linspace(-9.0, 9.0, 13)


class Program:
    """A program and the sites around one of its scales: the static part of a map."""

    def __init__(
        self,
        model: Callable[..., Any],
        structure: Structure,
        sites: ScaleStructure,
        index: tuple[int, ...] | None,
        off: tuple[tuple[str, tuple[int, ...]], ...],
    ):
        self.model, self.structure, self.sites = model, structure, sites
        self.index, self.off = index, off
        self._identity = (model, structure, sites, index, off)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def trace(self, arrays: tuple[Any, ...], values: Mapping[str, Any], draw: Any = None) -> Any:
        """Run the program with these arrays and values, other scales switched off."""
        return self._run(arrays, values, draw)

    def _run(
        self, arrays: tuple[Any, ...], values: Mapping[str, Any], draw: Any, key: Any = None
    ) -> Any:
        args, kwargs = self.structure.restore(arrays)
        zeros = {name: jnp.zeros(shape) for name, shape in self.off}
        return run(self.model, args, kwargs, {**zeros, **values}, draw, key)

    def prior_draws(
        self, arrays: tuple[Any, ...], given: Mapping[str, Any], names: Sequence[str], keys: Array
    ) -> dict[str, Array]:
        """Draws of some latent sites from their own prior, one for each key."""
        return _prior_draws(reads(self.model), self, tuple(names), arrays, dict(given), keys)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _prior_draws(
    _: Any,
    program: Program,
    names: tuple[str, ...],
    arrays: tuple[Any, ...],
    given: dict[str, Any],
    keys: Array,
) -> dict[str, Array]:
    """The first argument is what the program reads, so that a changed global compiles anew."""

    def one(key: Array) -> dict[str, Array]:
        trace = program._run(arrays, given, None, key)
        return {name: trace[name]["value"] for name in names}

    return jax.vmap(one)(keys)


class ProgramComplexity(PredictiveComplexity):
    """`D(tau)` of one scale of a NumPyro program, from the program itself.

    `D(tau) = mean_s mean_n KL[p(y_n | theta_s(tau)) || p(y_n | theta_s(0))]`, where `theta_s(tau)` are the
    sites that the scale moves, drawn with fixed noise `xi_s`. The same noise draws the reference, so
    the two differ by the scale alone. Made by `complexity_of`.
    """

    program: Program
    rest: dict[str, Array]
    others: Array | None

    def __init__(
        self,
        program: Program,
        arrays: tuple[Any, ...],
        rest: Mapping[str, Any],
        noise: PyTree,
        divergence: Divergence = kl,
        others: Any = None,
        **options: Any,
    ):
        self.program = program
        # A function by itself, so that what it reads is part of the key of compiled programs.
        self.model = program.model
        self.rest = {name: jnp.asarray(value) for name, value in rest.items()}
        self.others = None if others is None else as_float(others)
        # The class has these as methods; the base class asks for functions.
        functions = self.likelihood, self.parameters, self.reference
        try:
            super().__init__(*functions, arrays, noise, divergence, **options)
        except ValueError:
            self._check_families(divergence)
            raise
        for name in ("likelihood", "parameters", "reference"):
            del vars(self)[name]
        self._check_limit()

    def _values(self, tau: Array, xi: PyTree) -> dict[str, Any]:
        scale = self.program.sites.scale
        if self.others is not None:
            tau = self.others.at[self.program.index].set(tau)
        return {**self.rest, **xi.get("rest", {}), scale: tau}

    def parameters(self, tau: Array, xi: PyTree) -> PyTree:
        """The scale and the sites it moves, at one draw of the noise."""
        others = self.others is not None or bool(self.program.off)
        return self._forward(tau, xi, singular=others)

    def reference(self, xi: PyTree) -> PyTree:
        """The same at scale 0."""
        return self._forward(jnp.zeros((), self._dtype), xi, singular=True)

    def _forward(self, tau: Array, xi: PyTree, singular: bool) -> PyTree:
        noise = xi["sites"]

        def value(name: str, fn: Any, step: Array | None) -> Any:
            if name not in noise:
                return None
            return drawn(fn, at_step(noise[name], step), singular)

        values = self._values(tau, xi)
        trace = self.program.trace(self.x, values, value)
        moved = {name: trace[name]["value"] for name in self.program.sites.moved}
        theta = {"scale": values[self.program.sites.scale], "moved": moved}
        # What the rest is in this draw does not move, but predictions need it.
        return {**theta, "rest": xi["rest"]} if "rest" in xi else theta

    def likelihood(self, theta: PyTree, x: Any) -> dict[str, Any]:
        """Distributions of what is predicted."""
        values = {
            **self.rest,
            **theta.get("rest", {}),
            **theta["moved"],
            self.program.sites.scale: theta["scale"],
        }
        trace = self.program.trace(x, values)
        return {name: without_mask(trace[name]["fn"]) for name in self.program.sites.predicted}

    def coordinates_by_draw(self, log_tau: Float[Array, ""]) -> list[dict[str, Array]]:
        """Coordinates of the predictions at one scale, with a leading axis of draws."""
        tau = jnp.exp(jnp.asarray(log_tau, self._dtype))
        return jax.vmap(lambda xi: self._coordinates(self.parameters(tau, xi)))(self.noise)

    def reference_by_draw(self) -> list[dict[str, Array]]:
        """Coordinates of the reference's predictions, with a leading axis of draws."""
        return self._reference()

    @property
    def _dtype(self) -> Any:
        leaves = [leaf for leaf in jax.tree.leaves(self.noise) if _is_float(leaf)]
        return jnp.result_type(*leaves) if leaves else jnp.result_type(float)

    def check(self) -> Sequence[set[str] | None]:
        """Nothing yet: `_check_limit` needs the finished map."""
        return ()

    def _check_families(self, divergence: Any) -> None:
        """Name the observed site for which there is no divergence."""
        if not isinstance(divergence, Divergence):
            return
        origin = jax.eval_shape(self._first_origin)
        for name in self.program.sites.predicted:
            try:
                found = abstract_members(
                    lambda theta, n=name: self.likelihood(theta, self.x)[n], origin
                )
                _ = [divergence.rule(member.family) for member in found]
            except ValueError as error:
                raise ValueError(f"observed site {name!r}: {error}") from error

    def _check_limit(self) -> None:
        """Refuse, with its reason, a scale without a reference at 0 or without predictions."""
        if not all(concrete(leaf) for leaf in jax.tree.leaves(self)):
            return
        # The numbers are known, also where the caller is being traced.
        with jax.ensure_compile_time_eval():
            steps, lost, moves = self._steps_and_moves()
        scale = self.program.sites.scale
        for name, distances in steps.items():
            far, near = np.asarray(distances)
            if not np.isfinite(near):
                raise ValueError(
                    f"site {name!r} has no finite value where {scale!r} is 0: the reference model cannot "
                    "be found there; is the scale a precision? then sample the standard deviation"
                )
            if not near <= max(0.5 * far, 1e-3):
                raise ValueError(
                    f"site {name!r} does not approach a limit as {scale!r} goes to 0 (it is {near:.3g} "
                    "away at 1e-5), so there is no reference model at scale 0; is the scale a "
                    "precision or a rate? then sample its inverse"
                )
        for name, gone in lost.items():
            if gone:
                raise ValueError(
                    f"the predictions of {name!r} are not finite where {scale!r} is 0, so there is no "
                    "reference model; is it the scale of the noise? A complexity prior is for "
                    "effects that can vanish"
                )
        if not np.any(np.asarray(moves) != 0.0):
            raise ValueError(f"the predictions are the same for every value of {scale!r}")

    @compiled()
    def _steps_and_moves(self) -> tuple[dict[str, Array], dict[str, Array], Array]:
        """Where moved sites and predictions go as the scale does.

        **Returns** how far moved sites are from the reference at 1e-2 and 1e-5; by observed site,
        whether predictions are finite at 1 and not at 0; how far they move from 0 to 1.
        """

        def theta(tau: float) -> PyTree:
            return jax.vmap(lambda xi: self.parameters(jnp.asarray(tau, self._dtype), xi))(
                self.noise
            )

        origin = jax.vmap(self.reference)(self.noise)["moved"]
        near = [theta(tau)["moved"] for tau in (1e-2, 1e-5)]
        steps = {
            name: jnp.stack([jnp.max(jnp.abs(at[name] - start)) for at in near])
            for name, start in origin.items()
        }
        moved = jax.vmap(self._coordinates)(theta(1.0))
        reference = self._reference()
        lost = {
            name: _all_finite(here) & ~_all_finite(start)
            for name, here, start in zip(sorted(self.program.sites.predicted), moved, reference)
        }
        pairs = zip(jax.tree.leaves(moved), jax.tree.leaves(reference))
        return steps, lost, jnp.stack([jnp.max(jnp.abs(value - start)) for value, start in pairs])

    def simulate(self, tau: Float[Array, ""], key: Array) -> PyTree:
        """Data of the program at one scale, with fresh noise; the rest as given or drawn."""
        key_noise, key_data = jax.random.split(key)
        xi = jax.tree.map(lambda leaf: leaf[0], self.noise)
        shapes = {
            name: None if not _is_float(leaf) else leaf.shape for name, leaf in xi["sites"].items()
        }
        dtypes = {name: leaf.dtype for name, leaf in xi["sites"].items()}
        fresh = make_noise(key_noise, 1, shapes, "plain", dtypes)
        xi = {**xi, "sites": jax.tree.map(lambda leaf: leaf[0], fresh)}
        if "rest" in xi:
            which = jax.random.randint(key_data, (), 0, self._count)
            xi["rest"] = jax.tree.map(lambda leaf: leaf[which], self.noise["rest"])
        found = self.likelihood(self.parameters(tau, xi), self.x)
        keys = jax.random.split(key_data, len(found))
        return {name: fn.sample(key) for (name, fn), key in zip(found.items(), keys)}


@refuse_ambiguous_options
def complexity_of(
    model: Callable[..., Any],
    scale: str,
    /,
    *args: Any,
    rest: str | Mapping[str, Any] = "prior",
    observed: Sequence[str] = (),
    off: Sequence[str] = (),
    draws: int = 16,
    key: Array | None = None,
    method: str = "sobol",
    divergence: Divergence = kl,
    per: Any = "trial",
    weights: Any = None,
    index: int | tuple[int, ...] | None = None,
    others: Any = None,
    **kwargs: Any,
) -> ProgramComplexity:
    """The map from the value of a scale of a NumPyro program to nats.

    Sites that depend on the scale are moved, with fixed noise; the rest stays where `rest` says. The
    reference is the program at scale 0. The unit is whatever the site is.

    **Arguments**
    - `model`: a NumPyro program, centred or not.
    - `scale`: name of a positive latent site.
    - `args`, `kwargs`: arguments of the program, the data among them. Pass an argument that has the
        name of an option below by position.
    - `rest`: where the other latent sites are: `"prior"` averages over draws of them, a mapping
        gives their values (and the names left out are drawn). `with_complexity` conditions on the
        rest of the same draw.
    - `observed`: sites to predict although the program has no data for them.
    - `off`: names of other scales to switch off (set to 0).
    - `draws`, `key`, `method`: number, random key and kind of the noise, as in `normal_noise`.
    - `divergence`: `kl` or another one.
    - `per`, `weights`: the unit of the average over points and their weights, as in
        `PredictiveComplexity`: a binomial row counts as its trials unless `per="row"`.
    - `index`, `others`: for a site with several scales, which entry moves and where the others are
        (0 when left out).
    """
    structure = ProgramStructure(model, args, kwargs)
    sites = structure.around(scale, observed, off)
    if isinstance(rest, str) and rest != "prior":
        raise ValueError(
            f'rest must be "prior" or a mapping of site names to values, got {rest!r}; '
            '"given" is what with_complexity does inside a program'
        )
    given = {} if isinstance(rest, str) else dict(rest)
    unknown = set(given) - set(sites.rest)
    if unknown:
        raise ValueError(
            f"rest must name latent sites that {scale!r} does not move {list(sites.rest)}, "
            f"got {sorted(unknown)}"
        )
    made = program_map(
        structure,
        sites,
        given,
        off=off,
        draws=draws,
        key=jax.random.key(0) if key is None else key,
        method=method,
        divergence=divergence,
        per=per,
        weights=weights,
        index=index,
        others=others,
    )
    require_increasing(made)
    return made


def program_map(
    structure: ProgramStructure,
    sites: ScaleStructure,
    given: Mapping[str, Any],
    *,
    off: Sequence[str] = (),
    draws: int,
    key: Array,
    method: str,
    divergence: Divergence,
    per: Any = "trial",
    weights: Any = None,
    index: int | tuple[int, ...] | None = None,
    others: Any = None,
) -> ProgramComplexity:
    """The map with the rest where it is given, and drawn from the prior where it is not."""
    shape = structure.sites[sites.scale].shape
    if index is not None and not isinstance(index, tuple):
        index = (index,)
    if index is not None and not _is_entry(index, shape):
        raise ValueError(
            f"index must name an entry of site {sites.scale!r}, whose shape is {shape}, got {index}"
        )
    if shape and index is None:
        if int(np.prod(shape)) != 1:
            raise ValueError(
                f"site {sites.scale!r} has {shape} scales; say which one moves with index=..."
            )
        index = (0,) * len(shape)
    if shape and others is None:
        others = jnp.zeros(shape)
    program = Program(
        structure.model,
        structure.arguments.structure,
        sites,
        index if shape else None,
        tuple((name, structure.sites[name].shape) for name in off),
    )
    arrays = structure.arguments.arrays
    # Noise is data of the map, never part of a program that is being traced.
    with jax.ensure_compile_time_eval():
        shapes = {name: structure.sites[name].noise for name in sites.moved}
        dtypes = {name: structure.sites[name].dtype for name in sites.moved}
        noise: dict[str, Any] = {"sites": make_noise(key, draws, shapes, method, dtypes)}
    left = [name for name in sites.rest if name not in given and name not in off]
    if left:
        known = all(concrete(leaf) for leaf in jax.tree.leaves((arrays, given, key)))
        with jax.ensure_compile_time_eval() if known else nullcontext():
            keys = jax.random.split(jax.random.fold_in(key, 1), draws)
            noise["rest"] = program.prior_draws(arrays, given, left, keys)
    if not noise["sites"] and not left:
        noise["sites"] = {"": jnp.zeros((draws, 0))}
    others = others if shape else None
    mask = _mask(structure, sites)
    if mask is not None:
        weights = mask if weights is None else mask * weights
    return ProgramComplexity(
        program, arrays, given, noise, divergence, others=others, per=per, weights=weights
    )


def require_increasing(complexity: ProgramComplexity) -> None:
    """Refuse a map that falls somewhere, with its reason, where values are known."""
    if not all(concrete(leaf) for leaf in jax.tree.leaves(complexity)):
        return
    # Known numbers stay numbers, also while the program around them is being traced.
    with jax.ensure_compile_time_eval():
        grid = jnp.asarray(_GRID, complexity._dtype)
        log_kappa = np.array(complexity.log_value_and_elasticity(grid)[0])
    scale = complexity.program.sites.scale
    wrong = np.isnan(log_kappa) | (log_kappa == np.inf)
    # Zero is wrong at the smallest scale; after it, the map has fallen.
    wrong[0] |= log_kappa[0] == -np.inf
    if np.any(wrong):
        at = float(np.exp(_GRID[wrong][0]))
        raise ValueError(
            f"the divergence of the predictions is not a finite positive number at {scale} = {at:.3g}"
        )
    highest = np.maximum.accumulate(log_kappa)
    fall = highest - log_kappa
    if np.max(fall) > 0.05:
        at = float(np.exp(_GRID[int(np.argmax(fall))]))
        raise ValueError(
            f"the predictions do not move further from the reference as {scale!r} grows: D falls "
            f"by {1.0 - np.exp(-np.max(fall)):.0%} near {scale} = {at:.3g}, so it has no inverse; is the "
            "site a precision, or a parameter that does more than scale an effect?"
        )


def _is_entry(index: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(index) == len(shape) and all(-n <= i < n for i, n in zip(index, shape))


def _mask(structure: ProgramStructure, sites: ScaleStructure) -> Array | None:
    """Weights of the rows: a masked row is no prediction."""
    masked = [name for name in sites.predicted if structure.sites[name].masked]
    if not masked:
        return None
    if len(sites.predicted) > 1:
        raise ValueError(
            f"observed site {masked[0]!r} has a mask, and there are other observed sites "
            f"{[name for name in sites.predicted if name != masked[0]]}: leave the masked rows out of "
            "the data instead"
        )
    args, kwargs = structure.arguments.restore()
    # A mask is made of data, so any values of the latent sites do.
    sites_of = {name: structure.sites[name] for name in structure.latent}
    values = {name: jnp.ones(site.shape, site.dtype) for name, site in sites_of.items()}
    fn = run(structure.model, args, kwargs, values)[masked[0]]["fn"]
    return jnp.broadcast_to(mask_of(fn), fn.batch_shape).astype(float)


def _all_finite(coordinates: dict[str, Array]) -> Array:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in coordinates.values()]).all()


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)
