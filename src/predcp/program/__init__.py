"""The door: NumPyro programs in, maps, priors and audits out."""

from predcp.program._audit import Audit, ScaleAudit, audit
from predcp.program._complexity import ProgramComplexity, complexity_of
from predcp.program._statements import Tail, tail
from predcp.program._swap import with_complexity

__all__ = [
    "Audit",
    "ProgramComplexity",
    "ScaleAudit",
    "Tail",
    "audit",
    "complexity_of",
    "tail",
    "with_complexity",
]
