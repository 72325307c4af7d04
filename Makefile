# make demo | test | browser | screenshots | eval | soak | fuzz | bench | bench-mem0 | compatibility | lint | tables | site | build | format | lock | clean; see README.md.
PYTHON ?= python3
PY := .venv/bin/python
# Python source and tests must not leave bytecode in llmbot/: `mbc build` zips the whole folder.
export PYTHONDONTWRITEBYTECODE := 1
# The theme would tell of its successor at each build.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

.PHONY: demo test browser screenshots eval soak fuzz bench bench-mem0 compatibility lint tables site format build real-model lock clean

.venv/.installed: requirements.lock devstack/bootstrap.py
	@command -v $(PYTHON) >/dev/null || { echo "llmbot: '$(PYTHON)' was not found; install Python 3.10 or newer" >&2; exit 1; }
	@$(PYTHON) devstack/bootstrap.py

demo: .venv/.installed
	@$(PY) -m devstack.demo

test: .venv/.installed
	@$(PY) -m pytest -n 2 --dist loadfile

# An admin's first ten minutes in maubot's web UI, and the docs' site; needs your system's Chromium.
browser: .venv/.installed
	@$(PY) -m pytest tests/browser

# The same run, which takes the pictures of docs/maubot-ui.md anew.
screenshots: .venv/.installed
	@LLMBOT_SCREENSHOTS=docs/images LLMBOT_PORT_SYNAPSE=28008 LLMBOT_PORT_MODEL=28080 $(PY) -m pytest tests/browser/test_maubot_ui.py

# How much of the memory is true; MODEL=provider/name asks a real model, see evaluation/.
eval: .venv/.installed
	@$(PY) -m evaluation

# 200 people in 20 rooms, with kills and restarts; fails where a rule of the memory is broken.
soak: .venv/.installed
	@$(PY) -m soak

# What reads a model's output, with 100,000 inputs a property: for a night.
fuzz: .venv/.installed
	@LLMBOT_HYPOTHESIS_PROFILE=fuzz $(PY) -m pytest -m fuzz tests/unit tests/integration

# How fast, lean and big it is, as ratios; `SECTIONS=passes` measures that alone.
bench: .venv/.installed
	@$(PY) -m benchmarks $(SECTIONS)

# The same exchanges through llmbot and through mem0, which gets an environment of its own.
bench-mem0: .venv/.installed
	@test -x .venv-mem0/bin/python || $(PYTHON) -m venv .venv-mem0
	@.venv-mem0/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-mem0.lock
	@$(PY) -m benchmarks.mem0

# The plugin on each Python, with the oldest and the newest libraries; PYTHONS names others.
compatibility: .venv/.installed
	@$(PY) -m compatibility $(PYTHONS)

lint: .venv/.installed
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) -m devstack.doc_tables --check
	@$(MKDOCS)

# The table of settings in docs/settings.md; `make lint` checks it, and what other pages tell.
tables: .venv/.installed
	@$(PY) -m devstack.doc_tables

# The docs as a site, which opens from the file system: site/index.html.
site: .venv/.installed
	@$(MKDOCS)

format: .venv/.installed
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

build: .venv/.installed
	@$(PY) -m devstack.build

# A real model server that nobody here wrote; building it needs a C++ compiler and minutes.
real-model: .venv/.installed
	@test -x .venv-llama/bin/python || $(PYTHON) -m venv .venv-llama
	@.venv-llama/bin/python -m pip install --disable-pip-version-check --require-hashes -r requirements-llama.lock
	@LLMBOT_LLAMA_PYTHON=.venv-llama/bin/python $(PY) -m pytest tests/real_model

lock:
	@uv pip compile --universal --python-version 3.10 --group dev --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -o requirements.lock
	@uv pip compile --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -o requirements-llama.lock requirements-llama.in
	@uv pip compile --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -o requirements-mem0.lock requirements-mem0.in
	@for minor in 3.10 3.11 3.12 3.13; do uv pip compile --only-binary :all: --upgrade --resolution lowest-direct --python-version $$minor --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -q -o compatibility/oldest-$$minor.lock compatibility/oldest.in; done

clean:
	rm -rf .venv .venv-llama .venv-mem0 .compatibility dist site .devstack .pytest_cache .mypy_cache .ruff_cache .hypothesis
