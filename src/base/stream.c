/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - reads a file piece by piece, unpacked with zlib or libzstd. */
#include "base/stream.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { GZIP_WINDOW = 15 + 16, PACKED_PIECE = 1 << 17, PIECE = 1 << 30 };

typedef enum packing { PLAIN, GZIP, ZSTD } packing;

struct sc_stream {
    const char *file; /* borrowed */
    int fd;           /* -1: memory */
    bool at_end;      /* all packed bytes were read */
    bool open;        /* a member of gzip or a frame of zstd has begun */
    bool damaged;     /* reported by the read after the last intact bytes */
    const char *how;
    packing packing;
    char *piece;    /* [PACKED_PIECE] owned; NULL: memory */
    const char *in; /* packed bytes that were not used yet */
    size_t n_in;
    z_stream z;
    ZSTD_DStream *zstd;
};

static sc_status broken(sc_stream *s, const char *how, sc_err *err)
{
    s->damaged = true;
    s->how = how;
    return sc_error(err, SC_EINPUT, SC_C_SYNTAX, sc_pos_file(s->file), NULL,
                    "compressed data %s", how);
}

/* Reads more packed bytes behind those that are left. */
static sc_status fill(sc_stream *s, sc_err *err)
{
    if (s->at_end || s->fd < 0) return SC_OK;
    if (s->n_in) memmove(s->piece, s->in, s->n_in);
    s->in = s->piece;
    ssize_t got;
    do got = read(s->fd, s->piece + s->n_in, PACKED_PIECE - s->n_in);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return sc_error(err, SC_EIO, SC_C_IO, sc_pos_file(s->file), NULL,
                        "can't read: %s", sc_errno_text(errno));
    s->at_end = got == 0;
    s->n_in += (size_t)got;
    return SC_OK;
}

static sc_status recognize(sc_stream *s, sc_err *err)
{
    while (!s->at_end && s->n_in < 4) SC_TRY(fill(s, err));
    if (s->n_in >= 2 && memcmp(s->in, "\x1F\x8B", 2) == 0) {
        if (inflateInit2(&s->z, GZIP_WINDOW) != Z_OK)
            return sc_error_nomem(err);
        s->packing = GZIP;
    } else if (s->n_in >= 4 && memcmp(s->in, "\x28\xB5\x2F\xFD", 4) == 0) {
        s->zstd = ZSTD_createDStream();
        if (!s->zstd) return sc_error_nomem(err);
        s->packing = ZSTD;
    }
    return SC_OK;
}

static sc_status start(sc_stream *s, sc_stream **out, sc_err *err)
{
    sc_status status = recognize(s, err);
    if (status == SC_OK)
        *out = s;
    else
        sc_stream_close(s);
    return status;
}

sc_status sc_stream_open(const char *path, sc_stream **out, sc_err *err)
{
    bool in = strcmp(path, "-") == 0;
    sc_stream *s = calloc(1, sizeof *s);
    if (!s || !(s->piece = malloc(PACKED_PIECE))) {
        free(s);
        return sc_error_nomem(err);
    }
    s->file = in ? "<stdin>" : path;
    s->fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd >= 0) return start(s, out, err);
    sc_error(err, SC_EIO, SC_C_IO, sc_pos_file(path), NULL, "can't open: %s",
             sc_errno_text(errno));
    sc_stream_close(s);
    return SC_EIO;
}

sc_status sc_stream_open_memory(const char *buf, size_t len, const char *file,
                                sc_stream **out, sc_err *err)
{
    sc_stream *s = calloc(1, sizeof *s);
    if (!s) return sc_error_nomem(err);
    *s = (sc_stream){
        .file = file, .fd = -1, .at_end = true, .in = buf, .n_in = len};
    return start(s, out, err);
}

void sc_stream_close(sc_stream *s)
{
    if (!s) return;
    if (s->packing == GZIP) inflateEnd(&s->z);
    if (s->zstd) ZSTD_freeDStream(s->zstd);
    if (s->fd > STDIN_FILENO) close(s->fd);
    free(s->piece);
    free(s);
}

/* Several members in a row form one file. */
static sc_status gunzip(sc_stream *s, char *buf, size_t size, size_t *n,
                        sc_err *err)
{
    z_stream *z = &s->z;
    size_t given = s->n_in < PIECE ? s->n_in : PIECE;
    size_t room = size - *n < PIECE ? size - *n : PIECE;
    z->next_in = (Bytef *)(uintptr_t)s->in;
    z->avail_in = (uInt)given;
    z->next_out = (Bytef *)buf + *n;
    z->avail_out = (uInt)room;
    int rc = inflate(z, Z_NO_FLUSH);
    s->in += given - z->avail_in;
    s->n_in -= given - z->avail_in;
    *n += room - z->avail_out;
    s->open = rc != Z_STREAM_END;
    if (rc == Z_STREAM_END) rc = inflateReset(z);
    if (rc == Z_MEM_ERROR) return sc_error_nomem(err);
    if (rc != Z_OK && rc != Z_BUF_ERROR) return broken(s, "is damaged", err);
    return SC_OK;
}

static sc_status unzstd(sc_stream *s, char *buf, size_t size, size_t *n,
                        sc_err *err)
{
    ZSTD_inBuffer in = {s->in, s->n_in, 0};
    ZSTD_outBuffer out = {buf, size, *n};
    size_t left = ZSTD_decompressStream(s->zstd, &out, &in);
    s->in += in.pos;
    s->n_in -= in.pos;
    *n = out.pos;
    if (ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
        return broken(s, "needs a window of more than 128 MiB", err);
    if (ZSTD_isError(left)) return broken(s, "is damaged", err);
    s->open = left > 0;
    return SC_OK;
}

static sc_status unpacked(sc_stream *s, char *buf, size_t size, size_t *n,
                          sc_err *err)
{
    if (s->packing == GZIP) return gunzip(s, buf, size, n, err);
    if (s->packing == ZSTD) return unzstd(s, buf, size, n, err);
    size_t take = s->n_in < size - *n ? s->n_in : size - *n;
    memcpy(buf + *n, s->in, take);
    s->in += take;
    s->n_in -= take;
    *n += take;
    return SC_OK;
}

sc_status sc_stream_read(sc_stream *s, char *buf, size_t size, size_t *n,
                         sc_err *err)
{
    *n = 0;
    if (s->damaged) return broken(s, s->how, err);
    while (*n < size) {
        size_t before = *n, packed = s->n_in;
        if (!s->n_in) SC_TRY(fill(s, err));
        if (s->at_end && !s->n_in && !s->open) break;
        if (s->packing == PLAIN && !s->n_in) continue;
        sc_status status = unpacked(s, buf, size, n, *n ? NULL : err);
        if (status != SC_OK && *n && s->damaged) return SC_OK;
        SC_TRY(status);
        if (*n > before || s->n_in < packed || !s->at_end) continue;
        if (*n) {
            s->damaged = true;
            s->how = "ends too early";
            break;
        }
        return broken(s, "ends too early", err);
    }
    return SC_OK;
}
