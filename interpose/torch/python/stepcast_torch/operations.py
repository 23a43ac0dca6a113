# SPDX-License-Identifier: Apache-2.0
"""c10d's operations in terms of the library: what each sends and receives.

Arguments have the names of the operators' schemas (torch/csrc/distributed/c10d/
Ops.cpp); opposite to them, a reduction is a word of library.REDUCES. All
functions return torch's Work."""

import ctypes
import time

import torch
from . import library, works

_types = {
    torch.uint8: "u8",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.complex64: "f32",
    torch.complex128: "f64",
    torch.bool: "u8",
}
_logical = {"sum": "lor", "max": "lor", "product": "land", "min": "land"}
_numbers = {name: i for i, name in enumerate(library.TYPES)}
_reduces = {name: i for i, name in enumerate(library.REDUCES)}
_colls = {name: i for i, name in enumerate(library.COLLS)}


def _size(t):
    return t.numel() * t.element_size()


def _blocks(parts):
    """Of (address, length) pairs."""
    flat = [x for part in parts for x in part]
    return (ctypes.c_uint64 * max(len(flat), 1))(*flat)


def _whole(t):
    return [(t.data_ptr(), _size(t))]


def _each(ts):
    return [(t.data_ptr(), _size(t)) for t in ts]


def _split(t, n):
    """Equal parts of a contiguous tensor, one after the other."""
    at, part = t.data_ptr(), _size(t) // n
    return [(at + i * part, part) for i in range(n)]


class _Operation:
    """One operation while it is put together."""

    def __init__(self, group, coll, result, timeout=-1):
        self.group, self.coll, self.result = group, coll, result
        self.timeout = group.timeout if timeout is None or timeout < 0 else timeout
        self.held, self.copies = [], []
        self.in_, self.out = [], []
        self.type = self.reduce = None
        self.after = None

    def source(self, t):
        """A contiguous tensor with its data."""
        t = t.detach().contiguous()
        self.held.append(t)
        self.type = self.type or t.dtype
        return t

    def target(self, t):
        """A contiguous tensor whose data become those of `t`."""
        d = t.detach()
        c = d if d.is_contiguous() else d.contiguous()
        if c is not d:
            self.copies.append((d, c))
        self.held.append(c)
        self.type = self.type or t.dtype
        return c

    def _finish(self):
        for to, value in self.copies:
            to.copy_(value)
        if self.after:
            self.after()

    def post(self, bytes_=0, root=0, tag=0):
        least = -1 if self.coll == "recv" else 0  # from any rank
        if not least <= root < self.group.n:
            raise RuntimeError(
                "%s: the group of %d ranks has no rank %d" % (self.coll, self.group.n, root)
            )
        call = library.Call()
        call.coll = _colls[self.coll]
        call.root, call.tag, call.bytes = root, tag, bytes_
        reduce = self.reduce or "sum"
        if self.type is torch.bool:
            reduce = _logical.get(reduce, reduce)
        call.type = _numbers[_types.get(self.type, "bytes")]
        call.reduce = _reduces[reduce]
        in_, out = _blocks(self.in_), _blocks(self.out)
        call.n_in, call.n_out = len(self.in_), len(self.out)
        call.in_, call.out = ctypes.addressof(in_), ctypes.addressof(out)
        call.timeout, call.stream = self.timeout, self.group.stream
        after = self._finish if self.copies or self.after else None
        return works.post(
            self.group.members, call, self.coll, self.result, self.held, after
        )


def _one(tensors, what):
    if len(tensors) != 1:
        raise RuntimeError("%s: one tensor is expected, not %d" % (what, len(tensors)))
    return tensors[0]


# ---- reductions --------------------------------------------------------------


def allreduce_(g, tensors, reduce_op="sum", timeout=-1, **_):
    t = _one(tensors, "all_reduce")
    if t.layout is not torch.strided:
        return _allreduce_sparse(g, t, tensors, reduce_op, timeout)
    o = _Operation(g, "all_reduce", tensors, timeout)
    o.in_ = o.out = _whole(o.target(t))
    o.reduce = reduce_op
    return o.post(o.in_[0][1])


