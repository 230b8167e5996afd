"""Chains and problems over several devices are those of one device."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest


@pytest.mark.long
def test_chains_and_problems_over_forced_host_devices_are_those_of_one():
    found = []
    for count in (1, 4):
        flags = f"--xla_force_host_platform_device_count={count}"
        words = [sys.executable, "-W", "ignore", "-m", "tests.linear.devices_program"]
        environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        done = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        found.append(json.loads(done.stdout))
    alone, together = found
    assert (alone["devices"], together["devices"]) == (1, 4)
    assert np.std(together["walk"]["one"]) > 0.1
    # Five problems on four devices: the last is done twice, and counts once.
    uneven = np.asarray(together["walk"]["uneven"])
    assert uneven.shape == (5, 4, 20)
    np.testing.assert_allclose(uneven, alone["walk"]["uneven"], rtol=1e-6, atol=1e-6)
    trees = np.asarray(together["nuts"])
    assert trees.shape == (5, 2, 4, 2)
    assert np.std(trees) > 0.1
    np.testing.assert_allclose(trees, alone["nuts"], atol=1e-3)
    for name in ("one", "several"):
        walks = together["walk"][name], alone["walk"][name]
        np.testing.assert_allclose(*walks, rtol=1e-6, atol=1e-6)
        sweeps, those_of_one = together["gibbs"][name], alone["gibbs"][name]
        assert np.std(sweeps) > 0.1
        np.testing.assert_allclose(sweeps, those_of_one, atol=1e-3)
