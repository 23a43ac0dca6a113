/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - operators by their inputs, which models cover them, and what others
 * measured. */
#include "replay/measure.h"

#include "replay/shapes.h"

#include <stdlib.h>
#include <string.h>

uint32_t replay_shaped_op(const replay_rank *r, uint32_t op)
{
    uint32_t item = r->op[op].item;
    uint32_t span = item == REPLAY_NONE ? REPLAY_NONE : r->item[item].op;
    for (; span != REPLAY_NONE; span = r->parent[span]) {
        const sc_trace_span *s = replay_span(r, span);
        if (s->args && r->m->args[s->args].dims) break;
    }
    return span;
}

/* The same, but no function of one vendor's library if another operator calls it:
 * anybody can measure that one. */
static uint32_t common_op(const replay_rank *r, uint32_t op)
{
    uint32_t span = replay_shaped_op(r, op);
    while (span != REPLAY_NONE) {
        const sc_trace_span *s = replay_span(r, span);
        const char *name = r->m->name[s->name];
        if (!strstr(name, "::cudnn_") && !strstr(name, "::miopen_"))
            return span;
        uint32_t up = r->parent[span];
        if (up == REPLAY_NONE || replay_span(r, up)->kind != SC_SPAN_OP ||
            !r->m->args[replay_span(r, up)->args].dims)
            return span;
        span = up;
    }
    return span;
}

static sc_replay_operator operator_of(const replay_rank *r, uint32_t span)
{
    const sc_trace_span *s = replay_span(r, span);
    const sc_trace_span_args *x = &r->m->args[s->args];
    return (sc_replay_operator){.name = r->m->name[s->name],
                                .dims = r->m->name[x->dims],
                                .types = r->m->name[x->types],
                                .concrete = r->m->name[x->concrete]};
}

/* Files differ in where lists have blanks; the reader has made what is no
 * printable character a question mark. */
#define BLANKS " \n\r\t?"

static const char *next_char(const char *p)
{
    return p + strspn(p, BLANKS);
}

/* A list without blanks between its elements; NULL: out of memory. */
static const char *compact(const char *list, sc_arena *a)
{
    char *out = sc_strdup(a, list), *to = out;
    bool quoted = false;
    if (!out) return NULL;
    for (const char *p = list; *p; p++) {
        bool escaped = p > list && p[-1] == '\\';
        if (*p == '"' && !escaped) quoted = !quoted;
        if (quoted || !strchr(BLANKS, *p)) *to++ = *p;
    }
    *to = '\0';
    return out;
}

static uint64_t hash_of(const char *p, uint64_t h)
{
    for (p = next_char(p); *p; p = next_char(p + 1))
        h = (h ^ (uint8_t)*p) * UINT64_C(1099511628211);
    return sc_mix(h);
}

static bool same_text(const char *a, const char *b)
{
    for (a = next_char(a), b = next_char(b); *a && *a == *b;) {
        a = next_char(a + 1);
        b = next_char(b + 1);
    }
    return *a == *b;
}

static uint64_t key_of(const sc_replay_operator *o)
{
    return hash_of(o->concrete,
                   hash_of(o->types, hash_of(o->dims, hash_of(o->name, 7))));
}

static bool same(const sc_replay_operator *a, const sc_replay_operator *b)
{
    return same_text(a->name, b->name) && same_text(a->dims, b->dims) &&
           same_text(a->types, b->types) && same_text(a->concrete, b->concrete);
}

static uint32_t find(const sc_map *m, const sc_replay_operator *all,
                     const sc_replay_operator *o)
{
    uint32_t at = 0, i;
    do i = sc_map_next(m, key_of(o), &at);
    while (i != SC_MAP_END && !same(&all[i], o));
    return i;
}

/* ---- what models lack ---------------------------------------------------- */

/* Whether the forms of kernels alone were fitted on the device. */
static bool measured_on(const sc_cost *c, const sc_device *d,
                        const sc_kernel *k)
{
    sc_form_use use;
    const sc_form *form;
    if (!sc_alone_use_of(c, d, k, &use, &form)) return true;
    for (uint32_t i = 0; i < c->alone->n_own; i++)
        if (c->alone->own[i].form == form)
            return strcmp(c->alone->own[i].device->name, d->name) == 0;
    return false;
}

static const char *why_not(const sc_replay_operator *o, const sc_cost *cost,
                           const sc_device *d)
{
    shape_inputs in;
    sc_kernel k;
    shape_read(o->dims, &in);
    if (!shape_kernel(o->name, &in, shape_precision(o->types), o->concrete, &k))
        return "its inputs have no shape";
    if (!shape_known(o->name)) return "no model knows it";
    return measured_on(cost, d, &k)
               ? NULL
               : "kernels of its kind were measured on other devices";
}

typedef struct lister {
    sc_replay_operators *out;
    sc_map map;
    uint32_t cap;
    sc_arena *a;
    sc_err *err;
} lister;

static sc_status add(lister *l, const sc_replay_operator *o, uint32_t *i)
{
    sc_replay_operators *out = l->out;
    *i = find(&l->map, out->of, o);
    if (*i != SC_MAP_END) return SC_OK;
    sc_replay_operator *grown =
        sc_grow(l->a, out->of, out->n, &l->cap, 64, sizeof *grown);
    if (!grown || !sc_map_add(&l->map, l->a, key_of(o), out->n))
        return sc_error_nomem(l->err);
    out->of = grown;
    *i = out->n++;
    sc_replay_operator *own = &out->of[*i];
    *own = (sc_replay_operator){.name = o->name,
                                .dims = compact(o->dims, l->a),
                                .types = compact(o->types, l->a),
                                .concrete = compact(o->concrete, l->a)};
    return own->dims && own->types && own->concrete ? SC_OK
                                                    : sc_error_nomem(l->err);
}

