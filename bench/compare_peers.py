# SPDX-License-Identifier: Apache-2.0
"""One peer as a process: loads the model, then times one turn per line read from standard input.

Started by compare_forward.py, which alternates the peers. Prints one JSON object when ready and one
per turn. `python compare_peers.py KIND --model NAME --weights FILE --batch N --threads N`.
"""
import argparse
import json
import os
import resource
import sys
import time

import numpy as np

import compare_model
import compare_openvino

CLOCKS = {"wall": time.perf_counter, "process": time.process_time}
SLOW = 8.0  # seconds: a peer that needs more for a batch is measured with single images


class TorchForward:
    """A plain ViT: the operators any torch user gets, nothing compiled."""

    def __init__(self, args, dtype):
        import torch
        self.torch, self.F = torch, torch.nn.functional
        torch.set_num_threads(args.threads)
        self.version = f"torch {torch.__version__}"
        self.dtype = getattr(torch, dtype)
        self.shape = compare_model.MODELS[args.model]
        self.w = {k: torch.from_numpy(v).to(self.dtype)
                  for k, v in compare_model.read_weights(args.weights).items()}

    def linear(self, x, name):
        return self.F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return self.F.layer_norm(x, x.shape[-1:], self.w[name + ".weight"], self.w[name + ".bias"],
                                 1e-6)

    def attention(self, x, name):
        n, t, width = x.shape
        heads = self.shape["heads"]
        q, k, v = self.linear(x, name + ".qkv").view(n, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
        if hasattr(self.F, "scaled_dot_product_attention"):
            out = self.F.scaled_dot_product_attention(q, k, v)
        else:
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
            out = scores.softmax(-1) @ v
        return self.linear(out.transpose(1, 2).reshape(n, t, width), name + ".proj")

    def run(self, images):
        with self.torch.inference_mode():
            x = self.torch.from_numpy(images).to(self.dtype)
            x = self.F.conv2d(x, self.w["patch_embed.proj.weight"],
                              self.w["patch_embed.proj.bias"], stride=compare_model.PATCH)
            x = x.flatten(2).transpose(1, 2)
            x = self.torch.cat([self.w["cls_token"].expand(x.shape[0], -1, -1), x], 1)
            x = x + self.w["pos_embed"]
            for n in range(self.shape["depth"]):
                b = f"blocks.{n}."
                x = x + self.attention(self.norm(x, b + "norm1"), b + "attn")
                hidden = self.F.gelu(self.linear(self.norm(x, b + "norm2"), b + "mlp.fc1"))
                x = x + self.linear(hidden, b + "mlp.fc2")
            return self.norm(x, "norm")[:, 0].float().numpy()


class OpenvinoForward:
    """The same graph in OpenVINO; int8 is calibrated with other images of the same kind."""

    def __init__(self, args, precision):
        path = args.weights[:-len("safetensors")] + f"{args.batch}.onnx"
        if not os.path.exists(path):
            build_onnx(args, path)
        samples = [compare_model.images(args.batch) * np.float32(1 - i / 100) for i in range(4)]
        self.peer = compare_openvino.Openvino(path, precision, args.threads, samples)
        self.version = self.peer.version
        self.peer.choose(samples[:2], CLOCKS[args.clock])

    def run(self, images):
        return self.peer.run_all([images])[0]

    def run_several(self, images):
        return self.peer.run_all([images] * self.peer.streams)


class OnnxForward:
    """The same network as a hand-built ONNX graph in onnxruntime, all graph optimisations on."""

    def __init__(self, args):
        import onnxruntime
        self.version = f"onnxruntime {onnxruntime.__version__}"
        path = args.weights[:-len("safetensors")] + f"{args.batch}.onnx"
        if not os.path.exists(path):
            build_onnx(args, path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options,
                                                    providers=["CPUExecutionProvider"])

    def run(self, images):
        return self.session.run(None, {"images": images})[0]


def build_onnx(args, path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    shape = compare_model.MODELS[args.model]
    width, heads = shape["width"], shape["heads"]
    dim = width // heads
    nodes, constants, count = [], [], [0]

    def constant(value, dtype=np.float32):
        count[0] += 1
        array = np.ascontiguousarray(value, dtype).reshape(np.shape(value))  # keeps scalars 0-d
        constants.append(numpy_helper.from_array(array, f"c{count[0]}"))
        return f"c{count[0]}"

    def op(kind, *inputs, outputs=1, **attributes):
        count[0] += 1
        names = [f"t{count[0]}_{i}" for i in range(outputs)]
        nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    w = compare_model.read_weights(args.weights)

    def linear(x, name):
        product = op("MatMul", x, constant(w[name + ".weight"].T))
        return op("Add", product, constant(w[name + ".bias"]))

    def norm(x, name):
        return op("LayerNormalization", x, constant(w[name + ".weight"]),
                  constant(w[name + ".bias"]), axis=-1, epsilon=1e-6)

    def split_heads(x, order):
        parts = op("Reshape", x, constant([0, compare_model.TOKENS, heads, dim], np.int64))
        return op("Transpose", parts, perm=order)

    x = op("Conv", "images", constant(w["patch_embed.proj.weight"]),
           constant(w["patch_embed.proj.bias"]), strides=[compare_model.PATCH] * 2)
    x = op("Reshape", x, constant([0, width, compare_model.TOKENS - 1], np.int64))
    x = op("Transpose", x, perm=[0, 2, 1])
    cls = op("Expand", constant(w["cls_token"]), constant([args.batch, 1, width], np.int64))
    x = op("Add", op("Concat", cls, x, axis=1), constant(w["pos_embed"]))
    for n in range(shape["depth"]):
        b = f"blocks.{n}."
        q, k, v = op("Split", linear(norm(x, b + "norm1"), b + "attn.qkv"), outputs=3, axis=-1,
                     num_outputs=3)
        scores = op("MatMul", split_heads(q, [0, 2, 1, 3]), split_heads(k, [0, 2, 3, 1]))
        scores = op("Softmax", op("Mul", scores, constant(dim ** -0.5)), axis=-1)
        mixed = op("Transpose", op("MatMul", scores, split_heads(v, [0, 2, 1, 3])),
                   perm=[0, 2, 1, 3])
        mixed = op("Reshape", mixed, constant([0, compare_model.TOKENS, width], np.int64))
        x = op("Add", x, linear(mixed, b + "attn.proj"))
        hidden = op("Gelu", linear(norm(x, b + "norm2"), b + "mlp.fc1"))
        x = op("Add", x, linear(hidden, b + "mlp.fc2"))
    last = op("Gather", norm(x, "norm"), constant(0, np.int64), axis=1)
    size = [args.batch, 3, compare_model.SIDE, compare_model.SIDE]
    graph = helper.make_graph(
        nodes, args.model, [helper.make_tensor_value_info("images", TensorProto.FLOAT, size)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [args.batch, width])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, path + ".part")
    os.rename(path + ".part", path)


class Gemm:
    """f32 products of ViT-B's linear layers in a library; one turn gives GFLOP/s per shape."""

    def __init__(self, args, library):
        rng = np.random.default_rng(3)
        self.pairs = []
        for m, k, n in compare_model.gemm_shapes(args.batch):
            a = rng.standard_normal((m, k), dtype=np.float32)
            b = rng.standard_normal((k, n), dtype=np.float32)
            self.pairs.append((a, b, np.empty((m, n), np.float32)))
        if library == "torch":
            import torch
            torch.set_num_threads(args.threads)
            self.version = f"torch {torch.__version__} mm"
            self.pairs = [tuple(map(torch.from_numpy, p)) for p in self.pairs]
            self.product = torch.mm
        else:
            self.version = f"numpy {np.__version__} ({blas_name()})"
            self.product = np.matmul

    def turn(self, seconds):
        out = []
        for a, b, c in self.pairs:
            best, end = 1e30, time.perf_counter() + seconds / len(self.pairs)
            while True:
                start = time.perf_counter()
                self.product(a, b, out=c)
                best = min(best, time.perf_counter() - start)
                if time.perf_counter() > end:
                    break
            out.append(2e-9 * a.shape[0] * a.shape[1] * b.shape[1] / best)
        return {"gflops": out}


def blas_name():
    try:
        blas = np.__config__.CONFIG["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas['version']}"
    except (AttributeError, KeyError):
        return "system BLAS"


def rate_turn(peer, batch, seconds, clock):
    x = compare_model.images(batch)
    run = getattr(peer, "run_several", lambda x: [peer.run(x)])
    times, several = [], 1
    while not times or sum(times) < seconds:
        start = clock()
        several = len(run(x))
        times.append(clock() - start)
    return {"samples_per_second": batch * several / min(times), "runs": len(times)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--model", default="vit_base_patch16_224")
    parser.add_argument("--weights", default="")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    args = parser.parse_args()
    family, _, variant = args.kind.partition("-")
    if family == "gemm":
        peer = Gemm(args, variant)
        ready = {"version": peer.version}
        peer.turn(0.1)

        def turn():
            return peer.turn(args.seconds)
    else:
        peer = (OnnxForward(args) if family == "onnxruntime"
                else OpenvinoForward(args, variant) if family == "openvino"
                else TorchForward(args, variant))
        fixed = family in ("onnxruntime", "openvino")  # their graph has the batch built in
        first = compare_model.images(args.batch if fixed else 1)
        peer.run(first)
        start = time.perf_counter()
        embedding = peer.run(first)
        spent = time.perf_counter() - start
        batch = 1 if not fixed and spent * args.batch > SLOW else args.batch
        if batch > 1:
            peer.run(compare_model.images(batch))
        ready = {"version": peer.version, "batch": batch,
                 "embedding": [float(v) for v in embedding[0]]}

        def turn():
            return rate_turn(peer, batch, args.seconds, CLOCKS[args.clock])
    print(json.dumps(ready), flush=True)
    for _ in sys.stdin:
        result = turn()
        result["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
