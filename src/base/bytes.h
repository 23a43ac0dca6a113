/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h - numbers and texts as bytes that all machines read alike.
 *
 * A whole number takes as many bytes as it needs (7 bits in each, the lowest
 * first); a double takes 8, the lowest first.  A seal is a checksum of what was
 * written before it.
 */
#ifndef SC_BASE_BYTES_H
#define SC_BASE_BYTES_H

#include "base/arena.h"
#include "base/err.h"

typedef struct sc_bytes { /* all zero: empty */
    uint8_t *buf;
    size_t len, cap;
    bool failed; /* out of memory: bytes are missing */
} sc_bytes;

void sc_bytes_free(sc_bytes *b);
/* Has room for `len` bytes in all. */
void sc_bytes_reserve(sc_bytes *b, size_t len);
void sc_bytes_add(sc_bytes *b, const void *data, size_t len);
void sc_bytes_uint(sc_bytes *b, uint64_t v);
void sc_bytes_double(sc_bytes *b, double v);
void sc_bytes_text(sc_bytes *b, const char *text);
/* Appends the checksum of all bytes from `from` on. */
void sc_bytes_seal(sc_bytes *b, size_t from);

/* Reads in the same order.  After the first byte that can't be read, all
 * numbers are 0 and all texts empty, so that one look at `bad` is enough. */
typedef struct sc_bytes_in {
    const uint8_t *data;
    size_t n, at;
    bool bad;
    size_t bad_at;
} sc_bytes_in;

sc_bytes_in sc_bytes_from(const void *data, size_t n);
/* The place `at` is not what it should be. */
void sc_bytes_reject(sc_bytes_in *in, size_t at);
uint64_t sc_bytes_get_uint(sc_bytes_in *in);
/* A number that is at most `most`. */
uint64_t sc_bytes_get_most(sc_bytes_in *in, uint64_t most);
double sc_bytes_get_double(sc_bytes_in *in);
/* In the arena; "" if memory is exhausted, and `bad`. */
const char *sc_bytes_get_text(sc_bytes_in *in, sc_arena *a);
/* The next `n` bytes; NULL: there are fewer. */
const uint8_t *sc_bytes_take(sc_bytes_in *in, uint64_t n);
/* Reads a seal of the bytes from `from` on.  False: they were changed. */
bool sc_bytes_sealed(sc_bytes_in *in, size_t from);

#endif
