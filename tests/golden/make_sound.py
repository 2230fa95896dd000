#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/sound: what `soundfile` 0.14 decodes from small files of every format, what `soxr` 1.1 makes of
another rate, and what `kaldi-native-fbank` 1.22, `transformers` 5.23 and the matrices of a published keyword model make of
sounds. A developer's tool; the tests read its files. Clips of a folder of data are not copied: clips.tsv names them.

Run: python make_sound.py DATA   (DATA: a folder with audio/ and weights/, as tests/support/data.h has it)
"""
import pathlib
import sys

import kaldi_native_fbank as knf
import numpy as np
import soundfile as sf
import soxr
from safetensors.numpy import load_file
from transformers import ASTFeatureExtractor, WhisperFeatureExtractor

OUT = pathlib.Path(__file__).parent / "sound"
DATA = pathlib.Path(sys.argv[1])

FORMATS = {
    "pcm16.wav": ("WAV", "PCM_16"), "pcm24.wav": ("WAV", "PCM_24"), "u8.wav": ("WAV", "PCM_U8"),
    "float.wav": ("WAV", "FLOAT"), "alaw.wav": ("WAV", "ALAW"), "adpcm.wav": ("WAV", "IMA_ADPCM"),
    "flac.flac": ("FLAC", "PCM_16"), "vorbis.ogg": ("OGG", "VORBIS"), "opus.opus": ("OGG", "OPUS"),
    "mp3.mp3": ("MP3", "MPEG_LAYER_III"), "aiff.aiff": ("AIFF", "PCM_16"), "au.au": ("AU", "PCM_16"),
    "caf.caf": ("CAF", "PCM_16"), "w64.w64": ("W64", "PCM_16"), "rf64.wav": ("RF64", "PCM_16"),
}


def save(folder, **arrays):
    (OUT / folder).mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(OUT / folder / f"{name}.npy", np.ascontiguousarray(array, dtype=np.float32))


def tone(count, rate, seed):
    t = np.arange(count) / rate
    noise = np.random.RandomState(seed).randn(count)
    return (0.3 * np.sin(2 * np.pi * (300 + 2000 * t) * t) + 0.02 * noise).astype(np.float32)


def kaldi(x, rate=16000):
    options = knf.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.window_type = "hanning"
    options.frame_opts.samp_freq = rate
    options.mel_opts.num_bins = 128
    options.use_energy = False
    bank = knf.OnlineFbank(options)
    bank.accept_waveform(rate, x.tolist())
    bank.input_finished()
    return np.stack([bank.get_frame(i) for i in range(bank.num_frames_ready)])


def keyword(x):
    """The front end of KWT-1 by the matrices of its published weights."""
    w = {k: v.astype(np.float64) for k, v in load_file(DATA / "weights/kwt1_speechcommands.safetensors").items()
         if k.startswith("frontend.")}
    x = np.pad(x.astype(np.float64), (0, max(0, 16000 - len(x))))[:16000]
    frames = np.stack([x[i * 160:i * 160 + 480] for i in range(98)]) * w["frontend.window"]
    magnitude = np.sqrt((frames @ w["frontend.dft_a"].T) ** 2 + (frames @ w["frontend.dft_b"].T) ** 2)
    mel = np.log(np.maximum(magnitude @ w["frontend.mel"].T, 1e-12))
    return ((mel @ w["frontend.dct"].T) / w["frontend.div"]).astype(np.float32)


def whisper(x, bins):
    extractor = WhisperFeatureExtractor(feature_size=bins)
    return extractor(x, sampling_rate=16000, return_tensors="np")["input_features"][0].T


def extracted(x, **options):
    extractor = ASTFeatureExtractor(**options)
    return extractor(x, sampling_rate=16000, return_tensors="np")["input_values"][0]


def mono(file):
    x, rate = sf.read(file, dtype="float32", always_2d=True)
    return x.mean(axis=1).astype(np.float32), rate


def formats():
    arrays = {}
    stereo = np.stack([tone(1200, 16000, 1), 0.5 * tone(1200, 16000, 2)[::-1]], axis=1)
    for name, (container, subtype) in FORMATS.items():
        (OUT / "formats").mkdir(parents=True, exist_ok=True)
        sf.write(OUT / "formats" / name, stereo, 16000, format=container, subtype=subtype)
        arrays[name], rate = mono(OUT / "formats" / name)
        assert rate == 16000, name
    save("formats", **arrays)


def rates():
    arrays = {}
    for source in (8000, 22050, 44100, 48000):
        x = tone(source // 20, source, 3)
        arrays[f"from{source}"] = x
        arrays[f"to{source}"] = soxr.resample(x, source, 16000, quality="HQ")
    save("rates", **arrays)


def made():
    """Of a sound that the repository holds: half a second."""
    x = tone(8000, 16000, 4)
    sf.write(OUT / "half.wav", x, 16000, subtype="PCM_16")
    x, _ = mono(OUT / "half.wav")
    save(
        "made", kaldi=kaldi(x), kaldi_8k=kaldi(x, 8000)[:8],
        extractor=extracted(x, max_length=64), extractor_plain=extracted(x, max_length=32, do_normalize=False)[::4],
        whisper80=whisper(x, 80)[:64:3], whisper128=whisper(x, 128)[:64:3], keyword=keyword(x)[::3])


def clips():
    """Of real clips: some frames of each, and where they are."""
    lines, arrays = [], {"kaldi": [], "extractor": [], "whisper": [], "keyword": []}
    audio = DATA / "audio"
    files = sorted((audio / "esc10-16k/audio").glob("*.wav"))[::5] + sorted((audio / "speechcommands").glob("*/*.wav"))[::20]
    for i, file in enumerate(files):
        x, rate = mono(file)
        assert rate == 16000
        rows = {"kaldi": kaldi(x - x.mean())}
        if i % 6 == 0:
            rows |= {"extractor": extracted(x, max_length=98), "whisper": whisper(x, 80), "keyword": keyword(x)}
        for kind, bank in rows.items():
            for frame in np.linspace(0, min(len(rows["kaldi"]), len(bank)) - 1, 3).astype(int):
                lines.append(f"{kind}\t{frame}\t{file.relative_to(DATA)}")
                arrays[kind].append(bank[frame])
    save("clips", **{kind: np.stack(bank) for kind, bank in arrays.items()})
    (OUT / "clips" / "clips.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    formats()
    rates()
    made()
    clips()
