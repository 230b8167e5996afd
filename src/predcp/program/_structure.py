"""Structure of a program around a scale: sites that it moves, other sites, predicted sites."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._numerics.dependence import dependencies
from predcp.program._noise import (
    can_be_drawn,
    is_improper,
    is_masked,
    mask_of,
    noise_shape,
    unwrapped,
)
from predcp.program._run import Arguments, is_array, is_float_array, is_traced, run, split_arguments

_CANNOT_TRACE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


class Site(NamedTuple):
    """A sample site of a program, without its values."""

    name: str
    family: str
    shape: tuple[int, ...]
    dtype: Any
    observed: bool
    positive: bool
    real: bool
    discrete: bool
    factor: bool
    masked: bool
    improper: bool
    noise: tuple[int, ...] | None  # shape of its noise; None if it needs a random key
    drawable: bool


class ScaleStructure(NamedTuple):
    """The sites around one scale.

    - `moved`: latent sites through which the scale reaches predictions, and the noise of a
        non-centred effect: real latent sites that predictions ignore at scale 0.
    - `rest`: latent sites that do not depend on the scale.
    - `predicted`: observed sites that depend on the scale.
    - `idle`: latent sites that depend on the scale and that no prediction uses.
    - `still`: those of the rest on which no prediction depends at scale 0.
    """

    scale: str
    moved: tuple[str, ...]
    rest: tuple[str, ...]
    predicted: tuple[str, ...]
    idle: tuple[str, ...] = ()
    still: tuple[str, ...] = ()


def as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of sites; one string is one name."""
    return (names,) if isinstance(names, str) else tuple(names)


