"""Base of the two regressions: validation, standard units, fitting, reporting, saving."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from predcp._support.progress import progress_bar
from predcp._support.saved import SavedModel, load_model, save_model
from predcp._support.seeds import seed_of
from predcp.linear._columns import Columns
from predcp.linear._convergence import Convergence
from predcp.linear._draws import Draws
from predcp.linear._inference import as_inference, with_time_left
from predcp.linear._kept_steps import coefficients_at, mean_of_draws, pieces_of_draws
from predcp.linear._laplace import Laplace
from predcp.linear._priors import as_coefficient_prior
from predcp.linear._summary import Quantity, Summary, ranked, summary_table
from predcp.linear._target import Target

if TYPE_CHECKING:
    import xarray

# Numbers held at once when predicting.
_BLOCK = 2**22
# Single precision is taken as it is: a wide table is as large as memory allows.
_KINDS = (np.float64, np.float32)
_NAMED_AT_MOST = 5
_NEVER_MOVED = "NaN"
# Kind of a saved file, before the name of the class.
_KIND = "linear-"
# Attributes of a fit besides those that end in an underscore.
OF_A_FIT = ("_data", "_settings", "_tree", "_saved_names")


class Regression(BaseEstimator):
    """Base of `LogisticRegression` and `LinearRegression`.

    Columns are standardised with the training rows; those that never vary get coefficient 0 and
    are named in the summary.
    """

    prior: Any
    inference: Any
    fit_intercept: bool
    random_state: Any
    progress: Any
    n_features_in_: int
    feature_names_in_: np.ndarray
    _saved_names: list[str]
    # Those of the fit itself: later changes by `set_params` apply to the next fit.
    _settings: dict[str, Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Methods of subclasses.

    def _model(self) -> Callable[..., None]:
        """The NumPyro program, `model(x, y, *weights, **options)`."""
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        """Options of the program other than `prior` and `intercept`."""
        raise NotImplementedError

    def _family(self) -> Any:
        """As in `Target`."""
        raise NotImplementedError

    def _outputs(self) -> list[str]:
        """Names of the logits, or one empty name."""
        raise NotImplementedError

    def _sign_words(self) -> str:
        """What a positive coefficient means."""
        raise NotImplementedError

    def _size_words(self, size: float) -> str:
        """What a large coefficient means."""
        raise NotImplementedError

    def _in_units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Draws on the scale of the outcomes (the model may standardise them)."""
        return values

    # Fitting.

    def _validated(self, x: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, ...]:
        """Dense rows with a positive weight, and their weights (None if all are 1)."""
        x, y = validate_data(
            self, x, y, accept_sparse=True, dtype=_KINDS, ensure_min_samples=2, **checks
        )
        x = _dense(x)
        if sample_weight is None:
            return x, y, None
        weights = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        counted = weights > 0.0
        if counted.sum() < 2:
            raise ValueError("sample_weight must be positive for at least two rows (samples)")
        return x[counted], y[counted], weights[counted]

    def _fit(self, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None, began: float) -> None:
        """Fit to checked data.

        **Arguments**: `began`, when the caller's limit on time did, on `time.monotonic()`.
        """
        self.columns_ = Columns.fit(
            x, np.ones(len(x)) if weights is None else weights, self.fit_intercept
        )
        if not self.columns_.varying.any():
            raise ValueError(
                f"no column of X varies over its {len(x)} rows, so there is nothing to learn from"
            )
        inference = as_inference(self.inference, seed_of(self.random_state))
        # At once in the precision that is wanted: a copy of a wide table is as large as memory allows.
        wanted = np.float64 if isinstance(inference, Laplace) else jnp.result_type(float)
        kind = np.dtype(wanted)
        data = [self.columns_.transform(x, kind)]
        data.append(y.astype(kind) if y.dtype.kind == "f" else y.astype(np.int32))
        if weights is not None:
            data.append(weights.astype(kind))
        self._data = tuple(data)
        self._settings = {
            "prior": self.prior,
            "inference": self.inference,
            "fit_intercept": bool(self.fit_intercept),
        }
        with progress_bar(self.progress, "fitting") as report:
            (draws,) = with_time_left(inference, began).sample(self._target(), report)
        _require_finite(draws)
        self._set_draws(draws, draws.sampler or type(inference).__name__)
        for words in self.convergence_.warnings():
            # Attribute the warning to the line that called `fit`.
            warnings.warn(words, ConvergenceWarning, stacklevel=3)

    def _target(self) -> Target:
        options = {
            **self._options(),
            "prior": as_coefficient_prior(self._settings["prior"]),
            "intercept": self._settings["fit_intercept"],
        }
        return Target(self._model(), self._data, options, keep=_keep, family=self._family())

    def _set_draws(self, draws: Draws, sampler: str = "Nuts") -> None:
        self.draws_ = draws
        self.convergence_ = Convergence.of(draws, sampler)
        means = {name: mean_of_draws(array)[None, None] for name, array in draws.values.items()}
        # The coefficients' units are linear, so that means have means.
        units = self._original_units(means)
        self._set_coefficients(units["coef"][0, 0], units["intercept"][0, 0])

    def _set_coefficients(self, coefficients: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = coefficients, intercept

    # Reading.

    def _original_units(
        self, values: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """`coef`, `intercept` and the scales, `(chains, draws, ...)`.

        **Arguments**: `values` of the sites; those of the draws if None.
        """
        given = dict(self.draws_.values if values is None else values)
        beta = given.pop("beta")
        units = {"coef": self.columns_.coefficients(beta)}
        return self._with_scales(units, given, beta)

    def _with_scales(
        self, units: dict[str, np.ndarray], given: dict[str, np.ndarray], beta: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The coefficients in `units` with the intercept and the scales."""
        given = {name: np.asarray(array, np.float64) for name, array in given.items()}
        alpha = given.pop("alpha", np.zeros((*beta.shape[:2], *beta.shape[3:])))
        units["intercept"] = alpha - self.columns_.shift(beta)
        if "log_tau" in given:
            units["tau"] = np.exp(given.pop("log_tau"))
        return self._in_units({**units, **given})

    def _shown_units(self, rows: list[int]) -> dict[str, np.ndarray]:
        """The intercept, the scales, and `coef N` of some varying columns by number."""
        given = {name: array for name, array in self.draws_.values.items() if name != "lambda"}
        beta = given.pop("beta")
        scale = self.columns_.scale[self.columns_.varying][rows]
        chosen = coefficients_at(beta, rows) / scale.reshape(-1, *[1] * (beta.ndim - 3))
        units = self._with_scales({"coef": chosen}, given, beta)
        return units | {f"coef {row}": units["coef"][:, :, k] for k, row in enumerate(rows)}

    def _predictors(self, x: Any) -> Iterator[Float[np.ndarray, "rows draws ..."]]:
        """The linear predictor of every draw in standard units, some rows at a time."""
        check_is_fitted(self)
        x = validate_data(self, x, accept_sparse="csr", dtype=_KINDS, reset=False)
        beta, alpha = self.draws_.values["beta"], self.draws_.values.get("alpha")
        alpha = 0.0 if alpha is None else _flat(np.asarray(alpha))
        each = max(math.prod(beta.shape[:2]) * math.prod(beta.shape[3:]), beta.shape[2])
        rows = max(1, _BLOCK // each)
        for first in range(0, x.shape[0], rows):
            block = self.columns_.transform(_dense(x[first : first + rows]))
            # Never all draws of all coefficients at once: they may be in a file.
            parts = [
                np.einsum("np,dp...->nd...", block, piece, optimize=True)
                for piece in pieces_of_draws(beta)
            ]
            yield np.concatenate(parts, axis=1) + alpha

    @property
    def posterior_(self) -> xarray.DataTree:
        """ArviZ data tree: `posterior`, `sample_stats`, `log_likelihood`, `log_prior`,
        `posterior_predictive`, `prior` and `observed_data`; made at the first access.

        The local scales' noise xi is not part of `log_prior`: scaling the power of a prior means
        scaling that of its hyperparameters.
        """
        check_is_fitted(self)
        if not hasattr(self, "_tree"):
            from predcp.linear._posterior import posterior_tree

            if not hasattr(self, "_data"):
                raise AttributeError(
                    "posterior_ needs the training data, which a saved model does not keep; "
                    "fit the model again"
                )
            self._tree = posterior_tree(self)
        return self._tree

    def summary(self, coefficients: int = 10, size: float = 0.1) -> Summary:
        """A table of the intercept, the scales and the largest coefficients, and a verdict.

        **Arguments**
        - `coefficients`: number of coefficients to show, the most probably large ones first.
        - `size`: a coefficient is large if one standard deviation of its column changes the log odds
          (or the outcome, in its standard deviations) by more than this.
        """
        check_is_fitted(self)
        if not (np.isfinite(size) and size > 0.0):
            raise ValueError(f"size must be a positive number, got {size!r}")
        names, outputs = self._names(), self._outputs()
        beta = self.draws_.values["beta"]
        flat = beta.reshape(*beta.shape[:2], -1) if beta.ndim > 3 else beta
        order, large = ranked(flat, size, coefficients)
        places = [divmod(int(place), len(outputs)) for place in order]
        units = self._shown_units(sorted({row for row, _ in places}))
        quantities = {}
        if self._settings["fit_intercept"]:
            for number, output in enumerate(outputs):
                label = f"intercept[{output}]" if output else "intercept"
                intercept = units["intercept"]
                quantities[label] = Quantity(intercept[:, :, number] if output else intercept)
        for name in ("sigma", "tau"):
            if name in units:
                quantities[name] = Quantity(units[name], signed=False)
        columns = np.flatnonzero(self.columns_.varying)
        for place, (row, output) in zip(order, places):
            name = names[columns[row]]
            label = f"{name}[{outputs[output]}]" if outputs[output] else name
            coef = units[f"coef {row}"]
            values = coef[:, :, output] if outputs[output] else coef
            quantities[label] = Quantity(values, large=float(large[place]))
        notes = [self._sign_words(), f"P(large): {self._size_words(size)}"]
        if large.size > coefficients:
            notes.append(
                f"{coefficients} of {large.size} coefficients are shown, those with the largest "
                "P(large)"
            )
        constant = [names[column] for column in np.flatnonzero(~self.columns_.varying)]
        if constant:
            more = ", ..." if len(constant) > _NAMED_AT_MOST else ""
            listed = ", ".join(constant[:_NAMED_AT_MOST]) + more
            notes.append(f"{len(constant)} columns never vary and have coefficient 0: {listed}")
        table = summary_table(quantities, self.convergence_.sampled)
        prior, inference = (_name(self._settings[name]) for name in ("prior", "inference"))
        title = f"{type(self).__name__}, prior {prior}, {inference}"
        warned = tuple(self.convergence_.warnings())
        return Summary(title, table, (*notes, *self.convergence_.words()), warned)

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        if hasattr(self, "_saved_names"):
            return self._saved_names
        return [f"x{number}" for number in range(self.n_features_in_)]

    # Saving.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file of arrays and JSON."""
        arrays, values = self.to_state()
        save_model(path, SavedModel(_KIND + type(self).__name__, arrays, values))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a model that `save` wrote. It predicts the same; it has no `posterior_`."""
        saved = load_model(path, _KIND + cls.__name__)
        return cls.from_state(saved.arrays, saved.config)

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and plain values from which `from_state` makes a model that predicts the same."""
        check_is_fitted(self)
        kept = {"beta", "alpha", "sigma", "log_tau"} & self.draws_.values.keys()
        arrays = {f"draws.{name}": np.asarray(self.draws_.values[name]) for name in sorted(kept)}
        arrays |= {f"columns.{name}": value for name, value in vars(self.columns_).items()}
        settings = {
            "prior": _name(self._settings["prior"]),
            "inference": _name(self._settings["inference"]),
            "fit_intercept": self._settings["fit_intercept"],
        }
        # JSON has no NaN (for chains that never moved).
        convergence = {
            name: _NEVER_MOVED if value != value else value
            for name, value in vars(self.convergence_).items()
        }
        values = {"settings": settings, "convergence": convergence, "names": self._names()}
        return arrays, values

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> Any:
        """The inverse of `to_state`."""
        model = cls(**values["settings"])
        model._settings = dict(values["settings"])
        model.columns_ = Columns(*(arrays[f"columns.{n}"] for n in ("mean", "scale", "varying")))
        model.n_features_in_ = len(model.columns_.scale)
        model._restore(arrays, values)
        draws = {
            name.removeprefix("draws."): array
            for name, array in arrays.items()
            if name.startswith("draws.")
        }
        model._set_draws(Draws(draws, {}, None, 0.0, 0))
        convergence: dict[str, Any] = {
            name: np.nan if value == _NEVER_MOVED else value
            for name, value in values["convergence"].items()
        }
        model.convergence_ = Convergence(**convergence)
        model._saved_names = list(values["names"])
        return model

    def _restore(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        """Restore the fields that a subclass added to the state."""


def _keep(sites: dict[str, Any], *data: Any) -> dict[str, Any]:
    # xi and tau can be computed from the others.
    return {name: value for name, value in sites.items() if name not in ("xi", "eta", "tau")}


def _dense(x: Any) -> np.ndarray:
    return x.toarray() if hasattr(x, "toarray") else x


def _flat(values: np.ndarray) -> np.ndarray:
    """Chains and draws on one axis."""
    return values.reshape(-1, *values.shape[2:])


def _name(value: Any) -> str:
    return value if isinstance(value, str) else type(value).__name__


def _require_finite(draws: Draws) -> None:
    for name in ("beta", "alpha", "sigma"):
        if name in draws.values and not np.isfinite(draws.values[name]).all():
            raise FloatingPointError(
                f"the draws of {name} left floating point; the prior's tails may be too heavy for "
                "these data: try prior='regularised-horseshoe', or jax_enable_x64"
            )
