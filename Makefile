# Two commands on a fresh machine: `make demo` and `make test`. Each sets up .venv by itself and reuses it afterwards; the
# demo installs what it needs, everything else the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo

# One thread a test process: two OpenMP threads on two busy cores run slower than one. Byte code is kept whatever the
# environment says: without it every run rewrites the assertions of all tests in each of its processes.
TEST_ENVIRONMENT := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1

PYTEST := $(TEST_ENVIRONMENT) $(BIN)/python -m pytest -n 2 --dist worksteal
# What takes longer than the quick tests; tests/groups.py says which test belongs where.
GROUPS := process browser cluster model postgres docs faults

.PHONY: demo test test-all $(GROUPS:%=test-%) test-slow test-browser-slowly test-late-threads test-plain-processor test-real faults lint format bench docs docs-check gallery notebooks audit release-check clean

demo: $(DEMO_READY)
	$(BIN)/climassay demo --output demo/report.html

# The quick tests: every room, every command once, a kill, a page in the browser. The plugin of schemathesis, which
# none of them needs, takes seconds to import.
test: $(READY)
	$(PYTEST) --group=quick -p no:schemathesis

# Everything, with as many drawn examples as a test can have.
test-all: $(READY)
	HYPOTHESIS_PROFILE=full $(PYTEST)

$(GROUPS:%=test-%): test-%: $(READY)
	$(PYTEST) --group=$*

# The quick tests of the pages once more, with everything in PostgreSQL.
test-postgres: export CLIMASSAY_TEST_DATABASE := postgresql

# The pages in a browser that is four times slower: a test that looks at a page before it is there fails.
test-browser-slowly: $(READY)
	CLIMASSAY_REQUIRE=browser CLIMASSAY_SLOW_BROWSER=4 $(PYTEST) --group=browser

# The tests with threads that are late: a test that looks before something has happened fails. It takes an hour.
test-late-threads: $(READY)
	PYTHONPATH=tests $(PYTEST) -p late_threads

# The tests with the plainest instructions of an Intel or AMD processor, which round otherwise than those that are taken
# elsewhere: a test that hangs on last digits fails.
PLAIN_PROCESSOR := ATEN_CPU_CAPABILITY=default OPENBLAS_CORETYPE=Nehalem ONEDNN_MAX_CPU_ISA=SSE41 \
	MKL_CBWR=COMPATIBLE NPY_DISABLE_CPU_FEATURES="AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"

test-plain-processor: $(READY)
	$(PLAIN_PROCESSOR) $(TEST_ENVIRONMENT) $(BIN)/python -W ignore -m pytest -n 2 --dist worksteal

# Damage in full: 500 mutated files a reader, every bad input for every command, more kills.
faults: $(READY)
	CLIMASSAY_FAULTS=full $(PYTEST) tests/faults tests/records/test_kill.py tests/corpus/test_collection_killed.py

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

# One pass of each command on a real model: a local one (FOLDER, or a hub id), or a server's (MODEL=openai:NAME URL=...).
test-real: MODEL ?= local:$(FOLDER)
test-real: $(READY)
	CLIMASSAY_REAL_MODEL=$(MODEL) $(if $(URL),CLIMASSAY_REAL_URL=$(URL)) $(TEST_ENVIRONMENT) $(BIN)/python -m pytest -n 0 \
		-p no:schemathesis -m slow tests/real

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix src tests benchmarks
	$(BIN)/ruff format src tests benchmarks

# The reports of docs/gallery and every picture of a page in README and docs, made anew by following the tutorials and the
# demo with the bundled model: some minutes.
gallery: $(READY)
	cd tests && ../$(BIN)/python gallery.py

# The documentation site, into site/; open site/index.html. Every warning is an error.
DOCS_READY := $(VENV)/.ready-docs

docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean

# The tutorials with the bundled model and their outputs; make test-docs follows them with a tiny one in its place.
docs-check: docs
	$(TEST_ENVIRONMENT) $(BIN)/python -m pytest tests/docs
	CLIMASSAY_REQUIRE=site $(TEST_ENVIRONMENT) $(BIN)/python -m pytest tests/docs -m slow

# Both notebooks anew, with their outputs; fails where a cell fails.
notebooks: $(DOCS_READY)
	HF_HUB_OFFLINE=1 $(BIN)/python notebooks/execute.py notebooks/*.ipynb

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install -q -c requirements/constraints.txt -e '.[docs]'
	touch $@

# Known vulnerabilities of the pinned packages, where a source of advisories can be reached; docs/security.md.
AUDIT := build/audit

audit: $(READY)
	test -x $(AUDIT)/bin/pip-audit || { $(PYTHON) -m venv $(AUDIT) && \
		$(AUDIT)/bin/python -m pip install -q -r requirements/audit.txt; } || true
	$(BIN)/python requirements/audit.py $(AUDIT)/bin/pip-audit

# What a release must pass beside .ci/run: sdist, wheel and the demo from it, the examples in docstrings, site, notebooks.
release-check: $(READY)
	.ci/release-check
	$(TEST_ENVIRONMENT) $(BIN)/python -m pytest -m slow tests/test_climassay.py tests/test_demo.py
	$(MAKE) docs-check notebooks

bench: $(READY)
	$(BIN)/python benchmarks/run_all.py

# torch goes first and alone, at the pinned version, so that nothing else can pull in another build of it.
$(DEMO_READY): Makefile pyproject.toml requirements/constraints.txt requirements/bundled.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "climassay needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c requirements/constraints.txt torch
	$(BIN)/python -m pip install -q -c requirements/constraints.txt -e '.[local]'
	$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements/bundled.txt
	touch $@

$(READY): $(DEMO_READY)
	$(BIN)/python -m pip install -q -c requirements/constraints.txt -e '.[local,postgres,ray,web,mcp,topics,inspect,lm-eval,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist demo site .climassay .pytest_cache .mypy_cache .ruff_cache
