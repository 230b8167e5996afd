"""Errors of the library as one line and a documented exit code."""

import contextlib
import sys
from collections.abc import Iterator
from typing import NoReturn

import typer

from predcp._support.extras import install_command
from predcp.cli._words import in_options

FAILED, USAGE, MISSING_INPUT, UNAVAILABLE, INTERRUPTED = 1, 2, 3, 4, 130


def fail(message: str, code: int) -> NoReturn:
    """Print a message and leave."""
    print(f"predcp: {message}", file=sys.stderr)
    raise typer.Exit(code)


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Turn the library's errors into one line and a documented exit code."""
    from predcp import experiments
    from predcp._support.saved import SavedModelError
    from predcp.cli._estimators import EstimatorUnavailable
    from predcp.data import DataError

    try:
        yield
    except (experiments.ModelUnavailable, EstimatorUnavailable) as error:
        fail(str(error.args[0]), UNAVAILABLE)
    except ModuleNotFoundError as error:
        hint = install_command("experiments")
        fail(f"{error}; an optional dependency may be missing: {hint}", UNAVAILABLE)
    except BrokenPipeError:
        # The reader (`head`, for instance) has closed the pipe.
        raise typer.Exit from None
    except TimeoutError as error:
        fail(in_options(str(error)), FAILED)
    except KeyError as error:
        # Its message is the key alone, perhaps one of the user's own program.
        fail(f"KeyError: {error}", MISSING_INPUT)
    except (DataError, SavedModelError, LookupError, OSError) as error:
        fail(in_options(str(error)), MISSING_INPUT)
    except ValueError as error:
        fail(in_options(str(error)), USAGE)
    except FloatingPointError as error:
        fail(in_options(str(error)), FAILED)
    except KeyboardInterrupt as error:
        fail(str(error) or "stopped", INTERRUPTED)
