# SPDX-License-Identifier: Apache-2.0
"""Texts to vectors: MiniLM and a random BERT-base on banking77 and ag_news, fungi beside torch,
onnxruntime and OpenVINO.

    bench/compare text [--texts 5000] [--models minilm,bert-base] [--only torch] [--cpu]

Ours reads a TSV file and writes a store: tokenising, embedding, KL and the store are in its time.
The peers get token ids, sorted by length, in batches of the size that suits them best, which is
found before. All sides have the same weights and the same ids. Peers stay loaded and take turns;
the best turn counts. --cpu compares processor time, for machines that are busy with other work.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import numpy as np

import compare_openvino
from compare_text_model import read_weights, write_base, write_onnx

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {"torch-float32": "torch f32", "torch-bfloat16": "torch bf16",
         "onnxruntime": "onnxruntime f32", "openvino-f32": "OpenVINO f32",
         "openvino-bf16": "OpenVINO bf16", "openvino-int8": "OpenVINO NNCF int8"}
BATCHES = (8, 16, 32, 64, 128)
LONGEST = 256


class Torch:
    """BERT in the operators that any torch user gets."""

    def __init__(self, folder, threads, dtype):
        import torch
        self.torch, self.F = torch, torch.nn.functional
        torch.set_num_threads(threads)
        self.dtype = getattr(torch, dtype)
        self.c = json.loads((folder / "config.json").read_text())
        self.w = {k: torch.from_numpy(v).to(self.dtype) for k, v in read_weights(folder).items()}

    def linear(self, x, name):
        return self.F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return self.F.layer_norm(x, x.shape[-1:], self.w[name + ".weight"], self.w[name + ".bias"],
                                 self.c["layer_norm_eps"])

    def run(self, ids, mask):
        torch = self.torch
        with torch.inference_mode():
            ids, mask = torch.from_numpy(ids), torch.from_numpy(mask)
            n, t = ids.shape
            seen = None if bool(mask.all()) else mask[:, None, None, :]
            e = "embeddings."
            x = self.w[e + "word_embeddings.weight"][ids]
            x = x + self.w[e + "position_embeddings.weight"][:t]
            x = self.norm(x + self.w[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
            for i in range(self.c["num_hidden_layers"]):
                b = f"encoder.layer.{i}."
                q, k, v = (self.linear(x, f"{b}attention.self.{part}")
                           .view(n, t, self.c["num_attention_heads"], -1).transpose(1, 2)
                           for part in ("query", "key", "value"))
                mixed = self.F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
                mixed = self.linear(mixed.transpose(1, 2).reshape(n, t, -1), b + "attention.output.dense")
                x = self.norm(x + mixed, b + "attention.output.LayerNorm")
                hidden = self.F.gelu(self.linear(x, b + "intermediate.dense"))
                x = self.norm(x + self.linear(hidden, b + "output.dense"), b + "output.LayerNorm")
            m = mask[..., None].to(x.dtype)
            pooled = ((x * m).sum(1) / m.sum(1)).float()
            return self.F.normalize(pooled, dim=1).numpy()


class Onnx:
    def __init__(self, folder, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(onnx_file(folder), options,
                                                    providers=["CPUExecutionProvider"])

    def run(self, ids, mask):
        return self.session.run(None, feeds(ids, mask))[0]


def onnx_file(folder):
    """Beside the folder: in it fungi would find two checkpoints."""
    path = folder.with_suffix(".onnx")
    if not path.exists():
        write_onnx(folder, path)
    return str(path)


def feeds(ids, mask):
    return {"ids": ids, "mask": mask.astype(np.int64),
            "positions": np.arange(ids.shape[1], dtype=np.int64)}


def openvino_peer(folder, precision, texts, args, clock):
    samples = [feeds(ids, mask) for _, ids, mask in batches(texts[:256], 8)]
    peer = compare_openvino.Openvino(onnx_file(folder), precision, args.threads, samples)
    peer.choose(samples, clock)
    return peer


def batches(texts, batch):
    """Texts of nearly one length: which they are, their ids and what of these is there."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for first in range(0, len(order), batch):
        chosen = order[first:first + batch]
        longest = len(texts[chosen[-1]])
        ids, mask = (np.zeros((len(chosen), longest), kind) for kind in (np.int64, bool))
        for row, i in enumerate(chosen):
            ids[row, :len(texts[i])], mask[row, :len(texts[i])] = texts[i], True
        yield chosen, ids, mask


