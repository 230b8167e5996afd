"""Under which conditions a benchmark was measured."""

import os
from typing import Any

from predcp._support.environment import environment


def conditions() -> dict[str, Any]:
    """Versions, commit and device, and the load of the machine over 1, 5 and 15 minutes."""
    return environment() | {"load": [round(each, 1) for each in os.getloadavg()]}
