# Everything a fresh machine with Python 3.11+ and make needs; nothing else has to be installed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Two threads of linear algebra on top of two test processes only get in each other's way.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: help demo test check fix slow bench figures docs clean

help:
	@echo "make demo     calibrate and privately release the bundled LSAT answers"
	@echo "make test     the fast tests (what continuous integration runs)"
	@echo "make check    style, types, documentation and architecture"
	@echo "make fix      let ruff repair what it can"
	@echo "make slow     statistical tests that take minutes"
	@echo "make bench    timings and accuracy against other tools"
	@echo "make figures  pictures and tables of the theory and the paper"
	@echo "make docs     check that every documented command and example runs"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/discreet demo --force

# Pages are tested in a real browser. Where nobody may install one, those tests skip and say so.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing chromium" && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no chromium here: the browser tests will skip"

test: $(READY) browser
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py tests/test_public_api.py tests/test_documents.py

fix: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What only the slow tests need: Spark (with a Java to run it) and a PostgreSQL server to talk to.
SLOW_READY := $(VENV)/.slow-ready
$(SLOW_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,spark,postgres]'
	touch $@

.PHONY: servers
servers:
	@{ command -v java >/dev/null && ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; } || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing Java and PostgreSQL" && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends default-jre-headless postgresql >/dev/null; } || \
	  echo "no Java or no PostgreSQL server here: their tests will skip"

slow: $(SLOW_READY) servers
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 -m slow

bench: $(READY)
	$(BIN)/python -m bench

figures: $(READY)
	$(BIN)/python -m experiments --quick

docs: $(READY)
	$(BIN)/python -m pytest tests/test_documents.py

clean:
	rm -rf $(VENV) build dist demo results .pytest_cache .mypy_cache .ruff_cache .hypothesis
