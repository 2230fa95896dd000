#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Neighbours, PCA, k-means and logistic regression beside scikit-learn, faiss and numpy, in one run on one machine.

A developer's tool: needs numpy, scikit-learn and faiss-cpu, and the program built from bench/search_bench.cpp.
Absolute times say little on another machine; the ratios are what counts.

  bench/compare search [--program build/search_bench] [--threads 2] [--repeats 2] [--scale 1.0] [--data features]

--cpu compares processor time instead of time on the clock: for machines that are busy with other work.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def set_up_blas(threads: int) -> None:
    """Before numpy is loaded. OpenBLAS builds that do not know a recent Intel CPU fall back to a slow core."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    text = pathlib.Path("/proc/cpuinfo").read_text()
    flags = text.split("flags", 1)[-1].split("\n", 1)[0].split()
    # AMD is found by itself; told "Cooperlake", the older OpenBLAS inside faiss would fall back to SSE3.
    if "AuthenticAMD" in text or "OPENBLAS_CORETYPE" in os.environ:
        return
    if "avx512_bf16" in flags:
        os.environ["OPENBLAS_CORETYPE"] = "Cooperlake"
    elif "avx512f" in flags:
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"


def bring(module: str, package: str) -> None:
    """Installs a missing peer into the virtual environment that bench/compare made; fails with a line elsewhere."""
    if importlib.util.find_spec(module):
        return
    if sys.prefix == sys.base_prefix:
        sys.exit(f"compare: {package} is missing; run bench/compare search, or use a virtual environment that has it")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", package], check=True)


class Bench:
    def __init__(self, options):
        import numpy

        self.np = numpy
        self.options = options
        self.folder = tempfile.TemporaryDirectory(prefix="fungi-search-", dir=options.cache)
        self.rows = []

    def path(self, name, array):
        path = os.path.join(self.folder.name, name)
        array.tofile(path)
        return path

    def ours(self, *arguments):
        command = [self.options.program, *map(str, arguments)]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if self.options.cpu:
            result["seconds"] = result["cpu_seconds"]
        return result

    def best(self, body):
        """Seconds of the fastest of `repeats` runs, and what the last one returned."""
        clock = time.process_time if self.options.cpu else time.perf_counter
        times, result = [], None
        for _ in range(self.options.repeats):
            begin = clock()
            result = body()
            times.append(clock() - begin)
        return min(times), result

    def report(self, task, ours, peers, note=""):
        for name, seconds in peers.items():
            self.rows.append({"task": task, "peer": name, "ours_seconds": round(ours, 4),
                              "peer_seconds": round(seconds, 4), "ratio": round(seconds / ours, 2), "note": note})
            print(f"{task:34s} ours {ours:8.3f} s   {name:28s} {seconds:8.3f} s   {seconds / ours:6.2f} x   {note}",
                  flush=True)

    def features(self, rows, width, seed):
        """Gaussian noise (the hardest case for pruning), or rows with classes and a falling spectrum like features."""
        np, rng = self.np, self.np.random.default_rng(seed)
        x = rng.standard_normal((rows, width), dtype=np.float32)
        if self.options.data == "features":
            shared = np.random.default_rng(1)
            fall = (np.arange(1, width + 1) ** -0.5).astype(np.float32)
            centres = shared.standard_normal((100, width), dtype=np.float32)
            x = (x + centres[rng.integers(0, 100, rows)]) * fall
        return x

    def knn(self):
        from sklearn.neighbors import NearestNeighbors
        import faiss

        np, o = self.np, self.options
        n, m, d, k = int(50000 * o.scale), int(10000 * o.scale), 512, 20
        database, queries = self.features(n, d, 2), self.features(m, d, 3)
        ours = self.ours("knn", self.path("db", database), self.path("q", queries), d, k, o.threads, o.repeats)
        plain = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(database)
        sklearn_seconds, (distance, index) = self.best(lambda: plain.kneighbors(queries))
        faiss.omp_set_num_threads(o.threads)
        flat = faiss.IndexFlatL2(d)
        flat.add(database)
        faiss_seconds, _ = self.best(lambda: flat.search(queries, k))
        mine = np.fromfile(os.path.join(self.folder.name, "neighbours"), dtype=np.uint32).reshape(m, k)
        same = float((np.sort(mine, 1) == np.sort(index, 1)).all(1).mean())
        self.report(f"kNN {n} x {m} x {d}", ours["seconds"],
                    {"scikit-learn brute": sklearn_seconds, "faiss flat": faiss_seconds},
                    f"scan {ours['scan']}, open {ours['open_share']:.4f}, same neighbours {same:.4f}")

    def pca(self):
        from sklearn.decomposition import PCA

        np, o = self.np, self.options
        n, d, dim = int(50000 * o.scale), int(3072 * min(1, o.scale ** 0.5)), int(512 * min(1, o.scale ** 0.5))
        x = self.features(n, d, 4)
        ours = self.ours("pca", self.path("x", x), d, dim, o.threads, o.repeats)
        default_seconds, _ = self.best(lambda: PCA(dim).fit(x))

        def covariance():
            centred = x - x.mean(0)
            values, vectors = np.linalg.eigh(centred.T @ centred / np.float32(n - 1))
            return values[::-1][:dim], vectors[:, ::-1][:, :dim].T

        numpy_seconds, (values, _) = self.best(covariance)
        error = float(np.abs(np.array(ours["variance"]) - values[: len(ours["variance"])]).max() / values[0])
        self.report(f"PCA {n} x {d} to {dim}", ours["seconds"],
                    {"scikit-learn default": default_seconds, "numpy covariance + eigh (f32)": numpy_seconds},
                    f"variance differs {error:.1e}; products alone {ours['covariance_seconds']:.2f} s on the clock")

    def kmeans(self):
        from sklearn.cluster import KMeans

        np, o = self.np, self.options
        n, d, k = int(50000 * o.scale), 512, 100
        x = self.features(n, d, 5)
        start = x[np.random.default_rng(6).choice(n, k, replace=False)]
        ours = self.ours("kmeans", self.path("x", x), self.path("start", start), d, 25, o.threads, o.repeats)
        make = lambda: KMeans(k, init=start, n_init=1, max_iter=25, tol=0, algorithm="lloyd").fit(x)
        seconds, fit = self.best(make)
        self.report(f"k-means {n} x {d}, k = {k}", ours["seconds"], {"scikit-learn lloyd": seconds},
                    f"inertia ours/theirs {ours['inertia'] / fit.inertia_:.5f}, iterations {ours['iterations']}"
                    f" and {fit.n_iter_}")

    def logistic(self):
        from sklearn.linear_model import LogisticRegression

        np, o = self.np, self.options
        n, d, classes, penalty = int(20000 * o.scale), 512, 100, 2.525e-4
        rng = np.random.default_rng(7)
        labels = rng.integers(0, classes, n)
        x = (0.35 * rng.standard_normal((classes, d))[labels] + rng.standard_normal((n, d))) / np.sqrt(d)
        x = x.astype(np.float32)
        ours = self.ours("logistic", self.path("x", x), self.path("y", labels.astype(np.int64)), d, penalty, o.threads,
                         o.repeats)

        def objective(w):
            z = x.astype(np.float64) @ w.T
            top = z.max(1)
            loss = np.log(np.exp(z - top[:, None]).sum(1)) + top - z[np.arange(n), labels]
            return loss.mean() + penalty / 2 * (w ** 2).sum()

        peers, notes = {}, [f"objective ours {ours['objective']:.7f} (proven gap {ours['gap']:.1e})"]
        for name, tolerance in (("scikit-learn lbfgs, default", 1e-4), ("scikit-learn lbfgs, tol 1e-6", 1e-6)):
            model = LogisticRegression(C=1 / (n * penalty), fit_intercept=False, tol=tolerance, max_iter=2000)
            peers[name], fit = self.best(lambda: model.fit(x, labels))
            notes.append(f"{name.split(', ')[1]} {objective(fit.coef_.astype(np.float64)):.7f}")
        self.report(f"logistic {n} x {d}, {classes} classes", ours["seconds"], peers, ", ".join(notes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=str(pathlib.Path(__file__).parent.parent / "build" / "search_bench"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="1: the sizes the project promises its ratios for")
    parser.add_argument("--data", choices=["noise", "features"], default="noise")
    parser.add_argument("--only", choices=["knn", "pca", "kmeans", "logistic"])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cache", default=tempfile.gettempdir(), help="where the inputs are written")
    options = parser.parse_args()
    set_up_blas(options.threads)
    for module, package in (("numpy", "numpy"), ("sklearn", "scikit-learn"), ("faiss", "faiss-cpu")):
        bring(module, package)
    bench = Bench(options)
    import faiss  # before the BLAS of others is asked about: it brings its own
    import sklearn
    from threadpoolctl import threadpool_info

    print(f"numpy {bench.np.__version__}, scikit-learn {sklearn.__version__}, faiss {faiss.__version__}", flush=True)
    for library in threadpool_info():
        print("  ", library.get("internal_api"), library.get("version"), library.get("architecture", ""),
              library.get("num_threads"), "threads", flush=True)
    for task in [options.only] if options.only else ["knn", "pca", "kmeans", "logistic"]:
        getattr(bench, task)()
    if options.json:
        json.dump(bench.rows, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
