#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A virtual environment with all that building and testing the Python module needs: BUILD/python-env. Prints the interpreter.
# Where no package index can be reached it says so and prints nothing: the module is then left out.
set -euo pipefail
cd "$(dirname "$0")/.."
env="${1:-build}/python-env"
needs=python/requirements-test.txt
if ! cmp -s "$needs" "$env/done"; then
  python3 -m venv --clear "$env" >/dev/null 2>&1 || { echo "fungi: no Python module: 'python3 -m venv' does not work here" >&2; exit 0; }
  if ! timeout 600 "$env/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
      --retries 2 --timeout 20 -r "$needs" 2>"$env/log"; then
    echo "fungi: no Python module and none of its tests: its tools could not be installed (see $env/log)" >&2
    exit 0
  fi
  cp "$needs" "$env/done"
fi
readlink -f "$env/bin" | sed 's|$|/python|'
