"""The demo audits, states a sentence, fits before and after, and leaves one picture."""

import re

import numpy as np
import pytest

from predcp.cli import _demo


def test_demo_in_small(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)

    def quick(model, rows):
        count = len(_demo.DEATHS[rows])
        return {
            "sigma": rng.exponential(0.5, 200),
            "log_odds": rng.normal(-2.5, 0.3, (200, count)),
        }

    monkeypatch.setattr(_demo, "posterior", quick)
    path = _demo.demo(tmp_path)
    printed = capsys.readouterr().out
    assert "sigma ~ HalfCauchy(5)" in printed
    assert len(re.findall(r"median odds ratio of two hospitals \d+\.\d+ \(90%", printed)) == 4
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_demo_as_it_is_given(tmp_path, capsys):
    _demo.demo(tmp_path)
    printed = capsys.readouterr().out
    rows = re.findall(r"(\d+\.\d+) \(90% from (\d+\.\d+) to (\d+\.\d+)\)", printed)
    (_, _, wide), (_, _, narrow) = rows[2], rows[3]
    # With four hospitals the half-Cauchy leaves a long tail that the sentence cuts.
    assert float(narrow) < float(wide)
