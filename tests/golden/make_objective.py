#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/objective/: losses and gradients at the sizes of real runs, by torch autograd
in float64.

Only results are stored; all inputs are uniform numbers of torch's generator, which the test draws
again. A golden file is float32: the loss in the first entry, then the gradient with respect to the
embeddings, row by row. Needs torch; run from anywhere.
"""
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parent / "objective"
WIDTH = 192  # of the embeddings


def draws(seed, rows, cols):
    """Uniform on [-1, 1), the way the test repeats it."""
    torch.manual_seed(seed)
    return (torch.rand(rows, cols) * 2 - 1).double()


def layer(seed, width, inputs=WIDTH, bias=True):
    torch.manual_seed(seed)
    return torch.nn.Linear(inputs, width, bias=bias).double().requires_grad_(False)


def save(name, loss, embeddings):
    loss.backward()
    values = np.concatenate([[loss.item()], embeddings.grad.numpy().ravel()])
    np.save(OUT / f"{name}.npy", values.astype(np.float32))
    print(name, loss.item(), embeddings.grad.norm().item())


def kl(name, tau, uniform_first):
    e = draws(1, 1, WIDTH).requires_grad_()
    log_q = F.log_softmax(layer(2, 768)(F.normalize(e)) / tau, dim=1)
    uniform = torch.full_like(log_q, 1 / 768)
    if uniform_first:
        loss = F.kl_div(log_q, uniform, reduction="mean")
    else:
        loss = F.kl_div(uniform.log(), log_q, reduction="sum", log_target=True)
    save(name, loss, e)


def dino():
    e = draws(3, 12, WIDTH).requires_grad_()
    unit = F.normalize(e)
    student = F.log_softmax(layer(4, 2048)(unit) / 0.1, dim=1)
    teacher = F.softmax(layer(5, 2048)(unit[:2]).detach() / 0.07, dim=1)
    save("dino", sum(-(t * s).sum() for t in teacher for s in student), e)


def simclr(name, tau_d, tau=0.07, views=49, negatives=256 * 49):
    head = layer(6, 96)
    e = (draws(7, 1, WIDTH) + 0.3 * draws(8, views, WIDTH)).requires_grad_()
    bank = F.normalize(head(draws(9, negatives, WIDTH)))
    z = F.normalize(head(e))
    positive = z @ z.T
    others = ~torch.eye(views, dtype=torch.bool)
    attraction = (positive * others).sum(1) / (views - 1) / tau
    logits = torch.cat([z @ bank.T, positive.masked_fill(~others, -10000.0)], dim=1) / tau_d
    save(name, (logits.logsumexp(1) - attraction).mean(), e)


def deepcluster(crops=8, sets=3, prototypes=3000, tau=0.1):
    torch.manual_seed(10)
    bound = 1 / math.sqrt(WIDTH)
    v = torch.empty(128, WIDTH).uniform_(-bound, bound).double()
    head = F.normalize(v)
    centroids = 0.2 * draws(11, sets * prototypes, 128)
    e = draws(12, crops + 2, WIDTH).requires_grad_()
    z = F.normalize(e @ head.T)
    loss = 0
    for h in range(sets):
        scores = z @ centroids[h * prototypes:(h + 1) * prototypes].T
        target = scores[crops + h % 2].argmax().expand(crops)
        loss = loss + F.cross_entropy(scores[:crops] / tau, target)
    save("deepcluster", loss / sets, e)


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    kl("kl", 15, True)
    kl("kl_lib", 1, True)
    kl("kl_model_first", 15, False)
    dino()
    simclr("simclr", 0.07)
    simclr("simclr_lib", 1)
    deepcluster()
