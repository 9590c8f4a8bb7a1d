# Everything a newcomer needs. It takes Python 3.11 or later, make, and bash (Spark's launcher).
#
#   make run      sets up and runs the main job (see README)
#   make cluster  three brokers with failover: breaks them, and measures what it costs
#   make test     sets up and passes every test (PYTHON=python3.13: on that Python)
#   make test-pythons   every test on every Python of pyproject.toml that is here
#   make test-airflow  what belongs to Airflow, in an environment of its own with Airflow
#   make test-celery   Kombu's and Celery's own tests on RocketMQ (ARGS='kombu tasks': some)
#   make native   installs the optional native kernel of the broker; it needs cargo
#   make bench    measures, with the Java broker beside it where Java and Maven are present
#   make test-lake    tests of Delta and Iceberg tables, with what they need (300 MB)
#   make lint     style, types, structure
#   make screenshots  makes the pictures of the web console anew; it needs Chromium
#   make sim      simulated histories: make sim SEED=17, or SEEDS=1..500 SCENARIO=ordered
#   make fuzz     ten minutes of hostile bytes (SECONDS=600; EACH=300: as long for each target)
#   make dependencies  what is installed, and known holes in it
#   make soak     five minutes of kills against real processes, with a report (MINUTES=5)
#   make soak-cluster  a hundred faults of a group of brokers with etcd (FAULTS=100)
#   make dist     builds wheel and source archive from the last commit, into dist
#   make test-dist   the same, installed and run on every Python of pyproject.toml that is here
#   make image    builds the container image, with docker, podman or buildah
#   make test-image  the same, and a broker run in it (ARGS='--python IMAGE': on another base)
#   make docs     the documentation as a site, in site/, with all links checked
#   make upgrade FROM=<commit>  a rolling upgrade from older code, under load (takes etcd)
#   make clean    removes what these made

