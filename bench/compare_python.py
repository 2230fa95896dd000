#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python costs: whole features (embedding and kl) of 500 x 375 pictures in memory, by `fungi bench` and by Extractor.transform(),
in turns, as processor time per picture, which what else runs disturbs least.

    PYTHONPATH=build/python compare_python.py MODEL [--rounds 5] [--pictures 64]
"""
import argparse
import json
import resource
import statistics
import subprocess
import time

import numpy as np

import fungi
from fungi._command import command

OBJECTIVE = "kl:temperature=15"  # "kl" alone would be the backbone without views and projection


def of_program(model, threads, seconds):
    """Processor seconds per picture, from two runs that differ in length alone."""
    spent = []
    for length in (0.6, seconds):  # from 0.5 on, both measure the arithmetic for as long
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = json.loads(subprocess.run([command(), "bench", "-m", model, "--objectives", OBJECTIVE, "--seconds", str(length), "-j",
                                          str(threads), "--json"], capture_output=True, check=True).stdout)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        calls = max(stage["calls"] for stage in said["stages"] if stage["name"] == "decode")
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, calls))
    return (spent[1][0] - spent[0][0]) / (spent[1][1] - spent[0][1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    pictures = np.random.default_rng(7).integers(0, 256, (options.pictures, 375, 500, 3), np.uint8)
    extractor = fungi.Extractor(options.model, objectives=OBJECTIVE, threads=options.threads)
    extractor.transform(pictures[:2])
    ratios = []
    for _ in range(options.rounds):
        start, count = time.process_time(), 0
        while time.process_time() - start < 3:
            extractor.transform(pictures)
            count += len(pictures)
        ours = (time.process_time() - start) / count
        theirs = of_program(options.model, options.threads, 4)
        ratios.append(ours / theirs)
        print(f"program {1e3 * theirs:.3f} ms, Python {1e3 * ours:.3f} ms per picture: {100 * (ours / theirs - 1):+.1f} %", flush=True)
    print(f"median {100 * (statistics.median(ratios) - 1):+.1f} %")


if __name__ == "__main__":
    main()
