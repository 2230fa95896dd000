#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fungi under Slurm itself, on one node that is this machine: slurm.py FUNGI ROOT [FOLDER]

Starts slurmctld and slurmd (Debian: slurmctld, slurmd, slurm-client) on ports of their own; FOLDER is where their packages were unpacked
(dpkg -x), if they are not installed. `srun --mpi=pmix` starts ranks, submit.sh of examples/cluster an array of jobs, one of which is told to
end and is queued again. Stores have the bytes of a single run. For developers: Slurm is not among what `make test` installs."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

from mpirun import leave, place, wait_for

CONFIGURATION = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
MpiDefault=pmix
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
SlurmUser=root
SlurmdUser=root
ReturnToService=2
SlurmctldPort={port}
SlurmdPort={next}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores}
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4
"""


class Slurm:
    def __init__(self, folder, root):
        self.folder = folder
        self.env = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))
        sbin = f"{root}/usr/sbin"
        libraries = next(iter(sorted(pathlib.Path(f"{root}/usr/lib").glob("*/slurm-wlm"))), None)
        if str(root):
            self.env["PATH"] = f"{root}/usr/bin:{os.environ['PATH']}"
            self.env["LD_LIBRARY_PATH"] = f"{libraries.parent}:{libraries}"
        self.programs = {name: next((p for p in (f"{sbin}/{name}-wlm", f"{sbin}/{name}", shutil.which(name)) if p and os.path.exists(p)), None)
                         for name in ("slurmctld", "slurmd", "slurmstepd")}
        if not self.programs["slurmctld"] or not self.programs["slurmd"] or os.geteuid() != 0:
            leave("there is no Slurm here (slurmctld, slurmd), or this is not root")
        text = CONFIGURATION.format(host=socket.gethostname(), folder=folder, port=16817, next=16818, cores=os.cpu_count())
        if str(root):
            text += f"PluginDir={libraries}\n"
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(text)

    @contextlib.contextmanager
    def running(self):
        stepd = ["-d", self.programs["slurmstepd"]] if self.programs["slurmstepd"] else []
        daemons = []
        try:
            for words in ([self.programs["slurmctld"], "-D"], [self.programs["slurmd"], "-D", *stepd]):
                daemons.append(subprocess.Popen(words, env=self.env, stdout=subprocess.DEVNULL, stderr=open(self.folder / "log", "a")))
            end = time.monotonic() + 60
            while "idle" not in self.run("sinfo", "-h", "-o", "%T", check=False):
                assert time.monotonic() < end, (self.folder / "log").read_text()
                time.sleep(0.2)
            yield self
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait(30)

    def run(self, *words, check=True, **env):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env={**self.env, **env}, timeout=300, cwd=self.folder)
        assert not check or done.returncode == 0, f"{words}\nexit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout


def ranks(made, slurm):
    made.run(made.extract("whole"))
    for count, more in ((2, []), (3, ["--gather"])):
        slurm.run("srun", "--mpi=pmix", "--overcommit", "-n", count, *made.extract(f"srun{count}", *more))
        made.expect_same("whole", f"srun{count}", f"srun -n {count}")
    knn = [made.fungi, "knn", made.folder / "whole", made.folder / "whole", "-k", 5, "--json", "-j", 1]
    expected = made.run(knn)[0]
    assert slurm.run("srun", "--mpi=pmix", "--overcommit", "-n", 3, *knn) == expected, "knn under srun"
    # A rank that is killed ends the step, and the next goes on.
    step = subprocess.Popen(list(map(str, ["srun", "--mpi=pmix", "--overcommit", "-n", 3, "--kill-on-bad-exit=1", *made.extract("killed")])),
                            env=slurm.env, stderr=subprocess.PIPE, text=True)
    began = wait_for(lambda: len(list((made.folder / "killed").rglob("rows-*"))) >= 2, step)
    below = subprocess.run(["pgrep", "-x", "fungi"], capture_output=True, text=True).stdout.split()
    mine = [p for p in below if str(made.folder / "killed") in pathlib.Path(f"/proc/{p}/cmdline").read_text()]
    if began and mine:
        os.kill(int(mine[-1]), 9)
        assert step.wait(60) != 0, "a step that lost a rank did not fail"
    step.communicate()
    slurm.run("srun", "--mpi=pmix", "--overcommit", "-n", 2, *made.extract("killed"))
    made.expect_same("whole", "killed", "after a kill under srun")
    return "killed one" if began and mine else "it was done before it could be killed"


def arrays(made, slurm):
    programs = made.folder / "bin"
    programs.mkdir()
    # Slow enough to be told to end.
    (programs / "fungi").write_text(f'#!/bin/sh\nif [ "$1" = extract ]; then exec "{made.fungi}" "$@" --shard 4; fi\nexec "{made.fungi}" "$@"\n')
    (programs / "fungi").chmod(0o755)
    made.run([made.fungi, "extract", made.pictures, "-m", made.folder / "model", "-o", made.folder / "all", "--objectives", "kl,dino",
              "--shard", 4, "-q"])
    path = f"{programs}:{slurm.env['PATH']}"
    slurm.run(made.root / "examples/cluster/submit.sh", made.pictures, made.folder / "model", made.folder / "parts", made.folder / "array",
              "--objectives", "kl,dino", PATH=path, SBATCH_CPUS_PER_TASK="1")
    requeued = False
    end = time.monotonic() + 60
    while not requeued and time.monotonic() < end and slurm.run("squeue", "-h"):
        if any((made.folder / "parts").rglob("rows-*")):
            task = slurm.run("squeue", "-h", "-r", "-t", "RUNNING", "-o", "%i").split()
            if task:
                slurm.run("scancel", "--batch", "--signal=TERM", task[0], check=False)
                requeued = True
        time.sleep(0.02)
    # One that is queued again waits two minutes; nobody here has to.
    end = time.monotonic() + 200
    while slurm.run("squeue", "-h") and time.monotonic() < end:
        for job in slurm.run("squeue", "-h", "-r", "-o", "%i %r").splitlines():
            if "Begin" in job:
                slurm.run("scontrol", "update", f"jobid={job.split()[0]}", "starttime=now", check=False)
        time.sleep(0.5)
    assert not slurm.run("squeue", "-h"), slurm.run("squeue")
    made.expect_same("all", "array", "an array of jobs")
    return "a task was told to end" if requeued else "all was done before a task could be told to end"


def main():
    with place(*sys.argv[1:3]) as made:
        folder = made.folder / "slurm"
        folder.mkdir()
        with Slurm(folder, pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else "").running() as slurm:
            print(slurm.run("srun", "--version").strip())
            print("ranks have the bytes of one process:", ranks(made, slurm), flush=True)
            print("an array of jobs has the bytes of a single run:", arrays(made, slurm))


if __name__ == "__main__":
    main()
