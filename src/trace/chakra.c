/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chakra.c - Chakra ET, the binary form.
 *
 * A file is a sequence of messages, each behind its length as a varint: one
 * GlobalMetadata, then Nodes.  Fields of Node: 1 id, 2 name, 3 type, 4 and 5
 * control and data dependencies (packed or not), 7 duration_micros, 8 inputs
 * (values = 1), 10 attributes (name = 1, value = 3 .. 32: a scalar of each
 * type of protocol buffers and, one number higher, a list of it).
 */
#include "trace/raw.h"
#include "trace/wire.h"

#include <inttypes.h>
#include <string.h>

typedef struct decoder {
    raw_trace *t;
    const char *base;
    sc_status
        stop; /* an error that is not in the bytes and was already reported */
} decoder;

static uint64_t offset(const decoder *d, const uint8_t *p)
{
    return (uint64_t)((const char *)p - d->base);
}

static const char *const fault_words[] = {
    [WIRE_FINE] = "",
    [WIRE_TRUNCATED] = "the data end inside a number",
    [WIRE_LONG] = "a number of more than 10 bytes",
    [WIRE_BEYOND] = "a field longer than the message that holds it",
    [WIRE_GROUP] = "a Protocol Buffers wire type that Chakra does not use",
    [WIRE_FIELD] = "a field number out of range",
};

/* Reports the fault of `w`, or passes up what was reported. */
static sc_status fault(decoder *d, const wire *w)
{
    if (d->stop != SC_OK) return d->stop;
    return raw_error(d->t, SC_C_SYNTAX, offset(d, w->bad), NULL, "%s",
                     fault_words[w->fault]);
}

static bool stop(decoder *d, sc_status s)
{
    d->stop = s;
    return false;
}

/* Reports a wrong value and reads the rest of the file. */
static bool goes_on(decoder *d, sc_status s)
{
    return s != SC_ENOMEM || stop(d, s);
}

/* Hands the fault of a message's part to the message. */
static bool from(wire *w, const wire *inner)
{
    return wire_fail(w, inner->fault, inner->bad);
}

static bool wrong_wire(decoder *d, const uint8_t *at, const char *what,
                       uint64_t tag)
{
    return stop(d, raw_error(d->t, SC_C_TYPE, offset(d, at), NULL,
                             "field %" PRIu64 " of %s has wire type %u",
                             tag >> 3, what, (unsigned)(tag & 7)));
}

/* ---- attribute values */

/* By the number of the scalar's field (odd: its list follows). */
enum { FIRST = 3, LAST = 32, TEXT = 29, BYTES = 31 };

static const struct {
    uint8_t wire;
    char form; /* f float, d double, s signed, z zigzag, u unsigned, b bool */
    uint8_t bits;
} scalars[] = {
    {WIRE_64, 'd', 64},     {WIRE_32, 'f', 32},     {WIRE_VARINT, 's', 32},
    {WIRE_VARINT, 's', 64}, {WIRE_VARINT, 'u', 32}, {WIRE_VARINT, 'u', 64},
    {WIRE_VARINT, 'z', 32}, {WIRE_VARINT, 'z', 64}, {WIRE_32, 'u', 32},
    {WIRE_64, 'u', 64},     {WIRE_32, 's', 32},     {WIRE_64, 's', 64},
    {WIRE_VARINT, 'b', 64}, {WIRE_BYTES, 't', 0},   {WIRE_BYTES, 't', 0},
};

static void value_of(char form, unsigned bits, uint64_t x, raw_value *v)
{
    v->kind = RAW_V_INT;
    if (bits == 32) x &= UINT32_MAX;
    if (form == 'z') {
        x = (x >> 1) ^ (~(x & 1) + 1);
    } else if (form == 's' && bits == 32) {
        x = (x ^ 0x80000000u) - 0x80000000u;
    } else if (form == 'b') {
        x = x != 0;
    } else if (form == 'u' && x > INT64_MAX) {
        v->kind = RAW_V_UINT;
    } else if (form == 'd') {
        v->kind = RAW_V_FLOAT;
    } else if (form == 'f') {
        uint32_t low = (uint32_t)x;
        float f;
        memcpy(&f, &low, sizeof f);
        v->kind = RAW_V_FLOAT;
        v->as.f = (double)f;
        return;
    }
    v->as.u = x;
}

