"""Priors on the scales of models that people fit; `studies/scale-priors.md` is the protocol."""
