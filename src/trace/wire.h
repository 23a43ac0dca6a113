/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - the wire format of protocol buffers, for reading.
 *
 * Every function moves `p` and returns false when the bytes are not what the
 * format allows; `fault` then says what, and `bad` where it begins.
 */
#ifndef TRACE_WIRE_H
#define TRACE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum wire_type {
    WIRE_VARINT = 0,
    WIRE_64 = 1,
    WIRE_BYTES = 2,
    WIRE_32 = 5
} wire_type;

typedef enum wire_fault {
    WIRE_FINE,
    WIRE_TRUNCATED, /* ends inside a number */
    WIRE_LONG,      /* varint of more than 10 bytes */
    WIRE_BEYOND,    /* a length that leaves what holds it */
    WIRE_GROUP,     /* wire types 3, 4 (groups), 6 and 7 (none) */
    WIRE_FIELD      /* field number 0, or beyond 29 bits */
} wire_fault;

typedef struct wire {
    const uint8_t *p, *end;
    const uint8_t *bad;
    wire_fault fault;
} wire;

static inline bool wire_fail(wire *w, wire_fault fault, const uint8_t *at)
{
    w->fault = fault;
    w->bad = at;
    return false;
}

static inline bool wire_varint_long(wire *w, uint64_t *v)
{
    const uint8_t *p = w->p;
    uint64_t x = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p == w->end) return wire_fail(w, WIRE_TRUNCATED, w->p);
        uint8_t b = *p++;
        if (shift == 63 && b > 1) break;
        x |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) {
            w->p = p;
            *v = x;
            return true;
        }
    }
    return wire_fail(w, WIRE_LONG, w->p);
}

static inline bool wire_varint(wire *w, uint64_t *v)
{
    if (w->p < w->end && *w->p < 0x80) {
        *v = *w->p++;
        return true;
    }
    return wire_varint_long(w, v);
}

/* A tag: field number << 3 | wire type. */
static inline bool wire_tag(wire *w, uint64_t *tag)
{
    const uint8_t *at = w->p;
    *tag = 0;
    if (!wire_varint(w, tag)) return false;
    if (*tag < 8 || *tag > UINT32_MAX) return wire_fail(w, WIRE_FIELD, at);
    return true;
}

/* Moves behind `n` bytes that begin at the old `p`. */
static inline bool wire_take(wire *w, uint64_t n, const uint8_t **from,
                             const uint8_t *at)
{
    if (n > (uint64_t)(w->end - w->p)) return wire_fail(w, WIRE_BEYOND, at);
    *from = w->p;
    w->p += n;
    return true;
}

static inline bool wire_bytes(wire *w, wire *inner)
{
    const uint8_t *at = w->p;
    uint64_t n = 0;
    if (!wire_varint(w, &n) || !wire_take(w, n, &inner->p, at)) return false;
    inner->end = w->p;
    inner->bad = inner->p;
    inner->fault = WIRE_FINE;
    return true;
}

static inline bool wire_fixed(wire *w, unsigned n, uint64_t *v)
{
    const uint8_t *from = NULL;
    if ((size_t)(w->end - w->p) < n) return wire_fail(w, WIRE_TRUNCATED, w->p);
    if (!wire_take(w, n, &from, w->p) || from == NULL) return false;
    uint64_t x = 0;
    for (unsigned i = 0; i < n; i++) x |= (uint64_t)from[i] << (8 * i);
    *v = x;
    return true;
}

static inline bool wire_skip(wire *w, unsigned type)
{
    uint64_t v;
    wire inner;
    switch (type) {
    case WIRE_VARINT: return wire_varint(w, &v);
    case WIRE_64: return wire_fixed(w, 8, &v);
    case WIRE_32: return wire_fixed(w, 4, &v);
    case WIRE_BYTES: return wire_bytes(w, &inner);
    default: return wire_fail(w, WIRE_GROUP, w->p);
    }
}

#endif
