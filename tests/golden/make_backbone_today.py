# SPDX-License-Identifier: Apache-2.0
"""Tiny DINOv3, SigLIP, AIMv2, Perception Encoder and RoPE-ViT, of timm and of Hugging Face.

Needs torch, timm and transformers (no torchvision). Run: python make_backbone_today.py [family ...]
"""
import sys

from make_backbone_common import ROOT, folder_for, generator, random_images, randomise, write_truth
import make_backbone_hf as hf
import make_backbone_timm as of_timm
import timm
import torch
from timm.models.eva import checkpoint_filter_fn
from transformers import (Aimv2Config, Aimv2Model, Aimv2VisionConfig, Aimv2VisionModel,
                          DINOv3ViTConfig, DINOv3ViTModel, SiglipConfig, SiglipModel,
                          SiglipVisionConfig, SiglipVisionModel)

SMALL = dict(img_size=16, patch_size=4, embed_dim=16, depth=2, num_heads=2, mlp_ratio=2.5)
linear = of_timm.linear
ACTIVATIONS = {"GELU": "gelu", "SiLU": "silu"}


def timm_layers(model):
    """Queries, keys and values in one matrix, their biases perhaps apart; gate and value apart."""
    first, last = model.blocks[0], len(model.blocks) - 1
    attention = first.attn
    bias = attention.qkv.bias
    if getattr(attention, "q_bias", None) is not None:
        bias = [attention.q_bias, None, attention.v_bias]
    gated = hasattr(first.mlp, "fc1_g")
    fc1 = [linear(first.mlp.fc1_g), linear(first.mlp.fc1_x)] if gated else linear(first.mlp.fc1)
    end = model.blocks[last]
    return {"blocks.0.attn.qkv": (attention.qkv.weight, bias), "blocks.0.mlp.fc1": fc1,
            f"blocks.{last}.attn.proj": linear(end.attn.proj),
            f"blocks.{last}.mlp.fc2": linear(end.mlp.fc2)}


def timm_family(family, name, args, size=None, notes="", classes=0, **facts):
    """size: another one than that of the file, the model loaded again as its user would."""
    g = generator(family)
    args = {**SMALL, **args}
    model = randomise(timm.create_model(name, **args, num_classes=classes), g)
    of_timm.publish(family, model, **args)
    if size:
        overlay = dict(file=str(ROOT / family / "model.safetensors"), num_classes=classes)
        model = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay,
                                  num_classes=classes, **{**args, "img_size": size}).eval()
    size = size or args["img_size"]
    size = size if isinstance(size, tuple) else (size, size)
    model = model.double()
    facts = {"heads": args["num_heads"], "pooling": model.global_pool, "notes": notes,
             "library": of_timm.LIBRARY, "input_size": list(size), **facts,
             "activation": ACTIVATIONS[type(model.blocks[0].mlp.act).__name__]}
    write_truth(family, g, {"input": random_images(g, size)}, of_timm.runner(model),
                timm_layers(model), facts)


def timm_dinov3(family):
    timm_family(family, "vit_small_patch16_dinov3", dict(global_pool="token"), (20, 24),
                "rotary positions from -1 to 1, no table, four registers, no biases of queries, "
                "keys and values; the class token; stored at 16x16, run at 20x24")


def timm_dinov3_plus(family):
    timm_family(family, "vit_small_plus_patch16_dinov3_qkvb", {},
                notes="biases of queries and values, gated MLP (fc1_g, fc1_x); the mean of the "
                      "patches, as timm has it")


def timm_siglip(family):
    timm_family(family, "vit_base_patch16_siglip_224", {},
                notes="no class token; a learned query attends to the patches, then an MLP with "
                      "erf-GELU")


def timm_siglip_resized(family):
    timm_family(family, "vit_so400m_patch16_siglip_256", {}, 24,
                notes="stored grid 4x4, run at 6x6 with timm's resampling")


def timm_map_registers(family):
    timm_family(family, "vit_so150m_patch16_reg4_map_256", dict(reg_tokens=2, no_embed_class=True),
                notes="registers, which the query that pools does not attend to")


def timm_pe_core(family):
    timm_family(family, "vit_pe_core_base_patch16_224",
                dict(ref_feat_shape=(4, 4), attn_pool_num_heads=4), 20, classes=12,
                notes="norm_pre, a table of positions and rotary ones (columns first, from 1, on a "
                      "grid of 4), attention pooling with heads of its own over all tokens, a "
                      "projection; stored grid 4x4, run at 5x5")


