PYTHON ?= python3
PRESET ?= quick
SOURCES := _config.yml _toc.yml $(shell find book exercises posenc_course tools/sphinx -mindepth 1 -not -path '*/.*' -not -path '*__pycache__*')

# ONLY=10_rope or ONLY=rope: the files with this in their names and, of the files that test every chapter, every page or
# every function, the tests with this in theirs.
ifdef ONLY
NOTEBOOKS := $(sort $(shell find book exercises/source -name '*.ipynb' -not -path '*/.*'))
FILES := $(strip $(foreach file,$(wildcard tests/test_*.py) $(NOTEBOOKS),$(if $(findstring $(ONLY),$(file)),$(file))))
ifeq ($(FILES)$(filter audit,$(MAKECMDGOALS)),)
$(error nothing is called $(ONLY): ONLY takes a part of one of these names: $(sort $(basename $(notdir $(NOTEBOOKS))) \
    $(patsubst tests/test_%.py,%,$(wildcard tests/test_*.py))))
endif
SELECTED := $(sort $(FILES) $(wildcard $(patsubst %,tests/test_%.py,attention checks errors exercises notebooks published site))) -k "$(ONLY)"
endif

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

ifndef SOLUTIONS
book: _build/complete  ## build the course, set up before where needed; with the assignments' solutions: make book SOLUTIONS=1
	@echo "Open $(CURDIR)/_build/html/index.html"
else
book: _solutions/complete
	@echo "For teachers, not to be published: open $(CURDIR)/_solutions/_build/html/index.html"
endif

check: lint  ## style, types and the fast tests, in about a minute; some of them: make check ONLY=rope
	.venv/bin/pytest -m "not slow" $(or $(filter-out %.ipynb,$(SELECTED)),tests)

fix: .venv/complete  ## correct the style, as far as ruff can
	.venv/bin/ruff check --fix --exit-zero
	.venv/bin/ruff format

test: .venv/complete  ## run all tests; those of a chapter, an assignment or a topic: make test ONLY=10_rope
	.venv/bin/pytest $(SELECTED)

test-elsewhere: .venv/complete  ## run the chapters' tests in what stands for another computer
	.venv/bin/python tools/elsewhere.py

coverage: .venv/complete  ## run the package's own tests and show which of its lines they reach
	.venv/bin/pytest tests $(patsubst %,--ignore=tests/test_%.py,style packaging setup docs notebooks execute site) --cov=posenc_course --cov-report=term-missing --cov-fail-under=95

audit: _build/complete  ## hold every page against Lighthouse, in half an hour; some of them: make audit ONLY=10_rope
	.venv/bin/python tools/audit.py _build/html $(ONLY)

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

site: _build/complete  ## make _site for any static host; with full addresses: make site SITE_URL=https://… REPOSITORY=owner/name
	.venv/bin/python tools/site.py _build/html _site $(SITE_URL) $(if $(REPOSITORY),--repository=$(REPOSITORY))

pdf: _build/complete  ## print the whole course to _paper/where-is-a-token.pdf, through Chromium
	.venv/bin/python -m tools.pdf . _paper/where-is-a-token.pdf

archive: _build/complete  ## pack the site to be read without a host: _paper/where-is-a-token.zip
	.venv/bin/python tools/site.py _build/html _paper/where-is-a-token.zip

links: .venv/complete  ## ask other sites for all that the pages link to; what does not answer is in _links/_build/html/output.txt
	.venv/bin/jupyter-book build . --builder linkcheck --path-output _links

lock: .venv/complete  ## pin the newest allowed packages in requirements.lock
	.venv/bin/uv pip compile --quiet --upgrade --extra plot --extra teach --extra test requirements.txt pyproject.toml

clean:  ## remove what was built; the environment .venv stays
	rm -rf _build _colab _links _paper _site _solutions

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

.PHONY: help book check fix test test-elsewhere coverage audit bench exercises experiment lint lab execute serve site pdf archive links lock clean
