# SPDX-License-Identifier: Apache-2.0
"""Collectives of Python objects. An emulated root has no objects, so the first
real member of the group takes its place, with its own."""

import functools
import inspect

from . import library


def _emulated(group, src, group_src):
    """The rank that takes the root's place; None: the root is real."""
    from . import groups

    lib = library.get()
    g = groups.of(group)
    if g is None:
        return None
    rank = g.ranks[group_src] if group_src is not None else src
    if rank is None or lib.is_real(rank):
        return None
    return next(r for r in g.ranks if lib.is_real(r))


def _call(method, signature, a, k):
    """The call's arguments by name, and the root's replacement."""
    named = signature.bind(*a, **k)
    named.apply_defaults()
    given = named.arguments
    root = _emulated(given.get("group"), given.get("src"), given.get("group_src"))
    if root is not None:
        given["src"] = root
        if "group_src" in given:
            given["group_src"] = None
    return named, root


def install(module):
    """`module`: torch.distributed.distributed_c10d"""

    def replacing(method):
        signature = inspect.signature(method)

        @functools.wraps(method)
        def call(*a, **k):
            named, root = _call(method, signature, a, k)
            given = named.arguments
            if root == library.get().rank and "scatter_object_output_list" in given:
                own = given["scatter_object_output_list"][0]
                n = module.get_world_size(given["group"])
                given["scatter_object_input_list"] = [own] * n
            return method(*named.args, **named.kwargs)

        return call

    def refusing(method):
        signature = inspect.signature(method)

        @functools.wraps(method)
        def call(*a, **k):
            named, root = _call(method, signature, a, k)
            if root is not None:
                raise RuntimeError(
                    "stepcast: objects are received from an emulated rank, which has "
                    "none; make it a real one (--ranks)"
                )
            return method(*a, **k)

        return call

    for name, wrap in (
        ("broadcast_object_list", replacing),
        ("scatter_object_list", replacing),
        ("recv_object_list", refusing),
    ):
        if hasattr(module, name):
            setattr(module, name, wrap(getattr(module, name)))
