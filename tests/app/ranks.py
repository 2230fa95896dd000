#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mpirun -n N fungi: ranks.py FUNGI ROOT [KILLS]

Stores and results have the bytes of one process, on any number of ranks, with and without a shared folder; after kills of a rank at
random (6, where nothing else is said) and repeating with another number; where a rank's disk is full, where one stands still, and where ranks differ."""
import json
import os
import random
import shutil
import signal
import sys
import time
import wave

from mpirun import MPIRUN, place, ranks_of, started, wait_for


def same_stores(made):
    made.run(made.extract("whole"))
    for ranks, more in ((2, []), (3, ["--gather"]), (4, [])):
        made.run(made.extract(f"on{ranks}", *more), ranks)
        made.expect_same("whole", f"on{ranks}", f"{ranks} ranks {more}")


def kills(made):
    random.seed(5)
    wanted_kills = int(sys.argv[3]) if len(sys.argv) > 3 else 6
    made.run(made.extract("whole160", limit=160))
    struck = stores = 0
    while struck < wanted_kills:
        stores += 1
        assert stores <= 20, f"only {struck} kills found a run at work"
        store = f"killed{stores}"
        there = lambda: len(list((made.folder / store).rglob("*"))) if (made.folder / store).exists() else 0
        for ranks in (2, 3, 4):
            more = ["--gather"] if (stores + ranks) % 3 == 0 else []
            with started(made, made.extract(store, *more, limit=160), ranks) as process:
                wanted = there() + random.randrange(1, 8)
                at_work = wait_for(lambda: there() >= wanted, process) and ranks_of(process.pid)
                if at_work:
                    os.kill(at_work[random.choice(sorted(at_work))], signal.SIGKILL)
                    struck += 1
                    assert process.wait(30) != 0, "a run that lost a rank did not fail"
                process.communicate()
            if not at_work:
                break  # it was done before: another store
        made.run(made.extract(store, limit=160), 2 + stores % 3)
        made.expect_same("whole160", store, f"killed, store {stores}")
    print(f"{struck} ranks were killed, {stores} stores")


def notes(made):
    """Rank 0 speaks for all: sounds of another rate on every rank, and one that cannot be read."""
    clips = made.folder / "clips"
    clips.mkdir()
    for i in range(12):
        with wave.open(str(clips / f"{i:02}.wav"), "wb") as clip:
            clip.setnchannels(1), clip.setsampwidth(2), clip.setframerate(8000)
            clip.writeframes(random.Random(i).randbytes(4000))
    (clips / "05.wav").write_bytes(b"RIFF")
    command = [made.fungi, "extract", clips, "-m", made.root / "tests/golden/backbone/hf_ast", "--objectives", "none", "--shard", 2, "-j", 1, "--json"]
    one = json.loads(made.run([*command, "-o", made.folder / "heard1"], status=3)[0])
    three = json.loads(made.run([*command, "-o", made.folder / "heard3"], 3, status=3)[0])
    assert any("11 samples have another rate" in note for note in one["notes"]), one["notes"]
    assert one["notes"] == three["notes"], (one["notes"], three["notes"])
    assert three["failed"] == 1
    made.expect_same("heard1", "heard3", "sounds")


def ranks_that_differ(made):
    def mixed(store, *more):
        command = [str(word) for word in made.extract(store, *more)]
        return [*MPIRUN[1:], "-n", "1", "-x", "FUNGI_ISA=avx2", *command, ":", "-n", "1", "-x", "FUNGI_ISA=generic", *command]
    if "avx2" not in open("/proc/cpuinfo").read():
        return print("not tried: this processor has one set of instructions")
    said = made.run([MPIRUN[0], *mixed("mixed")], status=None)[1]
    assert "rank 1 on" in said and "generic-f32 computes there" in said and "--allow-mixed" in said, said
    assert not (made.folder / "mixed").exists(), "a refusal left something behind"
    made.run([MPIRUN[0], *mixed("mixed", "--allow-mixed")])
    origins = json.loads((made.folder / "mixed/manifest.json").read_text())["produced_by"]
    assert len(origins) == 2, origins


def full_disk(made):
    command = " ".join(f"'{word}'" for word in made.extract("full"))
    limited = ["sh", "-c", f"[ $OMPI_COMM_WORLD_RANK = 1 ] && ulimit -f 4; exec {command}"]
    said = made.run([*MPIRUN, "-n", "2", *limited], status=None)[1]
    assert "rank 1 on" in said and "File too large" in said and "free space" in said, said
    made.run(made.extract("full"), 3)
    made.expect_same("whole", "full", "after a full disk")


def rank_that_stands_still(made):
    begun = lambda store: (made.folder / store / "rows-00001.jsonl").exists()
    with started(made, made.extract("slow"), 2) as process:
        assert wait_for(lambda: begun("slow"), process)
        slow = ranks_of(process.pid)[1]
        os.kill(slow, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(slow, signal.SIGCONT)
        assert process.wait(60) == 0, process.communicate()
    made.expect_same("whole", "slow", "a slow rank")
    with started(made, made.extract("lost"), 2, FUNGI_RANK_TIMEOUT="3") as process:
        assert wait_for(lambda: begun("lost"), process)
        lost = ranks_of(process.pid)[1]
        os.kill(lost, signal.SIGSTOP)
        begin = time.monotonic()
        _, said = process.communicate(timeout=60)
        took = time.monotonic() - begin
        assert process.returncode != 0 and "rank 1 on" in said and "silent for 3 seconds" in said, said
        assert took < 20, took
    made.run(made.extract("lost"), 2)
    made.expect_same("whole", "lost", "a lost rank")


def evaluations(made):
    made.run(made.extract("train", limit=240))
    made.run([made.fungi, "extract", made.pictures, "-o", made.folder / "test", "--like", made.folder / "train", "--limit", 80, "-q"])
    train, test = made.folder / "train", made.folder / "test"
    for verb in (["knn", train, test, "-k", 5], ["linear", train, test, "--features", "kl", "--lambda", 1e-3], ["kmeans", train],
                 ["retrieve", train, test], ["cka", train]):
        pca = [] if verb[0] == "cka" else ["--pca", 64]
        command = [made.fungi, *verb, *pca, "-j", 1, "--json"]
        expected = made.run(command)[0]
        for ranks in (2, 4) if verb[0] == "knn" else (3,):
            found = made.run(command, ranks)[0]
            assert found == expected, f"{verb[0]} on {ranks} ranks:\n{found}\n{expected}"
    made.run([made.fungi, "pca", train, test, "-o", made.folder / "pca1", "--dim", 32])
    made.run([made.fungi, "pca", train, test, "-o", made.folder / "pca2", "--dim", 32], 2)
    made.expect_same("pca1", "pca2", "PCA")
    said = made.run([made.fungi, "index", train, "-o", made.folder / "index"], 2, status=None)[1]
    assert "is for one process" in said, said


def main():
    with place(*sys.argv[1:3]) as made:
        for part in (same_stores, kills, notes, ranks_that_differ, full_disk, rank_that_stands_still, evaluations):
            begin = time.monotonic()
            part(made)
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
