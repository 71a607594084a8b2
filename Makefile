# Everything runs in a virtual environment of its own, made on first use.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= auto

.PHONY: test quick demo lint types unit bench papers bench-spark clean

test: lint types unit  ## set up, then check style, types and behaviour

quick: lint types  ## before a commit: style, types, and the tests that are neither slow nor on Spark
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m "not slow and not spark"

demo: $(VENV)/ready  ## set up, then four continuous queries, live in the terminal
	$(BIN)/millstream demo

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs src examples benchmarks tools

types: $(VENV)/ready-dev
	$(BIN)/mypy

unit: $(VENV)/ready-dev
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup

bench: $(VENV)/ready-dev  ## ratios against DuckDB, Polars and plain Python
	$(BIN)/python -m benchmarks

papers: $(VENV)/ready  ## numbers and pictures of the papers on join orders and load shedding
	$(BIN)/python -m benchmarks.papers

bench-spark: $(VENV)/ready-dev  ## Millstream on Spark beside Spark's own operators
	$(BIN)/python -m benchmarks.spark

$(VENV)/ready: pyproject.toml tools/set-up
	@tools/set-up $(PYTHON) $(VENV)
	@touch $@

$(VENV)/ready-dev: pyproject.toml tools/set-up
	@tools/set-up $(PYTHON) $(VENV) dev
	@touch $(VENV)/ready $@

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info
