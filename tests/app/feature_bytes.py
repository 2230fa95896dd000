#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bytes of image features, fixed: every objective, preset, projection, storage type and kept factors, on a few of the demo's
pictures, for every instruction set and precision that this machine can run. A change of code must not change them.

  feature_bytes.py FUNGI ROOT           compares with tests/golden/feature_bytes.json; status 1 where a sum differs. All runs on
                                        the machine's best instruction set, the first on the others, which are slow
  feature_bytes.py FUNGI ROOT --all     all runs on all of them
  feature_bytes.py FUNGI ROOT --write   replaces the sums of what this machine can run: only for a change that is meant and told
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

OBJECTIVES = ["kl", "dino", "simclr", "deepcluster", "ibot"]
RUNS = {
    "native": ["--objectives", *OBJECTIVES],
    "paper": ["--objectives", *OBJECTIVES, "--preset", "paper"],
    "lib": ["--objectives", *OBJECTIVES, "--preset", "lib"],
    "gaussian": ["--objectives", "kl", "dino", "--projection", "gaussian"],
    "sparse": ["--objectives", "kl", "dino", "--projection", "sparse"],
    "factored": ["--objectives", "kl", "dino", "--projection", "factored", "--projection-dim", "512"],
    "float16": ["--objectives", "kl", "simclr", "--storage", "float16"],
    "factors": ["--objectives", "kl", "dino", "--keep-factors"],
    "layer": ["--objectives", "kl", "dino", "--layer", "blocks.1.mlp.fc1"],
}
PICTURES_PER_CLASS = 1


def pictures(root: pathlib.Path, folder: pathlib.Path) -> None:
    for name in sorted(p.name for p in (root / "demo/images/test").iterdir() if p.is_dir()):
        (folder / name).mkdir(parents=True)
        for file in sorted((root / "demo/images/test" / name).iterdir())[:PICTURES_PER_CLASS]:
            (folder / name / file.name).write_bytes(file.read_bytes())


def sums(fungi: str, root: pathlib.Path, isa: str, precision: str, runs: list[str]) -> tuple[str, dict[str, dict[str, str]]]:
    """The kernel table that computed them, and the sums of each run."""
    found, kernel = {}, ""
    with tempfile.TemporaryDirectory() as temporary:
        data = pathlib.Path(temporary) / "data"
        pictures(root, data)
        for name in runs:
            options = RUNS[name]
            store = pathlib.Path(temporary) / name
            subprocess.run([fungi, "extract", data, "-m", root / "demo/model.safetensors", "-o", store, "--precision", precision,
                            "--quiet", *options], check=True, env={**os.environ, "FUNGI_ISA": isa}, stdout=subprocess.DEVNULL)
            found[name] = {str(file.relative_to(store)): hashlib.sha256(file.read_bytes()).hexdigest()
                           for file in sorted(store.rglob("*.npy"))}
            kernel = json.loads((store / "manifest.json").read_text())["produced_by"][0]["isa"]
    return kernel, found


def main() -> int:
    fungi, root = sys.argv[1], pathlib.Path(sys.argv[2])
    golden = root / "tests/golden/feature_bytes.json"
    expected = json.loads(golden.read_text()) if golden.exists() else {}
    info = json.loads(subprocess.run([fungi, "info", "--json"], check=True, capture_output=True).stdout)
    wrong = []
    for isa in info["supported"]:
        for precision in ("f32", "bf16"):
            every = isa == info["isa"] or "--all" in sys.argv or "--write" in sys.argv
            key, found = sums(fungi, root, isa, precision, list(RUNS) if every else list(RUNS)[:1])
            if "--write" in sys.argv:
                expected[key] = found
                continue
            for run, files in found.items() if key in expected else ():
                known = expected[key].get(run, {})
                for file in sorted(set(files) | set(known)):
                    if files.get(file) != known.get(file):
                        wrong.append(f"{key}: {run}/{file} has other bytes")
            print(f"{key}: {'compared' if key in expected else 'no sums are known; write them on such a machine'}")
    if "--write" in sys.argv:
        golden.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
