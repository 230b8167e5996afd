"""Complexity priors in the languages of other libraries: `predcp.bridges.pymc`, `predcp.bridges.bambi`.

Stan and INLA take text: `ComplexityPrior.to_stan`, `ComplexityPrior.to_inla`.
"""
