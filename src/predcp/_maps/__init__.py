"""Maps from scales to divergences: the protocol and every implementation."""

from predcp._maps._complexity import (
    Complexity,
    ScalarComplexity,
    Unit,
    VectorComplexity,
    require_unit,
)
from predcp._maps._depth import DepthComplexity, unit_normal
from predcp._maps._evidence import (
    CoefficientEvidence,
    LinearEvidence,
    LogisticEvidence,
    RowEvidence,
    require_moving,
)
from predcp._maps._joint import JointComplexity
from predcp._maps._limits import (
    BetaBinomialLimit,
    CorrelationLimit,
    GammaLimit,
    LengthscaleLimit,
    NegativeBinomialLimit,
    StudentTLimit,
)
from predcp._maps._modular import ModularComplexity
from predcp._maps._ordered import OrderedComplexity
from predcp._maps._penalised import PenalisedComplexity
from predcp._maps._predictive import PredictiveComplexity
from predcp._maps._row_nodes import noise_moments
from predcp._maps._sampled import sampled
from predcp._maps._separate import SeparateComplexity
from predcp._maps._tabulated import TabulatedComplexity
