/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - reads a file of any size piece by piece, unpacked.
 *
 * Data that begin with the first bytes of gzip (RFC 1952) or zstd are unpacked
 * with zlib and libzstd; other data are returned unchanged.
 */
#ifndef BASE_STREAM_H
#define BASE_STREAM_H

#include "base/err.h"

typedef struct sc_stream sc_stream;

/* Opens a file, or "-" for standard input. sc_stream_close() frees it; `path`
 * is borrowed until then. */
sc_status sc_stream_open(const char *path, sc_stream **out, sc_err *err);
/* The same for data in memory, which are borrowed; `file` is only used in
 * errors. */
sc_status sc_stream_open_memory(const char *buf, size_t len, const char *file,
                                sc_stream **out, sc_err *err);
/* `s` may be NULL. */
void sc_stream_close(sc_stream *s);

/* Reads up to `size` bytes; `*n` is 0 only at the end. Errors: SC_EIO, SC_EINPUT
 * for damaged or truncated packed data. What was unpacked before the damage has
 * been returned by then. */
sc_status sc_stream_read(sc_stream *s, char *buf, size_t size, size_t *n,
                         sc_err *err);

#endif
