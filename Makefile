# One virtual environment in .venv, made on first use; every target sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
# The newest Python on this machine that predcp may use, and the environment of the oldest versions.
NEWEST := $(shell .ci/newest-python)
OLDEST := .venv-oldest
PYTEST := -m pytest -n 2 --dist worksteal --durations=15 --durations-min=5
# What other versions are tested with: the core, the door, and every room's contact with its libraries.
PART := tests/support tests/numerics tests/divergence_priors tests/maps/test_maps.py tests/maps/test_modular.py \
	tests/test_prior.py tests/test_summaries.py tests/test_plot.py tests/program/test_refusals.py \
	tests/program/test_with_complexity.py tests/linear/test_bad_input.py tests/linear/test_posterior.py \
	tests/resnet/test_resnet_faults.py tests/fewshot/test_inner_loop.py tests/data tests/experiments/test_store.py tests/experiments/test_runner.py \
	tests/cli/test_audit_command.py

# The core's numbers, compiled as users compile; the other tests are compiled without optimisations.
NUMERIC := tests/numerics tests/divergences
# The core's oracles and protocol, for a quick check.
CORE := tests/numerics tests/divergences/test_precision.py tests/divergences/test_references.py tests/maps/test_maps.py

.PHONY: check test-part test-pages test-listed test-exact test-families test-newest test-oldest test test-long test-plot test-experiments test-explore \
	test-cluster test-pymc test-bambi test-stan test-browser demo bench bench-programs bench-resnet bench-explore bench-bridges \
	bench-stan dist docs docs-serve lint clean help

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "predcp needs Python 3.11 or newer; set PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing predcp and its test tools into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all,dev]"
	@touch $(STAMP)

test: $(STAMP)  ## run the tests (eight minutes on two cores)
	XLA_FLAGS= $(BIN)/python $(PYTEST) $(NUMERIC)
	$(BIN)/python $(PYTEST) $(NUMERIC:%=--ignore=%) tests

check: $(STAMP)  ## lint, types, contracts and the tests of the core (a hundred seconds)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright & types=$$!; \
	$(BIN)/python $(PYTEST) tests/test_contracts.py $(CORE) && wait $$types

test-newest:  ## test a part of everything with the newest Python on this machine, in .venv-newest
	@if [ -n "$(NEWEST)" ]; then $(MAKE) VENV=.venv-newest PYTHON=$(NEWEST) test-part; \
	else echo "there is no Python newer than 3.11 here: nothing to test"; fi

test-part: $(STAMP)  ## test a part of everything: the core, the door, each room's contact with its libraries
	$(BIN)/python $(PYTEST) $(PART)

test-oldest: $(OLDEST)/.installed  ## test the same part with the declared minimum versions, in .venv-oldest
	$(OLDEST)/bin/python $(PYTEST) $(PART)

$(OLDEST)/.installed: pyproject.toml
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	@echo "installing the declared minimum versions into $(OLDEST)"
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check $$($(PYTHON) .ci/oldest.py)
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

test-pages: $(STAMP)  ## run the pages that are left to the long tests
	$(BIN)/python $(PYTEST) -m long tests/test_documentation.py

test-listed: $(STAMP)  ## run the tests that tests/long.txt leaves out of the default set
	XLA_FLAGS= $(BIN)/python $(PYTEST) -m listed $(NUMERIC)
	$(BIN)/python $(PYTEST) -m "listed and not browser" $(NUMERIC:%=--ignore=%) --ignore=tests/test_documentation.py tests

test-exact: $(STAMP)  ## run the long tests of exactness: the core's precision, the Gibbs sampler
	XLA_FLAGS= $(BIN)/python $(PYTEST) -m long tests/divergences/test_precision.py tests/maps tests/test_prior.py tests/linear/test_gibbs.py

