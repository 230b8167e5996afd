"""Draw few-shot tasks: a few classes, a few labelled images of each, and queries."""

from dataclasses import dataclass

import numpy as np

from predcp.data._images import ImageClasses


@dataclass(frozen=True)
class Task:
    """Row numbers of one task's images, `(ways, shots)` and `(ways, queries)`; row i is class i."""

    support: np.ndarray
    query: np.ndarray


class TaskSampler:
    """Draws tasks from image classes; the same generator gives the same tasks."""

    def __init__(self, classes: ImageClasses, ways: int, shots: int, queries: int = 15) -> None:
        """**Arguments:** classes in a task, labelled images and queries of each class."""
        numbers = np.unique(classes.labels)
        self._members = [np.flatnonzero(classes.labels == number) for number in numbers]
        fewest = min(len(members) for members in self._members)
        if not 1 <= ways <= len(self._members):
            raise ValueError(f"ways must be 1 to {len(self._members)} classes, got {ways}")
        if shots < 1 or queries < 0 or shots + queries > fewest:
            raise ValueError(
                f"shots + queries must be at most {fewest}, the images of the smallest class; "
                f"got {shots} + {queries}"
            )
        self._ways, self._shots, self._queries = ways, shots, queries

    def sample(self, generator: np.random.Generator) -> Task:
        """One task, with no image twice."""
        chosen = generator.choice(len(self._members), self._ways, replace=False)
        count = self._shots + self._queries
        rows = np.stack(
            [generator.choice(self._members[member], count, replace=False) for member in chosen]
        )
        return Task(rows[:, : self._shots], rows[:, self._shots :])
