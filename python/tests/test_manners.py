# SPDX-License-Identifier: Apache-2.0
"""Threads, signals, processes, memory: how the module behaves beside what else runs."""
from __future__ import annotations

import concurrent.futures
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import fungi
from conftest import OBJECTIVES, ROOT


@pytest.fixture(scope="module")
def kl():
    return fungi.Extractor(ROOT / "demo", objectives="kl", threads=2)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_import_is_quick_and_light():
    code = ("import sys, time; import numpy; t = time.process_time(); import fungi; t = time.process_time() - t;"
            "print(t, [m for m in ('torch', 'sklearn', 'pandas', 'PIL', 'tqdm', 'pyarrow') if m in sys.modules])")
    times = []
    for _ in range(3):
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split(" ", 1)
        times.append(float(said[0]))
        assert said[1].strip() == "[]"
    assert min(times) < 0.15  # of the processor: others may have it


def test_the_lock_is_released(kl, arrays):
    """Another thread of Python goes on while we compute."""
    ticks = 0
    end = threading.Event()

    def tick():
        nonlocal ticks
        while not end.is_set():
            ticks += 1
            time.sleep(0.001)

    many = np.concatenate([arrays] * 60)
    thread = threading.Thread(target=tick)
    thread.start()
    kl.transform(many)
    end.set()
    thread.join()
    assert ticks > 5


def test_threads_share_an_extractor(kl, arrays):
    expected = kl.transform(arrays)

    def work(i):
        order = np.random.default_rng(i).permutation(len(arrays))
        for _ in range(5):
            assert np.array_equal(kl.transform(arrays[order]), expected[order])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_an_interrupt_stops_and_leaves_all_whole(data, arrays, tmp_path):
    extractor = fungi.Extractor(ROOT / "demo", objectives=["kl", "dino"], threads=2)
    many = np.concatenate([arrays] * 300)
    for call in (lambda: extractor.transform(many),
                 lambda: fungi.extract(many, tmp_path / "s", model="demo", objectives=["kl", "dino"], shard=16, threads=2, progress=False)):
        timer = threading.Timer(0.6, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            call()
        assert time.perf_counter() - start < 15
        timer.join()
    assert len(extractor.transform(arrays)) == len(arrays)  # goes on working
    fungi.extract(many[:40], tmp_path / "s", model="demo", objectives=["kl", "dino"], shard=16, threads=2, prune=True)
    fungi.extract(many[:40], tmp_path / "t", model="demo", objectives=["kl", "dino"], shard=16, threads=2)
    assert np.array_equal(fungi.Store(tmp_path / "s").load(), fungi.Store(tmp_path / "t").load())


def test_an_exception_of_a_progress_function_comes_through(kl, arrays, data):
    class Enough(Exception):
        pass

    def enough(*_):
        raise Enough

    with pytest.raises(Enough):
        kl.transform(np.concatenate([arrays] * 100), progress=enough)
    with pytest.raises(Enough):
        fungi.linear(data.train, data.test, progress=enough)
    assert len(kl.transform(arrays)) == len(arrays)


def test_progress(kl, arrays, capsys):
    seen = []
    kl.transform(arrays, progress=lambda *news: seen.append(news))
    assert seen[-1] == ("extract", len(arrays), len(arrays), 0)
    pytest.importorskip("tqdm")
    kl.transform(arrays, progress=True)
    assert "extract" in capsys.readouterr().err
    kl.transform(arrays, progress=False)
    assert capsys.readouterr().err == ""


def test_threads_are_as_told(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert fungi.threads() == 1 and fungi.Extractor(ROOT / "demo", objectives="none")._native.threads() == 1
    fungi.set_threads(3)
    try:
        assert fungi.threads() == 3 and fungi.threads(5) == 5
    finally:
        fungi.set_threads(0)
    monkeypatch.delenv("OMP_NUM_THREADS")
    own = os.sched_getaffinity(0)
    said = subprocess.run(["taskset", "-c", str(min(own)), sys.executable, "-c", "import fungi; print(fungi.threads())"],
                          capture_output=True, text=True, check=True).stdout
    assert int(said) == 1


def child(extractor, arrays, queue):
    queue.put(extractor.transform(arrays))


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_other_processes(data, arrays, way):
    extractor = fungi.Extractor(ROOT / "demo", objectives=OBJECTIVES, threads=2).fit(data.train_pictures)
    expected = extractor.transform(arrays)  # its threads have run
    context = multiprocessing.get_context(way)
    queue = context.Queue()
    processes = [context.Process(target=child, args=(extractor, arrays, queue)) for _ in range(2)]
    for process in processes:
        process.start()
    for _ in processes:
        assert np.array_equal(queue.get(timeout=120), expected)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert np.array_equal(extractor.transform(arrays), expected)


def test_joblib(kl, arrays):
    joblib = pytest.importorskip("joblib")
    expected = kl.transform(arrays[:4])
    for backend in ("loky", "threading", "multiprocessing"):
        rows = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(kl.transform)(arrays[i : i + 2]) for i in (0, 2))
        assert np.array_equal(np.concatenate(rows), expected)


def test_cycles_leave_nothing_behind(arrays, data):
    def cycle():
        extractor = fungi.Extractor(ROOT / "demo", objectives="kl", threads=1)
        extractor.transform(arrays[:1])
        store = fungi.Store(data.train)
        store["kl"], store.ids, store.labels
        try:
            extractor.transform([object()])
        except fungi.InputTypeError:
            pass

    for _ in range(50):
        cycle()
    gc.collect()
    before, files = resident(), len(os.listdir("/proc/self/fd"))
    for _ in range(int(os.environ.get("FUNGI_CYCLES", 150))):
        cycle()
    gc.collect()
    assert resident() - before < 6 << 20
    assert len(os.listdir("/proc/self/fd")) == files


def test_arrays_are_not_copied(kl, arrays):
    """A batch of uint8 pictures is read where it lies."""
    many = np.ascontiguousarray(np.concatenate([np.tile(arrays, (1, 12, 12, 1))] * 60))
    kl.transform(many[:64])
    peak = 0
    end = threading.Event()

    def watch():
        nonlocal peak
        while not end.is_set():
            peak = max(peak, resident())
            time.sleep(0.002)

    before = resident()
    thread = threading.Thread(target=watch)
    thread.start()
    kl.transform(many)
    end.set()
    thread.join()
    assert many.nbytes > 200 << 20
    assert peak - before < many.nbytes // 2


WITHOUT = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "sklearn", "pandas", "PIL", "pyarrow", "tqdm"):
            raise ImportError(name)
sys.meta_path.insert(0, Gone())
import fungi
rows = fungi.Extractor("demo", objectives="kl").transform(["demo/images/test/bag/00018.png"])
store = fungi.Store(sys.argv[1])
for call in (store.to_pandas, store.to_arrow, lambda: __import__("fungi.sklearn"), lambda: fungi.Extractor("demo", objectives="kl").transform(
        ["demo/images/test/bag/00018.png"], progress=True)):
    try:
        call()
    except fungi.MissingError as error:
        assert "pip install" in error.hint
    else:
        raise AssertionError(call)
print(rows.shape)
"""


def test_without_the_packages_that_are_not_needed(data):
    said = subprocess.run([sys.executable, "-c", WITHOUT, data.train], capture_output=True, text=True, check=False, cwd=ROOT)
    assert said.stdout == "(1, 256)\n", said.stderr


def test_the_command_comes_with_it():
    said = subprocess.run([sys.executable, "-m", "fungi", "--version"], capture_output=True, text=True, check=True).stdout
    assert fungi.__version__ in said
