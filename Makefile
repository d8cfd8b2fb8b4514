# Each target does its own set-up in .venv from constraints.txt; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SET_UP_FROM := pyproject.toml setup.py constraints.txt
LOCK_VENV := .venv-lock
ENGINE ?= $(HOME)/.cache/sar_eval/engine
FLOORS_VENV := .venv-floors
FLOORS_PIP := $(FLOORS_VENV)/bin/python -m pip --disable-pip-version-check --quiet install -c $(FLOORS_VENV)/floors.txt
UNIT_EXTRAS := report,cluster,px4,dev,oracle
MESSAGES := $(wildcard ros2_ws/src/sar_msgs/msg/*.msg) ros2_ws/src/sar_msgs/CMakeLists.txt ros2_ws/src/sar_msgs/package.xml
# The ROS 2 wheels exist for one platform; beside a sourced ROS 2 installation they would mix with it.
ifneq ($(shell uname -sm),Linux x86_64)
NO_ROS := the ROS 2 wheels exist for Linux on x86-64 only; install ROS 2 Jazzy and build ros2_ws with colcon
else ifneq ($(AMENT_PREFIX_PATH),)
NO_ROS := a ROS 2 installation is sourced; build ros2_ws with colcon and source its install/setup.sh
else
ROS_SET_UP := $(VENV)/.messages
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help eval ros ros-note test quick containers lint types bench sbom lock floors clean

help: ## show this
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

eval: $(VENV)/.eval ## Stage 1, median seeds, Stage 2 in the embedded simulator, report; FULL=1 as in results/
	$(BIN)/sar-eval eval $(if $(FULL),--full --out runs/full)

ros: $(ROS_SET_UP) ros-note ## ROS 2 in .venv, our messages built for it; nothing to do where ROS 2 is installed

ros-note:
	@$(if $(NO_ROS),echo "make ros: $(NO_ROS)",:)

test: $(VENV)/.dev ## style, types and every test; the simulator is compiled beside the checks
	$(BIN)/sar-eval run --duration-s 1 --no-bag >/dev/null & compiling=$$!; \
	$(MAKE) --no-print-directory lint types ros || { kill $$compiling; exit 1; }; wait $$compiling
	$(BIN)/pytest -n logical --dist loadfile -m 'not alone'
	$(BIN)/pytest -m 'alone and not thorough'

quick: $(VENV)/.dev lint types ## style, types and the quick unit tests, about two minutes; before a commit
	$(BIN)/pytest -q -n logical --dist loadfile -m 'not alone and not slow' tests/unit

containers: $(VENV)/.dev ## every test on a container engine (root, Debian: one is got where none answers), 15 minutes
	eval "$$(scripts/engine.sh start $(ENGINE))" && $(BIN)/pytest -s tests/containers

lint: $(VENV)/.dev ## style only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev ## types only
	$(BIN)/mypy
	$(BIN)/mypy scripts benchmarks

bench: $(VENV)/.dev ## every speed figure, beside its peer
	$(BIN)/sar-eval bench

sbom: $(VENV)/.dev ## write sbom.cdx.json: what a default install brings in
	$(BIN)/python scripts/sbom.py sbom.cdx.json

lock: ## take the newest versions pyproject.toml allows into constraints.txt
	rm -rf $(LOCK_VENV)
	$(PYTHON) -m venv $(LOCK_VENV)
	$(LOCK_VENV)/bin/python -m pip --disable-pip-version-check --quiet install -e '.[report,cluster,bench,px4,dev,oracle,raytracer,ros]'
	{ sed -n '/^#/p' constraints.txt; $(LOCK_VENV)/bin/python scripts/lock.py; } > constraints.new
	mv constraints.new constraints.txt
	rm -rf $(LOCK_VENV)

floors: $(FLOORS_VENV)/.made ## unit tests with the lowest versions pyproject.toml allows, numpy 1.26 as on Ubuntu 24.04
	$(FLOORS_VENV)/bin/pytest -n logical --dist loadfile -m 'not alone' tests/unit
	$(FLOORS_VENV)/bin/pytest -m alone tests/unit

clean: ## remove the environment, caches and builds; flown bags stay
	rm -rf $(VENV) $(LOCK_VENV) $(FLOORS_VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis ros2_ws/build ros2_ws/install ros2_ws/log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed, $(PYTHON) is {v.major}.{v.minor}: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(FLOORS_VENV)/.made: $(SET_UP_FROM) scripts/floors.py
	$(PYTHON) -m venv --clear $(FLOORS_VENV)
	$(PYTHON) scripts/floors.py $(UNIT_EXTRAS) > $(FLOORS_VENV)/floors.txt
	$(FLOORS_PIP) setuptools
	$(FLOORS_PIP) --no-build-isolation -e '.[$(UNIT_EXTRAS)]'
	@touch $@

$(VENV)/.eval: $(VENV)/.made $(SET_UP_FROM)
	$(PIP) install -c constraints.txt setuptools
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[report]'
	@touch $@

$(VENV)/.dev: $(VENV)/.eval
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[report,cluster,bench,px4,dev,oracle]'
	@touch $@

$(VENV)/.ros: $(VENV)/.eval
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[report,ros]'
	@touch $@

$(VENV)/.messages: $(VENV)/.ros $(MESSAGES)
	$(BIN)/sar-eval msgs build
	@touch $@
