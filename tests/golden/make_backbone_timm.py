# SPDX-License-Identifier: Apache-2.0
"""Tiny timm models: ViT (CLS and mean pooling, other input size), DeiT, DeiT-III, MAE, CLIP, EVA.

Needs torch and timm (no torchvision). Run: python make_backbone_timm.py [family ...]
"""
import sys

import torch

from make_backbone_common import (ROOT, folder_for, generator, random_images, random_mask,
                                  randomise, stand_in, write_truth)

stand_in("torchvision")
import timm  # noqa: E402
from timm.models import save_for_hf  # noqa: E402

LIBRARY = f"timm {timm.__version__}, torch {torch.__version__}"
SMALL = dict(img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=4, mlp_ratio=2)
LESS = {**SMALL, "embed_dim": 16, "num_heads": 2, "mlp_ratio": 2.5}
MIDDLE = {**SMALL, "embed_dim": 24, "num_heads": 3}


def linear(m):
    return (m.weight, m.bias)


def vit_layers(model):
    last = len(model.blocks) - 1
    first, end = model.blocks[0], model.blocks[last]
    return {"blocks.0.attn.qkv": linear(first.attn.qkv), "blocks.0.mlp.fc1": linear(first.mlp.fc1),
            f"blocks.{last}.attn.proj": linear(end.attn.proj),
            f"blocks.{last}.mlp.fc2": linear(end.mlp.fc2)}


def eva_layers(model):
    last = len(model.blocks) - 1
    first, end = model.blocks[0], model.blocks[last]
    return {"blocks.0.attn.qkv": [linear(first.attn.q_proj), linear(first.attn.k_proj),
                                  linear(first.attn.v_proj)],
            "blocks.0.mlp.fc1": [linear(first.mlp.fc1_g), linear(first.mlp.fc1_x)],
            f"blocks.{last}.attn.proj": linear(end.attn.proj),
            f"blocks.{last}.mlp.fc2": linear(end.mlp.fc2)}


def runner(model):
    def run(x):
        tokens = model.forward_features(x)
        return model(x), tokens
    return run


def masked_runner(model, mask_token):
    """timm's forward, the patches of the mask replaced before the positions are added."""
    def run(x, masked):
        patches = model.patch_embed(x)
        patches = torch.where(masked.bool()[..., None], mask_token.to(patches.dtype), patches)
        tokens = model.norm(model.blocks(model.norm_pre(model._pos_embed(patches))))
        return model.forward_head(tokens), tokens
    return run


def vit_facts(model, notes="", **more):
    block = model.blocks[0]
    facts = {"library": LIBRARY, "width": model.embed_dim, "depth": len(model.blocks),
             "heads": block.attn.num_heads,
             "mlp_hidden": block.mlp.fc2.weight.shape[1],
             "patch": model.patch_embed.patch_size[0], "channels": 3,
             "native_grid": list(model.patch_embed.grid_size),
             "prefix_tokens": model.num_prefix_tokens, "registers": 0,
             "pooling": "mean of patch tokens" if model.global_pool == "avg" else "token 0",
             "eps": block.norm1.eps, "activation": "gelu", "norm_pre": False,
             "layer_scale": hasattr(block.ls1, "gamma") if hasattr(block, "ls1") else False,
             "pos_embed_has_prefix": True}
    facts.update(more)
    facts["notes"] = notes
    return facts


def build(name, family, g, **kwargs):
    model = timm.create_model(name, pretrained=False, **{**SMALL, "num_classes": 0, **kwargs})
    randomise(model, g)
    return model


def publish(family, model, **model_args):
    """Saves as timm's hub upload does: model.safetensors and config.json with the arguments."""
    folder = folder_for(family)
    save_for_hf(model, folder, model_args=model_args or None, safe_serialization=True)
    return folder


def finish_masked(family, model, g, size, mask_token, **facts):
    """As finish, with hidden patches and a gradient at the tokens beside that at the embedding."""
    model = model.double()
    images, masked = random_images(g, size), random_mask(g, model.patch_embed.num_patches)
    run = masked_runner(model, mask_token)
    whole = [t.detach() for t in runner(model)(images[2:].double())]
    assert all(torch.equal(x, y) for x, y in zip(whole, run(images[2:].double(), masked[2:])))
    write_truth(family, g, {"input": images, "masked": masked}, run, vit_layers(model),
                vit_facts(model, input_size=[size, size], **facts), token_seed=True)


def finish(family, model, g, size, layers=vit_layers, **facts):
    model = model.double()
    images = random_images(g, size)
    write_truth(family, g, {"input": images}, runner(model), layers(model),
                vit_facts(model, input_size=[size, size], **facts))


