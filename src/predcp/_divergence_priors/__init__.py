"""Priors pi(kappa) on a divergence, in the paper's parameters, correctly normalised.

Each works on `log kappa`, so that divergences far outside floating point keep their density.
"""

from predcp._divergence_priors._base import DivergencePrior
from predcp._divergence_priors._config import prior_from_config, prior_to_config
from predcp._divergence_priors._exponential import Exponential
from predcp._divergence_priors._gamma import Gamma
from predcp._divergence_priors._gamma_exponential import GammaExponential
from predcp._divergence_priors._given import GivenPrior, as_divergence_prior
from predcp._divergence_priors._half_cauchy import HalfCauchy
from predcp._divergence_priors._log_cauchy import LogCauchy
from predcp._divergence_priors._truncated_tail import with_truncated_tail
