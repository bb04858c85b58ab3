# Everything needed on a fresh machine with Python >= 3.11:
#   make demo    fit scikit-learn's diabetes data, print the summary, write the report
#   make test    the tests; costly ones take turns, a seventh a day, all in three weeks
#                (make test-slow: the long statistical ones, and those without a turn today)
#   make truth   every kernel against exact targets; makes docs/results/truth.md
#   make docs    the site, in docs/_build/html; runs the tutorials, which takes half an hour once
#                (make docs-serve: the same, and shows it; make docs-links: checks outside links)
#   make docs-browser    reports in a real browser (Debian's Chromium)
#   make results SIZE=laptop    the published experiments; hours; goes on where it stopped
#   make pages   tables and figures of README and docs from results/
#   make fuzz    damaged and hostile folders and tables, 100,000 of them

PYTHON ?= python3
SIZE ?= laptop
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# What the tests of a file share is made once; tests/conftest.py puts dear files first.
BY_FILE := --dist loadfile --no-loadscope-reorder

.PHONY: demo docs docs-browser results pages docs-serve docs-links truth fuzz test test-slow test-oldest test-newest lint types layers check format clean

demo: $(VENV)/installed
	rm -rf demo-run
	$(BIN)/credence fit diabetes --target target --out demo-run
	@echo "Open demo-run/report.html in a browser."

test: $(VENV)/installed
	$(PYTEST) -m "not slow" -n auto $(BY_FILE)

test-slow: $(VENV)/installed
	$(PYTEST) -m slow

docs: $(VENV)/installed
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build/html
	@echo "The site is docs/_build/html/index.html."

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

docs-links: $(VENV)/installed
	CREDENCE_DOCS_EXECUTE=off $(BIN)/sphinx-build -q -b linkcheck docs docs/_build/links

docs-browser: $(VENV)/installed
	command -v chromium || (apt-get update -q && apt-get install -qy chromium)
	$(PYTEST) tests/report/test_browser.py

truth: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m truth --out results/truth/full.json
	$(BIN)/python docs/make/pages.py

results: $(VENV)/installed
	$(BIN)/python docs/make/results.py --size $(SIZE)

pages: $(VENV)/installed
	$(BIN)/python docs/make/pages.py

fuzz: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m fuzz --mutations 100000

# The lowest versions pyproject.toml allows, on Python 3.11, and the newest ones, on Python 3.13.
test-oldest: $(VENV)/installed
	$(BIN)/uv venv -q --clear -p 3.11 .venv-oldest
	$(BIN)/uv pip install -q -p .venv-oldest --resolution lowest-direct -e ".[dev]"
	.venv-oldest/bin/python -m pytest -m "not slow" -n auto $(BY_FILE)

test-newest: $(VENV)/installed
	$(BIN)/uv venv -q --clear -p 3.13 .venv-newest
	$(BIN)/uv pip install -q -p .venv-newest --upgrade -e ".[dev]"
	.venv-newest/bin/python -m pytest -m "not slow" -n auto $(BY_FILE)

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
	rm -rf .venv .venv-oldest .venv-newest .jax_cache demo-run docs/_build docs/reference/made

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Credence needs Python >= 3.11, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[dev]"
	touch $@
