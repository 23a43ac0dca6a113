#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of Gloo: prints the table that `stepcast emulate --delay-model
table:FILE` reads (bytes as nccl-tests count them; cpu_us is CPU time of this
rank's process per operation). With --at-once K there are K in flight, as
DistributedDataParallel has with K buckets, and times are for one of them."""

import argparse
import time

import torch
import torch.distributed as dist


def operations(size, n):
    """Of `size` bytes each: name, function."""
    k = max(size // 4 // n, 1) * n
    x, y = torch.ones(k), torch.zeros(k)
    part = torch.ones(k // n)
    parts = list(y.chunk(n))
    first = dist.get_rank() == 0
    yield "all_reduce", lambda: dist.all_reduce(x, dist.ReduceOp.MAX, async_op=True)
    yield "broadcast", lambda: dist.broadcast(x, 0, async_op=True)
    yield "reduce", lambda: dist.reduce(x, 0, dist.ReduceOp.MAX, async_op=True)
    yield "all_gather", lambda: dist.all_gather(parts, part, async_op=True)
    yield "gather", lambda: dist.gather(part, parts if first else None, 0, async_op=True)
    yield "scatter", lambda: dist.scatter(part, parts if first else None, 0, async_op=True)
    yield "all_to_all", lambda: dist.all_to_all_single(y, x, async_op=True)


def measure(starts, o):
    """Median time, mean CPU time of one of the calls, in microseconds."""

    def run():
        for work in [start() for start in starts]:
            work.wait()

    for _ in range(o.warm_up):
        run()
    times, cpu = [], 0.0
    for _ in range(o.repeat):
        dist.barrier()
        c, t = time.process_time(), time.perf_counter()
        run()
        times.append(time.perf_counter() - t)
        cpu += time.process_time() - c
    each = 1e6 / len(starts)
    return sorted(times)[len(times) // 2] * each, cpu / o.repeat * each


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--sizes", default="4,1024,16384,262144,1048576,4194304,16777216")
    p.add_argument("--repeat", type=int, default=30)
    p.add_argument("--warm-up", type=int, default=5)
    p.add_argument("--at-once", type=int, default=1)
    p.add_argument("--only", help="operations, with commas between")
    p.add_argument("-o", "--output", help="file instead of stdout")
    o = p.parse_args()
    dist.init_process_group("gloo")
    n, rows = dist.get_world_size(), []
    if not o.only or "barrier" in o.only.split(","):
        rows.append(("barrier", 0, *measure([lambda: dist.barrier(async_op=True)], o)))
    for size in [int(s) for s in o.sizes.split(",")]:
        several = zip(*[operations(size, n) for _ in range(o.at_once)])
        for calls in several:
            name = calls[0][0]
            if o.only and name not in o.only.split(","):
                continue
            k = max(size // 4 // n, 1) * n * 4
            rows.append((name, k, *measure([start for _, start in calls], o)))
    if dist.get_rank() == 0:
        lines = ["op,ranks,bytes,time_us,cpu_us"]
        lines += ["%s,%d,%d,%.3f,%.3f" % (r[0], n, *r[1:]) for r in rows]
        text = "\n".join(lines) + "\n"
        if o.output:
            with open(o.output, "w") as f:
                f.write(text)
        else:
            print(text, end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