def timm_pe_spatial(family):
    timm_family(family, "vit_pe_spatial_base_patch16_512", dict(ref_feat_shape=(4, 4)),
                notes="no norm after the blocks; the mean of the patches")


def timm_pe_lang(family):
    timm_family(family, "vit_pe_lang_large_patch14_448", dict(ref_feat_shape=(4, 4)), 24,
                notes="no norm after the blocks, scales of layers; the mean of the patches; stored "
                      "grid 4x4, run at 6x6")


def authors_dinov3_like(family, name, notes):
    """The authors' names and file; timm's own loader reads it, which checks the layout written here.

    The file has biases of keys, which a mask takes away, and what training alone uses.
    """
    g = generator(family)
    model = randomise(timm.create_model(name, **SMALL, global_pool="token", num_classes=0), g)
    width, heads = SMALL["embed_dim"], SMALL["num_heads"]
    renamed = {"reg_token": "storage_tokens", ".mlp.fc1_g.": ".mlp.w1.", ".mlp.fc1_x.": ".mlp.w2.",
               ".gamma_1": ".ls1.gamma", ".gamma_2": ".ls2.gamma"}
    gated = hasattr(model.blocks[0].mlp, "fc1_g")
    if gated:
        renamed[".mlp.fc2."] = ".mlp.w3."
    out = {}
    for key, value in model.state_dict().items():
        if key.endswith((".q_bias", ".v_bias", ".k_bias")):
            continue
        for old, new in renamed.items():
            key = key.replace(old, new)
        out[key] = value.clone()
    for i, block in enumerate(model.blocks):
        keys = torch.randn(width, generator=g)
        out[f"blocks.{i}.attn.qkv.bias"] = torch.cat([block.attn.q_bias, keys, block.attn.v_bias]).detach()
        out[f"blocks.{i}.attn.qkv.bias_mask"] = torch.cat([torch.ones(width), torch.zeros(width), torch.ones(width)])
    count = width // heads // 4
    out["rope_embed.periods"] = 100.0 ** (torch.arange(count) / count)
    out["mask_token"] = torch.randn(1, width, generator=g)
    out["local_cls_norm.weight"] = out["local_cls_norm.bias"] = torch.randn(width, generator=g)
    torch.save(out, folder_for(family) / "model.pth")
    read = timm.create_model(name, **SMALL, global_pool="token", num_classes=0).eval()
    missing, unknown = read.load_state_dict(checkpoint_filter_fn(dict(out), read), strict=False)
    assert not unknown and all("k_bias" in key for key in missing), (missing, unknown)
    size = (20, 24)
    overlay = dict(file=str(ROOT / family / "model.pth"), num_classes=0)
    model = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, num_classes=0,
                              **{**SMALL, "img_size": size, "global_pool": "token"}).eval().double()
    facts = {"heads": heads, "pooling": "token", "notes": notes, "library": of_timm.LIBRARY,
             "input_size": list(size), "activation": "silu" if gated else "gelu"}
    write_truth(family, g, {"input": random_images(g, size)}, of_timm.runner(model),
                timm_layers(model), facts)


def authors_dinov3(family):
    authors_dinov3_like(family, "vit_small_patch16_dinov3_qkvb", "DINOv3's published layout: storage_tokens, "
                        "masked biases of keys, periods; run at 20x24")


def authors_dinov3_plus(family):
    authors_dinov3_like(family, "vit_small_plus_patch16_dinov3_qkvb", "the same with a gated MLP: w1, w2, w3")


def timm_aimv2(family):
    timm_family(family, "aimv2_large_patch14_224", {},
                notes="RMS norms, one of the patches before positions are added; gated MLP, no "
                      "biases in the blocks; the mean of the patches")


def timm_rope(family):
    timm_family(family, "vit_small_patch16_rope_224", {}, notes="RoPE-ViT: columns first, theta "
                "100, no table of positions")


def timm_rope_ape(family):
    timm_family(family, "vit_small_patch16_rope_ape_224", {},
                notes="RoPE-ViT with a table of positions of the patches beside")


def timm_rope_gap(family):
    timm_family(family, "vit_medium_patch16_rope_reg1_gap_256", dict(ref_feat_shape=(4, 4)),
                notes="a register and no class token, EVA's rotary positions, no table, biases of "
                      "queries and values, mean and norm")


