# SPDX-License-Identifier: Apache-2.0
"""A tiny CLIP as OpenAI released its own: a traced TorchScript archive, with what it was trained
for (input_resolution, context_length, vocab_size) as tensors beside the weights. Needs torch and
open_clip_torch, as make_backbone_clip.py does.

Run: python make_backbone_clip_torchscript.py
"""
import io
import zipfile

import torch

from make_backbone_clip import finish, randomised
from make_backbone_common import folder_for, generator

FAMILY = "clip_torchscript"


def save_script(script, path):
    """torch.jit.save without its debug entries, which hold paths of the machine that wrote them."""
    buffer = io.BytesIO()
    torch.jit.save(script, buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
        for entry in source.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                target.writestr(entry, source.read(entry), zipfile.ZIP_DEFLATED)


def main():
    g = generator(FAMILY)
    model = randomised(True, g)
    for name, value in (("input_resolution", 16), ("context_length", 7), ("vocab_size", 20)):
        vars(model).pop(name, None)  # open_clip has some of them as plain numbers
        model.register_buffer(name, torch.tensor(value))
    with torch.no_grad():
        script = torch.jit.trace(model, (torch.zeros(1, 3, 16, 16), torch.ones(1, 7).long()))
        for name, value in script.named_parameters():  # f16 where OpenAI's are
            if value.dim() >= 2 and "embedding" not in name or "attn" in name or "mlp" in name:
                value.data = value.data.half()
    stored = script.state_dict()
    model.load_state_dict({name: stored[name] for name in model.state_dict()})
    save_script(script, folder_for(FAMILY) / "model.pt")
    finish(FAMILY, g, model, 16, "quick_gelu",
           "OpenAI's released format: a TorchScript archive; input_resolution, context_length and "
           "vocab_size are tensors in it; weights f16 as in openai_clip; QuickGELU")


if __name__ == "__main__":
    main()
