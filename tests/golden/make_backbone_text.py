# SPDX-License-Identifier: Apache-2.0
"""Tiny text encoders with padded sentences. Needs torch and transformers.

Run: python make_backbone_text.py [family ...]
"""
import json
import re
import sys

import torch

from make_backbone_hf import LIBRARY, publish
from make_backbone_common import ROOT, SAMPLES, folder_for, generator, randomise, write_truth
from transformers import (AlbertConfig, AlbertForMaskedLM, AlbertModel, BertConfig, BertForMaskedLM,
                          BertForPreTraining, BertModel, DistilBertConfig, DistilBertForMaskedLM,
                          ModernBertConfig, ModernBertForMaskedLM, ModernBertModel, MPNetConfig,
                          MPNetForMaskedLM, MPNetModel, RobertaConfig, RobertaForMaskedLM, T5Config,
                          T5EncoderModel, T5ForConditionalGeneration)

BERT = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40,
            vocab_size=40, max_position_embeddings=16, attn_implementation="eager")
T5 = dict(d_model=16, d_kv=8, num_layers=2, num_decoder_layers=1, num_heads=2, d_ff=40,
          vocab_size=40, relative_attention_num_buckets=32, relative_attention_max_distance=128,
          attn_implementation="eager")


def sentences(g, length, lengths, padding=0):
    ids = torch.randint(3, 40, (SAMPLES, length), generator=g)
    mask = (torch.arange(length)[None] < torch.tensor(lengths)[:, None]).long()
    return ids * mask + padding * (1 - mask), mask


def bert_truth(family, g, model, pooling, notes):
    model = model.double()
    ids, mask = sentences(g, 9, [9, 6, 4], model.config.pad_token_id)

    def run(x, mask):
        tokens = model(input_ids=x, attention_mask=mask).last_hidden_state
        if pooling == "token 0":
            return tokens[:, 0], tokens
        m = mask[..., None].double()
        return (tokens * m).sum(1) / m.sum(1), tokens
    c = model.config
    facts = {"library": LIBRARY, "width": 16, "depth": 2, "heads": 2, "mlp_hidden": 40,
             "prefix_tokens": 0, "pooling": pooling, "eps": c.layer_norm_eps,
             "activation": c.hidden_act, "post_norm": True, "vocabulary": 40, "positions": 16,
             "input_size": [9], "notes": notes}
    write_truth(family, g, {"input": ids, "mask": mask}, run, bert_layers(model), facts)


def bert_layers(model):
    first, last = model.encoder.layer[0], model.encoder.layer[1]
    one = first.attention.self

    def linear(m):
        return (m.weight, m.bias)
    return {"blocks.0.attn.qkv": [linear(one.query), linear(one.key), linear(one.value)],
            "blocks.0.mlp.fc1": linear(first.intermediate.dense),
            "blocks.1.attn.proj": linear(last.attention.output.dense),
            "blocks.1.mlp.fc2": linear(last.output.dense)}


def bert(family):
    g = generator(family)
    model = randomise(BertModel(BertConfig(**BERT)), g)
    publish(family, model)
    bert_truth(family, g, model, "token 0", "BertModel; mask.npy is 1 for real tokens; the pooler "
                                            "in "
                                            "the file is not used")


def bert_mean(family):
    g = generator(family)
    model = randomise(BertForMaskedLM(BertConfig(**BERT)), g)
    publish(family, model)
    bert_truth(family, g, model.bert, "mean of real tokens",
               "BertForMaskedLM: prefix bert., cls.predictions.* beside; mean over the mask")


def bert_legacy(family):
    g = generator(family)
    model = randomise(BertForPreTraining(BertConfig(**BERT)), g)
    folder = folder_for(family)
    state = {}
    for name, value in model.state_dict().items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        state[name.replace("LayerNorm.bias", "LayerNorm.beta")] = value.clone()
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    config = json.loads(model.config.to_json_string(use_diff=False))
    keep = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
            "vocab_size", "max_position_embeddings", "hidden_act", "layer_norm_eps", "model_type",
            "type_vocab_size", "pad_token_id")
    config = {"architectures": ["BertForMaskedLM"], **{k: config[k] for k in keep}}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    bert_truth(family, g, model.bert, "token 0",
               "as the first published bert-base files: legacy (not zip) pickle, prefix bert., "
               "LayerNorm.gamma / LayerNorm.beta, cls.* heads beside")


def roberta(family):
    g = generator(family)
    model = randomise(RobertaForMaskedLM(RobertaConfig(**BERT, type_vocab_size=1)), g)
    publish(family, model)
    bert_truth(family, g, model.roberta, "token 0",
               "RobertaForMaskedLM: prefix roberta., lm_head.* beside; padding has the id 1, so "
               "positions start at 2 and 14 of the 16 are usable")


