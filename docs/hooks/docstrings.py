"""Docstrings as Python-Markdown wants them: a list needs an empty line in front of it."""

import re
from typing import Any

import griffe

# Our docstrings have the list straight under **Arguments**, as in Equinox.
_LIST_AFTER_TEXT = re.compile(r"^(?!\s*- )(\S[^\n]*)\n(?=- )", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring with its lists set apart.

    **Arguments**: the docstring, its common indentation removed.
    """
    return _LIST_AFTER_TEXT.sub(r"\1\n\n", text)


class Docstrings(griffe.Extension):
    """Rewrites every docstring that is collected."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once an object has been read.

        **Arguments**: the object.
        """
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
