"""Read the equations of traced programs in any supported version of JAX."""

from collections.abc import Sequence
from typing import Any, TypeVar

_T = TypeVar("_T")

# Operations that run another program on their operands.
NESTED = {
    "pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint",
}  # fmt: skip


def inner_program(parameters: dict[str, Any]) -> Any:
    """The program that one of the `NESTED` operations or a scan runs."""
    names = ("jaxpr", "call_jaxpr", "fun_jaxpr")
    found = next(parameters[name] for name in names if parameters.get(name) is not None)
    return getattr(found, "jaxpr", found)


def scan_operands(
    parameters: dict[str, Any], operands: Sequence[_T]
) -> tuple[list[_T], list[_T], list[_T]]:
    """The operands of a scan: those every step sees, the carry, and the sequences."""
    if "ft_in" in parameters:
        # JAX 0.12 keeps the three groups as one tree in place of their sizes.
        fixed, count = (len(list(part)) for part in parameters["ft_in"].unpack()[:2])
    else:
        fixed, count = parameters["num_consts"], parameters["num_carry"]
    end = fixed + count
    return list(operands[:fixed]), list(operands[fixed:end]), list(operands[end:])
