"""`python -m predcp`."""

from predcp.cli import main

if __name__ == "__main__":
    main()
