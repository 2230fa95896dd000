# SPDX-License-Identifier: Apache-2.0
# The front door. Everything real is in CMake; these targets install what is missing, build, and run.
JOBS ?= $(shell nproc)

PYTHON ?= python3

.PHONY: all program build test test-browser wheel demo bench compare install-deps asan tsan generic tiles format install clean

all: build

install-deps:
	@tools/install_deps.sh

# The command line and the library alone, in half the time of everything.
program: install-deps
	@cmake --preset release >/dev/null
	@cmake --build build -j$(JOBS) --target fungi-cli

# With the Python module, where its tools can be had, and with Open MPI.
build:
	@tools/install_deps.sh ranks
	@env=$$(tools/python_env.sh build) && cmake --preset release $${env:+-DFUNGI_PYTHON=ON -DPython_EXECUTABLE="$$env"} >/dev/null
	@cmake --build build -j$(JOBS)

test: build
	@ctest --test-dir build -j$(JOBS) --output-on-failure --no-tests=error

# Kept apart because the browser is larger than everything else together.
test-browser: build
	@tools/install_deps.sh browser
	@ctest --test-dir build -R "report.browser|web.page" --output-on-failure --no-tests=error

# A wheel in build/wheel that needs numpy alone; PYTHON=python3.12 makes that of another version.
wheel: install-deps
	@tools/install_deps.sh wheel
	@tools/make_wheel.sh $(PYTHON)

demo: program
	@tools/demo.sh

bench: program
	@build/fungi bench -m vit_base_patch16_224
	@build/fungi bench -m vit_small_patch16_224

compare: program
	@bench/compare

asan tsan generic tiles: install-deps
	@cmake --preset $@ >/dev/null
	@cmake --build build-$@ -j$(JOBS)
	@ctest --preset $@ -j$(JOBS)

format:
	@git ls-files '*.cpp' '*.h' | xargs clang-format-14 -i

install: program
	@cmake --install build

clean:
	@cmake -E rm -rf build build-asan build-tsan build-generic build-tiles build-amx-vm
