"""Deaths after heart surgery in some hospitals."""

import numpyro
import numpyro.distributions as dist


def surgery(operations, deaths=None):
    average = numpyro.sample("average", dist.Normal(-2.5, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(5.0))
    with numpyro.plate("hospitals", len(operations)):
        log_odds = numpyro.sample("log_odds", dist.Normal(average, sigma))
        numpyro.sample("deaths", dist.Binomial(operations, logits=log_odds), obs=deaths)
