# make demo: climb the ladder with every kernel of this repository.   make test: lint, types and tests.
# TORCH picks the torch build. Without a GPU a CPU build is enough, and far smaller than the package index's own:
#   make demo TORCH="torch --index-url https://download.pytorch.org/whl/cpu"
# On a GPU host name the build that fits its driver in the same way.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
OUT ?= kernelci-report
BIN := $(VENV)/bin
.PHONY: demo test lint types install clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]'
	touch $@

demo: install
	$(BIN)/kernelci run --out $(OUT)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

test: lint types
	$(BIN)/python -m pytest -n auto

clean:
	rm -rf $(VENV) $(OUT) .mypy_cache .ruff_cache
