"""Small designs for the tests of the study."""

import numpy as np
from studies.scale_priors.designs import Design
from studies.scale_priors.sources import indicators


def normal_design() -> Design:
    """Four groups with three rows each; unknown noise."""
    groups = np.repeat(np.arange(4), 3)
    ones = np.ones(12)
    return Design(
        "small",
        "normal",
        "gaussian",
        np.array([1.2, 0.4, 2.0, -0.3, 0.1, -1.1, 3.0, 2.2, 1.7, 0.9, 0.2, 1.4]),
        ones[:, None],
        (indicators(groups),),
        groups,
        beta=np.array([1.0]),
        noise=0.7 * ones,
        noise_known=False,
        unit=0.7,
        trials=ones,
        other_scale=0.0,
        new=(True,),
    )


def count_design(family: str = "poisson", rate: float = 0.5) -> Design:
    """Three groups of counts."""
    groups = np.array([0, 0, 1, 1, 1, 2])
    trials = np.ones(6) if family == "poisson" else np.array([5.0, 9.0, 3.0, 8.0, 2.0, 20.0])
    return Design(
        "small",
        family,
        "counts",
        np.array([0.0, 1.0, 2.0, 4.0, 1.0, 0.0]),
        np.ones((6, 1)),
        (indicators(groups),),
        groups,
        beta=np.array([np.log(rate)]),
        noise=np.ones(6),
        noise_known=True,
        unit=1.0,
        trials=trials,
        other_scale=0.0,
        new=(True,),
        per=rate if family == "poisson" else "row",
    )