/* One scalar of the kind of `field`. */
static bool scalar(wire *w, unsigned field, raw_value *v)
{
    unsigned row = (field - FIRST) / 2;
    uint64_t x;
    wire inner;
    if (scalars[row].wire == WIRE_BYTES) {
        if (!wire_bytes(w, &inner)) return false;
        v->kind = RAW_V_TEXT;
        v->as.text =
            (raw_text){(const char *)inner.p, (size_t)(inner.end - inner.p)};
        return true;
    }
    if (scalars[row].wire == WIRE_VARINT) {
        if (!wire_varint(w, &x)) return false;
    } else if (!wire_fixed(w, scalars[row].bits / 8, &x)) {
        return false;
    }
    value_of(scalars[row].form, scalars[row].bits, x, v);
    return true;
}

static bool add_item(decoder *d, wire *w, unsigned field)
{
    raw_value *v = raw_item(d->t);
    return v == NULL ? stop(d, SC_ENOMEM) : scalar(w, field, v);
}

/* A list's message: values = 1, packed or one by one. */
static bool list(decoder *d, wire *w, unsigned field, raw_value *out)
{
    unsigned want = scalars[(field - FIRST) / 2].wire;
    d->t->n_items = 0;
    while (w->p < w->end) {
        const uint8_t *at = w->p;
        uint64_t tag;
        if (!wire_tag(w, &tag)) return false;
        if (tag == (1u << 3 | want)) {
            if (!add_item(d, w, field)) return false;
        } else if (tag == (1u << 3 | WIRE_BYTES)) {
            wire pack;
            if (!wire_bytes(w, &pack)) return false;
            while (pack.p < pack.end)
                if (!add_item(d, &pack, field))
                    return pack.fault ? from(w, &pack) : false;
        } else if (tag >> 3 == 1) {
            return wrong_wire(d, at, "a list", tag);
        } else if (!wire_skip(w, tag & 7)) {
            return false;
        }
    }
    out->kind = RAW_V_LIST;
    out->as.list.v = d->t->item;
    out->as.list.n = d->t->n_items;
    return true;
}

static bool value(decoder *d, wire *w, uint64_t tag, raw_value *v,
                  const uint8_t *at)
{
    unsigned field = (unsigned)(tag >> 3);
    bool is_list = field % 2 == 0;
    unsigned row = (field - FIRST) / 2;
    if ((tag & 7) != (is_list ? WIRE_BYTES : scalars[row].wire))
        return wrong_wire(d, at, "an attribute", tag);
    if (!is_list) return scalar(w, field, v);
    wire inner;
    if (!wire_bytes(w, &inner)) return false;
    if (list(d, &inner, field - 1, v)) return true;
    return inner.fault ? from(w, &inner) : false;
}

/* An attribute; its value is only read if its name is known. */
static bool attribute(decoder *d, wire *w, raw_node *n)
{
    const uint8_t *start = w->p;
    raw_attr attr = RAW_NONE;
    raw_value v = {.kind = RAW_V_NONE};
    while (w->p < w->end) {
        const uint8_t *at = w->p;
        uint64_t tag;
        if (!wire_tag(w, &tag)) return false;
        if (tag == (1u << 3 | WIRE_BYTES)) {
            wire name;
            if (!wire_bytes(w, &name)) return false;
            attr = raw_attr_find((const char *)name.p,
                                 (size_t)(name.end - name.p));
            if (attr >= RAW_INPUTS && (attr == RAW_NONE || !d->t->tensors))
                return true;
        } else if (tag >> 3 >= FIRST && tag >> 3 <= LAST) {
            if (!value(d, w, tag, &v, at)) return false;
        } else if (tag >> 3 == 1) {
            return wrong_wire(d, at, "an attribute", tag);
        } else if (!wire_skip(w, tag & 7)) {
            return false;
        }
    }
    return goes_on(d, raw_set(d->t, n, attr, &v, offset(d, start)));
}

/* ---- nodes */

static bool deps(decoder *d, wire *w, raw_node *n)
{
    wire pack;
    uint64_t id;
    if (!wire_bytes(w, &pack)) return false;
    while (pack.p < pack.end) {
        if (!wire_varint(&pack, &id)) return from(w, &pack);
        sc_status s = raw_add_dep(d->t, n, id);
        if (s != SC_OK) return stop(d, s);
    }
    return true;
}

static bool text(wire *w, raw_text *out)
{
    wire inner;
    if (!wire_bytes(w, &inner)) return false;
    *out = (raw_text){(const char *)inner.p, (size_t)(inner.end - inner.p)};
    return true;
}

