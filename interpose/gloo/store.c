/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - redirects a program that opens a rendezvous store at its own
 * address (tcp://, a TCPStore, a MASTER_PORT that it sets itself) to the
 * launcher's store.
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

/* std::string, short enough to hold its text itself. */
typedef struct cxx_string {
    char *text;
    size_t len;
    char own[16];
} cxx_string;

/* c10d::TCPStoreOptions of torch 1.13 */
typedef struct store_opts {
    uint16_t port;
    bool server;
    _Alignas(8) bool counted; /* `workers` is said */
    size_t workers;
    bool wait;
    int64_t timeout; /* ms */
    bool shared;
} store_opts;

_Static_assert(offsetof(store_opts, counted) == 8 &&
                   offsetof(store_opts, timeout) == 32 &&
                   sizeof(store_opts) == 48,
               "as libtorch_python lays it out");

#define MAKE_STORE                                                            \
    "_ZN4c10d8TCPStoreC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE" \
    "ERKNS_15TCPStoreOptionsE"

typedef void make_store(void *, void *, const void *);
void c10d_make_store(void *store, void *host, const void *opts)
    GLOO_HOOK(MAKE_STORE);

/* Whether it is the store of this world: one that another process serves, as
 * torch expects if the environment names an agent's store, or one for as many
 * as the world has. It does not ask for the rank, because torchrun's own
 * process has a store but no rank. */
static bool is_worlds(const store_opts *o)
{
    const char *world = getenv("STEPCAST_WORLD_SIZE");
    const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    if (o->server)
        return o->counted && world && o->workers == strtoul(world, NULL, 10);
    return agent && strcmp(agent, "True") == 0;
}

void c10d_make_store(void *store, void *host, const void *opts)
{
    make_store *real = GLOO_REAL(make_store *, LIB_TORCH, MAKE_STORE);
    const char *addr = getenv("STEPCAST_MASTER_ADDR");
    const char *port = getenv("STEPCAST_MASTER_PORT");
    store_opts o;
    memcpy(&o, opts, sizeof o);
    if (!addr || !port || !is_worlds(&o) || strlen(addr) > 15) {
        real(store, host, opts);
        return;
    }
    o.port = (uint16_t)strtoul(port, NULL, 10);
    o.server = false;
    cxx_string to = {.len = strlen(addr)};
    to.text = to.own;
    memcpy(to.own, addr, to.len + 1);
    real(store, &to, &o);
}
