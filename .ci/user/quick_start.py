"""From nothing to a posterior: the first example of the README, and a fit."""

import jax
import numpy as np
import numpyro
from surgery import surgery

import predcp

operations, deaths = np.array([47, 148, 119, 810]), np.array([0, 18, 8, 46])
print(predcp.audit(surgery, operations, deaths).words)
sentence = predcp.tail(odds_ratio=2.0, probability=0.05)
better = predcp.with_complexity(surgery, {"sigma": sentence})
sampler = numpyro.infer.MCMC(
    numpyro.infer.NUTS(better), num_warmup=300, num_samples=300, progress_bar=False
)
sampler.run(jax.random.key(0), operations, deaths)
sigma = np.asarray(sampler.get_samples()["sigma"])
assert sigma.shape == (300,) and np.all(np.isfinite(sigma)) and np.median(sigma) > 0
print("median of sigma:", float(np.median(sigma)))
