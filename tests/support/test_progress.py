"""Progress of a fit: silence, a bar, or a function."""

import pytest

from predcp._support.progress import progress_bar


@pytest.mark.parametrize("progress", [None, False])
def test_silence(progress):
    with progress_bar(progress, "fitting") as report:
        assert report is None


def test_a_function_hears_the_words_if_it_takes_them():
    two, three = [], []
    with progress_bar(lambda done, total: two.append((done, total)), "fitting") as report:
        report(1, 2, "sampling")
    with progress_bar(lambda *progress: three.append(progress), "fitting") as report:
        report(1, 2, "sampling")
    assert (two, three) == ([(1, 2)], [(1, 2, "sampling")])


def test_a_bar_describes_values(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar(True, "tasks", lambda value: f"accuracy {value:.0f}%") as report:
        report(3, 4, 71.0)
    assert "tasks, accuracy 71%" in capfd.readouterr().err


@pytest.mark.parametrize(("describe", "arguments"), [(None, "total"), (str, "total, value")])
def test_anything_else_is_refused(describe, arguments):
    with (
        pytest.raises(ValueError, match=rf"a function of \(done, {arguments}\), got 3"),
        progress_bar(3, "fitting", describe),
    ):
        pass
