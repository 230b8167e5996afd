"""Small images in place of the paper's."""

import numpy as np
import pytest


@pytest.fixture
def make_images():
    """Images of one pattern per class, under noise."""

    def striped(classes: int, each: int, seed: int, channels: int = 3, size: int = 8):
        generator = np.random.default_rng(seed)
        patterns = generator.normal(size=(classes, size, size, channels))
        labels = np.repeat(np.arange(classes), each)
        noise = generator.normal(size=(len(labels), size, size, channels))
        images = 127.5 + 30.0 * (patterns[labels] + noise)
        return np.clip(images, 0, 255).astype(np.uint8), labels

    return striped
