"""Checkpoints: the same state back, and never that of another fit."""

import jax.numpy as jnp
import numpy as np
import pytest

from predcp._support.checkpoint import Checkpoint, CheckpointError, digest

STATE = {"weights": jnp.arange(6.0).reshape(2, 3), "step": jnp.asarray(7), "looks": np.ones(2)}


def test_a_state_comes_back_as_it_was(tmp_path):
    path = tmp_path / "folder" / "fit"
    assert Checkpoint(path, {"fit": 1}).load(STATE) is None
    Checkpoint(path, {"fit": 1}).save(STATE, {"waited": 2}, {"loss": [1.0, 0.5]})
    state, notes, history = Checkpoint(path, {"fit": 1}).load(STATE)
    for name, leaf in STATE.items():
        np.testing.assert_array_equal(state[name], leaf)
        assert state[name].shape == leaf.shape and state[name].dtype == leaf.dtype
    assert isinstance(state["looks"], np.ndarray) and notes == {"waited": 2}
    assert history["loss"].tolist() == [1.0, 0.5]


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit", {})
    checkpoint.save({"a": jnp.zeros(3)})
    checkpoint.save({"a": jnp.ones(3)})
    content = checkpoint.path.read_bytes()
    checkpoint.path.write_bytes(content[:-4])
    with pytest.warns(UserWarning, match="trying the checkpoint before it"):
        state, _, _ = checkpoint.load({"a": jnp.zeros(3)})
    assert state["a"].tolist() == [0.0, 0.0, 0.0]
    checkpoint.older.unlink()
    with (
        pytest.warns(UserWarning),
        pytest.raises(CheckpointError, match="is intact .* delete them"),
    ):
        checkpoint.load({"a": jnp.zeros(3)})


def test_another_fit_and_other_arrays_are_refused(tmp_path):
    Checkpoint(tmp_path / "fit", {"seed": 1, "rows": 5}).save({"a": jnp.zeros(3)})
    with pytest.raises(CheckpointError, match=r"another fit \(it differs in rows, seed\)"):
        Checkpoint(tmp_path / "fit", {"seed": 2, "rows": 6}).load({"a": jnp.zeros(3)})
    for like in ({"a": jnp.zeros(4)}, {"a": jnp.zeros(3, jnp.float16)}, {"a": STATE, "b": STATE}):
        with pytest.raises(CheckpointError, match="holds other arrays"):
            Checkpoint(tmp_path / "fit", {"seed": 1, "rows": 5}).load(like)


def test_digests_tell_data_apart():
    x = np.arange(6.0)
    assert digest(x) == digest(x.copy())
    others = (x + 1e-9, x.reshape(2, 3), x.astype(np.float32))
    assert len({digest(x), *map(digest, others)}) == 4
