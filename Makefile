# Every door of the project. `make help` lists them.

PYTHON ?= python3
VENV   ?= .venv
# Not from the environment, where others may mean something else by it: `make clean` removes it. `make OUT=x` names another.
ifneq ($(origin OUT),command line)
override OUT := out
endif
WORKLOAD ?= attention
WORKERS  ?= auto
MINUTES  ?= 10

# Python keeps its bytecode, though the environment says not to: each of some hundred processes would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

BIN   := $(VENV)/bin
# An environment without our stamp was made by others: it is used as it is, and nothing is installed into it or removed.
FOREIGN := $(if $(wildcard $(VENV)/.installed),,$(wildcard $(VENV)))
# Who only reads and draws needs the package alone, and the first door little more: a fraction of the time that the tools
# of all tests and docs take, which come with the first target that uses them.
LEAN    := demo replay profile calibrate pins viewer
FIRST   := $(LEAN) install check core lint systems format
EXTRAS  := [test,lint,docs]
NEEDED  := $(if $(filter-out $(FIRST),$(MAKECMDGOALS)),.complete,$(if $(filter-out $(LEAN),$(MAKECMDGOALS)),.check,.installed))
STAMP   := $(if $(FOREIGN),$(BIN)/rooflens,$(VENV)/$(NEEDED))
# Recorded reports of a workload take over from synthetic ones as soon as there are any. Published ones, which have names of
# their own, stand beside either.
RECORDED  = $(filter-out fixtures/synthetic/% fixtures/published/%,$(wildcard fixtures/*/$(WORKLOAD).ncu-rep fixtures/*/$(WORKLOAD).*.ncu-rep))
SYNTHETIC = $(wildcard fixtures/synthetic/$(WORKLOAD).synthetic.ncu-rep)
PUBLISHED = $(wildcard fixtures/published/$(WORKLOAD).ncu-rep $(addprefix fixtures/published/*__,$(WORKLOAD).ncu-rep $(WORKLOAD).*.ncu-rep))
REPLAYED  = $(or $(RECORDED),$(SYNTHETIC)) $(PUBLISHED)
# One story: a weather model before and after its divisions went, and one GEMM ladder beside cuBLAS. The other page has all
# real figures: synthetic ones would put their banner on it.
DEMO = $(addprefix fixtures/published/,GPU_workshop__MW_Baseline.ncu-rep GPU_workshop__MW_DivToMult.ncu-rep)
LADDER = fixtures/published/ESMM-Research__metrics.ncu-rep
EVERY = $(filter-out fixtures/synthetic/%,$(wildcard fixtures/*/*.ncu-rep))

.DEFAULT_GOAL := help
.PHONY: help install check core systems demo replay profile calibrate record gpu test lint docs format fuzz faults bench bench-bar accuracy fixtures pictures vendor viewer pins release-check build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## make the environment in .venv

check: $(STAMP) ## the first door: style, types, and the fast tests of the model
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint core

core: $(STAMP)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile tests/model tests/report/text tests/test_format.py --ignore tests/model/store

$(VENV)/.installed $(VENV)/.check $(VENV)/.complete: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: rooflens needs python >= 3.11; $(PYTHON) is older"; echo; \
	  echo "hint: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch -t 200001010000 $(VENV)/.installed  # ours, and not yet done: what is broken off here goes on next time
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.$(if $(filter %.complete,$@),$(EXTRAS),$(if $(filter %.check,$@),[check]))'
	@touch $(VENV)/.installed $(if $(filter %.complete,$@),$(VENV)/.check) $@

ifneq ($(FOREIGN),)
$(BIN)/rooflens:
	@echo "error: rooflens is not installed in $(VENV), which make did not make and leaves as it is"; echo; \
	  echo "hint: $(BIN)/python -m pip install -e '.$(EXTRAS)', or VENV=another"; exit 1
endif

demo: $(STAMP) ## draw out/demo.html, a program before and after and a GEMM ladder, and out/gpus.html, figures of 18 GPUs
	@mkdir -p $(OUT)
	$(BIN)/rooflens report $(DEMO) $(LADDER) --output $(OUT)/demo.html --title "Before, after, and a GEMM ladder" --table --force
	$(BIN)/rooflens report $(EVERY) --output $(OUT)/gpus.html --title "Published kernels" --force

