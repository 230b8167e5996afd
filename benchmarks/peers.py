"""What people would pick for wide tables, beside ours: `python -m benchmarks.peers`.

Writes results/peers.json: tables of 100 rows and more and more columns, five of which matter, and real
tables (a random tenth of whose rows is new), and a classifier by each of

- our Gibbs sampler (PredCP) and Laplace's method;
- the published Gibbs sampler of Makalic and Schmidt (2016) of the logistic horseshoe: Polya-gamma
  weights, inverse-gamma auxiliary variables, and one joint draw of the coefficients a sweep (by the
  method of Bhattacharya et al., 2016), written here in NumPy from the paper's formulas;
- the horseshoe as a plain NumPyro program, non-centred, sampled by NUTS;
- scikit-learn's `LogisticRegressionCV` with l1 and l2 penalties.

The figures are the processor's time (other work on the machine distorts it little), the log score on
new rows (1,000 of a simulated table), and for samplers the effective draws a second of the slowest of the
log odds of 50 new rows, warm-up and compilation left out, with its R-hat: where that is far above 1, the
chains were too short to be compared. What is measured already is kept.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stored import Stored
from predcp._numerics.chains import bulk_ess, worst_rhat

OUTPUT = Path(__file__).parent / "results" / "peers.json"
ROWS, NEW_ROWS, MONITORED = 100, 1000, 50
COLUMNS = (100, 300, 1000, 3000)
# Names of registered tables.
REAL = ("breast",)
PEERS = ("gibbs", "laplace", "makalic-schmidt", "numpyro", "sklearn-l1", "sklearn-l2")
CHAINS, WARMUP, DRAWS = 2, 300, 500


def table(columns: int | str) -> tuple[np.ndarray, ...]:
    """Training and new rows: of a registered table, or of so many standard normal columns."""
    if isinstance(columns, str):
        from predcp.data import load_split

        split = load_split(columns, 0)
        train, test = split.train, split.test
        x, new = np.asarray(train.features, float), np.asarray(test.features, float)
        return x, np.asarray(train.target, int), new, np.asarray(test.target, int)
    random = np.random.default_rng(columns)
    x = random.normal(size=(ROWS + NEW_ROWS, columns))
    y = (1.5 * x[:, :5].sum(axis=1) + random.logistic(size=len(x)) > 0).astype(int)
    return x[:ROWS], y[:ROWS], x[ROWS:], y[ROWS:]


def makalic_schmidt(
    x: np.ndarray, y: np.ndarray, new: np.ndarray, seed: int
) -> tuple[np.ndarray, float]:
    """One chain: log odds of new rows `(draws, rows)`, and the processor's time of the draws.

    `lambda_j^2 | nu_j ~ IG(1/2, 1/nu_j)`, `nu_j ~ IG(1/2, 1)`, and likewise tau^2 and its xi.
    """
    import jax
    import jax.numpy as jnp

    from predcp.linear._polya_gamma import polya_gamma

    random = np.random.default_rng(seed)
    weights_of = jax.jit(polya_gamma)
    rows, columns = x.shape
    beta, alpha = np.zeros(columns), 0.0
    lambda2, nu, tau2, xi = np.ones(columns), np.ones(columns), 1.0 / columns, 1.0
    kept, began = [], 0.0

    def inverse_gamma(shape: float, scale: Any) -> Any:
        return scale / random.gamma(shape, size=np.shape(scale))

    for sweep in range(WARMUP + DRAWS):
        if sweep == WARMUP:
            began = time.process_time()
        key = jax.random.key(seed * 10_000 + sweep)
        omega = np.asarray(weights_of(key, jnp.asarray(x @ beta + alpha)), np.float64)
        z = (y - 0.5) / omega
        # The intercept has a flat prior.
        variance = 1.0 / omega.sum()
        alpha = variance * (omega @ (z - x @ beta)) + np.sqrt(variance) * random.standard_normal()
        root = np.sqrt(omega)
        scaled, response = x * root[:, None], root * (z - alpha)
        prior = tau2 * lambda2
        u = np.sqrt(prior) * random.standard_normal(columns)
        v = scaled @ u + random.standard_normal(rows)
        covariance = (scaled * prior) @ scaled.T + np.eye(rows)
        beta = u + prior * (scaled.T @ np.linalg.solve(covariance, response - v))
        lambda2 = inverse_gamma(1.0, 1.0 / nu + beta**2 / (2.0 * tau2))
        nu = inverse_gamma(1.0, 1.0 + 1.0 / lambda2)
        tau2 = float(inverse_gamma(0.5 * (columns + 1), 1.0 / xi + 0.5 * np.sum(beta**2 / lambda2)))
        xi = float(inverse_gamma(1.0, 1.0 + 1.0 / tau2))
        if sweep >= WARMUP:
            kept.append(new @ beta + alpha)
    return np.array(kept), time.process_time() - began


def numpyro_horseshoe(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, float]:
    """Log odds of new rows `(chains, draws, rows)`, and the processor's time of the draws."""
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def model(x: Any, y: Any) -> None:
        tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
        local = numpyro.sample("lambda", dist.HalfCauchy(1.0).expand([x.shape[1]]).to_event(1))
        noise = numpyro.sample("xi", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
        beta = numpyro.deterministic("beta", tau * local * noise)
        alpha = numpyro.sample("alpha", dist.Normal(0.0, 2.5))
        numpyro.sample("y", dist.Bernoulli(logits=x @ beta + alpha), obs=y)

    sampler = MCMC(
        NUTS(model, max_tree_depth=10),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    sampler.warmup(jax.random.key(0), x, y)
    began = time.process_time()
    sampler.run(jax.random.key(1), x, y)
    spent = time.process_time() - began
    found = sampler.get_samples(group_by_chain=True)
    beta, alpha = np.asarray(found["beta"]), np.asarray(found["alpha"])
    return beta @ new.T + alpha[:, :, None], spent


def once(peer: str, columns: int | str) -> dict[str, Any]:
    """One peer on one table in this process."""
    from scipy.special import expit
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.preprocessing import StandardScaler

    from predcp.linear import Gibbs, Laplace, LogisticRegression

    x, y, new, truth = table(columns)
    scaler = StandardScaler().fit(x)
    x, new = scaler.transform(x), scaler.transform(new)
    odds: np.ndarray | None = None
    drawing = 0.0
    began = time.process_time()
    if peer in ("gibbs", "laplace"):
        gibbs = Gibbs(chains=CHAINS, warmup=WARMUP, draws=DRAWS, layout="sequential")
        inference = gibbs if peer == "gibbs" else Laplace(draws=400)
        model = LogisticRegression("predcp", inference=inference).fit(x, y)
        total = time.process_time() - began
        odds = np.concatenate(list(model._predictors(new)))
        odds = odds.T.reshape(*model.draws_.values["beta"].shape[:2], -1)
        drawing = model.draws_.seconds * DRAWS / (WARMUP + DRAWS)
    elif peer == "makalic-schmidt":
        chains, times = zip(*(makalic_schmidt(x, y, new, seed) for seed in range(CHAINS)))
        total, odds, drawing = time.process_time() - began, np.stack(chains), sum(times)
    elif peer == "numpyro":
        odds, drawing = numpyro_horseshoe(x, y, new)
        total = time.process_time() - began
    else:
        penalty = {"sklearn-l1": "l1", "sklearn-l2": "l2"}[peer]
        model = LogisticRegressionCV(
            penalty=penalty, solver="liblinear", scoring="neg_log_loss", cv=5
        ).fit(x, y)
        total = time.process_time() - began
    p = model.predict_proba(new)[:, 1] if odds is None else expit(odds).mean(axis=(0, 1))
    right = np.where(truth == 1, p, 1.0 - p)
    found: dict[str, Any] = {
        "cpu_seconds": round(total, 2),
        "log_score": round(float(np.log(np.maximum(right, 1e-12)).mean()), 4),
    }
    if peer not in ("laplace", "sklearn-l1", "sklearn-l2") and odds is not None:
        monitored = np.asarray(odds[:, :, :MONITORED], np.float64)
        effective = float(np.min(bulk_ess(monitored)))
        found["rhat"] = round(worst_rhat(monitored), 4)
        found["effective_draws"] = round(effective, 1)
        found["effective_draws_a_second"] = round(effective / max(drawing, 1e-9), 3)
    return found


def measured(peer: str, columns: int | str) -> dict[str, Any]:
    """One case in a fresh process."""
    call = f"print(json.dumps(once({peer!r}, {columns!r})))"
    code = f"import json; from benchmarks.peers import once; {call}"
    words = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--real", nargs="*", default=REAL, help="registered tables")
    parser.add_argument("--peers", nargs="+", default=PEERS, choices=PEERS)
    options = parser.parse_args()
    results = Stored(options.output)
    for columns in (*options.real, *options.columns):
        for peer in options.peers:
            name = f"{peer}, {columns if isinstance(columns, str) else f'{ROWS} x {columns}'}"
            if name not in results:
                results.add(name, measured(peer, columns))


if __name__ == "__main__":
    main()
