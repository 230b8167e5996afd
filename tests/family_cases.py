"""Every registered family of observations, each parameterisation of it that a model may move.

A case is a function of the linear predictor `eta`, of shape (points,), to a NumPyro distribution. The
first case of a family runs by default, the others with `make test-long`.
"""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

softplus, sigmoid = jax.nn.softplus, jax.nn.sigmoid


def classes(eta):
    return jnp.stack([eta, -eta, jnp.full_like(eta, 0.3)], axis=-1)


def cutpoints(eta):
    return jnp.asarray([-1.0, 0.5, 1.0], eta.dtype)


CASES = {
    dist.Normal: {
        "both": lambda eta: dist.Normal(eta, jnp.exp(eta - 0.2)),
        "loc": lambda eta: dist.Normal(eta, 0.7),
        "scale-exp": lambda eta: dist.Normal(0.3, jnp.exp(eta)),
        "scale-softplus": lambda eta: dist.Normal(0.3, softplus(eta)),
        "both-softplus": lambda eta: dist.Normal(eta, softplus(eta - 0.2)),
    },
    dist.StudentT: {
        "loc": lambda eta: dist.StudentT(4.0, eta, 0.7),
        "scale": lambda eta: dist.StudentT(4.0, 0.0, jnp.exp(eta)),
        "both": lambda eta: dist.StudentT(1.0, eta, jnp.exp(eta)),
        "both-softplus": lambda eta: dist.StudentT(30.0, eta, softplus(eta)),
    },
    dist.Poisson: {
        "softplus": lambda eta: dist.Poisson(softplus(eta)),
        "exp": lambda eta: dist.Poisson(jnp.exp(eta + 0.1)),
        "log1p-exp": lambda eta: dist.Poisson(jnp.log1p(jnp.exp(eta))),
        "log1p": lambda eta: dist.Poisson(1.0 + jnp.log1p(eta**2)),
        "identity": lambda eta: dist.Poisson(1.0 + eta**2),
    },
    dist.Bernoulli: {
        "probs": lambda eta: dist.Bernoulli(probs=sigmoid(eta)),
        "logits": lambda eta: dist.Bernoulli(logits=eta + 0.3),
    },
    dist.Binomial: {
        "logits": lambda eta: dist.Binomial(5, logits=eta),
        "probs": lambda eta: dist.Binomial(5, probs=sigmoid(eta)),
    },
    dist.Categorical: {
        "ordered": lambda eta: dist.OrderedLogistic(eta, cutpoints(eta)),
        "logits": lambda eta: dist.Categorical(logits=classes(eta)),
        "probs": lambda eta: dist.Categorical(probs=jax.nn.softmax(classes(eta))),
    },
    dist.Multinomial: {
        "logits": lambda eta: dist.Multinomial(6, logits=classes(eta)),
        "probs": lambda eta: dist.Multinomial(6, probs=jax.nn.softmax(classes(eta))),
    },
}
