#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training of a multi-layer perceptron (6 x 1024, batch 64)."""

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import common


def main():
    p = common.options(__doc__)
    p.add_argument("--bucket-mb", type=float, default=4)
    p.add_argument("--hook", choices=["none", "fp16", "powersgd"], default="none")
    p.add_argument("--zero", action="store_true", help="shard the optimizer")
    o = p.parse_args()
    rank, _ = common.start(o.seed)

    layers = []
    for _ in range(o.layers):
        layers += [nn.Linear(o.width, o.width), nn.ReLU()]
    model = DistributedDataParallel(
        nn.Sequential(*layers[:-1]), bucket_cap_mb=o.bucket_mb
    )
    if o.hook == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif o.hook == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=4, start_powerSGD_iter=3
        )
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    if o.zero:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), optimizer_class=torch.optim.SGD, lr=o.lr
        )
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=o.lr)

    x, y = common.data(o, rank, o.width, o.width)
    log = common.Log(o.quiet, rank)
    for i in range(o.steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        log.step(i, loss)
    log.end()
    common.stop()


if __name__ == "__main__":
    main()
