"""What a scale of a program does: which sites it moves, which it leaves, what is predicted."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import constraints

from predcp._numerics.dependence import dependencies
from predcp.program._noise import can_be_drawn, is_masked, noise_shape, unwrapped
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
    noise: tuple[int, ...] | None  # shape of its noise; None if it needs a random key
    drawable: bool


class ScaleStructure(NamedTuple):
    """The sites around one scale.

    - `moved`: latent sites through which the scale reaches predictions, and the noise of a
        non-centred effect: real latent sites that predictions ignore at scale 0.
    - `rest`: latent sites that do not depend on the scale.
    - `predicted`: observed sites that depend on the scale.
    - `idle`: latent sites that depend on the scale and that no prediction uses.
    """

    scale: str
    moved: tuple[str, ...]
    rest: tuple[str, ...]
    predicted: tuple[str, ...]
    idle: tuple[str, ...] = ()


class ProgramStructure:
    """The sample sites of a program and what each one depends on directly."""

    def __init__(self, model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.model = model
        self.arguments = _traceable(model, args, kwargs)
        self.sites = _sites(model, self.arguments)
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
        """The latent site of that name; an error that lists those there are."""
        site = self.sites.get(name)
        if site is None or site.observed:
            raise ValueError(
                f"scale must name a latent site of the program, got {name!r}; "
                f"its latent sites are {self.latent}"
            )
        return site

    def _dependencies(self, zero: Sequence[str]) -> dict[str, frozenset[str]]:
        """For each site the latent sites its distribution depends on directly."""
        # Draws inside the program must not stand in for the values given here.
        inputs = {
            name: jax.ShapeDtypeStruct(self.sites[name].shape, self.sites[name].dtype)
            for name in self.latent
        }

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
        for name in observed:
            if name not in self.sites:
                raise ValueError(
                    f"observed must name sites of the program, got {name!r}; "
                    f"its sites are {list(self.sites)}"
                )
        predicted = [s.name for s in self.sites.values() if s.observed and not s.factor]
        predicted = [*dict.fromkeys([*predicted, *observed])]
        latent = [name for name in self.latent if name not in observed]
        at_zero = self._dependencies((scale, *off))
        # What is switched off moves nothing: dependence is asked with the other scales at zero.
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
        used = self._upstream(reached, moved, direct)
        self._refuse(scale, used, reached, [f for f in factors if direct[f] & affected])
        rest = tuple(name for name in latent if name != scale and name not in moved)
        idle = tuple(name for name in moved if name not in used)
        return ScaleStructure(scale, tuple(used), rest, tuple(reached), idle)

    def downstream(self, names: Sequence[str], observed: Sequence[str] = ()) -> set[str]:
        """Latent sites that depend on any of these, through any chain."""
        latent = [name for name in self.latent if name not in observed]
        return self._downstream(set(names), latent, self._direct)

    def _downstream(
        self, start: set[str], latent: list[str], direct: dict[str, frozenset[str]]
    ) -> set[str]:
        reached = set(start)
        # Sites stand in the order of the program, so one pass sees every chain.
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

    def scales(self, observed: Sequence[str] = ()) -> list[str]:
        """Positive latent sites that move some prediction through another site."""
        found = []
        for name in self.latent:
            site = self.sites[name]
            if not site.positive or site.discrete:
                continue
            try:
                structure = self.around(name, observed)
            except ValueError:
                continue
            if structure.moved:
                found.append(name)
        return found


def _parameters(message: dict[str, Any]) -> list[Any]:
    """Arrays that a site's distribution is made of."""
    leaves = jax.tree.leaves(message["fn"])
    return [leaf for leaf in leaves if hasattr(leaf, "dtype")]


def _traceable(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    """The arguments with as many arrays traced as the program allows.

    A program may ask an array for a number, as in `numpyro.plate("groups", group.max() + 1)`. Integer
    arrays are then known to it, or all arrays.
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


def _sites(model: Callable[..., Any], arguments: Arguments) -> dict[str, Site]:
    """Shapes and kinds of all sample sites, found without computing anything."""
    found: dict[str, Site] = {}

    def record(arrays: tuple[Any, ...]) -> None:
        args, kwargs = arguments.structure.restore(arrays)
        trace = run(model, args, kwargs, {})
        found.clear()
        for name, message in trace.items():
            if message["type"] == "sample" and not isinstance(unwrapped(message["fn"]), dist.Delta):
                found[name] = _site(name, message)

    jax.eval_shape(record, arguments.arrays)
    return found


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
        noise=None if factor else noise_shape(fn),
        drawable=not factor and can_be_drawn(fn),
    )


def _is_positive(constraint: Any) -> bool:
    """Whether a constraint is `greater than 0`, perhaps with an upper bound."""
    lower = getattr(constraint, "lower_bound", None)
    if lower is None or is_traced(lower):
        return False
    # NumPy: an operation of JAX would be traced here.
    return bool(np.all(np.asarray(lower) >= 0.0)) and not constraint.is_discrete
