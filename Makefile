# Every target sets up what it needs in .venv and reuses it while nothing changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt $(wildcard $(foreach end,cpp hpp inc,native/*/*.$(end)))
CPP := $(wildcard native/*/*.cpp native/*/*.hpp examples/*/*.c examples/*/*.cpp include/*.h)
COMMA := ,
SPACE := $(subst ,, )
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo wheel docs coverage test test-all ctest sanitize fuzz soak java chromium rust arm lint format stubs bench bench-batches bench-frames bench-engines bench-export bench-lattices bench-library experiments clean

demo: $(VENV)/.demo
	$(BIN)/qwyc demo

test: lint ctest
	$(BIN)/python -m pytest

# What needs more than `make test` may: packages built and installed as users get them, other versions of
# the trainers, TensorFlow Lattice, Spark (which needs Java 17), Ray and Dask with two workers each, the
# HTML report in a browser (which needs Chromium), MLflow and servers, the documentation as a site, and the
# C library in Rust.
test-all: $(VENV)/.all java chromium rust sanitize
	$(BIN)/python -m pytest -m slow -n 0

# Builds the native core in build/$(1) with some options, and runs its C++ tests: all, or those of the names $(3).
WITH_TOOLS := PATH="$(abspath $(BIN)):$$PATH"
define native_tests
	$(WITH_TOOLS) cmake -S . -B build/$(1) -G Ninja -DQWYC_TESTS=ON $(2) > /dev/null
	$(WITH_TOOLS) cmake --build build/$(1) $(if $(3),--target _native $(3))
	$(WITH_TOOLS) ctest --test-dir build/$(1) --parallel 2 --output-on-failure $(if $(3),--tests-regex "^($(subst $(SPACE),|,$(strip $(3))))$$")
endef

# The C++ tests as users get the code, and the C library, which Python's tests load.
ctest: $(VENV)/.dev
	$(call native_tests,ctest,-DQWYC_PYTHON=OFF -DQWYC_LIBRARY=ON)

# The C++ tests, and Python's tests of the engine, under sanitizers; needs g++ and its libraries. The
# editable install is not touched. Python itself is not instrumented, so leaks are not looked for; and
# lightgbm, which test_engine.py needs, has threads that ThreadSanitizer cannot follow. ThreadSanitizer is for
# the C++ tests that start threads. (With g++ 12 at -O1 and ThreadSanitizer, and in no other build, bits of
# AVX-512 masks differ in words of at most 16 rows: test_mask_kernels, which starts none, fails there.)
THREADED_CPP := test_engine test_engine_batches test_fan_order test_fit test_lattices test_library test_monitoring test_parallel
SANITIZED := $(foreach name,model/test_class_engine model/test_class_threads model/test_engine model/test_fan_engine model/test_forest model/test_lattices model/test_one_row model/test_plain_arrays model/test_plain_labels policy/test_fan_order policy/test_fit policy/test_stopping,tests/$(name).py)
THREADED := $(foreach name,model/test_class_threads model/test_fan_engine model/test_forest model/test_lattices model/test_one_row model/test_plain_arrays model/test_plain_labels policy/test_fan_order policy/test_stopping,tests/$(name).py)
LIBRARY = $$($(CXX) -print-file-name=lib$(1).so)
WITH_PYTHON := -DQWYC_PYTHON=ON -DPython_EXECUTABLE="$(abspath $(BIN))/python"
sanitize: $(VENV)/.dev
	$(call native_tests,sanitize-address,-DQWYC_SANITIZE=address$(COMMA)undefined $(WITH_PYTHON))
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$(call LIBRARY,asan) $(call LIBRARY,stdc++)" \
	  $(BIN)/python native/tests/run_pytest.py build/sanitize-address/_native.*.so $(SANITIZED)
	$(call native_tests,sanitize-thread,-DQWYC_SANITIZE=thread $(WITH_PYTHON),$(THREADED_CPP))
	TSAN_OPTIONS="halt_on_error=1 suppressions=native/tests/tsan.suppressions" LD_PRELOAD="$(call LIBRARY,tsan)" \
	  $(BIN)/python native/tests/run_pytest.py build/sanitize-thread/_native.*.so $(THREADED)

# Mutated model files, .qwyc files and tables against their readers, then mutated forests against the native
# core under sanitizers: SECONDS for each of the two. Findings are in build/fuzz/findings.
SECONDS ?= 60
SEED ?= 0
fuzz: $(VENV)/.dev
	PYTHONPATH=tests:tests/support $(BIN)/python -W ignore -m fuzz --seconds $(SECONDS) --seed $(SEED)
	$(WITH_TOOLS) cmake -S . -B build/fuzz/native -G Ninja -DQWYC_TESTS=ON -DQWYC_PYTHON=OFF \
	  -DQWYC_SANITIZE=address$(COMMA)undefined > /dev/null
	$(WITH_TOOLS) cmake --build build/fuzz/native --target fuzz_forest
	build/fuzz/native/native/tests/fuzz_forest $(SECONDS) $(SEED)

# Mixed calls on threads for ten minutes: latencies, and memory that stays where it is.
soak: $(VENV)/.dev
	$(BIN)/python -W ignore -m benchmarks.soak

java:
	@java -version 2>/dev/null || test -x "$$JAVA_HOME/bin/java" \
	  || { test "$$(id -u)" = 0 && apt-get install --yes --quiet openjdk-17-jre-headless; } \
	  || { echo "Spark needs Java 17 or later on PATH or at JAVA_HOME; install it and run this again"; exit 1; }

chromium:
	@{ which chromium || which google-chrome; } > /dev/null && which chromedriver > /dev/null \
	  || { test "$$(id -u)" = 0 && apt-get install --yes --quiet chromium chromium-driver; } \
	  || { echo "The HTML report is tested in Chromium with its driver (chromedriver), both on PATH; install them and run this again"; exit 1; }

# The documentation as a site in build/site. A warning is an error: links and anchors that lead nowhere,
# pages that are not in the navigation, and docstrings that do not match a signature.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# A wheel in dist/ for the Python of .venv, with the manylinux tag that this machine's glibc allows, tried in a
# fresh environment. For another Python: make wheel VENV=build/venv-3.12 PYTHON=python3.12. Times in the
# wheel are those of the last commit, so that building again gives the same bytes.
wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2> /dev/null || echo 1704067200)
wheel: $(VENV)/.wheels
	rm -rf build/wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir build/wheel . > build/wheel.log || { cat build/wheel.log; exit 1; }
	$(WITH_TOOLS) auditwheel repair --wheel-dir build/wheel/repaired build/wheel/*.whl
	$(WITH_TOOLS) auditwheel show build/wheel/repaired/*.whl
	$(BIN)/python tests/packaging/check_wheel.py build/wheel/repaired/*.whl
	mkdir -p dist && mv build/wheel/repaired/*.whl dist/

# Lines that the fast tests run, of the Python code.
coverage: $(VENV)/.dev
	$(PIP) install "coverage[toml]>=7"
	$(BIN)/python -m coverage run -m pytest -n 0
	$(BIN)/python -m coverage report

# The core, and the C library with its tests, for 64-bit ARM under an emulator. Not a part of test-all: the
# core takes minutes to compile a third time.
ARM_TESTS := test_forest test_json test_library test_sha256
arm: $(VENV)/.dev
	@which aarch64-linux-gnu-g++ qemu-aarch64 > /dev/null \
	  || { test "$$(id -u)" = 0 && apt-get install --yes --quiet g++-aarch64-linux-gnu qemu-user; } \
	  || { echo "ARM is tested with g++-aarch64-linux-gnu and qemu-user; install them and run this again"; exit 1; }
	$(WITH_TOOLS) cmake -S . -B build/arm -G Ninja -DQWYC_TESTS=ON -DQWYC_PYTHON=OFF -DCMAKE_SYSTEM_NAME=Linux \
	  -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ > /dev/null
	$(WITH_TOOLS) cmake --build build/arm --target $(ARM_TESTS)
	set -e; for test in $(ARM_TESTS); do qemu-aarch64 -L /usr/aarch64-linux-gnu build/arm/native/tests/$$test; done

rust:
	@which rustc > /dev/null || { test "$$(id -u)" = 0 && apt-get install --yes --quiet rustc; } \
	  || { echo "The example of the C library in Rust needs rustc on PATH; install it and run this again"; exit 1; }

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run -Werror $(CPP)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# The checked-in stub of the native module; a test fails when it is out of date.
stubs: $(VENV)/.dev
	$(BIN)/python -m nanobind.stubgen -q -m qwyc._native -o src/qwyc/_native.pyi

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# Microseconds per row by rows per call; AGAINST=PYTHON compares with another installation.
bench-batches: $(VENV)/.bench
	$(BIN)/python -W ignore -m benchmarks.batches $(if $(AGAINST),--against $(AGAINST))

# Data frames of pandas, Polars and Arrow, against the libraries; AGAINST=PYTHON as before.
bench-frames: $(VENV)/.bench
	$(BIN)/python -W ignore -m benchmarks.frames $(if $(AGAINST),--against $(AGAINST))

# Rows per second in Spark, Ray and Dask on two cores.
bench-engines: $(VENV)/.all java
	$(BIN)/python -W ignore -m benchmarks.engines --document docs/scale.md

# Exported C, against TL2cgen and predict_one.
bench-export: $(VENV)/.bench
	$(BIN)/python -W ignore -m benchmarks.export

# The C library: loading, one row and many rows.
bench-library: $(VENV)/.bench
	$(BIN)/python -W ignore -m benchmarks.library

# Ensembles of lattices, against TensorFlow Lattice. Writes a page of the documentation.
bench-lattices: $(VENV)/.all
	$(BIN)/python -W ignore -m benchmarks.lattices --page docs/benchmarks-lattices.md

# The paper's six experiments and their rivals: docs/reproduction.md and its pictures. A run that was
# stopped goes on where it was (build/experiments).
experiments: $(VENV)/.dev
	$(BIN)/python -m qwyc_experiments.paper

clean:
	rm -rf $(VENV) build dist

# Build tools first, then the package in place, built with them; .demo and .dev differ in extras.
$(VENV)/.tools: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "qwyc needs Python 3.10 or later")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip scikit-build-core "nanobind<4" cmake ninja
	touch $@

# pip is quiet, so what takes minutes is announced.
BUILDING := @echo "Installing what qwyc needs and compiling its C++ core in $(VENV): two to four minutes on two cores ..."

$(VENV)/.demo: $(VENV)/.tools $(NATIVE)
	$(BUILDING)
	$(PIP) install --no-build-isolation --editable '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.tools $(NATIVE)
	$(BUILDING)
	$(PIP) install --no-build-isolation --editable '.[dev]'
	touch $@

$(VENV)/.all: $(VENV)/.dev
	$(PIP) install --upgrade setuptools wheel # Spark comes as source, and is built without isolation too
	$(PIP) install --no-build-isolation --editable '.[dev,wheels,engines,lattice,browser,serving,docs]'
	touch $@

$(VENV)/.wheels: $(VENV)/.tools $(NATIVE)
	$(BUILDING)
	$(PIP) install --no-build-isolation --editable '.[wheels]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) install --no-build-isolation --editable '.[dev,docs]'
	touch $@

# The peers to compare with; one that cannot be installed is left out, and the benchmark says so.
PEERS := catboost ydf treelite tl2cgen onnxruntime onnxmltools skl2onnx
$(VENV)/.bench: $(VENV)/.dev
	$(PIP) install --no-build-isolation --editable '.[dev,bench]' \
	  || for peer in $(PEERS); do $(PIP) install $$peer || true; done
	touch $@
