"""Results that are measured one cell at a time, and kept between runs.

Each cell has the environment that it was measured in: a later run may have another commit or machine.
"""

import json
from pathlib import Path
from typing import Any

from predcp._support.environment import environment


class Stored:
    """The cells of a file, which is written again after every one of them.

    **Arguments**: `path`, of a file that may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cells: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def __contains__(self, name: str) -> bool:
        return name in self.cells

    def add(self, name: str, found: dict[str, Any]) -> None:
        """Keep a cell that was measured just now."""
        self.cells[name] = found | {"environment": environment()}
        print(name, found, flush=True)
        self.write()

    def write(self) -> None:
        """Write all of them."""
        self._path.write_text(json.dumps(self.cells, indent=1) + "\n")
