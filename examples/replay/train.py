#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training of two small models, timed without a profiler and then
recorded by PyTorch's own.

The world comes from the environment (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT).
Each rank writes NAME-rankN.json, what the profiler exports, and
NAME-rankN.steps.json, the times of its steps: before and after the recording
without a profiler, and between them with it.
"""

import argparse
import json
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule


class Mlp(nn.Module):
    """Six layers of 1,024 x 1,024: many gradients for little computation."""

    def __init__(self, width=1024, layers=6):
        super().__init__()
        parts = []
        for _ in range(layers):
            parts += [nn.Linear(width, width), nn.ReLU()]
        self.layers = nn.Sequential(*parts[:-1])
        self.width = width

    def batch(self, n, g):
        x = torch.randn(n, self.width, generator=g)
        return x, torch.tanh(x.roll(1, 1))

    def forward(self, x, y):
        return nn.functional.mse_loss(self.layers(x), y)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, mask):
        n, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, -1).unbind(2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        score = q @ k.transpose(2, 3) * (w // self.heads) ** -0.5 + mask
        mixed = (score.softmax(-1) @ v).transpose(1, 2).reshape(n, t, w)
        x = x + self.out(mixed)
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """A decoder of two blocks: much computation for few gradients."""

    def __init__(self, width=384, heads=6, layers=2, vocab=1024, seq=128):
        super().__init__()
        self.vocab, self.seq = vocab, seq
        self.tokens = nn.Embedding(vocab, width)
        self.places = nn.Embedding(seq, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        mask = torch.full((seq, seq), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def batch(self, n, g):
        ids = torch.randint(self.vocab, (n, self.seq + 1), generator=g)
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def forward(self, x, y):
        h = self.tokens(x) + self.places.weight
        for block in self.blocks:
            h = block(h, self.mask)
        logits = self.head(self.norm(h))
        return nn.functional.cross_entropy(logits.view(-1, self.vocab), y.view(-1))


MODELS = {"mlp": Mlp, "gpt": Gpt}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", choices=MODELS, required=True)
    p.add_argument("--batch", type=int, required=True, help="samples per rank")
    p.add_argument("--bucket-mb", type=float, default=4)
    p.add_argument("--warm-up", type=int, default=4)
    p.add_argument("--plain", type=int, default=16, help="steps without a profiler, twice")
    p.add_argument("--recorded", type=int, default=8)
    p.add_argument("-o", "--output", required=True, metavar="NAME")
    o = p.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = MODELS[o.model]()
    g = torch.Generator().manual_seed(1 + rank)
    x, y = net.batch(o.batch, g)
    # While shapes are recorded, the profiler holds references to gradients, so that
    # AccumulateGrad would copy what it otherwise takes over. Gradients that stay where
    # they are, and are added to, cost the same with and without a profiler.
    model = DistributedDataParallel(
        net, bucket_cap_mb=o.bucket_mb, gradient_as_bucket_view=True
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = model(x, y)
        loss.backward()
        optimizer.step()

    def timed(n, after=lambda: None):
        ms = []
        last = time.perf_counter()
        for _ in range(n):
            step()
            after()
            now = time.perf_counter()
            ms.append((now - last) * 1e3)
            last = now
        return ms

    out = {"model": o.model, "batch": o.batch, "rank": rank, "torch": torch.__version__}
    out["parameters"] = sum(p.numel() for p in net.parameters())
    timed(o.warm_up)
    dist.barrier()
    out["before_ms"] = timed(o.plain)
    trace = f"{o.output}-rank{rank}.json"
    waits, warm_up = 1, 2
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=waits, warmup=warm_up, active=o.recorded, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(trace),
        record_shapes=True,
    ) as p:
        recorded = timed(waits + warm_up + o.recorded, p.step)
    # the last one includes the export
    out["profiled_ms"] = recorded[waits + warm_up : -1]
    dist.barrier()
    timed(2)
    out["after_ms"] = timed(o.plain)
    with open(f"{o.output}-rank{rank}.steps.json", "w") as f:
        json.dump(out, f)
    dist.barrier()
    time.sleep(0.1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
