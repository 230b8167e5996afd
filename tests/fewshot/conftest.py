"""Small few-shot problems."""

import numpy as np
import pytest

from predcp.fewshot import ConvNet, Pool, Settings


def striped(classes: int, each: int, seed: int, channels: int = 3, size: int = 8):
    """Images of one pattern per class, under noise: easy, but not at first sight."""
    generator = np.random.default_rng(seed)
    patterns = generator.normal(size=(classes, size, size, channels))
    labels = np.repeat(np.arange(classes), each)
    noise = generator.normal(size=(len(labels), size, size, channels))
    images = 127.5 + 30.0 * (patterns[labels] + noise)
    return np.clip(images, 0, 255).astype(np.uint8), labels


@pytest.fixture(scope="session")
def train_pool() -> Pool:
    return Pool.of(*striped(8, 12, 0))


@pytest.fixture(scope="session")
def validation_pool(train_pool) -> Pool:
    images, labels = striped(6, 12, 1)
    return Pool.of(images, labels, train_pool.mean, train_pool.deviation)


@pytest.fixture(scope="session")
def network() -> ConvNet:
    return ConvNet(ways=3, channels=4, blocks=1, precision="highest")


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings(
        ways=3,
        shots=1,
        queries=4,
        meta_batch=2,
        iterations=12,
        inner_steps=2,
        unroll=False,
        inner_steps_test=3,
        validate_every=4,
        validation_tasks=10,
        test_tasks=20,
    )


@pytest.fixture
def make_images():
    """Made-up images in classes."""
    return striped
