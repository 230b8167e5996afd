"""A prior on `log tau` as functions of a Stan program."""

import re
from typing import Any

import numpy as np
from jaxtyping import Array

from predcp._divergence_priors import (
    DivergencePrior,
    Exponential,
    Gamma,
    GammaExponential,
    HalfCauchy,
    LogCauchy,
)
from predcp._maps import TabulatedComplexity

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

_PROGRAM = """\
  // A prior on log(tau), where tau is {unit}: made by predcp {version}.
  // Use it as: log_tau ~ {name}();  with  real tau = exp(log_tau);
  // kappa = D(tau) is the divergence from the reference in nats; {sentence}
  // Row 1 of the result: log kappa; row 2: log (d log kappa / d log tau).
  vector {name}_map(real log_tau) {{
    int pieces = {pieces};
    array[pieces] row_vector[{columns}] table = {{
{table}
    }};
    real position = (log_tau - ({low})) / {width};
    real inside = fmin(fmax(position, 0), pieces);
    int below = 0;
    int above = pieces;
    while (above - below > 1) {{
      int middle = (below + above) %/% 2;
      if (inside < middle) above = middle; else below = middle;
    }}
    real x = 2 * (inside - below) - 1;
    real log_kappa = table[below + 1, {degree} + 1];
    real log_elasticity = table[below + 1, {columns}];
    for (back in 1:{degree}) {{
      int place = {degree} + 1 - back;
      log_kappa = log_kappa * x + table[below + 1, place];
      log_elasticity = log_elasticity * x + table[below + 1, {degree} + 1 + place];
    }}
    // Outside of the table the map is a power law.
    if (position < 0) log_kappa += {elasticity_below} * {width} * position;
    if (position > pieces) {{
      log_kappa += {elasticity_above} * {width} * (position - pieces);
      log_elasticity += {slope_above} * {width} * (position - pieces);
    }}
    return [log_kappa, log_elasticity]';
  }}

  real {name}_lpdf(real log_tau) {{
    vector[2] log_map = {name}_map(log_tau);
    real y = log_map[1];
    return {density} + log_map[2] - ({log_mass});
  }}

  // A draw of log(tau), for generated quantities.
  real {name}_rng() {{
    real q = exp({log_mass}) * uniform_rng(0, 1);
    real low = {lowest};
    real high = {highest};
    for (halving in 1:200) {{
      real middle = 0.5 * (low + high);
      real y = {name}_map(middle)[1];
      if ({cdf} < q) low = middle; else high = middle;
    }}
    return 0.5 * (low + high);
  }}
"""


def stan_functions(
    pi: DivergencePrior, table: TabulatedComplexity, log_mass: Array, name: str, version: str
) -> str:
    """The text of the functions `NAME_map`, `NAME_lpdf` and `NAME_rng`.

    **Arguments**
    - `pi`: the prior on the divergence.
    - `table`: the map.
    - `log_mass`: log of the mass of pi below the supremum of the map; 0 where it is not truncated.
    - `name`: what the functions are called.
    - `version`: of the library, for the comment.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.endswith("__"):
        raise ValueError(
            f"name must be a name of Stan (letters, digits, _; a letter first), got {name!r}"
        )
    if pi.batch_shape or table.batch_shape:
        raise ValueError(
            f"a Stan function is of one prior, got a batch of shape {pi.batch_shape or table.batch_shape}; "
            "write one function for each entry"
        )
    density, cdf = _expressions(pi)
    rows = np.asarray(table.coefficients, float).reshape(table.pieces, -1)
    low, width = float(table.low), float(table.width)
    below, above = np.asarray(table.outer_elasticity, float)
    text = ",\n".join("      [" + ", ".join(map(repr, row.tolist())) + "]" for row in rows)
    bounded = table.bounded
    return _PROGRAM.format(
        name=name,
        version=version,
        unit="a scale" if table.unit is None else f"a {table.unit}",
        sentence="pi is cut at its supremum." if float(log_mass) < 0 else "it has no bound.",
        pieces=table.pieces,
        columns=rows.shape[1],
        degree=rows.shape[1] // 2 - 1,
        table=text,
        low=_number(low),
        width=_number(width),
        elasticity_below=_number(below),
        elasticity_above=_number(0.0 if bounded else above),
        slope_above=_number(float(table.outer_slope)),
        density=density,
        cdf=cdf,
        log_mass=_number(float(log_mass)),
        lowest=_number(low - 1e8),
        highest=_number(low + width * table.pieces + (0.0 if bounded else 1e8)),
    )


def _number(value: Any) -> str:
    return repr(float(value))


def _expressions(pi: DivergencePrior) -> tuple[str, str]:
    """The log density of `y = log kappa` and the cdf there, in Stan."""
    given = {name: _number(value) for name, value in pi.get_args().items()}
    if isinstance(pi, LogCauchy):
        arguments = f"{given['loc']}, {given['scale']}"
        return f"cauchy_lpdf(y | {arguments})", f"cauchy_cdf(y | {arguments})"
    if isinstance(pi, HalfCauchy):
        z = f"(y - log({given['scale']}))"
        # 1 / (z + 1 / z) without leaving floating point.
        return f"log(2 / pi()) - log_sum_exp({z}, -{z})", f"2 / pi() * atan(exp({z}))"
    if isinstance(pi, Exponential):
        return _exponential(given["scale"])
    if isinstance(pi, Gamma):
        return _gamma(given["concentration"], given["scale"])
    if isinstance(pi, GammaExponential):
        first = _gamma(given["concentration"], given["scale"])
        second = _exponential(given["exponential_mean"])
        weight = given["weight"]
        return (
            f"log_mix({weight}, {first[0]}, {second[0]})",
            f"({weight} * {first[1]} + (1 - {weight}) * {second[1]})",
        )
    raise ValueError(
        f"pi must be LogCauchy, HalfCauchy, Exponential, Gamma or GammaExponential to be written in "
        f"Stan, got {type(pi).__name__}"
    )


def _exponential(mean: str) -> tuple[str, str]:
    z = f"(y - log({mean}))"
    return f"({z} - exp({z}))", f"(-expm1(-exp({z})))"


def _gamma(shape: str, scale: str) -> tuple[str, str]:
    z = f"(y - log({scale}))"
    # Stan's incomplete gamma function takes no infinite argument.
    cdf = f"gamma_p({shape}, exp(fmin({z}, 10)))"
    return f"({shape} * {z} - exp({z}) - lgamma({shape}))", cdf
