# SPDX-License-Identifier: Apache-2.0
"""train.py ddp|fsdp|graph - a few steps of a small model on NCCL, and what a
collective of a few sizes takes by CUDA events."""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn


def model():
    layers = []
    for _ in range(6):
        layers += [nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers).cuda()


def steps(net, n=20):
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.randn(64, 2048, device="cuda")
    times, loss = [], None
    for _ in range(n):
        torch.cuda.synchronize()
        t = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - t) * 1e3)
    times.sort()
    print(f"step: median {times[n // 2]:.3f} ms; loss {loss.item():.6f}")


def collectives():
    for kb in (4, 256, 16384):
        x = torch.ones(kb * 256, device="cuda")
        dist.all_reduce(x)
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        ms = []
        for _ in range(20):
            x.fill_(1)
            a.record()
            dist.all_reduce(x)
            b.record()
            torch.cuda.synchronize()
            ms.append(a.elapsed_time(b))
        ms.sort()
        right = bool((x == dist.get_world_size()).all())
        print(f"all_reduce {kb} KiB: {ms[10] * 1e3:.1f} us, sum "
              f"{'right' if right else 'WRONG'}")
        assert right


def graph():
    x = torch.ones(1 << 20, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(10):
            dist.all_reduce(x, op=dist.ReduceOp.MAX)
    a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        a.record()
        g.replay()
        b.record()
        torch.cuda.synchronize()
        print(f"graph of 10 all_reduce of 4 MiB: {a.elapsed_time(b):.3f} ms")


def main():
    mode = sys.argv[1]
    torch.manual_seed(1)
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    print(f"torch {torch.__version__}, rank {dist.get_rank()} of "
          f"{dist.get_world_size()}")
    if mode == "graph":
        graph()
    elif mode == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel
        steps(FullyShardedDataParallel(model()))
    else:
        collectives()
        steps(nn.parallel.DistributedDataParallel(model()))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
    main()
