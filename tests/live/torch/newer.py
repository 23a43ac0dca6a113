#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""newer.py HOW - a few training steps with what PyTorch 2 has: ddp, fsdp, tp, pp,
mixed. Prints "HOW rank R step S loss L"."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

how = sys.argv[1]
same = len(sys.argv) > 2  # all ranks have the same data
dist.init_process_group(None if how == "mixed" else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank if how == "pp" else 0)


def layers(width, n=3):
    return nn.Sequential(
        *[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(n)]
    )


def data(step, width=64):
    torch.manual_seed(1000 * step + (0 if same or how in ("tp", "pp") else rank))
    return torch.randn(16, width)


def show(step, loss=None):
    text = "" if loss is None else " loss %.9f" % loss
    print("%s rank %d step %d%s" % (how, rank, step, text), flush=True)


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for step in range(4):
        x = data(step)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        show(step, mean.item() / size)


def ddp():
    train(nn.parallel.DistributedDataParallel(layers(64), bucket_cap_mb=0.02))


mixed = ddp


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel

    cpu = torch.device("cpu")
    parts = [FullyShardedDataParallel(x, device_id=cpu) for x in layers(64)]
    train(FullyShardedDataParallel(nn.Sequential(*parts), device_id=cpu))


def tp():
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    train(parallelize_module(model, mesh["tp"], plan))


def pp():
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    stage = PipelineStage(layers(32, 1), rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(
        stage, 4, loss_fn=lambda out, to: (out - to).square().mean()
    )
    optimizer = torch.optim.SGD(stage.submod.parameters(), 0.05)
    for step in range(4):
        x, losses = data(step, 32), []
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(x)
        elif rank == size - 1:
            schedule.step(target=x, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        show(step, sum(x.item() for x in losses) / len(losses) if losses else None)


globals()[how]()
dist.barrier()
os._exit(0)
