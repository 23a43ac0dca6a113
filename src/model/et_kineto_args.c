/* SPDX-License-Identifier: Apache-2.0 */
/* et_kineto_args.c - the arguments of an operator as a profiler writes them: lists
 * of shapes, of types, and of the values of numbers. */
#include "model/et_kineto.h"

#include <stdlib.h>
#include <string.h>

static bool is_one_of(const scan_token *t, const char *const *words)
{
    for (; *words; words++)
        if (scan_is(t, *words, strlen(*words))) return true;
    return false;
}

/* Types of tensors; *bytes as in et_tensor. */
static bool is_tensor(const scan_token *type, uint8_t *bytes)
{
    static const char *const floats[] = {"float", "double", "half", NULL};
    static const char *const ones[] = {"bool", "char", "signed char",
                                       "unsigned char", NULL};
    *bytes = 0;
    if (is_one_of(type, floats) || scan_starts(type, "c10::")) return true;
    *bytes = 1;
    if (is_one_of(type, ones)) return true;
    *bytes = SCAN_IS(type, "short") ? 2 : SCAN_IS(type, "int") ? 4 : 8;
    return *bytes < 8 || SCAN_IS(type, "long int") || SCAN_IS(type, "long") ||
           SCAN_IS(type, "long long");
}

/* False if it is no list of extents. */
static bool read_dims(const scan_token *list, et_tensor *t)
{
    const char *p = list->at + 1, *end = list->at + list->len;
    scan_token d;
    while (scan_element(&p, end, &d)) {
        uint64_t v;
        if (t->n_dim == ET_DIMS || d.type != SCAN_NUMBER || d.len > 10 ||
            !scan_uint(&d, &v) || v > UINT32_MAX)
            return false;
        t->dim[t->n_dim++] = v;
    }
    return et_elements(t) < 9e15;
}

/* [[1, 2], [3, 4]]: the shapes of a list of tensors. */
static bool read_tensors(const scan_token *dims, sc_arena *a, et_arg *out)
{
    const char *p = dims->at + 1, *end = dims->at + dims->len;
    scan_token e;
    uint32_t cap = 0;
    out->kind = ET_TENSORS;
    while (scan_element(&p, end, &e)) {
        if (e.type != SCAN_ARRAY) continue;
        out->t = sc_grow(a, out->t, out->n, &cap, 4, sizeof *out->t);
        if (!out->t) return false;
        out->t[out->n] = (et_tensor){.n_dim = 0};
        if (read_dims(&e, &out->t[out->n])) out->n++;
    }
    return true;
}

static bool read_tensor(const scan_token *dims, uint8_t bytes, sc_arena *a,
                        et_arg *out)
{
    et_tensor *t = SC_NEW(a, et_tensor);
    if (!t) return false;
    t->bytes = bytes;
    if (dims->type != SCAN_ARRAY || !read_dims(dims, t)) return true;
    *out = (et_arg){.kind = ET_TENSOR, .n = 1, .t = t};
    return true;
}

/* A number, a truth value or a list of numbers, in quotes. */
static void read_number(const scan_token *value, et_arg *arg, kineto_list *l)
{
    char text[256], *at = text, *end;
    if (value->type != SCAN_STRING || value->len == 0 ||
        value->len >= sizeof text)
        return;
    memcpy(text, value->at, value->len);
    text[value->len] = '\0';
    if (text[0] != '[') {
        bool yes = strcmp(text, "True") == 0, no = strcmp(text, "False") == 0;
        double v = yes ? 1 : no ? 0 : strtod(text, &end);
        if (!yes && !no && (end == text || *end)) return;
        arg->kind = ET_NUMBER;
        arg->number = v;
        if (!(v > -9e15 && v < 1e19)) return;
        *l = (kineto_list){true, 1, {v < 9e18 ? (int64_t)v : INT64_MAX}};
        return;
    }
    l->given = true;
    for (at++; *at && *at != ']'; at = end) {
        long long v = strtoll(at, &end, 10);
        if (end == at || l->n == ET_DIMS) {
            l->given = false;
            return;
        }
        l->v[l->n++] = v;
        end += strspn(end, ", ");
    }
}

static bool read_arg(const scan_token *dims, const scan_token *type,
                     const scan_token *value, sc_arena *a, et_arg *arg,
                     kineto_list *l)
{
    uint8_t bytes;
    const char *p = dims->at + 1, *end = dims->at + dims->len;
    scan_token first;
    if (dims->type == SCAN_ARRAY && scan_element(&p, end, &first) &&
        first.type == SCAN_ARRAY)
        return read_tensors(dims, a, arg);
    if (is_tensor(type, &bytes)) return read_tensor(dims, bytes, a, arg);
    read_number(value, arg, l);
    return true;
}

static bool next(const char **p, const scan_token *list, scan_token *out)
{
    *out = (scan_token){SCAN_NONE, "", 0};
    return *p && scan_element(p, list->at + list->len, out);
}

static const char *begin(const scan_token *list)
{
    return list->type == SCAN_ARRAY ? list->at + 1 : NULL;
}

bool kineto_args(const scan_token *dims, const scan_token *types,
                 const scan_token *concrete, sc_arena *a, kineto_op *out)
{
    const char *d = begin(dims), *t = begin(types), *c = begin(concrete);
    scan_token dim, type, value;
    et_node *n = out->node;
    n->in = SC_NEW_N(a, et_arg, ET_ARGS);
    out->list = SC_NEW_N(a, kineto_list, ET_ARGS);
    if (!n->in || !out->list) return false;
    while (n->n_in < ET_ARGS && next(&d, dims, &dim)) {
        (void)next(&t, types, &type);
        (void)next(&c, concrete, &value);
        if (!read_arg(&dim, &type, &value, a, &n->in[n->n_in],
                      &out->list[n->n_in]))
            return false;
        n->n_in++;
    }
    return true;
}
