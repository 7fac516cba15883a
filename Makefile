# `make run`: rehearse and commit a pick in the simulated cell. `make test`: everything CI runs.
# Both do all set-up on a fresh Debian machine with python3 (3.11 or 3.12), make and a network.
PYTHON ?= python3
PY := .venv/bin/python
RUN_FLAGS ?=
# Debian's libraries for drawing without a screen, and the virtual screen that the tests use.
PACKAGES := python3-venv libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libglib2.0-0 xvfb xdotool

.PHONY: run test check-long lint types imports unit clean

run: .venv/ready
	$(PY) run_sim.py --demo $(RUN_FLAGS)

test: lint types imports unit

lint: .venv/ready
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .

types: .venv/ready
	.venv/bin/mypy

imports: .venv/ready
	.venv/bin/lint-imports

# What keeps the wall's time runs alone: beside other tests it would be late.
unit: .venv/ready
	$(PY) -m pytest -n 2 --dist loadfile -m "not long and not hardware and not realtime"
	$(PY) -m pytest -m "realtime and not long"

check-long: .venv/ready
	HYPOTHESIS_PROFILE=fresh $(PY) -m pytest -n 2 --dist loadfile \
	  -m "not long and not hardware and not realtime"
	$(PY) -m pytest -m "long"

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' \
	  || { echo "Forearm needs Python 3.11 or 3.12; set PYTHON=/path/to/python3.12"; exit 1; }
	@missing=$$(for p in $(PACKAGES); do \
	    dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	  if [ -n "$$missing" ] && command -v apt-get >/dev/null; then \
	    if [ "$$(id -u)" = 0 ]; then \
	      apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; \
	    else echo "Please install: sudo apt-get install" $$missing; fi; \
	  fi
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --upgrade pip
	.venv/bin/pip install --quiet -c constraints.txt -e ".[dev,bench]"
	@touch .venv/ready

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .numba_cache dist
