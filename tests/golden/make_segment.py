#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/segment/: a tiny ViT of timm at an oblong size, its patch tokens, the gradient that every patch has of
its own under each objective (torch autograd, float64), and the features made of them; and pictures jittered by Pillow and
resized by torch. A developer's tool; needs torch, timm, safetensors, Pillow."""
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance

from make_backbone_common import stand_in

stand_in("torchvision")
import timm  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from timm.models.vision_transformer import VisionTransformer, checkpoint_filter_fn  # noqa: E402

OUT = pathlib.Path(__file__).resolve().parent / "segment"
WIDTH, HEADS, PATCH, STORED, HEIGHT, ACROSS = 32, 4, 8, 32, 40, 56
PICTURES, SUPPORT, LATENT = 2, 3, 12


def model(size):
    return VisionTransformer(img_size=size, patch_size=PATCH, embed_dim=WIDTH, depth=2, num_heads=HEADS, num_classes=0)


def save(name, array):
    np.save(OUT / f"{name}.npy", np.ascontiguousarray(array))


def layer(seed, inputs, outputs):
    torch.manual_seed(seed)
    return torch.nn.Linear(inputs, outputs).requires_grad_(False).double()


def info_nce(latents, negatives, tau, tau_d):
    """SPEC 2.3.3 as it stands, with the whole matrix of similarities."""
    z, n = F.normalize(latents, dim=1), F.normalize(negatives, dim=1)
    own, other = z @ z.T, z @ n.T
    p = len(z)
    alone = torch.eye(p, dtype=torch.bool)
    positive = own.masked_fill(alone, 0).sum(1) / (tau * (p - 1))
    logits = torch.cat([own.masked_fill(alone, -1e4), other], 1) / tau_d
    return (torch.logsumexp(logits, 1) - positive).mean()


def run(net, pixels):
    """Tokens after the final norm, and what the last block's projection reads and writes."""
    seen = {}

    def hook(module, inputs, output):
        seen["a"], seen["y"] = inputs[0], output

    handle = net.blocks[-1].attn.proj.register_forward_hook(hook)
    tokens = net.forward_features(pixels)
    handle.remove()
    return tokens, seen


def gradients(net, pixels, loss):
    """Factors a and b of each patch, by autograd."""
    tokens, seen = run(net, pixels)
    b, = torch.autograd.grad(loss(tokens[0]), seen["y"])
    return tokens[0, 1:].detach(), seen["a"][0, 1:].detach(), b[0, 1:]


def features(tokens, a, b, signs):
    ones = torch.ones(len(a), 1, dtype=a.dtype)
    whole = torch.einsum("ti,tj->tij", b, torch.cat([a, ones], 1)).flatten(1)
    y = F.normalize(whole @ signs.T, dim=1)
    return F.normalize(torch.cat([F.normalize(tokens, dim=1), y], 1), dim=1)


def scrambled(neighbours, n):
    """The paper's reading of K x E numbers as E x K."""
    k, e = neighbours.shape[-2:]
    return neighbours.reshape(*neighbours.shape[:-2], e, k).transpose(-1, -2)[..., n, :]


