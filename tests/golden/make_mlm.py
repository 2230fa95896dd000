#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/objective/mlm_*: losses of hidden words and their gradients at two layers, by
transformers' own heads and torch autograd in float64. Needs torch and transformers; run from anywhere.

The models are those of tests/golden/backbone that have such a head (make_backbone_text.py), and one whose
table of words is not that of its input, which is written here.
"""
import json
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy

from make_backbone_common import ROOT, generator, randomise
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM

OUT = ROOT.parent / "objective"
UNTIED = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, vocab_size=20,
              max_position_embeddings=16, hidden_act="relu", tie_word_embeddings=False)
MASK, START, END = 4, 2, 3


def untied():
    folder = OUT / "mlm_untied"
    model = randomise(BertForMaskedLM(BertConfig(**UNTIED)), generator("mlm_untied"))
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


def layers(model):
    blocks = model.base_model.encoder.layer
    return {"blocks.0.mlp.fc1": blocks[0].intermediate.dense, "blocks.1.attn.proj": blocks[1].attention.output.dense}


def truth(name, folder):
    model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").double().eval()
    g, samples = generator("mlm/" + name), []
    for length, hidden in ((9, (2, 5, 6)), (4, (1,))):
        words = torch.randint(5, model.config.vocab_size, (length,), generator=g)
        words[0], words[-1] = START, END
        shown, target = words.clone(), torch.full((length,), -1)
        for i, at in enumerate(hidden):  # hidden by the mask, by another word, and left as it is
            target[at] = words[at]
            shown[at] = (MASK, 7, words[at])[i]
        logits = model(input_ids=shown[None], attention_mask=torch.ones(1, length)).logits[0]
        loss = cross_entropy(logits, target, ignore_index=-1)
        parts = layers(model)
        gradients = torch.autograd.grad(loss, [p for part in parts.values() for p in (part.weight, part.bias)])
        joined = [torch.cat([gradients[2 * i], gradients[2 * i + 1][:, None]], 1) for i in range(len(parts))]
        samples.append({"ids": shown.tolist(), "hidden_words": target.tolist(), "loss": loss.item(),
                        "gradients": {n: [float(f"{x:.7g}") for x in m.flatten().tolist()] for n, m in zip(parts, joined)}})
    (OUT / f"mlm_{name}.json").write_text(json.dumps(samples) + "\n")
    print(name, [s["loss"] for s in samples])


MODELS = {"bert": lambda: ROOT / "bert_mean", "roberta": lambda: ROOT / "roberta", "untied": untied}

# The heads alone, of every family: what stands in a file beside its encoder, and what it makes of rows.
TINY = dict(hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=21)


def distilbert(model, x):
    return model.vocab_projector(model.vocab_layer_norm(model.activation(model.vocab_transform(x))))


HEADS = {
    "bert": (transformers.BertForMaskedLM, transformers.BertConfig(**TINY, hidden_act="relu", layer_norm_eps=1e-3),
             lambda m, x: m.cls(x)),
    "roberta": (transformers.RobertaForMaskedLM, transformers.RobertaConfig(**TINY, hidden_act="relu"), lambda m, x: m.lm_head(x)),
    "mpnet": (transformers.MPNetForMaskedLM, transformers.MPNetConfig(**TINY, hidden_act="relu"), lambda m, x: m.lm_head(x)),
    "distilbert": (transformers.DistilBertForMaskedLM,
                   transformers.DistilBertConfig(dim=12, n_layers=1, n_heads=2, hidden_dim=16, vocab_size=21, activation="relu"),
                   distilbert),
    "albert": (transformers.AlbertForMaskedLM, transformers.AlbertConfig(**TINY, embedding_size=6, hidden_act="gelu_new"),
               lambda m, x: m.predictions(x)),
    "electra": (transformers.ElectraForMaskedLM, transformers.ElectraConfig(**TINY, embedding_size=12, hidden_act="relu"),
                lambda m, x: m.generator_lm_head(m.generator_predictions(x))),
    "modernbert": (transformers.ModernBertForMaskedLM,
                   transformers.ModernBertConfig(**TINY, norm_eps=1e-3, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1,
                                                 sep_token_id=2),
                   lambda m, x: m.decoder(m.head(x))),
}


def head(name):
    kind, config, run = HEADS[name]
    g = generator("mlm_head/" + name)
    model = randomise(kind(config), g)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tensors = load_file(f"{folder}/model.safetensors")
    inside = ("layer.", "layers.", "position", "token_type", "LayerNorm", "embeddings.norm", "final_norm", "hidden_mapping", "pooler",
              "relative")
    base = model.base_model_prefix + "."
    kept = {n: t for n, t in tensors.items() if not (n.startswith(base) and any(part in n for part in inside))}
    save_file(kept, OUT / f"mlm_head_{name}.safetensors")
    model = model.double()
    x = torch.randn((3, 12), generator=g).double().requires_grad_()
    logits = run(model, x)
    d_logits = torch.randn(logits.shape, generator=g).double()
    d_x = torch.autograd.grad((logits * d_logits).sum(), x)[0]
    rows = {"prefix": base, "tokens": x, "logits": logits, "d_logits": d_logits, "d_tokens": d_x}
    (OUT / f"mlm_head_{name}.json").write_text(json.dumps(
        {n: v if isinstance(v, str) else [float(f"{f:.8g}") for f in v.flatten().tolist()] for n, v in rows.items()}) + "\n")
    print(name, sorted(kept))


if __name__ == "__main__":
    for chosen in sys.argv[1:] or [*MODELS, *(f"head_{n}" for n in HEADS)]:
        if chosen.startswith("head_"):
            head(chosen[len("head_"):])
        else:
            truth(chosen, MODELS[chosen]())
