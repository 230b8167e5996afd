"""The door: NumPyro programs in, maps, priors and audits out."""

from predcp.program._complexity import ProgramComplexity, complexity_of

__all__ = ["ProgramComplexity", "complexity_of"]