def t5_truth(family, g, model, fc1, notes, length=20, lengths=(20, 13, 5)):
    model = model.double()
    ids, mask = sentences(g, length, list(lengths))

    def run(x, mask):
        tokens = model(input_ids=x, attention_mask=mask).last_hidden_state
        return tokens[:, 0], tokens
    blocks = model.encoder.block

    def linear(m):
        assert m.bias is None
        return (m.weight, None)
    one, two = blocks[0].layer[0].SelfAttention, blocks[1].layer[0].SelfAttention
    ff = blocks[0].layer[1].DenseReluDense
    layers = {"blocks.0.attn.qkv": [linear(one.q), linear(one.k), linear(one.v)],
              "blocks.0.mlp.fc1": [linear(getattr(ff, name)) for name in fc1],
              "blocks.1.attn.proj": linear(two.o),
              "blocks.1.mlp.fc2": linear(blocks[1].layer[1].DenseReluDense.wo)}
    c = model.config
    facts = {"library": LIBRARY, "width": c.d_model, "depth": 2, "heads": c.num_heads,
             "head_dim": c.d_kv, "mlp_hidden": c.d_ff, "prefix_tokens": 0, "pooling": "token 0",
             "eps": c.layer_norm_epsilon, "activation": c.dense_act_fn, "gated": c.is_gated_act,
             "rms_norm": True, "relative_buckets": c.relative_attention_num_buckets,
             "relative_max_distance": c.relative_attention_max_distance, "vocabulary": 40,
             "input_size": [length], "notes": notes}
    write_truth(family, g, {"input": ids, "mask": mask}, run, layers, facts)


def t5(family):
    g = generator(family)
    whole = randomise(T5ForConditionalGeneration(T5Config(**T5)), g, gain=0.9)
    publish(family, whole)
    (ROOT / family / "generation_config.json").unlink()
    model = T5EncoderModel.from_pretrained(ROOT / family, attn_implementation="eager").eval()
    t5_truth(family, g, model, ["wi"],
             "file of T5ForConditionalGeneration (decoder beside); no biases, relu, no 1/sqrt(d) "
             "scale; relative bias of block 0 in every block")


def t5_encoder(family):
    g = generator(family)
    model = randomise(T5EncoderModel(T5Config(**{**T5, "d_kv": 6})), g, gain=0.9)
    publish(family, model)
    t5_truth(family, g, model, ["wi"], "file of T5EncoderModel; heads*head_dim = 12, not the width",
             45, (45, 31, 7))


def t5_v1_1(family):
    g = generator(family)
    model = randomise(T5EncoderModel(T5Config(**T5, feed_forward_proj="gated-gelu")), g, gain=0.9)
    publish(family, model)
    t5_truth(family, g, model, ["wi_0", "wi_1"],
             "T5 v1.1: gelu_new(wi_0 x) * (wi_1 x) with the tanh form of GELU; grad fc1 = wi_0 | "
             "wi_1")


KIN = dict(vocab_size=40, max_position_embeddings=16, attn_implementation="eager")
SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40)


def kin_truth(family, g, model, layers, notes, length=9, lengths=(9, 6, 4), pooling="token 0",
              alone=False, **more):
    """Truth of an encoder whose config and attributes have their own names; facts come in `more`.

    alone: without the padding, of which eager windows that hold nothing else make NaN.
    """
    model = model.double()
    ids, mask = sentences(g, length, list(lengths), model.config.pad_token_id)

    def last_state(x, mask):
        if not alone:
            return model(input_ids=x, attention_mask=mask).last_hidden_state
        tokens = [model(input_ids=one[None, :n]).last_hidden_state[0]
                  for one, n in zip(x, mask.sum(1).tolist())]
        return torch.stack([torch.nn.functional.pad(t, (0, 0, 0, length - len(t))) for t in tokens])

    def run(x, mask):
        tokens = last_state(x, mask)
        m = mask[..., None].double()
        if pooling == "token 0":
            return tokens[:, 0], tokens
        if pooling == "max_all":
            return tokens.masked_fill(m == 0, float("-inf")).max(1).values, tokens
        power = 0.5 if pooling == "mean_sqrt" else 1
        return (tokens * m).sum(1) / m.sum(1) ** power, tokens
    facts = {"library": LIBRARY, "width": 16, "depth": 2, "heads": 2, "mlp_hidden": 40,
             "prefix_tokens": 0, "pooling": pooling, "vocabulary": 40, "input_size": [length],
             **more, "notes": notes}
    write_truth(family, g, {"input": ids, "mask": mask}, run, layers, facts)


def linear(m):
    return (m.weight, m.bias)


def distilbert(family):
    g = generator(family)
    config = DistilBertConfig(dim=16, n_layers=2, n_heads=2, hidden_dim=40, **KIN)
    whole = randomise(DistilBertForMaskedLM(config), g)
    publish(family, whole)
    model = whole.distilbert
    first, last = model.transformer.layer
    one = first.attention
    kin_truth(family, g, model,
              {"blocks.0.attn.qkv": [linear(one.q_lin), linear(one.k_lin), linear(one.v_lin)],
               "blocks.0.mlp.fc1": linear(first.ffn.lin1),
               "blocks.1.attn.proj": linear(last.attention.out_lin),
               "blocks.1.mlp.fc2": linear(last.ffn.lin2)},
              "DistilBertForMaskedLM: prefix distilbert., vocab_* beside; no token types",
              eps=1e-12, activation="gelu", post_norm=True, positions=16)


