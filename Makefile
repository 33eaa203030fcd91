PYTHON ?= python3
PRESET ?= quick
SOURCES := _config.yml _toc.yml $(shell find book exercises posenc_course -mindepth 1 -not -path '*/.*' -not -path '*__pycache__*')

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

ifndef SOLUTIONS
book: _build/complete  ## build the course, set up before where needed; with the assignments' solutions: make book SOLUTIONS=1
	@echo "Open $(CURDIR)/_build/html/index.html"
else
book: _solutions/complete
	@echo "For teachers, not to be published: open $(CURDIR)/_solutions/_build/html/index.html"
endif

test: .venv/complete  ## run all tests
	.venv/bin/pytest

test-elsewhere: .venv/complete  ## run the chapters' tests in what stands for another computer
	.venv/bin/python tools/elsewhere.py

coverage: .venv/complete  ## run the package's own tests and show which of its lines they reach
	.venv/bin/pytest tests $(addprefix --ignore=tests/test_,house.py notebooks.py site.py) --cov=posenc_course --cov-report=term-missing --cov-fail-under=95

bench: .venv/complete  ## time the package beside its peers, measure their errors, and store both; some minutes on idle cores
	.venv/bin/python tools/bench.py

exercises: .venv/complete  ## make exercises/release, what students get, from exercises/source
	cd exercises && PATH="$(CURDIR)/.venv/bin:$$PATH" nbgrader generate_assignment --assignment="*" --force --no-db

experiment: .venv/complete  ## train every scheme and look beyond the training length: PRESET=quick (minutes), full or gpu
	.venv/bin/python -m posenc_course.experiment run --preset $(PRESET) --folder _experiment/$(PRESET) $(OPTIONS)
	.venv/bin/python -m posenc_course.experiment report _experiment/$(PRESET)

lint: .venv/complete  ## style and types
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

lab: .venv/complete  ## open the chapters in JupyterLab
	.venv/bin/jupyter-lab --LabApp.default_url=/lab/tree/book

execute: .venv/complete  ## run the chapters anew and store their outputs; one of them: make execute CHAPTER=01_order
	.venv/bin/python tools/execute.py $(CHAPTER)

serve: _build/complete  ## serve the built course on this machine; elsewhere than at port 8000: make serve PORT=8001
	.venv/bin/python -m http.server --bind 127.0.0.1 --directory _build/html $(or $(PORT),8000)

site: _build/complete  ## make _site for any static host; with full addresses: make site SITE_URL=https://…
	.venv/bin/python tools/site.py _build/html _site $(SITE_URL)

lock: .venv/complete  ## pin the newest allowed packages in requirements.lock
	.venv/bin/uv pip compile --quiet --upgrade --extra plot --extra teach --extra test requirements.txt pyproject.toml

clean:  ## remove what was built; the environment .venv stays
	rm -rf _build _site _solutions

.venv/complete: requirements.lock pyproject.toml tools/setup_env.py
	@$(PYTHON) tools/setup_env.py

# From nothing, always: after a failure or a rename, leftovers would pass.
_build/complete: .venv/complete $(SOURCES)
	rm -rf _build
	.venv/bin/jupyter-book build . -W -n --keep-going
	@touch $@

# A site of its own, so that the other one never held them.
_solutions/complete: .venv/complete $(SOURCES)
	rm -rf _solutions && mkdir _solutions
	(cat _toc.yml; printf '  - caption: Solutions\n    chapters:\n'; sed -n 's:exercises/release:exercises/source:p' _toc.yml) > _solutions/_toc.yml
	.venv/bin/jupyter-book build . --path-output _solutions --toc _solutions/_toc.yml -W -n --keep-going
	@touch $@

.PHONY: help book test test-elsewhere coverage bench exercises experiment lint lab execute serve site lock clean
