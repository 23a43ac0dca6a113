# SPDX-License-Identifier: Apache-2.0
"""What the scripts share: nothing here knows of emulation."""

import argparse
import time

import torch
import torch.distributed as dist


def options(doc, **defaults):
    """A parser with the options that all scripts have."""
    p = argparse.ArgumentParser(description=doc)
    p.add_argument("--steps", type=int, default=defaults.get("steps", 10))
    p.add_argument("--batch", type=int, default=defaults.get("batch", 64))
    p.add_argument("--width", type=int, default=defaults.get("width", 1024))
    p.add_argument("--layers", type=int, default=defaults.get("layers", 6))
    p.add_argument("--lr", type=float, default=defaults.get("lr", 0.05))
    p.add_argument(
        "--shards",
        action="store_true",
        help="every rank reads data of its own (else all read the same)",
    )
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--quiet", action="store_true", help="only the last line")
    return p


def start(seed):
    """Joins the world that the environment names; the rank and its size."""
    torch.manual_seed(seed)
    dist.init_process_group("gloo", init_method="env://")
    return dist.get_rank(), dist.get_world_size()


def stop():
    """Leaves the world.  torch 1.13 waits for its threads while it holds
    Python's lock, which a thread that drops a hook of Python's needs: they are
    given time to do so."""
    dist.barrier()
    time.sleep(0.1)
    dist.destroy_process_group()


def data(o, rank, n_in, n_out):
    """One batch for ever, of a fixed random function."""
    g = torch.Generator().manual_seed(o.seed + 1)
    mix = torch.randn(n_in, n_out, generator=g) / n_in**0.5
    g = torch.Generator().manual_seed(o.seed + 2 + (rank if o.shards else 0))
    x = torch.randn(o.batch, n_in, generator=g)
    return x, torch.tanh(x @ mix)


class Log:
    """Prints each step on the first rank that prints at all."""

    def __init__(self, quiet, rank):
        self.quiet, self.rank, self.ms = quiet, rank, []
        self.last = time.perf_counter()

    def step(self, i, loss):
        now = time.perf_counter()
        self.ms.append((now - self.last) * 1e3)
        self.last = now
        self.loss = float(loss)
        if not self.quiet:
            print(
                f"rank {self.rank} step {i} ms {self.ms[-1]:.3f} loss {self.loss:.6f}",
                flush=True,
            )

    def end(self):
        ms = sorted(self.ms[1:] or self.ms)
        print(
            f"rank {self.rank} median_ms {ms[len(ms) // 2]:.3f} loss {self.loss:.6f}",
            flush=True,
        )