def timm_vit(family):
    g = generator(family)
    model = build("vit_base_patch16_224", family, g, depth=3)
    publish(family, model, **{**SMALL, "depth": 3})
    finish(family, model, g, 16, notes="plain ViT; config.json is timm's hub file")


def timm_vit_head(family):
    g = generator(family)
    model = build("vit_base_patch16_224", family, g, **LESS, num_classes=5)
    publish(family, model, **LESS)
    model.reset_classifier(0)
    finish(family, model, g, 16,
           notes="the file also has a classifier head.{weight,bias} [5, 16]; the embedding is "
                 "taken "
                 "before it")


def timm_vit_masked(family):
    g = generator(family)
    model = build("vit_base_patch16_224", family, g, **LESS)
    publish(family, model, **LESS)
    finish_masked(family, model, g, 16, torch.zeros(1, 1, 16),
                  notes="patches hidden by masked.npy; no mask token: zeros plus the position; the "
                        "loss sees the tokens too (token_seed.npy)")


def reload(family, name, **kwargs):
    """What a user does: create_model(pretrained=True) at his own input size."""
    overlay = dict(file=str(ROOT / family / "model.safetensors"), num_classes=0)
    return timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay,
                             num_classes=0, **kwargs).eval()


def timm_vit_resized(family):
    g = generator(family)
    model = build("vit_base_patch16_224", family, g, **LESS)
    publish(family, model, **LESS)
    other = reload(family, "vit_base_patch16_224", **{**LESS, "img_size": 24})
    finish(family, other, g, 24, native_grid=[4, 4],
           notes="stored grid 4x4, run at 6x6: timm resamples at load, bicubic with antialias in "
                 "f32")


def timm_vit_shrunk(family):
    g = generator(family)
    model = build("vit_base_patch16_224", family, g, **{**LESS, "img_size": 28})
    publish(family, model, **{**LESS, "img_size": 28})
    other = reload(family, "vit_base_patch16_224", **{**LESS, "img_size": 20})
    finish(family, other, g, 20, native_grid=[7, 7],
           notes="stored grid 7x7, run at 5x5: timm resamples at load, bicubic with antialias in "
                 "f32")


def timm_vit_avg(family):
    g = generator(family)
    model = build("vit_base_patch16_224", family, g, **LESS, global_pool="avg", fc_norm=True)
    publish(family, model, **LESS, global_pool="avg", fc_norm=True)
    finish(family, model, g, 16, final_norm="fc_norm, after the mean",
           notes="mean of the patch tokens (CLS left out), then fc_norm; tokens.npy has no final "
                 "norm. The layout of MAE fine-tuned models")


def timm_vit_norm_avg(family):
    g = generator(family)
    model = build("vit_base_patch16_224", family, g, **LESS, global_pool="avg", fc_norm=False)
    publish(family, model, **LESS, global_pool="avg", fc_norm=False)
    finish(family, model, g, 16,
           notes="final norm on every token, then the mean of the patch tokens (CLS left out)")


def timm_deit(family):
    g = generator(family)
    model = build("deit_tiny_patch16_224", family, g, **LESS)
    publish(family, model, **LESS)
    finish(family, model, g, 16, notes="plain DeiT: same layout as the ViT")


def timm_deit_distilled(family):
    g = generator(family)
    model = build("deit_tiny_distilled_patch16_224", family, g, **LESS)
    publish(family, model, **LESS)
    finish(family, model, g, 16, pooling="mean of tokens 0 and 1",
           notes="two prefix tokens, cls_token then dist_token, both with a row in pos_embed; "
                 "timm's "
                 "embedding is the mean of the two after the final norm")


def timm_deit3(family):
    g = generator(family)
    model = build("deit3_base_patch16_224", family, g, **LESS)
    publish(family, model, **LESS)
    assert model.no_embed_class
    finish(family, model, g, 16, pos_embed_has_prefix=False,
           notes="no CLS row in pos_embed: it is added to the patches, then CLS is prepended; "
                 "ls1/ls2")


def timm_deit3_resized(family):
    g = generator(family)
    model = build("deit3_base_patch16_224", family, g, **LESS)
    publish(family, model, **LESS)
    other = reload(family, "deit3_base_patch16_224", **{**LESS, "img_size": 24})
    finish(family, other, g, 24, pos_embed_has_prefix=False, native_grid=[4, 4],
           notes="stored grid 4x4, run at 6x6, timm's resampling")


def timm_mae(family):
    g = generator(family)
    model = build("vit_base_patch16_224.mae", family, g, **LESS)
    publish(family, model, **LESS)
    finish(family, model, g, 16, notes="timm's export of the MAE encoder: same layout as the ViT")


