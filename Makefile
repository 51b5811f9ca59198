# Every verb of a developer. `make` alone lists them; what a verb needs, it installs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
WORDS := $(wildcard portal/locale/*/LC_MESSAGES/*.po)
RUN := $(VENV)/bin/python
# Trust what this machine trusts (a company's proxy, say), not only what uv and Node bring along.
CERTS := $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt))
ifneq ($(CERTS),)
export UV_SYSTEM_CERTS ?= 1
export NODE_EXTRA_CA_CERTS ?= $(CERTS)
endif

.PHONY: help install install-dev up demo test check fix bench words clean lock

help:  ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(VENV)/.runtime  ## set up .venv, the front end and the task environment (runtime only)

install-dev: $(VENV)/.dev  ## the same, with what tests and checks need

$(VENV)/bin/uv:
	@bash .ci/venv "$(PYTHON)" $(VENV)

$(VENV)/.runtime: $(VENV)/bin/uv requirements/runtime.lock package-lock.json $(WORDS)
	@bash .ci/install runtime

$(VENV)/.dev: $(VENV)/bin/uv requirements/dev.lock package-lock.json $(WORDS)
	@bash .ci/install dev

up: $(VENV)/.runtime  ## start the whole site on this machine and keep it running
	@exec $(RUN) manage.py up

demo: $(VENV)/.runtime  ## start the site, run an agent on a shipped task, show its score (ONCE=1: end after it)
	@exec $(RUN) manage.py demo $(if $(ONCE),--once)

test: $(VENV)/.dev  ## every test and check, on private servers and free ports
	@bash .ci/system
	@exec $(RUN) -m tests

check: $(VENV)/.dev  ## style, types, import rules, sizes (no tests)
	$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check .
	IB_TEST_HOME=.mypy_cache/instance $(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(RUN) -m pytest -q tests/architecture -p no:cacheprovider

fix: $(VENV)/.dev  ## mend style where a machine can
	$(VENV)/bin/ruff check --fix . ; $(VENV)/bin/ruff format .

bench: $(VENV)/.dev  ## measure everything in benchmarks/ (NAME=actions for one)
	@$(RUN) -m benchmarks $(NAME)

words: $(VENV)/.dev  ## collect the strings of the interface for translation (needs GNU gettext)
	$(RUN) manage.py makemessages -l zh_Hans --settings portal.settings.testing --no-location \
	  --ignore node_modules --ignore .venv --ignore .var --ignore tests

lock: $(VENV)/.dev  ## write the hash-locked requirements anew
	@for file in requirements/runtime requirements/dev tasks/requirements evaluator/requirements; do \
	  $(VENV)/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-header --no-annotate --upgrade $$file.in -o $$file.lock; done

clean:  ## remove what install made (the instance's data stays; it says where)
	@[ ! -x $(RUN) ] || $(RUN) -c 'from pathlib import Path; from portal.settings.instance import instance_of; \
	  print("kept, remove it to start afresh:", instance_of(Path.cwd()).home)'
	rm -rf $(VENV) node_modules
