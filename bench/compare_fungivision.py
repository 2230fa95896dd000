# SPDX-License-Identifier: Apache-2.0
"""Samples per second of the published package, fungivision, on a ViT in f32: prints one JSON object.

Started by compare_extract.py. Negatives come from one picture instead of 64 (their forwards are no part
of the rate, and fewer of them only help it).
"""
import argparse
import importlib.util
import json
import pathlib
import sys
import time
import warnings

import compare_model

# The stand-in for torchvision's transforms is the one that the comparison of numbers uses; its file has this one's name.
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
sys.path.append(str(GOLDEN))
_spec = importlib.util.spec_from_file_location("golden_fungivision", GOLDEN / "compare_fungivision.py")
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)


def model_of(name, weights):
    import torch
    from timm.models.vision_transformer import VisionTransformer
    shape = compare_model.MODELS[name]
    model = VisionTransformer(img_size=224, patch_size=16, embed_dim=shape["width"], depth=shape["depth"],
                              num_heads=shape["heads"], num_classes=0)
    model.load_state_dict(golden.load_file(weights))
    torch.manual_seed(1)
    return model.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--objective", choices=["kl", "dino", "simclr", "all"], required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    import torch
    torch.set_num_threads(args.threads)
    warnings.simplefilter("ignore")
    golden.provide_transforms()
    from fungivision import FUNGIWrapper
    from fungivision.config import DINOConfig, KLConfig, SimCLRConfig
    configs = {"kl": KLConfig, "dino": DINOConfig, "simclr": lambda: SimCLRConfig(comparison_batch_size=1)}
    wanted = list(configs) if args.objective == "all" else [args.objective]
    files = sorted(f for f in args.data.rglob("*") if f.suffix.lower() in (".jpg", ".jpeg"))[:args.samples + 1]
    read = lambda file: golden.PIL.Image.open(file).convert("RGB")
    model = model_of(args.model, args.weights)
    wrapper = FUNGIWrapper(model=model, target_layer=f"blocks.{len(model.blocks) - 1}.attn.proj",
                           device=torch.device("cpu"), extractor_configs=[configs[name]() for name in wanted])
    wrapper.setup([(read(files[0]), 0)])
    wrapper([read(files[0])])  # warm
    start, used = time.perf_counter(), time.process_time()
    for file in files[1:]:
        wrapper([read(file)])
    seconds = time.perf_counter() - start
    json.dump({"samples_per_second": (len(files) - 1) / seconds,
               "samples_per_processor_second": (len(files) - 1) / (time.process_time() - used)}, sys.stdout)


if __name__ == "__main__":
    main()
