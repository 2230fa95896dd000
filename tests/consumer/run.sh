#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a temporary prefix, builds the consumer against it with find_package(fungi), and runs it.
set -euo pipefail
build=$1 source=$2
place=$(mktemp -d)
# The list of what a real installation wrote stays as it is.
manifest=$build/install_manifest.txt
if [ -e "$manifest" ]; then mv "$manifest" "$place"; fi
restore() {
  rm -f "$manifest"
  if [ -e "$place/install_manifest.txt" ]; then mv "$place/install_manifest.txt" "$manifest"; fi
  rm -rf "$place"
}
trap restore EXIT
cmake --install "$build" --prefix "$place/prefix" >/dev/null
cmake -S "$source" -B "$place/build" -G Ninja -DCMAKE_PREFIX_PATH="$place/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$place/build" >/dev/null
"$place/build/consumer"
"$place/prefix/bin/fungi" --version
