/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - reads JSON of any size in pieces, and forgives what is not quite
 * JSON.
 *
 * The usual libraries refuse files of profilers that have control characters or
 * quotes inside strings, invalid UTF-8 or numbers over 64 bits, so trace readers
 * scan tokens themselves.  A token points into a window of the file; functions
 * that meet the end of the window return SCAN_MORE, and the caller repeats the
 * whole value after scan_more().
 */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include "base/base.h"
#include "base/stream.h"

#include <string.h>

typedef enum scan_status { SCAN_OK, SCAN_MORE, SCAN_BROKEN } scan_status;

typedef enum scan_type {
    SCAN_NONE, /* not there */
    SCAN_STRING,
    SCAN_NUMBER, /* also true, false, null and other words */
    SCAN_OBJECT,
    SCAN_ARRAY
} scan_type;

/* A value: the contents of a string between its quotes, with escapes; all else
 * as written. */
typedef struct scan_token {
    scan_type type;
    const char *at;
    uint32_t len;
} scan_token;

typedef struct scan {
    sc_stream *in;
    const char *file;
    char *buf; /* owned, see scan_close() */
    size_t cap;
    const char *at, *end; /* what was not consumed yet; behind the window of
                             a stream is a NUL */
    bool eof;             /* nothing follows `end` */
    const char *known;    /* a place not behind `at` whose line and column */
    uint64_t line, col;   /* are these, from 1; columns are bytes */
    sc_err *err;
} scan;

sc_status scan_open(scan *s, sc_stream *in, const char *file, sc_err *err);
/* The same of a text in memory, which is borrowed: tokens stay valid. */
void scan_open_text(scan *s, const char *text, size_t len, const char *file,
                    sc_err *err);
void scan_close(scan *s);

/* Reads more of the file behind the window and drops what is before s->at.
 * SC_NO if nothing follows; SC_EINPUT if one value is larger than 256 MiB. */
sc_status scan_more(scan *s);

/* A place in the window that was not consumed yet. */
sc_pos scan_pos(const scan *s, const char *at);
/* The place of s->at, counted on from that of the last call: so the places of
 * all values of a file take one pass. */
sc_pos scan_here(scan *s);

/* The next value from `*p` on, which moves behind it. */
scan_status scan_value(const char **p, const char *end, scan_token *out);
/* Skips blanks. SCAN_MORE at the end. */
scan_status scan_blanks(const char **p, const char *end);
/* The next member of an object whose brace, or the value before, is behind
 * `*p`; `*last` if the object ends instead. */
scan_status scan_member(const char **p, const char *end, scan_token *key,
                        scan_token *value, bool *last);
/* The same without the value. */
scan_status scan_key(const char **p, const char *end, scan_token *key,
                     bool *last);

/* The next element of an array that is in the window as a whole; `*p` is behind
 * its bracket before the first. False at the end, or if it is broken. */
bool scan_element(const char **p, const char *end, scan_token *out);

static inline bool scan_is(const scan_token *t, const char *text, size_t len)
{
    return t->len == len && memcmp(t->at, text, len) == 0;
}

#define SCAN_IS(token, literal) scan_is(token, literal, sizeof(literal) - 1)

static inline bool scan_starts(const scan_token *t, const char *with)
{
    size_t n = strlen(with);
    return t->len >= n && memcmp(t->at, with, n) == 0;
}

/* Whole numbers, saturating; a number in quotes counts, too. False if there is
 * none. */
bool scan_int(const scan_token *t, int64_t *out);
bool scan_uint(const scan_token *t, uint64_t *out);
/* A time in microseconds as whole microseconds and picoseconds. */
bool scan_micros(const scan_token *t, int64_t *us, sc_time *ps);

/* The contents of a string without escapes, in `out` [t->len + 1]; invalid
 * UTF-8 and control characters become '?'. Returns its length. */
size_t scan_unescape(const scan_token *t, char *out);

#endif
