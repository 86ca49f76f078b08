# Everything a contributor runs. `make help` lists it. No target needs anything installed but python3 >= 3.11, git and make.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first interpreter that is new enough; PYTHON=... on the command line overrides it.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	"$$name" -c '$(NEW_ENOUGH)' 2>/dev/null && { echo "$$name"; break; }; done)

.DEFAULT_GOAL := help
.PHONY: help run venv test unit interop lint format gen check-gen bench wheel-test clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(STAMP) ## install into .venv, then show the server at work on this folder
	$(BIN)/hanzo-mcp demo

venv: $(STAMP) ## make .venv and install hanzo-mcp (editable) with the development tools

test: $(STAMP) ## every test (the first run installs foreign MCP clients under .cache)
	$(BIN)/pytest tests

unit: $(STAMP) ## the unit tests only
	$(BIN)/pytest tests/unit

interop: $(STAMP) ## foreign MCP clients and suites against this server
	$(BIN)/pytest tests/interop

lint: $(STAMP) ## ruff, formatting, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(STAMP) ## format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

gen: $(STAMP) ## write hanzo_mcp/contract.json and tools/*.json from the tools
	$(BIN)/python -m hanzo_mcp.docgen

check-gen: $(STAMP) ## fail when a generated file is not up to date
	$(BIN)/python -m hanzo_mcp.docgen --check

bench: $(STAMP) ## measure start-up, calls and the door beside other servers
	$(BIN)/python -m bench

# The wheel, in an environment that never saw this folder, from another directory and an empty HOME.
wheel-test: $(STAMP) ## build the wheel, install it into an empty environment and use it there
	@set -eu; \
	work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	mkdir "$$work/home" "$$work/elsewhere"; \
	$(BIN)/python -m hatchling build -t wheel -d "$$work/dist"; \
	$(BIN)/python -m venv "$$work/venv"; \
	"$$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$work"/dist/*.whl; \
	cd "$$work/elsewhere"; \
	export HOME="$$work/home" HANZO_MCP_DOOR=off; \
	unset HANZO_API_KEY XDG_CONFIG_HOME XDG_CACHE_HOME XDG_STATE_HOME PYTHONPATH; \
	"$$work/venv/bin/hanzo-mcp" --version; \
	"$$work/venv/bin/hanzo-mcp" call think '{"thought":"x"}'; \
	echo "wheel-test: ok"

clean: ## remove build products and tool caches (.venv and .cache stay)
	rm -rf dist build .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path ./$(VENV) -prune -o -path ./.cache -prune -o -path ./.git -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] || { echo "no Python >= 3.11 found; install one or say make PYTHON=/path/to/python3"; exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
