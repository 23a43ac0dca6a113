/* SPDX-License-Identifier: Apache-2.0 */
/* store_client.h - clients of the rendezvous store: scripts of the bytes that
 * they send and receive. */
#ifndef STORE_CLIENT_H
#define STORE_CLIENT_H

#include "emu/store_message.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS 8

static struct fixture {
    sc_arena a;
    sc_err err;
    sc_store *s;
    sc_store_client *c[CLIENTS];
    bool whole; /* messages at once, not byte by byte */
} f;

static inline int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&f.a);
    return 0;
}

static inline void begin(uint32_t world, const uint32_t *real, uint32_t n)
{
    sc_arena_free(&f.a);
    memset(&f, 0, sizeof f);
    sc_arena_init(&f.a, 0);
    sc_err_init(&f.err);
    assert_int_equal(sc_store_new(world, real, n, &f.a, &f.s, &f.err), SC_OK);
    for (int i = 0; i < CLIENTS; i++)
        assert_non_null(f.c[i] = sc_store_connect(f.s));
}

static inline void alone(uint32_t rank, uint32_t world)
{
    begin(world, &rank, 1);
}

/* ---- a script of bytes ---------------------------------------------------------
 *
 * '...' is a key or value: 8 bytes of length and the text; #N 8 bytes, %N 4,
 * .N one.  Spaces separate. */
static inline size_t assemble(const char *text, uint8_t *out)
{
    size_t n = 0;
    while (*text) {
        if (*text == '\'') {
            const char *end = strchr(text + 1, '\'');
            uint64_t len = (uint64_t)(end - text - 1);
            memcpy(out + n, &len, 8);
            memcpy(out + n + 8, text + 1, (size_t)len);
            n += 8 + (size_t)len;
            text = end + 1;
        } else if (*text == '#' || *text == '%' || *text == '.') {
            size_t size = *text == '#' ? 8 : *text == '%' ? 4 : 1;
            char *end;
            int64_t v = strtoll(text + 1, &end, 0);
            memcpy(out + n, &v, size);
            n += size;
            text = end;
        } else {
            text++;
        }
    }
    return n;
}

static inline sc_status put(int client, const void *data, size_t n)
{
    if (f.whole) return sc_store_input(f.s, f.c[client], data, n, &f.err);
    for (size_t i = 0; i < n; i++) {
        sc_status s = sc_store_input(f.s, f.c[client],
                                     (const uint8_t *)data + i, 1, &f.err);
        if (s != SC_OK) return s;
    }
    return SC_OK;
}

static inline void send_to(int client, const char *text)
{
    uint8_t bytes[4096];
    size_t n = assemble(text, bytes);
    if (put(client, bytes, n) != SC_OK)
        fail_msg("%s: %s", text, f.err.d[0].msg);
}

static inline void comes(int client, const char *text)
{
    uint8_t want[4096], got[4096];
    size_t n = assemble(text, want);
    size_t m = sc_store_output(f.c[client], got, sizeof got);
    if (m != n || (n != 0 && memcmp(want, got, n) != 0)) {
        char hex[256] = "";
        for (size_t i = 0; i < m && i < 60; i++)
            snprintf(hex + 3 * i, 4, "%02x ", got[i]);
        fail_msg("%s: got %zu bytes, not %zu: %s", text, m, n, hex);
    }
}

static inline void exchange(int client, const char *out, const char *in)
{
    send_to(client, out);
    comes(client, in);
}

/* What a client of 2.x sends first. */
static inline void validate(int client)
{
    send_to(client, ".0 %0x3C85F7CE");
}

#endif