# All compiled quickly; then KL in single precision compiled as users compile.
test-families: $(STAMP)  ## run the long tests of every family, parameterisation, divergence and precision (an hour or more)
	$(BIN)/python $(PYTEST) -m "long or not long" tests/divergences/test_families.py tests/divergences/test_fallbacks.py
	XLA_FLAGS= $(BIN)/python $(PYTEST) -m "long or not long" -k "kl-float32 and not reverse_kl" tests/divergences/test_families.py

test-long: $(STAMP)  ## run the tests that take minutes each
	XLA_FLAGS= $(BIN)/python $(PYTEST) -m long

# Of each extra, its tests and what they need besides. BlackJAX 1.6 lost a function that PyMC 5 and 6 call.
TESTS_plot := tests/test_plot.py
TESTS_experiments := tests/experiments tests/data tests/cli
TESTS_explore := tests/explore
TESTS_cluster := tests/experiments/test_ray_engine.py tests/experiments/test_pages.py
TESTS_pymc := tests/bridges
WITH_pymc := nutpie "blackjax<1.6"
TESTS_bambi := tests/bridges/test_bambi.py tests/bridges/test_bridge_pages.py
TESTS_stan := tests/exports

test-plot test-experiments test-explore test-cluster test-pymc test-bambi test-stan: test-%: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]" $(WITH_$*)
	XLA_FLAGS= $(BIN)/python -m pytest -m "(long or not long) and not browser" $(TESTS_$*)

test-plot:  ## test the extra `plot`
test-experiments:  ## test the extra `experiments`
test-explore:  ## test the extra `explore`, without a browser
test-cluster:  ## test the extra `cluster` (installs Ray)
test-pymc:  ## test the extra `pymc` with every sampler (installs them; minutes)
test-bambi:  ## test the extra `bambi` and its pages (minutes)
test-stan:  ## test the extra `stan` (needs a C++ compiler; minutes)

test-browser: $(STAMP)  ## test the extra `browser`: the explorer in a real Chromium (must be installed; two minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[browser]"
	$(BIN)/python -m pytest -m browser tests/explore tests/test_site.py

demo: $(STAMP)  ## audit a model, state its prior in one sentence, fit before and after (a minute)
	$(BIN)/python -m predcp demo

bench: $(STAMP)  ## measure speed; writes benchmarks/results/
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.program
	$(BIN)/python -m benchmarks.interactive
	$(BIN)/python -m benchmarks.tabulated
	$(BIN)/python -m benchmarks.budget
	$(BIN)/python -m benchmarks.joint

bench-programs: $(STAMP)  ## sample every program of the tests with both priors, and calibration (an hour)
	$(BIN)/python -m benchmarks.programs

bench-resnet: $(STAMP)  ## measure residual networks (a few minutes)
	$(BIN)/python -m benchmarks.resnet

bench-explore: $(STAMP)  ## measure how fast the explorer redraws; in Chromium too where there is one
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[browser]"
	$(BIN)/python -m benchmarks.explore

bench-bridges: $(STAMP)  ## measure the bridge to PyMC, and compare posteriors with PyMC and Stan (installs them; minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[pymc,stan]"
	$(BIN)/python -m benchmarks.pymc_bridge
	$(BIN)/python -m benchmarks.posteriors

bench-stan: $(STAMP)  ## compare with Stan (installs PyStan, needs a C++ compiler; hours)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[stan]"
	$(BIN)/python -m benchmarks.stan

$(DOCS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $(DOCS_STAMP)

dist: $(STAMP)  ## build sdist and wheel into dist/, check them, use the wheel in empty environments
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*
	.ci/check-dist $(PYTHON) $(NEWEST)

docs: $(DOCS_STAMP)  ## build the documentation site into site/, strictly
	$(BIN)/python -m properdocs build --strict --config-file mkdocs.yml

docs-serve: $(DOCS_STAMP)  ## show the site on localhost:8000 while you write
	$(BIN)/python -m properdocs serve --config-file mkdocs.yml

lint: $(STAMP)  ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .venv-newest .venv-oldest .pytest_cache .ruff_cache .hypothesis site
