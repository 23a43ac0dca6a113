# SPDX-License-Identifier: Apache-2.0
"""spawn.py WORLD [INIT] - as tutorials start ranks: one script starts all."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def demo(rank, world, init):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", init_method=init, rank=rank, world_size=world)
    x = torch.tensor([rank + 1.0])
    dist.all_reduce(x)
    # in one piece: all ranks write to the same pipe
    sys.stdout.write(f"rank {rank} of {dist.get_world_size()}: {x.item()}\n")
    sys.stdout.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    n = int(sys.argv[1])
    mp.spawn(demo, args=(n, sys.argv[2] if len(sys.argv) > 2 else None), nprocs=n)
