# Every target sets up what it needs in .venv and reuses it while nothing changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt $(wildcard $(foreach end,cpp hpp inc,native/*/*.$(end)))
CPP := $(wildcard native/*/*.cpp native/*/*.hpp native/*/*.inc examples/*/*.c examples/*/*.cpp tests/*/*.c tests/*/*.cpp include/*.h)
COMMA := ,
SPACE := $(subst ,, )
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo wheel docs coverage oldest audit test test-all ctest sanitize fuzz soak java chromium rust compilers arm windows lint format stubs bench bench-batches bench-frames bench-engines bench-export bench-lattices bench-library experiments clean

demo: $(VENV)/.demo
	$(BIN)/qwyc demo

test: lint ctest
	$(BIN)/python -m pytest

# What needs more than `make test` may: packages built and installed as users get them, other versions of
# the trainers, TensorFlow Lattice, Spark (which needs Java 17), Ray and Dask with two workers each, the
# HTML report in a browser (which needs Chromium), MLflow and servers, the documentation as a site, the
# C library in Rust, the C++ tests on ARM, and fuzzing for a short time. Two clusters of Spark at once would
# remove each other's folders.
test-all: $(VENV)/.all java chromium rust compilers arm sanitize
	$(MAKE) fuzz SECONDS=30
	$(BIN)/python -m pytest -m slow -n 0 tests/distributed
	$(BIN)/python -m pytest -m slow --ignore tests/distributed

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
THREADED := $(foreach name,model/test_class_threads model/test_fan_engine model/test_forest model/test_lattices model/test_one_row model/test_plain_arrays model/test_plain_labels monitor/test_monitor_threads policy/test_fan_order policy/test_stopping,tests/$(name).py)
LIBRARY = $$($(CXX) -print-file-name=lib$(1).so)
WITH_PYTHON := -DQWYC_PYTHON=ON -DPython_EXECUTABLE="$(abspath $(BIN))/python"
sanitize: $(VENV)/.dev
	$(call native_tests,sanitize-address,-DQWYC_SANITIZE=address$(COMMA)undefined $(WITH_PYTHON))
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$(call LIBRARY,asan) $(call LIBRARY,stdc++)" \
	  $(BIN)/python native/tests/run_pytest.py build/sanitize-address/_native.*.so $(SANITIZED)
	$(call native_tests,sanitize-thread,-DQWYC_SANITIZE=thread $(WITH_PYTHON),$(THREADED_CPP))
	TSAN_OPTIONS="halt_on_error=1 suppressions=native/tests/tsan.suppressions" LD_PRELOAD="$(call LIBRARY,tsan)" \
	  $(BIN)/python native/tests/run_pytest.py build/sanitize-thread/_native.*.so $(THREADED)

# Three parts of SECONDS each. Mutated model files, .qwyc files and tables against their readers; the same guided by
# the lines that a case reaches, if atheris is installed; the native core under sanitizers. The native part is
# guided too if there is Clang, which brings libFuzzer. Findings are in build/fuzz/findings.
SECONDS ?= 60
SEED ?= 1
GUIDED := xgboost-json xgboost-ubjson lightgbm catboost-cbm catboost-json treelite onnx qwyc qwyc-resealed monitor
# The first Clang that links with libFuzzer; looked for once, when it is needed.
CLANG = $(eval CLANG := $$(shell for one in clang++ clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14; do \
  echo 'extern "C" int LLVMFuzzerTestOneInput(const char *, long) { return 0; }' \
  | $$$$one -x c++ -fsanitize=fuzzer,address -o /dev/null - 2> /dev/null && { which $$$$one; break; }; done))$(CLANG)
FUZZ_BUILD = build/fuzz/native$(if $(CLANG),,-unguided)
FUZZ_SHARE = $$(( ($(SECONDS) + $(1) - 1) / $(1) ))
fuzz: $(VENV)/.dev
	PYTHONPATH=tests:tests/support $(BIN)/python -W ignore -m fuzz --seconds $(SECONDS) --seed $(SEED)
	@mkdir -p build/fuzz; if $(BIN)/python -c "import atheris" 2> /dev/null; then set -e; for target in $(GUIDED); do \
	  echo "guided: $$target"; PYTHONPATH=tests:tests/support $(BIN)/python -W ignore -m fuzz.guided $$target \
	  --seconds $(call FUZZ_SHARE,10) --seed $(SEED) > build/fuzz/guided.log 2>&1 || { tail -40 build/fuzz/guided.log; exit 1; }; \
	  grep number_of_executed_units build/fuzz/guided.log; done; \
	  else echo "pip install atheris, and Python's readers are fuzzed with coverage too"; fi
	$(WITH_TOOLS) cmake -S . -B $(FUZZ_BUILD) -G Ninja -DQWYC_TESTS=ON -DQWYC_PYTHON=OFF \
	  $(if $(CLANG),-DCMAKE_CXX_COMPILER=$(CLANG)) -DQWYC_SANITIZE=address$(COMMA)undefined$(if $(CLANG),$(COMMA)fuzzer-no-link) > /dev/null
	$(WITH_TOOLS) cmake --build $(FUZZ_BUILD) --target fuzz_json fuzz_file fuzz_forest
	mkdir -p build/fuzz/findings
	@set -e; for target in json file forest; do mkdir -p build/fuzz/corpus/$$target; echo "native: $$target"; \
	  ASAN_OPTIONS=malloc_context_size=4:quarantine_size_mb=16 \
	  $(FUZZ_BUILD)/native/fuzz/fuzz_$$target -max_total_time=$(call FUZZ_SHARE,3) -seed=$(SEED) -entropic=0 -max_len=8192 \
	  -print_final_stats=1 -artifact_prefix=build/fuzz/findings/ -dict=native/fuzz/json.dict build/fuzz/corpus/$$target \
	  native/fuzz/corpus/$$target > build/fuzz/native.log 2>&1 || { tail -60 build/fuzz/native.log; exit 1; }; \
	  grep -E "number_of_executed_units|^Done" build/fuzz/native.log; done

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

# The oldest versions of dependencies that pyproject.toml allows, in build/oldest: the core, and tests of files,
# rows, the command line and the monitor. Needs Python 3.11 or 3.12, which the oldest NumPy has wheels for.
OLDEST := $(foreach name,files/test_classifier_file rows/test_tables rows/test_validation rows/test_rows_error cli/test_cli_damaged model/test_one_row monitor/test_monitor,tests/$(name).py)
oldest: $(VENV)/.dev
	$(BIN)/python tests/packaging/oldest.py build/oldest $(OLDEST)

# Known weaknesses of what .venv has installed; asks PyPI.
audit: $(VENV)/.dev
	$(PIP) install "pip-audit>=2.7"
	$(BIN)/python -m pip_audit --skip-editable --progress-spinner off

# Lines that the fast tests run, of the Python code.
coverage: $(VENV)/.dev
	$(PIP) install "coverage[toml]>=7"
	$(BIN)/python -m coverage run -m pytest -n 0
	$(BIN)/python -m coverage report

# All C++ tests on 64-bit ARM, in an emulator: NEON kernels against the portable ones and against plain loops.
# -O1 keeps it short.
arm: $(VENV)/.dev
	@which aarch64-linux-gnu-g++ qemu-aarch64 > /dev/null \
	  || { test "$$(id -u)" = 0 && apt-get install --yes --quiet g++-aarch64-linux-gnu qemu-user; } \
	  || { echo "ARM is tested with g++-aarch64-linux-gnu and qemu-user; install them and run this again"; exit 1; }
	$(call native_tests,arm,-DQWYC_PYTHON=OFF -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ "-DQWYC_OPTIMIZE=-O1;-Wno-psabi" \
	  "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu")

# libqwyc as a DLL and all C++ tests for Windows, compiled with MinGW and run with Wine. -O1 keeps it short.
WINE ?= $(firstword $(wildcard /usr/lib/wine/wine64) $(shell which wine64 wine 2> /dev/null))
windows: export WINEPREFIX := $(abspath build/wine)
windows: export WINEDEBUG := -all
windows: $(VENV)/.dev
	@which x86_64-w64-mingw32-g++-posix > /dev/null && test -n "$(WINE)" \
	  || { echo "Install g++-mingw-w64-x86-64-posix and wine64, and run this again"; exit 1; }
	$(call native_tests,windows,-DQWYC_PYTHON=OFF -DQWYC_LIBRARY=ON -DCMAKE_SYSTEM_NAME=Windows \
	  -DCMAKE_SYSTEM_PROCESSOR=x86_64 -DCMAKE_CXX_COMPILER=x86_64-w64-mingw32-g++-posix \
	  -DCMAKE_RC_COMPILER=x86_64-w64-mingw32-windres -DQWYC_OPTIMIZE=-O1 -DCMAKE_CROSSCOMPILING_EMULATOR=$(WINE))

rust:
	@which rustc > /dev/null || { test "$$(id -u)" = 0 && apt-get install --yes --quiet rustc; } \
	  || { echo "The example of the C library in Rust needs rustc on PATH; install it and run this again"; exit 1; }

# Exported C is tested with clang too, and its size on a Cortex-M4 is stated.
compilers:
	@which clang arm-none-eabi-gcc > /dev/null \
	  || { test "$$(id -u)" = 0 && apt-get install --yes --quiet clang gcc-arm-none-eabi; } \
	  || { echo "Exported C is tested with clang and arm-none-eabi-gcc on PATH; install them and run this again"; exit 1; }

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
	$(BIN)/python -W ignore -m benchmarks.library_peers

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
	$(PIP) install --no-build-isolation --editable '.[dev,bench,wheels,engines,lattice,browser,serving,docs]'
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
