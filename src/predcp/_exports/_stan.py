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
from predcp._exports._curve import FARTHEST, Curve, shortened
from predcp._maps import TabulatedComplexity

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

_PROGRAM = """\
  // A prior on log(tau), where tau is {unit}: made by predcp {version}.
  // Use it as: log_tau ~ {name}();  with  real tau = exp(log_tau);
  // kappa = D(tau) is the divergence from the reference in nats; {sentence}
  // The log density is right to {accuracy}.
  // The polynomials of a piece, for log kappa and for its log elasticity.
  row_vector {name}_piece(int piece) {{
{table}
  }}
  vector {name}_polynomials(row_vector coefficients, real x) {{
    real log_kappa = coefficients[{terms}];
    real log_elasticity = coefficients[{columns}];
    for (back in 1:{degree}) {{
      log_kappa = log_kappa * x + coefficients[{terms} - back];
      log_elasticity = log_elasticity * x + coefficients[{columns} - back];
    }}
    return [log_kappa, log_elasticity]';
  }}
  // Row 1 of the result: log kappa; row 2: log (d log kappa / d log tau).
  vector {name}_map(real log_tau) {{
    real position = (log_tau - ({low})) / {width};
    real inside = fmin(fmax(position, 0), {pieces});
    int below = 0;
    int above = {pieces};
    while (above - below > 1) {{
      int middle = (below + above) %/% 2;
      if (inside < middle) above = middle; else below = middle;
    }}
    // The coefficients stay numbers: a variable of this function would get a derivative for each.
    vector[2] log_map = {name}_polynomials({name}_piece(above), 2 * (inside - below) - 1);
    // Outside of the table the elasticity is constant, or a power.
    if (position < 0) log_map[1] += {elasticity_below} * {width} * position;
    if (position > {pieces}) {{
      real beyond = {width} * (position - {pieces});
      log_map[1] += {tail};
      log_map[2] += fmin({slope_above} * beyond, {farthest});
    }}
    return log_map;
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

  // The prior of a standard deviation itself, one or several independent ones: what brms asks for.
  real {name}_sd_lpdf(real sd) {{
    return {name}_lpdf({power} * log(sd)) + log({power}) - log(sd);
  }}
  real {name}_sd_lpdf(vector sd) {{
    real total = 0;
    for (i in 1:num_elements(sd)) total += {name}_sd_lpdf(sd[i]);
    return total;
  }}
  real {name}_sd_lccdf(real sd) {{
    if (sd <= 0) return 0;
    real y = {name}_map({power} * log(sd))[1];
    return log1m(fmin(1, {cdf} * exp(-({log_mass}))));
  }}
  real {name}_sd_rng() {{
    return exp({name}_rng() / {power});
  }}
"""


def stan_functions(
    pi: DivergencePrior, table: TabulatedComplexity, log_mass: Array, name: str, version: str
) -> str:
    """The text of the functions `predcp_NAME_lpdf`, `predcp_NAME_rng` and others that begin so.

    **Arguments**
    - `pi`: the prior on the divergence.
    - `table`: the map.
    - `log_mass`: log of the mass of pi below the supremum of the map; 0 if pi is not truncated.
    - `name`: NAME in the names of the functions.
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
    curve = shortened(pi, table)
    pieces, _, terms = curve.coefficients.shape
    *first, last = (
        f"return [{', '.join(map(repr, row.tolist()))}];"
        for row in curve.coefficients.reshape(pieces, -1)
    )
    text = [f"    if (piece == {place}) {row}" for place, row in enumerate(first, 1)]
    double = np.finfo(table.coefficients.dtype).eps < 1e-12
    return _PROGRAM.format(
        accuracy="1e-8" if double else "2e-4 (to 1e-8 in double precision: jax_enable_x64)",
        name=f"predcp_{name}",
        version=version,
        unit="a scale" if table.unit is None else f"a {table.unit}",
        sentence="pi is cut at its supremum." if float(log_mass) < 0 else "it has no bound.",
        pieces=pieces,
        columns=2 * terms,
        terms=terms,
        degree=terms - 1,
        table="\n".join([*text, f"    {last}"]),
        low=_number(curve.low),
        width=_number(curve.width),
        elasticity_below=_number(curve.elasticity_below),
        tail=_tail(curve),
        slope_above=_number(curve.slope),
        farthest=_number(FARTHEST),
        density=density,
        cdf=cdf,
        log_mass=_number(float(log_mass)),
        power="2.0" if table.unit == "variance" else "1.0",
        lowest=_number(curve.low - 1e8),
        highest=_number(curve.high + (0.0 if table.bounded else 1e8)),
    )


def _tail(curve: Curve) -> str:
    """What log kappa gains at `beyond` above the pieces."""
    elasticity, slope = _number(curve.elasticity_above), _number(curve.slope)
    if curve.slope == 0.0:
        return f"{elasticity} * beyond"
    return f"{elasticity} * expm1(fmin({slope} * beyond, {FARTHEST})) / {slope}"


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
        # 1 / (z + 1 / z) without overflow.
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
