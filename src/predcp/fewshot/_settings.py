"""Settings of training and evaluation, apart from data, network, prior and seed."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from jaxtyping import Array

from predcp._support.check import require_whole
from predcp.fewshot._adapt import Objective

KappaInputs = Literal["support", "query"]


class Rates(NamedTuple):
    """Settings that runs of one program may differ in; their meaning is that of `Settings`.

    Numbers, or arrays with a leading axis of runs.
    """

    inner_rate: float | Array = 0.01
    outer_rate: float | Array = 1e-3
    final_rate: float | Array = 1.0
    weight_decay: float | Array = 0.0
    initial_scale: float | Array = 1.0


@dataclass(frozen=True)
class Settings:
    """The paper's protocol by default.

    **Arguments**
    - `ways`, `shots`, `queries`: classes of a task, labelled examples and queries of each class.
    - `meta_batch`: tasks of an iteration; `iterations`: the largest number of them.
    - `inner_steps`, `inner_steps_test`, `inner_rate`, `objective`, `first_order`: see `adapted`.
    - `outer_rate`: Adam's, on phi, the log scales and the normalisation's affine part; `final_rate`:
        the fraction of it at the last iteration, reached along half a cosine.
    - `weight_decay`: of phi towards zero, in each iteration by this share of the outer rate.
    - `initial_scale`: of sigma; 1 starts as MAML.
    - `noise_draws`: draws of the noise that kappa averages over; `kappa_inputs`: where it is measured,
        `support` or `query`; `truncate`: divide pi by its mass below the supremum of kappa (it moves phi,
        not the scales).
    - `validate_every`: iterations between validations on `validation_tasks` tasks of the validation
        classes; the parameters that did best there are kept. `patience`: stop after that many
        validations without improvement; None to train to the end.
    - `test_tasks`: tasks of the test; `task_seed`: of the validation and test tasks, the same for every
        prior and seed.
    - `unroll`: unroll the inner loop, which is faster on a GPU.
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
    final_rate: float = 1.0
    weight_decay: float = 0.0
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
            require_whole(name, getattr(self, name))
        require_whole("ways", self.ways, 2)
        if self.patience is not None:
            require_whole("patience", self.patience)
        for name in ("inner_rate", "outer_rate", "initial_scale"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if not 0.0 <= self.final_rate <= 1.0:
            raise ValueError(f"final_rate must be between 0 and 1, got {self.final_rate}")
        if not 0.0 <= self.weight_decay * self.outer_rate < 1.0:
            raise ValueError(
                "weight_decay must be at least 0, and below 1 when multiplied by outer_rate, got "
                f"{self.weight_decay}"
            )
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
    def rates(self) -> Rates:
        """The settings that runs of one program may differ in."""
        return Rates(*(getattr(self, name) for name in Rates._fields))

    @property
    def program(self) -> "Settings":
        """The settings that a compiled program depends on, with the others fixed.

        Fits that differ only in rates or in the number of iterations or tasks share their programs.
        """
        return replace(
            self,
            iterations=1,
            validate_every=1,
            validation_tasks=1,
            patience=None,
            test_tasks=1,
            **Rates()._asdict(),
        )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Every setting's name."""
        return tuple(field.name for field in fields(cls))
