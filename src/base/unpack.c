/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - unpacks gzip (RFC 1952) with zlib, and zstd with libzstd. */
#include "base/util.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { GZIP_WINDOW = 15 + 16, PIECE = 1 << 30 };

/* Output that doubles when it is full; the last byte stays free for the NUL. */
typedef struct output {
    sc_arena *a;
    char *buf;
    size_t len, cap, max;
    const char *file;
    sc_err *err;
} output;

static sc_status broken(const output *o, const char *how)
{
    return sc_error(o->err, SC_EINPUT, SC_C_SYNTAX, sc_pos_file(o->file), NULL,
                    "compressed data %s", how);
}

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

static sc_status gunzip(const char *buf, size_t len, z_stream *z, output *o)
{
    size_t at = 0;
    for (;;) {
        size_t in = len - at < PIECE ? len - at : PIECE;
        SC_TRY(more(o));
        size_t room = o->cap - o->len < PIECE ? o->cap - o->len : PIECE;
        z->next_in = (Bytef *)buf + at;
        z->avail_in = (uInt)in;
        z->next_out = (Bytef *)o->buf + o->len;
        z->avail_out = (uInt)room;
        int rc = inflate(z, Z_NO_FLUSH);
        at += in - z->avail_in;
        o->len += room - z->avail_out;
        if (rc == Z_STREAM_END) {
            if (at == len) return SC_OK;
            rc = inflateReset(z); /* several members in a row form one file */
        }
        if (rc == Z_MEM_ERROR) return sc_error_nomem(o->err);
        if (rc == Z_BUF_ERROR || (rc == Z_OK && at == len && z->avail_out > 0))
            return broken(o, "ends too early");
        if (rc != Z_OK) return broken(o, "is damaged");
    }
}

static sc_status unzstd(const char *buf, size_t len, ZSTD_DStream *z, output *o)
{
    ZSTD_inBuffer in = {buf, len, 0};
    size_t left = 1;
    while (in.pos < len || left > 0) {
        SC_TRY(more(o));
        ZSTD_outBuffer out = {o->buf, o->cap, o->len};
        size_t before = in.pos;
        left = ZSTD_decompressStream(z, &out, &in);
        if (ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
            return broken(o, "needs a window of more than 128 MiB");
        if (ZSTD_isError(left)) return broken(o, "is damaged");
        if (out.pos == o->len && in.pos == before)
            return broken(o, "ends too early");
        o->len = out.pos;
    }
    return SC_OK;
}

sc_status sc_unpack(const char *buf, size_t len, size_t max, const char *file,
                    sc_arena *a, char **out, size_t *out_len, sc_err *err)
{
    output o = {.a = a, .max = max, .file = file, .err = err};
    sc_status s = SC_OK;
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
    if (gz) {
        z_stream z = {0};
        if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) return sc_error_nomem(err);
        s = gunzip(buf, len, &z, &o);
        inflateEnd(&z);
    } else {
        ZSTD_DStream *z = ZSTD_createDStream();
        if (z == NULL) return sc_error_nomem(err);
        s = unzstd(buf, len, z, &o);
        ZSTD_freeDStream(z);
    }
    SC_TRY(s);
    o.buf[o.len] = '\0';
    *out = o.buf;
    *out_len = o.len;
    return SC_OK;
}
