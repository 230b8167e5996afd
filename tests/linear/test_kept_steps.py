"""Draws in a file are those in memory, and are read piece by piece."""

import numpy as np
import pytest

from predcp.linear import _kept_steps
from predcp.linear._columns import Columns
from predcp.linear._kept_steps import (
    KeptSteps,
    coefficients_at,
    mean_of_draws,
    pieces_of_draws,
)

RANDOM = np.random.default_rng(6)


@pytest.mark.parametrize("axis", [0, 1])
def test_steps_in_a_file_are_those_in_memory(axis, monkeypatch):
    """A large leaf goes to a file and a small one does not; steps may be added after a look."""
    monkeypatch.setattr(_kept_steps, "_SMALL", 0)
    shape = (3, 5) if axis == 0 else (2, 3, 5)
    kept, pieces = KeptSteps(axis, 7, 200), []
    for count in (3, 1, 3):
        large = RANDOM.normal(size=(*shape[:axis], count, *shape[axis + 1 :]))
        pieces.append({"large": large, "small": large[..., 0].copy()})
        assert kept.add(pieces[-1]) == count
        found = kept.joined()
        assert isinstance(found["large"], np.memmap) and not isinstance(found["small"], np.memmap)
        for name, values in found.items():
            expected = np.concatenate([piece[name] for piece in pieces], axis)
            np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("classes", [(), (2,)])
def test_pieces_are_the_draws(classes, monkeypatch):
    monkeypatch.setattr(_kept_steps, "_AT_ONCE", 20)
    values = RANDOM.normal(size=(2, 9, 6, *classes)).astype(np.float32)
    pieces = list(pieces_of_draws(values))
    assert len(pieces) > 4 and all(piece.dtype == np.float64 for piece in pieces)
    np.testing.assert_array_equal(np.concatenate(pieces), values.reshape(18, 6, *classes))
    np.testing.assert_allclose(mean_of_draws(values), values.mean((0, 1)), rtol=1e-5, atol=1e-6)
    absolute = np.abs(values).mean((0, 1))
    np.testing.assert_allclose(mean_of_draws(values, np.abs), absolute, rtol=1e-5)
    np.testing.assert_array_equal(coefficients_at(values, [4, 1]), values[:, :, [4, 1]])


def test_columns_of_a_wide_table_are_worked_on_in_blocks(monkeypatch):
    """The same as at once, for double and single precision, with constant columns in between."""
    x = RANDOM.normal(size=(5, 23)) * np.exp(RANDOM.normal(size=23)) + 3.0
    x[:, [0, 7, 8, 22]] = 1.5
    weights = RANDOM.uniform(0.5, 2.0, size=5)
    whole = Columns.fit(x, weights, True)
    monkeypatch.setattr("predcp.linear._columns._AT_ONCE", 20)
    for kind, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
        parts = Columns.fit(x.astype(kind), weights, True)
        for name in ("mean", "scale", "varying"):
            seen, expected = getattr(parts, name), getattr(whole, name)
            np.testing.assert_allclose(seen, expected, rtol=tolerance)
        scores = parts.transform(x.astype(kind), kind)
        expected = (x[:, whole.varying] - whole.mean[whole.varying]) / whole.scale[whole.varying]
        assert scores.dtype == kind and scores.ctypes.data % 64 == 0
        np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=10 * tolerance)
