/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.c - evaluates lists of blocks: Python expressions of lists and whole
 * numbers with + and *, as Megatron-LM evaluates them.
 */
#include "import/blocks.h"

#include <stdbool.h>
#include <string.h>

enum { MOST = 8192, DEPTH = 32 };

typedef struct value {
    bool list;
    int64_t number;
    uint32_t from, n; /* the items of a list in the parser's array */
} value;

typedef struct parser {
    const char *s;
    uint32_t n, depth;
    signed char item[MOST];
} parser;

static bool sum(parser *p, value *out);

static char next(parser *p)
{
    while (*p->s == ' ' || *p->s == '\t') p->s++;
    return *p->s;
}

static bool whole(parser *p, value *out)
{
    *out = (value){0};
    if (next(p) < '0' || *p->s > '9') return false;
    for (; *p->s >= '0' && *p->s <= '9'; p->s++) {
        if (out->number > MOST) return false;
        out->number = 10 * out->number + (*p->s - '0');
    }
    return true;
}

static bool items(parser *p, value *out)
{
    *out = (value){.list = true, .from = p->n};
    p->s++;
    while (next(p) != ']') {
        value v;
        if (!whole(p, &v) || v.number > 1 || p->n == MOST) return false;
        p->item[p->n++] = (signed char)v.number;
        if (next(p) == ',')
            p->s++;
        else if (*p->s != ']')
            return false;
    }
    p->s++;
    out->n = p->n - out->from;
    return true;
}

static bool atom(parser *p, value *out)
{
    if (next(p) == '[') return items(p, out);
    if (*p->s != '(') return whole(p, out);
    p->s++;
    if (++p->depth > DEPTH || !sum(p, out) || next(p) != ')') return false;
    p->depth--;
    p->s++;
    return true;
}

/* The list is at the end of the array, so that it can grow in place. */
static bool repeat(parser *p, value *list, int64_t times)
{
    uint32_t n = list->n;
    if (times < 0 || (n > 0 && times > (MOST - list->from) / n)) return false;
    p->n = list->from;
    for (int64_t i = 0; n > 0 && i < times; i++) {
        memmove(p->item + p->n, p->item + list->from, n);
        p->n += n;
    }
    list->n = p->n - list->from;
    return true;
}

static bool product(parser *p, value *out)
{
    if (!atom(p, out)) return false;
    while (next(p) == '*') {
        value v;
        p->s++;
        if (!atom(p, &v) || (out->list && v.list)) return false;
        if (!out->list && !v.list) {
            out->number *= v.number;
            if (out->number > MOST) return false;
            continue;
        }
        int64_t times = v.list ? out->number : v.number;
        if (v.list) *out = v;
        if (!repeat(p, out, times)) return false;
    }
    return true;
}

static bool sum(parser *p, value *out)
{
    if (!product(p, out)) return false;
    while (next(p) == '+') {
        value v;
        p->s++;
        if (!product(p, &v) || v.list != out->list) return false;
        out->number += v.number;
        out->n += v.n; /* the items of both already follow each other */
        if (out->number > MOST) return false;
    }
    return true;
}

/* The shortest period in which block `at` of each period (counted from the
 * end if `last`) is `one`, and all others are not. */
static int64_t period(const signed char *item, int64_t n, bool last, int one)
{
    int64_t p = 0;
    while (p < n && (item[p] == one) == !last) p++;
    if (last) p++;
    if (!last)
        while (p < n && item[p] != one) p++;
    if (p < 2 || p > n) return 0;
    for (int64_t i = 0; i < n; i++) {
        bool at = last ? (i + 1) % p == 0 : i % p == 0;
        if ((item[i] == one) != at) return 0;
    }
    return p;
}

import_blocks_form import_blocks_read(const char *text, int64_t layers,
                                      import_blocks *out)
{
    parser p = {.s = text};
    value v;
    *out = (import_blocks){0};
    if (!sum(&p, &v) || next(&p) != '\0') return IMPORT_BLOCKS_BAD;
    out->every = v.number;
    if (!v.list) return v.number > 0 ? IMPORT_BLOCKS_EVERY : IMPORT_BLOCKS_BAD;
    out->n = v.n;
    if (out->n != layers) return IMPORT_BLOCKS_LENGTH;
    const signed char *item = p.item + v.from;
    while (out->leading_zeros < out->n && !item[out->leading_zeros])
        out->leading_zeros++;
    for (int64_t i = 0; i < out->n; i++) out->n_ones += item[i];
    out->first_one_of = period(item, out->n, false, 1);
    out->last_one_of = period(item, out->n, true, 1);
    out->last_zero_of = period(item, out->n, true, 0);
    return IMPORT_BLOCKS_LIST;
}
