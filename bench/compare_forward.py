# SPDX-License-Identifier: Apache-2.0
"""ViT-B/16 and ViT-S/16 at 224: fungi beside torch, Debian's torch, onnxruntime and OpenVINO.

Every side reads the same safetensors file of random weights. Peers stay loaded and take turns,
round after round, so that a change of the machine's clock meets all of them; the best turn counts.
Started by bench/compare, which provides the peers' packages.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import compare_model

HERE = pathlib.Path(__file__).resolve().parent
DEBIAN = "/usr/bin/python3"
LABELS = {"torch-float32": ("torch f32", "f32"), "torch-bfloat16": ("torch bf16", "bf16"),
          "debian-float32": ("torch (Debian) f32", "f32"),
          "onnxruntime": ("onnxruntime f32", "f32"),
          "openvino-f32": ("OpenVINO f32", "f32"), "openvino-bf16": ("OpenVINO bf16", "bf16"),
          "openvino-int8": ("OpenVINO NNCF int8", "int8")}


def cpu():
    name, flags = "unknown", set()
    for line in open("/proc/cpuinfo"):
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = value.strip()
        if key.strip() == "flags":
            flags = set(value.split())
            break
    return name, flags


def blas_settings(flags):
    """OpenBLAS 0.3.21 and oneDNN 2.6 misjudge newer CPUs: name the kernels they should use."""
    name = cpu()[0]
    settings = {}
    if "avx512_bf16" in flags and "AMD" not in name:
        settings["OPENBLAS_CORETYPE"] = "Cooperlake"
    elif "avx512f" in flags:
        settings["OPENBLAS_CORETYPE"] = "SkylakeX"
    elif "avx2" in flags:
        settings["OPENBLAS_CORETYPE"] = "Zen" if "AMD" in name else "Haswell"
    if "amx_tile" in flags:
        settings["DNNL_MAX_CPU_ISA"] = "AVX512_CORE_BF16"  # its AMX kernels raise SIGILL
    return settings


class Peer:
    """A running compare_peers.py."""

    def __init__(self, kind, label, python, options, environment):
        self.label, self.turns, self.error = label, [], None
        env = {**os.environ, "OMP_NUM_THREADS": options["threads"],
               "OPENBLAS_NUM_THREADS": options["threads"], **environment}
        command = [python, "-B", str(HERE / "compare_peers.py"), kind]
        for key, value in options.items():
            command += [f"--{key}", str(value)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env)
        self.ready = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        tail = self.process.stderr.read().strip().splitlines()
        self.error = tail[-1] if tail else f"ended with status {self.process.returncode}"
        return None

    def turn(self):
        if self.error:
            return
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        result = self.read()
        if result:
            self.turns.append(result)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.stderr.close()
        self.process.wait()


class Ours:
    """`fungi bench`, one process per turn."""

    def __init__(self, args, weights, precision, objectives):
        what = "embedding" if objectives == "none" else f"embedding + {objectives}"
        self.label = f"fungi {precision}, {what}"
        self.precision, self.objectives, self.cpu = precision, objectives, args.cpu
        self.command = [args.fungi, "bench", "-m", str(weights), "--json",
                        "--precision", precision, "--objectives", objectives,
                        "--threads", str(args.threads), "--seconds", str(args.seconds),
                        *args.extra]
        self.turns, self.error = [], None
        if not os.path.exists(args.fungi):
            self.error = f"{args.fungi} is not there: build it first, or give --fungi FILE"

    def turn(self):
        if self.error:
            return
        done = subprocess.run(self.command, capture_output=True, text=True)
        if done.returncode:
            tail = done.stderr.strip().splitlines()
            self.error = tail[0] if tail else f"ended with status {done.returncode}"
            return
        try:
            turn = json.loads(done.stdout)
            if self.cpu:
                rate = turn["samples_per_processor_second"]
                turn["share_of_peak"] *= rate / turn["samples_per_second"]
                turn["samples_per_second"] = rate
            self.turns.append(turn)
        except json.JSONDecodeError:
            self.error = f"`{' '.join(self.command[:2])}` printed no JSON: {done.stdout[:60]!r}"

    def close(self):
        pass


def alternate(sides, rounds):
    """Turns go round-robin; the pause lets the last one's spinning threads fall asleep."""
    for _ in range(rounds):
        for side in sides:
            side.turn()
            time.sleep(0.3)
    for side in sides:
        side.close()


