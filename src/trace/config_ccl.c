/* SPDX-License-Identifier: Apache-2.0 */
/* config_ccl.c - the collective algorithms that a system file names. */
#include "trace/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    "ring",    "direct",    "halvingDoubling",    "doubleBinaryTree",
    "oneRing", "oneDirect", "oneHalvingDoubling", NULL};

static const sc_ccl algorithms[] = {
    {.kind = SC_CCL_RING},
    {.kind = SC_CCL_DIRECT},
    {.kind = SC_CCL_HALVING_DOUBLING},
    {.kind = SC_CCL_DOUBLE_BINARY_TREE},
    {.kind = SC_CCL_RING, .flat = true},
    {.kind = SC_CCL_DIRECT, .flat = true},
    {.kind = SC_CCL_HALVING_DOUBLING, .flat = true},
};

_Static_assert(SC_COUNT(names) == SC_COUNT(algorithms) + 1, "names");

/* ASTRA-sim reads five digits of a window and drops the rest. */
#define WINDOW_DIGITS 5

static sc_status unknown(const char *word, sc_pos pos, sc_err *err)
{
    char hint[160];
    const char *near = sc_nearest(word, names);
    snprintf(hint, sizeof hint, "did you mean %s?", near ? near : "");
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos,
                    near != NULL ? hint
                                 : "one of ring, direct, halvingDoubling, "
                                   "doubleBinaryTree, oneRing, oneDirect, "
                                   "oneHalvingDoubling; direct4 talks to 4 "
                                   "peers at once",
                    "unknown collective algorithm \"%.60s\"", word);
}

static sc_status parse_window(const char *digits, sc_pos pos, uint32_t *out,
                              sc_err *err)
{
    uint32_t v = 0;
    size_t n = strlen(digits);
    for (size_t i = 0; i < n && i < WINDOW_DIGITS; i++)
        v = 10 * v + (uint32_t)(digits[i] - '0');
    if (n > WINDOW_DIGITS || v == 0)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos,
                        "a window is from 1 to 99999; without a window, "
                        "messages to all peers are in flight",
                        "window out of range: %.60s", digits);
    *out = v;
    return SC_OK;
}

/* "ring", "direct", "direct4", ... */
static sc_status parse_name(const char *word, sc_pos pos, sc_ccl *out,
                            sc_err *err)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(word, names[i], n) != 0) continue;
        const char *rest = word + n;
        bool digits = strspn(rest, "0123456789") == strlen(rest);
        if (!digits || (*rest != '\0' && algorithms[i].kind != SC_CCL_DIRECT))
            continue;
        sc_ccl ccl = algorithms[i];
        if (*rest != '\0') SC_TRY(parse_window(rest, pos, &ccl.window, err));
        *out = ccl;
        return SC_OK;
    }
    return unknown(word, pos, err);
}

static sc_status too_many(const sc_node *value, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, value->pos, NULL,
                    "%s names more than %d dimensions", value->key, SC_HW_DIMS);
}

/* "ring_direct5": as releases before JSON wrote it. */
static sc_status joined(const sc_node *value, sc_ccl_list *out, sc_arena *a,
                        sc_err *err)
{
    sc_status first = SC_OK;
    uint32_t n = 0;
    const char *from = value->text;
    for (bool more = true; more; n++) {
        size_t len = strcspn(from, "_");
        char *word = sc_strndup(a, from, len);
        if (word == NULL) return sc_error_nomem(err);
        if (n == SC_HW_DIMS) return too_many(value, err);
        sc_pos pos = value->pos;
        pos.col += (uint32_t)(from - value->text) + (value->quoted ? 1 : 0);
        trace_config_keep(&first, parse_name(word, pos, &out->dim[n], err));
        more = from[len] == '_';
        from += len + 1;
    }
    out->n = n;
    return first;
}

