"""Commands that can be stopped and go on later."""

import shlex
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from predcp.cli._errors import INTERRUPTED, fail


def stop_on_terminate() -> None:
    """Let SIGTERM stop the command as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _interrupt)


def say_how_to_resume(stop: KeyboardInterrupt, kept_in: Path) -> NoReturn:
    """Leave with the command that goes on."""
    reason = f"{stop}; " if str(stop) else "stopped; "
    resume = shlex.join(["predcp", *sys.argv[1:]])
    fail(f"{reason}finished cells are kept in {kept_in}. Resume: {resume}", INTERRUPTED)


def _interrupt(number: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt
