# SPDX-License-Identifier: Apache-2.0
"""Marks in the log where the program's first optimizer has stepped."""

import functools
import weakref

from . import library

_first = None


def _mark(optimizer):
    global _first
    if _first is None or _first() is None:
        _first = weakref.ref(optimizer)
    if _first() is optimizer and library.is_open():
        library.get().step()


def install(module):
    """`module`: torch.optim.optimizer"""
    if hasattr(module, "register_optimizer_step_post_hook"):
        module.register_optimizer_step_post_hook(lambda o, a, k: _mark(o))
        return
    patch = module.Optimizer._hook_for_profile

    @functools.wraps(patch)
    def hook(self):
        patch(self)
        step = type(self).step
        if getattr(step, "marked", False):
            return

        @functools.wraps(step)
        def stepping(o, *a, **k):
            result = step(o, *a, **k)
            _mark(o)
            return result

        stepping.marked = True
        type(self).step = stepping

    module.Optimizer._hook_for_profile = hook
