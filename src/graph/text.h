/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - words and exact quantities of the text form (docs/graph-text.md).
 */
#ifndef GRAPH_TEXT_H
#define GRAPH_TEXT_H

#include <stepcast/base.h>

typedef enum text_kind {
    TEXT_END,    /* of the line */
    TEXT_WORD,   /* bare or quoted */
    TEXT_COMMA,  /* , */
    TEXT_EQUALS, /* = */
    TEXT_BAD     /* reported */
} text_kind;

typedef struct text_token {
    text_kind kind;
    const char *s; /* in the text, or in the arena; not terminated */
    uint32_t len, col;
} text_token;

/* One line being read. */
typedef struct text_line {
    const char *p, *start, *end;
    const char *file;
    uint32_t line;
    sc_arena *arena; /* for unescaped strings */
    sc_err *err;
} text_line;

text_token text_next(text_line *l);
sc_pos text_pos(const text_line *l, const text_token *t);
bool text_is(const text_token *t, const char *word);

/* A whole number of at most `max`, bare; reports. */
bool text_count(const text_line *l, const text_token *t, uint64_t max,
                uint64_t *out);
/* "1.5us" to picoseconds, "4MiB" to bytes, exact; a part of a picosecond or
 * byte counts as a whole one; reports. */
bool text_time(const text_line *l, const text_token *t, sc_time *out);
bool text_bytes(const text_line *l, const text_token *t, uint64_t *out);
/* "1TFLOP" or a bare number; reports. */
bool text_flops(const text_line *l, const text_token *t, double *out);
/* A bare number of at least 0; reports. */
bool text_number(const text_line *l, const text_token *t, double *out);
/* Index in a NULL-terminated list; reports, names the nearest. */
bool text_enum(const text_line *l, const text_token *t, const char *what,
               const char *const *names, uint32_t *out);

/* The other direction: the shortest exact text. */
void text_put_time(sc_text *t, sc_time ps);
void text_put_bytes(sc_text *t, uint64_t bytes);
void text_put_number(sc_text *t, double v, sc_unit unit);
void text_put_word(sc_text *t, const char *s); /* quoted where needed */
bool text_is_bare(const char *s);              /* needs no quotes */

#endif
