# SPDX-License-Identifier: Apache-2.0
"""DINO and DINOv2 checkpoints in their authors' own layouts (hub files, training checkpoints).

Both definitions share timm's block, so timm computes the truth; its own loader reads the DINOv2
file, which checks the layout written here. The position rule (scale (n + 0.1)/m) is the authors',
expressed with torch's interpolate. Run: python make_backbone_dino.py [family ...]
"""
import math
import sys

import torch
import torch.nn.functional as F

from make_backbone_common import folder_for, generator, random_images, stand_in, write_truth

stand_in("torchvision")
import timm  # noqa: E402

from make_backbone_timm import (LESS, MIDDLE, build, finish_masked, runner,  # noqa: E402
                                vit_facts, vit_layers)


def shifted_bicubic(table, new, offset=0.1, antialias=False):
    """DINO's and DINOv2's rule: bicubic with the scale (n + offset)/m; offset 0 gives the size."""
    prefix, patches = table[:, :1], table[:, 1:]
    side = math.isqrt(patches.shape[1])
    grid = patches.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    if offset:
        how = dict(scale_factor=tuple(float(n + offset) / side for n in new))
    else:
        how = dict(size=new)
    grid = F.interpolate(grid, mode="bicubic", antialias=antialias, **how)
    assert tuple(grid.shape[2:]) == tuple(new)
    return torch.cat([prefix, grid.permute(0, 2, 3, 1).flatten(1, 2)], 1)


def native_state(model):
    return {k: v.detach().clone() for k, v in model.state_dict().items()}


def at_size(name, state, size, **kwargs):
    """The same weights in a timm model of another input size; its pos_embed must fit already."""
    model = timm.create_model(name, num_classes=0, **{**kwargs, "img_size": size})
    model.load_state_dict(state)
    return model.eval()


def finish(family, model, g, size, **facts):
    model = model.double()
    h, w = size if isinstance(size, tuple) else (size, size)
    write_truth(family, g, {"input": random_images(g, (h, w))}, runner(model), vit_layers(model),
                vit_facts(model, input_size=[h, w], **facts))


def dino(family):
    g = generator(family)
    model = build("vit_small_patch16_224.dino", family, g, **MIDDLE)
    torch.save(native_state(model), folder_for(family) / "model.pth")
    finish(family, model, g, 16, notes="flat state dict, DINO's published layout, native size")


def dino_resized(family):
    g = generator(family)
    model = build("vit_small_patch16_224.dino", family, g, **LESS)
    state = native_state(model)
    torch.save(state, folder_for(family) / "model.pth")
    state["pos_embed"] = shifted_bicubic(state["pos_embed"], (7, 7))
    finish(family, at_size("vit_small_patch16_224.dino", state, 28, **LESS), g, 28,
           native_grid=[4, 4], notes="stored grid 4x4, run at 7x7 with DINO's rule: bicubic "
                                     "a=-0.75, "
                                     "no antialias, scale (7+0.1)/4")


def dino_wide(family):
    g = generator(family)
    model = build("vit_small_patch16_224.dino", family, g, **LESS)
    state = native_state(model)
    torch.save(state, folder_for(family) / "model.pth")
    state["pos_embed"] = shifted_bicubic(state["pos_embed"], (3, 6))
    finish(family, at_size("vit_small_patch16_224.dino", state, (12, 24), **LESS), g, (12, 24),
           native_grid=[4, 4], notes="stored grid 4x4, run at 3 rows x 6 columns with DINO's rule")


def dino_teacher(family):
    g = generator(family)
    model = build("vit_small_patch16_224.dino", family, g, **LESS)
    state = native_state(model)
    noise = {k: torch.randn(v.shape, generator=g) for k, v in state.items()}
    head = {"head.mlp.0.weight": torch.randn(8, 16, generator=g),
            "head.mlp.0.bias": torch.randn(8, generator=g),
            "head.last_layer.weight_g": torch.randn(6, 1, generator=g),
            "head.last_layer.weight_v": torch.randn(6, 8, generator=g)}
    full = {"student": {f"module.backbone.{k}": v for k, v in noise.items()},
            "teacher": {**{f"backbone.{k}": v for k, v in state.items()}, **head},
            "optimizer": {"state": {0: {"step": 3, "exp_avg": torch.zeros(2)}},
                          "param_groups": [{"lr": 0.5, "betas": (0.9, 0.99), "params": [0]}]},
            "epoch": 100, "fp16_scaler": None,
            "dino_loss": {"center": torch.zeros(1, 6)}}
    torch.save(full, folder_for(family) / "model.pth")
    finish(family, model, g, 16,
           notes="DINO full training checkpoint: student (module.backbone., other values), teacher "
                 "(backbone., head.), optimizer; the teacher is the model")


