# SPDX-License-Identifier: Apache-2.0
"""Process groups: their ranks, and how c10d's calls reach operations.

PyTorch dispatches calls by the device of their tensors to kernels in C++, which
ask the group for its backend. Kernels for the CPU are replaced by ours, so that
callers in C++ (DistributedDataParallel, functional collectives) arrive here,
too. No call reaches the backend that the group has besides. It is one in Python
that knows its rank and size, which newer releases ask; in older ones, where C++
allows no such class, it is Gloo with a single rank. Releases of PyTorch before
that dispatch (legacy) get a process group written in Python."""

import ctypes
import functools
import hashlib
import sys
import threading
import warnings
import weakref

from . import library

_groups = weakref.WeakKeyDictionary()  # torch's -> Group
_made = 0
_call = threading.local()  # .reduce: of the call that this thread makes


class Group:
    def __init__(self, pg, ranks, name, timeout):
        global _made
        lib = library.get()
        self.n, self.me = len(ranks), pg.rank()
        digest = hashlib.sha256(str(name).encode()).digest()
        instance = int.from_bytes(digest[:8], "little") | 1 if name else 0
        array = library.numbers(ranks)
        self.ranks, self.stream = ranks, _made
        self.set_timeout(timeout)
        self.members = lib.group(ctypes.addressof(array), self.n, instance)
        # For NCCL, which learns only their number.
        self.declared = library.declare(ranks)
        self.called = set()  # what has been called first, see _note_calls
        if not self.members:
            raise RuntimeError("stepcast: rank %d is not in the group" % lib.rank)
        _made += 1

    def set_timeout(self, timeout):
        self.timeout = int(timeout.total_seconds() * 1000)

    def pair(self, peer):
        """The group of this rank and another one, as NCCL has for messages."""
        ranks = [self.ranks[i] for i in sorted((self.me, peer))]
        return library.declare(ranks)


def group_of(pg):
    try:
        return _groups[pg]
    except KeyError:
        raise RuntimeError(
            "stepcast: a process group without torch.distributed can't be emulated"
        ) from None


def of(pg):
    """Of an argument `group` of torch.distributed; None: not of this rank."""
    module = sys.modules["torch.distributed.distributed_c10d"]
    if pg is None:
        pg = module._get_default_group()
    return _groups.get(pg) if isinstance(pg, module.ProcessGroup) else None


# ---- reductions ---------------------------------------------------------------


def reduce_name(op):
    from torch._C._distributed_c10d import ReduceOp

    for name in library.REDUCES:
        known = getattr(ReduceOp, name.upper(), None)
        if known is not None and op == known:
            return name
    raise RuntimeError("stepcast: %s can't be emulated" % op)


class _Reducing:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.before = getattr(_call, "reduce", None)
        _call.reduce = self.name

    def __exit__(self, *_):
        _call.reduce = self.before


def note_calls(c10d, cls):
    """C++ passes a reduction as an object that Python can't read, so it is noted
    where Python passes it; calls that begin in C++ are sums. A group's first call
    creates its communicator of NCCL, and the first message to or from a member one
    of two: meanwhile these are the ones in use."""
    op_types = (c10d.ReduceOp, getattr(c10d.ReduceOp, "RedOpType", c10d.ReduceOp))

    def reduction(a, k):
        for x in (*a, *k.values()):
            op = getattr(x, "reduceOp", x if isinstance(x, op_types) else None)
            if op is not None:
                return op
        return None

    def noting(method, reduces, message):
        @functools.wraps(method)
        def call(self, *a, **k):
            op = reduction(a, k) if reduces else None
            g = _groups.get(self)
            peer = a[1] if message and len(a) > 1 else None
            first = g is not None and peer not in g.called
            if op is None and not first:
                return method(self, *a, **k)
            before = getattr(_call, "reduce", None)
            _call.reduce = op
            if first:
                pair = library.ANY if peer is None else g.pair(peer)
                library.get().use(g.declared, pair)
            try:
                return method(self, *a, **k)
            finally:
                _call.reduce = before
                if first:
                    g.called.add(peer)
                    library.get().use(library.ANY, library.ANY)

        return call

    of_operators = ("all", "reduce", "_all", "_reduce", "broadcast", "gather", "scatter")
    for name in dir(cls):
        message = name in ("send", "recv")
        if name.startswith(of_operators) or name == "barrier" or message:
            method = getattr(cls, name)
            setattr(cls, name, noting(method, "reduce" in name, message))


