"""Write references.json: divergences in fifty digits, from definitions.

Run from the root of the repository: `python -m tests.divergences.make_references`. A case is the name of a
NumPyro distribution, the parameters of the model and of the reference, and the divergences between the
two: sums over counts, integrals of densities, or the textbook formula where an integral has heavy tails.
"""

import json
from pathlib import Path

import mpmath as mp

PATH = Path(__file__).with_name("references.json")
SIZES = (1e-7, 1e-3, 0.1, 0.3, 2.0, -3.0)


def definitions(pairs):
    """The four divergences of two lists of probabilities."""
    p, q = zip(*pairs)
    both = [(a + b) / 2 for a, b in pairs]

    def kl(a, b):
        return mp.fsum(x * mp.log(x / y) for x, y in zip(a, b) if x)

    return {
        "kl": kl(p, q),
        "reverse_kl": kl(q, p),
        "squared_hellinger": mp.fsum((mp.sqrt(a) - mp.sqrt(b)) ** 2 for a, b in pairs) / 2,
        "jensen_shannon": (kl(p, both) + kl(q, both)) / 2,
    }


def softmax(logits):
    weights = [mp.exp(mp.mpf(logit)) for logit in logits]
    return [weight / mp.fsum(weights) for weight in weights]


def integral(log_p, log_q, points):
    """KL and reverse KL of two densities, by quadrature between points."""
    with mp.workdps(30):
        return {
            "kl": mp.quad(lambda y: mp.exp(log_p(y)) * (log_p(y) - log_q(y)), points),
            "reverse_kl": mp.quad(lambda y: mp.exp(log_q(y)) * (log_q(y) - log_p(y)), points),
        }


def summed(log_p, log_q, counts):
    values = [(mp.exp(log_p(y)), mp.exp(log_q(y))) for y in counts]
    found = definitions(values)
    return {"kl": found["kl"], "reverse_kl": found["reverse_kl"]}


def both_ways(formula, p, q):
    return {"kl": formula(*p, *q), "reverse_kl": formula(*q, *p)}


def gamma_kl(a, b, c, d):
    return (
        (a - c) * mp.digamma(a) - mp.loggamma(a) + mp.loggamma(c)
        + c * mp.log(b / d) + a * (d - b) / b
    )  # fmt: skip


def beta_kl(a, b, c, d):
    return (
        mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
        - mp.loggamma(c + d) + mp.loggamma(c) + mp.loggamma(d)
        + (a - c) * (mp.digamma(a) - mp.digamma(a + b)) + (b - d) * (mp.digamma(b) - mp.digamma(a + b))
    )  # fmt: skip


def laplace_kl(loc, scale, loc_0, scale_0):
    gap = abs(loc - loc_0)
    return mp.log(scale_0 / scale) + scale / scale_0 * mp.exp(-gap / scale) + gap / scale_0 - 1


def poisson_kl(rate, rate_0):
    return rate * mp.log(rate / rate_0) - rate + rate_0


def negative_binomial_kl(mean, n, mean_0, _):
    x, x_0 = mean / n, mean_0 / n
    return n * (x * mp.log(x / x_0) - (1 + x) * mp.log((1 + x) / (1 + x_0)))


def moving_negative_binomial_kl(mean, n, mean_0, n_0):
    """A sum over counts, up to a geometric rest below 1e-30."""
    p, q = negative_binomial(mean, n), negative_binomial(mean_0, n_0)
    total, y = mp.mpf(0), 0
    while y < 20 or mp.exp(p(y)) > mp.mpf(10) ** -34:
        total += mp.exp(p(y)) * (p(y) - q(y))
        y += 1
    return total


def normal_kl(loc, scale, loc_0, scale_0):
    ratio = scale / scale_0
    return ((loc - loc_0) / scale_0) ** 2 / 2 + ratio**2 / 2 - mp.mpf(1) / 2 - mp.log(ratio)


def weibull_kl(scale, k, scale_0, k_0):
    """From E log y and E y^k_0, which are Euler's constant and a gamma function."""
    mean_log = mp.log(scale) - mp.euler / k
    return (
        mp.log(k / k_0) + (k - 1) * mean_log - k * mp.log(scale) - 1
        - (k_0 - 1) * mean_log + k_0 * mp.log(scale_0)
        + (scale / scale_0) ** k_0 * mp.gamma(1 + k_0 / k)
    )  # fmt: skip


