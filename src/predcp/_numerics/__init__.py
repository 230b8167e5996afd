"""Numerical tools without statistics: special functions, root search, draws, program analysis."""
