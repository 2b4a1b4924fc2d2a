# make demo       see ELMo work on real English text
# make test       all checks: ruff, mypy, pytest, and the built wheel in a fresh environment
# make test-all   the same, with the tests that take long (marked `slow`); installs Ray and Spark too
# make lint | unit | smoke   one of the checks
# make tour       the notebook with the outputs that its cells have today
# make wheels     what is published: a wheel for each system, and the source distribution
# make docs       the documentation as a site, in build/site
# make fuzz       damaged files and odd shapes, for MINUTES=2
# make clean      remove what the others made, the virtual environment too
#
# PYTHON=python3.12   the interpreter, 3.10 or newer (default: that of .venv, then python3, …)
# TORCH_INDEX=        take PyTorch from pip's usual indexes, with CUDA where those have it

VENV ?= .venv
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

BIN := $(VENV)/bin
ifndef PYTHON
SUITABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))
PYTHON := $(shell for p in $(BIN)/python python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	"$$p" -c '$(SUITABLE)' 2>/dev/null && echo "$$p" && break; done)
endif
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
PYTHON_VERSION := $(if $(PYTHON),$(shell $(PYTHON) -c '$(VERSION)'))
ifneq ($(filter 2.% 3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9,$(PYTHON_VERSION)),)
$(error $(PYTHON) is Python $(PYTHON_VERSION); spacy-elmo needs 3.10 or newer, such as PYTHON=python3.12)
endif

# PyTorch's own index has builds without CUDA. Behind a firewall it may be out of reach, and pip
# would try for minutes: it is named only if it answers.
ANSWERS = import urllib.request; urllib.request.urlopen("$(TORCH_INDEX)/torch/", timeout=10)
TORCH_ARGS = $(if $(TORCH_INDEX),$(shell $(BIN)/python -c '$(ANSWERS)' >/dev/null 2>&1 \
	&& echo --extra-index-url $(TORCH_INDEX)))
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt $(TORCH_ARGS)

# Stamps: what they stand for is redone when one of these changes.
MADE := $(VENV)/.made-with-$(PYTHON_VERSION)
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_SLOW := $(VENV)/.installed-slow
INSTALLED_DOCS := $(VENV)/.installed-docs
INSTALLED_RELEASE := $(VENV)/.installed-release
METADATA := pyproject.toml constraints.txt spacy_elmo/about.py
# The library in place is built again when its source is newer.
KERNEL_BUILT := $(VENV)/.kernel
KERNEL_SOURCE := setup.py $(wildcard spacy_elmo/bilm/kernel/*.[ch]) spacy_elmo/bilm/kernel/source.py

MINUTES ?= 2

# Two files of tests at a time, each on one core; those of few tests, which may be slow, not last.
PYTEST = $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

.NOTPARALLEL:
.PHONY: help demo test test-all lint unit unit-all smoke wheels docs fuzz clean

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

demo: $(INSTALLED) $(KERNEL_BUILT)
	$(BIN)/python -m spacy elmo demo $(ARGS)

.PHONY: tour
tour: $(INSTALLED_DEV) $(KERNEL_BUILT)
	$(BIN)/python docs/run_tour.py

test: lint unit smoke

test-all: lint unit-all smoke

lint: $(INSTALLED_DEV)
	$(BIN)/python -m ruff check
	$(BIN)/python -m mypy spacy_elmo

unit: $(INSTALLED_DEV) $(KERNEL_BUILT)
	$(PYTEST) -m "not slow" $(ARGS)

unit-all: $(INSTALLED_SLOW) $(KERNEL_BUILT)
	$(PYTEST) $(ARGS)

# The wheel is built from the source distribution, so that both are known to be whole.
smoke: $(INSTALLED_DEV)
	rm -rf dist
	$(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/python -m twine check --strict dist/*
	PIP_ARGS='$(TORCH_ARGS)' tests/smoke_wheel.sh $(BIN)/python dist/*.whl

# A wheel for each system that PyTorch has wheels for, one without the library, and the source
# distribution, in dist/; the same bytes in whichever folder they are built.
TARGETS = $(shell $(BIN)/python -c 'from runpy import run_path; print(*run_path("setup.py")["TARGETS"])')
BUILD = $(BIN)/python -m build --no-isolation --outdir dist

wheels: $(INSTALLED_RELEASE)
	rm -rf dist
	$(BUILD) --sdist . >/dev/null
	for target in $(TARGETS) any; do \
		SPACY_ELMO_TARGET=$$target $(BUILD) --wheel . >/dev/null || exit 1; done
	$(BIN)/python -m twine check --strict dist/*

docs: $(INSTALLED_DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "Open build/site/index.html"

fuzz: $(INSTALLED_DEV) $(KERNEL_BUILT)
	$(BIN)/python benchmarks/reliability/hostile.py --minutes $(MINUTES) $(ARGS)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@test -n "$(PYTHON_VERSION)" || { echo "No Python 3.10 or newer with venv was found$(if $(PYTHON), as '$(PYTHON)')" \
		"(Debian: apt install python3-venv). Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@test "$$($(BIN)/python -c '$(VERSION)' 2>/dev/null)" = "$(PYTHON_VERSION)" \
		|| $(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(INSTALLED): $(MADE) $(METADATA)
	@echo "Installing into $(VENV); the first time this takes a few minutes"
	$(PIP_INSTALL) --editable '.[viz]'
	@touch $@

$(INSTALLED_DEV): $(MADE) $(METADATA)
	@echo "Installing into $(VENV); the first time this takes a few minutes"
	$(PIP_INSTALL) --editable '.[dev]'
	@touch $(INSTALLED) $@

$(INSTALLED_SLOW): $(INSTALLED_DEV)
	$(PIP_INSTALL) --editable '.[dev,test-slow]'
	@touch $@

# The tools alone, the extra `release`, from the package index: fewer packages may run code here.
$(INSTALLED_RELEASE): TORCH_ARGS =
$(INSTALLED_RELEASE): $(MADE) $(METADATA)
	$(PIP_INSTALL) build hatchling hatch-fancy-pypi-readme twine ziglang
	@touch $@

$(KERNEL_BUILT): $(MADE) $(KERNEL_SOURCE)
	$(BIN)/python setup.py
	@touch $@

$(INSTALLED_DOCS): $(MADE) $(METADATA)
	$(PIP_INSTALL) --editable '.[docs]'
	@touch $@