def allreduce_coalesced_(g, tensors, reduce_op="sum", timeout=-1, **_):
    if len({t.dtype for t in tensors}) != 1:
        raise RuntimeError("all_reduce_coalesced: tensors of one type are expected")
    o = _Operation(g, "all_reduce", tensors, timeout)
    flat = _pack(o, tensors)
    o.in_ = o.out = _whole(flat)
    o.reduce = reduce_op
    _unpack(o, tensors, flat)
    return o.post(_size(flat))


def _allreduce_sparse(g, t, tensors, reduce_op, timeout):
    """As Gloo does it: everyone gets all elements, and adds them."""
    if reduce_op != "sum":
        raise RuntimeError("all_reduce: sparse tensors can only be added")
    t = t.coalesce()
    counts = torch.empty(g.n, dtype=torch.int64)
    own = torch.tensor([t._nnz()])
    works.wait(_allgather_base_(g, counts, own, timeout))
    most = int(counts.max())

    def padded(x):
        p = x.new_zeros((most,) + x.shape[1:])
        p[: x.shape[0]] = x
        return p

    indices, values = padded(t.indices().t()), padded(t.values())
    all_indices = indices.new_empty((g.n,) + indices.shape)
    all_values = values.new_empty((g.n,) + values.shape)
    works.wait(_allgather_base_(g, all_indices, indices, timeout))
    o = _Operation(g, "all_gather", tensors, timeout)
    o.in_ = _whole(o.source(values))
    o.out = _split(o.target(all_values), g.n)

    def add():
        i = torch.cat([all_indices[r, : counts[r]] for r in range(g.n)]).t()
        v = torch.cat([all_values[r, : counts[r]] for r in range(g.n)])
        tensors[0].copy_(torch.sparse_coo_tensor(i, v, t.shape).coalesce())

    o.after = add
    return o.post(_size(all_values))


def reduce_(g, tensors, reduce_op="sum", root_rank=0, timeout=-1, **_):
    o = _Operation(g, "reduce", tensors, timeout)
    o.in_ = o.out = _whole(o.target(_one(tensors, "reduce")))
    o.reduce = reduce_op
    return o.post(o.in_[0][1], root_rank)


def reduce_scatter_(g, output_tensors, input_tensors, reduce_op="sum", timeout=-1, **_):
    o = _Operation(g, "reduce_scatter", output_tensors, timeout)
    parts = [o.source(t) for t in _one(input_tensors, "reduce_scatter")]
    o.in_ = _each(parts)
    o.out = _whole(o.target(_one(output_tensors, "reduce_scatter")))
    o.reduce = reduce_op
    return o.post(sum(n for _, n in o.in_))


def _reduce_scatter_base_(
    g, output_tensor, input_tensor, reduce_op="sum", timeout=-1, **_
):
    if input_tensor.numel() != output_tensor.numel() * g.n:
        raise RuntimeError(
            "reduce_scatter_tensor: the input has not %d times the size of the output"
            % g.n
        )
    o = _Operation(g, "reduce_scatter", [output_tensor], timeout)
    o.in_ = _split(o.source(input_tensor), g.n)
    o.out = _whole(o.target(output_tensor))
    o.reduce = reduce_op
    return o.post(_size(input_tensor))


def reduce_scatter_tensor_coalesced_(
    g, outputs, inputs, reduce_op="sum", timeout=-1, **_
):
    o = _Operation(g, "reduce_scatter", outputs, timeout)
    rows = torch.cat([t.detach().reshape(g.n, -1) for t in inputs], 1)
    o.in_ = _split(o.source(rows), g.n)
    flat = rows.new_empty(rows.shape[1])
    o.out = _whole(o.target(flat))
    o.reduce = reduce_op
    _unpack(o, outputs, flat)
    return o.post(_size(rows))


