/* SPDX-License-Identifier: Apache-2.0 */
/* et.c - adds an execution trace to what a profiler recorded of the same rank. */
#include "trace/et.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_NODES (1u << 26)

/* ---- what operators use -------------------------------------------------- */

/* Which arguments an operator changes, by its schema: those with a '!' inside
 * "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1)". */
static uint64_t changed_args(const scan_token *schema)
{
    uint64_t out = 0;
    int depth = 0, arg = 0;
    if (schema->type != SCAN_STRING) return 0;
    const char *p = memchr(schema->at, '(', schema->len);
    const char *end = schema->at + schema->len;
    for (; p && p < end && arg < 64; p++) {
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        if (depth == 0) break;
        if (*p == '!' && arg >= 0) out |= UINT64_C(1) << arg;
        if (depth == 1) arg += (*p == ',') - (*p == '*'); /* '*' is none */
    }
    return out;
}

static sc_status add_use(et_ops *x, const scan_token *value, bool read,
                         bool written)
{
    sc_et_tensor t;
    if (!sc_et_tensor_read(value, &t) || t.elements == 0) return SC_OK;
    sc_trace_use *grown = sc_grow_raw(x->p.a, x->use, x->n_uses, &x->cap_uses,
                                      256, sizeof *grown);
    if (!grown) return sc_error_nomem(x->p.err);
    x->use = grown;
    x->use[x->n_uses++] =
        (sc_trace_use){t.storage, t.offset, t.elements, read, written};
    return SC_OK;
}

/* `changed` has a bit for each value. */
static sc_status add_uses(et_ops *x, const sc_et_side *s, bool read,
                          uint64_t changed)
{
    sc_et_args it;
    scan_token value, shape, type, e;
    sc_et_args_init(&it, s);
    for (; sc_et_args_next(&it, &value, &shape, &type); changed >>= 1) {
        if (sc_et_is_tensor(&type))
            SC_TRY(add_use(x, &value, read, changed & 1));
        if (!sc_et_is_tensor_list(&type) || value.type != SCAN_ARRAY) continue;
        const char *p = value.at + 1, *end = value.at + value.len;
        while (scan_element(&p, end, &e))
            SC_TRY(add_use(x, &e, read, changed & 1));
    }
    return SC_OK;
}

/* ---- nodes --------------------------------------------------------------- */

/* The list of process groups is a text among the inputs. */
static void keep_groups(et_ops *x, const sc_et_node *n)
{
    sc_et_args it;
    scan_token value, shape, type;
    sc_et_args_init(&it, &n->in);
    if (x->p.m.n_groups || !sc_et_args_next(&it, &value, &shape, &type)) return;
    char *text = SC_RAW_N(x->tmp, char, (size_t)value.len + 2);
    if (!text) {
        x->p.out_of_memory = true;
        return;
    }
    size_t len = scan_unescape(&value, text);
    const char *p = text;
    scan_token list;
    text[len] = ' '; /* a value ends before something */
    text[len + 1] = '\0';
    if (scan_value(&p, text + len + 1, &list) == SCAN_OK)
        profiled_groups(&x->p, &list);
}

sc_status et_keep(void *ctx, const sc_et_node *n)
{
    et_ops *x = ctx;
    et_op op = {.id = n->id, .record = n->record, .thread = n->thread};
    if (SCAN_IS(&n->name, "## process_group:init ##")) keep_groups(x, n);
    if (n->record == 0) return SC_OK; /* of the tree of threads */
    if (x->n == MAX_NODES)
        return sc_error(x->p.err, SC_EINPUT, SC_C_TOO_BIG, n->pos, NULL,
                        "the trace has more than %u nodes", MAX_NODES);
    et_op *grown =
        sc_grow_raw(x->tmp, x->op, x->n, &x->cap, 1024, sizeof *grown);
    if (!grown) return sc_error_nomem(x->p.err);
    x->op = grown;
    op.name = profiled_token(&x->p, &n->name);
    op.uses = x->n_uses;
    if (!et_args_of(x, n, &op.args)) return sc_error_nomem(x->p.err);
    SC_TRY(add_uses(x, &n->in, true, changed_args(&n->schema)));
    SC_TRY(add_uses(x, &n->out, false, UINT64_MAX));
    op.n_uses = x->n_uses - op.uses;
    x->op[x->n++] = op;
    return SC_OK;
}

static int by_thread(const void *p, const void *q)
{
    const et_op *a = p, *b = q;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return (a->uses > b->uses) - (a->uses < b->uses);
}

/* ---- linking ------------------------------------------------------------- */

/* What the span lacks and the node has. */
static void complete_args(sc_trace_span_args *to,
                          const sc_trace_span_args *from, sc_et_linked *out)
{
    if (!to->dims && from->dims) {
        to->dims = from->dims;
        to->types = from->types;
        out->shaped++;
    }
    if (!to->concrete) to->concrete = from->concrete;
    if (to->coll || to->group || !from->coll) return;
    to->coll = from->coll;
    to->dtype = from->dtype;
    to->in_elems = from->in_elems;
    to->out_elems = from->out_elems;
    to->group = from->group;
    to->ranks = from->ranks;
    to->group_size = from->group_size;
    out->comms++;
}

