/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logline.h - lines of logs, and the words in them.
 *
 * Nothing is copied: words point into the text.  Blanks are spaces, tabs and
 * carriage returns.
 */
#ifndef BASE_LOGLINE_H
#define BASE_LOGLINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct log_line {
    const char *s, *end; /* what is left of the line, without the newline */
    bool last; /* the text ends with this line and without a newline */
} log_line;

typedef struct log_word {
    const char *s;
    size_t n; /* 0: the line has no further word */
} log_word;

/* The line that begins at text[*at], which then is the start of the next one;
 * *at < len. */
log_line log_line_next(const char *text, size_t len, size_t *at);

/* The next word, and a line that begins behind it. */
log_word log_next(log_line *l);

bool log_is_blank(char c);
bool log_is(log_word w, const char *word);
bool log_is_digits(log_word w);

/* Where the text `what` is in a line; NULL: nowhere. */
const char *log_find(log_line l, const char *what);

/* Skips the prefixes "[1,0]<stdout>:" of mpirun and "12: " of srun -l. */
void log_skip_label(log_line *l);

/* The value of the decimal number that fills the word; NaN for any other
 * text. */
double log_number(log_word w);

#endif
