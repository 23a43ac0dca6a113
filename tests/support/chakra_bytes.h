/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_bytes.h - Chakra traces by hand, byte by byte, right or wrong. */
#ifndef TESTS_CHAKRA_BYTES_H
#define TESTS_CHAKRA_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct ck {
    uint8_t b[16384];
    size_t n;
} ck;

static inline void ck_raw(ck *c, const void *data, size_t n)
{
    if (n > sizeof c->b - c->n) n = sizeof c->b - c->n;
    memcpy(c->b + c->n, data, n);
    c->n += n;
}

static inline void ck_varint(ck *c, uint64_t v)
{
    uint8_t byte;
    for (; v >= 0x80; v >>= 7) {
        byte = (uint8_t)(v | 0x80);
        ck_raw(c, &byte, 1);
    }
    byte = (uint8_t)v;
    ck_raw(c, &byte, 1);
}

/* Wire types as the format numbers them. */
enum { CK_VARINT = 0, CK_64 = 1, CK_BYTES = 2, CK_32 = 5 };

static inline void ck_tag(ck *c, unsigned field, unsigned wire)
{
    ck_varint(c, field << 3 | wire);
}

static inline void ck_num(ck *c, unsigned field, uint64_t v)
{
    ck_tag(c, field, CK_VARINT);
    ck_varint(c, v);
}

static inline void ck_fixed(ck *c, unsigned field, unsigned bytes, uint64_t v)
{
    ck_tag(c, field, bytes == 8 ? CK_64 : CK_32);
    for (unsigned i = 0; i < bytes; i++) {
        uint8_t b = (uint8_t)(v >> (8 * i));
        ck_raw(c, &b, 1);
    }
}

static inline void ck_text(ck *c, unsigned field, const char *s)
{
    ck_tag(c, field, CK_BYTES);
    ck_varint(c, strlen(s));
    ck_raw(c, s, strlen(s));
}

static inline void ck_inside(ck *c, unsigned field, const ck *inner)
{
    ck_tag(c, field, CK_BYTES);
    ck_varint(c, inner->n);
    ck_raw(c, inner->b, inner->n);
}

/* A message of the file. */
static inline void ck_message(ck *file, const ck *m)
{
    ck_varint(file, m->n);
    ck_raw(file, m->b, m->n);
}

/* A file that has its GlobalMetadata: 8 bytes, the first node begins there. */
static inline void ck_file(ck *file)
{
    ck meta = {.n = 0};
    ck_text(&meta, 1, "0.0.4");
    file->n = 0;
    ck_message(file, &meta);
}

static inline void ck_node(ck *n, uint64_t id, unsigned kind)
{
    n->n = 0;
    ck_num(n, 1, id);
    ck_num(n, 3, kind);
}

/* An attribute with one number in `field` (9: int64, 11: uint32, ...). */
static inline void ck_attr(ck *n, const char *name, unsigned field, uint64_t v)
{
    ck a = {.n = 0};
    ck_text(&a, 1, name);
    ck_num(&a, field, v);
    ck_inside(n, 10, &a);
}

static inline void ck_attr_text(ck *n, const char *name, const char *v)
{
    ck a = {.n = 0};
    ck_text(&a, 1, name);
    ck_text(&a, 29, v);
    ck_inside(n, 10, &a);
}

#endif
