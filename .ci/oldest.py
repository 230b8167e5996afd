"""Print the declared minimum of every dependency as a pin, for `make test-oldest`."""

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("plot", "experiments", "dev")


def pins(path: Path) -> list[str]:
    """`name==minimum` for the package's own dependencies and those of the tests."""
    project = tomllib.loads(path.read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    found = {}
    for line in wanted:
        if line.startswith("predcp["):
            continue
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)(\[[a-z,]+\])?>=([0-9.]+)(;.*)?", line)
        if match is None:
            sys.exit(f"{line!r} must be NAME>=VERSION")
        found[match[1]] = f"{match[1]}{match[2] or ''}=={match[3]}"
    # XLA's half of JAX has the same version.
    found["jaxlib"] = found["jax"].replace("jax==", "jaxlib==")
    return sorted(found.values())


if __name__ == "__main__":
    print("\n".join(pins(Path(__file__).parent.parent / "pyproject.toml")))
