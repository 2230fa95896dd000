# SPDX-License-Identifier: Apache-2.0
"""The BERTs of the comparison: weights out of a file, a random BERT-base, and either as ONNX."""
import json
import shutil
import struct

import numpy as np

BASE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
            vocab_size=30522, max_position_embeddings=512, type_vocab_size=2, hidden_act="gelu",
            layer_norm_eps=1e-12, model_type="bert")
TYPES = {"F32": np.float32, "F16": np.float16}


def read_weights(folder):
    with open(folder / "model.safetensors", "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
    data = np.memmap(folder / "model.safetensors", np.uint8, "r", offset=8 + size)
    header.pop("__metadata__", None)
    return {k: np.array(data[v["data_offsets"][0]:v["data_offsets"][1]]).view(TYPES[v["dtype"]])
            .reshape(v["shape"]).astype(np.float32) for k, v in header.items() if v["dtype"] in TYPES}


def write_base(folder, tokeniser):
    """A random BERT-base with MiniLM's tokeniser; like it, it pools by the mean and to length 1."""
    if (folder / "model.safetensors").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "modules.json",
                 "sentence_bert_config.json"):
        shutil.copy(tokeniser / name, folder / name)
    (folder / "config.json").write_text(json.dumps(BASE))
    d, hidden = BASE["hidden_size"], BASE["intermediate_size"]
    shapes = {f"embeddings.{table}_embeddings.weight": (rows, d)
              for table, rows in (("word", 30522), ("position", 512), ("token_type", 2))}
    norms = ["embeddings.LayerNorm"]
    for n in range(BASE["num_hidden_layers"]):
        b = f"encoder.layer.{n}."
        for part in ("query", "key", "value"):
            shapes[f"{b}attention.self.{part}.weight"] = (d, d)
        shapes[b + "attention.output.dense.weight"] = (d, d)
        shapes[b + "intermediate.dense.weight"] = (hidden, d)
        shapes[b + "output.dense.weight"] = (d, hidden)
        norms += [b + "attention.output.LayerNorm", b + "output.LayerNorm"]
    for name in [n for n in shapes if n.startswith("encoder")]:
        shapes[name.replace(".weight", ".bias")] = (shapes[name][0],)
    for norm in norms:
        shapes[norm + ".weight"] = shapes[norm + ".bias"] = (d,)
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text, rng = json.dumps(header).encode(), np.random.default_rng(7)
    with open(folder / "part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            gain = name.endswith("LayerNorm.weight")
            deviation = shape[-1] ** -0.5 if len(shape) == 2 and "encoder" in name else 0.1
            f.write((rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation)
                     + np.float32(gain)).tobytes())
    (folder / "part").rename(folder / "model.safetensors")
    return folder


def write_onnx(folder, path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    c, w = json.loads((folder / "config.json").read_text()), read_weights(folder)
    width, heads = c["hidden_size"], c["num_attention_heads"]
    nodes, constants, count = [], [], [0]

    def constant(value, dtype=np.float32):
        count[0] += 1
        array = np.ascontiguousarray(value, dtype).reshape(np.shape(value))
        constants.append(numpy_helper.from_array(array, f"c{count[0]}"))
        return f"c{count[0]}"

    def op(kind, *inputs, **attributes):
        count[0] += 1
        nodes.append(helper.make_node(kind, list(inputs), [f"t{count[0]}"], **attributes))
        return f"t{count[0]}"

    def linear(x, name):
        product = op("MatMul", x, constant(w[name + ".weight"].T))
        return op("Add", product, constant(w[name + ".bias"]))

    def norm(x, name):
        return op("LayerNormalization", x, constant(w[name + ".weight"]),
                  constant(w[name + ".bias"]), axis=-1, epsilon=c["layer_norm_eps"])

    def split_heads(x, order):
        shape = constant([0, 0, heads, width // heads], np.int64)
        return op("Transpose", op("Reshape", x, shape), perm=order)

    mask = op("Cast", "mask", to=TensorProto.FLOAT)
    hidden_logits = op("Mul", op("Sub", mask, constant(1.0)), constant(1e9))
    hidden_logits = op("Unsqueeze", hidden_logits, constant([1, 2], np.int64))
    e = "embeddings."
    x = op("Gather", constant(w[e + "word_embeddings.weight"]), "ids")
    x = op("Add", x, op("Gather", constant(w[e + "position_embeddings.weight"]
                                           + w[e + "token_type_embeddings.weight"][0]), "positions"))
    x = norm(x, e + "LayerNorm")
    for i in range(c["num_hidden_layers"]):
        b = f"encoder.layer.{i}."
        q, k, v = (linear(x, f"{b}attention.self.{part}") for part in ("query", "key", "value"))
        scores = op("MatMul", split_heads(q, [0, 2, 1, 3]), split_heads(k, [0, 2, 3, 1]))
        scores = op("Mul", scores, constant((width // heads) ** -0.5))
        scores = op("Softmax", op("Add", scores, hidden_logits), axis=-1)
        mixed = op("Transpose", op("MatMul", scores, split_heads(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        mixed = op("Reshape", mixed, constant([0, 0, width], np.int64))
        x = norm(op("Add", x, linear(mixed, b + "attention.output.dense")),
                 b + "attention.output.LayerNorm")
        hidden = op("Gelu", linear(x, b + "intermediate.dense"))
        x = norm(op("Add", x, linear(hidden, b + "output.dense")), b + "output.LayerNorm")
    own = op("Unsqueeze", mask, constant([2], np.int64))
    axis = constant([1], np.int64)
    total = op("ReduceSum", op("Mul", x, own), axis, keepdims=0)
    pooled = op("LpNormalization", op("Div", total, op("ReduceSum", own, axis, keepdims=0)), axis=1)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in
              (("ids", ["n", "t"]), ("mask", ["n", "t"]), ("positions", ["t"]))]
    output = helper.make_tensor_value_info(pooled, TensorProto.FLOAT, ["n", width])
    graph = helper.make_graph(nodes, "bert", inputs, [output], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
              str(path))