def summary(side, flop):
    if side.error or not side.turns:
        return {"name": side.label, "skipped": side.error or "no turn"}
    rates = [t["samples_per_second"] for t in side.turns]
    row = {"name": side.label, "samples_per_second": max(rates), "median": statistics.median(rates),
           "rounds": rates, "gflops": max(rates) * flop / 1e9,
           "peak_rss_mb": max(t["peak_rss_mb"] for t in side.turns)}
    if isinstance(side, Ours):
        best = side.turns[rates.index(max(rates))]
        keep = ("peak_gflops", "share_of_peak", "isa", "threads", "batch")
        row.update(precision=side.precision, objectives=side.objectives,
                   **{k: best[k] for k in keep if k in best})
    else:
        row.update(side.ready)
        row.pop("embedding")
    return row


def agreement(sides, rows):
    """Largest relative difference of each peer's embedding from torch f32's: one net for all."""
    truth = next((s.ready["embedding"] for s in sides if s.label == "torch f32" and s.ready), None)
    for side, row in zip(sides, rows):
        if truth and getattr(side, "ready", None) and "skipped" not in row:
            scale = max(map(abs, truth))
            row["difference_from_torch_f32"] = max(
                abs(a - b) for a, b in zip(side.ready["embedding"], truth)) / scale


def ratios(rows):
    ours = [r for r in rows if r["name"].startswith("fungi") and "skipped" not in r]
    peers = [r for r in rows if not r["name"].startswith("fungi") and "skipped" not in r]
    return {o["name"]: {p["name"]: o["samples_per_second"] / p["samples_per_second"] for p in peers}
            for o in ours}


def forward(model, args, flags):
    weights = compare_model.write_weights(model, args.cache)
    options = {"model": model, "weights": str(weights), "batch": str(args.batch),
               "threads": str(args.threads), "seconds": str(args.seconds)}
    if args.cpu:
        options["clock"] = "process"
    sides = []
    for kind, (label, _) in LABELS.items():
        python, environment = sys.executable, {}
        if kind.startswith("debian"):
            python, environment = DEBIAN, blas_settings(flags)
            kind = "torch-float32"
        if args.only and not any(word in label for word in args.only):
            continue
        sides.append(Peer(kind, label, python, options, environment))
    for precision in args.precision.split(","):
        for objectives in args.objectives.split(","):
            sides.append(Ours(args, weights, precision, objectives))
    alternate(sides, args.rounds)
    flop = compare_model.flop_per_image(**compare_model.MODELS[model])
    rows = [summary(side, flop) for side in sides]
    agreement(sides, rows)
    return {"model": model, "batch": args.batch, "gflop_per_image": flop / 1e9, "rows": rows,
            "ratios": ratios(rows)}


def gemm(args, flags):
    """f32 matrix products of ViT-B's layers in the libraries at hand: what the CPU can give."""
    options = {"batch": str(args.batch), "threads": str(args.threads),
               "seconds": str(args.seconds)}
    sides = [Peer("gemm-numpy", "numpy (pip)", sys.executable, options, {}),
             Peer("gemm-numpy", "numpy (Debian)", DEBIAN, options, blas_settings(flags)),
             Peer("gemm-torch", "torch mm (pip)", sys.executable, options, {})]
    alternate(sides, args.rounds)
    shapes = compare_model.gemm_shapes(args.batch)
    work = [m * k * n for m, k, n in shapes]
    rows = []
    for side in sides:
        if side.error or not side.turns:
            rows.append({"name": side.label, "skipped": side.error or "no turn"})
            continue
        best = [max(t["gflops"][i] for t in side.turns) for i in range(len(shapes))]
        mean = sum(work) / sum(w / g for w, g in zip(work, best))
        rows.append({"name": side.label, "version": side.ready["version"], "gflops": best,
                     "gflops_all": mean})
    return {"shapes": shapes, "rows": rows}


