# SPDX-License-Identifier: Apache-2.0
"""A small data set of sounds: two classes, low and high, of clips of a quarter of a second."""
import math
import pathlib
import wave


def make_clips(folder: pathlib.Path, count: int = 6) -> None:
    for name, hertz in (("low", 200), ("high", 3000)):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            with wave.open(str(folder / name / f"{i}.wav"), "wb") as clip:
                clip.setnchannels(1), clip.setsampwidth(2), clip.setframerate(16000)
                clip.writeframes(b"".join(int(9000 * math.sin(n * n * 1e-7 * i + n * hertz * 6.2832 / 16000)).to_bytes(2, "little", signed=True)
                                          for n in range(4000)))
