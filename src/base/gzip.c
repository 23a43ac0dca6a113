/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.c - writes files that `gzip -d` reads (RFC 1952), with zlib. */
#include "base/util.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16, CHUNK = 1 << 30 };

/* Compresses in pieces because zlib counts bytes in 32 bits. */
static int deflate_all(z_stream *z, const char *buf, size_t len, char *to,
                       size_t room)
{
    int rc = Z_OK;
    z->next_in = (Bytef *)buf;
    z->next_out = (Bytef *)to;
    while (rc == Z_OK) {
        size_t in = len < CHUNK ? len : CHUNK;
        size_t out = room < CHUNK ? room : CHUNK;
        z->avail_in = (uInt)in;
        z->avail_out = (uInt)out;
        rc = deflate(z, in == len ? Z_FINISH : Z_NO_FLUSH);
        len -= in - z->avail_in;
        room -= out - z->avail_out;
    }
    return rc;
}

sc_status sc_file_write_gzip(const char *path, const char *buf, size_t len,
                             sc_err *err)
{
    z_stream z = {0};
    /* No time and no name in the header: the same text gives the same file. */
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return sc_error_nomem(err);
    size_t room = deflateBound(&z, (uLong)len);
    char *to = malloc(room);
    int rc = to ? deflate_all(&z, buf, len, to, room) : Z_MEM_ERROR;
    size_t n = z.total_out;
    deflateEnd(&z);
    sc_status s = rc == Z_STREAM_END ? sc_file_write(path, to, n, err)
                                     : sc_error_nomem(err);
    free(to);
    return s;
}
