/* SPDX-License-Identifier: Apache-2.0 */
/* raw.c - nodes as they stand in a file: room, attributes, conversions. */
#include "trace/raw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void raw_begin(raw_trace *t, const char *file, bool text, sc_err *err)
{
    t->file = file;
    t->text = text;
    t->err = err;
    t->first = SC_OK;
    t->n = t->n_deps = t->n_uses = 0;
    t->replayed = false;
}

sc_pos raw_pos(const raw_trace *t, uint64_t at)
{
    if (!t->text) return sc_pos_byte(t->file, at);
    sc_pos p = {t->file, (uint32_t)(at >> 32), (uint32_t)at};
    return p;
}

sc_status raw_error(raw_trace *t, sc_code code, uint64_t at, const char *hint,
                    const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(t->err, &t->first, SC_EINPUT, code, raw_pos(t, at), hint, fmt,
               args);
    va_end(args);
    return SC_EINPUT;
}

static sc_status nomem(raw_trace *t)
{
    if (t->first == SC_OK) t->first = SC_ENOMEM;
    return sc_error_nomem(t->err);
}

raw_node *raw_add(raw_trace *t, uint64_t at)
{
    if (t->n >= UINT32_MAX / 2) {
        raw_error(t, SC_C_TOO_BIG, at, NULL, "more than %u nodes", t->n);
        return NULL;
    }
    raw_node *v = sc_grow(t->keep, t->node, t->n, &t->cap, 256, sizeof *v);
    if (v == NULL) {
        nomem(t);
        return NULL;
    }
    t->node = v;
    raw_node *n = &v[t->n++];
    memset(n, 0, offsetof(raw_node, v));
    n->at = at;
    n->dep = t->n_deps;
    return n;
}

sc_status raw_add_dep(raw_trace *t, raw_node *n, uint64_t id)
{
    if (t->n_deps == t->cap_deps) {
        uint64_t *v =
            sc_grow(t->keep, t->dep, t->n_deps, &t->cap_deps, 512, sizeof *v);
        if (v == NULL) return nomem(t);
        t->dep = v;
    }
    t->dep[t->n_deps++] = id;
    n->n_deps++;
    return SC_OK;
}

raw_value *raw_item(raw_trace *t)
{
    raw_value *v =
        sc_grow(t->keep, t->item, t->n_items, &t->cap_items, 64, sizeof *v);
    if (v == NULL) {
        nomem(t);
        return NULL;
    }
    t->item = v;
    return &v[t->n_items++];
}

const uint8_t raw_colls[RAW_N_COLLS] = {
    SC_ALL_REDUCE,     SC_REDUCE,    SC_ALL_GATHER, SC_GATHER,
    SC_SCATTER,        SC_BROADCAST, SC_ALL_TO_ALL, SC_REDUCE_SCATTER,
    SC_REDUCE_SCATTER, SC_BARRIER};

static const struct {
    const char *name;
    uint64_t max;
} attr_rows[] = {
    [RAW_IS_CPU_OP] = {"is_cpu_op", UINT64_MAX},
    [RAW_NUM_OPS] = {"num_ops", UINT64_MAX},
    [RAW_TENSOR_SIZE] = {"tensor_size", INT64_MAX},
    [RAW_COMM_TYPE] = {"comm_type", RAW_N_COLLS - 1},
    [RAW_COMM_SIZE] = {"comm_size", INT64_MAX},
    [RAW_COMM_PRIORITY] = {"comm_priority", UINT32_MAX},
    [RAW_COMM_SRC] = {"comm_src", UINT32_MAX - 1},
    [RAW_COMM_DST] = {"comm_dst", UINT32_MAX - 1},
    [RAW_COMM_TAG] = {"comm_tag", UINT32_MAX},
    [RAW_COMM_ROOT] = {"comm_root", UINT32_MAX - 1},
    [RAW_DURATION_PS] = {"duration_ps", INT64_MAX},
    [RAW_PG_NAME] = {"pg_name", 0},
    [RAW_INVOLVED_DIM] = {"involved_dim", 0},
    [RAW_INPUTS] = {"inputs", 0},
    [RAW_OUTPUTS] = {"outputs", 0},
};

/* Lengths are constant, so that a comparison is one or two instructions. */
#define IS(name, attr) \
    (memcmp(s, name, sizeof(name) - 1) == 0 ? (attr) : RAW_NONE)