# Formulas: the distribution, the parameters, the direction they move in (logs where they are positive).
FORMULAS = [
    ("Normal", (0.3, 1.0), (1.0, -0.5), "r+", normal_kl),
    ("Poisson", (1.25,), (1.0,), "+", poisson_kl),
    ("Gamma", (2.5, 1.25), (0.7, -0.4), "++", gamma_kl),
    ("Gamma", (2.5, 1.25), (0.0, 1.0), "++", gamma_kl),
    ("Gamma", (0.05, 3.0), (1.0, 0.5), "++", gamma_kl),
    ("NegativeBinomial2", (2.0, 1.5), (1.0, 0.0), "++", negative_binomial_kl),
    ("NegativeBinomial2", (2.0, 1.5), (0.6, -0.8), "++", moving_negative_binomial_kl),
    ("NegativeBinomial2", (0.3, 4.0), (0.0, 1.0), "++", moving_negative_binomial_kl),
    ("Laplace", (0.3, 1.0), (1.0, -0.5), "r+", laplace_kl),
    ("Beta", (0.6, 3.0), (1.0, -0.3), "++", beta_kl),
    ("Weibull", (1.5, 1.2), (0.6, -0.7), "++", weibull_kl),
]


def formula_cases():
    for name, parameters, direction, kinds, formula in FORMULAS:
        for size in SIZES:
            moved = [
                value + size * move if kind == "r" else float(value * mp.exp(size * move))
                for value, move, kind in zip(parameters, direction, kinds)
            ]
            exact = [[mp.mpf(float(x)) for x in each] for each in (moved, parameters)]
            yield name, moved, list(parameters), size, both_ways(formula, *exact)


def categorical_cases():
    start, move = (0.3, -1.0, 0.8), (1.0, -0.4, 0.2)
    for size in (*SIZES, 40.0):
        moved = [a + size * b for a, b in zip(start, move)]
        found = definitions(list(zip(softmax(moved), softmax(start))))
        yield "CategoricalLogits", [moved], [list(start)], size, found
        pair = [softmax([each[0], 0.0]) for each in (moved, start)]
        yield "BernoulliLogits", [moved[0]], [start[0]], size, definitions(list(zip(*pair)))


def student_t_kl(df, loc, width):
    """KL from the standard one, in u with y = sqrt(df) sinh(u)."""
    df, loc, width = mp.mpf(df), mp.mpf(loc), mp.mpf(width)
    constant = mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(mp.pi) / 2

    def integrand(u):
        z = mp.sinh(u)
        y = loc / mp.sqrt(df) + width * z
        return mp.exp(constant - df * mp.log(mp.cosh(u))) * mp.log((1 + y**2) / (1 + z**2))

    with mp.workdps(25):
        far = 60 / df + 2
        points = [far * mp.mpf(k) / 40 for k in range(-40, 41)]
        return (df + 1) / 2 * mp.quad(integrand, points) - mp.log(width)


def student_t_cases():
    for df in (0.5, 1.0, 3.0, 30.0):
        for loc, width in ((1e-4, 1.0), (0.0, 1.0001), (0.7, 1.3), (3.0, 0.5)):
            found = {"kl": student_t_kl(df, loc, width)}
            yield "StudentT", [df, loc, width], [df, 0.0, 1.0], 1.0 if df >= 1.0 else 1e-7, found


def negative_binomial(mean, n):
    mean, n = mp.mpf(mean), mp.mpf(n)
    constant = n * mp.log(n / (n + mean)) - mp.loggamma(n)
    return lambda y: (
        constant + mp.loggamma(y + n) - mp.loggamma(y + 1) + y * mp.log(mean / (n + mean))
    )


def poisson(rate):
    return lambda y: y * mp.log(mp.mpf(rate)) - mp.mpf(rate) - mp.loggamma(y + 1)


def inflated(gate, count):
    gate = mp.mpf(gate)

    def log_probability(y):
        if y == 0:
            return mp.log(gate + (1 - gate) * mp.exp(count(0)))
        return mp.log(1 - gate) + count(y)

    return log_probability


def behind_hurdle(gate, count):
    gate, lost = mp.mpf(gate), mp.log(1 - mp.exp(count(0)))
    return lambda y: mp.log(gate) if y == 0 else mp.log(1 - gate) - lost + count(y)


def count_cases():
    for p, q in (((0.3, 2.0), (0.5, 1.0)), ((0.3, 0.02), (0.6, 0.01)), ((0.2, 30.0), (0.4, 20.0))):
        exact = [inflated(gate, poisson(rate)) for gate, rate in (p, q)]
        yield "ZeroInflatedPoisson", list(p), list(q), 1.0, {"kl": summed(*exact, range(150))["kl"]}
        exact = [behind_hurdle(gate, poisson(rate)) for gate, rate in (p, q)]
        yield "HurdlePoisson", list(p), list(q), 1.0, {"kl": summed(*exact, range(150))["kl"]}
    for p, q in (((0.3, 3.0, 1.5), (0.4, 2.0, 1.5)), ((0.3, 0.02, 1.5), (0.4, 0.5, 1.5))):
        exact = [behind_hurdle(gate, negative_binomial(mean, n)) for gate, mean, n in (p, q)]
        found = {"kl": summed(*exact, range(400))["kl"]}
        yield "HurdleNegativeBinomial2", list(p), list(q), 1.0, found
        exact = [inflated(gate, negative_binomial(mean, n)) for gate, mean, n in (p, q)]
        found = {"kl": summed(*exact, range(400))["kl"]}
        yield "ZeroInflatedNegativeBinomial2", list(p), list(q), 1.0, found