PYTHON ?= python3
VENV   := .venv
# A Python that was asked for and is not that of .venv has an environment of its own, .venv-3.13.
ifneq ($(origin PYTHON),file)
VERSION_OF := import sys; print("%d.%d" % sys.version_info[:2], sys.executable)
FOUND := $(shell for each in $(PYTHON) $${PYENV_ROOT:-$$HOME/.pyenv}/versions/*/bin/$(PYTHON); do \
	"$$each" -c '$(VERSION_OF)' 2>/dev/null && break; done)
$(if $(FOUND),,$(error There is no Python that runs as $(PYTHON)))
override PYTHON := $(word 2,$(FOUND))
MADE := $(word 1,$(shell .venv/bin/python -c '$(VERSION_OF)' 2>/dev/null))
ifneq ($(filter-out $(word 1,$(FOUND)),$(MADE)),)
VENV := .venv-$(word 1,$(FOUND))
endif
endif
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help screenshots native run cluster test test-pythons test-airflow test-celery test-lake lint format bench sim soak soak-cluster fuzz dependencies dist test-dist image test-image docs upgrade clean

help:
	@sed -n 's/^#   //p' Makefile

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Sprocket needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: pyproject.toml | $(BIN)/python
	@echo "installing what the main job needs (PySpark is large: a minute or two the first time)"
	@$(PIP) install -e '.[spark,jdk]'
	@touch $@

# Failover needs no Spark.
$(VENV)/cluster.stamp: pyproject.toml | $(BIN)/python
	@echo "installing what the cluster needs"
	@$(PIP) install -e '.[etcd]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@echo "installing what the tests need (PySpark is large: a minute or two the first time)"
	@$(PIP) install -e '.[spark,jdk,dev,deploy,docs]'
	@touch $@ $(VENV)/run.stamp

run: $(VENV)/run.stamp
	@$(BIN)/python -m sprocket.demo $(ARGS)

cluster: $(VENV)/cluster.stamp
	@$(BIN)/python -m sprocket.demo.cluster $(ARGS)

# A file of tests runs in one process; `tests/conftest.py` says in how many.
test: $(VENV)/dev.stamp
	@$(BIN)/python -m pytest -n auto --dist loadfile $(ARGS)

# A failure on one Python does not keep the tests from the next; one that is not here is left out.
test-pythons:
	@failed=; \
	for version in $$(sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml); do \
		echo "== Python $$version"; \
		$(MAKE) -s help PYTHON=python$$version >/dev/null || continue; \
		$(MAKE) --no-print-directory test PYTHON=python$$version || failed="$$failed $$version"; \
	done; \
	test -z "$$failed" || { echo "failed on$$failed"; exit 1; }

# Tables of Delta and Iceberg, with kills, read by other engines too.
test-lake: $(VENV)/dev.stamp
	@$(PIP) install -e '.[lake]'
	@SPROCKET_LONG=1 $(BIN)/python -m pytest -n 0 tests/spark/pipelines/tables tests/spark/pipelines/test_apply.py $(ARGS)

# The optional kernel of the broker, in Rust: it needs cargo.
native: $(VENV)/run.stamp
	@$(PIP) install ./native

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin -p sprocket
	@$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 -p sprocket.client -p sprocket.admin -p sprocket.cli -p sprocket.spark -p sprocket.testing
	@$(BIN)/python -m pytest -q tests/test_tidy.py

format: $(VENV)/dev.stamp
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# The pictures of the console in docs/images; it needs Chromium.
screenshots: $(VENV)/dev.stamp
	@mkdir -p docs/images
	@SPROCKET_SCREENSHOTS=docs/images $(BIN)/python -m pytest -q -n 0 tests/console/web/test_chromium.py -k pictures

bench: $(VENV)/dev.stamp
	@$(BIN)/python -m bench $(ARGS)

# One history again (SEED=17), or many (SEEDS=1..500); of all scenarios, or some (SCENARIO="storm lite").
SEED ?= 1
sim: $(VENV)/dev.stamp
	@$(BIN)/python -m sprocket.testing $(if $(SEEDS),--seeds $(SEEDS),--seed $(SEED)) \
		$(foreach name,$(SCENARIO),--scenario $(name)) $(ARGS)

# Real processes that are killed, stopped and started again: MINUTES=5 unless set.
soak: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),5) $(ARGS)

# A group of brokers with etcd; ARGS=--mixed: with RocketMQ's controller and a broker of Java's.
soak-cluster: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.soak.cluster --faults $(or $(FAULTS),100) $(ARGS)

test-airflow: | $(BIN)/python
	@$(BIN)/python -m venv $(VENV)/airflow
	@$(VENV)/airflow/bin/pip install -q -e '.[airflow]' pytest pytest-timeout hypothesis aiohttp
	@AIRFLOW_HOME=$(CURDIR)/$(VENV)/airflow/home $(VENV)/airflow/bin/python -m pytest tests/integrations/airflow $(ARGS)

# Their source archives, with the tests, are downloaded.
test-celery: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.integrations.celery.suites $(ARGS)

fuzz: $(VENV)/dev.stamp
	@$(PIP) install -e '.[fuzz]'
	@$(BIN)/python -m tests.fuzz $(if $(EACH),--each $(EACH),--seconds $(or $(SECONDS),600)) $(ARGS)

dependencies: $(VENV)/dev.stamp
	@$(PIP) install -e '.[security]'
	@$(BIN)/python -m tests.dependencies

dist: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.packaging.matrix --only-build

# A group of brokers with older code is upgraded one by one; ARGS=--back: and back again.
upgrade: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.soak.upgrade --from $(or $(FROM),$(error make upgrade FROM=<commit>)) $(ARGS)

docs: $(VENV)/dev.stamp
	@$(PIP) install -e '.[docs]'
	@$(BIN)/python docs/site/build.py $(ARGS)

image: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.packaging.image --only-build $(ARGS)

test-image: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.packaging.image $(ARGS)

test-dist: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.packaging.matrix

clean:
	rm -rf .venv .venv-3.* sprocket-data build dist site .mypy_cache .ruff_cache .pytest_cache tests/compat/java/target tests/compat/clients5/java/target .bench
