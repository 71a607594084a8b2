# Everything runs in a virtual environment of its own, made on first use.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= auto

.PHONY: test demo lint types unit bench bench-spark clean

test: lint types unit  ## set up, then check style, types and behaviour

demo: $(VENV)/ready  ## set up, then four continuous queries, live in the terminal
	$(BIN)/millstream demo

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready
	$(BIN)/mypy

unit: $(VENV)/ready
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup

bench: $(VENV)/ready  ## ratios against DuckDB, Polars and plain Python
	$(BIN)/python -m benchmarks

bench-spark: $(VENV)/ready  ## Millstream on Spark beside Spark's own operators
	$(BIN)/python -m benchmarks.spark

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Millstream needs Python 3.11 or later; set PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m millstream.spark.java || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,java]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info