def hub_dinov2(state, model, g):
    """timm names -> DINOv2 hub names: CLS row in the table, mask_token, register_tokens, w12/w3."""
    out = {}
    width = state["cls_token"].shape[-1]
    for name, value in state.items():
        name = name.replace("reg_token", "register_tokens")
        if "fc1" in name and model.blocks[0].mlp.__class__.__name__.startswith("Glu"):
            name = name.replace("fc1", "w12")
        if "fc2" in name and model.blocks[0].mlp.__class__.__name__.startswith("Glu"):
            name = name.replace("fc2", "w3")
        out[name] = value.clone()
    if model.no_embed_class:
        row = torch.randn(1, 1, width, generator=g) * 0.5
        out["pos_embed"] = torch.cat([row, out["pos_embed"]], 1)
    out["mask_token"] = torch.randn(1, width, generator=g)
    return out


def dinov2_family(family, name, native, size, offset, antialias, notes, **kwargs):
    g = generator(family)
    args = {**LESS, "init_values": 0.1, **kwargs}
    model = build(name, family, g, **{**args, "img_size": native})
    hub = hub_dinov2(native_state(model), model, g)
    folder = folder_for(family)
    torch.save(hub, folder / "model.pth")
    # timm's own filter must understand the file written here
    overlay = dict(file=str(folder / "model.pth"), num_classes=0)
    read = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, num_classes=0,
                             **{**args, "img_size": native})
    h, w = size if isinstance(size, tuple) else (size, size)
    table = hub["pos_embed"]
    if (h, w) != (native, native):
        table = shifted_bicubic(table, (h // 4, w // 4), offset, antialias)
    run = timm.create_model(name, num_classes=0, **{**args, "img_size": (h, w)})
    state = native_state(read)
    assert torch.equal(state["blocks.0.ls1.gamma"], hub["blocks.0.ls1.gamma"])
    if run.no_embed_class:  # timm folds the CLS row into cls_token
        assert torch.equal(state["cls_token"], hub["cls_token"] + hub["pos_embed"][:, :1])
        state["pos_embed"] = table[:, 1:]
    else:
        state["pos_embed"] = table
    run.load_state_dict(state)
    run.eval()
    gated = run.blocks[0].mlp.__class__.__name__.startswith("Glu")
    finish(family, run, g, (h, w), native_grid=[native // 4] * 2, pos_embed_has_prefix=True,
           registers=run.num_reg_tokens,
           activation="silu-gated (fc1 = w12 = gate | value, fc2 = w3)" if gated else "gelu",
           notes=notes)


def dinov2(family):
    dinov2_family(family, "vit_small_patch14_dinov2.lvd142m", 28, 16, 0.1, False,
                  "hub names; stored grid 7x7, run at 4x4: scale (4+0.1)/7, bicubic a=-0.75, no "
                  "antialias; mask_token is not used", **MIDDLE)


def dinov2_native(family):
    dinov2_family(family, "vit_small_patch14_dinov2.lvd142m", 16, 16, 0.1, False,
                  "hub names at the native size: no interpolation")


def dinov2_masked(family):
    g = generator(family)
    model = build("vit_small_patch14_dinov2.lvd142m", family, g, **LESS, init_values=0.1)
    hub = hub_dinov2(native_state(model), model, g)
    torch.save(hub, folder_for(family) / "model.pth")
    finish_masked(family, model, g, 16, hub["mask_token"], layer_scale=True,
                  notes="hub names; patches hidden by masked.npy are the mask_token plus the "
                        "position; the loss sees the tokens too (token_seed.npy)")


def dinov2_larger(family):
    dinov2_family(family, "vit_small_patch14_dinov2.lvd142m", 16, (24, 20), 0.1, False,
                  "hub names; stored grid 4x4, run at 6 rows x 5 columns with the +0.1 rule")


def dinov2_registers(family):
    dinov2_family(family, "vit_small_patch14_reg4_dinov2.lvd142m", 28, 16, 0.0, True,
                  "hub names with register_tokens [1, 3, d]; tokens are cls, registers, patches; "
                  "pos_embed has a CLS row but none for registers; stored grid 7x7, run at 4x4: "
                  "bicubic with antialias to the size (offset 0.0), as the hub's _reg models",
                  reg_tokens=3)


def dinov2_giant(family):
    dinov2_family(family, "vit_giant_patch14_dinov2.lvd142m", 28, 16, 0.1, False,
                  "hub names, SwiGLU: silu(first half of w12) * second half, then w3; +0.1 rule "
                  "7x7 -> 4x4", mlp_ratio=4.0)


FAMILIES = {f.__name__: f for f in (dino, dino_resized, dino_wide, dino_teacher, dinov2,
                                    dinov2_native, dinov2_masked, dinov2_larger,
                                    dinov2_registers, dinov2_giant)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
