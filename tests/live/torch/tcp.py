#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins a world by an address of its own."""

import os

import torch
import torch.distributed as dist

dist.init_process_group(
    "gloo",
    init_method="tcp://127.0.0.1:29531",
    rank=int(os.environ["RANK"]),
    world_size=int(os.environ["WORLD_SIZE"]),
)
t = torch.ones(1)
dist.all_reduce(t)
print("sum %d" % t.item(), flush=True)
