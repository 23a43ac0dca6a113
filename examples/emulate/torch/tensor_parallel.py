#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism (pairs of a column-parallel and a row-parallel layer) in
groups of --tp ranks, data parallelism across them.

An absent rank has this rank's slice of each layer, so that with --tp above 1
emulated losses are not those of a real run."""

import torch
from torch import nn
import torch.distributed as dist

import common


class Copy(torch.autograd.Function):
    """Forward the same; backward a sum over the group."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        x = x.contiguous()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Block(nn.Module):
    def __init__(self, width, tp, group):
        super().__init__()
        self.group = group
        self.up = nn.Linear(width, 4 * width // tp)
        self.down = nn.Linear(4 * width // tp, width, bias=False)

    def forward(self, x):
        h = torch.relu(self.up(Copy.apply(x, self.group)))
        return x + Sum.apply(self.down(h), self.group)


def main():
    p = common.options(__doc__, width=256, layers=4)
    p.add_argument("--tp", type=int, default=2)
    o = p.parse_args()
    rank, n = common.start(o.seed)
    if n % o.tp:
        p.error("the world is no multiple of --tp")
    tp_group = dp_group = None
    for first in range(0, n, o.tp):
        g = dist.new_group(range(first, first + o.tp))
        if first <= rank < first + o.tp:
            tp_group = g
    for first in range(o.tp):
        g = dist.new_group(range(first, n, o.tp))
        if rank % o.tp == first:
            dp_group = g
    torch.manual_seed(o.seed + rank % o.tp)
    model = nn.Sequential(*[Block(o.width, o.tp, tp_group) for _ in range(o.layers)])
    optimizer = torch.optim.SGD(model.parameters(), lr=o.lr)
    x, y = common.data(o, rank // o.tp, o.width, o.width)
    log = common.Log(o.quiet, rank)
    for i in range(o.steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, group=dp_group)
            p.grad /= n // o.tp
        optimizer.step()
        log.step(i, loss.detach())
    log.end()
    common.stop()


if __name__ == "__main__":
    main()
