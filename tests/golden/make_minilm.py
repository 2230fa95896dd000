# SPDX-License-Identifier: Apache-2.0
"""What sentence-transformers makes of a few sentences with the real all-MiniLM-L6-v2.

    python make_minilm.py MODEL_FOLDER                       writes feature/minilm.npy
    python make_minilm.py MODEL_FOLDER --compare FUNGI TSV.. compares 1000 texts with fungi's rows

Needs torch and sentence-transformers; the weights are not part of the repository. --compare takes
files of label<TAB>text and prints the smallest cosine in f32 and in bf16.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent / "feature"


def encoder(folder):
    """The list of modules.json, where 1_Pooling/config.json may be missing: the mean, then length 1."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    words = Transformer(folder)
    words.max_seq_length = 256  # sentence_bert_config.json
    modules = [words, Pooling(384, "mean"), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu").float()  # the file is f16


def write(folder):
    texts = (HERE / "minilm.txt").read_text().split("\n")[:-1]
    np.save(HERE / "minilm.npy", encoder(folder).encode(texts, batch_size=1).astype(np.float32))


def compare(folder, fungi, files):
    lines = [line for file in files for line in pathlib.Path(file).read_text().split("\n") if line]
    chosen = [lines[i * len(lines) // 1000] for i in range(1000)]
    truth = encoder(folder).encode([line.split("\t", 1)[1] for line in chosen]).astype(np.float64)
    with tempfile.TemporaryDirectory() as work:
        table = pathlib.Path(work) / "texts.tsv"
        table.write_text("label\ttext\n" + "".join(line + "\n" for line in chosen))
        for precision in ("f32", "bf16"):
            store = pathlib.Path(work) / precision
            subprocess.run([fungi, "extract", table, "-m", folder, "-o", store, "--objectives",
                            "none", "--precision", precision, "--quiet"], check=True)
            rows = np.concatenate([np.load(f) for f in sorted(store.glob("embedding-*.npy"))])
            rows = rows.astype(np.float64)
            cosine = (rows * truth).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(truth, axis=1)
            print(f"{precision}: {len(rows)} texts, smallest cosine {cosine.min():.9f}, lengths "
                  f"{np.linalg.norm(rows, axis=1).min():.7f} to {np.linalg.norm(rows, axis=1).max():.7f}")


if __name__ == "__main__":
    if "--compare" in sys.argv:
        compare(sys.argv[1], sys.argv[3], sys.argv[4:])
    else:
        write(sys.argv[1])
