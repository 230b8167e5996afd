"""Write the reference of the command line, docs/api/command-line.md, from the program itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

PAGE = Path(__file__).parent / "api" / "command-line.md"
_INTRODUCTION = """\
# Command line

This page shows the help of every command. `predcp COMMAND --help` prints the same text.
`python docs/make_command_line.py` writes this page from the program; a test checks that it is up to date.
"""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command at or below this one, each with the words that call it.

    **Arguments**: `command`, of click or typer; `path`, the words that call it.
    """
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, child in command.commands.items():
        yield from commands(child, f"{path} {name}")


def reference(app: typer.Typer, name: str) -> str:
    """Markdown with one section per command: usage, options, example.

    **Arguments**: `app`, the program; `name`, the word that calls it.
    """
    root = typer.main.get_command(app)
    parts = [f"{root.help}\n\n{root.epilog}"]
    parts += [_section(path, command) for path, command in commands(root, name)]
    return "\n\n".join(parts)


def _section(path: str, command: Any) -> str:
    items = [item for item in command.params if item.name != "help"]
    words = [path, *(_word(item) for item in items if item.param_type_name == "argument")]
    required = [item for item in items if item.param_type_name == "option" and item.required]
    words += [_flag(item) for item in required]
    if len(items) > len(words) - 1:
        words.append("[OPTIONS]")
    lines = [f"## {path}", "", command.help or "", "", "```console", " ".join(words), "```", ""]
    if items:
        lines += [
            "| argument or option | meaning | default |",
            "|---|---|---|",
            *(_row(item) for item in items),
            "",
        ]
    if command.epilog:
        before, _, code = command.epilog.partition(": ")
        lines.append(f"{before}: `{code}`")
    return "\n".join(lines)


def _word(item: Any) -> str:
    """An argument as a usage line writes it."""
    word = (item.metavar or item.name).upper() + ("..." if item.nargs == -1 else "")
    return word if item.required else f"[{word}]"


def _flag(item: Any) -> str:
    """An option with its value, if it has one."""
    if item.is_flag:
        return " / ".join([*item.opts, *item.secondary_opts])
    return f"{item.opts[-1]} {(item.metavar or item.opts[-1].strip('-')).upper()}"


def _row(item: Any) -> str:
    argument = item.param_type_name == "argument"
    shown = "required" if item.required else ""
    if not argument and not item.is_flag and item.default not in (None, ()) and not item.required:
        shown = f"`{item.default}`"
    elif not argument and item.is_flag and item.default is True:
        shown = "on"
    help_text = (item.help or "").replace("|", "\\|")
    return f"| `{_word(item) if argument else _flag(item)}` | {help_text} | {shown} |"


def page() -> str:
    """The text of the page."""
    from predcp.cli import app

    return f"{_INTRODUCTION}\n{reference(app, 'predcp')}\n"


if __name__ == "__main__":
    PAGE.write_text(page())