def all_texts(peer, texts, batch):
    """Rows in the order of the texts."""
    parts = list(batches(texts, batch))
    if hasattr(peer, "run_all"):
        found = peer.run_all([feeds(ids, mask) for _, ids, mask in parts])
    else:
        found = [peer.run(ids, mask) for _, ids, mask in parts]
    rows = [None] * len(texts)
    for (chosen, _, _), part in zip(parts, found):
        for i, row in zip(chosen, part):
            rows[i] = row
    return np.stack(rows)


def serve(args):
    """One peer as a process: finds its batch, then one turn per line of standard input."""
    folder = pathlib.Path(args.folder)
    kind, _, dtype = args.peer.partition("-")
    with open(args.ids) as f:
        texts = json.load(f)
    clock = time.process_time if args.cpu else time.perf_counter
    peer = (Torch(folder, args.threads, dtype) if kind == "torch"
            else openvino_peer(folder, dtype, texts, args, clock) if kind == "openvino"
            else Onnx(folder, args.threads))
    few = texts[::max(1, len(texts) // 256)]

    def rate(batch, chosen):
        start = clock()
        rows = all_texts(peer, chosen, batch)
        return len(chosen) / (clock() - start), rows
    all_texts(peer, few[:32], 8)
    batch = max(BATCHES, key=lambda b: max(rate(b, few)[0] for _ in range(2)))
    np.save(args.rows, rate(batch, few)[1])
    print(json.dumps({"batch": batch}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"rate": rate(batch, texts)[0]}), flush=True)


class Peer:
    def __init__(self, kind, folder, ids, work, args):
        self.label, self.rates, self.error = PEERS[kind], [], ""
        self.rows = work / f"{kind}.npy"
        command = [sys.executable, "-B", __file__, "--cache", str(args.cache), "--peer", kind,
                   "--folder", str(folder), "--ids", str(ids), "--rows", str(self.rows), "--threads",
                   str(args.threads)] + ["--cpu"] * args.cpu
        env = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env)
        self.note = f"batch {(self.read() or {}).get('batch')}"

    def read(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.error = (self.process.stderr.read().strip().splitlines() or ["ended"])[-1]
        return None

    def turn(self):
        if not self.error:
            print("go", file=self.process.stdin, flush=True)
            if result := self.read():
                self.rates.append(result["rate"])


class Ours:
    def __init__(self, precision, objective, folder, table, work, args):
        what = "embedding" if objective == "none" else f"embedding + {objective}"
        self.label, self.rates, self.error, self.note = f"fungi {precision}, {what}", [], "", ""
        self.store, self.cpu = work / f"{precision}-{objective}", args.cpu
        self.command = [args.fungi, "extract", str(table), "-m", str(folder), "-o", str(self.store),
                        "--precision", precision, "--objectives", objective, "--threads",
                        str(args.threads), "--json", "-q"]

    def run(self, *more):
        shutil.rmtree(self.store, ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*self.command, *more], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            self.error = done.stderr.strip().split("\n")[0]
            return None, 0
        return json.loads(done.stdout), (after.ru_utime - before.ru_utime
                                         + after.ru_stime - before.ru_stime)

    def turn(self):
        load = self.run("--limit", "1")[1] if self.cpu and not self.error else 0
        report, spent = self.run() if not self.error else (None, 0)
        if report:
            self.rates.append((report["computed"] - self.cpu) / (spent - load) if self.cpu
                              else report["samples_per_second"])


def flop_per_text(folder, encoded):
    """Two per multiply-add, the products of the layers and of attention, in the mean of the texts."""
    c = json.loads((folder / "config.json").read_text())
    width, layers = c["hidden_size"], c["num_hidden_layers"]
    token = 4 * width * width + 2 * width * c["intermediate_size"]
    texts = [2 * layers * (len(t) * token + 2 * len(t) ** 2 * width) for t in encoded]
    return sum(texts) / len(texts)


def peak_flops(precision, args):
    """Multiply-adds in registers, as `fungi bench` measures them before and behind a network."""
    done = subprocess.run([args.fungi, "bench", "-m", "vit_tiny_patch16_224", "--json", "--objectives",
                           "none", "--seconds", "0.5", "--precision", precision, "--threads",
                           str(args.threads)], capture_output=True, text=True)
    return json.loads(done.stdout)["peak_gflops"] * 1e9 if done.returncode == 0 else None


def prepare(source, args, folder, work):
    """The first texts of a set as a table for us and as ids for the peers."""
    from tokenizers import Tokenizer
    lines = source.read_text(encoding="utf-8").split("\n")
    lines = [line for line in lines if line][:args.texts]
    table, ids = work / "texts.tsv", work / "ids.json"
    table.write_text("label\ttext\n" + "".join(line + "\n" for line in lines), encoding="utf-8")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    encoded = [t.ids for t in tokenizer.encode_batch([line.split("\t", 1)[-1] for line in lines])]
    ids.write_text(json.dumps(encoded))
    return table, ids, encoded


def compare(name, folder, source, args):
    work = args.cache / "text"
    work.mkdir(parents=True, exist_ok=True)
    table, ids, encoded = prepare(source, args, folder, work)
    sides = [Peer(kind, folder, ids, work, args) for kind, label in PEERS.items()
             if not args.only or any(word in label for word in args.only)]
    peers = len(sides)
    for precision in args.precision.split(","):
        for objective in args.objectives.split(","):
            sides.append(Ours(precision, objective, folder, table, work, args))
    peaks = {p: peak_flops(p, args) for p in args.precision.split(",")}
    for _ in range(args.rounds):
        for side in sides:
            side.turn()
            time.sleep(0.3)
    flop = flop_per_text(folder, encoded)
    print(f"\n{name}, {source.parent.name}: {len(encoded)} texts of "
          f"{sum(map(len, encoded)) / len(encoded):.1f} tokens, texts per second"
          f"{' of processor time' if args.cpu else ''}")
    best = {side.label: max(side.rates) for side in sides if side.rates}
    for side in sides:
        if side.label not in best:
            print(f"  {side.label:28s}skipped: {side.error or 'no turn'}")
            continue
        ratios = [f"{best[side.label] / best[p.label]:.2f}x {p.label}" for p in sides[:peers]
                  if p.label in best and not isinstance(side, Peer)]
        print(f"  {side.label:28s}{best[side.label]:9.1f}  {side.note}{', '.join(ratios)}")
    for precision in args.precision.split(","):
        alone, kl = (best.get(f"fungi {precision}, embedding{more}") for more in ("", " + kl"))
        if alone and peaks[precision]:
            print(f"  fungi {precision}: {alone * flop / peaks[precision]:.0%} of the "
                  f"{peaks[precision] / 1e9:.0f} GFLOP/s measured here")
        if alone and kl:
            print(f"  fungi {precision}: kl adds {alone / kl - 1:.1%} to the embedding")
    ours = next((s for s in sides[peers:] if s.rates and "f32" in s.label), None)
    if ours:  # one network for all
        rows = np.concatenate([np.load(f) for f in sorted(ours.store.glob("embedding-*.npy"))])
        few = rows[::max(1, len(rows) // 256)]
        for peer in sides[:peers]:
            if peer.rates:
                print(f"  largest difference from {peer.label}: {abs(np.load(peer.rows) - few).max():.1e}")
    for peer in sides[:peers]:
        peer.process.stdin.close()
        peer.process.wait()


def main():
    parser = argparse.ArgumentParser(prog="bench/compare text", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    root = HERE.parent
    parser.add_argument("--cache", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--fungi", default=str(root / "build/fungi"))
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("FUNGI_DATA", root / "../shared/data")))
    parser.add_argument("--models", default="minilm,bert-base")
    parser.add_argument("--sets", default="banking77,ag_news")
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--precision", default="f32,bf16,int8")
    parser.add_argument("--objectives", default="none,kl")
    parser.add_argument("--only", action="append", help="only peers whose name contains this word")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true")
    for hidden in ("--peer", "--folder", "--ids", "--rows"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return serve(args)
    given = args.data / "weights/all-MiniLM-L6-v2"
    folders = {"minilm": args.cache / "minilm", "bert-base": args.cache / "bert-base"}
    shutil.copytree(given, folders["minilm"], dirs_exist_ok=True, copy_function=shutil.copyfile)
    write_base(folders["bert-base"], given)
    if os.getloadavg()[0] > 0.5:
        print("warning: the machine is busy: use --cpu, or wait", file=sys.stderr)
    for model in args.models.split(","):
        for texts in args.sets.split(","):
            compare(model, folders[model], args.data / "text" / texts / "train.tsv", args)


if __name__ == "__main__":
    main()
