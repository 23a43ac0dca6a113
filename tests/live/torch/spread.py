#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small trainings with each communication hook, one per seed, every rank on a
shard of its own: prints the loss on data that no rank has trained on."""

import time

import torch
from torch import nn
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

SEEDS, STEPS, WIDTH, BATCH = 8, 30, 32, 32


def model(hook):
    torch.manual_seed(5)
    m = DistributedDataParallel(
        nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    )
    if hook == "fp16":
        m.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif hook == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=2, start_powerSGD_iter=2
        )
        m.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return m


def batch(seed, n):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, WIDTH, generator=g)
    return x, torch.sin(x[:, :4].sum(1, keepdim=True))


dist.init_process_group("gloo")
for hook in ["none", "fp16", "powersgd"]:
    for seed in range(SEEDS):
        m = model(hook)
        optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
        for step in range(STEPS):
            x, y = batch(1000 * seed + 10 * step + dist.get_rank(), BATCH)
            optimizer.zero_grad()
            nn.functional.mse_loss(m(x), y).backward()
            optimizer.step()
        x, y = batch(999999, 512)
        with torch.no_grad():
            print(hook, "%.6f" % nn.functional.mse_loss(m(x), y), flush=True)
dist.barrier()
time.sleep(0.1)  # see stop() of examples/emulate/torch/common.py
dist.destroy_process_group()
