/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_store.h - the rendezvous store for worlds in which most ranks are
 * emulated.
 *
 * It is a server of PyTorch's TCPStore that answers on behalf of emulated
 * ranks, in both dialects: that of PyTorch 1.x (first byte SET = 0 ...
 * DELETE_KEY = 8) and that of 2.x, which begins with VALIDATE and a magic
 * number. A counter to which every rank adds 1 counts all of them at once; a
 * key that only an emulated rank would set is answered with what a real rank
 * set under its own name, or with an empty value. See docs/emulate/index.md.
 *
 * The machine below has no sockets: bytes in, bytes out.
 */
#ifndef SC_EMU_STORE_H
#define SC_EMU_STORE_H

#include "base/base.h"

/* The identity of an NCCL communicator that an emulated rank would have
 * created, 128 bytes: this tag, then bytes that differ for every key. */
#define SC_STORE_ID_TAG "stepcast"

typedef struct sc_store sc_store;
typedef struct sc_store_client sc_store_client;

/* `real` [n_real] ranks of `world` will connect. */
sc_status sc_store_new(uint32_t world, const uint32_t *real, uint32_t n_real,
                       sc_arena *a, sc_store **out, sc_err *err);

/* A connection; NULL: out of memory. */
sc_store_client *sc_store_connect(sc_store *s);
void sc_store_close(sc_store *s, sc_store_client *c);

/* Takes bytes that arrived. What is to be sent is in sc_store_output(), also
 * for other clients that waited for it. Errors: SC_C_SYNTAX, bytes that no
 * client sends (with their offset in the connection); the caller then closes
 * the connection, and the store lives on. */
sc_status sc_store_input(sc_store *s, sc_store_client *c, const void *data,
                         size_t len, sc_err *err);

/* Copies what is to be sent to the client: up to `cap` bytes. */
size_t sc_store_output(sc_store_client *c, void *buf, size_t cap);
bool sc_store_has_output(const sc_store_client *c);

/* Serves `listener` (a listening socket) until `stop` becomes readable, in the
 * calling thread.  Errors: SC_EIO. */
sc_status sc_store_serve(sc_store *s, int listener, int stop, sc_err *err);
#endif
