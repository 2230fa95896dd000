#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# submit.sh DATA MODEL PARTS STORE [OPTIONS of fungi extract]: an array of jobs, then one that joins its parts.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$1 model=$2 parts=$3 store=$4
shift 4
job=$(sbatch --parsable "$here/extract.sbatch" "$data" "$model" "$parts" "$@")
sbatch --dependency="afterok:${job%%;*}" "$here/merge.sbatch" "$parts" "$store"
