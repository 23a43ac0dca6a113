/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_alike.c - finds operators that the same rules match: they have the same
 * position in instances of one segment and the same role, and their paths
 * differ only in numbers.  It also numbers units: blocks, and modules outside
 * of them.
 */
#include "plan/infer.h"

#include <string.h>

/* ---- units ----------------------------------------------------------- */

static bool number(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < '0' || p[i] > '9') return false;
    return n > 0;
}

/* Length of the part of a path that names its unit. */
static size_t unit_length(const char *path, bool *block)
{
    const char *p = path;
    *block = true;
    for (;;) {
        size_t n = strcspn(p, ".");
        if (number(p, n)) return (size_t)(p - path) + n;
        if (!p[n]) break;
        p += n + 1;
    }
    *block = false;
    return strcspn(path, ".");
}

bool infer_in_block(const char *path)
{
    bool block;
    (void)unit_length(path, &block);
    return block;
}

bool infer_same_unit(const char *a, const char *b)
{
    bool x, y;
    size_t n = unit_length(a, &x), m = unit_length(b, &y);
    return x == y && n == m && memcmp(a, b, n) == 0;
}

/* Whether `op` begins a new unit.  `block` is the path, of `n` characters, of
 * an instance that is inside one block; NULL if there is none. */
static bool begins(const sc_net *g, uint32_t op, const char *block, size_t n)
{
    const char *path = g->op[op].path, *before = g->op[op - 1].path;
    if (block && strncmp(path, block, n) == 0 && strncmp(before, block, n) == 0)
        return false;
    return !infer_same_unit(before, path);
}

sc_status infer_number_units(inference *f)
{
    const sc_net *g = f->g;
    uint32_t *unit = SC_NEW_N(f->a, uint32_t, g->n_ops), units = 0;
    if (!unit) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < g->n_instances; i++) {
        const sc_net_instance *at = &g->instance[i];
        const char *block = infer_in_block(at->path) ? at->path : NULL;
        size_t n = strlen(at->path);
        for (uint32_t op = at->first; op < at->first + at->n_ops; op++) {
            const char *of = op > at->first ? block : NULL;
            if (op > 0) units += begins(g, op, of, n);
            unit[op] = units;
        }
    }
    f->unit = unit;
    return SC_OK;
}

/* ---- operators that are alike ---------------------------------------- */

/* An instance with which later ones are compared. */
typedef struct variant {
    const sc_net_instance *instance;
    uint32_t n_matches;
    const uint32_t *match; /* [n_matches] operator * n_rules + rule, for rules
                              that depend on numbers */
    uint32_t next;         /* next variant of the same segment, + 1; 0: none */
} variant;

static size_t digits(const char *p)
{
    return strspn(p, "0123456789");
}

/* Whether two paths differ in numbers between dots only. */
static bool but_for_numbers(const char *a, const char *b)
{
    for (;;) {
        size_t n = strcspn(a, "."), m = strcspn(b, ".");
        bool numbers = n && m && digits(a) == n && digits(b) == m;
        if (!numbers && (n != m || memcmp(a, b, n) != 0)) return false;
        if (a[n] != b[m]) return false;
        if (!a[n]) return true;
        a += n + 1;
        b += m + 1;
    }
}

/* The path after the common prefix of the instance; NULL if it differs. */
static const char *rest_of(const sc_net *g, const sc_net_instance *i,
                           size_t length, uint32_t k)
{
    const char *path = g->op[i->first + k].path;
    return strncmp(path, i->path, length) == 0 ? path + length : NULL;
}

static bool alike(const inference *f, const variant *x, const variant *y)
{
    const sc_net *g = f->g;
    const sc_net_instance *a = x->instance, *b = y->instance;
    size_t n = strlen(a->path), m = strlen(b->path);
    if (a->n_ops != b->n_ops || x->n_matches != y->n_matches ||
        (x->n_matches &&
         memcmp(x->match, y->match, x->n_matches * sizeof *x->match) != 0) ||
        !but_for_numbers(a->path, b->path) ||
        memcmp(f->role + a->first, f->role + b->first,
               a->n_ops * sizeof *f->role) != 0)
        return false;
    for (uint32_t k = 0; k < a->n_ops; k++) {
        const char *of = rest_of(g, a, n, k), *too = rest_of(g, b, m, k);
        if (!of || !too || strcmp(of, too) != 0) return false;
    }
    return true;
}

/* Whether a pattern depends on numbers between dots.  A number after a letter
 * ("fc1") does not count. */
static bool has_number(const char *match)
{
    for (const char *p = match; *p; p++) {
        bool digit = *p >= '0' && *p <= '9';
        if (*p == '?') return true;
        if (digit && (p == match || strchr(".*-", p[-1]))) return true;
    }
    return false;
}

static uint32_t numbered(const inference *f, uint32_t *rule)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_rules; i++)
        if (has_number(f->rule[i].r->match)) rule[n++] = i;
    return n;
}

/* Finds which operators of an instance match rules that depend on numbers. */
static sc_status match_numbers(const inference *f, const uint32_t *rule,
                               uint32_t n, variant *v)
{
    const sc_net_instance *at = v->instance;
    uint32_t *match = SC_NEW_N(f->a, uint32_t, n ? (size_t)n * at->n_ops : 0);
    if (!match) return sc_error_nomem(f->err);
    for (uint32_t k = 0; n && k < at->n_ops; k++)
        for (uint32_t i = 0; i < n; i++)
            if (sc_rule_matches(f->rule[rule[i]].r->match,
                                f->g->op[at->first + k].path))
                match[v->n_matches++] = k * f->n_rules + rule[i];
    v->match = match;
    return SC_OK;
}

uint32_t infer_equal_op(const inference *f, uint32_t op)
{
    return f->equal_op[f->whole_op ? f->whole_op[op] : op];
}

sc_status infer_alike(inference *f)
{
    const sc_net *g = f->g;
    uint32_t *equal = SC_NEW_N(f->a, uint32_t, g->n_ops);
    uint32_t *last = SC_NEW_N(f->a, uint32_t, g->n_segments);
    uint32_t *rule = SC_NEW_N(f->a, uint32_t, f->n_rules), n = 0;
    variant *all = SC_NEW_N(f->a, variant, g->n_instances);
    if (!equal || !last || !all || !rule) return sc_error_nomem(f->err);
    uint32_t n_numbered = numbered(f, rule);
    for (uint32_t i = 0; i < g->n_instances; i++) {
        const sc_net_instance *at = &g->instance[i];
        uint32_t v = f->job->unrolled ? 0 : last[at->segment];
        uint32_t from = at->first;
        variant own = {.instance = at, .next = v};
        SC_TRY(match_numbers(f, rule, n_numbered, &own));
        while (v && !alike(f, &all[v - 1], &own)) v = all[v - 1].next;
        if (v) from = all[v - 1].instance->first;
        for (uint32_t k = 0; k < at->n_ops; k++)
            equal[at->first + k] = from + k;
        if (v) continue;
        all[n] = own;
        last[at->segment] = ++n;
    }
    f->equal_op = equal;
    return SC_OK;
}
