# SPDX-License-Identifier: Apache-2.0
"""OpenVINO as a peer: an ONNX file in f32, bf16, or in int8 as NNCF quantises transformers.

Its requests run on one stream for all threads, or on one for each, whichever is faster here.
"""
import contextlib
import os
import sys
import time

import numpy as np


def quantised(core, path, samples):
    """NNCF's post-training quantisation, once per file, beside it."""
    import openvino
    out = str(path)[:-len(".onnx")] + ".int8.xml"
    if not os.path.exists(out):
        with contextlib.redirect_stdout(sys.stderr):  # it shows how far it is
            import nncf
            model = nncf.quantize(core.read_model(path), nncf.Dataset(samples),
                                  subset_size=len(samples), model_type=nncf.ModelType.TRANSFORMER)
        openvino.save_model(model, out, compress_to_fp16=False)
    return core.read_model(out)


class Openvino:
    """precision: f32, bf16 or int8; samples: inputs to calibrate int8 with, dictionaries or arrays."""

    def __init__(self, path, precision, threads, samples):
        import openvino
        self.version = f"openvino {openvino.__version__}"
        core = openvino.Core()
        model = quantised(core, path, samples) if precision == "int8" else core.read_model(path)
        self.queues = {}
        for streams in sorted({1, threads}):
            settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": streams,
                        "INFERENCE_PRECISION_HINT": "f32" if precision == "f32" else "bf16"}
            compiled = core.compile_model(model, "CPU", settings)
            self.queues[streams] = openvino.AsyncInferQueue(compiled, streams)
        self.streams = next(iter(self.queues))

    def choose(self, inputs, clock=time.perf_counter):
        """Which number of streams is faster for such inputs."""
        times = {}
        for self.streams in self.queues:
            self.run_all(inputs)
            start = clock()
            self.run_all(inputs)
            times[self.streams] = clock() - start
        self.streams = min(times, key=times.get)

    def run_all(self, inputs):
        """The first output of each."""
        out, queue = [None] * len(inputs), self.queues[self.streams]

        def keep(request, which):
            out[which] = np.array(request.get_output_tensor(0).data)
        queue.set_callback(keep)
        for which, one in enumerate(inputs):
            queue.start_async(one, which)
        queue.wait_all()
        return out
