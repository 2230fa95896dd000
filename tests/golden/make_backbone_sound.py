# SPDX-License-Identifier: Apache-2.0
"""Encoders of sounds: Whisper by transformers; AST and SSAST in their authors' layouts by timm; KWT
by torch.nn.TransformerEncoderLayer. Run: python make_backbone_sound.py [family ...]
"""
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import WhisperConfig, WhisperForConditionalGeneration
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from make_backbone_common import SAMPLES, folder_for, generator, randomise, stand_in, write_truth
from make_backbone_dino import native_state
from make_backbone_hf import LIBRARY as TRANSFORMERS
from make_backbone_hf import joint_layers, publish
from make_backbone_timm import LESS, runner, vit_facts, vit_layers

stand_in("torchvision")
import timm  # noqa: E402


def random_bank(g, frames, bins):
    return torch.round(torch.randn((SAMPLES, frames, bins), generator=g) * 256) / 256


# Whisper -------------------------------------------------------------------------------------

POSITIONS, BINS = 20, 8
SOUND = torch.tensor([13, 2 * POSITIONS, 1], dtype=torch.int32)


def whisper_config(positions=POSITIONS):
    return WhisperConfig(
        vocab_size=20, num_mel_bins=BINS, d_model=16, encoder_layers=2, encoder_attention_heads=2,
        encoder_ffn_dim=40, decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=16,
        max_source_positions=positions, max_target_positions=7, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, attn_implementation="eager")


def whisper_truth(family, g, encoder, notes, frames=2 * POSITIONS, sound=SOUND):
    encoder.double()

    def run(x, frames):
        tokens = encoder(x.transpose(1, 2)).last_hidden_state
        # The length rule of Whisper's feature masks in transformers.
        lengths = encoder._get_feat_extract_output_lengths(frames)
        return torch.stack([t[:n].mean(0) for t, n in zip(tokens, lengths)]), tokens
    c = encoder.config
    facts = {"library": TRANSFORMERS, "width": c.d_model, "depth": c.encoder_layers,
             "heads": c.encoder_attention_heads, "mlp_hidden": c.encoder_ffn_dim, "channels": 1,
             "prefix_tokens": 0, "pooling": "mean of the tokens over frames that hold sound",
             "eps": 1e-5, "activation": c.activation_function, "input_size": [frames, BINS],
             "notes": notes}
    layers = joint_layers(encoder, r"layers\.{}\.", "fc1", "fc2", "self_attn", "out_proj")
    write_truth(family, g, {"input": random_bank(g, frames, BINS), "frames": sound}, run, layers,
                facts)


def whisper(family):
    g = generator(family)
    model = randomise(WhisperForConditionalGeneration(whisper_config()), g)
    publish(family, model)
    whisper_truth(family, g, model.model.encoder,
                  "WhisperForConditionalGeneration: model.encoder. beside a decoder, which is left "
                  "aside; frames.npy: how many frames hold sound; k has no bias")


def whisper_encoder(family):
    g = generator(family)
    encoder = randomise(WhisperEncoder(whisper_config()), g)
    folder_for(family)
    encoder.save_pretrained(folder_for(family))
    whisper_truth(family, g, encoder, "WhisperEncoder alone: names without a prefix")


def whisper_shorter(family):
    g = generator(family)
    model = randomise(WhisperForConditionalGeneration(whisper_config()), g)
    publish(family, model)
    state = model.model.encoder.state_dict()
    positions = 14
    state["embed_positions.weight"] = state["embed_positions.weight"][:positions]
    encoder = WhisperEncoder(whisper_config(positions)).eval()
    encoder.load_state_dict(state)
    whisper_truth(family, g, encoder,
                  "a file of 20 positions, run at 28 frames: the first 14 of them",
                  frames=2 * positions, sound=torch.tensor([13, 28, 2], dtype=torch.int32))


# AST and SSAST -------------------------------------------------------------------------------

def steps(length, patch, stride):
    return (length - patch) // stride + 1


def audio_vit(family, g, patch, grid):
    """A distilled DeiT over one channel whose table is that of the stored grid."""
    model = timm.create_model("deit_tiny_distilled_patch16_224", in_chans=1, num_classes=0,
                              **{**LESS, "patch_size": patch,
                                 "img_size": (grid[0] * patch[0], grid[1] * patch[1])})
    return randomise(model, g)


def audio_truth(family, g, model, stored, frames, stride, notes, **more):
    patch = model.patch_embed.patch_size
    f, t = steps(128, patch[0], stride[0]), steps(frames, patch[1], stride[1])
    width = model.embed_dim
    table = model.pos_embed.detach()
    grid = table[:, 2:].transpose(1, 2).reshape(1, width, *stored)
    if t < stored[1]:  # the authors' rule: cut to the centre, or bilinear
        start = stored[1] // 2 - t // 2
        grid = grid[..., start:start + t]
    grid = F.interpolate(grid, size=(f, t), mode="bilinear")
    model.pos_embed = torch.nn.Parameter(
        torch.cat([table[:, :2], grid.flatten(2).transpose(1, 2)], 1))
    model.patch_embed.proj.stride = stride
    model.patch_embed.img_size = (128, frames)
    model.double()
    whole = runner(model)
    write_truth(family, g, {"input": random_bank(g, frames, 128)},
                lambda v: whole(v.transpose(1, 2)[:, None]), vit_layers(model),
                vit_facts(model, channels=1, native_grid=list(stored), stride=list(stride),
                          input_size=[frames, 128], pooling="mean of tokens 0 and 1", notes=notes,
                          **more))


