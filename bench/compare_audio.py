#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sounds from WAV files: filter banks beside kaldi-native-fbank on one thread, and AST-base beside
Hugging Face's own (torch f32), in turns, in one run on one machine.

A developer's tool: needs kaldi-native-fbank, soundfile, torch and transformers, and the programs
build/fungi and build/sound_bench. Random weights; every side reads the same files.

  bench/compare audio [--data FOLDER_OF_WAV] [--clips 8] [--rounds 3] [--threads 1] [--cpu]

--data is searched with its sub-folders for clips at 16 kHz. --cpu compares processor time: for
machines that are busy with other work.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NEEDS = {"kaldi_native_fbank": "kaldi-native-fbank", "soundfile": "soundfile",
         "transformers": "transformers", "safetensors": "safetensors"}


def bring_peers():
    absent = [package for module, package in NEEDS.items()
              if importlib.util.find_spec(module) is None]
    if not absent:
        return
    if sys.prefix == sys.base_prefix:
        sys.exit(f"compare: {', '.join(absent)} missing; run bench/compare audio, or use a virtual "
                 "environment that has them")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *absent], check=True)


def write_clips(args):
    """A folder of the first clips, as both sides read it."""
    found = sorted(args.data.rglob("*.wav"))[:args.clips]
    if not found:
        sys.exit(f"compare: no .wav in {args.data}; give --data FOLDER")
    folder = args.cache / "audio" / "clips"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for i, file in enumerate(found):
        shutil.copy(file, folder / f"{i:04d}.wav")
    return folder


def write_model(cache):
    """AST-base with random weights as its library saves it."""
    folder = cache / "audio" / "ast-base"
    if (folder / "model.safetensors").exists():
        return folder
    import torch
    from transformers import ASTConfig, ASTFeatureExtractor, ASTModel
    torch.manual_seed(0)
    ASTModel(ASTConfig()).save_pretrained(folder)
    ASTFeatureExtractor().save_pretrained(folder)
    return folder


# Filter banks --------------------------------------------------------------------------------

def kaldi_seconds(waves, clock):
    import kaldi_native_fbank as knf
    options = knf.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.window_type = "hanning"
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = 128
    options.mel_opts.low_freq = 20
    options.use_energy = False
    lists = [wave.tolist() for wave in waves]  # what the binding takes; not counted
    start, frames = clock(), 0
    for wave in lists:
        bank = knf.OnlineFbank(options)
        bank.accept_waveform(16000, wave)
        bank.input_finished()
        frames += bank.num_frames_ready
    return clock() - start, frames


def compare_banks(args, folder, clock):
    import soundfile
    waves = [soundfile.read(file, dtype="float32", always_2d=True)[0].mean(1)
             for file in sorted(folder.glob("*.wav"))]
    waves = [wave - wave.mean() for wave in waves]
    best = {"kaldi": None, "fungi": None}
    for _ in range(args.rounds):
        seconds, frames = kaldi_seconds(waves, clock)
        best["kaldi"] = min(best["kaldi"] or seconds, seconds)
        done = subprocess.run([str(args.build / "sound_bench"), str(folder), "5"],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"compare: {done.stderr.strip()}")
        ours = json.loads(done.stdout)
        if ours["frames"] != frames:
            sys.exit(f"compare: {ours['frames']} frames here, {frames} there")
        seconds = ours["processor" if args.cpu else "seconds"]
        best["fungi"] = min(best["fungi"] or seconds, seconds)
    print(f"filter banks, one thread, {frames} frames of 128 bins, thousands of frames per second")
    for name in ("kaldi", "fungi"):
        print(f"  {name:<24}{frames / best[name] / 1000:>10.1f}")
    ratio = best["kaldi"] / best["fungi"]
    print(f"  ratio {ratio:.2f} (wanted: 3)")
    return {"kaldi": frames / best["kaldi"], "fungi": frames / best["fungi"], "ratio": ratio}


# AST-base ------------------------------------------------------------------------------------

class Peer:
    """ASTFeatureExtractor and ASTModel from the files, one clip after the other."""

    def __init__(self, model, threads):
        import torch
        from transformers import ASTFeatureExtractor, ASTModel
        torch.set_num_threads(threads)
        self.torch = torch
        self.extractor = ASTFeatureExtractor.from_pretrained(model)
        self.model = ASTModel.from_pretrained(model).eval()

    def run(self, folder, clock):
        import soundfile
        files = sorted(folder.glob("*.wav"))
        start = clock()
        with self.torch.inference_mode():
            for file in files:
                wave, rate = soundfile.read(file, dtype="float32", always_2d=True)
                x = self.extractor(wave.mean(1), sampling_rate=rate, return_tensors="pt")
                self.model(**x)
        return len(files) / (clock() - start)


def children_seconds():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


class Ours:
    def __init__(self, args, model, precision, objectives, clips):
        self.name = f"fungi {precision}" + ("" if objectives == "none" else f", {objectives}")
        self.store = args.cache / "audio" / "store"
        self.args, self.clips = args, clips
        self.command = [str(args.build / "fungi"), "extract", "-m", str(model), "-o",
                        str(self.store), "--precision", precision, "--threads",
                        str(args.threads), "--json", "-q", "--objectives", objectives]

    def once(self, extra):
        shutil.rmtree(self.store, ignore_errors=True)
        command = [*self.command[:2], str(self.clips), *self.command[2:], *extra]
        before = children_seconds()
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"compare: {' '.join(command)}\n{done.stderr}")
        return json.loads(done.stdout), children_seconds() - before

    def run(self):
        result, processor = self.once([])
        if not self.args.cpu:
            return result["samples_per_second"]
        # What opening the model costs is no part of the rate: a run of one clip is taken off.
        opening = self.once(["--limit", "1"])[1]
        return (self.args.clips - 1) / max(processor - opening, 1e-9)


def compare_model(args, folder, clock):
    model = write_model(args.cache)
    peer = Peer(model, args.threads)
    sides = [Ours(args, model, p, o, folder)
             for p, o in (("f32", "none"), ("f32", "kl"), ("bf16", "none"), ("bf16", "kl"))]
    best = {}
    for _ in range(args.rounds):
        best["torch f32"] = max(best.get("torch f32", 0), peer.run(folder, clock))
        for side in sides:
            best[side.name] = max(best.get(side.name, 0), side.run())
    print(f"AST-base from WAV files, {args.threads} threads, clips per second")
    for name, rate in best.items():
        print(f"  {name:<24}{rate:>10.3f}{rate / best['torch f32']:>8.2f}x")
    print(f"  wanted: f32 1.3x, bf16 2.5x; kl costs "
          f"{100 * (best['fungi f32'] / best['fungi f32, kl'] - 1):.1f} % in f32, "
          f"{100 * (best['fungi bf16'] / best['fungi bf16, kl'] - 1):.1f} % in bf16 (wanted: 10)")
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    root = HERE.parent
    data = pathlib.Path(os.environ.get("FUNGI_DATA", root / "../shared/data"))
    parser.add_argument("--cache", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--data", type=pathlib.Path, default=data / "audio/esc10-16k")
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", choices=["banks", "model"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    bring_peers()
    clock = time.process_time if args.cpu else time.perf_counter
    folder = write_clips(args)
    args.clips = len(list(folder.glob("*.wav")))
    result = {}
    if args.only != "model":
        result["banks"] = compare_banks(args, folder, clock)
    if args.only != "banks":
        result["model"] = compare_model(args, folder, clock)
    if args.json:
        json.dump(result, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
