# SPDX-License-Identifier: Apache-2.0
"""Tiny Hugging Face vision and audio models: ViT, DeiT, DINOv2 (with registers, giant), CLIP, AST.

Needs torch and transformers. Run: python make_backbone_hf.py [family ...]
"""
import os
import re
import sys

import torch

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import transformers  # noqa: E402
from transformers import (  # noqa: E402
    ASTConfig, ASTForAudioClassification, ASTModel, CLIPConfig, CLIPModel, CLIPVisionConfig,
    CLIPVisionModelWithProjection, DeiTConfig, DeiTModel, Dinov2Config, Dinov2Model, Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel, ViTConfig, ViTForImageClassification, ViTModel)

from make_backbone_common import (SAMPLES, folder_for, generator,  # noqa: E402
                                  random_images, random_mask, randomise, write_truth)

transformers.utils.logging.disable_progress_bar()
LIBRARY = f"transformers {transformers.__version__}, torch {torch.__version__}"
BASE = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=16,
            patch_size=4, attn_implementation="eager")


def pick(model, pattern):
    """The one linear layer whose module name ends with pattern."""
    found = [m for n, m in model.named_modules() if re.search(pattern + "$", n)]
    assert len(found) == 1, (pattern, len(found))
    return (found[0].weight, found[0].bias)


def layers_of(model, stem, q, k, v, proj, fc1, fc2, depth=2):
    last = depth - 1

    def parts(n, names):
        names = names if isinstance(names, (list, tuple)) else [names]
        picked = [pick(model, stem.format(n) + re.escape(name)) for name in names]
        return picked[0] if len(picked) == 1 else picked
    return {"blocks.0.attn.qkv": parts(0, [q, k, v]), "blocks.0.mlp.fc1": parts(0, fc1),
            f"blocks.{last}.attn.proj": parts(last, proj),
            f"blocks.{last}.mlp.fc2": parts(last, fc2)}


def joint_layers(model, stem, fc1="mlp.fc1", fc2="mlp.fc2", attention="attention", proj="o_proj"):
    a = attention + "."
    return layers_of(model, stem, a + "q_proj", a + "k_proj", a + "v_proj", a + proj, fc1, fc2)


def facts_of(c, size, notes, native=4, **more):
    facts = {"library": LIBRARY, "width": c.hidden_size, "depth": c.num_hidden_layers,
             "heads": c.num_attention_heads, "mlp_hidden": getattr(c, "intermediate_size", None),
             "patch": c.patch_size, "channels": 3, "native_grid": [native, native],
             "prefix_tokens": 1, "registers": 0, "pooling": "token 0",
             "eps": c.layer_norm_eps, "activation": c.hidden_act, "norm_pre": False,
             "layer_scale": False, "pos_embed_has_prefix": True, "input_size": list(size)}
    facts.update(more)
    facts["notes"] = notes
    return facts


def publish(family, model):
    folder = folder_for(family)
    model.save_pretrained(folder)
    return folder


def hf_vit(family):
    g = generator(family)
    c = ViTConfig(**BASE, intermediate_size=40)
    model = randomise(ViTModel(c), g)
    publish(family, model)
    model.double()

    def run(x):
        tokens = model(x).last_hidden_state
        return tokens[:, 0], tokens
    write_truth(family, g, {"input": random_images(g, 16)}, run,
                joint_layers(model, r"layers\.{}\."),
                facts_of(c, (16, 16), "ViTModel; the pooler in the file is not used; eps 1e-12 "
                                      "comes "
                                      "from config.json"))


def hf_vit_classifier(family):
    g = generator(family)
    c = ViTConfig(**BASE, intermediate_size=40, num_labels=5)
    model = randomise(ViTForImageClassification(c), g)
    publish(family, model)
    model.double()

    def run(x):
        tokens = model.vit(x, interpolate_pos_encoding=True).last_hidden_state
        return tokens[:, 0], tokens
    write_truth(family, g, {"input": random_images(g, (24, 20))}, run,
                joint_layers(model, r"layers\.{}\."),
                facts_of(c, (24, 20), "names with the prefix vit. and a classifier; stored grid "
                                      "4x4, "
                                      "run at 6 rows x 5 columns: bicubic a=-0.75 to the size, no "
                                      "antialias"))


def hf_deit_distilled(family):
    g = generator(family)
    c = DeiTConfig(**BASE, intermediate_size=40)
    model = randomise(DeiTModel(c), g)
    publish(family, model)
    model.double()

    def run(x):
        tokens = model(x).last_hidden_state
        return tokens[:, :2].mean(1), tokens
    write_truth(family, g, {"input": random_images(g, 16)}, run,
                joint_layers(model, r"layers\.{}\."),
                facts_of(c, (16, 16), "DeiTModel: two prefix tokens, cls then distillation; the "
                                      "embedding is the mean of the two, as in timm_deit_distilled",
                         prefix_tokens=2, pooling="mean of tokens 0 and 1"))


def dinov2_like(family, c, model_class, size, notes, native, **more):
    g = generator(family)
    model = randomise(model_class(c), g)
    publish(family, model)
    model.double()

    def run(x):
        tokens = model(x).last_hidden_state
        return tokens[:, 0], tokens
    gated = c.use_swiglu_ffn
    layers = joint_layers(model, r"encoder\.layer\.{}\.", ["mlp.gate_proj", "mlp.up_proj"] if gated
                          else "mlp.fc1", "mlp.down_proj" if gated else "mlp.fc2")
    hidden = layers["blocks.1.mlp.fc2"][0].shape[1]
    write_truth(family, g, {"input": random_images(g, size)}, run, layers,
                facts_of(c, size, notes, native, mlp_hidden=hidden, layer_scale=True, **more))