static sc_status add_args(et_ops *x, const uint32_t *node, sc_et_linked *out)
{
    sc_profiled *m = &x->p.m;
    for (uint64_t i = 0; i < m->n_spans; i++) {
        sc_trace_span *s = sc_trace_span_at(m, i);
        if (!node[i]) continue;
        sc_trace_span_args args = m->args[s->args];
        complete_args(&args, &m->args[x->op[node[i] - 1].args], out);
        s->args = profiled_args(&x->p, &args);
    }
    return x->p.out_of_memory ? sc_error_nomem(x->p.err) : SC_OK;
}

/* Uses were collected in the order of the file, operators have another one. */
static sc_status keep_uses(et_ops *x, uint32_t *node)
{
    sc_profiled *m = &x->p.m;
    m->use_head = SC_NEW_N(x->p.a, uint32_t, (size_t)x->n + 1);
    m->use = SC_RAW_N(x->p.a, sc_trace_use, (size_t)x->n_uses);
    if (!m->use_head || !m->use) return sc_error_nomem(x->p.err);
    for (uint32_t i = 0, n = 0; i < x->n; i++) {
        const et_op *op = &x->op[i];
        if (op->n_uses)
            memcpy(m->use + n, x->use + op->uses, op->n_uses * sizeof *m->use);
        n += op->n_uses;
        m->use_head[i + 1] = n;
    }
    m->node = node;
    return SC_OK;
}

/* Less than half of both: an execution trace may also be of more steps than the
 * profiler recorded, or of fewer. */
static sc_status check(const et_ops *x, const char *file,
                       const sc_et_linked *out)
{
    if (out->nodes == 0)
        return sc_error(x->p.err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
                        NULL, "the execution trace has no operator");
    if (2 * (uint64_t)out->linked >= out->nodes ||
        2 * (uint64_t)out->spans_linked >= out->spans)
        return SC_OK;
    return sc_error(x->p.err, SC_EINPUT, SC_C_REFERENCE, sc_pos_file(file),
                    "give the execution trace that was recorded together with "
                    "it",
                    "only %u of %u operators are also in %.120s: the two are "
                    "not of one run",
                    out->linked, out->nodes, x->p.m.file);
}

static sc_status link_all(et_ops *x, const char *file, sc_et_linked *out)
{
    sc_profiled *m = &x->p.m;
    if (x->n) qsort(x->op, x->n, sizeof *x->op, by_thread);
    uint32_t *span = SC_RAW_N(x->tmp, uint32_t, x->n);
    uint32_t *node = SC_NEW_N(x->p.a, uint32_t, m->n_spans);
    if (!span || !node) return sc_error_nomem(x->p.err);
    *out = (sc_et_linked){.nodes = x->n};
    SC_TRY(et_match(x, span, node, out));
    SC_TRY(check(x, file, out));
    SC_TRY(add_args(x, node, out));
    return keep_uses(x, node);
}

static sc_status link_stream(sc_stream *in, const char *file, sc_profiled *m,
                             sc_arena *a, sc_et_linked *out, sc_err *err)
{
    sc_arena tmp;
    sc_arena_init(&tmp, a->limit);
    et_ops x = {.tmp = &tmp};
    sc_text_init(&x.text);
    profiled_resume(&x.p, m, a, err);
    sc_status s = sc_et_read(in, file, et_keep, &x, err);
    if (s == SC_OK) s = link_all(&x, file, out);
    if (s == SC_OK && (x.p.out_of_memory || x.text.failed))
        s = sc_error_nomem(err);
    *m = x.p.m; /* also after an error: spans may have new arguments */
    sc_text_free(&x.text);
    sc_arena_free(&tmp);
    return s;
}

sc_status sc_et_link(const char *path, sc_profiled *m, sc_arena *a,
                     sc_et_linked *out, sc_err *err)
{
    sc_stream *in;
    SC_TRY(sc_stream_open(path, &in, err));
    sc_status s = link_stream(in, path, m, a, out, err);
    sc_stream_close(in);
    return s;
}

sc_status sc_et_link_memory(const char *data, size_t len, const char *file,
                            sc_profiled *m, sc_arena *a, sc_et_linked *out,
                            sc_err *err)
{
    sc_stream *in;
    SC_TRY(sc_stream_open_memory(data, len, file, &in, err));
    sc_status s = link_stream(in, file, m, a, out, err);
    sc_stream_close(in);
    return s;
}

sc_et_file sc_et_file_look(const char *path)
{
    sc_et_file out = {.path = path, .pid = -1};
    struct stat st;
    sc_stream *in;
    sc_et_head head;
    sc_et_kind kind;
    sc_err err; /* whoever reads the file reports it */
    sc_err_init(&err);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return out;
    if (sc_stream_open(path, &in, &err) != SC_OK) return out;
    if (sc_et_recognise(in, path, &kind, &head, &err) == SC_OK)
        out.pid = head.pid;
    out.is = kind == SC_ET_NODES;
    sc_stream_close(in);
    return out;
}

bool sc_profiled_has_process(const sc_profiled *m, int64_t pid)
{
    for (uint32_t i = 0; i < m->n_lanes; i++)
        if (!m->lanes[i].device && m->lanes[i].n && m->lanes[i].pid == pid)
            return true;
    return false;
}
