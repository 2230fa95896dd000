# SPDX-License-Identifier: Apache-2.0
"""Views of several sides in one network: tiny models of tests/golden/backbone, run by timm at each side.

timm's models run with dynamic_img_size; DINO's with its own rule for positions, as
make_backbone_dino.py has it. The loss joins all views, whatever their sides: SimCLR's among the
first, third and fifth view beside DINO-like cross-entropies of the others, so that every view has a
gradient of its own. Writes tests/golden/sides/<family>. Run: python make_sides.py [family ...]
"""
import json
import pathlib
import sys

import numpy as np
import torch

from make_backbone_common import generator, save, stacked, stand_in

stand_in("torchvision")
import timm  # noqa: E402

import make_backbone_timm as of_timm  # noqa: E402
from make_backbone_dino import shifted_bicubic  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent
SIDES = (16, 8, 12, 16, 8)


def timm_model(family, name, **args):
    """At any side, the same object."""
    overlay = dict(file=str(ROOT / "backbone" / family / "model.safetensors"), num_classes=args.get("num_classes", 0))
    model = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay,
                              dynamic_img_size=True, **{"num_classes": 0, **args}).eval().double()
    return model, lambda x: model(x)


def dino_model(family):
    """One module whose position table is brought to each side by DINO's rule."""
    model = timm.create_model("vit_small_patch16_224.dino", dynamic_img_size=True, num_classes=0, **of_timm.MIDDLE)
    model.load_state_dict(torch.load(ROOT / "backbone" / family / "model.pth"))
    model = model.eval().double()
    table = model.pos_embed.detach().clone()

    def run(x):
        n = x.shape[-1] // 4
        own = table if n == 4 else shifted_bicubic(table, (n, n))
        tokens = model.patch_embed(x)
        tokens = torch.cat([model.cls_token, tokens.flatten(1, 2)], 1) + own
        return model.forward_head(model.norm(model.blocks(model.norm_pre(tokens))))
    return model, run


def today_layers(model):
    from make_backbone_timm import linear
    last = len(model.blocks) - 1
    attention = model.blocks[0].attn
    return {"blocks.0.attn.qkv": (attention.qkv.weight, attention.qkv.bias),
            f"blocks.{last}.attn.proj": linear(model.blocks[last].attn.proj)}


FAMILIES = {
    "dino": lambda f: (*dino_model(f), of_timm.vit_layers),
    "timm_vit": lambda f: (*timm_model(f, "vit_base_patch16_224", **of_timm.SMALL | {"depth": 3}), of_timm.vit_layers),
    "timm_vit_avg": lambda f: (*timm_model(f, "vit_base_patch16_224", **of_timm.LESS, global_pool="avg"), of_timm.vit_layers),
    "timm_eva02_clip": lambda f: (*timm_model(f, "eva02_base_patch16_clip_224", **of_timm.MIDDLE | {
        "mlp_ratio": 2.67, "num_classes": 20}), of_timm.eva_layers),
    "timm_dinov3": lambda f: (*timm_model(f, "vit_small_patch16_dinov3", global_pool="token", **of_timm.SMALL | {
        "embed_dim": 16, "num_heads": 2, "mlp_ratio": 2.5}), today_layers),
}


def mixed_loss(e):
    """e: [5, d]."""
    unit = torch.nn.functional.normalize(e, dim=1)
    near = unit[::2] @ unit[::2].T / 0.07
    near = near.masked_fill(torch.eye(3, dtype=torch.bool), -torch.inf)
    contrast = -(near.log_softmax(1)[[0, 1, 2], [1, 2, 0]]).sum()
    student = (unit / 0.1).log_softmax(1)
    teacher = (unit[:2].detach() / 0.07).softmax(1)
    return contrast - sum((teacher[g] * student[v]).sum() for g in range(2) for v in range(5))


def make(family):
    model, run, layers = FAMILIES[family](family)
    g = generator("sides/" + family)
    pictures = [torch.round(torch.randn((1, 3, s, s), generator=g) * 256) / 256 for s in SIDES]
    embedding = torch.cat([run(p.double()) for p in pictures])
    loss = mixed_loss(embedding)
    wanted = {name: parts for name, parts in layers(model).items() if "attn" in name}
    params = [p for parts in wanted.values() for w, b in stacked(parts) for p in (w, b) if p is not None]
    seed, *grads = torch.autograd.grad(loss, [embedding, *params])
    grads = iter(grads)
    folder = ROOT / "sides" / family
    folder.mkdir(parents=True, exist_ok=True)
    for name, parts in wanted.items():
        rows = []
        biased = any(b is not None for _, b in stacked(parts))
        for weight, bias in stacked(parts):
            gw = next(grads)
            gb = next(grads) if bias is not None else torch.zeros(gw.shape[0], dtype=gw.dtype)
            rows.append(torch.cat([gw, gb[:, None]], 1) if biased else gw)
        save(folder / f"grad_{name}.npy", torch.cat(rows))
    save(folder / "input.npy", torch.cat([p.flatten() for p in pictures]))
    save(folder / "embedding.npy", embedding)
    save(folder / "seed.npy", seed)
    (folder / "facts.json").write_text(json.dumps({"sides": SIDES, "library": of_timm.LIBRARY}) + "\n")
    print(family, "loss", loss.item(), "|e|", float(np.linalg.norm(embedding.detach().numpy(), axis=1).mean()))


for name in sys.argv[1:] or FAMILIES:
    make(name)