def timm_eva_giant(family):
    timm_family(family, "eva_giant_patch14_224", {},
                notes="EVA: biases of queries and values apart (q_bias, v_bias), no rotary "
                      "positions, mean and norm")


def hf_family(family, model, layers, size, notes, run, activation):
    g = generator(family)
    randomise(model, g)
    hf.publish(family, model)
    model.double()
    facts = {"heads": 2, "pooling": "of the model", "notes": notes, "library": hf.LIBRARY,
             "input_size": list(size), "activation": activation}
    write_truth(family, g, {"input": random_images(g, size)}, run, layers, facts)


def hf_dinov3_like(family, size, notes, **more):
    model = DINOv3ViTModel(DINOv3ViTConfig(**hf.BASE, intermediate_size=40, num_register_tokens=3,
                                           **more))
    gated = model.config.use_gated_mlp
    layers = hf.joint_layers(model, r"layer\.{}\.", ["mlp.gate_proj", "mlp.up_proj"] if gated else
                             "mlp.up_proj", "mlp.down_proj")

    def run(x):
        out = model(x)
        return out.pooler_output, out.last_hidden_state
    hf_family(family, model, layers, size, notes, run, model.config.hidden_act)


def hf_dinov3(family):
    hf_dinov3_like(family, (20, 12), "DINOv3ViTModel: k has no bias; config.json says 16x16, run "
                                     "at 20x12")


def hf_dinov3_plus(family):
    hf_dinov3_like(family, (16, 16), "gated MLP", use_gated_mlp=True, hidden_act="silu")


def siglip_layers(model):
    return hf.joint_layers(model, r"encoder\.layers\.{}\.", attention="self_attn", proj="out_proj")


TEXT = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            vocab_size=20, max_position_embeddings=7, bos_token_id=0, eos_token_id=1)


def pooled(vision, **more):
    def run(x):
        out = vision(x, **more)
        return out.pooler_output, out.last_hidden_state
    return run


def hf_siglip(family):
    vision = dict(hf.BASE, intermediate_size=40)
    model = SiglipModel(SiglipConfig(vision_config=vision, text_config=TEXT,
                                     attn_implementation="eager"))
    hf_family(family, model, siglip_layers(model.vision_model), (16, 16),
              "SiglipModel with its text tower; tanh-GELU", pooled(model.vision_model), "gelu_tanh")


def hf_siglip_vision(family):
    model = SiglipVisionModel(SiglipVisionConfig(**hf.BASE, intermediate_size=40,
                                                 hidden_act="gelu"))
    hf_family(family, model, siglip_layers(model), (24, 20),
              "SiglipVisionModel; stored grid 4x4, run at 6 rows x 5 columns: bicubic a=-0.75, no "
              "antialias", pooled(model, interpolate_pos_encoding=True), "gelu")


def aimv2_layers(model):
    return hf.joint_layers(model, r"encoder\.layers\.{}\.", ["ffn.gate_proj", "ffn.up_proj"],
                           "ffn.down_proj", proj="out_proj")


def hf_aimv2(family):
    vision = dict(hf.BASE, intermediate_size=40)
    model = Aimv2Model(Aimv2Config(vision_config=vision, text_config=TEXT, projection_dim=12,
                                   attn_implementation="eager"))

    def run(x):
        out = model.vision_model(x)
        return model.visual_projection(out.pooler_output), out.last_hidden_state
    hf_family(family, model, aimv2_layers(model.vision_model), (16, 16),
              "Aimv2Model: a query that is learned by itself attends to the patches, then a "
              "projection; text tower beside", run, "silu")


def hf_aimv2_vision(family):
    model = Aimv2VisionModel(Aimv2VisionConfig(**hf.BASE, intermediate_size=40, use_head=False,
                                               qkv_bias=True, mlp_bias=True))

    def run(x):
        tokens = model(x).last_hidden_state
        return tokens.mean(1), tokens
    hf_family(family, model, aimv2_layers(model), (16, 16),
              "Aimv2VisionModel without a head: the mean of the patches; with biases", run, "silu")


FAMILIES = {name: f for name, f in list(globals().items())
            if name.startswith(("timm_", "hf_", "authors_")) and not name.endswith(("_family", "_like", "_layers"))
            and callable(f)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