static raw_attr find_comm(const char *s, size_t len)
{
    switch (len) {
    case 8:
        if (s[5] == 's') return IS("comm_src", RAW_COMM_SRC);
        if (s[5] == 'd') return IS("comm_dst", RAW_COMM_DST);
        return IS("comm_tag", RAW_COMM_TAG);
    case 9:
        if (s[5] == 't') return IS("comm_type", RAW_COMM_TYPE);
        if (s[5] == 's') return IS("comm_size", RAW_COMM_SIZE);
        return IS("comm_root", RAW_COMM_ROOT);
    case 13: return IS("comm_priority", RAW_COMM_PRIORITY);
    default: return RAW_NONE;
    }
}

/* Compares lengths first, because most attributes are unknown. */
raw_attr raw_attr_find(const char *s, size_t len)
{
    switch (len) {
    case 6: return IS("inputs", RAW_INPUTS);
    case 7:
        if (s[0] == 'o') return IS("outputs", RAW_OUTPUTS);
        if (s[0] == 'n') return IS("num_ops", RAW_NUM_OPS);
        return IS("pg_name", RAW_PG_NAME);
    case 9:
        if (s[0] == 'i') return IS("is_cpu_op", RAW_IS_CPU_OP);
        return find_comm(s, len);
    case 11:
        if (s[0] == 't') return IS("tensor_size", RAW_TENSOR_SIZE);
        return IS("duration_ps", RAW_DURATION_PS);
    case 12: return IS("involved_dim", RAW_INVOLVED_DIM);
    default: return find_comm(s, len);
    }
}

static const char *const value_names[] = {"nothing", "an integer", "an integer",
                                          "a float", "a text",     "a list"};

static sc_status wrong_type(raw_trace *t, raw_attr attr, const raw_value *v,
                            const char *want, uint64_t at)
{
    return raw_error(t, SC_C_TYPE, at, NULL, "%s holds %s, not %s",
                     attr_rows[attr].name, value_names[v->kind], want);
}

static sc_status set_number(raw_trace *t, raw_node *n, raw_attr attr,
                            const raw_value *v, uint64_t at)
{
    if (v->kind != RAW_V_INT && v->kind != RAW_V_UINT)
        return wrong_type(t, attr, v, "an integer", at);
    bool negative = v->kind == RAW_V_INT && v->as.i < 0;
    uint64_t value = v->as.u;
    if (attr == RAW_IS_CPU_OP) {
        value = value != 0;
    } else if (negative) {
        return raw_error(t, SC_C_RANGE, at, NULL, "%s is %" PRId64,
                         attr_rows[attr].name, v->as.i);
    } else if (value > attr_rows[attr].max) {
        return raw_error(t, SC_C_RANGE, at, NULL,
                         "%s is %" PRIu64 ", more than %" PRIu64,
                         attr_rows[attr].name, value, attr_rows[attr].max);
    }
    n->v[attr] = value;
    return SC_OK;
}

raw_text raw_group_name(raw_text name)
{
    const char *p = name.p, *end = name.p + name.n;
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    if (p < end && *p == '+') p++;
    const char *digits = p;
    while (p < end && *p >= '0' && *p <= '9') p++;
    raw_text number = {digits, (size_t)(p - digits)};
    if (number.n == 0) return name;
    if (p < end && *p == '.')
        for (p++; p < end && *p >= '0' && *p <= '9';) p++;
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    if (p < end) return name;
    while (number.n > 1 && *number.p == '0')
        number = (raw_text){number.p + 1, number.n - 1};
    return number;
}

/* Communicator groups are named by texts that hold integers, or by integers. */
static sc_status set_group(raw_trace *t, raw_node *n, const raw_value *v,
                           uint64_t at)
{
    if (v->kind == RAW_V_TEXT) {
        if (v->as.text.n > 0 && memchr(v->as.text.p, '\0', v->as.text.n))
            return raw_error(t, SC_C_TYPE, at, NULL,
                             "pg_name contains a zero byte");
        n->group = raw_group_name(v->as.text);
        return SC_OK;
    }
    if (v->kind != RAW_V_INT && v->kind != RAW_V_UINT)
        return wrong_type(t, RAW_PG_NAME, v, "a text or an integer", at);
    char *s = v->kind == RAW_V_INT ? sc_sprintf(t->tmp, "%" PRId64, v->as.i)
                                   : sc_sprintf(t->tmp, "%" PRIu64, v->as.u);
    if (s == NULL) return nomem(t);
    n->group = (raw_text){s, strlen(s)};
    return SC_OK;
}

