#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes fungi/backbone/timm_table.cpp: what timm's names of ViTs tell that tensors do not.

    tools/make_timm_architectures.py > fungi/backbone/timm_table.cpp

A developer's tool: needs timm and torch, and is run again for a new timm. Each model is built
without memory for its weights, and looked into: those that are made of the parts that are known
here get their facts; of all others those are listed whose tensors have the same names.
"""
import collections
import textwrap

import timm
import torch
from timm import layers
from timm.models import _registry, deit, eva, vision_transformer

MODULES = ("beit cait convit crossvit deepseek_vit deit eva gemma4_vit hiera levit naflexvit pit "
           "qwen3_vit tiny_vit tnt vision_transformer vision_transformer_hybrid "
           "vision_transformer_relpos vision_transformer_sam vitamin volo xcit").split()
ACTIVATIONS = {"GELU": "gelu", "GELUTanh": "gelu_tanh", "QuickGELU": "quick_gelu", "SiLU": "silu",
               "ReLU": "relu"}


ANCHORS = ({"blocks.0.attn.qkv.weight", "patch_embed.proj.weight", "blocks.0.attn.proj.weight"},
           {"blocks.0.attn.q_proj.weight", "blocks.0.mlp.fc1_g.weight", "blocks.0.mlp.fc1_x.weight",
            "pos_embed"})


def build(name):
    for args in ({"depth": 2}, {}):
        try:
            with torch.device("meta"):
                return timm.create_model(name, **args)
        except Exception:
            continue
    return None


def none(module):
    return module is None or isinstance(module, torch.nn.Identity)


def only(kinds, modules):
    return all(type(m) in kinds or none(m) for m in modules)


def usual_attention(attention):
    """Keys, queries and values in one matrix, no gate, norm or grouping of heads."""
    gate, groups = getattr(attention, "gate", None), getattr(attention, "num_kv_groups", 1)
    return (type(attention) in (layers.Attention, layers.AttentionRope, eva.EvaAttention)
            and attention.qkv is not None and gate is None and groups == 1
            and all(none(n) for n in (attention.q_norm, attention.k_norm, attention.norm)))


def usual_mlp(mlp):
    return none(mlp.norm) and (type(mlp) in (layers.Mlp, layers.SwiGLU)
                               or (type(mlp) is layers.GluMlp and not mlp.gate_last))


def usual_pool(pool):
    """Attention of one learned query, or none."""
    return none(pool) or (
        type(pool) is layers.AttentionPoolLatent and pool.latent_len == 1 and pool.mlp is not None
        and pool.pos_embed is None and type(pool.q) is torch.nn.Linear and pool.pool == "token"
        and none(pool.q_norm) and none(pool.k_norm) and not none(pool.norm)
        and type(pool.proj) is torch.nn.Linear)


def plain_vit(model):
    """Whether it is computed as fungi computes a ViT with timm's names."""
    return (type(model) in (vision_transformer.VisionTransformer, deit.VisionTransformerDistilled)
            and only([vision_transformer.Block], model.blocks)
            and all(usual_attention(b.attn) and usual_mlp(b.mlp) for b in model.blocks)
            and type(model.patch_embed) is layers.PatchEmbed and usual_pool(model.attn_pool)
            and not model.pool_include_prefix and model.pos_embed is not None)


def with_angles(model):
    """The same of timm's Eva: DINOv3, Perception Encoder, RoPE-ViT, EVA."""
    return (type(model) is eva.Eva and only([eva.EvaBlock], model.blocks)
            and all(usual_attention(b.attn) and usual_mlp(b.mlp)
                    and none(b.gamma_1) == none(b.gamma_2) for b in model.blocks)
            and type(model.patch_embed) is layers.PatchEmbed and usual_pool(model.attn_pool))


def eva_02(model):
    """The same of EVA-02 and its CLIP towers, whose queries, keys and values are apart."""
    return (type(model) is eva.Eva and only([eva.EvaBlock], model.blocks)
            and all(type(b.attn) is eva.EvaAttention and b.attn.qkv is None
                    and none(b.attn.q_norm) and b.attn.gate is None and none(b.gamma_1)
                    and type(b.mlp) is layers.SwiGLU for b in model.blocks)
            and rotary(model) == (10000, 16, 0, False, False)
            and model.attn_pool is None and model.pos_embed is not None and model.reg_token is None)


