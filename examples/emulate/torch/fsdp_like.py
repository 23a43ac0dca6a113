#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sharded parameters by hand: each rank keeps a part of every layer, gathers
the layer before it computes with it, and sums gradients to their owners.

torch 1.13's own FSDP needs CUDA, and its Gloo has no reduce-scatter: gradients
are exchanged all to all and added up.  An absent rank's part of a layer is this
rank's own, so that emulated losses are not those of a real run."""

import torch
import torch.distributed as dist

import common


class Gather(torch.autograd.Function):
    """The whole layer from everyone's parts; backwards, the parts of its
    gradient from everyone."""

    @staticmethod
    def forward(ctx, part):
        n = dist.get_world_size()
        whole = torch.empty(n * part.numel())
        dist.all_gather(list(whole.chunk(n)), part)
        return whole

    @staticmethod
    def backward(ctx, grad):
        n = dist.get_world_size()
        parts = torch.empty_like(grad)
        dist.all_to_all_single(parts, grad.contiguous())
        return parts.view(n, -1).sum(0) / n


def main():
    o = common.options(__doc__, width=512).parse_args()
    rank, n = common.start(o.seed)
    parts = []
    for _ in range(o.layers):
        whole = torch.randn(o.width * o.width) / o.width**0.5
        size = (whole.numel() + n - 1) // n
        padded = torch.zeros(n * size)
        padded[: whole.numel()] = whole
        parts.append(padded[rank * size : (rank + 1) * size].clone().requires_grad_())
    optimizer = torch.optim.Adam(parts, lr=o.lr / 50)
    x, y = common.data(o, rank, o.width, o.width)
    log = common.Log(o.quiet, rank)
    for i in range(o.steps):
        optimizer.zero_grad()
        h = x
        for part in parts:
            w = Gather.apply(part)[: o.width * o.width].view(o.width, o.width)
            h = torch.tanh(h @ w)
        loss = torch.nn.functional.mse_loss(h, y)
        loss.backward()
        optimizer.step()
        log.step(i, loss.detach())
    log.end()
    common.stop()


if __name__ == "__main__":
    main()
