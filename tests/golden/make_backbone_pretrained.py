# SPDX-License-Identifier: Apache-2.0
"""MAE, MoCo-v3, AugReg (.npz) and SSAST checkpoints in their authors' own layouts.

Their blocks are timm's, so timm computes the truth; AugReg files are read back with timm's own
.npz loader. Run: python make_backbone_pretrained.py [family ...]
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F

from make_backbone_common import SAMPLES, folder_for, generator, randomise, stand_in, write_truth
from make_backbone_dino import finish, native_state
from make_backbone_timm import LESS, build, runner, vit_facts, vit_layers

stand_in("torchvision")
import timm  # noqa: E402


def mae(family):
    g = generator(family)
    model = build("vit_base_patch16_224.mae", family, g, **LESS)
    torch.save({"model": native_state(model)}, folder_for(family) / "model.pth")
    finish(family, model, g, 16, notes='mae_pretrain files: {"model": encoder}; embedding is the '
                                       "final-norm CLS token")


def mae_full(family):
    g = generator(family)
    model = build("vit_base_patch16_224.mae", family, g, **LESS)
    state = native_state(model)
    other = {k: torch.randn(v.shape, generator=g) for k, v in state.items()
             if k.startswith("blocks.0")}
    state.update({k.replace("blocks.", "decoder_blocks."): v for k, v in other.items()})
    for name, shape in (("mask_token", (1, 1, 16)), ("decoder_pos_embed", (1, 17, 16)),
                        ("decoder_embed.weight", (16, 16)), ("decoder_embed.bias", (16,)),
                        ("decoder_norm.weight", (16,)), ("decoder_norm.bias", (16,)),
                        ("decoder_pred.weight", (48, 16)), ("decoder_pred.bias", (48,))):
        state[name] = torch.randn(shape, generator=g)
    torch.save({"model": state}, folder_for(family) / "model.pth")
    finish(family, model, g, 16, notes='full pre-training file: {"model": encoder, mask_token and '
                                       "decoder_*}; the decoder is not used")


def mae_finetuned(family):
    g = generator(family)
    model = build("vit_base_patch16_224.mae", family, g, **LESS, num_classes=5, global_pool="avg",
                  fc_norm=True)
    torch.save({"model": native_state(model)}, folder_for(family) / "model.pth")
    model.reset_classifier(0)
    finish(family, model, g, 16, final_norm="fc_norm, after the mean",
           notes='mae_finetuned files: {"model": ...} with fc_norm.* and head.*, no norm.*; mean '
                 'of '
                 "the patch tokens, then fc_norm; tokens.npy has no final norm")


def deit3(family):
    g = generator(family)
    model = build("deit3_base_patch16_224", family, g, **LESS)
    assert model.no_embed_class
    state = {k.replace("ls1.gamma", "gamma_1").replace("ls2.gamma", "gamma_2"): v
             for k, v in native_state(model).items()}
    torch.save({"model": state}, folder_for(family) / "model.pth")
    finish(family, model, g, 16, pos_embed_has_prefix=False,
           notes='the authors\' own file: {"model": ...} with gamma_1 and gamma_2 in the blocks')


def mocov3(family):
    g = generator(family)
    model = build("vit_base_patch16_224", family, g, **LESS)
    state = native_state(model)
    head = {"head.0.weight": (8, 16), "head.1.weight": (8,), "head.1.bias": (8,),
            "head.1.running_mean": (8,), "head.1.running_var": (8,), "head.3.weight": (6, 8)}
    full = {}
    for name, value in state.items():
        full[f"module.base_encoder.{name}"] = value
    for name, shape in head.items():
        full[f"module.base_encoder.{name}"] = torch.randn(shape, generator=g)
    full["module.base_encoder.head.1.num_batches_tracked"] = torch.tensor(7)
    for name, value in list(full.items()):
        if value.is_floating_point():
            full[name.replace("base_", "momentum_")] = torch.randn(value.shape, generator=g)
    full["module.predictor.0.weight"] = torch.randn(8, 6, generator=g)
    torch.save({"epoch": 300, "arch": "vit_base", "state_dict": full,
                "optimizer": {"state": {}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]},
                "scaler": {"scale": 65536.0, "growth_tracker": 12}},
               folder_for(family) / "model.pth.tar")
    finish(family, model, g, 16,
           notes="state_dict with module.base_encoder. (the model), module.momentum_encoder. "
                 "(other "
                 "values) and module.predictor.; head.* is an MLP to drop")


def augreg_arrays(state, heads):
    """timm names -> the JAX names and layouts of the AugReg release."""
    width = state["cls_token"].shape[-1]
    dim = width // heads
    out = {"cls": state["cls_token"],
           "embedding/kernel": state["patch_embed.proj.weight"].permute(2, 3, 1, 0),
           "embedding/bias": state["patch_embed.proj.bias"],
           "Transformer/posembed_input/pos_embedding": state["pos_embed"],
           "Transformer/encoder_norm/scale": state["norm.weight"],
           "Transformer/encoder_norm/bias": state["norm.bias"]}
    depth = 1 + max(int(k.split(".")[1]) for k in state if k.startswith("blocks."))
    for n in range(depth):
        b, t = f"blocks.{n}.", f"Transformer/encoderblock_{n}/"
        for jax_name, torch_name in (("LayerNorm_0", "norm1"), ("LayerNorm_2", "norm2")):
            out[f"{t}{jax_name}/scale"] = state[f"{b}{torch_name}.weight"]
            out[f"{t}{jax_name}/bias"] = state[f"{b}{torch_name}.bias"]
        a = t + "MultiHeadDotProductAttention_1/"
        weights = state[b + "attn.qkv.weight"].chunk(3)
        biases = state[b + "attn.qkv.bias"].chunk(3)
        for name, w, c in zip(("query", "key", "value"), weights, biases):
            out[f"{a}{name}/kernel"] = w.t().reshape(width, heads, dim)
            out[f"{a}{name}/bias"] = c.reshape(heads, dim)
        out[a + "out/kernel"] = state[b + "attn.proj.weight"].t().reshape(heads, dim, width)
        out[a + "out/bias"] = state[b + "attn.proj.bias"]
        for k in (0, 1):
            out[f"{t}MlpBlock_3/Dense_{k}/kernel"] = state[f"{b}mlp.fc{k + 1}.weight"].t()
            out[f"{t}MlpBlock_3/Dense_{k}/bias"] = state[f"{b}mlp.fc{k + 1}.bias"]
    return {k: np.ascontiguousarray(v.numpy()) for k, v in out.items()}


def augreg(family, size, notes):
    g = generator(family)
    args = {**LESS, "depth": 2}
    model = build("vit_base_patch16_224.augreg_in21k", family, g, **args, num_classes=5)
    arrays = augreg_arrays(native_state(model), 2)
    arrays["head/kernel"] = np.ascontiguousarray(model.head.weight.detach().t().numpy())
    arrays["head/bias"] = model.head.bias.detach().numpy()
    np.savez(folder_for(family) / "model.npz", **arrays)
    read = timm.create_model("vit_base_patch16_224.augreg_in21k", num_classes=0,
                             **{**args, "img_size": size}).eval()
    read.load_pretrained(str(folder_for_reading(family)))
    for layer in ("blocks.1.attn.qkv", "blocks.0.mlp.fc2", "blocks.1.attn.proj"):
        name = layer + ".weight"
        assert torch.equal(read.state_dict()[name], model.state_dict()[name]), name
    finish(family, read, g, size, native_grid=[4, 4], notes=notes)


def folder_for_reading(family):
    from make_backbone_common import ROOT
    return ROOT / family / "model.npz"


def augreg_npz(family):
    augreg(family, 16, "JAX names and layouts; kernels [in, head, dim] tell the head count; the "
                       "head "
                       "of 5 classes is not used")


def augreg_npz_resized(family):
    augreg(family, 24, "stored grid 4x4, run at 6x6 with timm's .npz loader (bilinear, no antialias)")


def ssast(family, pre_frames, frames, notes):
    """Pre-trained on 16x16 patches without overlap, run with stride 10 on 128 x frames."""
    g = generator(family)
    args = {**LESS, "patch_size": 16, "img_size": (128, pre_frames)}
    model = timm.create_model("deit_tiny_distilled_patch16_224", in_chans=1, num_classes=0, **args)
    randomise(model, g)
    state = native_state(model)
    p_f, p_t = model.patch_embed.grid_size
    full = {f"module.v.{k}": v for k, v in state.items()}
    for name, shape in (("v.head.weight", (5, 16)), ("v.head.bias", (5,)),
                        ("v.head_dist.weight", (5, 16)), ("v.head_dist.bias", (5,)),
                        ("mask_embed", (1, 1, 16)), ("cpredlayer.0.weight", (16, 16)),
                        ("cpredlayer.0.bias", (16,)), ("cpredlayer.2.weight", (16, 16)),
                        ("cpredlayer.2.bias", (16,)), ("gpredlayer.0.weight", (16, 16)),
                        ("gpredlayer.0.bias", (16,)), ("gpredlayer.2.weight", (16, 16)),
                        ("gpredlayer.2.bias", (16,))):
        full[f"module.{name}"] = torch.randn(shape, generator=g)
    full["module.p_input_fdim"] = torch.tensor(128)
    full["module.p_input_tdim"] = torch.tensor(pre_frames)
    torch.save(full, folder_for(family) / "model.pth")

    f, t = (128 - 16) // 10 + 1, (frames - 16) // 10 + 1
    grid = state["pos_embed"][:, 2:].transpose(1, 2).reshape(1, 16, p_f, p_t)
    if t < p_t:
        start = p_t // 2 - t // 2
        grid = grid[..., start:start + t]
    else:
        grid = F.interpolate(grid, size=(p_f, t), mode="bilinear")
    grid = F.interpolate(grid, size=(f, t), mode="bilinear")
    table = torch.cat([state["pos_embed"][:, :2], grid.flatten(2).transpose(1, 2)], 1)
    model.pos_embed = torch.nn.Parameter(table)
    model.patch_embed.proj.stride = (10, 10)
    model.patch_embed.img_size = (128, frames)
    model.double()
    x = torch.round(torch.randn((SAMPLES, frames, 128), generator=g) * 256) / 256
    whole = runner(model)
    write_truth(family, g, {"input": x}, lambda v: whole(v.transpose(1, 2)[:, None]),
                vit_layers(model),
                vit_facts(model, channels=1, native_grid=[p_f, p_t], stride=[10, 10],
                          input_size=[frames, 128], pooling="mean of tokens 0 and 1", notes=notes))


def ssast_patch(family):
    ssast(family, 128, 46, "input [n, frames, 128]; prefix module.v., cls_token then dist_token; "
                           "stored "
                           "grid 8x8 (stride 16), run at 12x4 (stride 10): columns 2..5 of the "
                           "time "
                           "axis, then bilinear 8 -> 12 without antialias; mel-major patches")


def ssast_patch_longer(family):
    ssast(family, 48, 46, "stored grid 8x3, run at 12x4: bilinear to 8x4, then to 12x4")


FAMILIES = {f.__name__: f for f in (mae, mae_full, mae_finetuned, deit3, mocov3, augreg_npz,
                                    augreg_npz_resized, ssast_patch, ssast_patch_longer)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
