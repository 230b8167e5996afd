"""Few-shot learning: sigma-MAML with a complexity prior on how far each module may move."""

from typing import TYPE_CHECKING, Any

from predcp._support.checkpoint import CheckpointError
from predcp._support.extras import needs

with needs("experiments"):
    from predcp.fewshot._adapt import adapted
    from predcp.fewshot._complexity import ChainComplexity, module_noise
    from predcp.fewshot._episodes import Pool
    from predcp.fewshot._evaluate import (
        Difference,
        Evaluation,
        evaluate,
        paired_difference,
        standard_error,
    )
    from predcp.fewshot._fit import Fit, Paused, fit_runs
    from predcp.fewshot._module_priors import (
        HYPERPRIORS,
        FlatModules,
        MAMLModules,
        ModuleScalePrior,
        PredCPModules,
        ShrinkageModules,
        as_module_prior,
    )
    from predcp.fewshot._networks import (
        ConvNet,
        DenseNet,
        Network,
        network_from_config,
        paper_network,
        pooled_network,
    )
    from predcp.fewshot._objective import Meta
    from predcp.fewshot._report import ModuleReport, module_report
    from predcp.fewshot._runs import Run
    from predcp.fewshot._settings import Rates, Settings
    from predcp.fewshot._train import Trainer

if TYPE_CHECKING:
    from predcp.fewshot._classifier import AdaptedClassifier, FewShotClassifier

__all__ = [
    "HYPERPRIORS",
    "AdaptedClassifier",
    "ChainComplexity",
    "CheckpointError",
    "ConvNet",
    "DenseNet",
    "Difference",
    "Evaluation",
    "FewShotClassifier",
    "Fit",
    "FlatModules",
    "MAMLModules",
    "Meta",
    "ModuleReport",
    "ModuleScalePrior",
    "Network",
    "Paused",
    "Pool",
    "PredCPModules",
    "Rates",
    "Run",
    "Settings",
    "ShrinkageModules",
    "Trainer",
    "adapted",
    "as_module_prior",
    "evaluate",
    "fit_runs",
    "module_noise",
    "module_report",
    "network_from_config",
    "paired_difference",
    "paper_network",
    "pooled_network",
    "standard_error",
]


def __getattr__(name: str) -> Any:
    # The estimator needs scikit-learn, the rest does not.
    if name in ("AdaptedClassifier", "FewShotClassifier"):
        with needs("experiments"):
            from predcp.fewshot import _classifier

        return getattr(_classifier, name)
    raise AttributeError(f"module 'predcp.fewshot' has no attribute {name!r}")