def rotary(model):
    """(theta, reference grid, first position, columns first, centred); None: in another way."""
    rope = getattr(model, "rope", None)
    if rope is None:
        return (0, 0, 0, False, False)
    centred = type(rope) is layers.RotaryEmbeddingDinoV3
    grid = set(getattr(rope, "ref_feat_shape", None) or [0])
    if (not (centred or type(rope) is layers.RotaryEmbeddingCat) or len(grid) != 1
            or rope.rotate_half != centred or getattr(rope, "in_pixels", False)
            or (centred and (rope.normalize_coords != "separate" or rope.min_period or rope.grid_offset))):
        return None
    return (rope.temperature, grid.pop(), rope.grid_offset, rope.grid_indexing == "xy", centred)


def looks_alike(model):
    """Whether it has the tensors by which fungi knows a ViT in timm's names, or an EVA-02."""
    names = set(model.state_dict()) if model is not None else set()
    return any(anchors <= names for anchors in ANCHORS)


def facts(model):
    """What the table says of it, or None for another kind of network."""
    kinds = [m for m in model.modules() if "norm" in type(m).__name__.lower()]
    if not any(only([kind], kinds) for kind in (layers.LayerNorm, torch.nn.LayerNorm, layers.RmsNorm)):
        return None
    epsilons = {m.eps for m in kinds if not none(m)}
    if not (plain_vit(model) or with_angles(model) or eva_02(model)) or len(epsilons) != 1:
        return None
    activations = {ACTIVATIONS.get(type(b.mlp.act).__name__) for b in model.blocks}
    pooling = {"token": "first", "avg": "mean_patches", "map": "attention"}.get(model.global_pool)
    heads, angles, pool = {b.attn.num_heads for b in model.blocks}, rotary(model), model.attn_pool
    if len(activations) != 1 or None in activations or not pooling or not angles:
        return None
    size = 0 if model.pos_embed is not None else model.pretrained_cfg["input_size"][1]
    return (model.embed_dim, heads.pop(), activations.pop(), pooling, epsilons.pop(),
            none(model.norm) and none(model.fc_norm), 0 if none(pool) else pool.num_heads, size, angles)


def main():
    known, others = collections.defaultdict(list), []
    names = [n for n in timm.list_models()
             if _registry._model_entrypoints[n].__module__.split(".")[-1] in MODULES]
    models = {n: build(n) for n in names}
    found = {n: facts(model) for n, model in models.items() if looks_alike(model)}
    for old, new in _registry._deprecated_models.items():
        if new.split(".")[0] in found:
            found.setdefault(old, found[new.split(".")[0]])
    for name, fact in sorted(found.items()):
        (known[fact] if fact else others).append(name)

    def words(list_of_names, indent):
        lines = textwrap.wrap(" ".join(list_of_names), 96 - indent, break_on_hyphens=False)
        return ("\n" + " " * indent).join(f'"{" " if i == 0 else ""}{line} "'
                                          for i, line in enumerate(lines))

    print(f"""// SPDX-License-Identifier: Apache-2.0
// Made by tools/make_timm_architectures.py from timm {timm.__version__}: do not edit.
#include "fungi/backbone/timm_architectures.h"

namespace fungi {{

// clang-format off
std::span<const TimmArchitecture> timm_architectures() {{
  using enum kernel::Activation;
  static constexpr TimmArchitecture all[] = {{""")
    for fact, list_of_names in sorted(known.items()):
        width, heads, activation, pooling, epsilon, bare, pool, size, angles = fact
        word = {False: "false", True: "true"}
        print(f"      {{{width}, {heads}, {activation}, Pooling::{pooling}, {epsilon:g}f, {word[bare]}, {pool}, {size},\n"
              f"       {{{angles[0]:g}, {angles[1]}, {angles[2]:g}, {word[angles[3]]}, {word[angles[4]]}}},\n"
              f"       {words(list_of_names, 7)}}},")
    print(f"""  }};
  return all;
}}

std::string_view other_timm_architectures() {{
  return {words(others, 9)};
}}
// clang-format on

}}  // namespace fungi""")


main()
