"""All programs that the tests know, by name."""

from tests.program.example import *  # noqa: F403
from tests.program.grouped_programs import *  # noqa: F403
from tests.program.structured_programs import *  # noqa: F403
