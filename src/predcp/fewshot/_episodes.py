"""Few-shot tasks drawn on the device, which holds the whole data set; tasks are rows of it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

# A channel with a standard deviation below this is constant and carries no information.
_CONSTANT = 1e-6
# Streams of random numbers, one per use.
STREAMS = {
    name: number
    for number, name in enumerate(
        ("start", "train", "noise", "validation", "test", "kappa", "check")
    )
}


class Pool(eqx.Module):
    """Examples of many classes, from which tasks are drawn; a pytree whose arrays are on the device.

    **Arguments**
    - `examples`: `(count, ...)`, images as unsigned bytes or any numbers; kept in their own type.
    - `members`: `(classes, most)`, the rows of each class, padded with its first row.
    - `counts`: `(classes,)`, how many of them are real.
    - `mean`, `deviation`: of each channel (last axis), what examples are standardised with.
    """

    examples: Array
    members: Int[Array, "classes most"]
    counts: Int[Array, " classes"]
    mean: Float[Array, "..."]
    deviation: Float[Array, "..."]

    @classmethod
    def of(
        cls, examples: Any, labels: Any, mean: Any = None, deviation: Any = None, name: str = "X"
    ) -> "Pool":
        """A pool of labelled examples.

        **Arguments**: `examples` `(count, ...)`, `labels` `(count,)`; `mean` and `deviation` of each
        channel to standardise by, None for the examples' own.
        """
        values, marks = np.asarray(examples), np.asarray(labels)
        if values.ndim < 2 or not len(values):
            raise ValueError(
                f"{name} must be examples in rows, (count, ...), got shape {values.shape}"
            )
        if marks.shape != (len(values),):
            raise ValueError(
                f"labels of {name} must have shape ({len(values)},), one per example, got {marks.shape}"
            )
        if values.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold numbers, got {values.dtype}")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity")
        rows = [np.flatnonzero(marks == label) for label in np.unique(marks)]
        most = max(len(row) for row in rows)
        members = np.stack([np.pad(row, (0, most - len(row)), mode="edge") for row in rows])
        if mean is None or deviation is None:
            mean, deviation = channel_statistics(values)
        if values.dtype != np.uint8:
            values = values.astype(np.dtype(jnp.result_type(float)))
        kind = jnp.result_type(float)
        return cls(
            jnp.asarray(values),
            jnp.asarray(members, jnp.int32),
            jnp.asarray([len(row) for row in rows], jnp.int32),
            jnp.asarray(mean, kind),
            jnp.asarray(deviation, kind),
        )

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.members.shape[0]

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return self.examples.shape[1:]

    def require(self, ways: int, shots: int, queries: int, name: str = "X") -> None:
        """Refuse tasks that are too large for the pool."""
        if ways < 2:
            raise ValueError(f"ways must be at least 2, got {ways}")
        if ways > self.classes:
            raise ValueError(
                f"ways must be at most {self.classes}, the classes of {name}, got {ways}; "
                "give more classes or ask for fewer ways"
            )
        fewest = int(np.min(np.asarray(self.counts)))
        if shots < 1 or queries < 1 or shots + queries > fewest:
            raise ValueError(
                f"shots + queries must be at most {fewest}, the examples of the smallest class of "
                f"{name}, with at least one of each; got {shots} + {queries}"
            )

    def rows(self, key: Key[Array, ""], ways: int, each: int) -> Int[Array, "ways each"]:
        """Rows of one task: different classes, and different examples of each, all equally likely."""
        key_classes, key_examples = jax.random.split(key)
        chosen = _distinct(key_classes, jnp.full((), self.classes), self.classes, ways)
        each_key = jax.random.split(key_examples, ways)
        members = self.members[chosen]

        def within(key: Array, count: Array) -> Array:
            return _distinct(key, count, members.shape[1], each)

        places = jax.vmap(within)(each_key, self.counts[chosen])
        return jnp.take_along_axis(members, places, axis=1)

    def standardised(self, rows: Int[Array, "..."]) -> Float[Array, "..."]:
        """The examples in those rows, each channel with mean 0 and variance 1."""
        return self.standardise(self.examples[rows])

    def standardise(self, examples: Array) -> Float[Array, "..."]:
        """Standardise raw examples for the network."""
        return (examples.astype(self.mean.dtype) - self.mean) / self.deviation


def channel_statistics(examples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each channel; 1 for a constant one."""
    axes = tuple(range(examples.ndim - 1))
    mean = examples.mean(axis=axes, dtype=np.float64)
    square = np.zeros_like(mean)
    # In blocks, because the whole data set as numbers would be eight times as large.
    for start in range(0, len(examples), 4096):
        block = examples[start : start + 4096] - mean
        square += (block * block).sum(axis=axes)
    deviation = np.sqrt(square / (examples.size // examples.shape[-1]))
    return mean, np.where(deviation > _CONSTANT, deviation, 1.0)


def task_key(seed: int | Array, stream: int, number: int | Array) -> Key[Array, ""]:
    """The key of one task or iteration, from seed and number alone."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), stream), number)


def _distinct(key: Array, count: Array, most: int, wanted: int) -> Int[Array, " wanted"]:
    """`wanted` different numbers below `count`: the places of the largest of random marks."""
    marks = jax.random.uniform(key, (most,), jnp.float32)
    marks = jnp.where(jnp.arange(most) < count, marks, -1.0)
    return jax.lax.top_k(marks, wanted)[1]