sc_status trace_ccl_list(const sc_node *value, sc_ccl_list *out, sc_arena *a,
                         sc_err *err)
{
    out->pos = value->pos;
    if (value->kind == SC_N_SCALAR) return joined(value, out, a, err);
    SC_TRY(trace_config_list(value, SC_HW_DIMS, err));
    static const sc_key row = {.name = "the list of algorithms",
                               .type = SC_T_STRING,
                               .help = "write [\"ring\"]"};
    sc_status first = SC_OK;
    for (const sc_node *c = value->child; c != NULL; c = c->next) {
        const char *word = "";
        sc_status s = trace_config_entry(&row, c, &word, a, err);
        if (s == SC_OK) s = parse_name(word, c->pos, &out->dim[out->n], err);
        trace_config_keep(&first, s);
        out->n++;
    }
    return first;
}

static const char *const trace_suffixes[] = {".0.et", ".0.et.gz", ".0.et.zst",
                                             ".0.json", NULL};

static sc_status custom(const sc_node *prefix, const char *base, sc_ccl *out,
                        sc_arena *a, sc_err *err)
{
    const char *word = "";
    static const sc_key row = {.name = "a custom collective",
                               .type = SC_T_STRING,
                               .help = "write the prefix of its files: those "
                                       "are PREFIX.<position>.et"};
    SC_TRY(trace_config_entry(&row, prefix, &word, a, err));
    if (*word == '\0')
        return sc_error(err, SC_EINPUT, SC_C_MISSING, prefix->pos, row.help,
                        "a custom collective has no prefix");
    word = trace_config_beside(word, base, trace_suffixes, a);
    if (word == NULL) return sc_error_nomem(err);
    *out = (sc_ccl){.kind = SC_CCL_CUSTOM, .prefix = word};
    return SC_OK;
}

sc_status trace_ccl_custom(const sc_node *value, const char *base,
                           sc_ccl_list *out, sc_arena *a, sc_err *err)
{
    out->pos = value->pos;
    SC_TRY(trace_config_list(value, SC_HW_DIMS, err));
    if (value->n != 1)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, value->pos,
                        "one prefix covers all dimensions", "%s has %u entries",
                        value->key, value->n);
    SC_TRY(custom(value->child, base, &out->dim[0], a, err));
    out->n = 1;
    return SC_OK;
}

/* ---- one collective per node */

typedef struct entry {
    sc_node_ccl value;
    sc_pos pos;
} entry;

static int by_node(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->value.node != b->value.node)
        return a->value.node < b->value.node ? -1 : 1;
    if (a->pos.line != b->pos.line) return a->pos.line < b->pos.line ? -1 : 1;
    return a->pos.col < b->pos.col ? -1 : a->pos.col > b->pos.col;
}

static sc_status read_entry(const sc_node *c, const char *base, entry *out,
                            sc_arena *a, sc_err *err)
{
    static const sc_key row = {.name = "a node's id",
                               .type = SC_T_INT,
                               .unit = SC_U_COUNT,
                               .min = 0,
                               .max = (double)INT64_MAX};
    int64_t node = 0;
    sc_status first = sc_schema_set(&row, c->key, c->key_pos, &node, a, err);
    trace_config_keep(&first, custom(c, base, &out->value.ccl, a, err));
    out->value.node = (uint64_t)node;
    out->pos = c->key_pos;
    return first;
}

sc_status trace_node_text(const char *text, size_t len, const char *file,
                          const char *base, sc_arena *a, sc_system *out,
                          sc_err *err)
{
    const sc_node *root;
    SC_TRY(trace_config_parse(text, len, file, a, &root, err));
    entry *e = SC_NEW_N(a, entry, root->n);
    sc_node_ccl *list = SC_NEW_N(a, sc_node_ccl, root->n);
    if (e == NULL || list == NULL) return sc_error_nomem(err);
    sc_status first = SC_OK;
    uint32_t n = 0;
    for (const sc_node *c = root->child; c != NULL; c = c->next)
        trace_config_keep(&first, read_entry(c, base, &e[n++], a, err));
    if (first != SC_OK) return first;
    qsort(e, n, sizeof *e, by_node);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && e[i].value.node == e[i - 1].value.node)
            trace_config_keep(&first,
                              sc_error(err, SC_EINPUT, SC_C_DUPLICATE, e[i].pos,
                                       NULL, "node %llu occurs twice",
                                       (unsigned long long)e[i].value.node));
        list[i] = e[i].value;
    }
    if (first != SC_OK) return first;
    out->n_node_ccl = n;
    out->node_ccl = list;
    return SC_OK;
}
