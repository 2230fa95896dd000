#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokenising beside Hugging Face's `tokenizers` (Rust), both on one thread, in one run on one machine.

A developer's tool: needs tokenizers, and the program built from bench/token_bench.cpp.

  bench/compare tokens [--program build/token_bench] [--data ../shared/data] [--repeats 3] [--cpu]

--data has the folders tokenizers/ and text/ (`label<TAB>text` per line). --cpu compares processor time instead of time on
the clock: for machines that are busy with other work.
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

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

KINDS = [("WordPiece", "bert-base-uncased"), ("Unigram", "t5"), ("byte-level BPE", "roberta")]
SETS = [("banking77", "banking77/train.tsv"), ("ag_news", "ag_news/train.tsv")]


def texts_of(path: pathlib.Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return [line.split("\t", 1)[-1] for line in lines]


def peer(tokenizer, texts: list[str], call: str, clock) -> tuple[float, int]:
    start = clock()
    encodings = getattr(tokenizer, call)(texts)
    seconds = clock() - start
    return seconds, sum(len(encoding.ids) for encoding in encodings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).parent.parent
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    parser.add_argument("--program", type=pathlib.Path, default=root / "build/token_bench")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(os.environ.get("FUNGI_DATA", root / "../shared/data")))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if not importlib.util.find_spec("tokenizers"):
        if sys.prefix == sys.base_prefix:
            sys.exit("compare: tokenizers is missing; run bench/compare tokens, or use a virtual environment that has it")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "tokenizers"], check=True)
    import tokenizers
    clock = time.process_time if options.cpu else time.perf_counter
    print(f"tokenizers {tokenizers.__version__}, one thread, best of {options.repeats}, thousands of texts per second")
    print(f"{'kind':<16}{'texts':<12}{'fungi':>8}{'encode_batch':>14}{'_fast':>8}{'ratio':>8}{'ratio':>8}")
    slower = 0
    for kind, name in KINDS:
        path = options.data / "tokenizers" / name / "tokenizer.json"
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        for title, file in SETS:
            texts = texts_of(options.data / "text" / file)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as lines:
                lines.write("\n".join(texts) + "\n")
                lines.flush()
                best = {"fungi": float("inf"), "encode_batch": float("inf"), "encode_batch_fast": float("inf")}
                for _ in range(options.repeats):  # in turns, so that other work on the machine meets all
                    run = subprocess.run([options.program, path, lines.name, "1"], check=True, capture_output=True, text=True)
                    ours = json.loads(run.stdout)
                    best["fungi"] = min(best["fungi"], ours["processor" if options.cpu else "seconds"])
                    for call in ("encode_batch", "encode_batch_fast"):
                        seconds, ids = peer(tokenizer, texts, call, clock)
                        best[call] = min(best[call], seconds)
                        if ids != ours["ids"]:
                            print(f"compare: {kind}, {title}: {ours['ids']} ids, the peer has {ids}", file=sys.stderr)
                            return 1
            rate = {who: len(texts) / seconds / 1000 for who, seconds in best.items()}
            ratios = [rate["fungi"] / rate[call] for call in ("encode_batch", "encode_batch_fast")]
            slower += min(ratios) < 1
            print(f"{kind:<16}{title:<12}{rate['fungi']:>8.0f}{rate['encode_batch']:>14.0f}{rate['encode_batch_fast']:>8.0f}"
                  f"{ratios[0]:>7.1f}x{ratios[1]:>7.1f}x")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
