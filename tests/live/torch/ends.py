#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ends.py HOW - goes wrong in one of several ways, or ends early (then)."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

how = sys.argv[1]
size = 2 if how == "wrong" else int(os.environ["WORLD_SIZE"])
dist.init_process_group(
    "gloo", world_size=size, timeout=datetime.timedelta(seconds=2)
)
for i in range(5):
    t = torch.ones(8)
    w = dist.all_reduce(t, async_op=True)
    if how == "abort" and i == 2:
        os.abort()
    w.wait()
if how == "then":  # while a future is completed
    w = dist.all_reduce(t, async_op=True)
    w.get_future().then(lambda f: time.sleep(0.6))
    time.sleep(0.2)