def beta_binomial(a, b, n):
    a, b = mp.mpf(a), mp.mpf(b)
    return lambda y: mp.log(mp.binomial(n, y) * mp.beta(y + a, n - y + b) / mp.beta(a, b))


def quadrature_cases():
    """Families that are integrated."""
    for p, q in (((0.3, 1.2), (0.0, 1.0)), ((4.0, 0.5), (0.0, 1.0)), ((1e-3, 1.0), (0.0, 1.0))):

        def logistic(loc, scale):
            loc, scale = mp.mpf(loc), mp.mpf(scale)
            return lambda y: (
                -(y - loc) / scale - mp.log(scale) - 2 * mp.log1p(mp.exp(-(y - loc) / scale))
            )

        points = [-120, -40, -10, -3, 0, 2, 4, 6, 10, 40, 120]
        yield "Logistic", list(p), list(q), 1e-3, integral(logistic(*p), logistic(*q), points)
    for p, q in (((0.4, 2.0), (0.0, 1.5)), ((2.0, 9.0), (0.5, 0.3))):

        def von_mises(loc, concentration):
            loc, k = mp.mpf(loc), mp.mpf(concentration)
            return lambda y: k * mp.cos(y - loc) - mp.log(2 * mp.pi * mp.besseli(0, k))

        points = [-mp.pi, -1, 0, 1, 2, mp.pi]
        yield "VonMises", list(p), list(q), 1.0, integral(von_mises(*p), von_mises(*q), points)


def urn_cases():
    """Beta-binomial and Dirichlet-multinomial counts, by enumeration."""
    for p, q, size in (
        ((2.0, 3.0, 20), (1.5, 3.0, 20), 0.3),
        ((0.2, 5.0, 20), (4.0, 0.5, 20), 3.0),
        ((2.0002, 3.0, 20), (2.0, 3.0, 20), 1e-4),
        ((1e8, 3e8, 20), (2.0, 3.0, 20), 10.0),
        ((1e-9, 3e-9, 20), (2.0, 3.0, 20), 10.0),
    ):
        exact = [beta_binomial(*each) for each in (p, q)]
        pairs = [tuple(mp.exp(each(y)) for each in exact) for y in range(21)]
        yield "BetaBinomial", list(p), list(q), size, definitions(pairs)
    trials = 6
    for p, q, size in (
        ((1.0, 2.0, 0.5), (0.7, 1.0, 2.0), 0.5),
        ((1e-8, 3e-9, 5e-9), (0.7, 1.0, 2.0), 10.0),
        ((1e7, 1e7, 2e7), (0.7, 1.0, 2.0), 10.0),
        ((0.7007, 1.0, 2.0), (0.7, 1.0, 2.0), 1e-3),
    ):
        counts = [
            (one, two, trials - one - two)
            for one in range(trials + 1)
            for two in range(trials + 1 - one)
        ]
        pairs = [tuple(dirichlet_multinomial(y, each) for each in (p, q)) for y in counts]
        found = definitions(pairs)
        kept = {name: found[name] for name in ("kl", "reverse_kl")}
        yield "DirichletMultinomial", [list(p), trials], [list(q), trials], size, kept


def dirichlet_multinomial(counts, concentrations):
    exact, trials = [mp.mpf(a) for a in concentrations], sum(counts)
    ways = mp.factorial(trials) / mp.fprod(mp.factorial(y) for y in counts)
    rising = mp.fprod(mp.rf(a, y) for a, y in zip(exact, counts))
    return ways * rising / mp.rf(mp.fsum(exact), trials)


def all_cases():
    for make in (
        formula_cases,
        categorical_cases,
        student_t_cases,
        count_cases,
        quadrature_cases,
        urn_cases,
    ):
        for name, p, q, size, found in make():
            yield {
                "distribution": name,
                "p": p,
                "q": q,
                "size": size,
                **{key: mp.nstr(value, 20) for key, value in found.items()},
            }


if __name__ == "__main__":
    with mp.workdps(50):
        found = list(all_cases())
    PATH.write_text("[\n" + ",\n".join(json.dumps(case) for case in found) + "\n]\n")