def chain():
    torch.manual_seed(3)
    stored = model((STORED, STORED))
    for p in stored.parameters():
        torch.nn.init.normal_(p, std=0.2) if p.ndim > 1 else torch.nn.init.normal_(p, mean=0.3, std=0.3)
    weights = {k: v.contiguous() for k, v in stored.state_dict().items()}
    save_file(weights, OUT / "model.safetensors")
    net = model((HEIGHT, ACROSS))
    net.load_state_dict(checkpoint_filter_fn(weights, net))
    net = net.double().eval()
    # Drawn again by the test: uniform numbers of torch's generator.
    torch.manual_seed(5)
    pixels = (torch.rand(PICTURES + SUPPORT, 3, HEIGHT, ACROSS) * 4 - 2).double()
    with torch.no_grad():
        tokens = torch.stack([run(net, p[None])[0][0] for p in pixels])
    support = F.normalize(tokens[PICTURES:, 1:].flatten(0, 1), dim=1)
    save("tokens", tokens[:PICTURES, 1:].float().numpy())
    length = WIDTH * (WIDTH + 1)
    torch.manual_seed(42)
    signs = torch.where(torch.rand(WIDTH, length) - 0.5 > 0, 1.0, -1.0).double()
    heads = [layer(7, WIDTH, LATENT), layer(8, WIDTH, LATENT)]

    def contrast(k, used, heads_used, tau_d, scramble):
        def loss(x):
            with torch.no_grad():
                nearest = torch.topk(x @ support.T, k, dim=1).indices
                found = support[nearest]
                negatives = torch.cat([scrambled(found, n) if scramble else found[:, n] for n in range(used)])
            return sum(info_nce(h(x), h(negatives), 0.07, tau_d) for h in heads_used) / len(heads_used)
        return loss

    def kl(x):
        z = layer(9, WIDTH, 24)(F.normalize(x, dim=1)) / 15
        return -torch.log_softmax(z, 1).sum()  # up to constants, KL(U || q) of every token

    def dino(x):
        unit = F.normalize(x, dim=1)
        teacher = torch.softmax(layer(11, WIDTH, 24)(unit[:1].detach()) / 0.07, 1)
        return -(teacher * torch.log_softmax(layer(10, WIDTH, 24)(unit) / 0.1, 1)).sum()

    cases = {"plain": contrast(2, 2, heads[:1], 1, False), "heads": contrast(2, 2, heads, 1, False),
             "cold": contrast(3, 3, heads[:1], 0.07, False), "scrambled": contrast(5, 2, heads[:1], 0.07, True),
             "kl": kl, "dino": dino}
    for name, loss in cases.items():
        of_pictures = [gradients(net, p[None], loss) for p in pixels[:PICTURES]]
        a, b = (torch.stack([g[i] for g in of_pictures]) for i in (1, 2))
        if name == "plain":
            save("a", a.float().numpy())
        save(f"b_{name}", (b / b.abs().max()).float().numpy())
        if name in ("plain", "kl"):
            save(f"features_{name}", torch.stack([features(t, x, y, signs) for t, x, y in of_pictures]).float().numpy())


def hue(image, shift):
    """torchvision's adjust_hue of a Pillow picture."""
    h, s, v = image.convert("HSV").split()
    moved = (np.array(h, dtype=np.int64) + math.trunc(shift * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(moved.astype(np.uint8)), s, v)).convert("RGB")


def jitter(image, brightness, contrast, saturation, shift):
    for enhance, factor in ((ImageEnhance.Brightness, brightness), (ImageEnhance.Contrast, contrast),
                            (ImageEnhance.Color, saturation)):
        if factor != 1:
            image = enhance(image).enhance(factor)
    return hue(image, shift) if shift != 0 else image


def views():
    rng = np.random.default_rng(1)
    base = rng.integers(0, 256, (8, 10, 3), dtype=np.uint8)
    image = Image.fromarray(base).resize((60, 44), Image.BICUBIC)  # smooth, with every hue
    noisy = np.array(image)
    noisy[:6] = rng.integers(0, 256, (6, 60, 3), dtype=np.uint8)
    noisy[6, :20] = np.arange(20, dtype=np.uint8)[:, None]  # greys
    noisy[7, :12] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [0, 255, 255], [255, 0, 255], [255, 0, 1],
                     [1, 0, 255], [254, 255, 254], [0, 0, 0], [255, 255, 255], [128, 127, 128]]
    image = Image.fromarray(noisy)
    save("picture", noisy)
    params = np.array([[1.1, 1, 1, 0], [0.9, 1, 1, 0], [1, 1.1, 1, 0], [1, 0.93, 1, 0], [1, 1, 1.1, 0], [1, 1, 0.9, 0],
                       [1, 1, 1, 0.1], [1, 1, 1, -0.07], [1, 1, 1, 0.003], [1.07, 0.95, 1.02, -0.1]], dtype=np.float32)
    save("jitter", params)
    save("jittered", np.stack([np.array(jitter(image, *map(float, p))) for p in params]))

    def normalised(picture):
        mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.255])
        return ((torch.from_numpy(np.array(picture)).float() / 255 - mean) / std).permute(2, 0, 1)

    top, left, height, width = 3, 7, 35, 48
    last = normalised(jitter(image, *map(float, params[-1])))
    part = last[None, :, top:top + height, left:left + width]
    save("train_view", F.interpolate(part, (24, 64), mode="bilinear", antialias=True)[0].numpy())
    save("whole_view", normalised(image.resize((32, 24), Image.BILINEAR)).numpy())


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    chain()
    views()
