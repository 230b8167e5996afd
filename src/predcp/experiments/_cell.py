"""A cell: one fit of a grid, described completely."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

Setting = str | int | float | bool | None


@dataclass(frozen=True, eq=False)
class Cell:
    """Data set x model x prior x inference x split x seed x settings.

    **Arguments:**

    - `model`: a registered model's name, or `"module:function"`.
    - `split`: which division of the data, from 0; `seed`: of the fit.
    - `settings`: anything else that changes the result, as plain values.
    """

    data: str
    model: str
    prior: str
    inference: str
    split: int = 0
    seed: int = 0
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.settings.items():
            if not isinstance(value, str | int | float | bool | None):
                raise TypeError(f"settings[{name!r}] must be a plain value, got {value!r}")
        settings = MappingProxyType(dict(sorted(self.settings.items())))
        object.__setattr__(self, "settings", settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cell.from_json, (self.to_json(),)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "data": self.data,
            "model": self.model,
            "prior": self.prior,
            "inference": self.inference,
            "split": self.split,
            "seed": self.seed,
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Cell":
        """The inverse of `to_json`."""
        return cls(**values)

    @cached_property
    def key(self) -> str:
        """The SHA-256 of the canonical JSON: the same on every machine and Python."""
        try:
            text = json.dumps(
                self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False
            )
        except ValueError:
            raise ValueError(f"settings must be finite, got {dict(self.settings)}") from None
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def name(self) -> str:
        """A folder name a person can read, made unique by the key."""
        words = f"{self.data}-{self.prior}-{self.inference}-{self.split}-{self.seed}"
        readable = re.sub(r"[^A-Za-z0-9.=-]+", "_", words).strip("._")
        return f"{readable[-64:]}-{self.key[:12]}"
