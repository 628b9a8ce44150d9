# Everything a fresh machine with Python 3.11+ and make needs; nothing else has to be installed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Python 3.11 has the last versions that were made for it; the others have the newest.
PINS   := $(shell $(PYTHON) -c 'import sys; print("constraints" + "-newest" * (sys.version_info >= (3, 12)) + ".txt")')
# Threads of linear algebra on top of test processes only get in each other's way.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: help demo studio test check second doctest fix slow bench figures pictures docs site windows clean

help:
	@echo "make demo     calibrate and privately release a bundled questionnaire, and say what to open"
	@echo "make studio   the whole workflow in a browser, on this machine"
	@echo "make test     style, types, doctests, the fast tests, a short run on a second Python (what CI runs)"
	@echo "make check    style and types alone"
	@echo "make fix      let ruff repair what it can"
	@echo "make slow     statistical tests that take minutes"
	@echo "make bench    timings and accuracy against other tools"
	@echo "make figures  pictures and tables of the theory and the paper"
	@echo "make pictures pictures of the documents, drawn and photographed anew"
	@echo "make docs     check that every documented command and example runs"
	@echo "make windows  the fast tests with what Windows lacks hidden"
	@echo "make site     the documentation as a site, in build/site"

PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# Dependency groups need pip 25.1, which an older Python does not bring.
$(READY): pyproject.toml $(PINS) | $(BIN)/python
	$(PIP) install 'pip>=25.1'
	$(PIP) install -c $(PINS) -e . --group dev
	touch $@

# The demonstration needs the library and its pictures, not what the tests need.
DEMO_READY := $(VENV)/.demo-ready
$(DEMO_READY): pyproject.toml $(PINS) | $(BIN)/python
	$(PIP) install -c $(PINS) -e '.[report]'
	touch $@

demo: $(DEMO_READY)
	$(BIN)/discreet demo --force

STUDIO_READY := $(VENV)/.studio-ready
$(STUDIO_READY): pyproject.toml $(PINS) | $(BIN)/python
	$(PIP) install -c $(PINS) -e '.[studio,files]'
	touch $@

studio: $(STUDIO_READY)
	$(BIN)/discreet studio

# Pages are tested in a real browser. Where nobody may install one, those tests skip and say so.
.PHONY: browser
browser:
	@{ command -v chromium || command -v chromium-browser; } >/dev/null && command -v chromedriver >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing chromium and its driver" && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } || \
	  echo "no chromium or no chromedriver here: the browser tests will skip"

# The engines for clusters and databases are tested on real ones: Spark needs a Java to run on.
.PHONY: servers
servers: browser
	@{ command -v java >/dev/null && ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; } || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing Java and PostgreSQL" && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends default-jre-headless postgresql >/dev/null; } || \
	  echo "no Java or no PostgreSQL server here: their tests will skip"

# Style and types, examples in the code and a second Python take turns on two cores; then both run
# the tests.
test: $(READY) servers
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target second check doctest
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

second: $(READY)
	@$(BIN)/python -c 'import platform, numpy; print("first Python:", platform.python_version() + ",", "numpy", numpy.__version__)'
	$(TEST_ENV) $(BIN)/python -m tools.second_python

doctest: $(READY)
	$(TEST_ENV) $(BIN)/python -m pytest --doctest-modules src/discreet

fix: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

slow: $(READY) servers
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 -m slow

# Engines that need a server of their own are left to `make test`.
windows: $(READY)
	PYTHONPATH=tests/whole/windows $(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadfile $(addprefix --ignore=tests/, \
	  readers/test_spark.py readers/test_postgres.py studio/test_studio_browser.py whole)

bench: $(READY)
	$(BIN)/python -m bench

figures: $(READY)
	$(BIN)/python -m experiments --quick

# Measured results take up to 41 minutes each: `python -m tools.pictures --old` names those to redraw.
pictures: $(READY) browser
	$(BIN)/python -m tools.pictures
	$(BIN)/python -m tools.shots

docs: $(READY)
	$(BIN)/python -m pytest tests/whole/test_documents.py

SITE_READY := $(VENV)/.site-ready
$(SITE_READY): $(READY)
	$(PIP) install -c $(PINS) --group site
	touch $@

site: $(SITE_READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html -c docs/site . build/site

clean:
	rm -rf .venv* build dist demo results .pytest_cache .mypy_cache .ruff_cache .hypothesis