def timm_registers(family):
    g = generator(family)
    name = "vit_small_patch14_reg4_dinov2.lvd142m"
    args = {**LESS, "reg_tokens": 3, "init_values": 0.1}
    model = build(name, family, g, **args)
    publish(family, model, **args)
    finish(family, model, g, 16, registers=3, pos_embed_has_prefix=False,
           notes="timm's DINOv2 with registers: tokens are cls, reg_token x3, patches; pos_embed "
                 "has "
                 "no prefix rows")


def timm_dinov2(family):
    g = generator(family)
    args = {**LESS, "img_size": 28, "init_values": 0.1}
    model = build("vit_small_patch14_dinov2.lvd142m", family, g, **args)
    publish(family, model, **args)
    other = reload(family, "vit_small_patch14_dinov2.lvd142m", **{**args, "img_size": 16})
    finish(family, other, g, 16, native_grid=[7, 7],
           notes="timm's DINOv2 without registers, CLS row in pos_embed, ls1/ls2; stored grid 7x7, "
                 "run at 4x4 with timm's antialiased resampling (not DINOv2's own rule)")


def timm_dinov2_giant(family):
    g = generator(family)
    args = {**LESS, "init_values": 0.1, "mlp_ratio": 4.0}
    model = build("vit_giant_patch14_dinov2.lvd142m", family, g, **args)
    publish(family, model, **args)
    finish(family, model, g, 16, activation="silu-gated (fc1 = gate | value)",
           mlp_hidden=model.blocks[0].mlp.fc2.weight.shape[1],
           notes="timm's DINOv2 giant: packed SwiGLU, fc1 has 2*hidden rows, the first half gated "
                 "by "
                 "silu")


def timm_clip(family):
    g = generator(family)
    model = build("vit_base_patch16_clip_224.openai", family, g, **LESS, num_classes=20)
    publish(family, model, **LESS)
    finish(family, model, g, 16, norm_pre=True,
           notes="norm_pre after the position table, patch conv without bias, the head is the "
                 "projection; erf-GELU")


def timm_clip_quickgelu(family):
    g = generator(family)
    model = build("vit_base_patch16_clip_quickgelu_224.openai", family, g, **LESS, num_classes=20)
    publish(family, model, **LESS)
    finish(family, model, g, 16, norm_pre=True, activation="quick_gelu",
           notes="as timm_clip with u*sigmoid(1.702 u); only config.json's architecture tells")


def timm_clip_resized(family):
    g = generator(family)
    name = "vit_base_patch16_clip_224.openai"
    model = build(name, family, g, **LESS, num_classes=20)
    publish(family, model, **LESS)
    overlay = dict(file=str(ROOT / family / "model.safetensors"), num_classes=20)
    other = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay,
                              num_classes=20, **{**LESS, "img_size": 24}).eval()
    finish(family, other, g, 24, norm_pre=True, native_grid=[4, 4],
           notes="stored grid 4x4, run at 6x6, timm's resampling; erf-GELU")


def eva_facts(model, **more):
    return {"activation": "silu-gated (fc1 = fc1_g | fc1_x)", "rotary": True,
            "rotary_reference_grid": [16, 16], "rotary_temperature": 10000.0,
            "attn_inner_norm": True, "mlp_inner_norm": True,
            "mlp_hidden": model.blocks[0].mlp.fc2.weight.shape[1], **more}


def timm_eva02_clip(family):
    g = generator(family)
    args = {**MIDDLE, "mlp_ratio": 2.67}
    model = build("eva02_base_patch16_clip_224", family, g, **args, num_classes=20)
    publish(family, model, **args)
    finish(family, model, g, 16, eva_layers, **eva_facts(
        model, notes="rotary on q, k of the patches, SwiGLU with inner norm, norm before "
                     "attn.proj, "
                     "absolute positions too; k_proj has no bias: zeros in the bias column of the "
                     "k rows of grad_blocks.0.attn.qkv; the head has a bias"))


def timm_eva02_clip_resized(family):
    g = generator(family)
    args = {**LESS, "mlp_ratio": 2.67}
    model = build("eva02_base_patch16_clip_224", family, g, **args, num_classes=20)
    publish(family, model, **args)
    overlay = dict(file=str(ROOT / family / "model.safetensors"), num_classes=20)
    other = timm.create_model("eva02_base_patch16_clip_224", pretrained=True, num_classes=20,
                              pretrained_cfg_overlay=overlay, **{**args, "img_size": 24}).eval()
    finish(family, other, g, 24, eva_layers, **eva_facts(
        other, native_grid=[4, 4], notes="stored grid 4x4, run at 6x6: absolute table resampled by "
                                         "timm, rotary angles row/6*16"))


FAMILIES = {name: f for name, f in list(globals().items())
            if name.startswith("timm_") and callable(f)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
