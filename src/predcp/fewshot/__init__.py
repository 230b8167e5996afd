"""Few-shot learning: sigma-MAML with a complexity prior on how far each module may move."""

from predcp.fewshot._adapt import adapted
from predcp.fewshot._checkpoint import CheckpointError
from predcp.fewshot._complexity import ModuleKappa, module_draws, module_kappa
from predcp.fewshot._episodes import Pool
from predcp.fewshot._evaluate import Difference, Evaluation, evaluate, paired_difference
from predcp.fewshot._fit import Fit, Paused, fit_runs
from predcp.fewshot._networks import ConvNet, DenseNet, Network, paper_network
from predcp.fewshot._objective import Meta
from predcp.fewshot._priors import HYPERPRIORS, ScalePrior, as_scale_prior
from predcp.fewshot._settings import Settings
from predcp.fewshot._train import Run, Trainer

__all__ = [
    "HYPERPRIORS",
    "CheckpointError",
    "ConvNet",
    "DenseNet",
    "Difference",
    "Evaluation",
    "Fit",
    "Meta",
    "ModuleKappa",
    "Network",
    "Paused",
    "Pool",
    "Run",
    "ScalePrior",
    "Settings",
    "Trainer",
    "adapted",
    "as_scale_prior",
    "evaluate",
    "fit_runs",
    "module_draws",
    "module_kappa",
    "paired_difference",
    "paper_network",
]
