"""Settings of training and evaluation, apart from data, network, prior and seed."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from predcp.fewshot._adapt import Objective

KappaInputs = Literal["support", "query"]


@dataclass(frozen=True)
class Settings:
    """The paper's protocol by default.

    **Arguments**
    - `ways`, `shots`, `queries`: classes of a task, labelled examples and queries of each class.
    - `meta_batch`: tasks of an iteration; `iterations`: the largest number of them.
    - `inner_steps`, `inner_steps_test`, `inner_rate`, `objective`, `first_order`: see `adapted`.
    - `outer_rate`: Adam's, on phi, the log scales and the normalisation's affine part.
    - `initial_scale`: of sigma; 1 starts as MAML.
    - `noise_draws`: draws of the noise that kappa averages over; `kappa_inputs`: where it is measured,
        `support` or `query`; `truncate`: divide pi by its mass below the supremum of kappa (it moves phi,
        not the scales).
    - `validate_every`: iterations between validations on `validation_tasks` tasks of the validation
        classes; the parameters that did best there are kept. `patience`: stop after that many
        validations without improvement; None to train to the end.
    - `test_tasks`: tasks of the test; `task_seed`: of the validation and test tasks, the same for every
        prior and seed.
    - `unroll`: write the inner loop out, which a GPU likes.
    """

    ways: int = 5
    shots: int = 1
    queries: int = 15
    meta_batch: int = 4
    iterations: int = 60_000
    inner_steps: int = 5
    inner_steps_test: int = 10
    inner_rate: float = 0.01
    objective: Objective = "mean"
    first_order: bool = False
    outer_rate: float = 1e-3
    initial_scale: float = 1.0
    noise_draws: int = 1
    kappa_inputs: KappaInputs = "support"
    truncate: bool = False
    validate_every: int = 500
    validation_tasks: int = 400
    patience: int | None = None
    test_tasks: int = 1000
    task_seed: int = 0
    unroll: bool = True

    def __post_init__(self) -> None:
        counts = (
            *("shots", "queries", "meta_batch", "iterations", "inner_steps", "noise_draws"),
            *("inner_steps_test", "validate_every", "validation_tasks", "test_tasks"),
        )
        for name in counts:
            _check_whole(name, getattr(self, name), 1)
        _check_whole("ways", self.ways, 2)
        if self.patience is not None:
            _check_whole("patience", self.patience, 1)
        for name in ("inner_rate", "outer_rate", "initial_scale"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name, choices in (
            ("objective", ("mean", "sum")),
            ("kappa_inputs", ("support", "query")),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be {' or '.join(choices)}, got {getattr(self, name)!r}"
                )

    def to_config(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @property
    def program(self) -> "Settings":
        """The settings that a compiled program depends on; the others at fixed values.

        Fits that differ in the number of iterations or tasks alone share their programs.
        """
        return replace(
            self,
            iterations=1,
            validate_every=1,
            validation_tasks=1,
            patience=None,
            test_tasks=1,
        )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Every setting's name."""
        return tuple(field.name for field in fields(cls))


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
