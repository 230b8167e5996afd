"""The reference of the command line, made from the program: a hook of mkdocs."""

from collections.abc import Iterator
from typing import Any

import typer

_MARK = "<!-- the commands -->"
_PAGE = "api/command-line.md"


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A command and all below it, each with the words that call it.

    **Arguments**: a command of click or typer, and the words that call it.
    """
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, child in command.commands.items():
        yield from commands(child, f"{path} {name}")


def reference(app: typer.Typer, name: str) -> str:
    """Markdown: a section a command, with its usage, its options and its example.

    **Arguments**: the program, and what it is called.
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
        lines += ["| word | meaning | |", "|---|---|---|", *(_row(item) for item in items), ""]
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
        shown = f"default `{item.default}`"
    elif not argument and item.is_flag and item.default is True:
        shown = "on"
    help_text = (item.help or "").replace("|", "\\|")
    return f"| `{_word(item) if argument else _flag(item)}` | {help_text} | {shown} |"


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put the reference where the page wants it.

    **Arguments**: the page's text, and the page.
    """
    if page.file.src_uri != _PAGE:
        return markdown
    from predcp.cli import app

    if _MARK not in markdown:
        raise ValueError(f"{_PAGE} has no place for the commands: it needs the line {_MARK}")
    return markdown.replace(_MARK, reference(app, "predcp"))
