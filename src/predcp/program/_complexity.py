"""The map from a scale of a NumPyro program to the divergence of its predictions."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from predcp._divergences import Divergence, abstract_members, beyond_rounding, kl
from predcp._maps import PredictiveComplexity
from predcp._numerics.log_of_exp import without_overflow
from predcp._support.arrays import as_float, concrete
from predcp._support.check import require_whole
from predcp._support.compiled import compiled
from predcp.program._increasing import require_increasing
from predcp.program._limits import Limits, Steps, as_limits, require_limit
from predcp.program._noise import at_step, drawn, make_noise, without_mask
from predcp.program._options import refuse_ambiguous_options
from predcp.program._predictors import Predictors, predictors_of
from predcp.program._run import Structure, run
from predcp.program._structure import ProgramStructure, ScaleStructure, as_names


class Program:
    """A program and the sites around one of its scales: the static part of a map."""

    def __init__(
        self,
        model: Callable[..., Any],
        structure: Structure,
        sites: ScaleStructure,
        off: tuple[tuple[str, tuple[int, ...]], ...],
        limits: Limits = (),
    ):
        self.model, self.structure, self.sites = model, structure, sites
        self.off, self.limits = off, limits
        self._identity = (model, structure, sites, off, limits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def still_at_zero(self) -> tuple[str, ...]:
        """Sites of the rest on which the predictions at scale 0 do not depend."""
        # What a reference of the user depends on is not known.
        return () if self.limits else self.sites.still

    def trace(
        self,
        arrays: tuple[Any, ...],
        values: Mapping[str, Any],
        draw: Any = None,
        key: Any = None,
        at_zero: bool = False,
    ) -> Any:
        """Run the program with these arrays and values, other scales switched off.

        **Arguments**: `draw`, `key`, as in `run`; `at_zero`, whether the scale is 0, where sites may have
        values that the user gave.
        """
        args, kwargs = self.structure.restore(arrays)
        zeros = {name: jnp.zeros(shape) for name, shape in self.off}
        limits = [each for each in self.limits if at_zero or each[0] not in self.sites.moved]
        return run(self.model, args, kwargs, {**zeros, **values}, draw, key, tuple(limits))

    def prior_draws(
        self, arrays: tuple[Any, ...], given: Mapping[str, Any], names: Sequence[str], keys: Array
    ) -> dict[str, Array]:
        """Draws of some latent sites from their own prior, one for each key."""
        return _prior_draws(self, tuple(names), arrays, dict(given), keys)


@compiled(0, 1)
def _prior_draws(
    program: Program,
    names: tuple[str, ...],
    arrays: tuple[Any, ...],
    given: dict[str, Any],
    keys: Array,
) -> dict[str, Array]:
    """Draws of some latent sites, one for each key."""

    def one(key: Array) -> dict[str, Array]:
        trace = program.trace(arrays, given, key=key)
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
    # For a site with several scales: which entry moves, and the values of the others.
    index: Array | None
    others: Array | None

    def __init__(
        self,
        program: Program,
        arrays: tuple[Any, ...],
        rest: Mapping[str, Any],
        noise: PyTree,
        divergence: Divergence = kl,
        index: tuple[Any, ...] | None = None,
        others: Any = None,
        **options: Any,
    ):
        self.program = program
        # A separate function, so that what it reads is part of the key of compiled programs.
        self.model = program.model
        self.rest = jax.tree.map(jnp.asarray, dict(rest))
        self.index = None if index is None else jnp.asarray(index)
        self.others = None if others is None else as_float(others)
        # Methods here; attributes that hold functions in the base class.
        functions = self.likelihood, self.parameters, self.reference
        try:
            super().__init__(*functions, arrays, noise, divergence, **options)
        except ValueError:
            self._check_families(divergence)
            raise
        for name in ("likelihood", "parameters", "reference"):
            del vars(self)[name]
        self._check_limit()

    def _values(self, tau: Array, xi: PyTree, at_zero: bool = False) -> dict[str, Any]:
        scale = self.program.sites.scale
        rest = {**self.rest, **xi.get("rest", {})}
        if at_zero:
            # Slopes by sites that leave the reference where it is are zero times infinity in a program
            # with the root of the scale.
            still = self.program.still_at_zero
            rest |= {n: jax.lax.stop_gradient(v) for n, v in rest.items() if n in still}
        if self.index is not None and self.others is not None:
            tau = self.others.at[tuple(self.index)].set(tau)
        return {**rest, scale: tau}

    def parameters(self, tau: Array, xi: PyTree) -> PyTree:
        """The scale and the sites it moves, at one draw of the noise."""
        others = self.others is not None or bool(self.program.off)
        return self._forward(tau, xi, singular=others)

    def reference(self, xi: PyTree) -> PyTree:
        """The same at scale 0."""
        return self._origin_at(jnp.zeros((), self._dtype), xi)

    def _origin_at(self, zero: Array, xi: PyTree) -> PyTree:
        return self._forward(zero, xi, singular=True, at_zero=True)

    def _forward(self, tau: Array, xi: PyTree, singular: bool, at_zero: bool = False) -> PyTree:
        noise = xi["sites"]

        def value(name: str, fn: Any, step: Array | None) -> Any:
            if name not in noise:
                return None
            return drawn(fn, at_step(noise[name], step), singular)

        values = self._values(tau, xi, at_zero)
        trace = self.program.trace(self.x, values, value, at_zero=at_zero)
        moved = {name: trace[name]["value"] for name in self.program.sites.moved}
        theta = {"scale": values[self.program.sites.scale], "moved": moved}
        # The rest that predictions need and that belongs to this draw, or that has no slope at 0.
        names = {*xi.get("rest", {}), *self.program.still_at_zero} & set(values)
        rest = {name: values[name] for name in sorted(names)}
        return {**theta, "rest": rest} if rest else theta

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

    def _split_noise(self, xi: PyTree) -> tuple[PyTree, PyTree]:
        """The noise of the moved sites, and draws of the rest."""
        return xi["sites"], {name: each for name, each in xi.items() if name != "sites"}

    def _join_noise(self, normal: PyTree, other: PyTree) -> PyTree:
        return {"sites": normal, **other}

    def _given(self) -> PyTree:
        """Values of the rest, and of the other scales of the site."""
        return self.rest, self.others

    def _with_given(self, given: PyTree) -> Self:
        rest, others = given
        return self.trusted(**vars(self) | {"rest": rest, "others": others})

    def predictors_by_draw(self, log_tau: Float[Array, ""] | None) -> list[Predictors]:
        """Predictors of the observed sites at one scale, with a leading axis of draws; None: at 0."""

        return jax.vmap(lambda xi: self.predictors_of_draw(log_tau, xi))(self.noise)

    def predictors_of_draw(self, log_tau: Array | None, xi: PyTree) -> list[Predictors]:
        """The same of one draw."""
        theta = self.reference(xi) if log_tau is None else self.parameters(jnp.exp(log_tau), xi)
        found = without_overflow(self._predictors)(theta)
        return jax.tree.map(lambda each: each.astype(self._dtype), found)

    def _predictors(self, theta: PyTree) -> list[Predictors]:
        return [predictors_of(made) for made in self.likelihood(theta, self.x).values()]

    @staticmethod
    def _as_noise(leaf: Any) -> Array:
        # Data of random keys and draws of discrete sites stay whole numbers.
        return jnp.asarray(leaf)

    @property
    def _dtype(self) -> Any:
        leaves = [leaf for leaf in jax.tree.leaves(self.noise) if _is_float(leaf)]
        return jnp.result_type(*leaves) if leaves else jnp.result_type(float)

    def check(self) -> Sequence[set[str] | None]:
        """No check here: `_check_limit` needs the finished map."""
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
        """Refuse a scale without a reference at 0 or without predictions, with the reason."""
        if not all(concrete(leaf) for leaf in jax.tree.leaves(self)):
            self._check_program()
            return
        # Evaluate with known numbers even inside a trace of the caller.
        with jax.ensure_compile_time_eval():
            found = self.steps_and_moves()
        require_limit(self.program.sites.scale, {n for n, _ in self.program.limits}, found)
        for member, each in zip(self._abstract_members(), found.moves):
            gaps = {name: float(gap) for name, gap in each.items()}
            self.divergence.check_fixed(member.family, gaps, {n for n in gaps if gaps[n]})

    @compiled()
    def steps_and_moves(self) -> Steps:
        """Displacements of moved sites and of predictions as the scale changes."""

        def theta(tau: Array) -> PyTree:
            return jax.vmap(lambda xi: self.parameters(tau, xi))(self.noise)

        origin = jax.vmap(self.reference)(self.noise)["moved"]
        at = jax.vmap(theta)(jnp.asarray([1e-2, 1e-5, 1.0], self._dtype))
        steps = {
            name: jnp.stack([jnp.max(jnp.abs(each - start)) for each in at["moved"][name][:2]])
            for name, start in origin.items()
        }
        moved = jax.vmap(self._coordinates)(jax.tree.map(lambda each: each[2], at))
        reference = self._reference()
        lost = {
            name: _all_finite(here) & ~_all_finite(start)
            for name, here, start in zip(sorted(self.program.sites.predicted), moved, reference)
        }

        def gap(name: str, here: Array, start: Array, fixed: Sequence[str]) -> Array:
            apart = here - start
            return jnp.max(jnp.abs(beyond_rounding(apart, start) if name in fixed else apart))

        rules = [self.divergence.rule(each.family) for each in self._abstract_members()]
        moves = [
            {name: gap(name, here[name], start[name], rule.fixed) for name in here}
            for rule, here, start in zip(rules, moved, reference)
        ]
        return Steps(steps, lost, moves)

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
    noise_draws: int = 16,
    key: Array | None = None,
    method: str = "auto",
    divergence: Divergence = kl,
    per: Any = "trial",
    weights: Any = None,
    index: int | tuple[int, ...] | None = None,
    others: Any = None,
    reference: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> ProgramComplexity:
    """The map from a scale of a NumPyro program to the divergence of its predictions, in nats.

    Sites that depend on the scale move, with fixed noise; the other sites are as `rest` states. The
    reference is the program at scale 0. The unit of the scale is that of the site.

    **Arguments**
    - `model`: a NumPyro program, centred or not.
    - `scale`: name of a positive latent site.
    - `args`, `kwargs`: arguments of the program, the data among them. Pass an argument that has the
        name of an option below by position.
    - `rest`: where the other latent sites are: `"prior"` averages over draws of them, a mapping
        gives their values, or those of parameters (and the names left out are drawn).
        `with_complexity` conditions on the rest of the same draw.
    - `observed`: sites to predict although the program has no data for them.
    - `off`: names of other scales to switch off (set to 0).
    - `noise_draws`, `key`, `method`: number, random key and kind of the noise, as in `normal_noise`.
        `"auto"` integrates each row by as many Gauss-Hermite nodes where its predictor is normal, which
        is linear in normal effects, and takes Sobol draws otherwise.
    - `divergence`: `kl` or another one.
    - `per`, `weights`: the unit of the average over points and their weights, as in
        `PredictiveComplexity`: a binomial row counts as its trials unless `per="row"`.
    - `index`, `others`: for a site with several scales, which entry moves and the values of the
        other entries (0 by default).
    - `reference`: by name of a site that the scale moves, its value at scale 0, where its distribution
        has none: an array, or a function of the other sites' values. For rates that are beta with
        mean m and precision `1 / tau**2` it is `lambda values: values["m"]`.
    """
    structure = ProgramStructure(model, args, kwargs)
    observed, off = as_names(observed), as_names(off)
    sites = structure.around(scale, observed, off)
    if isinstance(rest, str) and rest != "prior":
        raise ValueError(
            f'rest must be "prior" or a mapping of site names to values, got {rest!r}: a map by itself has '
            'no draw of the rest to be conditional on; with_complexity(..., rest="given") has, inside '
            f"the program; here, map the sites {list(sites.rest)} to values"
        )
    for name, _ in as_limits(reference):
        if name not in sites.moved and name not in structure.downstream(off):
            raise ValueError(
                f"reference must name sites that {scale!r} moves {list(sites.moved)}, got {name!r}"
            )
    given = {} if isinstance(rest, str) else dict(rest)
    unknown = set(given) - set(sites.rest) - set(structure.params)
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
        noise_draws=noise_draws,
        key=jax.random.key(0) if key is None else key,
        method=method,
        divergence=divergence,
        per=per,
        weights=weights,
        index=index,
        others=others,
        reference=reference,
    )
    require_increasing(made)
    return made


def program_map(
    structure: ProgramStructure,
    sites: ScaleStructure,
    given: Mapping[str, Any],
    *,
    off: Sequence[str] = (),
    noise_draws: int,
    key: Array,
    method: str,
    divergence: Divergence,
    per: Any = "trial",
    weights: Any = None,
    index: int | tuple[Any, ...] | None = None,
    others: Any = None,
    reference: Mapping[str, Any] | None = None,
) -> ProgramComplexity:
    """The map with the given values of the rest; what is not given is drawn from the prior."""
    noise_draws = require_whole("noise_draws", noise_draws)
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
        tuple((name, structure.sites[name].shape) for name in off),
        _limits(structure, sites, off, reference),
    )
    arrays = structure.arguments.arrays
    # Noise is data of the map and must not become part of a traced program.
    with jax.ensure_compile_time_eval():
        shapes = {name: structure.sites[name].noise for name in sites.moved}
        dtypes = {name: structure.sites[name].dtype for name in sites.moved}
        kind = "sobol" if method == "auto" else method
        noise: dict[str, Any] = {"sites": make_noise(key, noise_draws, shapes, kind, dtypes)}
    left = [name for name in sites.rest if name not in given and name not in off]
    if left:
        structure.require_proper(left)
        known = all(concrete(leaf) for leaf in jax.tree.leaves((arrays, given, key)))
        with jax.ensure_compile_time_eval() if known else nullcontext():
            keys = jax.random.split(jax.random.fold_in(key, 1), noise_draws)
            noise["rest"] = program.prior_draws(arrays, given, left, keys)
    if not noise["sites"] and not left:
        noise["sites"] = {"": jnp.zeros((noise_draws, 0))}
    index, others = (index, others) if shape else (None, None)
    mask = structure.row_mask(sites)
    if mask is not None:
        weights = mask if weights is None else mask * weights
    made = ProgramComplexity(
        program,
        arrays,
        given,
        noise,
        divergence,
        index=index,
        others=others,
        per=per,
        weights=weights,
    )
    return made.by_quadrature(noise_draws, required=False) if method == "auto" else made


def _limits(
    structure: ProgramStructure,
    sites: ScaleStructure,
    off: Sequence[str],
    reference: Mapping[str, Any] | None,
) -> Limits:
    """The values at scale 0 of the sites that this scale moves, and of those that `off` scales move."""
    limits = as_limits(reference)
    structure.require_among("reference", dict(limits), structure.latent)
    used = {*sites.moved, *structure.downstream(off)}
    return tuple(each for each in limits if each[0] in used)


def _is_entry(index: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    known = [(i, n) for i, n in zip(index, shape) if concrete(i)]
    return len(index) == len(shape) and all(-n <= i < n for i, n in known)


def _all_finite(coordinates: dict[str, Array]) -> Array:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in coordinates.values()]).all()


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)
