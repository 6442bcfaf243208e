# Everything a fresh machine needs is Python (3.11 or newer) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

# Least branch coverage of engine/, in percent.
COVERAGE_ENGINE_MIN ?= 90

# pyright and node both come inside wheels; without this it would look for a newer release at each run.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help run dev test lint format docs synapse docs-rules docs-check sim bugs mutants fuzz mutation bench soak clean crash

help:
	@echo "make run         show the incident: two answers become one"
	@echo "make test        format, lint, types, layers, generated docs, all tests"
	@echo "make dev         only set up .venv with the development tools"
	@echo "make crash       kill a gateway 200 times, and read what its users saw"
	@echo "make bench       every bench, into build/bench.json; on a quiet machine (under 10 minutes)"
	@echo "make soak        1,000,000 events over 100,000 chats with random failures"
	@echo "make lint        the checks of make test without the tests"
	@echo "make format      format and fix what can be fixed"
	@echo "make docs        the documentation as a site, in site/"
	@echo "make synapse     the Matrix example against a real homeserver, which is installed first"
	@echo "make docs-rules  write docs/rules and docs/turn.mmd again from the tables"
	@echo "make sim         run the simulator, SEEDS=20000 FROM=0 RUNTIME=cell|actors|sqlite JOBS=1; every table row must be reached"
	@echo "make bugs        plant 75 known bugs; the simulator alone must find each: JOBS=1 FROM=0 BUG=words of its name"
	@echo "make mutation    change the rules at SAMPLE=240 random places; scenarios must notice (cosmic-ray)"
	@echo "make fuzz        feed damaged input to every decoder, SECONDS=60 for each (atheris)"
	@echo "make mutants     break every table row and plant known bugs: tests must notice"
	@echo "make clean       remove everything that make made"

# The package and what it needs at run time.
$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "turnkeeper needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --editable .
	@touch $@

# The tools as well, and the links that show mypy and pyright one package (docs/adr/0002).
$(VENV)/developed: pyproject.toml | $(VENV)/installed
	$(PIP) install --editable '.[dev,examples]'
	ln -sfn ../engine turnkeeper/engine
	ln -sfn ../actors turnkeeper/actors
	ln -sfn ../metrics turnkeeper/metrics
	@touch $(VENV)/installed $@

dev: $(VENV)/developed

run: $(VENV)/installed
	$(BIN)/turnkeeper compare examples/incident.jsonl --set attribution.fold_proof=off

test: lint docs-check
	$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=
	$(BIN)/coverage report --include='engine/*' --fail-under=$(COVERAGE_ENGINE_MIN)

# KILLS and SEED say how often and which story; `make test` kills it 20 times.
KILLS ?= 200
SEED ?= 6

crash: dev
	TURNKEEPER_KILLS=$(KILLS) TURNKEEPER_SEED=$(SEED) $(BIN)/python -m pytest tests/crash

lint: dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

format: dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The site, offline: docs/API.md is filled from the docstrings. A warning is an error.
docs: dev
	test -x $(BIN)/mkdocs || $(PIP) install --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Minutes to install the first time; `make test` does not need it.
synapse: dev
	test -x .synapse/bin/python || $(PYTHON) -m venv .synapse
	.synapse/bin/python -m pip --disable-pip-version-check --quiet install 'matrix-synapse>=1.150'
	TURNKEEPER_SYNAPSE=.synapse/bin/python $(BIN)/python -m pytest tests/examples/synapse.py

docs-rules: dev
	$(BIN)/turnkeeper explain-rules --write docs/rules
	$(BIN)/turnkeeper explain-rules --diagram > docs/turn.mmd

# Generated docs are committed; here they are compared with the tables.
docs-check: dev
	$(BIN)/turnkeeper explain-rules --check docs/rules
	@$(BIN)/turnkeeper explain-rules --diagram | diff docs/turn.mmd - || { echo 'docs/turn.mmd is stale: run "make docs-rules" and commit it'; exit 1; }

# MINUTES=30 instead of SEEDS runs for so long.
SEEDS ?= 20000
FROM ?= 0
MINUTES ?=
RUNTIME ?= cell
FAULTS ?= some
JOBS ?= 1

sim: dev
	$(BIN)/turnkeeper simulate $(if $(MINUTES),--minutes $(MINUTES),--seeds $(SEEDS)) --from $(FROM) \
		--runtime $(RUNTIME) --faults $(FAULTS) --jobs $(JOBS) --all-rows

# BUG=words hunts the bugs whose names hold them.
bugs: dev
	$(BIN)/python -m tests.mutants.bugs --from $(FROM) --jobs $(JOBS) $(BUG)

# SECONDS are for each decoder; what fails is kept in tests/fuzz/kept, where a test replays it.
SECONDS ?= 60
TARGETS ?= wire config scenario transcript openclaw journal

fuzz: dev
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(PIP) install 'atheris>=3.0'
	for target in $(TARGETS); do $(BIN)/python -m fuzz.run $$target -max_total_time=$(SECONDS) || exit 1; done

mutants: dev
	$(BIN)/python -m tests.mutants.run

bench: dev
	$(BIN)/python bench/run.py

soak: dev
	$(BIN)/python bench/soak.py

# SAMPLE=0 tries every mutant; RULES_SEED picks the sample.
SAMPLE ?= 240
RULES_SEED ?= 1

mutation: dev
	@$(BIN)/python -c 'import cosmic_ray' 2>/dev/null || $(PIP) install 'cosmic-ray>=8.4'
	$(BIN)/python -m tests.mutation.run --sample $(SAMPLE) --seed $(RULES_SEED)

clean:
	rm -rf $(VENV) .synapse build dist site htmlcov .coverage *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -f turnkeeper/engine turnkeeper/actors turnkeeper/metrics
