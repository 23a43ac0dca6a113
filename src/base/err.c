/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - recording and formatting of located diagnostics. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_WORD 64 /* longer words are never a typing error of a name */

void sc_err_init(sc_err *err)
{
    err->status = SC_OK;
    err->n = 0;
    err->n_more = 0;
}

/* Messages quote what people wrote: control characters must not reach a
 * terminal, and a cut must not split a UTF-8 sequence. */
static void clean(char *s, size_t size, bool cut)
{
    size_t len = strlen(s);
    if (cut && len + 1 == size) {
        while (len > 0 && ((unsigned char)s[len - 1] & 0xC0) == 0x80) len--;
        if (len > 0 && ((unsigned char)s[len - 1] & 0x80) != 0) len--;
        s[len] = '\0';
    }
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7F) *s = '?';
}

/* A path that is too long keeps its end, which is more informative; an option
 * keeps its beginning. */
static void copy_file(char *out, size_t size, const char *file)
{
    size_t len = file == NULL ? 0 : strlen(file);
    if (len < size) {
        memcpy(out, len == 0 ? "" : file, len + 1);
    } else if (strncmp(file, "--", 2) == 0) {
        size_t keep = size - 4;
        while (((unsigned char)file[keep] & 0xC0) == 0x80) keep--;
        snprintf(out, size, "%.*s...", (int)keep, file);
    } else {
        const char *tail = file + len - (size - 4);
        while (((unsigned char)*tail & 0xC0) == 0x80) tail++;
        snprintf(out, size, "...%s", tail);
    }
    clean(out, size, false);
}

void sc_error_v(sc_err *err, sc_status *first, sc_status status, sc_code code,
                sc_pos pos, const char *hint, const char *fmt, va_list args)
{
    if (first != NULL && *first == SC_OK) *first = status;
    if (err == NULL) return;
    if (err->status == SC_OK) err->status = status;
    if (err->n == SC_ERR_MAX) {
        err->n_more++;
        return;
    }
    sc_diag *d = &err->d[err->n++];
    d->code = code;
    d->line = pos.line;
    d->col = pos.col;
    copy_file(d->file, sizeof d->file, pos.file);
    int n = vsnprintf(d->msg, sizeof d->msg, fmt, args);
    if (n < 0) d->msg[0] = '\0';
    clean(d->msg, sizeof d->msg, n >= (int)sizeof d->msg);
    n = snprintf(d->hint, sizeof d->hint, "%s", hint == NULL ? "" : hint);
    clean(d->hint, sizeof d->hint, n >= (int)sizeof d->hint);
}

sc_status(sc_error)(sc_err *err, sc_status status, sc_code code, sc_pos pos,
                    const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(err, NULL, status, code, pos, hint, fmt, args);
    va_end(args);
    return status;
}

sc_status(sc_error_nomem)(sc_err *err)
{
    return sc_error(err, SC_ENOMEM, SC_C_MEMORY, sc_pos_none(), NULL,
                    "out of memory");
}

sc_pos sc_pos_none(void)
{
    sc_pos p = {NULL, 0, 0};
    return p;
}

sc_pos sc_pos_file(const char *file)
{
    sc_pos p = {file, 0, 0};
    return p;
}

sc_pos sc_pos_byte(const char *file, uint64_t offset)
{
    sc_pos p = {file, 0, offset < UINT32_MAX ? (uint32_t)offset + 1 : 0};
    return p;
}

#define CODE_NAME(id, str, help) str,
#define CODE_HELP(id, str, help) help,

const char *sc_code_name(sc_code code)
{
    static const char *const names[] = {SC_CODES(CODE_NAME)};
    return (unsigned)code < SC_N_CODES ? names[code] : "unknown";
}

const char *sc_code_help(sc_code code)
{
    static const char *const helps[] = {SC_CODES(CODE_HELP)};
    return (unsigned)code < SC_N_CODES ? helps[code] : "";
}

size_t sc_diag_format(const sc_diag *d, char *buf, size_t size)
{
    char line[16] = "", col[24] = "";
    if (d->line > 0) snprintf(line, sizeof line, ":%u", (unsigned)d->line);
    if (d->line > 0 && d->col > 0)
        snprintf(col, sizeof col, ":%u", (unsigned)d->col);
    if (d->line == 0 && d->col > 0)
        snprintf(col, sizeof col, "%sbyte %u", d->file[0] != '\0' ? ":" : "",
                 (unsigned)d->col - 1);
    int n = snprintf(buf, size, "%s%s%s%serror: %s%s%s", d->file, line, col,
                     d->file[0] != '\0' || d->line + d->col > 0 ? ": " : "",
                     d->msg, d->hint[0] != '\0' ? "; " : "", d->hint);
    return n < 0 ? 0 : (size_t)n;
}

