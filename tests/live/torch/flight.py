#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flight.py - four all-reduces at once, waited for as works and as futures: prints
"WHAT ms T" of the fastest of five."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for what in "works", "futures":
    best = 1e9
    for _ in range(5):
        begin = time.perf_counter()
        works = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(4)]
        for w in works:
            w.wait() if what == "works" else w.get_future().wait()
        best = min(best, time.perf_counter() - begin)
    print("%s ms %.1f" % (what, 1e3 * best), flush=True)
