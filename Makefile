# Every target works from a clean clone: it makes its own .venv first, and renews it when the
# dependencies have changed. PYTHON=python3.12 picks the interpreter; ARGS="..." passes arguments on.
PYTHON ?= python3
ARGS ?=

BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: help venv evaluate test check format bench lock clean

help:
	@echo "make evaluate   run the evaluation            (ARGS=\"--help\" shows its options)"
	@echo "make test       run all tests                 (ARGS=\"-k units\" selects some)"
	@echo "make check      lint, format, types, import direction, dependencies"
	@echo "make format     rewrite the code as make check wants it"
	@echo "make bench      the speed of the reuse curve and of reading logs, and the latency model against published measurements"
	@echo "make lock       renew constraints.txt         (needs uv)"
	@echo "make clean      remove .venv, caches and build outputs"

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt scripts/make-venv
	@scripts/make-venv "$(PYTHON)"
	@touch $@

evaluate: $(STAMP)
	@$(BIN)/warmset evaluate $(ARGS)

test: $(STAMP)
	@scripts/ensure-chromium
	@$(BIN)/pytest -q -n auto $(ARGS)

check: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry src

format: $(STAMP)
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-build-isolation -e ".[bench]" || \
	  echo "warmset: kvcache-simulator is not installable here; no comparison" >&2
	@$(BIN)/python -m benchmarks.curve $(ARGS)
	@$(BIN)/python -m benchmarks.trace_import
	@$(BIN)/python -m benchmarks.latency

# One version of each package for all supported Pythons and systems; names and hashes only.
lock:
	uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --extra dev \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url pyproject.toml -o constraints.txt

clean:
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
