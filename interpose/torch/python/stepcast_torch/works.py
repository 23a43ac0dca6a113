# SPDX-License-Identifier: Apache-2.0
"""Operations in flight, and torch's objects for them.

A Work of C++ wraps a future of Python. A thread that calls Work.wait() in
Python waits in the library itself; for C++, which waits for futures, threads of
ours complete them. What the program chained to a future may wait for another
one, so that one thread always waits for the next end."""

import atexit
import collections
import ctypes
import datetime
import threading
import time
import weakref

import torch
from torch._C import _distributed_c10d as c10d

from . import library

_pending = {}  # operation -> _Pending
_of_work = {}  # id(work) -> _Pending, which holds the work
_failed = weakref.WeakKeyDictionary()  # work -> error
_sources = weakref.WeakKeyDictionary()  # work -> rank in the group
_received = collections.deque(maxlen=256)  # until the program asks
_started = False
_posting = threading.Lock()
_turn = threading.Lock()  # of the thread that waits for the next end
_waiting = 0  # threads that have it or want it; under _posting
_completing = 0  # threads that complete an operation; under _posting
_ended = False


class _Pending:
    def __init__(self, op, name, result, held, after, timeout):
        self.op, self.name, self.result = op, name, result
        self.held, self.after, self.timeout = held, after, timeout
        self.future = torch.futures.Future()
        self.work = c10d._create_work_from_future(self.future)

    def __del__(self):
        # Another thread may have asked to wait when it was completed.
        library.get().free(self.op)

    def complete(self, status):
        """The operation's owner calls it, once; the library's time ends."""
        lib = library.get()
        _pending.pop(self.op, None)
        error = None
        if status == library.TIMED_OUT:
            error = "emulated Gloo: Timed out waiting %dms for %s to complete" % (
                self.timeout,
                self.name,
            )
        elif status == library.NO_REDUCTION:
            error = "%s: this type of tensors can't be reduced so" % self.name
        elif status == library.TOO_LONG:
            error = "%s: the message is longer than the tensor" % self.name
        elif self.after:
            with torch.no_grad():
                self.after()
        if self.name == "recv":
            _sources[self.work] = lib.source(self.op)
            _received.append(self.work)
        lib.leave()
        if error is None:
            self.future.set_result(self.result)
        else:
            _failed[self.work] = error
            self.future.set_exception(RuntimeError(error))
        _of_work.pop(id(self.work), None)
        return error


def _complete_forever():
    global _waiting, _completing
    lib = library.get()
    while not _ended:
        with _turn:
            op = lib.next()  # the library's time from here on
            with _posting:
                if _ended:
                    return
                p = _pending[op]
                _completing += 1
                _waiting -= 1
                if _waiting == 0:
                    _start_completer()
        p.complete(lib.status(op))
        del p
        with _posting:
            _completing -= 1
            _waiting += 1


def _start_completer():
    global _waiting
    _waiting += 1
    threading.Thread(target=_complete_forever, daemon=True, name="stepcast").start()


def _end():
    """Python ends threads where they ask for its lock; in functions of C++, as here
    those of futures, that aborts the process."""
    global _ended
    library.get().stop()
    at_most = time.monotonic() + 2
    with _posting:
        _ended = True
    while _completing and time.monotonic() < at_most:
        time.sleep(0.001)


def _start():
    global _started
    with _posting:
        if not _started:
            atexit.register(_end)
            _start_completer()
            _started = True


def post(group, call, name, result, held, after):
    """Within enter() and leave(). `held`: objects whose memory it uses; `after`
    is called when they have the result."""
    if not _started:
        _start()
    with _posting:
        op = library.get().post(group, ctypes.addressof(call))
        p = _Pending(op, name, result, held, after, call.timeout)
        _pending[op] = p
        _of_work[id(p.work)] = p
    return p.work


# ---- methods of Work ---------------------------------------------------------

_wait = c10d.Work.wait


def wait(self, timeout=None):
    p = _of_work.get(id(self))
    if p is not None and p.work is self:
        lib = library.get()
        ms = -1
        if timeout is not None and timeout > datetime.timedelta(0):
            ms = int(timeout.total_seconds() * 1000)
        lib.enter()
        status = lib.wait(p.op, ms)
        if status == library.OWNED:
            lib.leave()
        else:
            p.complete(status)
    error = _failed.get(self)
    if error is not None:
        raise RuntimeError(error)
    if p is None and timeout is not None and not self.is_completed():
        return _wait(self, timeout)  # not ours
    done = _wait(self)
    error = _failed.get(self)
    if error is not None:
        raise RuntimeError(error)
    return done


def install():
    work = c10d.Work
    work.wait = wait
    for name in ("source_rank", "_source_rank"):
        known = getattr(work, name)
        setattr(
            work,
            name,
            lambda self, known=known: _sources[self]
            if self in _sources
            else known(self),
        )
