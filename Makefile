# `make demo` and `make test` need Python 3.11 to 3.13 and Java 17 or 21, and nothing else.
# Each makes its own virtual environment the first time and again when pyproject.toml changes.

SHELL := /bin/sh
VENV ?= .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps

# The first interpreter that fits; `make PYTHON=/path/to/python test` names another.
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	if $$p -c '$(FITS)' >/dev/null 2>&1; then echo $$p; break; fi; done)

# Everything that needs no Spark comes first: a mistake shows within seconds.
FAST_TESTS := $(wildcard tests/unit tests/property tests/model tests/cli tests/docs tests/hostile)
SPARK_TESTS := $(wildcard tests/contract tests/integration tests/fault tests/soak)
PYTEST := $(BIN)/python -m pytest
# Processes, each with a Spark of its own (1.5 GB); a file's tests stay in one, and files keep their order.
WORKERS ?= 2
SPREAD = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many processes: without this each of them compiles the package again where the variable is set.
export PYTHONDONTWRITEBYTECODE :=
# Only `make nightly` draws; a seed in the environment changes no other command.
unexport MAINTAINER_TEST_SEED

.DEFAULT_GOAL := help
.PHONY: help demo quick golden test nightly long lint stores unit spark soak bench docs format clean lint-types lint-layers lint-copies collected check-python check-java hostile coverage mutation guards fault property matrix lowest

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: check-java $(STAMPS)/demo ## build a small lake of real data and walk through everything (a few minutes)
	$(BIN)/maintainer demo

# Left out: bounds of memory and size (`slow`), tests of the tests' own tools, and those that need the S3 server, which takes minutes to build.
QUICK_TESTS := tests/unit $(addprefix --ignore=tests/unit/,support delta/storage journal/store)

quick: WORKERS = 3
quick: $(STAMPS)/dev ## ruff, and the unit tests that need neither Spark nor a server: about a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PYTEST) $(SPREAD) -q -m 'not long and not slow' $(QUICK_TESTS)

# All tests with Spark are in one process: they begin first and take about half of the time. Two more share the others:
# tests wait for processes and servers, too, and three keep two cores busy.
test: WORKERS = 3
# One core is free beside mypy.
test: BESIDE_LINT = $(STAMPS)/warm collected
test: check-java $(STAMPS)/s3 lint ## lint, types, layers, and a fixed set of tests: one at least for each guard of a promise
	$(PYTEST) $(SPREAD) -p tests.support.suites.spark_apart -m 'not long' $(SPARK_TESTS) $(FAST_TESTS)

golden: $(STAMPS)/dev ## write the texts that tests compare as they are printed now; read the diff before you commit it
	MAINTAINER_UPDATE_GOLDEN=1 $(PYTEST) -q tests/unit/report tests/cli/test_transcripts.py tests/unit/planning/test_literate_cases.py

# `make MAINTAINER_TEST_SEED=2026-11-28 nightly` runs the cells of that night again.
nightly: check-java $(STAMPS)/warm ## what `make test` leaves out, of matrices some cells: drawn by the date, which it prints
	MAINTAINER_TEST_SEED=$(or $(MAINTAINER_TEST_SEED),$(shell date +%F)) \
		$(PYTEST) $(SPREAD) -m '(nightly or sampled) and not long and not every_run' $(FAST_TESTS) $(SPARK_TESTS)

long: check-java $(STAMPS)/warm ## all that `make test` leaves out: whole matrices, the whole demo, minutes each
	$(PYTEST) $(SPREAD) -m 'long or sampled or nightly' $(FAST_TESTS) $(SPARK_TESTS)

fault: check-java $(STAMPS)/warm ## every kill, sick system call and broken table: the fault tests whole, hours
	$(PYTEST) $(SPREAD) tests/fault

lint: $(STAMPS)/dev ## ruff, mypy --strict, the import contracts, and code that stands twice
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j 2 lint-types lint-layers lint-copies $(BESIDE_LINT)

# In a new checkout each process would compile all tests anew. What is wrong with them is said by the run that follows.
collected:
	@$(PYTEST) --collect-only $(SPARK_TESTS) $(FAST_TESTS) >/dev/null 2>&1 || :

lint-types:
	$(BIN)/mypy

lint-layers:
	$(BIN)/lint-imports

lint-copies:
	$(BIN)/pylint --score=n maintainer

property: $(STAMPS)/dev ## each property with all its examples, new ones each time; `make test` tries a quarter
	HYPOTHESIS_PROFILE=dev $(PYTEST) $(SPREAD) -m hypothesis $(FAST_TESTS)

hostile: $(STAMPS)/dev ## hostile input, all of it: policies, names, plans, secrets
	$(PYTEST) $(SPREAD) tests/hostile

stores: $(STAMPS)/dev ## servers of all three stores' protocols: Azurite by npm and fake-gcs-server beside versitygw, which all tests have
	$(BIN)/python -m tests.support.stores.store_servers

unit: $(STAMPS)/s3 ## the tests that need no Spark: seconds
	$(PYTEST) $(SPREAD) $(FAST_TESTS)

coverage: $(STAMPS)/s3 ## branch coverage of all that decides, by the tests that need no Spark: fails under 100 % (3 minutes)
	HYPOTHESIS_PROFILE=whole $(PYTEST) $(SPREAD) -q --cov --cov-report=term $(FAST_TESTS)

