# One word each; `just` alone runs all.
default: lint types layers test

lint:
    ruff check . && ruff format --check .

types:
    mypy

layers:
    lint-imports

test:
    pytest

bench:
    python benchmarks/obfuscate.py && python benchmarks/neighbours.py