static sc_status add_rank(lister *l, const replay_rank *r)
{
    uint32_t i;
    uint8_t *counted = SC_NEW_N(l->a, uint8_t, r->m->n_spans);
    if (!counted) return sc_error_nomem(l->err);
    for (uint32_t op = 0; op < r->n_ops; op++) {
        if (replay_span(r, r->op[op].span)->kind != SC_SPAN_KERNEL) continue;
        uint32_t span = common_op(r, op);
        if (span == REPLAY_NONE) {
            l->out->n_shapeless++;
            l->out->shapeless += r->op[op].dur;
            continue;
        }
        sc_replay_operator o = operator_of(r, span);
        SC_TRY(add(l, &o, &i));
        l->out->of[i].count += !counted[span];
        l->out->of[i].kernels++;
        l->out->of[i].total += r->op[op].dur;
        counted[span] = 1;
    }
    return SC_OK;
}

static int by_total(const void *p, const void *q)
{
    const sc_replay_operator *a = p, *b = q;
    if (a->total != b->total) return a->total > b->total ? -1 : 1;
    int c = strcmp(a->name, b->name);
    return c ? c : strcmp(a->dims, b->dims);
}

sc_status sc_replay_operators_of(const sc_replay_model *const *m, uint32_t n,
                                 const sc_cost *cost, const sc_device *d,
                                 sc_arena *a, sc_replay_operators *out,
                                 sc_err *err)
{
    *out = (sc_replay_operators){.n = 0};
    lister l = {.out = out, .a = a, .err = err};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < m[i]->n_ranks; k++)
            SC_TRY(add_rank(&l, &m[i]->rank[k]));
    for (uint32_t i = 0; i < out->n; i++)
        out->of[i].why = why_not(&out->of[i], cost, d);
    if (out->n) qsort(out->of, out->n, sizeof *out->of, by_total);
    return SC_OK;
}

/* ---- what others measured ------------------------------------------------ */

static sc_status read_row(const sc_csv *t, uint32_t i, const int col[6],
                          sc_replay_operator *out, sc_err *err)
{
    char *end;
    const char *seconds = sc_csv_get(t, i, col[5]);
    double s = strtod(seconds, &end);
    *out = (sc_replay_operator){.name = sc_csv_get(t, i, col[0]),
                                .dims = sc_csv_get(t, i, col[1]),
                                .types = sc_csv_get(t, i, col[2]),
                                .concrete = sc_csv_get(t, i, col[3]),
                                .count = 1};
    if (end == seconds || *end || !(s > 0 && s < 1e6))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_csv_pos(t, i, col[5]),
                        "write a number above 0", "\"%.40s\" are no seconds",
                        seconds);
    out->total = sc_time_from_s(s);
    return SC_OK;
}

sc_status sc_replay_times_read(const sc_csv *t, const sc_device *d, sc_arena *a,
                               sc_replay_times *out, uint32_t *n_other,
                               sc_err *err)
{
    static const char *const names[] = {"operator", "dims",   "types",
                                        "concrete", "device", "seconds"};
    int col[6];
    *out = (sc_replay_times){.n = 0};
    *n_other = 0;
    for (int i = 0; i < 6; i++) {
        col[i] = sc_csv_col(t, names[i]);
        if (col[i] < 0)
            return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(t->file),
                            "the program that calibrate --measure-list writes "
                            "prints such a table",
                            "the table has no column %s", names[i]);
    }
    out->of = SC_NEW_N(a, sc_replay_operator, t->n_rows);
    if (!out->of) return sc_error_nomem(err);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        const sc_device *of = NULL;
        const char *why = NULL;
        sc_replay_operator *o = &out->of[out->n];
        SC_TRY(read_row(t, i, col, o, err));
        SC_TRY(sc_device_nearest(sc_csv_get(t, i, col[4]), a, &of, &why, err));
        if (strcmp(of->name, d->name) != 0) {
            ++*n_other;
            continue;
        }
        if (find(&out->map, out->of, o) != SC_MAP_END) continue;
        if (!sc_map_add(&out->map, a, key_of(o), out->n++))
            return sc_error_nomem(err);
    }
    return SC_OK;
}

const sc_replay_operator *replay_time_of(const sc_replay_times *t,
                                         const replay_rank *r, uint32_t op,
                                         uint32_t *span)
{
    *span = common_op(r, op);
    if (*span == REPLAY_NONE) return NULL;
    sc_replay_operator o = operator_of(r, *span);
    uint32_t i = find(&t->map, t->of, &o);
    return i == SC_MAP_END ? NULL : &t->of[i];
}

sc_status replay_sum_operators(const replay_rank *r, sc_arena *a, sc_time **out,
                               sc_err *err)
{
    *out = SC_NEW_N(a, sc_time, r->m->n_spans);
    if (!*out) return sc_error_nomem(err);
    for (uint32_t i = 0; i < r->n_ops; i++) {
        uint32_t span = common_op(r, i);
        if (span != REPLAY_NONE &&
            replay_span(r, r->op[i].span)->kind == SC_SPAN_KERNEL)
            (*out)[span] += r->op[i].dur;
    }
    return SC_OK;
}
