"""Real data files, where PREDCP_DATA points to them."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def real_data() -> Path:
    """The folder of real data files."""
    folder = os.environ.get("PREDCP_DATA")
    if not folder:
        pytest.skip("PREDCP_DATA is not set, so there are no real data files to read")
    return Path(folder)
