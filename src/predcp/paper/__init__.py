"""The reproduction of the paper: its experiments, tables, figures, and what it gets wrong."""

from predcp.paper._algorithm_1 import algorithm_1
from predcp.paper._horseshoe import horseshoe_variance

__all__ = ["algorithm_1", "horseshoe_variance"]
