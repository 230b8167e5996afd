"""Work in a thread, under a limit on time."""

import math
import threading
import time

import pytest

from predcp._support.background import done_by


def test_work_in_time_gives_its_result_or_its_error():
    late = "late"
    assert (
        done_by(lambda: 3, math.inf, late) == done_by(lambda: 3, time.monotonic() + 60.0, late) == 3
    )
    with pytest.raises(ZeroDivisionError):
        done_by(lambda: 1 // 0, time.monotonic() + 60.0, late)


def test_late_work_is_left_alone_and_ends_by_itself():
    release, ended = threading.Event(), threading.Event()

    def work():
        release.wait(60.0)
        ended.set()

    with pytest.raises(TimeoutError, match="too late"):
        done_by(work, time.monotonic() + 0.01, "too late")
    assert not ended.is_set()
    release.set()
    assert ended.wait(60.0)
