#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/layers/: gradients of ALL layers of three models of tests/golden/backbone, by torch autograd in float64.

Of the gradient M = [W | b] of each layer and sample only M u and v M are kept, for uniform u and v of torch's generator, which the test
draws again: [samples, outputs + inputs + 1] for one layer after the other in each file. The gradient at the embeddings is the model's
seed.npy. Needs torch, timm, transformers; run from anywhere.
"""
import json
import pathlib

import numpy as np
import torch

from make_backbone_common import stand_in

stand_in("torchvision")
import timm  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModel  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parent
OUT = GOLDEN / "layers"


def load(folder, name):
    return torch.from_numpy(np.load(folder / f"{name}.npy"))


def timm_vit(folder):
    args = json.loads((folder / "config.json").read_text())["model_args"]
    model = timm.create_model("vit_base_patch16_224", num_classes=0, **args)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    layers = {f"blocks.{i}.{part}": [block.get_submodule(part)] for i, block in enumerate(model.blocks)
              for part in ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")}
    pixels = load(folder, "input").double()
    return model, layers, lambda i: model(pixels[i:i + 1])[0]


# What transformers calls the linear layers of a block, in its older and its newer classes.
PARTS = {"attn.qkv": [("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")], "attn.proj": [("attention.output.dense", "o_proj")],
         "mlp.fc1": [("intermediate.dense", "mlp.fc1")], "mlp.fc2": [("output.dense", "mlp.fc2")]}


def huggingface(folder):
    model = AutoModel.from_pretrained(folder, attn_implementation="eager")
    layers = {}
    for i, block in enumerate(model.encoder.layer if hasattr(model, "encoder") else model.layers):
        named = [(n, m) for n, m in block.named_modules() if isinstance(m, torch.nn.Linear)]
        for part, names in PARTS.items():
            layers[f"blocks.{i}.{part}"] = [
                next(m for n, m in named if n.endswith(ends) and (part != "mlp.fc2" or "attention" not in n)) for ends in names]
    return model, layers


def bert(folder):
    model, layers = huggingface(folder)
    ids, mask = load(folder, "input").long(), load(folder, "mask").long()
    return model, layers, lambda i: model(input_ids=ids[i:i + 1], attention_mask=mask[i:i + 1]).last_hidden_state[0, 0]


def hf_ast(folder):
    model, layers = huggingface(folder)
    bank = load(folder, "input").double()
    return model, layers, lambda i: model(bank[i:i + 1]).last_hidden_state[0, :2].mean(0)


def draws(seed, count):
    torch.manual_seed(seed)
    return (torch.rand(count) * 2 - 1).double()


def main():
    OUT.mkdir(exist_ok=True)
    for make in (timm_vit, bert, hf_ast):
        name = make.__name__
        folder = GOLDEN / "backbone" / name
        model, layers, embedding = make(folder)
        model.double().eval()
        seeds, expected = load(folder, "seed").double(), load(folder, "embedding").double()
        values = {layer: [] for layer in layers}
        for i in range(len(seeds)):
            model.zero_grad()
            e = embedding(i)
            assert torch.allclose(e, expected[i], rtol=1e-4, atol=1e-5), (name, (e - expected[i]).abs().max())
            (e * seeds[i]).sum().backward()
            for layer, parts in layers.items():
                gradient = torch.cat([torch.cat([p.weight.grad, p.bias.grad[:, None]], dim=1) for p in parts])
                u, v = draws(1, gradient.shape[1]), draws(2, gradient.shape[0])
                values[layer].append(torch.cat([gradient @ u, v @ gradient]).numpy())
        flat = np.concatenate([np.stack(v).ravel() for v in values.values()])
        np.save(OUT / f"{name}.npy", flat.astype("<f4"))
        print(name, len(layers), flat.size)


if __name__ == "__main__":
    main()
