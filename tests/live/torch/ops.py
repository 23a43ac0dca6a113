#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation of c10d's Gloo, on data that all ranks have alike: a line of
results each, which must not depend on who is real."""

import datetime
import sys
import time

import torch
import torch.distributed as dist

R = dist.ReduceOp
group = None


def show(name, *tensors):
    parts = []
    for t in tensors:
        v = t.double().flatten()
        parts.append(
            "%s%s sum %.6f max %.6f first %.6f"
            % (str(t.dtype)[6:], list(t.shape), v.sum(), v.max(), v[0])
            if v.numel()
            else "empty"
        )
    print(name, "; ".join(parts), flush=True)


def numbers(dtype, n=37, start=1):
    t = torch.arange(start, start + n) % 5 + 1
    return (t.to(dtype) if not dtype.is_floating_point else (t / 4).to(dtype)) - 1


def reductions(n):
    floats = [torch.float16, torch.float32, torch.float64]
    ints = [torch.int8, torch.uint8, torch.int32, torch.int64]
    for dtype in floats + ints:
        for name in ["SUM", "PRODUCT", "MIN", "MAX"]:
            t = numbers(dtype)
            dist.all_reduce(t, getattr(R, name), group=group)
            show("all_reduce " + name, t)
    for dtype in ints:
        for name in ["BAND", "BOR", "BXOR"]:
            t = numbers(dtype)
            dist.all_reduce(t, getattr(R, name), group=group)
            show("all_reduce " + name, t)
    ts = [numbers(torch.float32), numbers(torch.float32, 12)]
    dist.all_reduce_coalesced(ts, group=group)
    show("all_reduce_coalesced", *ts)
    i = torch.tensor([[0, 2, 2], [1, 0, 1]])
    s = torch.sparse_coo_tensor(i, torch.tensor([1.0, 2.0, 3.0]), (3, 3))
    dist.all_reduce(s, group=group)
    show("all_reduce sparse", s.to_dense())
    t = numbers(torch.float32)
    dist.reduce(t, members[0], group=group)
    if rank == members[0]:
        show("reduce", t)


def gathers(n):
    t = numbers(torch.float32)
    out = [torch.zeros(37) for _ in range(n)]
    dist.all_gather(out, t, group=group)
    show("all_gather", *out[:3])
    outs = [[torch.zeros(37), torch.zeros(5)] for _ in range(n)]
    dist.all_gather_coalesced(outs, [t, numbers(torch.float32, 5)], group=group)
    show("all_gather_coalesced", *outs[0], *outs[-1])
    if rank == members[0]:
        out = [torch.zeros(37) for _ in range(n)]
        dist.gather(t, out, dst=members[0], group=group)
        show("gather", *out[:3])
    else:
        dist.gather(t, dst=members[0], group=group)
    objects = [None] * n
    dist.all_gather_object(objects, {"a": 1, "b": [1, 2]}, group=group)
    print("all_gather_object", objects[0], objects[-1], flush=True)
    objects = ["x", {"y": 2}] if rank == members[0] else [None, None]
    dist.broadcast_object_list(objects, src=members[0], group=group)
    print("broadcast_object_list", objects, flush=True)


def exchanges(n):
    t = numbers(torch.float32)
    dist.broadcast(t, src=members[0], group=group)
    show("broadcast", t)
    t = numbers(torch.int32)
    dist.broadcast(t, src=members[-1], group=group)
    show("broadcast of the last", t)
    out = torch.zeros(37)
    if rank == members[0]:
        parts = [numbers(torch.float32) for _ in range(n)]
        dist.scatter(out, parts, src=members[0], group=group)
    else:
        dist.scatter(out, src=members[0], group=group)
    show("scatter", out)
    x = numbers(torch.float32, 4).repeat(n)
    out = torch.zeros(4 * n)
    dist.all_to_all_single(out, x, group=group)
    show("all_to_all_single", out)
    out = torch.zeros(3 * n)
    x = torch.ones(3 * n) * 2
    dist.all_to_all_single(out, x, [3] * n, [3] * n, group=group)
    show("all_to_all_single uneven", out)


def asynchronous(n):
    ts = [numbers(torch.float32, 1000 + i) for i in range(8)]
    works = [dist.all_reduce(t, async_op=True, group=group) for t in ts]
    for w in works:
        w.wait()
    show("all_reduce async", *ts[:2], ts[-1])
    t = numbers(torch.float32)
    f = dist.all_reduce(t, async_op=True, group=group).get_future()
    f = f.then(lambda f: f.value()[0] / 2)
    show("future", f.wait())
    t = numbers(torch.float32)
    w = dist.all_reduce(t, async_op=True, group=group)
    while not w.is_completed():
        pass
    w.wait()
    show("is_completed", t)


def messages(n):
    """Everyone sends to the next and receives from the one before."""
    at = members.index(rank)
    to, source = members[(at + 1) % n], members[at - 1]
    x, y = numbers(torch.float32, 50), torch.zeros(50)
    s = dist.isend(x, to, group=group, tag=3)
    r = dist.irecv(y, source, group=group, tag=3)
    s.wait()
    r.wait()
    show("irecv", y)
    s = dist.isend(x, to, group=group)
    y = torch.zeros(50)
    dist.recv(y, group=group)
    s.wait()
    show("recv of any", y)
    dist.barrier(group=group)
    dist.monitored_barrier(group=group, timeout=datetime.timedelta(seconds=60))
    print("barriers", flush=True)


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
members = list(range(size))
which = sys.argv[1] if len(sys.argv) > 1 else "world"
if which == "halves":
    for half in [list(range(size // 2)), list(range(size // 2, size))]:
        g = dist.new_group(half)
        if rank in half:
            group, members = g, half
for f in [reductions, gathers, exchanges, asynchronous, messages]:
    f(len(members))
dist.barrier()
time.sleep(0.1)  # see stop() of examples/emulate/torch/common.py
dist.destroy_process_group()
