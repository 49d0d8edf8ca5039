.DEFAULT_GOAL := help
.PHONY: help setup serve test test-fast format check coverage sim crash bench locks docs clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Build .venv from the lock file
	./dev setup

serve: ## Run a broker on embedded defaults
	./dev serve

test: ## Every check and every test (README's test command)
	./dev test

test-fast: ## Checks and quick tests, under three minutes
	./dev fast

format: ## Format and fix what can be fixed
	./dev run ruff format .
	./dev run ruff check --fix .

check: ## Format, lint and types only
	./dev run ruff format --check .
	./dev run ruff check .
	./dev run mypy

coverage: ## Quick tests under coverage, with a report
	./dev run coverage run -m pytest -q -m "not slow and not s3 and not clients" -p no:randomly
	./dev run coverage combine
	./dev run coverage report

sim: ## Run the simulator over fresh seeds until it finds something or is stopped
	./dev run python -m floe.testing.sim_run --forever

crash: ## Kill real brokers under load for ten minutes
	FLOE_CRASH_SECONDS=600 ./dev run pytest -q tests/crash

bench: ## Run the benchmarks and write benchmarks/results
	./dev bench

locks: ## Compile the lock files anew from requirements/*.in (needs uv)
	for name in base dev; do (cd requirements && uv pip compile --universal --python-version 3.11 \
		--no-header --no-annotate --generate-hashes --no-emit-index-url --no-emit-find-links $$name.in -o $$name.lock); done

docs: ## Write the generated reference pages
	./dev run python -m floe.config.reference > docs/reference/settings.md
	./dev run python -m benchmarks.report

clean: ## Remove the environment and everything built
	rm -rf .venv .build .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
