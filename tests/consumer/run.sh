#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a temporary prefix, builds the consumer against it with find_package(fungi), and runs it. Then
# what other projects meet: a library that is missing, and fungi as a folder of their own.
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

# Public headers and no others: what is reached from here, and what says that it is internal.
installed=$place/prefix/include/fungi
for header in fungi.h backbone/backbone.h kernel/table.h; do
  if [ ! -e "$installed/$header" ]; then echo "the public header $header is not installed" >&2; exit 1; fi
done
if [ -e "$installed/backbone/encode.h" ] || grep -r "Internal to" "$installed"; then
  echo "an internal header is installed" >&2
  exit 1
fi

if grep -r liblapacke "$place/prefix" --include='*.cmake'; then
  echo "the installed targets name a file of this machine" >&2
  exit 1
fi

mkdir "$place/optional" "$place/parent"
cat >"$place/optional/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(optional LANGUAGES CXX)
find_package(fungi QUIET)
if(fungi_FOUND OR NOT fungi_NOT_FOUND_MESSAGE MATCHES "libzip")
  message(FATAL_ERROR "expected no fungi without libzip, found '${fungi_FOUND}': ${fungi_NOT_FOUND_MESSAGE}")
endif()
END
PKG_CONFIG_LIBDIR=/nonexistent cmake -S "$place/optional" -B "$place/optional/build" -G Ninja -DCMAKE_PREFIX_PATH="$place/prefix" >/dev/null

cat >"$place/parent/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES CXX)
add_subdirectory("${FUNGI}" fungi)
if(NOT TARGET fungi::fungi OR TARGET fungi-cli)
  message(FATAL_ERROR "expected the library and no command line")
endif()
END
cmake -S "$place/parent" -B "$place/parent/build" -G Ninja -DFUNGI="$(cd "$source/../.." && pwd)" >/dev/null
cmake --install "$place/parent/build" --prefix "$place/parent/prefix" >/dev/null
if [ -e "$place/parent/prefix" ]; then
  echo "a project that holds fungi as a folder installs more than its own" >&2
  exit 1
fi