# ---- several tensors as one ---------------------------------------------------


def _pack(o, tensors):
    flat = torch.cat([t.detach().reshape(-1) for t in tensors])
    return o.source(flat)


def _bytes_of(tensors):
    return torch.cat(
        [t.detach().contiguous().view(-1).view(torch.uint8) for t in tensors]
    )


def _unpack(o, tensors, flat):
    def after():
        at = 0
        for t in tensors:
            t.detach().copy_(flat[at : at + t.numel()].view(t.shape))
            at += t.numel()

    o.after = after


# ---- gathers -------------------------------------------------------------------


def allgather_(g, output_tensors, input_tensors, timeout=-1, **_):
    o = _Operation(g, "all_gather", output_tensors, timeout)
    t = o.source(_one(input_tensors, "all_gather"))
    outs = _one(output_tensors, "all_gather")
    if len(outs) != g.n:
        raise RuntimeError(
            "all_gather: %d tensors for a group of %d ranks" % (len(outs), g.n)
        )
    if any(x.dtype != t.dtype for x in outs):
        raise RuntimeError("all_gather: tensors of one type are expected")
    o.in_ = _whole(t)
    o.out = _each([o.target(x) for x in outs])
    return o.post(_size(t) * g.n)


def _allgather_base_(g, output_tensor, input_tensor, timeout=-1, **_):
    if output_tensor.numel() != input_tensor.numel() * g.n:
        raise RuntimeError(
            "all_gather_into_tensor: the output has not %d times the size of the input"
            % g.n
        )
    o = _Operation(g, "all_gather", [output_tensor], timeout)
    o.in_ = _whole(o.source(input_tensor))
    o.out = _split(o.target(output_tensor), g.n)
    return o.post(_size(input_tensor) * g.n)


def allgather_coalesced_(g, output_lists, input_list, timeout=-1, **_):
    o = _Operation(g, "all_gather", output_lists, timeout)
    same = len({t.dtype for t in input_list}) == 1
    flat = o.source(_pack(o, input_list) if same else _bytes_of(input_list))
    o.type = flat.dtype if same else None
    rows = flat.new_empty((g.n, flat.numel()))
    o.in_ = _whole(flat)
    o.out = _split(o.target(rows), g.n)

    def after():
        for row, tensors in zip(rows, output_lists):
            at = 0
            for t in tensors:
                n = t.numel() if same else _size(t)
                t.detach().copy_(row[at : at + n].view(t.dtype).view(t.shape))
                at += n

    o.after = after
    return o.post(_size(rows))


def allgather_into_tensor_coalesced_(g, outputs, inputs, timeout=-1, **_):
    lists = [
        [x.view(i.shape) for x, i in zip(row, inputs)]
        for row in zip(*(t.detach().view(g.n, -1) for t in outputs))
    ]
    return allgather_coalesced_(g, lists, inputs, timeout)


def gather_(g, output_tensors, input_tensors, root_rank=0, timeout=-1, **_):
    o = _Operation(g, "gather", output_tensors, timeout)
    t = o.source(_one(input_tensors, "gather"))
    o.in_ = _whole(t)
    if root_rank == g.me:
        o.out = _each([o.target(x) for x in _one(output_tensors, "gather")])
    return o.post(_size(t) * g.n, root_rank)


# ---- from one, from all -------------------------------------------------------


def broadcast_(g, tensors, root_rank=0, timeout=-1, **_):
    o = _Operation(g, "broadcast", tensors, timeout)
    o.out = _whole(o.target(_one(tensors, "broadcast")))
    return o.post(o.out[0][1], root_rank)


def scatter_(g, output_tensors, input_tensors, root_rank=0, timeout=-1, **_):
    o = _Operation(g, "scatter", output_tensors, timeout)
    t = o.target(_one(output_tensors, "scatter"))
    o.out = _whole(t)
    if root_rank == g.me:
        o.in_ = _each([o.source(x) for x in _one(input_tensors, "scatter")])
    return o.post(_size(t) * g.n, root_rank)


