# Everything needed on a fresh machine with Python >= 3.11:
#   make demo    fit scikit-learn's diabetes data, print the summary, write the report
#   make test    the tests; costly ones take turns, a fifth a day, all in fifteen days
#                (make test-slow: the long statistical ones, and those without a turn today)
#   make truth   every kernel against exact targets; writes docs/truth.md
#   make fuzz    damaged and hostile folders and tables, 100,000 of them

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: demo truth fuzz test test-slow test-oldest test-newest lint types layers check format clean

demo: $(VENV)/installed
	rm -rf demo-run
	$(BIN)/credence fit diabetes --target target --out demo-run
	@echo "Open demo-run/report.html in a browser."

test: $(VENV)/installed
	$(PYTEST) -m "not slow" -n auto

test-slow: $(VENV)/installed
	$(PYTEST) -m slow

truth: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m truth --out docs/truth.md

fuzz: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m fuzz --mutations 100000

# The lowest versions pyproject.toml allows, on Python 3.11, and the newest ones, on Python 3.13.
test-oldest: $(VENV)/installed
	$(BIN)/uv venv -q --clear -p 3.11 .venv-oldest
	$(BIN)/uv pip install -q -p .venv-oldest --resolution lowest-direct -e ".[dev]"
	.venv-oldest/bin/python -m pytest -m "not slow" -n auto

test-newest: $(VENV)/installed
	$(BIN)/uv venv -q --clear -p 3.13 .venv-newest
	$(BIN)/uv pip install -q -p .venv-newest --upgrade -e ".[dev]"
	.venv-newest/bin/python -m pytest -m "not slow" -n auto

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed
	$(BIN)/pyright

layers: $(VENV)/installed
	$(BIN)/lint-imports

check: lint types layers test

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .venv-oldest .venv-newest .jax_cache demo-run

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Credence needs Python >= 3.11, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@
