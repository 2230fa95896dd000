# SPDX-License-Identifier: Apache-2.0
"""What tests of several processes share: starting them by mpirun, folders as bytes, leaving with a reason."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
SKIPPED = 77


def leave(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


class Place:
    """A scratch folder with a model and pictures, and the program."""

    def __init__(self, folder, fungi, root):
        self.folder, self.fungi = pathlib.Path(folder), pathlib.Path(fungi).resolve()
        (self.folder / "model").mkdir()
        for name in ("model.safetensors", "config.json"):
            shutil.copy(pathlib.Path(root) / "demo" / name, self.folder / "model")
        self.root = pathlib.Path(root).resolve()
        self.pictures = self.root / "demo/images/test"
        self.env = dict(os.environ, OMPI_MCA_rmaps_base_oversubscribe="1", TMPDIR=str(self.folder))

    def extract(self, store, *more, limit=60):
        return [self.fungi, "extract", self.pictures, "-m", self.folder / "model", "-o", self.folder / store, "--objectives", "kl",
                "--limit", limit, "--shard", 4, "-j", 1, "-q", *more]

    def run(self, command, ranks=None, status=0, **env):
        """What it printed and said; its exit status has to be as expected (None: any but 0)."""
        words = list(map(str, [*(MPIRUN + ["-n", ranks] if ranks else []), *command]))
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**self.env, **env})
        good = done.returncode != 0 if status is None else done.returncode == status
        assert good, f"{' '.join(words)}\nexit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout, done.stderr

    def contents(self, store):
        top = self.folder / store
        return {f.relative_to(top).as_posix(): f.read_bytes() for f in top.rglob("*") if f.is_file()}

    def expect_same(self, expected, found, what):
        a, b = self.contents(expected), self.contents(found)
        assert a.keys() == b.keys(), f"{what}: {sorted(a.keys() ^ b.keys())}"
        assert (wrong := [name for name in a if a[name] != b[name]]) == [], f"{what}: {wrong}"


@contextlib.contextmanager
def place(fungi, root):
    if not shutil.which("mpirun"):
        leave("there is no mpirun: install mpi-default-dev")
    with tempfile.TemporaryDirectory() as folder:
        made = Place(folder, fungi, root)
        words = list(map(str, [*MPIRUN, "-n", 2, *made.extract("try", limit=1)]))
        tried = subprocess.run(words, capture_output=True, text=True, env=made.env)
        if "cannot talk to the others" in tried.stderr:
            leave("this build has no MPI")
        assert tried.returncode == 0, tried.stderr
        yield made


def ranks_of(launcher):
    """The processes of fungi below mpirun, by rank."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = {}, [launcher]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{child}/exe").endswith("fungi"):
                    env = (pathlib.Path("/proc") / str(child) / "environ").read_bytes().split(b"\0")
                    rank = [e for e in env if e.startswith(b"OMPI_COMM_WORLD_RANK=")]
                    if rank:
                        found[int(rank[0].partition(b"=")[2])] = child
    return found


@contextlib.contextmanager
def started(made, command, ranks, **env):
    process = subprocess.Popen(list(map(str, [*MPIRUN, "-n", ranks, *command])), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**made.env, **env})
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(condition, process, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
