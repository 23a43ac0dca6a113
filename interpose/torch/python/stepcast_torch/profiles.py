# SPDX-License-Identifier: Apache-2.0
"""Events of PyTorch's profiler, which for Gloo are made by its own code in C++
("gloo:all_reduce", with shapes): the same calls are made to Gloo of one rank, and
for messages to a second one in this process."""

import functools
import threading

import torch
from torch._C import _distributed_c10d as c10d

_alone = {
    "allreduce_": lambda b, a: b.allreduce(a["tensors"]),
    "allreduce_coalesced_": lambda b, a: b.allreduce_coalesced(a["tensors"]),
    "broadcast_": lambda b, a: b.broadcast(a["tensors"], c10d.BroadcastOptions()),
    "reduce_": lambda b, a: b.reduce(a["tensors"], c10d.ReduceOptions()),
    "allgather_": lambda b, a: b.allgather(
        [a["output_tensors"][0][:1]], a["input_tensors"]
    ),
    "allgather_coalesced_": lambda b, a: b.allgather_coalesced(
        a["output_lists"][:1], a["input_list"]
    ),
    "gather_": lambda b, a: b.gather(
        [[t.clone() for t in a["input_tensors"]]],
        a["input_tensors"],
        c10d.GatherOptions(),
    ),
    "alltoall_base_": lambda b, a: b.alltoall_base(
        a["input"].clone(), a["input"], [], []
    ),
    "barrier": lambda b, a: b.barrier(),
}

# Of a pair: what this thread calls, and what another one does, which no profiler
# follows.
_messages = {
    "send": (lambda b, ts: b.send(ts, 1, 0), lambda b, ts: b.recv(ts, 0, 0)),
    "recv_": (lambda b, ts: b.recv(ts, 1, 0), lambda b, ts: b.send(ts, 0, 0)),
    "recv_any_source_": (
        lambda b, ts: b.recv_anysource(ts, 0),
        lambda b, ts: b.send(ts, 0, 0),
    ),
}
_pair = {}
_make = c10d.ProcessGroupGloo.__init__


def _gloo(store, rank, size):
    kind = c10d.ProcessGroupGloo
    options = kind._Options()
    options._devices = [kind.create_device(interface="lo")]
    self = kind.__new__(kind)
    _make(self, store, rank, size, options)
    return self


@functools.lru_cache(None)
def _one():
    return _gloo(c10d.HashStore(), 0, 1)


def _beside(f):
    t = threading.Thread(target=f, daemon=True)
    t.start()
    return t


def _make_pair():
    store = c10d.HashStore()

    def join(rank):
        _pair[rank] = _gloo(store, rank, 2)

    other = _beside(lambda: join(1))
    join(0)
    other.join()


def note(name, a):
    run = _alone.get(name)
    if run is not None:
        run(_one(), a).wait()
    if name in _messages:
        if not _pair:
            _make_pair()
        own, others = _messages[name]
        mine, its = ([torch.zeros_like(t) for t in a["tensors"]] for _ in "ab")
        other = _beside(lambda: others(_pair[1], its).wait())
        own(_pair[0], mine).wait()
        other.join()
