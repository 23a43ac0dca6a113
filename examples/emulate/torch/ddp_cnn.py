#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training of a small convolutional network on random images."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import common


def network(width):
    layers, before = [], 3
    for n in [width, 2 * width, 4 * width]:
        layers += [
            nn.Conv2d(before, n, 3, padding=1),
            nn.BatchNorm2d(n),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        before = n
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * before, 10))


def main():
    o = common.options(__doc__, width=32, batch=16, lr=0.005).parse_args()
    rank, _ = common.start(o.seed)
    model = DistributedDataParallel(network(o.width), bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=o.lr, momentum=0.9)
    g = torch.Generator().manual_seed(o.seed + (rank if o.shards else 0))
    x = torch.randn(o.batch, 3, 32, 32, generator=g)
    y = torch.randint(10, (o.batch,), generator=g)
    log = common.Log(o.quiet, rank)
    for i in range(o.steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        log.step(i, loss.detach())
    log.end()
    common.stop()


if __name__ == "__main__":
    main()