def mpnet(family, pooling="token 0"):
    g = generator(family)
    config = MPNetConfig(**SIZES, **{**KIN, "max_position_embeddings": 24})
    whole = randomise(MPNetForMaskedLM(config) if pooling == "token 0" else MPNetModel(config), g)
    publish(family, whole)
    model = whole.mpnet if pooling == "token 0" else whole
    first, last = model.encoder.layer
    one = first.attention.attn
    kin_truth(family, g, model,
              {"blocks.0.attn.qkv": [linear(one.q), linear(one.k), linear(one.v)],
               "blocks.0.mlp.fc1": linear(first.intermediate.dense),
               "blocks.1.attn.proj": linear(last.attention.attn.o),
               "blocks.1.mlp.fc2": linear(last.output.dense)},
              "relative bias of 32 buckets beside learned positions that start at 2; "
              "attention is scaled", 20, (20, 13, 5), pooling, eps=1e-12, activation="gelu",
              post_norm=True, positions=24, relative_buckets=32, relative_max_distance=128)


def mpnet_max(family):
    mpnet(family, "max_all")


def albert(family, groups=1, pooling="token 0"):
    """Blocks share weights; the truth has copies, so that each block's gradient is its own."""
    g = generator(family)
    sizes = {**SIZES, "num_hidden_layers": 4, "embedding_size": 12}
    kind = AlbertForMaskedLM if pooling == "token 0" else AlbertModel
    whole = randomise(kind(AlbertConfig(**sizes, **KIN, num_hidden_groups=groups)), g)
    publish(family, whole)
    shared = whole.albert if pooling == "token 0" else whole
    model = AlbertModel(AlbertConfig(**sizes, **KIN, num_hidden_groups=4)).eval()
    state = {}
    for name, value in shared.state_dict().items():
        found = re.match(r"encoder\.albert_layer_groups\.(\d+)(.*)", name)
        if not found:
            state[name] = value
            continue
        for block in range(4):
            if block * groups // 4 == int(found[1]):
                state[f"encoder.albert_layer_groups.{block}{found[2]}"] = value
    model.load_state_dict(state, strict=pooling != "token 0")  # a masked LM has no pooler
    blocks = [group.albert_layers[0] for group in model.encoder.albert_layer_groups]
    one = blocks[1].attention
    kin_truth(family, g, model,
              {"blocks.1.attn.qkv": [linear(one.query), linear(one.key), linear(one.value)],
               "blocks.0.mlp.fc1": linear(blocks[0].ffn),
               "blocks.3.attn.proj": linear(blocks[3].attention.dense),
               "blocks.3.mlp.fc2": linear(blocks[3].ffn_output)},
              f"{groups} groups of weights for 4 blocks; words of width 12; gradients are those of "
              "one block, not the sum over blocks with the same weights",
              pooling=pooling, depth=4, eps=1e-12, activation="gelu_new", post_norm=True,
              positions=16)


def albert_groups(family):
    albert(family, 2, "mean_sqrt")


def modernbert(family, pooling="token 0", **more):
    """Windows of 3 tokens to each side, so that texts of 9 to 100 tokens meet them."""
    g = generator(family)
    config = ModernBertConfig(**{**SIZES, "num_hidden_layers": 4}, **{**KIN,
                              "max_position_embeddings": 128}, local_attention=6, pad_token_id=0,
                              bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
                              global_attn_every_n_layers=3, **more)
    kind = ModernBertForMaskedLM if pooling == "token 0" else ModernBertModel
    whole = randomise(kind(config), g)
    publish(family, whole)
    model = whole.model if pooling == "token 0" else whole
    blocks = model.layers
    kin_truth(family, g, model,
              {"blocks.0.attn.qkv": linear(blocks[0].attn.Wqkv),
               "blocks.1.mlp.fc1": linear(blocks[1].mlp.Wi),
               "blocks.3.attn.proj": linear(blocks[3].attn.Wo),
               "blocks.2.attn.qkv": linear(blocks[2].attn.Wqkv)},
              "blocks 0 and 3 see all tokens, 1 and 2 three to each side; two thetas; no biases; no "
              "norm before the first attention", 100, (100, 70, 9), pooling, True, depth=4, eps=1e-5,
              activation="gelu", gated=True, positions=128)


def modernbert_old(family):
    """As the published files have it: the facts of config.json under their first names; biases."""
    modernbert(family, "mean_all", norm_bias=True, attention_bias=True, mlp_bias=True)
    path = ROOT / family / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config.pop("layer_types")
    config |= {"global_attn_every_n_layers": 3,
               "global_rope_theta": rope["full_attention"]["rope_theta"],
               "local_rope_theta": rope["sliding_attention"]["rope_theta"]}
    path.write_text(json.dumps(config, indent=2))


FAMILIES = {f.__name__: f for f in (bert, bert_mean, bert_legacy, roberta, distilbert, mpnet,
                                    mpnet_max, albert, albert_groups, modernbert, modernbert_old,
                                    t5, t5_encoder, t5_v1_1)}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FAMILIES:
        FAMILIES[chosen](chosen)
