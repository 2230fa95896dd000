#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/cluster as a cluster runs it: cluster.py FUNGI ROOT

A stand-in for sbatch reads the #SBATCH lines as Slurm does and runs the tasks of an array one after the other; one task is told to end
and is queued again, one pod of the Kubernetes Job, too. The store must have the bytes of a single run. Where kubernetes_validate is
installed, the manifest is checked against Kubernetes' schema, too."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SBATCH = r'''#!/usr/bin/env python3
import os, pathlib, re, subprocess, sys
state = pathlib.Path(os.environ["STAND_IN"])
words = sys.argv[1:]
first = next(i for i, w in enumerate(words) if not w.startswith("--"))
options = dict(w[2:].partition("=")[::2] for w in words[:first])
script, *arguments = words[first:]
text = pathlib.Path(script).read_text()
options = {**dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)", text, re.M)), **options}
job = len(list(state.glob("job*"))) + 1
after = options.get("dependency", "")
if after and not (state / ("job" + after.removeprefix("afterok:"))).exists():
    sys.exit("no such job: " + after)
tasks = [None]
if "array" in options:
    first, last = map(int, options["array"].split("-"))
    tasks = list(range(first, last + 1))
for task in tasks:
    env = dict(os.environ, SLURM_JOB_ID=str(job), SLURM_CPUS_PER_TASK=options["cpus-per-task"])
    if task is not None:
        env.update(SLURM_ARRAY_JOB_ID=str(job), SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_COUNT=str(len(tasks)))
    while True:
        if subprocess.run(["bash", script, *arguments], env=env, stdout=open(state / "output", "a")).returncode:
            sys.exit("a task failed")
        queued = state / "requeue"
        if not queued.exists():
            break
        assert queued.read_text().strip() == "requeue %d_%s" % (job, task), queued.read_text()
        queued.rename(state / ("requeued%s" % task))
(state / ("job%d" % job)).touch()
print(job if "parsable" in options else "Submitted batch job %d" % job)
'''
SCONTROL = '#!/bin/sh\necho "$@" > "$STAND_IN/requeue"\n'
# The first run of part 2 is told to end when it has begun, as at the end of its time.
FUNGI = '''#!/bin/bash
if [[ "$*" == *"--part 2/4"* && ! -e $STAND_IN/told-$WHO ]]; then
  touch "$STAND_IN/told-$WHO"
  "$REAL" "$@" --shard 4 & child=$!
  trap 'kill -TERM $child' TERM
  (sleep 0.5; kill -TERM $PPID) &
  while kill -0 $child 2>/dev/null; do wait $child; done
  wait $child
  exit $?
fi
if [[ $1 == extract ]]; then exec "$REAL" "$@" --shard 4; fi
exec "$REAL" "$@"
'''


def contents(folder):
    return {f.relative_to(folder): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def expect_same(expected, found, what):
    a, b = contents(expected), contents(found)
    assert a.keys() == b.keys(), f"{what}: {sorted(a.keys() ^ b.keys())}"
    assert not [name for name in a if a[name] != b[name]], f"{what}: {[name for name in a if a[name] != b[name]]}"


def make_bin(place):
    programs = place / "bin"
    programs.mkdir()
    for name, text in (("sbatch", SBATCH), ("scontrol", SCONTROL), ("fungi", FUNGI)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (place / "state").mkdir()
    return programs


def pods(text):
    """The Job as Kubernetes runs it: its shell text once per index, again after a failure."""
    completions = int(re.search(r"completions: (\d+)", text)[1])
    script = re.search(r"args:\n +- \|\n((?: {14}.*\n)+)", text)[1]
    return completions, re.sub(r"^ {14}", "", script, flags=re.M)


def main():
    fungi, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        work = place / "work"
        (work / "model").mkdir(parents=True)
        for name in ("model.safetensors", "config.json"):
            (work / "model" / name).write_bytes((root / "demo" / name).read_bytes())
        os.symlink(root / "demo/images/test", work / "data")
        env = dict(os.environ, PATH=f"{make_bin(place)}:{os.environ['PATH']}", REAL=str(fungi), STAND_IN=str(place / "state"), WHO="slurm")
        run = lambda command, **more: subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, **more)
        run([fungi, "extract", work / "data", "-m", work / "model", "-o", work / "whole", "--objectives", "kl", "--shard", 4, "-q"])
        run([root / "examples/cluster/submit.sh", work / "data", work / "model", work / "slurm", work / "of_slurm", "--objectives", "kl"],
            env=env)
        expect_same(work / "whole", work / "of_slurm", "Slurm")
        text = (root / "examples/cluster/job.yaml").read_text()
        completions, script = pods(text)
        assert re.search(r'name: PARTS\n +value: "(\d+)"', text)[1] == str(completions)
        script = script.replace("/volume/", f"{work}/").replace(" -q &", " -q --objectives kl &")
        for index in range(completions):
            for attempt in range(3):
                status = subprocess.run(["bash", "-c", script], stdout=subprocess.DEVNULL,
                                        env=dict(env, WHO="pods", PARTS=str(completions), JOB_COMPLETION_INDEX=str(index))).returncode
                if status == 0:
                    break
            assert status == 0, status
        run([fungi, "merge", *sorted((work / "parts").iterdir()), "-o", work / "of_pods", "-q"])
        expect_same(work / "whole", work / "of_pods", "Kubernetes")
        for who in ("slurm", "pods"):
            assert (place / "state" / f"told-{who}").exists(), f"{who}: nothing was interrupted"
    if importlib.util.find_spec("kubernetes_validate"):
        import kubernetes_validate
        import yaml
        version = kubernetes_validate.latest_version()
        kubernetes_validate.validate(yaml.safe_load(text), version, strict=True)
        print(f"the manifest is valid Kubernetes {version}")
    print("the cluster's store has the bytes of a single run")


if __name__ == "__main__":
    main()
