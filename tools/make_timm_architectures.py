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


ANCHORS = ({"blocks.0.attn.qkv.weight", "patch_embed.proj.weight", "blocks.0.attn.proj.weight",
            "pos_embed"},
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


def norms(model):
    return [m for m in model.modules() if "norm" in type(m).__name__.lower()]


def only(kind, modules):
    return all(type(m) is kind or isinstance(m, torch.nn.Identity) for m in modules)


def plain_vit(model):
    """Whether it is computed as fungi computes a ViT with timm's names."""
    blocks = list(model.blocks)
    return (type(model) in (vision_transformer.VisionTransformer, deit.VisionTransformerDistilled)
            and only(vision_transformer.Block, blocks)
            and all(type(b.attn) is layers.Attention for b in blocks)
            and all(isinstance(n, torch.nn.Identity) for b in blocks
                    for n in (b.attn.q_norm, b.attn.k_norm, b.attn.norm, b.mlp.norm))
            and type(model.patch_embed) is layers.PatchEmbed
            and isinstance(model.patch_embed.norm, torch.nn.Identity)
            and all(type(b.mlp) is layers.Mlp or
                    (type(b.mlp) is layers.GluMlp and not b.mlp.gate_last) for b in blocks)
            and model.attn_pool is None and not model.pool_include_prefix
            and model.pos_embed is not None)


def eva_02(model):
    """The same of EVA-02 and its CLIP towers."""
    return (type(model) is eva.Eva and only(eva.EvaBlock, model.blocks)
            and all(type(b.attn) is eva.EvaAttention and b.attn.qkv is None
                    and isinstance(b.attn.q_norm, torch.nn.Identity)
                    and isinstance(b.gamma_1, type(None))
                    and type(b.mlp) is layers.SwiGLU for b in model.blocks)
            and type(model.rope) is layers.RotaryEmbeddingCat
            and model.rope.temperature == 10000 and list(model.rope.ref_feat_shape or []) == [16, 16]
            and model.attn_pool is None and model.pos_embed is not None and model.reg_token is None)


def looks_alike(model):
    """Whether it has the tensors by which fungi knows a ViT in timm's names, or an EVA-02."""
    names = set(model.state_dict()) if model is not None else set()
    return any(anchors <= names for anchors in ANCHORS)


def facts(model):
    """(width, heads, activation, pooling, epsilon), or None for another kind of network."""
    kinds = norms(model)
    if not only(layers.LayerNorm, kinds) and not only(torch.nn.LayerNorm, kinds):
        return None
    epsilons = {m.eps for m in kinds if not isinstance(m, torch.nn.Identity)}
    if not (plain_vit(model) or eva_02(model)) or len(epsilons) != 1:
        return None
    activations = {ACTIVATIONS.get(type(b.mlp.act).__name__) for b in model.blocks}
    if len(activations) != 1 or None in activations or model.global_pool not in ("token", "avg"):
        return None
    heads = {b.attn.num_heads for b in model.blocks}
    return (model.embed_dim, heads.pop(), activations.pop(), model.global_pool, epsilons.pop())


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
    for (width, heads, activation, pool, epsilon), list_of_names in sorted(known.items()):
        print(f"      {{{width}, {heads}, {activation}, {str(pool == 'avg').lower()}, {epsilon:g}f,\n"
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