def hf_dinov2(family):
    dinov2_like(family, Dinov2Config(**BASE, mlp_ratio=2), Dinov2Model, (16, 16),
                "names of HF Dinov2Model at the native size", 4)


def hf_dinov2_masked(family):
    g = generator(family)
    c = Dinov2Config(**BASE, mlp_ratio=2)
    model = randomise(Dinov2Model(c), g)
    publish(family, model)
    model.double()

    def run(x, masked):
        tokens = model(x, bool_masked_pos=masked.bool()).last_hidden_state
        return tokens[:, 0], tokens
    write_truth(family, g, {"input": random_images(g, 16), "masked": random_mask(g, 16)}, run,
                joint_layers(model, r"encoder\.layer\.{}\."),
                facts_of(c, (16, 16), "bool_masked_pos = masked.npy: embeddings.mask_token plus the "
                                      "position; the loss sees the tokens too (token_seed.npy)",
                         mlp_hidden=32, layer_scale=True), token_seed=True)


def hf_dinov2_resized(family):
    dinov2_like(family, Dinov2Config(**{**BASE, "image_size": 28}, mlp_ratio=2), Dinov2Model,
                (16, 20), "stored grid 7x7, run at 4 rows x 5 columns: HF uses bicubic a=-0.75 to "
                          "the "
                          "size, no antialias and no +0.1", 7)


def hf_dinov2_registers(family):
    c = Dinov2WithRegistersConfig(**{**BASE, "image_size": 28}, mlp_ratio=2, num_register_tokens=3)
    dinov2_like(family, c, Dinov2WithRegistersModel, (16, 16),
                "embeddings.register_tokens; stored grid 7x7, run at 4x4: bicubic with antialias "
                "to "
                "the size; tokens are cls, registers, patches", 7, registers=3, prefix_tokens=4)


def hf_dinov2_giant(family):
    c = Dinov2Config(**BASE, mlp_ratio=2, use_swiglu_ffn=True)
    dinov2_like(family, c, Dinov2Model, (16, 16),
                "SwiGLU: mlp.weights_in (gate | value) and mlp.weights_out", 4,
                activation="silu-gated (fc1 = weights_in = gate | value)")


def clip_truth(family, g, model, c, size, notes, resize=False):
    model.double()
    vision = model.vision_model

    def run(x):
        out = vision(x, interpolate_pos_encoding=resize)
        tokens = vision.post_layernorm(out.last_hidden_state)
        return model.visual_projection(out.pooler_output), tokens
    write_truth(family, g, {"input": random_images(g, size)}, run,
                joint_layers(model, r"vision_model\.encoder\.layers\.{}\.", attention="self_attn",
                             proj="out_proj"),
                facts_of(c, size, notes, norm_pre=True))


def hf_clip_vision(family):
    g = generator(family)
    c = CLIPVisionConfig(**BASE, intermediate_size=40, projection_dim=20)
    model = randomise(CLIPVisionModelWithProjection(c), g)
    publish(family, model)
    clip_truth(family, g, model, c, (16, 16),
               "CLIPVisionModelWithProjection; hidden_act quick_gelu in config.json; tokens.npy is "
               "after post_layernorm, before visual_projection")


def hf_clip(family):
    g = generator(family)
    vision = dict(BASE, intermediate_size=40, hidden_act="gelu")
    text = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                vocab_size=20, max_position_embeddings=7, hidden_act="gelu")
    c = CLIPConfig(text_config=text, vision_config=vision, projection_dim=20,
                   attn_implementation="eager")
    model = randomise(CLIPModel(c), g)
    publish(family, model)
    clip_truth(family, g, model, c.vision_config, (24, 20),
               "CLIPModel with its text tower in the file; config.json holds vision_config with "
               "hidden_act gelu; stored grid 4x4, run at 6 rows x 5 columns: bicubic a=-0.75 to "
               "the "
               "size, no antialias", resize=True)


def ast(family, model_class, notes, inner, **more):
    g = generator(family)
    args = {k: v for k, v in BASE.items() if k != "image_size"}
    c = ASTConfig(**args, intermediate_size=40, max_length=21, num_mel_bins=16,
                  frequency_stride=3, time_stride=3, **more)
    model = randomise(model_class(c), g)
    publish(family, model)
    model.double()
    bare = getattr(model, inner) if inner else model
    x = torch.round(torch.randn((SAMPLES, 21, 16), generator=g) * 256) / 256

    def run(values):
        out = bare(values)
        return out.pooler_output, out.last_hidden_state
    facts = facts_of(c, (21, 16), notes, channels=1, native_grid=[5, 6], prefix_tokens=2,
                     stride=[3, 3], pooling="mean of tokens 0 and 1")
    write_truth(family, g, {"input": x}, run, joint_layers(model, r"layers\.{}\."), facts)


def hf_ast(family):
    ast(family, ASTModel, "input is [n, frames, mel bins]; patches 4x4 with stride 3 over mel x "
                          "time "
                          "(5 x 6 patches, mel-major); prefix tokens cls, distillation", None)


def hf_ast_classifier(family):
    ast(family, ASTForAudioClassification,
        "prefix audio_spectrogram_transformer. and a classifier (layernorm and dense) that is not "
        "part of the embedding", "audio_spectrogram_transformer", num_labels=5)


FAMILIES = {f.__name__: f for f in (hf_vit, hf_vit_classifier, hf_deit_distilled, hf_dinov2,
                                    hf_dinov2_masked, hf_dinov2_resized, hf_dinov2_registers,
                                    hf_dinov2_giant, hf_clip_vision, hf_clip, hf_ast, hf_ast_classifier)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