/* IOInfo: values = 1. */
static bool io_values(wire *w, raw_text *out)
{
    wire inner;
    if (!wire_bytes(w, &inner)) return false;
    while (inner.p < inner.end) {
        uint64_t tag;
        bool ok = wire_tag(&inner, &tag);
        if (ok && tag == (1u << 3 | WIRE_BYTES))
            ok = text(&inner, out);
        else if (ok)
            ok = wire_skip(&inner, tag & 7);
        if (!ok) return from(w, &inner);
    }
    return true;
}

#define TAG(field, type) ((field) << 3 | (type))

static bool node_field(decoder *d, wire *w, raw_node *n, uint64_t tag,
                       const uint8_t *at)
{
    uint64_t v;
    wire inner;
    sc_status s;
    switch (tag) {
    case TAG(1, WIRE_VARINT): return wire_varint(w, &n->id);
    case TAG(2, WIRE_BYTES): return text(w, &n->name);
    case TAG(3, WIRE_VARINT):
        if (!wire_varint(w, &v)) return false;
        return goes_on(d, raw_set_kind(d->t, n, v, offset(d, at)));
    case TAG(4, WIRE_VARINT):
    case TAG(5, WIRE_VARINT):
        if (!wire_varint(w, &v)) return false;
        s = raw_add_dep(d->t, n, v);
        return s == SC_OK ? true : stop(d, s);
    case TAG(4, WIRE_BYTES):
    case TAG(5, WIRE_BYTES): return deps(d, w, n);
    case TAG(6, WIRE_VARINT): return wire_varint(w, &v);
    case TAG(7, WIRE_VARINT): return wire_varint(w, &n->micros);
    case TAG(8, WIRE_BYTES): return io_values(w, &n->values);
    case TAG(9, WIRE_BYTES): return wire_bytes(w, &inner);
    case TAG(10, WIRE_BYTES):
        if (!wire_bytes(w, &inner)) return false;
        if (attribute(d, &inner, n)) return true;
        return inner.fault ? from(w, &inner) : false;
    default:
        if (tag >> 3 <= 10) return wrong_wire(d, at, "a node", tag);
        return wire_skip(w, tag & 7);
    }
}

static bool node(decoder *d, wire *w)
{
    raw_node *n = raw_add(d->t, offset(d, w->p));
    if (n == NULL) return stop(d, d->t->first);
    while (w->p < w->end) {
        const uint8_t *at = w->p;
        uint64_t tag;
        if (!wire_tag(w, &tag) || !node_field(d, w, n, tag, at)) return false;
    }
    /* reported here, so that a run of empty messages takes no memory */
    if (d->t->n > 1 && n->id == n[-1].id)
        return stop(d, raw_error(d->t, SC_C_DUPLICATE, n->at, NULL,
                                 "node %" PRIu64 " occurs twice", n->id));
    return true;
}

/* GlobalMetadata: version = 1, attributes = 2; a node without it in front has a
 * number in field 1 or 3. */
static bool metadata(decoder *d, wire *w)
{
    while (w->p < w->end) {
        const uint8_t *at = w->p;
        uint64_t tag = 0;
        if (!wire_tag(w, &tag)) return false;
        if (tag == TAG(1, WIRE_VARINT) || tag == TAG(3, WIRE_VARINT))
            return stop(d,
                        raw_error(d->t, SC_C_TYPE, offset(d, at),
                                  "a trace begins with GlobalMetadata",
                                  "the first message is not GlobalMetadata"));
        if (!wire_skip(w, tag & 7)) return false;
    }
    return true;
}

/* The message behind the length at `file->p`. */
static sc_status message(decoder *d, wire *file, wire *m)
{
    const uint8_t *at = file->p;
    uint64_t n;
    if (!wire_varint(file, &n)) return fault(d, file);
    if (!wire_take(file, n, &m->p, at))
        return raw_error(d->t, SC_C_SYNTAX, offset(d, at),
                         "the file is truncated or not a Chakra trace",
                         "a message of %" PRIu64 " bytes where %zu are left", n,
                         (size_t)(file->end - file->p));
    m->end = file->p;
    m->fault = WIRE_FINE;
    return SC_OK;
}

sc_status chakra_binary(const char *buf, size_t len, raw_trace *t)
{
    decoder d = {.t = t, .base = buf};
    wire file = {.p = (const uint8_t *)buf, .end = (const uint8_t *)buf + len};
    wire m = {0};
    if (len == 0)
        return raw_error(t, SC_C_SYNTAX, 0, NULL, "the file is empty");
    SC_TRY(message(&d, &file, &m));
    if (!metadata(&d, &m)) return fault(&d, &m);
    while (file.p < file.end) {
        SC_TRY(message(&d, &file, &m));
        if (!node(&d, &m)) return fault(&d, &m);
    }
    return t->first;
}
