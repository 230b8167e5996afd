"""Calls of about a second each."""

from predcp._support.pace import Pace


def test_calls_grow_until_they_fill_the_time():
    pace, done, calls = Pace(seconds=1.0), 0, []
    # Steps of 10 ms; the first call compiles for a minute.
    while done < 2000:
        steps = pace.steps(2000 - done)
        calls.append(steps)
        pace.took(steps, 60.0 if not done else 0.01 * steps)
        done += steps
    assert calls[:4] == [1, 1, 10, 100] and max(calls) == 100
    assert sum(calls) == 2000


def test_slow_steps_are_taken_one_by_one():
    pace = Pace()
    for _ in range(3):
        assert pace.steps(10) == 1
        pace.took(1, 5.0)