def _using(declared, f, *a, **k):
    """Runs f; NCCL's communicator that it creates is that of this group."""
    lib = library.get()
    lib.use(declared, library.ANY)
    try:
        return f(*a, **k)
    finally:
        lib.use(library.ANY, library.ANY)


def _note_splits(module):
    split = getattr(module, "split_group", None)
    if split is None:
        return

    @functools.wraps(split)
    def split_group(parent_pg=None, split_ranks=None, *a, **k):
        g = of(parent_pg)
        if g is None:
            return split(parent_pg, split_ranks, *a, **k)
        part = next((x for x in split_ranks or () if g.me in x), ())
        declared = library.declare([g.ranks[i] for i in sorted(part)])
        return _using(declared, split, parent_pg, split_ranks, *a, **k)

    module.split_group = split_group


def _note_first_calls(distributed):
    """Of DistributedDataParallel, which it makes in C++."""

    def noting(f):
        @functools.wraps(f)
        def call(pg, *a, **k):
            g = _groups.get(pg)
            return f(pg, *a, **k) if g is None else _using(g.declared, f, pg, *a, **k)

        return call

    for name in ("_verify_params_across_processes", "_broadcast_coalesced"):
        if hasattr(distributed, name):
            setattr(distributed, name, noting(getattr(distributed, name)))


# ---- dispatched kernels --------------------------------------------------------


def _kernel(c10d, schema, run, note):
    import torch

    name = schema.name.split("::")[1]
    names = [x.name for x in schema.arguments]
    n_returns = len(schema.returns)

    def kernel(*args):
        lib = library.get()
        lib.enter()
        try:
            a = dict(zip(names, args))
            pg = c10d.ProcessGroup.unbox(a.pop("process_group"))
            g = group_of(pg)
            if torch.autograd._profiler_enabled():
                note(name, a)
            if "reduce_op" in a:
                op = getattr(_call, "reduce", None)
                a["reduce_op"] = (
                    "sum" if op is None else op if isinstance(op, str) else reduce_name(op)
                )
            work = run(g, **a)
            if n_returns == 0:
                return None
            boxed = work.boxed()
            return boxed if n_returns == 1 else (args[0], boxed)
        finally:
            lib.leave()

    return kernel


def _refused(name):
    def kernel(*args):
        raise NotImplementedError("stepcast: %s can't be emulated" % name)

    return kernel


def _functional(op, at):
    import torch

    # The kernel of any other device is the same one: it makes the outputs, and
    # calls the group.
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.XPU)

    def kernel(*args):
        with _Reducing(args[at]):
            return op.redispatch(keys, *args)

    return kernel


_kept = []  # libraries, which take their kernels back when they go, and backends


def _replace_kernels(torch, c10d, note):
    from . import operations

    lib = torch.library.Library("c10d", "IMPL")
    functional = torch.library.Library("_c10d_functional", "IMPL")
    _kept.extend((lib, functional))
    for schema in torch._C._jit_get_all_schemas():
        space, name = schema.name.split("::", 1)
        names = [x.name for x in schema.arguments]
        if space == "c10d" and "process_group" in names:
            run = getattr(operations, name, None)
            f = _kernel(c10d, schema, run, note) if run else _refused(name)
            lib.impl(name, f, "CPU")
            if name == "allreduce_":
                lib.impl(name, f, "SparseCPU")
        elif space == "_c10d_functional" and "reduce_op" in names:
            op = getattr(torch.ops._c10d_functional, name).default
            functional.impl(name, _functional(op, names.index("reduce_op")), "CPU")


# ---- Gloo ----------------------------------------------------------------------


class _No:
    """A property that Python reads and a method that C++ calls."""

    def __bool__(self):
        return False

    __call__ = __bool__


