# SPDX-License-Identifier: Apache-2.0
"""The rendezvous: a store that the program opens at its own address (tcp://, a
TCPStore, a MASTER_PORT that it sets itself) is the launcher's."""

import functools
import itertools
import os

_restart = "TORCHELASTIC_RESTART_COUNT"  # the keys of the first group are below it
_order = ("host_name", "port", "world_size", "is_master", "timeout")


def _is_worlds(a):
    """Served by another process, as PyTorch expects if the environment names an
    agent's store, or for as many as the world has."""
    if a.get("is_master"):
        return str(a.get("world_size")) == os.environ.get("STEPCAST_WORLD_SIZE")
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def install(c10d):
    make = c10d.TCPStore.__init__
    has_libuv = "use_libuv" in (make.__doc__ or "")
    address = os.environ.get("STEPCAST_MASTER_ADDR")
    port = os.environ.get("STEPCAST_MASTER_PORT")
    if not address or not port:
        return

    def init(self, *a, **k):
        named = dict(zip(_order, a))
        named.update(k)
        if not _is_worlds(named) or len(a) > len(_order):
            return make(self, *a, **k)
        named.update(host_name=address, port=int(port), is_master=False)
        named.pop("master_listen_fd", None)
        if has_libuv:
            named["use_libuv"] = False  # a server's, and not in every build
        return make(self, named.pop("host_name"), named.pop("port"), **named)

    c10d.TCPStore.__init__ = init


def renew(module):
    """A first group that is made again has a store without the keys of the last one,
    as where rank 0 serves it: the launcher's outlives groups, as an agent's does."""
    make = module.init_process_group
    again = itertools.count()

    @functools.wraps(make)
    def init_process_group(*a, **k):
        own = os.environ.get(_restart)
        if own is None:
            return make(*a, **k)
        os.environ[_restart] = str(int(own) + (next(again) << 16))
        try:
            return make(*a, **k)
        finally:
            os.environ[_restart] = own

    module.init_process_group = init_process_group
