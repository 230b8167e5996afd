"""A prior as text for other programs: Stan functions, INLA tables."""

from predcp._exports._inla import inla_table
from predcp._exports._stan import stan_functions

__all__ = ["inla_table", "stan_functions"]
