"""The door: NumPyro programs in, maps, priors and audits out."""

from predcp.program._audit import Audit, ScaleAudit, audit
from predcp.program._budget import budget_of
from predcp.program._complexity import ProgramComplexity, complexity_of
from predcp.program._posterior import to_arviz
from predcp.program._responses import RESPONSES, Response
from predcp.program._statements import Tail, tail
from predcp.program._swap import with_complexity
from predcp.program._tables import ScaleTable, scale_tables

__all__ = [
    "RESPONSES",
    "Audit",
    "ProgramComplexity",
    "Response",
    "ScaleAudit",
    "ScaleTable",
    "Tail",
    "audit",
    "budget_of",
    "complexity_of",
    "scale_tables",
    "tail",
    "to_arviz",
    "with_complexity",
]
