# SPDX-License-Identifier: Apache-2.0
"""Tiny torchvision ViTs: today's names, the older MLP names, and another input size.

Needs torch and torchvision (Debian's python3-torch and python3-torchvision will do).
Run: /usr/bin/python3 make_backbone_torchvision.py [family ...]
"""
import sys

import torch
import torchvision
from torchvision.models.vision_transformer import VisionTransformer, interpolate_embeddings

from make_backbone_common import folder_for, generator, random_images, randomise, write_truth

ARGS = dict(patch_size=4, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=40, num_classes=5)


def linear(m):
    return (m.weight, m.bias)


def finish(family, model, g, size, notes, native=4):
    model.heads = torch.nn.Identity()
    model = model.double().eval()
    blocks = list(model.encoder.layers)

    def run(x):
        tokens = model._process_input(x)
        tokens = torch.cat([model.class_token.expand(x.shape[0], -1, -1), tokens], 1)
        return model(x), model.encoder(tokens)

    last = len(blocks) - 1
    mha = blocks[0].self_attention
    layers = {"blocks.0.attn.qkv": (mha.in_proj_weight, mha.in_proj_bias),
              "blocks.0.mlp.fc1": linear(blocks[0].mlp[0]),
              f"blocks.{last}.attn.proj": linear(blocks[last].self_attention.out_proj),
              f"blocks.{last}.mlp.fc2": linear(blocks[last].mlp[3])}
    facts = {"library": f"torchvision {torchvision.__version__}, torch {torch.__version__}",
             "width": 16, "depth": 2, "heads": 2, "mlp_hidden": 40, "patch": 4, "channels": 3,
             "native_grid": [native, native], "prefix_tokens": 1, "registers": 0,
             "pooling": "token 0", "eps": blocks[0].ln_1.eps, "activation": "gelu",
             "norm_pre": False, "layer_scale": False, "pos_embed_has_prefix": True,
             "input_size": [size, size], "notes": notes}
    write_truth(family, g, {"input": random_images(g, size)}, run, layers, facts)


def torchvision_vit(family):
    g = generator(family)
    model = randomise(VisionTransformer(image_size=16, **ARGS), g)
    torch.save(model.state_dict(), folder_for(family) / "model.pth")
    finish(family, model, g, 16, "mlp.0 / mlp.3 names; a classifier heads.head of 5 is in the file")


def torchvision_vit_old(family):
    g = generator(family)
    model = randomise(VisionTransformer(image_size=16, **ARGS), g)
    old = type(model.state_dict())()
    for name, value in model.state_dict().items():
        old[name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2.")] = value
    torch.save(old, folder_for(family) / "model.pth")
    again = VisionTransformer(image_size=16, **ARGS)
    again.load_state_dict(torch.load(folder_for_reading(family)))  # torchvision knows these names
    finish(family, again, g, 16, "names of the published files: mlp.linear_1 / mlp.linear_2")


def folder_for_reading(family):
    from make_backbone_common import ROOT
    return ROOT / family / "model.pth"


def torchvision_vit_resized(family):
    g = generator(family)
    model = randomise(VisionTransformer(image_size=16, **ARGS), g)
    torch.save(model.state_dict(), folder_for(family) / "model.pth")
    other = VisionTransformer(image_size=24, **ARGS)
    other.load_state_dict(interpolate_embeddings(24, 4, model.state_dict()))
    finish(family, other, g, 24, "stored grid 4x4, run at 6x6 with torchvision's "
                                 "interpolate_embeddings: bicubic a=-0.75, align_corners=True")


FAMILIES = {f.__name__: f for f in (torchvision_vit, torchvision_vit_old, torchvision_vit_resized)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
