"""One fit at a time."""

import pytest

from predcp._support.fits import new_fit


class Estimator:
    def __init__(self):
        self.setting = 1
        self.coef_, self._private, self._seed_ = "old", "old", "old"


def test_nothing_of_an_earlier_fit_is_left():
    estimator = Estimator()
    with new_fit(estimator, ("_private",)):
        assert vars(estimator) == {"setting": 1, "_seed_": "old"}
        estimator.coef_ = "new"
    assert vars(estimator) == {"setting": 1, "_seed_": "old", "coef_": "new"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_fit_that_fails_changes_nothing(error):
    estimator = Estimator()
    before = dict(vars(estimator))
    with pytest.raises(error), new_fit(estimator, ("_private",)):
        estimator.coef_ = estimator.columns_ = "new"
        raise error
    assert vars(estimator) == before
