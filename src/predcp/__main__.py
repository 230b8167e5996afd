"""`predcp` and `python -m predcp`: the command line, or a message that says what it needs."""

import sys

from predcp._support.extras import needs
from predcp._version import __version__


def main() -> None:
    """Run the command line. All of it but `--version` needs the extra `experiments`."""
    if sys.argv[1:] == ["--version"]:
        print(f"predcp {__version__}")
        return
    try:
        with needs("experiments"):
            from predcp.cli import main as run
    except ModuleNotFoundError as missing:
        sys.exit(f"predcp: {missing}")
    run()


if __name__ == "__main__":
    main()