mutation: $(STAMPS)/s3 ## small wrong changes in what decides about rows and files; tests must notice (10 minutes on idle cores)
	$(BIN)/python -m tools.mutation $(MUTATION)

guards: check-java $(STAMPS)/s3 ## take each guard of a promise out of the code; the tests that decide about it must fail
	$(BIN)/python -m tools.mutation --guards $(GUARDS)

spark: check-java $(STAMPS)/warm ## the tests on real Spark and Delta
	$(PYTEST) $(SPREAD) -m 'not long' $(SPARK_TESTS)

# `make SOAK_MINUTES=5 SOAK_SEED=2 soak` is a shorter one with other random numbers.
SOAK_MINUTES ?= 60
SOAK_SEED ?= 1
SOAK_OUT ?= soak.md

matrix: check-java $(STAMPS)/dev ## each pair of Spark and Delta that fits: contract, first policy, demo, parity, forged; the rest with the newest Delta of each Spark; writes docs/features.md (hours)
	$(BIN)/python -m tools.version_matrix $(MATRIX)

# All extras together, on the oldest Python; what only tests need is as new as it can be.
LOWEST := .matrix/lowest
lowest: check-java $(STAMPS)/s3 ## an environment of the lowest releases that pyproject.toml allows, and tests with and without Spark in it (15 minutes)
	$(BIN)/uv venv --quiet --clear --python 3.11 $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[demo,connect,metrics,otel,openlineage]'
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --group dev
	$(LOWEST)/bin/python -m pytest $(SPREAD) -m 'not long' tests/unit tests/cli tests/contract tests/integration

soak: check-java $(STAMPS)/dev ## write, read, maintain and kill for an hour; what came of it is written to soak.md
	$(BIN)/python -m tests.soak.run_soak --minutes $(SOAK_MINUTES) --seed $(SOAK_SEED) --out $(SOAK_OUT)

bench: check-java $(STAMPS)/dev ## measure `apply` beside delta-rs, and beside a plain loop of OPTIMIZE and VACUUM (25 minutes)
	$(BIN)/python benchmarks/small_tables.py --out benchmarks/results/small_tables.md
	$(BIN)/python benchmarks/optimize_loop.py --out benchmarks/results/optimize_loop.md

docs: $(STAMPS)/docs ## build the documentation as a site into site/, with every link checked
	$(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html (its search box works where the site is served: python3 -m http.server -d site)"

format: $(STAMPS)/dev ## let ruff format and sort
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

check-python:
	@if [ -z "$(PYTHON)" ] || ! $(PYTHON) -c '$(FITS)' >/dev/null 2>&1; then \
		echo "Python 3.11 to 3.13 is needed; found: $$($(or $(PYTHON),python3) --version 2>&1)" >&2; \
		echo "install one, or name it: make PYTHON=/path/to/python3.12 $(firstword $(MAKECMDGOALS))" >&2; exit 2; fi

# Only whether there is one at all; which one, and whether it fits, is checked where Spark is started.
check-java:
	@if [ -n "$$JAVA_HOME" ] && [ -x "$$JAVA_HOME/bin/java" ]; then :; \
	elif [ -z "$$JAVA_HOME" ] && command -v java >/dev/null 2>&1; then :; \
	else \
		echo "Java 17 or 21 is needed; found: JAVA_HOME=$${JAVA_HOME:-not set}, java on PATH: $$(command -v java || echo none)" >&2; \
		echo "install it (Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)" >&2; \
		echo "and set JAVA_HOME to its folder if it is not on PATH" >&2; exit 2; fi

# pip 25.1 is the first that knows dependency groups.
$(STAMPS)/venv: | check-python
	@$(PYTHON) -m venv $(VENV) || { \
		echo "$(PYTHON) cannot make a virtual environment; Debian, Ubuntu: sudo apt-get install python3-venv" >&2; \
		rm -rf $(VENV); exit 2; }
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/demo: pyproject.toml | $(STAMPS)/venv
	@echo "installing maintainer with Spark, Delta and the demo's data into $(VENV) (a minute or two, once)"
	$(BIN)/python -m pip install --quiet --editable '.[spark,demo]'
	@touch $@

$(STAMPS)/dev: pyproject.toml | $(STAMPS)/venv
	@echo "installing maintainer with everything that its tests need into $(VENV) (a minute or two, once)"
	$(BIN)/python -m pip install --quiet --editable '.[spark,demo]' --group dev
	@touch $@ $(STAMPS)/demo

# The S3 server of the tests, built by the Go that comes with them.
$(STAMPS)/s3: tests/support/stores/store_servers.py $(STAMPS)/dev
	@echo "building the S3 server of the tests (two minutes or three, once)"
	$(BIN)/python -m tests.support.stores.store_servers versitygw
	@touch $@

# Java's class archive, as in an image: each of the many Sparks that the tests start then starts in half the time.
$(STAMPS)/warm: $(STAMPS)/s3
	@echo "warming Java's class archive (a minute, once)"
	$(BIN)/maintainer -q doctor --warm >/dev/null
	@touch $@

$(STAMPS)/docs: pyproject.toml | $(STAMPS)/venv
	$(BIN)/python -m pip install --quiet --editable . --group docs
	@touch $@