def ast(family, stored, frames, notes, **more):
    g = generator(family)
    model = audio_vit(family, g, (16, 16), stored)
    full = {f"module.v.{k}": v for k, v in native_state(model).items()}
    for name, shape in (("v.head.weight", (5, 16)), ("v.head.bias", (5,)),
                        ("v.head_dist.weight", (5, 16)), ("v.head_dist.bias", (5,)),
                        ("mlp_head.0.weight", (16,)), ("mlp_head.0.bias", (16,)),
                        ("mlp_head.1.weight", (7, 16)), ("mlp_head.1.bias", (7,))):
        full[f"module.{name}"] = torch.randn(shape, generator=g)
    torch.save(full, folder_for(family) / "model.pth")
    audio_truth(family, g, model, stored, frames, (10, 10), notes, **more)


def ast_original(family):
    ast(family, (12, 12), 46, "a table of 12x12 patches (128 frames, stride 10), run at 46 frames: "
                              "its central 4 columns; the head after two norms is not used")


def ast_original_own(family):
    ast(family, (12, 3), 36, "a table of 12x3 patches, which the stated size 128x36 tells",
        stated_size="128x36")


def ssast_frame(family):
    g = generator(family)
    model = audio_vit(family, g, (128, 2), (1, 9))
    full = {f"module.v.{k}": v for k, v in native_state(model).items()}
    full["module.mask_embed"] = torch.randn((1, 1, 16), generator=g)
    full["module.p_input_fdim"] = torch.tensor(128)
    full["module.p_input_tdim"] = torch.tensor(18)
    torch.save(full, folder_for(family) / "model.pth")
    audio_truth(family, g, model, (1, 9), 12, (128, 1),
                "SSAST by frames: patches of 128x2, pre-trained side by side (1x9), run with stride "
                "1 on 12 frames: longer than its table, so bilinear to 1x11")


# KWT -----------------------------------------------------------------------------------------

class KeywordTransformer(torch.nn.Module):
    """Frames of MFCC as tokens behind a class token; norms after the layers, as torch has them."""

    def __init__(self, bins, frames, width, heads, hidden, depth):
        super().__init__()
        self.embed = torch.nn.Linear(bins, width)
        self.cls_token = torch.nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = torch.nn.Parameter(torch.zeros(1, frames + 1, width))
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(width, heads, hidden, dropout=0, activation="gelu",
                                             layer_norm_eps=1e-6, batch_first=True)
            for _ in range(depth))

    def forward(self, x):
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), self.embed(x)], 1) + self.pos_embed
        for layer in self.layers:
            x = layer(x)
        return x


def kwt(family):
    g = generator(family)
    bins, frames, width, heads, hidden = 10, 14, 16, 2, 40
    model = randomise(KeywordTransformer(bins, frames, width, heads, hidden, 2), g)
    state = {"patch_embed.proj.weight": model.embed.weight,
             "patch_embed.proj.bias": model.embed.bias,
             "cls_token": model.cls_token, "pos_embed": model.pos_embed,
             "head.weight": torch.randn((5, width), generator=g),
             "head.bias": torch.randn((5,), generator=g)}
    for name, shape in (("window", (480,)), ("dft_a", (2, 480)), ("dft_b", (2, 480)),
                        ("mel", (80, 2)), ("dct", (bins, 80)), ("div", (bins,))):
        state[f"frontend.{name}"] = torch.randn(shape, generator=g)
    layers = {}
    for n, layer in enumerate(model.layers):
        b, a = f"blocks.{n}.", layer.self_attn
        with torch.no_grad():
            a.in_proj_bias.zero_()  # KWT has none
        state[b + "attn.qkv.weight"] = a.in_proj_weight
        for ours, m in (("attn.proj", a.out_proj), ("norm1", layer.norm1), ("norm2", layer.norm2),
                        ("mlp.fc1", layer.linear1), ("mlp.fc2", layer.linear2)):
            state[f"{b}{ours}.weight"], state[f"{b}{ours}.bias"] = m.weight, m.bias
    first, last = model.layers
    layers = {"blocks.0.attn.qkv": (first.self_attn.in_proj_weight, None),
              "blocks.0.mlp.fc1": (first.linear1.weight, first.linear1.bias),
              "blocks.1.attn.proj": (last.self_attn.out_proj.weight, last.self_attn.out_proj.bias),
              "blocks.1.mlp.fc2": (last.linear2.weight, last.linear2.bias)}
    save_file({k: v.detach().contiguous() for k, v in state.items()},
              folder_for(family) / "model.safetensors")
    model.double().train()  # in evaluation torch takes a short way that has no gradient

    def run(x):
        tokens = model(x)
        return tokens[:, 0], tokens
    write_truth(family, g, {"input": random_bank(g, frames, bins)}, run, layers,
                {"library": f"torch {torch.__version__}", "width": width, "depth": 2,
                 "heads": heads, "mlp_hidden": hidden, "channels": 1, "prefix_tokens": 1,
                 "pooling": "token 0", "eps": 1e-6, "activation": "gelu",
                 "input_size": [frames, bins],
                 "notes": "frames of MFCC as tokens, norms after the layers, qkv without bias; the "
                          "head and the filters of the front end are not used"})


FAMILIES = {f.__name__: f for f in (whisper, whisper_encoder, whisper_shorter, ast_original,
                                    ast_original_own, ssast_frame, kwt)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
