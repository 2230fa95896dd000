#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which tokens' gradients to take beside the mean of a text's tokens: figures for docs/results-text.md.

    tools/text_tokens.py --data FOLDER --work FOLDER [--sets trec ...]

Runs after text_results.py has written its lists of texts into --work, and writes --work/tokens.json, which that one
shows. fungi itself sums over tokens, as the method does; the other ways are tried here alone, with torch and
transformers: KL (temperature 15, width 768) at the output projection of the last attention, a Gaussian projection to
384 rows, exact neighbours with k = 20 after a PCA to 512.
"""
import argparse
import json
import pathlib

import torch
from transformers import AutoModel, AutoTokenizer

WEIGHTS = (0.25, 1.0)
WAYS = {
    "sum over the tokens": lambda b, a, n: torch.einsum("ith,itk->ihk", b, a),
    "first token": lambda b, a, n: torch.einsum("ih,ik->ihk", b[:, 0], a[:, 0]),
    "mean of both factors": lambda b, a, n: torch.einsum("ih,ik->ihk", b.sum(1), a.sum(1) / n),
    "each token's of length 1": lambda b, a, n: torch.einsum("ith,itk->ihk", unit(b), unit(a)),
}


def unit(x):
    return x / x.norm(dim=-1, keepdim=True).clamp_min(1e-30)


def read(file):
    rows = [line.split("\t", 1) for line in file.read_text().split("\n")[1:] if line]
    return [text for _, text in rows], [label for label, _ in rows]


class Model:
    def __init__(self, folder):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval().requires_grad_(False)
        width, g = self.model.config.hidden_size, torch.Generator().manual_seed(42)
        self.head = torch.nn.Linear(width, 768).requires_grad_(False)
        self.projection = torch.randn(width, width * (width + 1), generator=g)
        self.layer = self.model.encoder.layer[-1].attention.output.dense

    def features(self, texts, batch=64):
        """Embeddings, and projected gradients by way; every row of length 1."""
        out = {"embedding": [None] * len(texts), **{way: [None] * len(texts) for way in WAYS}}
        kept = {}

        def keep(_, inputs, output):
            kept["a"], kept["b"] = inputs[0].detach(), output.detach().requires_grad_(True)
            return kept["b"]

        hook = self.layer.register_forward_hook(keep)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for first in range(0, len(order), batch):
            chosen = order[first:first + batch]
            ids = self.tokenizer([texts[i] for i in chosen], return_tensors="pt", padding=True, truncation=True)
            mask = ids["attention_mask"][..., None].float()
            e = (self.model(**ids).last_hidden_state * mask).sum(1) / mask.sum(1)
            loss = -torch.log_softmax(self.head(torch.nn.functional.normalize(e)) / 15, 1).mean()
            b = torch.autograd.grad(1e6 * loss, kept["b"])[0] * mask
            a = torch.cat([kept["a"], torch.ones_like(kept["a"][..., :1])], -1) * mask
            rows = {"embedding": unit(e.detach())}
            for way, join in WAYS.items():
                rows[way] = unit(join(b, a, mask.sum(1)).flatten(1) @ self.projection.T)
            for name, values in rows.items():
                for i, row in zip(chosen, values):
                    out[name][i] = row
        hook.remove()
        return {name: torch.stack(rows) for name, rows in out.items()}


def accuracy(x, y, train, test, k=20, dim=512):
    if x.shape[1] > dim < x.shape[0]:
        centre = x.mean(0)
        axes = torch.linalg.eigh((x - centre).T @ (x - centre))[1][:, -dim:]
        x, y = (x - centre) @ axes, (y - centre) @ axes
    names = sorted(set(train))
    labels = torch.tensor([names.index(label) for label in train])
    near = labels[torch.cdist(y, x).topk(k, largest=False).indices]
    votes = torch.stack([torch.bincount(row, minlength=len(names)) for row in near]).argmax(1)
    return sum(names[v] == label for v, label in zip(votes.tolist(), test)) / len(test)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["trec", "banking77", "sst5"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(42)
    model, out = Model(args.data / "weights" / "all-MiniLM-L6-v2"), {}
    for name in args.sets:
        (train, of_train), (test, of_test) = (read(args.work / "data" / name / f"{s}.tsv") for s in ("train", "test"))
        x, y = model.features(train), model.features(test)
        out[name] = {"embedding": accuracy(x["embedding"], y["embedding"], of_train, of_test)}
        for way in WAYS:
            out[name][way] = [accuracy(torch.cat([x["embedding"], w * x[way]], 1), torch.cat([y["embedding"], w * y[way]], 1),
                                       of_train, of_test) for w in WEIGHTS]
        print(name, out[name], flush=True)
        (args.work / "tokens.json").write_text(json.dumps({"weights": WEIGHTS, "sets": out}))


if __name__ == "__main__":
    main()
