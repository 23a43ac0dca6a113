# SPDX-License-Identifier: Apache-2.0
"""Releases of PyTorch whose groups do not dispatch by device (1.13, 2.0): the
group itself is written in Python, which C++ calls as its base class."""

import datetime
import inspect

import torch
from torch._C import _distributed_c10d as c10d

from . import groups, library, operations, profiles


def _list(x):
    return [x] if isinstance(x, torch.Tensor) else x


def _options(opts):
    """The arguments of an operator that a call's options hold."""
    a = {}
    if opts is None:
        return a
    reduce = getattr(opts, "reduceOp", None)
    if isinstance(opts, (c10d.ReduceOp, getattr(c10d.ReduceOp, "RedOpType", ()))):
        reduce = opts
    if reduce is not None:
        a["reduce_op"] = groups.reduce_name(reduce)
    if isinstance(opts, int):
        a["root_rank"] = opts
    elif hasattr(opts, "rootRank"):
        a["root_rank"] = opts.rootRank
    timeout = getattr(opts, "timeout", None)
    if timeout is not None and timeout != c10d._DEFAULT_NO_TIMEOUT:
        a["timeout"] = int(timeout.total_seconds() * 1000)
    return a


def _note(run, args):
    names = list(inspect.signature(run).parameters)[1:]
    profiles.note(run.__name__, dict(zip(names, args)))


def _moving(run):
    return lambda self, outputs, inputs, opts=None: self._run(run, outputs, inputs, opts=opts)


class Gloo(c10d.ProcessGroup):
    def __init__(self, store, rank, size, timeout=None):
        super().__init__(rank, size)
        self._sequence = 0

    def _run(self, run, *args, opts=None, **named):
        lib = library.get()
        lib.enter()
        try:
            self._sequence += 1
            if torch.autograd._profiler_enabled():
                _note(run, args)
            return run(groups.group_of(self), *args, **_options(opts), **named)
        finally:
            lib.leave()

    def getBackendName(self):
        """For C++, which takes a group of the name "gloo" for Gloo's class."""
        return "emulated gloo"

    def name(self):
        return "gloo"

    _get_backend_name = name

    def _set_sequence_number_for_group(self):
        pass

    def _get_sequence_number_for_group(self):
        return self._sequence

    def allreduce(self, tensors, opts=None):
        return self._run(operations.allreduce_, _list(tensors), opts=opts)

    def allreduce_coalesced(self, tensors, opts=None):
        return self._run(operations.allreduce_coalesced_, tensors, opts=opts)

    def reduce(self, tensors, opts=None, op=None):
        named = {} if op is None else {"reduce_op": groups.reduce_name(op)}
        return self._run(operations.reduce_, _list(tensors), opts=opts, **named)

    def broadcast(self, tensors, opts=None):
        return self._run(operations.broadcast_, _list(tensors), opts=opts)

    def allgather(self, outputs, inputs, opts=None):
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        return self._run(operations.allgather_, outputs, inputs, opts=opts)

    allgather_coalesced = _moving(operations.allgather_coalesced_)
    _allgather_base = _moving(operations._allgather_base_)
    gather = _moving(operations.gather_)
    scatter = _moving(operations.scatter_)
    reduce_scatter = _moving(operations.reduce_scatter_)
    _reduce_scatter_base = _moving(operations._reduce_scatter_base_)
    alltoall = _moving(operations.alltoall_)

    def alltoall_base(self, output, input, outs, ins, opts=None):
        return self._run(
            operations.alltoall_base_, output, input, list(outs), list(ins), opts=opts
        )

    def barrier(self, opts=None):
        return self._run(operations.barrier, opts=opts)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        if isinstance(timeout, datetime.timedelta):
            timeout = timeout.total_seconds()
        ms = -1 if timeout is None else int(timeout * 1000)
        self._run(operations.monitored_barrier_, timeout=ms)

    def send(self, tensors, to, tag=0):
        return self._run(operations.send, tensors, to, tag)

    def recv(self, tensors, source, tag=0):
        return self._run(operations.recv_, tensors, source, tag)

    def recv_anysource(self, tensors, tag=0):
        return self._run(operations.recv_any_source_, tensors, tag)


def install(module):
    module.ProcessGroupGloo = Gloo
    module._create_process_group_wrapper = lambda wrapped_pg, *a, **k: wrapped_pg
    if hasattr(c10d, "ProcessGroupNCCL"):
        groups.note_calls(c10d, c10d.ProcessGroupNCCL)
