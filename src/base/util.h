/* SPDX-License-Identifier: Apache-2.0 */
/*
 * util.h - small shared tools: files, embedded data, hashes, text buffers, CSV.
 */
#ifndef SC_BASE_UTIL_H
#define SC_BASE_UTIL_H

#include "base/doc.h"
#include "base/random.h"

#define SC_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Binary search: raises the index `at` to the first one below `end` for which
 * `reached`, an expression of the new variable `mid`, is true. It has to be
 * true from there on. If it is true nowhere, `at` becomes `end`. */
#define SC_FIRST(at, end, mid, reached)                      \
    for (uint64_t end_ = (end); (at) < end_;) {              \
        uint32_t mid = (uint32_t)((at) + (end_ - (at)) / 2); \
        if (reached)                                         \
            end_ = mid;                                      \
        else                                                 \
            (at) = mid + 1;                                  \
    }

void sc_sort_numbers(uint32_t *list, uint32_t n); /* rising */
/* The index of a number in a rising list of `n`; `n`: it is not there. */
uint32_t sc_find_rising(const uint32_t *list, uint32_t n, uint32_t number);

/* The system's words for an error number (errno), until the thread asks for
 * those of another. */
const char *sc_errno_text(int number);

/* Whole file into the arena, terminated by a NUL that `len` does not count.
 * "-" is standard input.  Refuses directories and files over `max` bytes. */
sc_status sc_file_read(const char *path, size_t max, sc_arena *a, char **buf,
                       size_t *len, sc_err *err);
/* Writes to a temporary file beside `path`, then renames: a failed run
 * leaves no partial output. */
sc_status sc_file_write(const char *path, const char *buf, size_t len,
                        sc_err *err);
/* The same, and the file has reached the disk before it is renamed. */
sc_status sc_file_write_durable(const char *path, const char *buf, size_t len,
                                sc_err *err);

/* The same, compressed as gzip does it. */
sc_status sc_file_write_gzip(const char *path, const char *buf, size_t len,
                             sc_err *err);

/* Unpacks gzip or zstd data, recognized by their first bytes; other data are
 * returned unchanged. Refuses more than `max` bytes. `file` is only used in
 * errors. */
sc_status sc_unpack(const char *buf, size_t len, size_t max, const char *file,
                    sc_arena *a, char **out, size_t *out_len, sc_err *err);

/* Makes the folder `path` unless it exists; its parent must exist. */
sc_status sc_folder_make(const char *path, sc_err *err);

/* The position of a command-line value, "--tp 7"; only the option if `value` is
 * NULL or memory is exhausted. */
sc_pos sc_pos_option(sc_arena *a, const char *flag, const char *value);

/* Data files built into the library (data/ of the source tree), by path
 * relative to data/: "fit/step.yml". NULL if there is none. They were parsed
 * when stepcast was built. */
typedef struct sc_embedded {
    const char *path;
    uint32_t n_rows;
    const struct sc_embedded_row *row; /* [n_rows] */
    const char *texts;
} sc_embedded;

const sc_embedded *sc_embedded_find(const char *path);
/* All data files, sorted by path; *n is their number. */
const sc_embedded *sc_embedded_all(uint32_t *n);
/* Whether any map in the file has this key. */
bool sc_embedded_has_key(const sc_embedded *file, const char *key);
/* The tree that sc_doc_parse() would give, for the caller to change; keys and
 * texts are not copied. */
sc_status sc_embedded_read(const sc_embedded *file, sc_arena *a, sc_node **out,
                           sc_err *err);

/* Greatest common divisor; gcd(a, 0) = a. */
uint64_t sc_gcd(uint64_t a, uint64_t b);

uint64_t sc_hash(const void *data, size_t len, uint64_t seed);

/* Receives reports of how far a long computation is. `what` is a constant. */
typedef struct sc_progress {
    void (*tell)(void *ctx, const char *what, uint64_t done, uint64_t total);
    void *ctx;
} sc_progress;

/* `p` may be NULL. */
void sc_progress_tell(const sc_progress *p, const char *what, uint64_t done,
                      uint64_t total);

/* Growing text, for tables and reports. */
typedef struct sc_text {
    char *buf; /* terminated, never NULL after init */
    size_t len, cap;
    uint32_t width; /* width in columns that rows keep to if possible; 0: 80 */
    bool colour;    /* escape sequences of a terminal are allowed */
    bool failed;    /* out of memory: the text is not complete */
} sc_text;

void sc_text_init(sc_text *t);
void sc_text_free(sc_text *t);
void sc_text_add(sc_text *t, const char *fmt, ...) SC_PRINTF(2, 3);
void sc_text_add_v(sc_text *t, const char *fmt, va_list ap) SC_PRINTF(2, 0);
/* Bytes as they are, which is faster. */
void sc_text_put(sc_text *t, const char *bytes, size_t n);

/* CSV with a header line; quotes as RFC 4180; cells are terminated strings in
 * the arena.  A row with another number of cells than the header is an error
 * with its line.  cell(r, c) = cells[r * n_cols + c]. */
typedef struct sc_csv_at {
    uint32_t line, col;
} sc_csv_at;

typedef struct sc_csv {
    const char *file;
    uint32_t n_cols, n_rows;
    const char **header; /* [n_cols] */
    const char **cells;  /* [n_rows * n_cols] */
    uint32_t *line;      /* [n_rows] line of each row */
    sc_csv_at *at;       /* [n_rows * n_cols] place of each cell */
} sc_csv;

sc_status sc_csv_parse(const char *text, size_t len, const char *file,
                       sc_arena *a, sc_csv *out, sc_err *err);
/* The same, but returns what it could read even if rows are wrong, so that the
 * caller can report errors in cells in the same pass. */
sc_status sc_csv_read(const char *text, size_t len, const char *file,
                      sc_arena *a, sc_csv *out, sc_err *err);
/* Place of a cell; of the row if col is -1. */
sc_pos sc_csv_pos(const sc_csv *t, uint32_t row, int col);
int sc_csv_col(const sc_csv *t, const char *name);              /* -1: none */
const char *sc_csv_get(const sc_csv *t, uint32_t row, int col); /* "" if -1 */

/* fnmatch-like: '*' any run, '?' one character; no classes. */
bool sc_glob(const char *pattern, const char *text);

/* Matches module paths against a pattern of `len` characters: '*' also matches
 * dots, a part such as "0-11" matches any number in the range, "0-11/2" every
 * second of them, "[02-4]" one of these characters. Paths below a match also
 * match ("layers.0-11" matches "layers.3.qkv"). */
bool sc_path_match(const char *pattern, size_t len, const char *path);
/* Of two patterns, the more specific one has more literal characters. A range
 * or a class counts more than a star and less than a number. */
size_t sc_path_specificity(const char *pattern);
/* Whether one of its ranges is empty ("12-3", "1-3/0"), so that it matches
 * nothing. */
bool sc_path_empty(const char *pattern);
#endif
