# Thin: each target is a line that a person could type. `make run` and `make test` set up .venv on first use.

PYTHON ?= python3
CORES ?= 4
PIP := .venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock.txt
IN_VENV := . .venv/bin/activate &&
IN_TWO := --numprocesses 2 --dist loadgroup --no-loadscope-reorder

# Threads of torch that wait for work sleep, so that they do not slow down others on the same cores.
export OMP_WAIT_POLICY := passive

.PHONY: run test test-fast test-slow lint format bench clean

run: .venv/run.stamp
	$(IN_VENV) snakemake --cores $(CORES)

# Everything, the tests marked slow included: what CI runs.
test: .venv/test.stamp
	$(IN_VENV) pytest $(IN_TWO)

test-fast: .venv/test.stamp
	$(IN_VENV) pytest $(IN_TWO) -m "not slow"

# The slow ones, and the published configuration as a whole on random weights of the published shapes, which is no part
# of `make test`: about half an hour, 10 GiB of memory and 6 GiB of disk.
test-slow: .venv/test.stamp
	$(IN_VENV) TOKENTRAIL_PROOF=full pytest -m slow

lint: .venv/test.stamp
	$(IN_VENV) ruff check .
	$(IN_VENV) ruff format --check .
	$(IN_VENV) snakefmt --check Snakefile workflow
	$(IN_VENV) snakemake --lint

format: .venv/test.stamp
	$(IN_VENV) ruff check --fix .
	$(IN_VENV) ruff format .
	$(IN_VENV) snakefmt Snakefile workflow

bench: .venv/bench.stamp
	$(IN_VENV) python benchmarks/forward.py
	$(IN_VENV) python benchmarks/decode.py
	$(IN_VENV) python benchmarks/interventions.py
	$(IN_VENV) python benchmarks/packed.py
	$(IN_VENV) python benchmarks/quantization.py

clean:
	rm -rf .venv .snakemake .pytest_cache .ruff_cache .hypothesis

# A venv of its own, from exact pins. pip is new enough to go on with a download that broke off.
.venv/run.stamp: requirements.txt requirements.lock.txt pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check pip==26.0.1
	$(PIP) --requirement requirements.txt
	$(PIP) --no-deps --editable .
	touch $@

.venv/test.stamp: .venv/run.stamp requirements-test.txt
	$(PIP) --requirement requirements-test.txt
	touch $@

.venv/bench.stamp: .venv/run.stamp benchmarks/requirements.txt
	$(PIP) --requirement benchmarks/requirements.txt
	touch $@
