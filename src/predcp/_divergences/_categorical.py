"""Categorical and multinomial observations: the coordinates are the logits, up to a constant.

With t_k = log p0_k / p_k every divergence is a sum over classes of non-negative terms, as for a
coin. Slopes are covariances under p; velocities are measured from the most probable class, whose
own term then vanishes exactly, so that with a saturated softmax the small terms stay in log space.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions.discrete import (
    CategoricalLogits,
    CategoricalProbs,
    MultinomialLogits,
    MultinomialProbs,
)

from predcp._divergences._bernoulli import (
    hellinger_part,
    jensen_shannon_part,
    kl_part,
    reversed_kl_part,
)
from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    counted,
    register_family,
    register_rules,
)
from predcp._numerics.class_sums import (
    class_max,
    class_sum,
    from_top_class,
    log_softmax_from_top,
    top_class,
)
from predcp._numerics.special import expm1_minus, log_mean_exp_zero


@register_family(dist.Categorical, CategoricalLogits, CategoricalProbs, class_axes=1)
def _coordinates(categorical) -> Coordinates:
    return {"logits": _logits(categorical, CategoricalProbs)}


def _logits(distribution, by_probabilities: type):
    """Logits up to a constant; of probabilities their logs, so that the program analysis sees the log."""
    if isinstance(distribution, by_probabilities):
        return jnp.log(jnp.asarray(distribution.probs))
    return jnp.asarray(distribution.logits)


@register_family(dist.Multinomial, MultinomialLogits, MultinomialProbs, class_axes=1)
def _multinomial_coordinates(multinomial) -> Coordinates:
    logits = _logits(multinomial, MultinomialProbs)
    count = jnp.asarray(multinomial.total_count, logits.dtype)[..., None]
    return {"logits": logits, "total_count": jnp.broadcast_to(count, logits.shape)}


class Die(NamedTuple):
    """Log probabilities of a die and its reference, and the log ratios between them."""

    log_p: Array
    log_p0: Array
    t: Array
    size: Array  # largest displacement of a logit from their mean
    top: Array  # the most probable class


def _die(reference: Array, direction: Array, log_size: Array) -> Die:
    reference, direction = jnp.broadcast_arrays(reference, direction)
    size = jnp.exp(log_size)
    log_p0 = log_softmax_from_top(from_top_class(reference, top_class(reference)))
    p0 = jnp.exp(log_p0)
    centred = (direction - class_sum(p0 * direction)) * size
    largest = class_max(jnp.abs(centred))
    small = largest < 1.0
    near = jnp.where(small, centred, 0.0)
    # log E_0 exp(d) = log(1 + E_0 [exp(d) - 1 - d]) when E_0 d = 0: a sum of positive terms.
    near_shift = jnp.log1p(class_sum(p0 * expm1_minus(near)))
    top = top_class(reference + direction * size)
    log_p = log_softmax_from_top(
        from_top_class(reference, top) + from_top_class(direction, top) * size
    )
    return Die(log_p, log_p0, jnp.where(small, near_shift - near, log_p0 - log_p), largest, top)


def _value(part: Callable[[Array, Array, Array], Array], curvature: float) -> Callable:
    def value(reference, direction, log_size):
        log_size = log_size[..., None]
        die = _die(reference["logits"], direction["logits"], log_size)
        far = part(die.log_p, die.log_p0, die.t)
        p0 = jnp.exp(die.log_p0)
        centred = direction["logits"] - class_sum(p0 * direction["logits"])
        tiny = die.size < jnp.finfo(far.dtype).eps
        return [
            (
                jnp.where(tiny, 2.0 * log_size, 0.0),
                jnp.where(tiny, 0.5 * curvature * p0 * centred**2, far),
            )
        ]

    return value


def _slope(terms: Callable) -> Callable:
    def slope(reference, direction, log_size, velocity):
        log_size = log_size[..., None]
        die = _die(reference["logits"], direction["logits"], log_size)
        speed = from_top_class(velocity["logits"], die.top)
        log_weight, coefficient = terms(die, direction["logits"], log_size)
        return [(log_weight + log_size, coefficient * speed)]

    return slope


# Cov_p(d, velocity)
def _kl_terms(die: Die, direction: Array, log_size: Array):
    from_top = from_top_class(direction, die.top)
    mean = class_sum(jnp.exp(die.log_p) * from_top)
    return die.log_p + log_size, from_top - mean


# p - p_0 = p (1 - e^t) or p_0 (e^-t - 1)
def _reverse_terms(die: Die, direction: Array, log_size: Array):
    below = die.t > 0.0
    step = jnp.expm1(-jnp.abs(die.t))
    return jnp.where(below, die.log_p0, die.log_p), jnp.where(below, step, -step)


# d H^2 / d a_k = p_k (B - e^(t_k / 2)) / 2 with B = 1 - H^2
def _hellinger_terms(die: Die, direction: Array, log_size: Array):
    squared = class_sum(hellinger_part(die.log_p, die.log_p0, die.t))
    below = die.t > 0.0
    step = jnp.expm1(-jnp.abs(die.t) / 2.0)
    log_weight = jnp.where(below, 0.5 * (die.log_p + die.log_p0), die.log_p)
    coefficient = jnp.where(below, step - (1.0 + step) * squared, -squared - step)
    return log_weight, 0.5 * coefficient


# Cov_p(-L(t) / 2, velocity) with L(t) = log((1 + e^t) / 2)
def _jensen_shannon_terms(die: Die, direction: Array, log_size: Array):
    from_top = from_top_class(-0.5 * log_mean_exp_zero(die.t), die.top)
    mean = class_sum(jnp.exp(die.log_p) * from_top)
    return die.log_p, from_top - mean


_RULES = {
    name: Rule(_value(part, curvature), _slope(terms), bounded)
    for name, part, curvature, terms, bounded in (
        ("kl", kl_part, 1.0, _kl_terms, True),
        ("reverse_kl", reversed_kl_part, 1.0, _reverse_terms, False),
        ("squared_hellinger", hellinger_part, 0.25, _hellinger_terms, True),
        ("jensen_shannon", jensen_shannon_part, 0.25, _jensen_shannon_terms, True),
    )
}
register_rules(dist.Categorical, **_RULES)
register_rules(dist.Multinomial, **{name: counted(rule) for name, rule in _RULES.items()})
