"""Predictive complexity priors: say what a model may predict, not what its parameters may be."""

from predcp._version import __version__

__all__ = ["__version__"]
