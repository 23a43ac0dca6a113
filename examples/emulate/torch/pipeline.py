#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pipeline of one stage per rank: micro-batches go forward and back as
messages (all forward passes, then all backward passes)."""

import torch
from torch import nn
import torch.distributed as dist

import common


def main():
    p = common.options(__doc__, width=512, layers=2)
    p.add_argument("--micro-batches", type=int, default=4)
    o = p.parse_args()
    rank, n = common.start(o.seed)
    torch.manual_seed(o.seed + rank)
    layers = []
    for _ in range(o.layers):
        layers += [nn.Linear(o.width, o.width), nn.Tanh()]
    stage = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(stage.parameters(), lr=o.lr)
    o.shards = False
    x, y = common.data(o, rank, o.width, o.width)
    xs, ys = x.chunk(o.micro_batches), y.chunk(o.micro_batches)
    log = common.Log(o.quiet, rank)
    for i in range(o.steps):
        optimizer.zero_grad()
        passes, sends, total = [], [], 0.0
        for m in range(o.micro_batches):
            h = xs[m].clone()
            if rank > 0:
                dist.recv(h, rank - 1)
                h.requires_grad_()
            out = stage(h)
            if rank + 1 < n:
                sends.append(dist.isend(out.detach(), rank + 1))
            passes.append((h, out))
        for m in reversed(range(o.micro_batches)):
            h, out = passes[m]
            if rank + 1 < n:
                grad = torch.empty_like(out)
                dist.recv(grad, rank + 1)
                out.backward(grad)
            else:
                loss = nn.functional.mse_loss(out, ys[m])
                loss.backward()
                total += loss.item()
            if rank > 0:
                sends.append(dist.isend(h.grad, rank - 1))
        for s in sends:
            s.wait()
        optimizer.step()
        log.step(i, total / o.micro_batches)
    log.end()
    common.stop()


if __name__ == "__main__":
    main()
