"""What each prior says beforehand at different base rates."""

import jax.numpy as jnp
import numpy as np
import pandas as pd

from studies.scale_priors.designs import design
from studies.scale_priors.maps import LOG_TAU
from studies.scale_priors.posterior import ready
from studies.scale_priors.priors import FIXED, fixed, truncated
from studies.scale_priors.sentence import NATS

RATES = (0.01, 0.1, 1.0, 10.0, 100.0)


def drift_rows() -> pd.DataFrame:
    """Prior probability that a prediction moves by more than half a nat, over ticks-.01 to ticks-100."""
    rows = []
    for rate in RATES:
        study = ready(design(f"ticks-{rate:g}"))
        rest = {"intercept": jnp.log(jnp.asarray(rate))}
        log_tau = jnp.asarray(LOG_TAU)
        kappas = np.asarray(study.divergences["predcp"].log_kappa(0, log_tau, rest))
        tau = float(np.exp(np.interp(np.log(NATS), kappas, LOG_TAU)))
        beyond = {
            name: float(jnp.exp(fixed(name, 1.0, 2.5).log_survival(jnp.asarray(tau))))
            for name in FIXED
        }
        # R^2 is uniform: the probability that explained exceeds unexplained variance times a ratio.
        beyond["r2d2"] = 1.0 / (1.0 + tau**2 * rate)
        for name, each in study.complexities.items():
            made = study.divergences[each.kind]
            log_kappa = made.log_kappa(0, jnp.log(jnp.asarray(tau)), rest)
            prior = truncated(each.pi(), made.log_supremum(0, rest))
            beyond[name] = float(jnp.exp(prior.log_survival(log_kappa)))
        rows += [
            {"design": f"ticks-{rate:g}", "rate": rate, "half_nat": tau, "prior": name}
            | {"probability": value}
            for name, value in beyond.items()
        ]
    return pd.DataFrame(rows)
