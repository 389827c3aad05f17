# The commands of this repository. `make help` lists them.

SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
VAR := $(or $(STRATA_VAR_DIR),var)

# Options of a person, such as -x; EVAL=, DOCS=, CORPUS= and SIZE= reach the
# benchmarks by themselves, since make puts them into the environment.
ARGS ?=

# How many processes share the tests, each with its own database and model server.
WORKERS ?= 2

# Progress appears line by line, also through a pipe; nothing is ever asked.
export PYTHONUNBUFFERED := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help run test check bench-quality bench-answers bench-search bench-ingest bench-turns bench-memory \
	bench-ask bench-journey bench-extraction bench-mutations bench-scrubbing bench-visibility faults doctor clean chromium

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/.installed ## Install, prepare and run the portal, with demo content
	@$(PY) -m strata_portal.secret_key "$(VAR)"
	@exec $(PY) manage.py quickstart

test: $(VENV)/.installed-dev chromium ## Run the tests; ARGS="tests/retrieval -x" for a part
	@if command -v chromium >/dev/null 2>&1; then \
		exec $(PY) -m pytest -n $(WORKERS) --dist worksteal $(ARGS); \
	elif [ "$$STRATA_REQUIRE_BROWSER" = true ]; then \
		echo "There is no Chromium, and the browser tests must run." >&2; exit 1; \
	else \
		$(PY) -m pytest -n $(WORKERS) --dist worksteal --ignore=tests/browser $(ARGS) && \
		echo "All but the browser tests ran: there is no Chromium on this machine."; \
	fi

check: export SECRET_KEY := the-checks-sign-nothing-so-this-key-opens-nothing-0123456789
check: $(VENV)/.installed-dev ## Lint, format, types, imports, templates, system checks, migrations
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	find templates -name '*.html' -exec $(VENV)/bin/djade --target-version 5.2 --check {} +
	find templates -name '*.html' -exec $(VENV)/bin/djhtml --tabwidth 2 --check {} +
	$(PY) manage.py check --fail-level WARNING
	$(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

bench-quality: $(VENV)/.installed ## Recall and ranking; EVAL=, DOCS=, SIZE=small
	@$(PY) -m benchmarks.quality $(ARGS)

bench-answers: $(VENV)/.installed ## Answers and refusals of asks; EVAL=, DOCS=, SIZE=small, ONLY=docs
	@$(PY) -m benchmarks.answers $(ARGS)

bench-journey: $(VENV)/.installed-dev chromium ## Upload to highlighted citation, against a running portal
	@$(PY) -m benchmarks.journey $(ARGS)

bench-ask: $(VENV)/.installed ## Stages of an ask at 10,000 passages; SIZE=small
	@$(PY) -m benchmarks.asking $(ARGS)

bench-search: $(VENV)/.installed ## Speed and recall of searches at 10k and 100k passages
	@$(PY) -m benchmarks.search $(ARGS)

bench-ingest: $(VENV)/.installed ## Speed of the ingest against bare encoding
	@$(PY) -m benchmarks.ingest $(ARGS)

bench-turns: $(VENV)/.installed-dev ## Many agents' searches at once: are citations numbered right?
	@$(PY) -m benchmarks.turns $(ARGS)

bench-memory: $(VENV)/.installed ## Memory of web and worker
	@$(PY) -m benchmarks.memory $(ARGS)

bench-extraction: $(VENV)/.installed ## What the readers of PDF, DOCX and the rest find; CORPUS=
	@$(PY) -m benchmarks.extraction $(ARGS)

bench-mutations: $(VENV)/.installed-dev ## True drafts verified, and mutants of them flagged
	@$(PY) -m benchmarks.mutations $(ARGS)

bench-scrubbing: $(VENV)/.installed-dev ## Bank details left and taken by mistake; DOCS=, SIZE=small
	@$(PY) -m benchmarks.scrubbing $(ARGS)

bench-visibility: $(VENV)/.installed-dev ## Pages of access at 10,000 readers × 1,000 knowledge bases
	@$(PY) -m benchmarks.visibility $(ARGS)

faults: $(VENV)/.installed-dev ## Kill, cut and fill up on purpose; SIZE=full for the long run
	@$(PY) -m benchmarks.faults $(ARGS)

doctor: $(VENV)/.installed ## Say what is wrong with this installation, and what to do
	@$(PY) -m strata_portal.secret_key "$(VAR)"
	@$(PY) manage.py doctor

clean: ## Remove the virtual environment and caches; data in var stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -not -path './var/*' -prune -exec rm -rf {} +

# --- Installation -------------------------------------------------------------

$(VENV)/bin/python:
	@python=; \
	for each in python3.11 python3; do \
		if $$each -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1; then \
			python=$$each; break; \
		fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "Strata Portal needs Python 3.11, and there is none as python3.11 or python3. Install it (Debian: apt-get install python3.11 python3.11-venv) and run make again." >&2; \
		exit 1; \
	fi; \
	echo "Making a virtual environment in $(VENV) …"; \
	if $$python -c 'import ensurepip' >/dev/null 2>&1; then \
		$$python -m venv --clear $(VENV); \
	elif $$python -m pip --version >/dev/null 2>&1; then \
		$$python -m venv --clear --without-pip $(VENV) && \
		$$python -m pip --python $(VENV)/bin/python install --quiet pip; \
	else \
		echo "This Python cannot make a virtual environment. Install its venv module (Debian: apt-get install python3.11-venv) and run make again." >&2; \
		exit 1; \
	fi

# A stamp is younger than the list that was installed, so that a second run is quick.
$(VENV)/.installed: requirements.txt | $(VENV)/bin/python
	@echo "Installing what requirements.txt lists; the first time this takes minutes …"
	@$(PY) -m pip install --requirement requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed | $(VENV)/bin/python
	@echo "Installing the tools of requirements-dev.txt …"
	@$(PY) -m pip install --requirement requirements-dev.txt
	@touch $@

chromium:
	@if ! command -v chromium >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "Installing Chromium for the browser tests …"; \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 \
		|| echo "Chromium could not be installed."; \
	fi
