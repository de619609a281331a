# make demo   set everything up, compare two sets of digits with planted differences, write reports/demo/
# make lint   ruff, mypy, import-linter
# make test   set everything up, run the tests
# make long   run the tests that compute for many seconds
# make loops  the tests of monitors in real training loops, with real trackers
# make engines  the recipes of docs/scale_engines.md in Ray Data, Daft and Spark (1.5 GB)
# make oldest the fast tests with the oldest versions that pyproject.toml allows, in .venv-oldest (Python 3.11, 8 GB)
# make newest the tests with the newest Python that is installed and the newest packages, in .venv-newest (8 GB)
# make middle the same with Python 3.12, in .venv-middle
# make turn   the name of the one that .ci/run tests now: oldest, middle, newest or wheel, by turns
# make dist   the wheel and the source archive, byte for byte the same for one commit
# make wheel  the demo from the wheel, in an environment of its own with what the wheel asks for alone (.venv-wheel, 8 GB)
# make audit  known weaknesses of what is installed
# make docs   the documentation as a site, in site/
# make pictures   the demo, and the README's pictures of pages
# Needs Python >= 3.11 and a package index; everything goes into .venv.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

# pip compiles each module of an environment by itself, most of which no test imports: four fifths of its CPU time.
QUIETLY := --quiet --disable-pip-version-check --no-compile

IN_PARALLEL := -n auto --maxprocesses 4 --dist worksteal

# The first of these minor versions that runs: on PATH, or where pyenv installs it (its shims on PATH may not run).
python = $(shell for v in $(1); do for p in python3.$$v "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.$$v.*/bin/python3; do \
	"$$p" -c '' 2>/dev/null && echo "$$p" && exit; done; done)
PYTHON_OLDEST ?= $(call python,11)
PYTHON_MIDDLE ?= $(call python,12)
PYTHON_NEWEST ?= $(call python,14 13 12 11)

OLDEST_TESTS := tests/core tests/numerics tests/estimates tests/naming tests/findings tests/feature_maps tests/sketches tests/samples tests/embeddings tests/partitions \
	tests/private/kahm tests/test_dependencies.py

# Of `make newest` and `make middle`; all tests if it is empty.
NEWEST_TESTS :=

AXE := 4.10.3
AXE_SHA256 := 0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292

.PHONY: demo test long loops engines lint oldest middle newest turn dist wheel audit docs bench notebooks browser pictures clean

demo: .venv/.demo
	$(BIN)/finc-eval demo --out reports/demo

test: .venv/.test
	$(BIN)/python -m pytest $(IN_PARALLEL)

long: .venv/.test
	$(BIN)/python -m pytest $(IN_PARALLEL) -m long

loops: .venv/.loops
	$(BIN)/python -m pytest $(IN_PARALLEL) tests/loops tests/monitoring/test_trackers.py

engines: .venv/.engines
	$(BIN)/python -m pytest -m "long or not long" tests/engines

lint: .venv/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

notebooks: .venv/.test
	$(BIN)/python -m pytest $(IN_PARALLEL) -m notebook

browser: .venv/.browser .venv/axe
	$(BIN)/python -m pytest $(IN_PARALLEL) -m browser

oldest: .venv-oldest/.done
	.venv-oldest/bin/python -m pytest -q $(OLDEST_TESTS)

middle newest: %: .venv-%/bin/python
	.venv-$@/bin/python -m pip install $(QUIETLY) --upgrade --upgrade-strategy eager -e ".[test]"
	.venv-$@/bin/finc-eval doctor
	.venv-$@/bin/python -m pytest $(IN_PARALLEL) $(NEWEST_TESTS)

turn: | .venv
	@$(BIN)/python scripts/turn.py "oldest=$(PYTHON_OLDEST)" "middle=$(PYTHON_MIDDLE)" "newest=$(PYTHON_NEWEST)"

dist: .venv/.test
	$(BIN)/python scripts/build.py

wheel:
	rm -rf .venv-wheel build
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir .venv-wheel/wheels .
	.venv-wheel/bin/python -m pip install $(QUIETLY) .venv-wheel/wheels/*.whl
	mkdir .venv-wheel/empty
	cd .venv-wheel/empty && env -u PYTHONPATH ../bin/finc-eval demo --out demo
	test -s .venv-wheel/empty/demo/comparison.html

audit: .venv/.test
	$(BIN)/python -m pip install $(QUIETLY) pip-audit
	$(BIN)/pip-audit --skip-editable

pictures: demo .venv/.browser
	$(BIN)/python scripts/make_screenshots.py

bench: .venv/.demo
	for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv .venv-oldest .venv-middle .venv-newest .venv-wheel build dist site *.egg-info

# axe-core checks pages for who cannot see or use a mouse. It is for tests alone, which are skipped without it.
.venv/axe: | .venv
	@npm pack --silent --pack-destination .venv axe-core@$(AXE) >/dev/null 2>&1 \
		&& echo "$(AXE_SHA256)  .venv/axe-core-$(AXE).tgz" | sha256sum --check --quiet \
		&& mkdir -p $@ && tar xzf .venv/axe-core-$(AXE).tgz -C $@ \
		|| echo "axe-core $(AXE) cannot be had from npm: its tests are skipped"

# trackio 0.43 excludes pillow 13, which other packages of the environment may have, and runs with it: it is installed
# without its dependencies, and what it needs besides those of the extra is named. Its tests are skipped without it.
.venv/.loops: pyproject.toml | .venv
	$(BIN)/python -m pip install $(QUIETLY) -e ".[test,loops]" \
		brotli "gradio-client>=2" "orjson>=3" python-multipart "uvicorn[standard]>=0.30"
	$(BIN)/python -m pip install $(QUIETLY) --no-deps "trackio>=0.43"
	@touch $@

.venv/.engines: pyproject.toml | .venv
	$(BIN)/python -m pip install $(QUIETLY) -e ".[test,engines]"
	@touch $@

.venv:
	@test -n "$(PYTHON)" || { echo "finc-eval needs Python 3.11 or newer: none found on PATH" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv-oldest/.done: pyproject.toml constraints-oldest.txt
	@test -n "$(PYTHON_OLDEST)" || { echo "make oldest needs Python 3.11: none found" >&2; exit 1; }
	"$(PYTHON_OLDEST)" -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install $(QUIETLY) -c constraints-oldest.txt -e . pytest pandas pyarrow
	@touch $@

.venv-middle/bin/python: PYTHON_OF = $(PYTHON_MIDDLE)
.venv-newest/bin/python: PYTHON_OF = $(PYTHON_NEWEST)
.venv-middle/bin/python .venv-newest/bin/python: .venv-%/bin/python:
	@test -n "$(PYTHON_OF)" || { echo "make $*: no such Python was found" >&2; exit 1; }
	"$(PYTHON_OF)" -m venv .venv-$*

.venv/.demo: pyproject.toml | .venv
	$(BIN)/python -m pip install $(QUIETLY) -e .
	@touch $@

# The extras of .ci/run at once: pip looks at all that is installed each time.
.venv/.ci: pyproject.toml | .venv
	$(BIN)/python -m pip install $(QUIETLY) -e ".[test,lint,docs,browser]"
	@touch .venv/.test .venv/.lint .venv/.docs .venv/.browser $@

.venv/.test .venv/.lint .venv/.docs .venv/.browser: .venv/.%: pyproject.toml | .venv
	$(BIN)/python -m pip install $(QUIETLY) -e ".[$*]"
	@touch $@
