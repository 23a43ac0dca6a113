# SPDX-License-Identifier: Apache-2.0
"""The rendezvous: a store that the program opens at its own address (tcp://, a
TCPStore, a MASTER_PORT that it sets itself) is the launcher's."""

import os

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