def print_forward(result):
    print(f"\n{result['model']}, {result['gflop_per_image']:.1f} GFLOP per image")
    print(f"  {'':32s}{'samples/s':>10s}{'median':>9s}{'GFLOP/s':>9s}{'of peak':>9s}{'MB':>7s}")
    base = next((r for r in result["rows"] if r["name"] == "torch f32"), {})
    for row in result["rows"]:
        if "skipped" in row:
            print(f"  {row['name']:32s}skipped: {row['skipped']}")
            continue
        share = f"{row['share_of_peak']:.0%}" if "share_of_peak" in row else ""
        note = ""
        if "samples_per_second" in base:
            ratio = row["samples_per_second"] / base["samples_per_second"]
            note = f"  {ratio:.2f}x torch f32"
        if "objectives" not in row and row["batch"] < result["batch"]:
            note += " (single images: too slow for the batch)"
        print(f"  {row['name']:32s}{row['samples_per_second']:10.2f}{row['median']:9.2f}"
              f"{row['gflops']:9.0f}{share:>9s}{row['peak_rss_mb']:7.0f}{note}")
    for ours, values in result["ratios"].items():
        print(f"  {ours}: " + ", ".join(f"{v:.2f}x {k}" for k, v in values.items()))


    rates = {(r["precision"], r["objectives"]): r["samples_per_second"]
             for r in result["rows"] if "objectives" in r}
    for (precision, objectives), rate in rates.items():
        alone = rates.get((precision, "none"))
        if alone and objectives != "none":
            print(f"  fungi {precision}: {objectives} adds {alone / rate - 1:.1%} to the embedding")


def print_gemm(result, forwards):
    print("\nf32 matrix products of ViT-B, GFLOP/s")
    heads = [f"{m}x{k}x{n}" for m, k, n in result["shapes"]]
    print(f"  {'':20s}" + "".join(f"{h:>16s}" for h in heads) + f"{'all':>9s}")
    for row in result["rows"]:
        if "skipped" in row:
            print(f"  {row['name']:20s}skipped: {row['skipped']}")
            continue
        print(f"  {row['name']:20s}" + "".join(f"{g:16.0f}" for g in row["gflops"])
              + f"{row['gflops_all']:9.0f}  {row['version']}")
    best = max((r["gflops_all"] for r in result["rows"] if "skipped" not in r), default=0)
    for f in forwards:
        for row in f["rows"]:
            if row.get("precision") == "f32" and row.get("objectives") == "none" and best:
                print(f"  {f['model']}: {row['name']} runs the whole network at "
                      f"{row['gflops'] / best:.0%} of the best library's product rate")


def main():
    parser = argparse.ArgumentParser(prog="bench/compare", description=__doc__)
    parser.add_argument("--cache", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--fungi", default=str(HERE.parent / "build" / "fungi"))
    parser.add_argument("--models", default="vit_base_patch16_224,vit_small_patch16_224")
    parser.add_argument("--precision", default="f32,bf16,int8", help="precisions of ours")
    parser.add_argument("--objectives", default="none,kl", help="objectives of ours, one run each")
    parser.add_argument("--only", action="append", help="only peers whose name contains this word")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8, help="images per forward of the peers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0, help="least time of a turn")
    parser.add_argument("--no-gemm", action="store_true")
    parser.add_argument("--cpu", action="store_true",
                        help="processor time, for machines that are busy; takes --threads 1")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--extra", nargs=argparse.REMAINDER, default=[],
                        help="last: further options for `fungi bench`")
    args = parser.parse_args()
    if args.cpu:
        args.threads = 1
    name, flags = cpu()
    say = sys.stderr if args.json else sys.stdout
    print(f"{name}, {args.threads} threads, batch {args.batch}, best of {args.rounds} rounds of at "
          f"least {args.seconds:g} s; Debian's BLAS with {blas_settings(flags)}", file=say)
    load = os.getloadavg()[0]
    if load > 0.5 and not args.cpu:
        print(f"warning: the machine is busy (load {load:.1f}); the figures will be too low and "
              f"uneven",
              file=sys.stderr)
    forwards = [forward(m, args, flags) for m in args.models.split(",")]
    products = None if args.no_gemm else gemm(args, flags)
    if args.json:
        print(json.dumps({"cpu": name, "threads": args.threads, "batch": args.batch,
                          "load_before": load, "forward": forwards, "gemm": products}, indent=1))
        return
    for result in forwards:
        print_forward(result)
    if products:
        print_gemm(products, forwards)


if __name__ == "__main__":
    main()
