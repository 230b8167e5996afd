"""How many steps to take between two reports of progress."""


class Pace:
    """Steps that fill about `seconds`, by the time that earlier calls took."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self._steps = 1
        self._compiled = False

    def steps(self, most: int) -> int:
        """Steps of the next call, at most `most`."""
        return min(self._steps, most)

    def took(self, steps: int, seconds: float) -> None:
        """Note how long a call of so many steps took; the first call compiles and says nothing."""
        if self._compiled:
            wanted = int(steps * self._seconds / max(seconds, 1e-6))
            self._steps = max(1, min(wanted, 10 * steps))
        self._compiled = True
