#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `fungi extract --preset lib` in f32 with the published Python package, fungivision, on the same weights, pictures,
heads, projection, crops and negatives. Prints the smallest cosine of every block; exits with 1 when one is below the threshold.

    compare_fungivision.py --fungi build/fungi [--weights deit_tiny.safetensors --pictures FOLDER]
    compare_fungivision.py --write          # rewrites tests/golden/fungivision for the C++ tests

The package runs unchanged: heads and projection are the ones it draws, read out of it and handed to fungi with --given. Its
random choices come from torch's global generator, so seeding that with fungi's own seeds (fungi/view/image_views.cpp,
fungi/objective/objective.cpp) before each call gives both sides the same crops and the same negatives.

Needs torch, timm, safetensors, Pillow below 13 and fungivision 0.0.2 (without its dependencies). torchvision's transforms are stood in
for when it is not there: the few that the package uses, as torchvision does them.
"""
import argparse
import importlib.util
import math
import pathlib
import subprocess
import sys
import tempfile
import types
import warnings

import numpy as np
import PIL.Image
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from make_backbone_common import generator, randomise, stand_in

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "fungivision"
SEED = 42
THRESHOLD = 0.99999
BLOCKS = ("kl", "dino", "simclr")


# fungi/base/random.h: the counter-based generator behind seeds of views and support.
def fnv1a64(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def torch_seed(purpose, sample=0):
    key = mix64((mix64(SEED ^ fnv1a64(purpose)) + sample) % 2**64)
    return mix64(key ^ mix64(0)) % 2**32


class RandomResizedCrop:
    """torchvision's, drawn in the same order from torch's global generator."""

    def __init__(self, size, scale, interpolation):
        self.size, self.scale, self.interpolation = size, scale, interpolation

    def __call__(self, image):
        width, height = image.size
        ratios = torch.log(torch.tensor([3 / 4, 4 / 3]))
        for _ in range(10):
            area = width * height * torch.empty(1).uniform_(*self.scale).item()
            ratio = torch.exp(torch.empty(1).uniform_(ratios[0], ratios[1])).item()
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                top = torch.randint(0, height - h + 1, size=(1,)).item()
                left = torch.randint(0, width - w + 1, size=(1,)).item()
                break
        else:
            w, h = width, height
            if width / height < 3 / 4:
                h = round(width / (3 / 4))
            elif width / height > 4 / 3:
                w = round(height * (4 / 3))
            top, left = (height - h) // 2, (width - w) // 2
        return image.crop((left, top, left + w, top + h)).resize((self.size, self.size), self.interpolation)


def resize(size, interpolation, antialias):
    def tensor(x):
        mode = {"BILINEAR": "bilinear", PIL.Image.BICUBIC: "bicubic"}[interpolation]
        return F.interpolate(x[None], size=size, mode=mode, antialias=antialias)[0]
    return lambda x: tensor(x) if isinstance(x, torch.Tensor) else x.resize(size[::-1], interpolation)


def centre_crop(size):
    def crop(x):
        top, left = round((x.shape[1] - size) / 2), round((x.shape[2] - size) / 2)
        return x[:, top:top + size, left:left + size]
    return crop


def normalise(mean, std):
    return lambda x: (x - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


def compose(steps):
    def run(x):
        for step in steps:
            x = step(x)
        return x
    return run


def bytes_of(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


def provide_transforms():
    if importlib.util.find_spec("torchvision"):
        return
    stand_in("torchvision")
    v2 = types.ModuleType("torchvision.transforms.v2")
    v2.Compose, v2.Resize, v2.CenterCrop, v2.Normalize, v2.RandomResizedCrop = compose, resize, centre_crop, normalise, RandomResizedCrop
    v2.ToImage = lambda: bytes_of
    v2.ToTensor = lambda: lambda image: bytes_of(image).float() / 255
    v2.ToDtype = lambda dtype, scale: lambda x: x.to(dtype) / 255
    import torchvision.transforms
    torchvision.transforms.v2 = sys.modules[v2.__name__] = v2


def run_package(model, pictures, configs):
    """Features {block: [n, width]}, and the state to hand to fungi under the names of its stores."""
    from fungivision import FUNGIWrapper
    torch.manual_seed(1)
    wrapper = FUNGIWrapper(model=model, target_layer=f"blocks.{len(model.blocks) - 1}.attn.proj", device=torch.device("cpu"),
                           extractor_configs=configs)
    torch.manual_seed(torch_seed("support"))
    wrapper.setup([(image, 0) for image in pictures.values()])
    rows = []
    for name, image in pictures.items():
        torch.manual_seed(torch_seed("dino", fnv1a64(name)))  # KL and SimCLR draw nothing
        rows.append(wrapper([image]).detach())
    kl, dino, simclr = wrapper.extractors
    given = {"projection": kl.projection}
    for name, head in {"kl-head": kl.projection_head, "dino-student": dino.projection_head, "dino-teacher": dino.teacher_projection,
                       "simclr-head": simclr.projection_head}.items():
        given[name + "-weight"], given[name + "-bias"] = head.weight.detach(), head.bias.detach()
    features = dict(zip(BLOCKS, torch.cat(rows).chunk(3, dim=1)))
    features["negatives"] = F.normalize(simclr.comparison_batch)
    return {name: value.numpy() for name, value in features.items()}, given


def run_fungi(binary, weights, list_file, given, heads, negatives):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        save_file({name: value.contiguous() for name, value in given.items()}, scratch / "given.safetensors")
        command = [binary, "extract", list_file, "-m", weights, "-o", scratch / "store", "--preset", "lib", "--precision", "f32",
                   "--seed", str(SEED), "--objectives", "kl", "dino", f"simclr:negatives={negatives}", "--projection", "matrix",
                   "--given", scratch / "given.safetensors", "--set", f"heads={heads}", "--quiet"]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        shards = {name: sorted((scratch / "store").glob(name + "-[0-9]*.npy")) for name in BLOCKS}
        features = {name: np.concatenate([np.load(file) for file in files]) for name, files in shards.items()}
        features["negatives"] = np.load(scratch / "store/state/simclr-negatives.npy")
    return features


def tiny_model():
    from timm.models.vision_transformer import VisionTransformer
    # The package patchifies at 224 pixels whatever it is told, so the input must have that size.
    return randomise(VisionTransformer(img_size=224, patch_size=16, embed_dim=16, depth=2, num_heads=2, mlp_ratio=2, num_classes=0),
                     generator("fungivision"))


def deit_tiny(weights):
    import timm
    model = timm.create_model("deit_tiny_patch16_224", num_classes=0)
    tensors = {name: value for name, value in load_file(weights).items() if not name.startswith("head.")}
    model.load_state_dict(tensors)
    return model.eval()


def read_pictures(list_file):
    return {name: PIL.Image.open(list_file.parent / name).convert("RGB") for name in list_file.read_text().split("\n") if name}


def compare(title, ours, theirs):
    worst = 1.0
    for name in theirs:
        x, y = ours[name].astype(np.float64), theirs[name].astype(np.float64)
        assert x.shape == y.shape, f"{title} {name}: {x.shape} here, {y.shape} there"
        cosines = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
        print(f"{title:10s} {name:10s} {len(cosines):6d} rows   smallest cosine {cosines.min():.9f}")
        worst = min(worst, float(cosines.min()))
    return worst >= THRESHOLD


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fungi", type=pathlib.Path)
    parser.add_argument("--weights", type=pathlib.Path, help="DeiT-tiny in timm's names")
    parser.add_argument("--pictures", type=pathlib.Path, help="folder of .jpg or .png files; the first 8 are taken")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if not options.write and not options.fungi:
        parser.error("one of --fungi and --write is needed")
    if int(PIL.__version__.split(".")[0]) >= 13:
        parser.error(f"Pillow {PIL.__version__} resizes tall pictures down before across; the references and fungi go across first: use 12 or older")
    warnings.simplefilter("ignore")  # the package uses torch's older names
    torch.set_num_threads(1)
    provide_transforms()
    from fungivision.config import DINOConfig, KLConfig, SimCLRConfig

    model, pictures = tiny_model(), read_pictures(GOLDEN / "list.txt")
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    theirs, given = run_package(model, pictures, [KLConfig(latent_dim=24), DINOConfig(latent_dim=32),
                                                  SimCLRConfig(latent_dim=12, comparison_batch_size=3)])
    if options.write:
        save_file(weights, GOLDEN / "model.safetensors")
        save_file({name: value.contiguous() for name, value in given.items()}, GOLDEN / "given.safetensors")
        for name, value in theirs.items():
            np.save(GOLDEN / f"{name}.npy", value)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "model.safetensors"
        save_file(weights, file)
        good = compare("tiny", run_fungi(options.fungi, file, GOLDEN / "list.txt", given, 2, 3), theirs)
    if options.weights:
        with tempfile.TemporaryDirectory() as scratch:
            files = sorted(f for f in options.pictures.rglob("*") if f.suffix in (".jpg", ".png"))[:8]
            list_file = pathlib.Path(scratch) / "list.txt"
            list_file.write_text("".join(f"{f.resolve()}\n" for f in files))
            theirs, given = run_package(deit_tiny(options.weights), read_pictures(list_file),
                                        [KLConfig(), DINOConfig(), SimCLRConfig(comparison_batch_size=4)])
            good &= compare("deit-tiny", run_fungi(options.fungi, options.weights, list_file, given, 3, 4), theirs)
    print(f"all at least {THRESHOLD}" if good else f"BELOW {THRESHOLD}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
