"""The library's messages in the words of the command line."""

import re
import shlex
from functools import lru_cache
from typing import Any

# Arguments of the library that options of another name set.
_RENAMED = {"target_acceptance": "acceptance", "random_state": "seed", "scale_prior": "prior"}
# inference=Nuts(draws=2000, warmup=500)
_INFERENCE = re.compile(r"inference=(\w+)\(([^)]*)\)")
# missing='impute', drop=['id'], classes=True, target=NAME
_ARGUMENT = re.compile(r"\b([a-z_]+)=(?:\[?'([^']*)'\]?|(\w[\w.]*))")
# workers must be at least 1
_REQUIREMENT = re.compile(r"(?<![-\w])([a-z_]+) must\b")
_OBJECTS = re.compile(
    r" or an object with a .*? such as \S+,|, a (?:distribution|prior on) .*?,(?= got)"
)


def in_options(message: str) -> str:
    """A message with `--missing impute` for `missing='impute'`, where there is such an option."""
    options = _options()
    message = _OBJECTS.sub(",", message)
    message = _INFERENCE.sub(lambda found: _settings(found[1], found[2], options), message)
    message = _ARGUMENT.sub(lambda found: _option(found, options), message)
    return _REQUIREMENT.sub(
        lambda found: f"--{_name(found[1])} must" if _name(found[1]) in options else found[0],
        message,
    )


@lru_cache(maxsize=1)
def _options() -> dict[str, bool]:
    """The options of all commands, and whether each is a flag."""
    import typer.main

    from predcp.cli._app import app

    found: dict[str, bool] = {}
    waiting: list[Any] = [typer.main.get_command(app)]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        for item in command.params:
            if item.param_type_name == "option":
                found |= {opt.removeprefix("--"): bool(item.is_flag) for opt in item.opts}
    return found


def _name(argument: str) -> str:
    return _RENAMED.get(argument, argument).replace("_", "-")


def _option(found: "re.Match[str]", options: dict[str, bool]) -> str:
    name = _name(found[1])
    if name not in options:
        return found[0]
    value = found[2] if found[2] is not None else found[3]
    return f"--{name}" if options[name] else f"--{name} {shlex.quote(value)}"


def _settings(sampler: str, arguments: str, options: dict[str, bool]) -> str:
    if "inference" not in options:
        return f"inference={sampler}({arguments})"
    return " ".join([f"--inference {sampler.lower()}", *filter(None, arguments.split(", "))])