replay: $(STAMP) ## draw the page of WORKLOAD=attention, or MW_Baseline, from its stored report
	@test -n "$(strip $(REPLAYED))" || { echo "error: no stored report of '$(WORKLOAD)'"; echo; \
	  echo "hint: stored are: $(patsubst %.ncu-rep,%,$(patsubst %.synthetic.ncu-rep,%.ncu-rep,$(notdir $(wildcard fixtures/*/*.ncu-rep))))"; exit 1; }
	@mkdir -p $(OUT)
	$(BIN)/rooflens report $(REPLAYED) --output $(OUT)/$(WORKLOAD).html --title "$(WORKLOAD)" --table --force

profile: $(STAMP) ## collect WORKLOAD=attention on this GPU, and draw its page
	$(BIN)/rooflens profile $(WORKLOAD) --output-folder $(OUT) --force $(PROFILE_OPTIONS)

calibrate: $(STAMP) ## measure what this GPU can reach; drawn as dashed roofs from then on
	$(BIN)/rooflens calibrate

record: $(STAMP) ## record the workloads on this GPU into fixtures/
	$(BIN)/python fixtures/record.py $(RECORD_OPTIONS)

gpu: ## do everything that only a GPU can show, into out/first_light_home (no network, 8 minutes, no clock touched)
	$(or $(wildcard $(BIN)/python),$(PYTHON)) fixtures/first_light.py --folder $(OUT)/first_light --out $(OUT)/first_light_home $(GPU_OPTIONS)

test: $(STAMP) ## run the tests, on all cores or in WORKERS=3 processes
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

lint: $(STAMP) ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

systems: $(STAMP) ## check the types as they are on Windows and on macOS
	$(BIN)/mypy --platform win32 --no-warn-unreachable --cache-dir .mypy_cache/win32
	$(BIN)/mypy --platform darwin --no-warn-unreachable --cache-dir .mypy_cache/darwin

format: $(STAMP) ## rewrite the code in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

fuzz: $(STAMP) ## feed the readers changed inputs for MINUTES=10 (with atheris, `pip install atheris`)
	cd tests && ../$(BIN)/python -m fuzzing.fuzz --minutes $(MINUTES)

faults: $(STAMP) ## break reports, writers and disks on purpose, and count what is lost (a quarter of an hour)
	$(BIN)/python benchmarks/faults.py $(FAULTS)

bench: bench-bar ## print the benchmarks' ratios, and what the viewer loads and takes
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/ingest.py --sizes 1,154
	$(BIN)/python benchmarks/viewer.py

bench-bar: $(STAMP) ## hold the CPU of the commands to that at BASE=a commit, by default the last tag (BAR=--quick)
	$(BIN)/python benchmarks/bar.py $(if $(BASE),--base $(BASE)) $(BAR)

accuracy: $(STAMP) ## print how far the numbers are from independent ones in REPORTS=a folder of reports
	$(BIN)/python benchmarks/accuracy.py $(REPORTS)

fixtures: $(STAMP) ## write the synthetic reports again
	cd tests && ../$(BIN)/python -m support.make_fixtures

docs: $(STAMP) ## write the documentation as a site into out/docs, and fail on any dead link in it
	$(BIN)/python -m sphinx --fresh-env --quiet --fail-on-warning --keep-going docs $(OUT)/docs
	@echo "$(OUT)/docs/index.html"

pictures: $(STAMP) ## draw the pictures of the documentation (needs a Chromium)
	$(BIN)/python docs/images/draw.py

vendor: $(STAMP) ## write the vendored Vega again, from vl-convert
	cd tests && ../$(BIN)/python -m support.vega_bundle

viewer: $(STAMP) ## build out/viewer, a static page that reads dropped reports in the browser (network, npm)
	$(BIN)/python viewer/build.py $(OUT)/viewer

pins: $(STAMP) ## pin the newest of what the action installs, with hashes, in action/requirements.txt (network)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	echo hatchling | $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --only-binary :all: \
	  --generate-hashes --no-annotate --custom-compile-command "make pins" --output-file action/requirements.txt \
	  pyproject.toml -

release-check: ## list what is left before a version can be published: placeholders, dates, what waits for them
	$(PYTHON) packaging/release_check.py

build: $(STAMP) ## build wheel and source archive into dist/, and try the wheel alone; with TAG=v0.1.0 as a release
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	$(BIN)/python .ci/wheel.py dist $(if $(TAG),--tag $(TAG))

clean: ## remove the environment and everything generated
	rm -rf $(if $(FOREIGN),,$(VENV)) $(OUT) dist .mypy_cache .pytest_cache .ruff_cache
	$(if $(FOREIGN),@echo "$(VENV) stays: make did not make it")
