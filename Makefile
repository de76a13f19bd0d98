# The two commands: `make demo` and `make test`. Both set up .venv first, from nothing but Python >= 3.10: the demonstration
# with what the lab needs, everything else with the tests' packages added in the same environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Three processes on two cores, since many tests wait for processes that they start. One process runs all of a file, so that
# what its tests share is made once. Files run in the order of their names, which has slow ones (browser, lab) first.
TEST_OPTIONS := -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: shuffles demo test test-processes test-integrations test-lowest release-check docs paper lint format bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/ready-demo
	$(BIN)/replenish demo

test: $(VENV)/ready
	$(BIN)/python -m pytest $(TEST_OPTIONS) --ignore=tests/integrations --ignore=tests/processes

# Scripts under `exec`, launchers, runs that are killed or shared: they wait for processes that they start.
test-processes: $(VENV)/ready
	$(BIN)/python -m pytest $(TEST_OPTIONS) tests/processes

# The frameworks are heavy, so they live in an environment of their own.
test-integrations: $(VENV)-integrations/ready
	KERAS_BACKEND=torch OMP_NUM_THREADS=1 $(VENV)-integrations/bin/python -m pytest $(TEST_OPTIONS) tests/integrations

# The frameworks, and what the core and the lab need, in the lowest versions that pyproject.toml declares (except torch).
test-lowest: $(VENV)-lowest/ready
	KERAS_BACKEND=torch OMP_NUM_THREADS=1 $(VENV)-lowest/bin/python -m pytest -n 2 tests/integrations \
		tests/orders tests/stream tests/torch tests/test_golden.py tests/test_cli.py \
		tests/lab/test_training.py tests/lab/test_report.py tests/lab/test_run_command.py tests/lab/test_load_network.py

# Builds and installs what would be released, in new environments; TAG=v0.1.0 checks a release's tag too. Without the
# publisher's address in pyproject.toml it refuses; TRIAL=1 checks everything else.
release-check: $(VENV)-release/ready
	$(VENV)-release/bin/python .ci/release_check.py $(if $(TRIAL),--trial) $(if $(TAG),--tag $(TAG)) $(if $(DIST),--dist $(DIST))

# Warnings are errors, and every link within the pages leads somewhere.
docs: $(VENV)/ready
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# The replication as a PDF, printed by Chromium.
paper: $(VENV)/ready
	$(BIN)/python docs/paper.py

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/ready
	$(BIN)/python benchmarks/sampler.py
	$(BIN)/python benchmarks/orders.py
	$(BIN)/python benchmarks/stream.py
	$(BIN)/python benchmarks/stream_sources.py
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/exec.py
	$(BIN)/python benchmarks/folder.py

# What data loaders draw, as docs/shuffles.md has it. mosaicml-streaming and litdata come without the clients of clouds that
# they name; tensorflow pins what the others do not want, and has an environment of its own.
SHUFFLE_PACKAGES := mosaicml-streaming==0.13.0 litdata==0.2.76 boto3 botocore s3transfer jmespath tifffile obstore
SHUFFLES := $(CURDIR)/$(VENV)-shuffles

shuffles: $(VENV)-integrations/ready
	test -d $(SHUFFLES)/beside || $(VENV)-integrations/bin/python -m pip install --quiet --no-deps --target $(SHUFFLES)/beside $(SHUFFLE_PACKAGES)
	test -x $(SHUFFLES)/tf/bin/python || $(PYTHON) -m venv $(SHUFFLES)/tf
	$(SHUFFLES)/tf/bin/python -m pip install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0
	PYTHONPATH=$(CURDIR) $(SHUFFLES)/tf/bin/python benchmarks/shuffles.py --only tf.data --keep $(SHUFFLES)/rows.json
	PYTHONPATH=$(SHUFFLES)/beside $(VENV)-integrations/bin/python benchmarks/shuffles.py --keep $(SHUFFLES)/rows.json --write
	$(VENV)-integrations/bin/python benchmarks/shuffle_false_faults.py --write

$(VENV)/ready-demo: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python >= 3.10 is needed; name one: make PYTHON=...")'
	@echo "setting up $(VENV): torch and the lab, a minute or so"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -c constraints.txt -e '.[lab]'
	touch $@

# pytorchcv is an independent oracle for the networks; without its dependencies, which the tests do not touch.
$(VENV)/ready: $(VENV)/ready-demo
	$(INSTALL) -c constraints.txt -e '.[test,lint]'
	$(INSTALL) --no-deps pytorchcv==0.0.74
	touch $@

# timm and torchvision without their dependencies, which would bring another torch. They have a folder of their own, since
# Lightning and transformers import a torchvision that they find, and this one has no operators for a CPU.
WITHOUT_DEPENDENCIES := torchvision==0.28.0 timm==1.0.31

$(VENV)-integrations/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-integrations
	$(VENV)-integrations/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e '.[integrations,test]'
	$(VENV)-integrations/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--target $(VENV)-integrations/vision $(WITHOUT_DEPENDENCIES)
	touch $@

$(VENV)-lowest/ready: pyproject.toml constraints.txt constraints-lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-c constraints-lowest.txt -e '.[integrations,lab,stream,tensorboard]' pytest pytest-xdist hypothesis
	touch $@

$(VENV)-release/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6.1'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-integrations $(VENV)-lowest $(VENV)-release build dist docs/_build
