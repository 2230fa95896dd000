#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and testing need; does nothing when all are there.
# With the word "browser": also Chromium (350 MB), and Node where there is none, for the tests that open the report and the page; with
# "wheel": the archives that a wheel takes from. With "ranks": also Open MPI, for work on several
# machines, and what makes networks for its tests.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config python3 python3-numpy python3-dev python3-venv
  libcli11-dev nlohmann-json3-dev libfmt-dev
  libjpeg62-turbo-dev libpng-dev libwebp-dev libtiff-dev libavif-dev libheif-dev zlib1g-dev libzip-dev libarchive-dev
  libutf8proc-dev libsentencepiece-dev libcurl4-openssl-dev libcpp-httplib-dev libsndfile1-dev libsoxr-dev libkissfft-dev
  libopenblas-dev liblapacke-dev libhdf5-dev libmatio-dev
  libgtest-dev libbenchmark-dev hdf5-tools
)
if [ "${1:-}" = browser ]; then
  packages+=(chromium)
  command -v npm >/dev/null || packages+=(nodejs npm)
fi
[ "${1:-}" = wheel ] && packages+=(liblapack-dev libblas-dev)
[ "${1:-}" = ranks ] && packages+=(mpi-default-dev mpi-default-bin iproute2)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

command -v apt-get >/dev/null || {
  echo "fungi: these packages are needed (Debian's names): ${missing[*]}" >&2
  exit 1
}
run=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "fungi: become root, or install sudo, to get: ${missing[*]}" >&2; exit 1; }
  run=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -qq
"${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
