#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on the shipped defaults: a small ViT of our own (demo/README.md), a small set of real pictures, features with all three
# gradients, nearest-neighbour accuracy as blocks are added, and a page with neighbours side by side. Prints what comes out.
#   demo.sh [FOLDER FUNGI]    default: demo-output build/fungi, from the root of the repository
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-demo-output}
fungi=${2:-build/fungi}

"$fungi" info
echo
echo "features of demo/images/train, then demo/images/test (a few minutes at most; repeat the command to see it resume):"
"$fungi" extract demo/images/train -m demo/model.safetensors -o "$out/train"
"$fungi" extract demo/images/test -m demo/model.safetensors -o "$out/test" --like "$out/train"
echo
"$fungi" knn "$out/train" "$out/test"
echo
"$fungi" report "$out/train" "$out/test" -o "$out/report.html" --train-pictures demo/images/train --test-pictures demo/images/test
echo "open $out/report.html in a browser"