/* Upper and lower case, '-' and '_' count as equal. */
static int fold(char c)
{
    if (c == '_') return '-';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* People get separators wrong more often than letters, and another number means
 * another device or model: "llama70b" is closer to llama3-70b than to
 * llama-30b. */
enum { EDIT = 2, EDIT_SEPARATOR = 1, EDIT_DIGIT = 3 };

static unsigned add(char c)
{
    return c != '\0' && strchr("-_. /", c) ? EDIT_SEPARATOR : EDIT;
}

/* An exact match needs no suggestion. */
static unsigned leave_out(char c)
{
    return is_digit(c) ? EDIT_DIGIT : add(c);
}

static unsigned replace(char a, char b)
{
    if (fold(a) == fold(b)) return 0;
    return is_digit(a) && is_digit(b) ? EDIT_DIGIT : EDIT;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Weighted edit distance where swapping two neighbours is one edit (optimal
 * string alignment).  Both words have at most MAX_WORD characters. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned rows[3][MAX_WORD + 1];
    unsigned *before = rows[0], *prev = rows[1], *cur = rows[2];
    prev[0] = before[0] = 0;
    for (size_t j = 1; j <= nb; j++)
        prev[j] = before[j] = prev[j - 1] + add(b[j - 1]);
    for (size_t i = 1; i <= na; i++) {
        cur[0] = prev[0] + leave_out(a[i - 1]);
        for (size_t j = 1; j <= nb; j++) {
            char x = a[i - 1], y = b[j - 1];
            cur[j] = least(prev[j] + leave_out(x), cur[j - 1] + add(y));
            cur[j] = least(cur[j], prev[j - 1] + replace(x, y));
            bool swap = i > 1 && j > 1 && fold(x) == fold(b[j - 2]) &&
                        fold(y) == fold(a[i - 2]);
            if (swap) cur[j] = least(cur[j], before[j - 2] + EDIT);
        }
        unsigned *t = before;
        before = prev;
        prev = cur;
        cur = t;
    }
    return prev[nb];
}

static bool starts_with(const char *text, const char *prefix)
{
    for (; *prefix != '\0'; text++, prefix++)
        if (fold(*text) != fold(*prefix)) return false;
    return true;
}

/* The first digit of `s` from `*at` on, with the character before it; false:
 * there is none. */
static bool next_number(const char *s, size_t *at, char *before)
{
    while (s[*at] != '\0' && !is_digit(s[*at])) (*at)++;
    *before = (char)(*at > 0 ? fold(s[*at - 1]) : ' ');
    return s[*at] != '\0';
}

/* Whether both words have the same numbers, and long numbers behind the same
 * letter: an a100 is neither an h100 nor an a10. */
static bool same_numbers(const char *a, const char *b)
{
    size_t i = 0, j = 0;
    for (;;) {
        char x, y;
        bool more = next_number(a, &i, &x);
        if (more != next_number(b, &j, &y)) return false;
        if (!more) return true;
        bool letters = (x >= 'a' && x <= 'z') || (y >= 'a' && y <= 'z');
        size_t first = i;
        while (is_digit(a[i]) && a[i] == b[j]) i++, j++;
        if (is_digit(a[i]) || is_digit(b[j])) return false;
        if (letters && x != y && i > first + 1) return false;
    }
}

static const char *nearest(const char *word, const char *const *names,
                           bool numbers)
{
    const char *slash = strrchr(word, '/'); /* "meta-llama/Llama-3-70B" */
    if (slash != NULL && slash[1] != '\0') word = slash + 1;
    size_t len = strlen(word), letters = strlen(word + strspn(word, "-"));
    if (letters == 0 || len > MAX_WORD) return NULL;
    unsigned best = (unsigned)(letters + 2) / 3 +
                    1; /* edits; a word with this many or more is too
                          different */
    best = EDIT * (best > letters ? (unsigned)letters : best);
    const char *found = NULL, *longer = NULL, *part = NULL;
    for (; *names != NULL; names++) {
        size_t n = strlen(*names);
        if (n > MAX_WORD) continue;
        if (numbers && !same_numbers(word, *names)) continue;
        unsigned d = distance(word, len, *names, n);
        if (d < best) {
            best = d;
            found = *names;
        }
        if (longer == NULL && letters >= 3 && starts_with(*names, word))
            longer = *names;
        if (part == NULL && letters >= 4 &&
            strstr(*names, word + len - letters) != NULL)
            part = *names;
    }
    if (longer != NULL && (found == NULL || best > EDIT)) return longer;
    return found != NULL ? found : part;
}

const char *sc_nearest(const char *word, const char *const *names)
{
    return nearest(word, names, false);
}

const char *sc_nearest_numbered(const char *word, const char *const *names)
{
    return nearest(word, names, true);
}