class ProgramStructure:
    """The sample sites of a program and what each one depends on directly."""

    def __init__(self, model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.model = model
        self.arguments = _traceable(model, args, kwargs)
        self.sites, self.params, self.computed = _sites(model, self.arguments)
        self._direct = self._dependencies(())

    @property
    def latent(self) -> list[str]:
        """Names of the latent sites, in the order of the program."""
        return [site.name for site in self.sites.values() if not site.observed]

    def leaves(self) -> tuple[str, ...]:
        """Latent sites that depend on others and that no other depends on: data not given."""
        used = frozenset().union(*self._direct.values())
        return tuple(name for name in self.latent if self._direct[name] and name not in used)

    def has_fixed_prior(self, name: str) -> bool:
        """Whether the prior of a site depends on no other latent site."""
        return not self._direct[name]

    def require_latent(self, name: str) -> Site:
        """The latent site of that name; an error lists the known names."""
        site = self.sites.get(name)
        if name in self.computed:
            raise ValueError(
                f"scale must name a latent site of the program, and {name!r} is computed from others: "
                f'write {name} = numpyro.sample("{name}", ...) with a prior of its own, such as '
                f"LogNormal, and without a reparameterisation; its latent sites are {self.latent}"
            )
        if site is None or site.observed:
            raise ValueError(
                f"scale must name a latent site of the program, got {name!r}; "
                f"its latent sites are {self.latent}"
            )
        return site

    def require_among(self, argument: str, names: Iterable[str], known: Iterable[str]) -> None:
        """Refuse names that the program does not have."""
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{argument} must name sites of the program, got {name!r}; "
                    f"its sites are {list(known)}"
                )

    def require_proper(self, names: Sequence[str]) -> None:
        """Refuse to draw sites from a prior that is improper."""
        for name in names:
            if self.sites[name].improper:
                raise ValueError(
                    f"site {name!r} has an improper prior, so it cannot be drawn: give it a proper prior "
                    f"(a wide one), or its value with rest={{{name!r}: ...}}; with_complexity needs "
                    "neither for a prior on the divergence, such as predcp.Exponential(mean=0.2)"
                )

    def _dependencies(self, zero: Sequence[str]) -> dict[str, frozenset[str]]:
        """For each site the latent sites its distribution depends on directly."""
        # The program must use the values given here, not its own draws.
        inputs = {
            name: jax.ShapeDtypeStruct(self.sites[name].shape, self.sites[name].dtype)
            for name in self.latent
        } | self.params

        def distributions(**values: Any) -> dict[str, Any]:
            args, kwargs = self.arguments.restore()
            trace = run(self.model, args, kwargs, values)
            return {name: _parameters(trace[name]) for name in self.sites}

        found = dependencies(distributions, inputs, zero)
        return {
            name: frozenset().union(*(origin.labels for origin in parts))
            for name, parts in found.items()
        }

    def around(
        self, scale: str, observed: Sequence[str] = (), off: Sequence[str] = ()
    ) -> ScaleStructure:
        """The sites that one scale moves and those it leaves.

        **Arguments**: `observed`, names of sites to predict although they have no data; `off`, other
        scales that are switched off.
        """
        self.require_latent(scale)
        self.require_among("observed", observed, self.sites)
        self.require_among("off", off, self.latent)
        predicted = [s.name for s in self.sites.values() if s.observed and not s.factor]
        predicted = [*dict.fromkeys([*predicted, *observed])]
        latent = [name for name in self.latent if name not in observed]
        at_zero = self._dependencies((scale, *off))
        # A scale that is switched off moves nothing: find dependence with these scales at zero.
        direct = self._dependencies(off) if off else self._direct
        moved = self._downstream({scale}, latent, direct)
        noise = [
            name
            for name in latent
            if name not in moved
            and name != scale
            and self.sites[name].real
            and self._is_noise(name, at_zero, direct, [*predicted, *moved])
        ]
        moved = [name for name in latent if name in moved or name in noise]
        affected = {scale, *moved}
        reached = [name for name in predicted if direct[name] & affected]
        factors = [s.name for s in self.sites.values() if s.factor]
        carriers = self._upstream(reached, moved, direct)
        self._refuse(scale, carriers, reached, [f for f in factors if direct[f] & affected])
        rest = tuple(name for name in latent if name != scale and name not in moved)
        idle = tuple(name for name in moved if name not in carriers)
        # Where one entry of several is 0, the reference has the others.
        several = bool(self.sites[scale].shape)
        used = {*self._upstream(reached, self.latent, at_zero)}
        still = () if several else tuple(name for name in rest if name not in used)
        return ScaleStructure(scale, tuple(carriers), rest, tuple(reached), idle, still)

    def downstream(self, names: Sequence[str], observed: Sequence[str] = ()) -> set[str]:
        """Latent sites that depend on any of these, through any chain."""
        latent = [name for name in self.latent if name not in observed]
        return self._downstream(set(names), latent, self._direct)

    def _downstream(
        self, start: set[str], latent: list[str], direct: dict[str, frozenset[str]]
    ) -> set[str]:
        reached = set(start)
        # Sites are in the order of the program, so one pass finds every chain.
        for name in latent:
            if direct[name] & reached:
                reached.add(name)
        return reached - start

    def _upstream(
        self, ends: Sequence[str], among: Sequence[str], direct: dict[str, frozenset[str]]
    ) -> list[str]:
        """Those of some sites that any of the ends depends on, through any chain."""
        used = frozenset().union(*(direct[name] for name in ends))
        for name in reversed(among):
            if name in used:
                used |= direct[name]
        return [name for name in among if name in used]

    def _is_noise(
        self,
        name: str,
        at_zero: dict[str, frozenset[str]],
        direct: dict[str, frozenset[str]],
        users: list[str],
    ) -> bool:
        """Whether predictions use the site only through the scale."""
        used = any(name in direct[user] for user in users)
        return used and not any(name in labels for labels in at_zero.values())

    def _refuse(
        self, scale: str, moved: Sequence[str], predicted: Sequence[str], factors: Sequence[str]
    ) -> None:
        site = self.sites[scale]
        if not site.positive:
            raise ValueError(
                f"site {scale!r} must be positive to be a scale, but {site.family} is not; "
                "name a standard deviation, variance or another positive site, or sample the scale "
                "itself and take its logarithm in the program"
            )
        if factors:
            raise ValueError(
                f"factor {factors[0]!r} depends on {scale!r}: a factor is not a prediction and has no "
                "divergence; write it as an observed site with a distribution"
            )
        if not predicted:
            raise ValueError(
                f"no observed site depends on {scale!r}, so it changes no prediction; pass the data, "
                "or name what is predicted with observed=[...]"
            )
        for name in moved:
            if self.sites[name].discrete:
                raise ValueError(
                    f"latent site {name!r} is discrete and depends on {scale!r}: draws of it are not a "
                    "smooth function of the scale; sum it out of the program, or observe it"
                )
            if self.sites[name].masked:
                raise ValueError(
                    f"latent site {name!r} depends on {scale!r} and has a mask: where it is masked, it "
                    "is not drawn from its distribution; mask the observed site instead, or leave "
                    "the masked entries out of the data"
                )
            if not self.sites[name].drawable:
                raise ValueError(
                    f"latent site {name!r} ({self.sites[name].family}) depends on {scale!r} and cannot be "
                    "drawn as a smooth function of noise: it has neither quantiles nor a "
                    "reparameterised sampler; write it as a function of sites that have one"
                )

    def row_mask(self, sites: ScaleStructure) -> Array | None:
        """Weights of the rows, 0 for masked ones, which are no predictions; None without a mask."""
        masked = [name for name in sites.predicted if self.sites[name].masked]
        if not masked:
            return None
        if len(sites.predicted) > 1:
            raise ValueError(
                f"observed site {masked[0]!r} has a mask, and there are other observed sites "
                f"{[name for name in sites.predicted if name != masked[0]]}: leave the masked rows out of "
                "the data instead"
            )
        args, kwargs = self.arguments.restore()
        # A mask depends on data alone, so any values of the latent sites can be used.
        values = {
            name: jnp.ones(self.sites[name].shape, self.sites[name].dtype) for name in self.latent
        }
        fn = run(self.model, args, kwargs, values)[masked[0]]["fn"]
        return jnp.broadcast_to(mask_of(fn), fn.batch_shape).astype(float)

    def scales(self, observed: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
        """Positive latent sites that move some prediction through another site.

        **Returns** their names; by name, why other positive latent sites are refused.
        """
        self.require_among("observed", observed, self.sites)
        found, refused = [], {}
        for name in self._positive():
            try:
                structure = self.around(name, observed)
            except ValueError as error:
                refused[name] = str(error)
                continue
            if structure.moved:
                found.append(name)
        return found, refused

    def _positive(self) -> list[str]:
        sites = (self.sites[name] for name in self.latent)
        return [site.name for site in sites if site.positive and not site.discrete]


def _parameters(message: dict[str, Any]) -> list[Any]:
    """Arrays in a site's distribution."""
    leaves = jax.tree.leaves(message["fn"])
    return [leaf for leaf in leaves if hasattr(leaf, "dtype")]


def _traceable(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    """The arguments with as many arrays traced as the program allows.

    A program may need the value of an array, as in `numpyro.plate("groups", group.max() + 1)`. Then integer
    arrays, or all arrays, are passed as known values.
    """
    failure: Exception | None = None
    for traced in (is_array, is_float_array, is_traced):
        arguments = split_arguments(args, kwargs, lambda leaf, f=traced: f(leaf) or is_traced(leaf))
        try:
            _sites(model, arguments)
        except _CANNOT_TRACE as error:
            failure = error
            continue
        return arguments
    raise ValueError(
        "the structure of the program depends on values of its latent sites, so it cannot be "
        f"traced: {str(failure).splitlines()[0]} Write the choice with jnp.where, or pass what "
        "decides as a Python number"
    ) from failure


def _sites(
    model: Callable[..., Any], arguments: Arguments
) -> tuple[dict[str, Site], dict[str, Any], set[str]]:
    """Shapes and kinds of all sites, found without computing anything.

    **Returns** sample sites by name; shapes of parameters by name; names of deterministic sites.
    """
    found: dict[str, Site] = {}
    computed: set[str] = set()

    def record(arrays: tuple[Any, ...]) -> dict[str, Any]:
        args, kwargs = arguments.structure.restore(arrays)
        trace = run(model, args, kwargs, {})
        found.clear()
        for name, message in trace.items():
            if message["type"] == "sample" and not isinstance(unwrapped(message["fn"]), dist.Delta):
                found[name] = _site(name, message)
        computed.update(n for n, message in trace.items() if message["type"] == "deterministic")
        return {n: each["value"] for n, each in trace.items() if each["type"] == "param"}

    params = jax.eval_shape(record, arguments.arrays)
    return found, params, computed


def _site(name: str, message: dict[str, Any]) -> Site:
    fn, value = message["fn"], message["value"]
    inner = unwrapped(fn)
    support = fn.support
    base = support
    while isinstance(base, constraints.independent):
        base = base.base_constraint
    factor = isinstance(inner, dist.Unit)
    return Site(
        name=name,
        family=type(inner).__name__,
        shape=tuple(jnp.shape(value)),
        dtype=jnp.result_type(value),
        observed=bool(message["is_observed"]),
        positive=base in (constraints.positive, constraints.softplus_positive)
        or base is constraints.nonnegative
        or _is_positive(base),
        real=base in (constraints.real, constraints.real_vector),
        discrete=bool(getattr(base, "is_discrete", False)),
        factor=factor,
        masked=is_masked(fn),
        improper=is_improper(fn),
        noise=None if factor else noise_shape(fn),
        drawable=not factor and can_be_drawn(fn),
    )


def _is_positive(constraint: Any) -> bool:
    """Whether a constraint is `greater than 0`, perhaps with an upper bound."""
    lower = getattr(constraint, "lower_bound", None)
    if lower is None or is_traced(lower):
        return False
    # NumPy, because an operation of JAX would be traced here.
    return bool(np.all(np.asarray(lower) >= 0.0)) and not constraint.is_discrete
