"""A griffe extension: put an empty line before each list of a docstring, as Python-Markdown requires."""

import re
from typing import Any

import griffe

# Our docstrings have the list straight under **Arguments**, as in Equinox.
_LIST_AFTER_TEXT = re.compile(r"^(?!\s*- )(\S[^\n]*)\n(?=- )", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring with an empty line before each list.

    **Arguments**: `text`, the docstring without its common indentation.
    """
    return _LIST_AFTER_TEXT.sub(r"\1\n\n", text)


class Docstrings(griffe.Extension):
    """Rewrite every docstring that griffe collects."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of `obj`, if it has one."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
