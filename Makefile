# SPDX-License-Identifier: Apache-2.0
# The front door. Everything real is in CMake; these targets install what is missing, build, and run.
JOBS ?= $(shell nproc)

.PHONY: all build test test-browser demo bench compare install-deps asan tsan generic tiles format install clean

all: build

install-deps:
	@tools/install_deps.sh

build: install-deps
	@cmake --preset release >/dev/null
	@cmake --build build -j$(JOBS)

test: build
	@ctest --test-dir build -j$(JOBS) --output-on-failure --no-tests=error

# Kept apart because the browser is larger than everything else together.
test-browser: build
	@tools/install_deps.sh browser
	@ctest --test-dir build -R report.browser --output-on-failure --no-tests=error

demo: build
	@tools/demo.sh

bench: build
	@build/fungi bench -m vit_base_patch16_224
	@build/fungi bench -m vit_small_patch16_224

compare: build
	@bench/compare

asan tsan generic tiles: install-deps
	@cmake --preset $@ >/dev/null
	@cmake --build build-$@ -j$(JOBS)
	@ctest --preset $@ -j$(JOBS)

format:
	@git ls-files '*.cpp' '*.h' | xargs clang-format-14 -i

install: build
	@cmake --install build

clean:
	@cmake -E rm -rf build build-asan build-tsan build-generic build-tiles build-amx-vm
