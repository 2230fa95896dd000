#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether a wheel needs numpy alone: check_wheel.sh WHEEL [PYTHON] [NUMPY]. It is installed into a bare environment and used there;
# every library that it loads lies in it, but for those of the C and C++ run time and zlib, which every system of its tag has.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel="$(realpath "$1")" python="${2:-python3}" numpy="${3:-numpy}" most=$((15 * 1000 * 1000))
bytes=$(stat -c %s "$wheel")
[ "$bytes" -lt "$most" ] || { echo "$wheel: $bytes bytes; expected less than $most" >&2; exit 1; }
place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT
"$python" -m venv "$place/env"
"$place/env/bin/pip" install --quiet --disable-pip-version-check "$numpy" "$wheel"
packages=$("$place/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
outside=$(find "$packages"/fungi "$packages"/fungi_features.libs -type f -exec sh -c 'ldd "$1" 2>/dev/null' _ {} \; |
  awk -v own="$place" '/=>/ && index($3, own) != 1 {print $1 " " $3}' | sort -u |
  grep -Ev '^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libz)\.so\.' || true)
[ -z "$outside" ] || { echo "$wheel: it loads what is not in it:" >&2; echo "$outside" >&2; exit 1; }
demo="$PWD/demo"
(cd "$place" && "$place/env/bin/python" - "$demo" <<'PYTHON'
import sys
import numpy
import fungi

demo = sys.argv[1]
fungi.extract(demo + "/images/train", "train", model=demo, objectives="kl", progress=False)
fungi.extract(demo + "/images/test", "test", like="train", progress=False)
scores = fungi.knn("train", "test", k=5)
assert [score.features for score in scores] == ["embedding", "embedding+kl"], scores
rows = fungi.Extractor(like="train").transform([demo + "/images/test/bag/00018.png"])
assert rows.shape == (1, 256) and numpy.isfinite(rows).all()
print(f"fungi {fungi.__version__}, Python {sys.version.split()[0]}, numpy {numpy.__version__}:",
      ", ".join(f"{score.features} {score.accuracy:.3f}" for score in scores))
PYTHON
)
(cd "$place" && env/bin/fungi info >/dev/null)
echo "$wheel: $bytes bytes; all that it loads is in it"
