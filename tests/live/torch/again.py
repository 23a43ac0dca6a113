#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""again.py - makes and destroys all groups several times."""

import torch
import torch.distributed as dist

for k in range(3):
    dist.init_process_group("gloo")
    t = torch.tensor([1.0 + 10**k * dist.get_rank()])
    dist.all_reduce(t)
    dist.barrier(dist.new_group([0, 1]))
    print("rank", dist.get_rank(), "round", k, t.item(), flush=True)
    dist.destroy_process_group()
