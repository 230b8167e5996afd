"""Beta-binomial and Dirichlet-multinomial counts, summed over every possible count.

A beta-binomial of n trials is read as a categorical observation with n + 1 classes and has its rules.
With concentrations a and b, of sum A,

    log P(y) = log C(n, y) + sum_(i < y) log (a + i) / (A + i) + sum_(i < n - y) log (b + i) / (A + i)
               + G(y) + G(n - y) - G(n),    G(m) = sum_(i < m) log (A + i) / (A + 1),

in which nothing cancels for tiny or huge concentrations.

Class by class, a Dirichlet-multinomial is a chain of beta-binomials: of the r remaining trials,
class k gets a beta-binomial number, and r itself is beta-binomial. KL of the whole is the sum over classes
of the mean over r of KL of the shares; the model's r for KL, the reference's for reverse KL.
"""

from math import lgamma
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.nn import softplus
from jaxtyping import Array

from predcp._divergences import _categorical  # noqa: F401  (registers the rules)
from predcp._divergences._divergence import (
    Member,
    alike,
    kl,
    most_trials,
    register_reader,
    reverse_kl,
)
from predcp._divergences._mixture import WEIGHTS, weighted

# log P of an impossible count (above the number of trials).
NEVER = -1e30


def _log_pmf(log_a: Array, log_b: Array, trials: Array, most: int) -> Array:
    """Log probabilities of the counts 0 to `most` on a new last axis; NaN beyond `most` trials.

    **Arguments**: logs of the concentrations and the number of trials, of one shape.
    """
    kind = log_a.dtype
    counts = np.arange(most + 1)
    log_counts = jnp.asarray(np.log(np.maximum(counts[:most], 1e-300)), kind)
    log_a, log_b, trials = (array[..., None] for array in (log_a, log_b, trials))

    def summed(terms: Array) -> Array:
        """Sums over i < m, for m from 0 to `most`."""
        return jnp.pad(jnp.cumsum(terms, -1), [*[(0, 0)] * (terms.ndim - 1), (1, 0)])

    def plus(log_size: Array) -> Array:
        """log (size + i), without the log of 0."""
        return jnp.where(counts[:most] > 0, jnp.logaddexp(log_size, log_counts), log_size)

    def at(sums: Array, places: Array) -> Array:
        return jnp.take_along_axis(sums, jnp.broadcast_to(places, (*sums.shape[:-1], most + 1)), -1)

    both = jnp.logaddexp(log_a, log_b)
    ones = summed(-softplus(log_b - plus(log_a)))
    zeros = summed(-softplus(log_a - plus(log_b)))
    # log (A + i) - log (A + 1); 0 at i = 1
    steps = jnp.asarray(np.maximum(counts[:most] - 1.0, 0.0), kind)
    lift = jnp.log1p(steps * jnp.exp(-softplus(both)))
    lift = jnp.where(counts[:most] > 0, lift, -softplus(-both))
    shared = summed(lift)
    table = jnp.asarray(np.array([lgamma(m + 1.0) for m in counts]), kind)
    n = jnp.clip(jnp.round(trials), 0, most).astype(int)
    rest = jnp.clip(n - counts, 0, most)
    last = jnp.broadcast_to(n, rest.shape)
    log_choices = table[n] - table - table[rest]
    log_p = log_choices + ones + at(zeros, rest) + shared + at(shared, rest) - at(shared, last)
    log_p = jnp.where(counts <= n, log_p, NEVER)
    return jnp.where(trials <= most, log_p, jnp.nan)


@register_reader(dist.BetaBinomial)
def _read_beta_binomial(count: Any) -> Member:
    a, b, trials = alike(count.concentration1, count.concentration0, count.total_count)
    logits = _log_pmf(jnp.log(a), jnp.log(b), trials, most_trials(count.total_count))
    many = jnp.broadcast_to(trials[..., None], logits.shape)
    coordinates = {"logits": logits, "total_count": many}
    return Member(dist.Categorical, coordinates, count.batch_shape, 1)


class DirichletMultinomial:
    """One class of a Dirichlet-multinomial, given the number of remaining trials."""


@register_reader(dist.DirichletMultinomial)
def _read_dirichlet_multinomial(count: Any) -> list[Member]:
    log_a = jnp.log(*alike(count.concentration))
    trials = jnp.asarray(count.total_count, log_a.dtype)
    most = count.total_count_max or most_trials(count.total_count)
    shape = jnp.broadcast_shapes(log_a.shape[:-1], trials.shape)
    log_a, trials = (
        jnp.broadcast_to(log_a, (*shape, log_a.shape[-1])),
        jnp.broadcast_to(trials, shape),
    )
    # Concentrations of the classes before, and of those from each class on.
    after = jax.lax.cumlogsumexp(log_a, axis=log_a.ndim - 1, reverse=True)
    before = jax.lax.cumlogsumexp(log_a, axis=log_a.ndim - 1)
    found = []
    for place in range(log_a.shape[-1] - 1):
        if place == 0:
            left = jnp.where(jnp.arange(most + 1) == trials[..., None], 0.0, NEVER)
            left = jnp.where(trials[..., None] <= most, left, jnp.nan).astype(log_a.dtype)
        else:
            left = _log_pmf(after[..., place], before[..., place - 1], trials, most)
        many = jnp.broadcast_to(jnp.arange(most + 1.0, dtype=log_a.dtype), left.shape)
        one, rest = (
            jnp.broadcast_to(each[..., None], left.shape)
            for each in (log_a[..., place], after[..., place + 1])
        )
        logits = _log_pmf(one, rest, many, most)
        coordinates = {
            WEIGHTS: left[..., None],
            "logits": logits,
            "total_count": jnp.broadcast_to(trials[..., None, None], logits.shape),
        }
        found.append(Member(DirichletMultinomial, coordinates, shape, 2))
    return found


for _divergence, _power in ((kl, 1.0), (reverse_kl, 0.0)):
    _one = _divergence.rule(dist.Categorical)
    _divergence.add(DirichletMultinomial, weighted(_one, _power, class_axes=1))
