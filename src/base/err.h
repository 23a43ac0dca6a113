/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - status codes and located diagnostics.
 *
 * A function that can fail returns an sc_status and takes a caller-owned
 * sc_err.  The function that decides that something is an error formats it
 * once, with position and hint; everyone else passes it up with SC_TRY.
 * A reader reports every error of a file in one pass: it keeps calling
 * sc_error() and returns the status of the first.  Outputs are written only
 * on success.  The library never prints: cli/ does.
 */
#ifndef SC_BASE_ERR_H
#define SC_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values are the program's exit codes. */
typedef enum sc_status {
    SC_OK = 0,
    SC_NO = 1,     /* the answer is no: does not fit, nothing found    */
    SC_EUSAGE = 2, /* an option that can't be parsed                   */
    SC_EINPUT = 3, /* bad input or configuration, or a contradiction   */
    SC_EIO = 4,    /* input/output                                     */
    SC_ENOMEM = 5, /* arena over its limit; the program exits with 4   */
    SC_EBUG = 70,  /* an invariant of stepcast broke                   */
    SC_EINTR = 75  /* interrupted, resumable                           */
} sc_status;

/* Error codes: stable, searchable, each explained by `stepcast explain`.
 * X(enumerator, printed code, explanation) */
#define SC_CODES(X)                                                           \
    X(SC_C_SYNTAX, "syntax", "the file is not well-formed YAML, JSON or CSV") \
    X(SC_C_TOO_BIG, "too-big",                                                \
      "a size, depth or count beyond stepcast's limits")                      \
    X(SC_C_UNKNOWN_KEY, "unknown-key", "a key that is not known")             \
    X(SC_C_UNKNOWN_NAME, "unknown-name",                                      \
      "a name that is not in the catalogue or not among the allowed values")  \
    X(SC_C_DUPLICATE, "duplicate-key",                                        \
      "a key that occurs twice in one mapping")                               \
    X(SC_C_MISSING, "missing", "a required input is missing")                 \
    X(SC_C_TYPE, "type",                                                      \
      "a value of a different type from the one that the key needs")          \
    X(SC_C_UNIT, "unit", "a number without a unit, or with a wrong unit")     \
    X(SC_C_RANGE, "range",                                                    \
      "a number outside its legal range, NaN or infinite")                    \
    X(SC_C_DIVIDE, "divide",                                                  \
      "a parallel degree that does not divide what it splits")                \
    X(SC_C_CONFLICT, "conflict", "inputs that contradict each other")         \
    X(SC_C_CYCLE, "cycle", "a dependency cycle")                              \
    X(SC_C_REFERENCE, "reference",                                            \
      "a reference to something that does not exist")                         \
    X(SC_C_UNSUPPORTED, "unsupported",                                        \
      "legal, but not modelled by this version")                              \
    X(SC_C_OPTION, "option", "a command-line option that can't be parsed")    \
    X(SC_C_IO, "io", "the operating system refused to read or write")         \
    X(SC_C_MEMORY, "memory", "stepcast itself ran out of its memory limit")   \
    X(SC_C_BUG, "bug", "an invariant of stepcast broke; please report it")

#define SC_CODE_ENUM(id, str, help) id,

typedef enum sc_code { SC_CODES(SC_CODE_ENUM) SC_N_CODES } sc_code;

#undef SC_CODE_ENUM

/* A place in a file; line and column start at 1, and 0 means "not known".
 * For a command-line value `file` is the option with its value ("--tp 7").
 * In a binary file `line` is 0 and `col` is the byte's offset plus 1
 * (sc_pos_byte). */
typedef struct sc_pos {
    const char *file; /* borrowed, may be NULL */
    uint32_t line, col;
} sc_pos;

typedef struct sc_diag {
    sc_code code;
    char file[160];
    uint32_t line, col;
    char msg[240];
    char hint[240]; /* empty: no hint */
} sc_diag;

#define SC_ERR_MAX 32 /* diagnostics kept; more are counted */

typedef struct sc_err {
    sc_status status; /* of the first diagnostic */
    uint32_t n;       /* diagnostics in d, at most SC_ERR_MAX */
    uint32_t n_more;  /* not kept */
    sc_diag d[SC_ERR_MAX];
} sc_err;

#if defined(__GNUC__)
#define SC_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define SC_PRINTF(f, a)
#endif

void sc_err_init(sc_err *err);

/* Record one diagnostic.  `hint` may be NULL.  Returns `status`, so that
 * `return sc_error(err, SC_EINPUT, SC_C_UNIT, pos, "write 400Gb/s", ...)`
 * reads well.  `err` may be NULL (the caller only wants the status). */
sc_status sc_error(sc_err *err, sc_status status, sc_code code, sc_pos pos,
                   const char *hint, const char *fmt, ...) SC_PRINTF(6, 7);

/* The same with a va_list. `*first`, which may be NULL, keeps the status of the
 * first error. */
void sc_error_v(sc_err *err, sc_status *first, sc_status status, sc_code code,
                sc_pos pos, const char *hint, const char *fmt, va_list args)
    SC_PRINTF(7, 0);

/* An arena returned NULL. */
sc_status sc_error_nomem(sc_err *err);

/* The static analyzer sees one file at a time and would assume any status, so
 * these macros show it which status is returned. */
#ifdef __clang_analyzer__
#define sc_error(err, status, ...) \
    ((void)(sc_error)(err, status, __VA_ARGS__), (status))
#define sc_error_nomem(err) ((void)(sc_error_nomem)(err), SC_ENOMEM)
#endif

/* "no position" */
sc_pos sc_pos_none(void);
sc_pos sc_pos_file(const char *file);
/* `offset` counts from 0; beyond 4 GiB the position is omitted. */
sc_pos sc_pos_byte(const char *file, uint64_t offset);

const char *sc_code_name(sc_code code);
const char *sc_code_help(sc_code code);

/* Formats "FILE:LINE:COL: error: what; hint" (parts that are not known are
 * left out; "FILE:byte N" in a binary file) into buf, always terminated.  Returns the length it needs. */
size_t sc_diag_format(const sc_diag *d, char *buf, size_t size);

/* The name in `names` (NULL-terminated array) nearest to `word` by edit
 * distance, or NULL if none is near enough to be a typing error. */
const char *sc_nearest(const char *word, const char *const *names);
/* The same for names of chips and models: a suggestion has the same numbers as
 * `word`, because another number means another thing. */
const char *sc_nearest_numbered(const char *word, const char *const *names);

/* The only control-flow macro of the project. */
#define SC_TRY(expr)                                        \
    do {                                                    \
        sc_status sc_try_status_ = (expr);                  \
        if (sc_try_status_ != SC_OK) return sc_try_status_; \
    } while (0)
#endif
