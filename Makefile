# One command to try SUNRISE, one to test it; each sets up everything it needs.
VENV   := .venv
PY     := $(VENV)/bin/python
PEERS  := .venv-peers
COMPAT := .venv-compat
PYTHON ?= python3
JOBS   ?= 2
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax

.PHONY: help demo test test-compat slow check soak bench lock keywords clean
help:            ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

# A stamp names the lock it was installed from: an unchanged lock installs nothing.
define install
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is missing; install Python 3.11 or 3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' \
	  || { echo "error: Python 3.11 or 3.12 is needed; say which with make PYTHON=python3.12"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "error: no venv could be made; on Debian: apt-get install python3-venv"; exit 1; }
	@test -x $(VENV)/bin/uv || $(PY) -m pip install --quiet --disable-pip-version-check uv==0.13.7
	$(VENV)/bin/uv pip install --quiet --compile-bytecode --python $(PY) --require-hashes -r $(1)
	$(VENV)/bin/uv pip install --quiet --python $(PY) --no-deps -e .
	@touch $@
endef

$(VENV)/core.stamp: locks/core.txt pyproject.toml
	$(call install,locks/core.txt)
$(VENV)/dev.stamp: locks/dev.txt pyproject.toml
	$(call install,locks/dev.txt)
	@touch $(VENV)/core.stamp

demo: $(VENV)/core.stamp  ## train five agents on Pendulum, print a table, draw the result
	$(PY) -m sunrise demo

test: $(VENV)/dev.stamp   ## format, lint, types and every fast test
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(PY) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not slow"

slow: $(VENV)/dev.stamp   ## the rest of the tests: learning, kills, real experiments
	$(PY) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m slow

test-compat: $(COMPAT)/stamp  ## Stable-Baselines3's and rl-zoo3's own scripts and callbacks on our models
	$(COMPAT)/bin/python -m pytest tests/compat

# What we are compatible with lives apart, as the peers do. torch comes first: alone it is taken without what a GPU needs.
$(COMPAT)/stamp: locks/dev.txt tests/compat/requirements.txt pyproject.toml | $(VENV)/dev.stamp
	test -x $(COMPAT)/bin/python || $(PYTHON) -m venv $(COMPAT)
	$(VENV)/bin/uv pip install --quiet --python $(COMPAT)/bin/python --require-hashes -r locks/dev.txt
	$(VENV)/bin/uv pip install --quiet --python $(COMPAT)/bin/python --no-deps -e .
	$(COMPAT)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(COMPAT)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/compat/requirements.txt
	@touch $@

check: test slow          ## both: what CI runs

soak: $(VENV)/dev.stamp   ## kill real runs at random and at every file event, damage files 10,000 times, compare every bit
	SUNRISE_ATTACKS=10000 SUNRISE_FILE_EVENTS=1 SUNRISE_COUNTS=benchmarks/results/attack.json $(PY) -m pytest tests/attack
	$(PY) benchmarks/readme.py
	SUNRISE_KILLS=200 $(PY) -m pytest tests/runs/test_kills.py

bench: $(VENV)/core.stamp $(PEERS)/stamp  ## speed against PyTorch and Stable-Baselines3
	$(PY) benchmarks/run.py

# The peers live apart: torch is never a dependency of ours.
$(PEERS)/stamp: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.txt
	@touch $@

lock:                     ## compile the locks anew from pyproject.toml
	$(VENV)/bin/uv pip compile pyproject.toml --universal --generate-hashes --no-header -q -o locks/core.txt
	$(VENV)/bin/uv pip compile pyproject.toml --all-extras --universal --generate-hashes --no-header -q -o locks/dev.txt

keywords: $(VENV)/dev.stamp  ## write the agents' keywords as types anew, from the settings
	$(PY) -m sunrise.config.typed > src/sunrise/agents/classes.pyi.part
	mv src/sunrise/agents/classes.pyi.part src/sunrise/agents/classes.pyi

clean:                    ## remove what make made
	rm -rf $(VENV) $(PEERS) $(COMPAT) .cache .mypy_cache .ruff_cache .pytest_cache build dist demo
