# SPDX-License-Identifier: Apache-2.0
"""libstepcast-torch.so (interpose/torch/torch.h)."""

import ctypes
import os

ENDED, TIMED_OUT, NO_REDUCTION, TOO_LONG, OWNED = range(5)
ANY = 0xFFFFFFFF  # LIVE_ANY

# graph/graph_coll.h
COLLS = (
    "all_reduce all_gather reduce_scatter all_to_all broadcast reduce gather "
    "scatter scan barrier send recv"
).split()
# emu/emu_data.h
TYPES = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64 bytes".split()
REDUCES = "sum product min max avg band bor bxor land lor lxor".split()


class Call(ctypes.Structure):
    _fields_ = [
        ("coll", ctypes.c_uint32),
        ("root", ctypes.c_int32),
        ("type", ctypes.c_uint32),
        ("reduce", ctypes.c_uint32),
        ("n_in", ctypes.c_uint32),
        ("n_out", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
        ("in_", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("timeout", ctypes.c_int64),
        ("tag", ctypes.c_int32),
        ("stream", ctypes.c_uint32),
    ]


# Functions that return at once keep Python's lock.
_quick = {
    "say": (None, [ctypes.c_uint32, ctypes.c_uint32]),
    "open": (ctypes.c_bool, [ctypes.c_void_p, ctypes.c_void_p]),
    "is_real": (ctypes.c_bool, [ctypes.c_uint32]),
    "enter": (None, []),
    "leave": (None, []),
    "group": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64]),
    "declare": (ctypes.c_uint32, [ctypes.c_void_p, ctypes.c_uint32]),
    "use": (None, [ctypes.c_uint32, ctypes.c_uint32]),
    "status": (ctypes.c_int, [ctypes.c_void_p]),
    "source": (ctypes.c_uint32, [ctypes.c_void_p]),
    "free": (None, [ctypes.c_void_p]),
    "stop": (None, []),
    "step": (None, []),
}
_slow = {
    "post": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]),
    "wait": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int64]),
    "next": (ctypes.c_void_p, []),
}


class Library:
    def __init__(self, folder):
        path = os.path.join(folder, "libstepcast-torch.so")
        for table, lib in ((_quick, ctypes.PyDLL(path)), (_slow, ctypes.CDLL(path))):
            for name, (result, arguments) in table.items():
                f = getattr(lib, "stepcast_torch_" + name)
                f.restype, f.argtypes = result, arguments
                setattr(self, name, f)
        self.is_rank = False
        os.register_at_fork(after_in_child=self._forked)

    def start(self, rank, size):
        """This process is rank `rank` of `size`, says the program."""
        world, own = ctypes.c_uint32(), ctypes.c_uint32()
        self.say(rank, size)
        self.is_rank = self.open(ctypes.addressof(world), ctypes.addressof(own))
        self.world, self.rank = world.value, own.value

    def _forked(self):
        self.is_rank = False


_library = None


def get():
    global _library
    if _library is None:
        from . import folder

        _library = Library(folder)
    return _library


def numbers(v):
    return (ctypes.c_uint32 * len(v))(*v)


def declare(ranks):
    array = numbers(ranks)
    return get().declare(ctypes.addressof(array), len(array))


def is_open():
    return _library is not None and _library.is_rank