static sc_status set_dims(raw_trace *t, raw_node *n, const raw_value *v,
                          uint64_t at)
{
    if (v->kind != RAW_V_LIST)
        return wrong_type(t, RAW_INVOLVED_DIM, v, "a list of bool", at);
    n->dims = 0;
    for (uint32_t i = 0; i < v->as.list.n; i++) {
        const raw_value *e = &v->as.list.v[i];
        if (e->kind != RAW_V_INT)
            return wrong_type(t, RAW_INVOLVED_DIM, e, "bool", at);
        if (e->as.i != 0 && i >= 32)
            return raw_error(t, SC_C_TOO_BIG, at, NULL,
                             "involved_dim names dimension %u", i);
        if (e->as.i != 0) n->dims |= 1u << i;
    }
    return SC_OK;
}

/* "16777216" or "16777216.0", as generators in Python write it. */
static bool whole_number(raw_text s, uint64_t *out)
{
    size_t i = 0;
    uint64_t v = 0;
    for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
        if (v > (INT64_MAX - 9) / 10) return false;
        v = 10 * v + (uint64_t)(s.p[i] - '0');
    }
    if (i == 0) return false;
    if (i < s.n && s.p[i] == '.')
        for (i++; i < s.n && s.p[i] == '0';) i++;
    *out = v;
    return i == s.n;
}

static sc_status add_use(raw_trace *t, raw_text name, uint64_t bytes)
{
    raw_use *u =
        sc_grow(t->keep, t->use, t->n_uses, &t->cap_uses, 256, sizeof *u);
    if (u == NULL) return nomem(t);
    t->use = u;
    u[t->n_uses++] = (raw_use){name, bytes};
    return SC_OK;
}

/* [name, bytes, name, bytes, ...] */
static sc_status set_tensors(raw_trace *t, raw_node *n, raw_attr attr,
                             const raw_value *v, uint64_t at)
{
    const char *what = attr_rows[attr].name;
    if (v->kind != RAW_V_LIST) return SC_OK; /* another convention */
    const raw_value *e = v->as.list.v;
    if (v->as.list.n % 2 != 0)
        return raw_error(t, SC_C_TYPE, at, NULL,
                         "%s is not a list of names and sizes", what);
    uint32_t first = t->n_uses, count = v->as.list.n / 2;
    for (uint32_t i = 0; i < 2 * count; i += 2) {
        uint64_t bytes = 0;
        if (e[i].kind != RAW_V_TEXT || e[i + 1].kind != RAW_V_TEXT ||
            !whole_number(e[i + 1].as.text, &bytes))
            return raw_error(t, SC_C_TYPE, at, NULL,
                             "tensor %u of %s has no size in bytes", i / 2,
                             what);
        SC_TRY(add_use(t, e[i].as.text, bytes));
    }
    if (attr == RAW_OUTPUTS) {
        n->out = first;
        n->n_out = count;
    } else {
        n->in = first;
        n->n_in = count;
    }
    return SC_OK;
}

sc_status raw_set(raw_trace *t, raw_node *n, raw_attr attr, const raw_value *v,
                  uint64_t at)
{
    if (attr >= RAW_NONE || (n->given >> attr & 1) != 0) return SC_OK;
    n->given |= 1u << attr;
    if (attr < RAW_N_NUMBERS) return set_number(t, n, attr, v, at);
    if (attr == RAW_PG_NAME) return set_group(t, n, v, at);
    if (attr == RAW_INVOLVED_DIM) return set_dims(t, n, v, at);
    return t->tensors ? set_tensors(t, n, attr, v, at) : SC_OK;
}

sc_status raw_set_kind(raw_trace *t, raw_node *n, uint64_t kind, uint64_t at)
{
    if (kind > RAW_LAST_KIND)
        return raw_error(t, SC_C_RANGE, at, NULL,
                         "a node of type %" PRIu64 "; types go to %d", kind,
                         RAW_LAST_KIND);
    n->kind = (uint8_t)kind;
    if (kind < SC_N_TASK_KINDS) return SC_OK;
    n->kind = SC_TASK_COMP;
    n->given |= 1u << RAW_IS_CPU_OP;
    n->v[RAW_IS_CPU_OP] = 1;
    t->replayed = true;
    return SC_OK;
}
