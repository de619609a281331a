# make demo   set everything up, compare two sets of digits with planted differences, write reports/demo/
# make lint   ruff, mypy, import-linter, and which records of benchmarks are not of today's code
# make test   set everything up, run the tests
# Needs Python >= 3.11 and a package index; everything goes into .venv.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

.PHONY: demo test lint bench notebooks browser clean

demo: .venv/.demo
	$(BIN)/finc-eval demo --out reports/demo

test: .venv/.test
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

lint: .venv/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python benchmarks/_stale.py

notebooks: .venv/.test
	$(BIN)/python -m pytest -m notebook

browser: .venv/.browser
	$(BIN)/python -m pytest -m browser

bench: .venv/.demo
	for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv build dist *.egg-info

.venv:
	@test -n "$(PYTHON)" || { echo "finc-eval needs Python 3.11 or newer: none found on PATH" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.demo: pyproject.toml | .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/.test .venv/.lint .venv/.browser: .venv/.%: pyproject.toml | .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@touch $@
