# SPDX-License-Identifier: Apache-2.0
"""Tiny CLIP models with open_clip's and OpenAI's names. Needs torch and open_clip_torch.

Run: python make_backbone_clip.py [family ...]
"""
import sys

import torch

from make_backbone_common import (folder_for, generator, random_images, randomise, stand_in,
                                  write_truth)

stand_in("torchvision", "ftfy")
import open_clip  # noqa: E402
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg, resize_pos_embed  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

LIBRARY = f"open_clip {open_clip.__version__}, torch {torch.__version__}"


def build(quick, size=16):
    vision = CLIPVisionCfg(layers=2, width=16, head_width=8, mlp_ratio=2.5, patch_size=4,
                           image_size=size)
    text = CLIPTextCfg(context_length=7, vocab_size=20, width=8, heads=2, layers=1)
    return CLIP(embed_dim=20, vision_cfg=vision, text_cfg=text, quick_gelu=quick)


def finish(family, g, model, size, activation, notes):
    model = model.double().eval()
    visual = model.visual
    blocks = visual.transformer.resblocks

    def run(x):
        caught = []
        hook = visual.transformer.register_forward_hook(lambda m, i, o: caught.append(o))
        embedding = visual(x)
        hook.remove()
        tokens = visual.ln_post(caught[0])
        assert torch.allclose(tokens[:, 0] @ visual.proj, embedding)
        return embedding, tokens

    def linear(m):
        return (m.weight, m.bias)
    layers = {"blocks.0.attn.qkv": (blocks[0].attn.in_proj_weight, blocks[0].attn.in_proj_bias),
              "blocks.0.mlp.fc1": linear(blocks[0].mlp.c_fc),
              "blocks.1.attn.proj": linear(blocks[1].attn.out_proj),
              "blocks.1.mlp.fc2": linear(blocks[1].mlp.c_proj)}
    facts = {"library": LIBRARY, "width": 16, "depth": 2, "heads": 2, "mlp_hidden": 40, "patch": 4,
             "channels": 3, "native_grid": [4, 4], "prefix_tokens": 1, "registers": 0,
             "pooling": "token 0", "eps": visual.ln_post.eps, "activation": activation,
             "norm_pre": True, "layer_scale": False, "pos_embed_has_prefix": True,
             "input_size": [size, size], "notes": notes}
    write_truth(family, g, {"input": random_images(g, size)}, run, layers, facts)


def randomised(quick, g):
    model = randomise(build(quick), g)
    with torch.no_grad():  # [width, out] is used from the left: its fan-in is the first axis
        model.visual.proj.mul_((20 / 16) ** 0.5)
        model.visual.class_embedding.mul_(0.6)
    return model


def open_clip_vit(family):
    g = generator(family)
    model = randomised(False, g)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()},
              folder_for(family) / "open_clip_model.safetensors")
    finish(family, g, model, 16, "gelu",
           "open_clip's names, text tower beside; visual.proj is [width, embedding]; erf-GELU "
           "(the names alone do not tell GELU from QuickGELU)")


def open_clip_resized(family):
    g = generator(family)
    model = randomised(False, g)
    state = model.state_dict()
    torch.save(state, folder_for(family) / "open_clip_pytorch_model.bin")
    other = build(False, 24)
    state = {k: v.clone() for k, v in state.items()}
    resize_pos_embed(state, other)
    other.load_state_dict(state)
    finish(family, g, other, 24, "gelu", "stored grid 4x4, run at 6x6 with open_clip's "
                                         "resize_pos_embed: bicubic with antialias to the size")


def openai_clip(family):
    g = generator(family)
    model = randomised(True, g)
    state = {}
    for name, value in model.state_dict().items():
        half = value.dim() >= 2 and "embedding" not in name or "attn" in name or "mlp" in name
        state[name] = value.half() if half else value
    model.load_state_dict({k: v.float() for k, v in state.items()})
    stored = {**state, "input_resolution": torch.tensor(16), "context_length": torch.tensor(7),
              "vocab_size": torch.tensor(20)}
    torch.save(stored, folder_for(family) / "model.pt")
    finish(family, g, model, 16, "quick_gelu",
           "OpenAI's names; matrices and linear biases are f16, norms and tables f32, as the "
           "released "
           "state dicts; input_resolution, context_length and vocab_size are 0-d integers; "
           "QuickGELU")


FAMILIES = {f.__name__: f for f in (open_clip_vit, open_clip_resized, openai_clip)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
