#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bank of patch features searched beside faiss's flat index, in one run on one machine.

  bench/compare bank [--rows 1024000] [--width 768] [--threads 2] [--k 30] [--cpu]

A developer's tool: needs numpy and faiss-cpu, and the program built from bench/bank_bench.cpp. The rows are made up, but
lie as those of patches do. The bank is made once and kept in the cache folder (3 GB). --cpu compares processor time
instead of time on the clock: for machines that are busy with other work.
"""
import argparse
import json
import os
import pathlib
import subprocess
import time

from compare_search import bring, set_up_blas


def main():
    parser = argparse.ArgumentParser(prog="bench/compare bank", description=__doc__.split("\n")[0])
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="set by bench/compare")
    parser.add_argument("--program", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/bank_bench"))
    parser.add_argument("--rows", type=int, default=1024000)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--k", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lists", type=int, default=512)
    parser.add_argument("--probes", type=int, default=32)
    parser.add_argument("--rerank", type=int, default=120)
    parser.add_argument("--flat-queries", type=int, default=128, help="that faiss is asked; the bank is asked 2048")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    set_up_blas(options.threads)
    bring("faiss", "faiss-cpu")
    import faiss
    import numpy as np

    folder = options.cache / f"bank-{options.rows}x{options.width}"

    def ours(verb, *arguments):
        done = subprocess.run([options.program, verb, folder, *map(str, arguments)], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    if not (folder / "queries.npy").exists():
        ours("make", options.rows, options.width, options.threads)
    index = (options.lists, options.probes, options.rerank)
    asked = ours("recall", options.k, options.threads, 200, *index)
    found = ours("search", options.k, options.threads, 3, *index)
    per_query = found["cpu_seconds" if options.cpu else "seconds"] / found["queries"]

    faiss.omp_set_num_threads(options.threads)
    flat = faiss.IndexFlatIP(options.width)
    rows = np.load(folder / "features.npy", mmap_mode="r")
    for first in range(0, options.rows, 1 << 16):
        flat.add(np.ascontiguousarray(rows[first:first + (1 << 16)]))
    queries = np.load(folder / "queries.npy")[:options.flat_queries]
    clock = time.process_time if options.cpu else time.perf_counter
    turns = []
    for _ in range(2):
        begin = clock()
        flat.search(queries, options.k)
        turns.append(clock() - begin)
    peer = min(turns) / len(queries)
    print(f"{options.rows} x {options.width}, {options.k} neighbours, {options.threads} threads, milliseconds a query")
    print(f"  faiss flat  {1000 * peer:8.3f}")
    print(f"  fungi bank  {1000 * per_query:8.3f}  {peer / per_query:.1f}x, recall {asked['recall']:.4f}, at most {found['peak_mb']:.0f} MiB resident, "
          f"index made in {asked['prepared']:.1f} s")


if __name__ == "__main__":
    os.chdir(pathlib.Path(__file__).resolve().parent)
    main()
