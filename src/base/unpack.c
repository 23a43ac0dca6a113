/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - unpacks gzip and zstd data in memory. */
#include "base/stream.h"
#include "base/util.h"

#include <string.h>

/* Output that doubles when it is full; the last byte stays free for the NUL. */
typedef struct output {
    sc_arena *a;
    char *buf;
    size_t len, cap, max;
    const char *file;
    sc_err *err;
} output;

static sc_status more(output *o)
{
    if (o->len < o->cap) return SC_OK;
    if (o->cap >= o->max)
        return sc_error(o->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(o->file),
                        NULL, "unpacks to more than the limit of %zu bytes",
                        o->max);
    size_t cap = o->cap > o->max / 2 ? o->max : 2 * o->cap;
    char *grown = sc_alloc(o->a, cap + 1, 1);
    if (grown == NULL) return sc_error_nomem(o->err);
    memcpy(grown, o->buf, o->len);
    o->buf = grown;
    o->cap = cap;
    return SC_OK;
}

/* One byte beyond the limit shows that there is more. */
static sc_status unpack(sc_stream *s, output *o)
{
    for (;;) {
        size_t n;
        char beyond;
        bool full = o->len == o->cap && o->cap >= o->max;
        if (!full) SC_TRY(more(o));
        SC_TRY(sc_stream_read(s, full ? &beyond : o->buf + o->len,
                              full ? 1 : o->cap - o->len, &n, o->err));
        if (n == 0) return SC_OK;
        if (full) return more(o);
        o->len += n;
    }
}

sc_status sc_unpack(const char *buf, size_t len, size_t max, const char *file,
                    sc_arena *a, char **out, size_t *out_len, sc_err *err)
{
    output o = {.a = a, .max = max, .file = file, .err = err};
    bool gz = len >= 2 && memcmp(buf, "\x1F\x8B", 2) == 0;
    bool zst = len >= 4 && memcmp(buf, "\x28\xB5\x2F\xFD", 4) == 0;
    if (!gz && !zst) {
        *out = (char *)buf;
        *out_len = len;
        return SC_OK;
    }
    o.cap = len < max / 8 ? 8 * len : max;
    o.buf = sc_alloc(a, o.cap + 1, 1);
    if (o.buf == NULL) return sc_error_nomem(err);
    sc_stream *s;
    SC_TRY(sc_stream_open_memory(buf, len, file, &s, err));
    sc_status status = unpack(s, &o);
    sc_stream_close(s);
    SC_TRY(status);
    o.buf[o.len] = '\0';
    *out = o.buf;
    *out_len = o.len;
    return SC_OK;
}