def alltoall_(g, output_tensors, input_tensors, timeout=-1, **_):
    o = _Operation(g, "all_to_all", output_tensors, timeout)
    o.in_ = _each([o.source(t) for t in input_tensors])
    o.out = _each([o.target(t) for t in output_tensors])
    return o.post(_most(o, g))


def _most(o, g):
    return g.n * max([n for _, n in o.in_] + [n for _, n in o.out] + [0])


def _rows(t, sizes, g):
    if not sizes:
        if t.dim() and t.shape[0] % g.n:
            raise RuntimeError("all_to_all: the tensor is not divisible by %d" % g.n)
        return _split(t, g.n)
    if len(sizes) != g.n or sum(sizes) != t.shape[0]:
        raise RuntimeError("all_to_all: the split sizes do not fit the tensor")
    row = _size(t) // t.shape[0] if t.shape[0] else 0
    parts, at = [], t.data_ptr()
    for n in sizes:
        parts.append((at, n * row))
        at += n * row
    return parts


def alltoall_base_(
    g, output, input, output_split_sizes=(), input_split_sizes=(), timeout=-1, **_
):
    o = _Operation(g, "all_to_all", [output], timeout)
    o.in_ = _rows(o.source(input), input_split_sizes, g)
    o.out = _rows(o.target(output), output_split_sizes, g)
    return o.post(_most(o, g))


def barrier(g, timeout=-1, **_):
    return _Operation(g, "barrier", [], timeout).post()


# ---- messages -----------------------------------------------------------------


def send(g, tensors, dst, tag=0, timeout=-1, **_):
    o = _Operation(g, "send", tensors, timeout)
    o.in_ = _whole(o.source(_one(tensors, "send")))
    return o.post(o.in_[0][1], dst, tag)


def recv_(g, tensors, src, tag=0, timeout=-1, **_):
    o = _Operation(g, "recv", tensors, timeout)
    o.out = _whole(o.target(_one(tensors, "recv")))
    return o.post(o.out[0][1], src, tag)


def recv_any_source_(g, tensors, tag=0, **_):
    return recv_(g, tensors, -1, tag)


_MONITOR = 0x7FFFFFFF  # a tag that no program has


def monitored_barrier_(g, timeout=-1, wait_all_ranks=False, **_):
    """As Gloo does it: rank 0 hears of all others, one by one, and answers."""
    ms = g.timeout if timeout < 0 else timeout
    none, who = [torch.empty(0)], "[Rank %d]: " % g.me
    if g.me != 0:
        try:
            works.wait(send(g, none, 0, _MONITOR, ms))
            works.wait(recv_(g, none, 0, _MONITOR, ms))
        except RuntimeError as e:
            raise RuntimeError(
                who + "Rank %d successfully reached monitoredBarrier, but received "
                "errors while waiting for send/recv from rank 0. Please check rank 0 "
                "logs for faulty rank. (%s)" % (g.me, e)
            ) from None
        return
    end, failed = time.monotonic() + ms / 1000, []
    for r in range(1, g.n):
        left = int((end - time.monotonic()) * 1000)
        if left <= 0 and not wait_all_ranks:
            raise RuntimeError(
                who + "Rank 0 timed out in monitoredBarrier after %d ms." % ms
            )
        try:
            works.wait(recv_(g, none, r, _MONITOR, max(left, 0)))
        except RuntimeError:
            failed.append(str(r))
            if not wait_all_ranks:
                break
    if failed:
        raise RuntimeError(
            who + "%s %s failed to pass monitoredBarrier in %d ms"
            % ("Ranks" if len(failed) > 1 else "Rank", ", ".join(failed), ms)
        )
    for r in range(1, g.n):
        works.wait(send(g, none, r, _MONITOR, ms))