def _give_backend(torch, module, c10d):
    class Gloo(c10d.Backend):
        options = None  # not the base's property
        supports_coalescing = supports_splitting = supports_shrinking = _No()
        supports_reconfigure = supports_window = supports_time_estimate = _No()

        def __init__(self, store, rank, size, timeout=None, **_):
            super().__init__(rank, size)
            self.options = c10d.ProcessGroupGloo._Options()
            if timeout is not None:
                self.options._timeout = timeout
            self._sequence = 0
            _kept.append(self)  # C++ does not

        def getBackendName(self):
            return "emulated gloo"

        def name(self):
            return "gloo"

        def set_timeout(self, timeout):
            pass

        def _set_sequence_number_for_group(self):
            pass

        def _get_sequence_number_for_group(self):
            return self._sequence

    # C++ takes what has the name or the type of Gloo for an object of its class.
    group, kinds = c10d.ProcessGroup, c10d.ProcessGroup.BackendType
    set_default, register = group._set_default_backend, group._register_backend

    def other(kind):
        return kinds.CUSTOM if kind == kinds.GLOO else kind

    group._set_default_backend = lambda self, kind: set_default(self, other(kind))
    group._register_backend = lambda self, device, kind, *a: register(
        self, device, other(kind), *a
    )
    for name in ("name", "_get_backend_name"):
        known = getattr(group, name)
        setattr(
            group, name, lambda self, known=known: known(self).replace("custom", "gloo")
        )
    torch.distributed.ProcessGroupGloo = module.ProcessGroupGloo = Gloo


def _replace_gloo(c10d):
    gloo = c10d.ProcessGroupGloo
    make = gloo.__init__

    def start(self, *a, **k):
        options = gloo._Options()
        options._devices = [gloo.create_device(interface="lo")]
        make(self, c10d.HashStore(), 0, 1, options)

    gloo.__init__ = start
    register = c10d.ProcessGroup._register_backend

    def register_backend(self, device, kind, backend=None):
        """Gloo of CUDA tensors would be a world of one rank."""
        if device.type == "cpu" or not isinstance(backend, gloo):
            register(self, device, kind, backend)

    c10d.ProcessGroup._register_backend = register_backend


def _replace(module):
    """At the first group, because PyTorch itself is not complete earlier."""
    import torch
    from torch._C import _distributed_c10d as c10d

    from . import profiles, works

    works.install()
    _note_first_calls(torch.distributed)
    if not hasattr(c10d.ProcessGroup, "unbox"):
        from . import legacy

        legacy.install(module)
        return
    module._create_process_group_wrapper = lambda wrapped_pg, *a, **k: wrapped_pg
    note_calls(c10d, c10d.ProcessGroup)
    if "rank" in (c10d.Backend.__init__.__doc__ or ""):
        _give_backend(torch, module, c10d)
    else:
        _replace_gloo(c10d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _replace_kernels(torch, c10d, profiles.note)


def install(module):
    """`module`: torch.distributed.distributed_c10d"""
    from torch._C import _distributed_c10d as c10d

    from . import objects, stores

    stores.install(c10d)
    stores.renew(module)
    objects.install(module)
    _note_splits(module)
    helper = module._new_process_group_helper
    replaced = False

    @functools.wraps(helper)
    def make(size, rank, ranks, backend, *a, **k):
        nonlocal replaced
        if backend == "mpi":  # that of the interposed library
            return helper(size, rank, ranks, backend, *a, **k)
        lib = library.get()
        if not lib.is_rank:
            lib.start(rank, size)
        if not lib.is_rank:
            raise RuntimeError("stepcast: a forked process is no rank")
        if not ranks and (size, rank) != (lib.world, lib.rank):
            raise RuntimeError(
                "stepcast: this process is rank %d of %d; the emulated world has %d "
                "ranks, and this is rank %d" % (rank, size, lib.world, lib.rank)
            )
        if not replaced:
            _replace(module)
            replaced = True
        declared = library.declare(list(ranks) or range(size))
        made = _using(declared, helper, size, rank, ranks, backend, *a, **k)
        pg = made[0] if isinstance(made, tuple) else made
        if isinstance(pg, c10d.ProcessGroup) and pg not in _groups:
            names = module._world.pg_names if hasattr(module, "_world") else module._pg_names
            timeout = k.get("timeout") or module.default_pg_timeout
            _groups[pg] = Group(
                pg,
                list(ranks) or list(range(size)),
                names[pg] if ranks else None,
                timeout,
            )
        return made

    module._new_process_group_helper = make
    set_timeout = getattr(module, "_set_pg_timeout", None)

    def set_pg_timeout(timeout, group=None):
        set_timeout(timeout, group)
        if of(group):
            of(group).set_timeout(timeout)

    if set_timeout:
        module._set_pg_timeout = set_pg_timeout
