/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_kineto.c - a profiler's trace with shapes as the nodes of an execution trace.
 *
 * The nodes are the events of the thread that marks the steps, and those of
 * autograd's engine on any thread.  An event belongs to the one around it on its
 * thread.  Only operators that no other calls have arguments and results: the
 * others are parts of them.
 */
#include "model/et_kineto.h"

#include "et/et_kineto.h"

#include <stdlib.h>
#include <string.h>

#define MAX_EVENTS (1u << 22)

typedef struct event {
    sc_time start, end;
    int64_t pid, tid;
    const char *name;
    scan_token dims, types, concrete;
    sc_pos pos;
    uint32_t order; /* in the file */
    bool step, backward;
} event;

typedef struct reader {
    sc_arena *a;
    sc_err *err;
    scan s; /* of the whole text, so tokens stay valid */
    sc_profile_clock clock;
    event *event;
    uint32_t n, cap;
    bool shapes;
    sc_pos hidden; /* of the first event that hides operators */
    bool hides;
} reader;

/* ---- events -------------------------------------------------------------- */

/* Names of operators of autograd's engine; before 2021 without a namespace. */
static bool is_backward(const char *name)
{
    const char *back = strstr(name, "Backward");
    if (strncmp(name, "autograd::", 10) == 0 ||
        strncmp(name, "torch::autograd::", 17) == 0)
        return true;
    return back && !strstr(name, "::") &&
           strspn(back + 8, "0123456789") == strlen(back + 8);
}

static bool is_kept(sc_kineto_kind kind)
{
    return kind == SC_KINETO_OP || kind == SC_KINETO_MARK ||
           kind == SC_KINETO_STEP;
}

/* Kernels of a compiler, and graphs of kernels: what they compute is no operator of
 * the trace. */
static bool hides_operators(const scan_token *name)
{
    static const char *const begins[] = {
        "triton_poi_",     "triton_per_",    "triton_red_",     "triton_tem_",
        "cudaGraphLaunch", "hipGraphLaunch", "CompiledFunction"};
    for (size_t i = 0; i < SC_COUNT(begins); i++)
        if (scan_starts(name, begins[i])) return true;
    return false;
}

static sc_status add_event(reader *r, event *e, const scan_token *name)
{
    if (r->n == MAX_EVENTS)
        return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, e->pos, NULL,
                        "the trace has more than %u operators", MAX_EVENTS);
    event *list = sc_grow(r->a, r->event, r->n, &r->cap, 4096, sizeof *list);
    char *text = SC_RAW_N(r->a, char, (size_t)name->len + 1);
    if (!list || !text) return sc_error_nomem(r->err);
    scan_unescape(name, text);
    e->name = text;
    e->backward = is_backward(text);
    e->order = r->n;
    r->event = list;
    list[r->n++] = *e;
    return SC_OK;
}

static sc_status damaged(const reader *r, sc_pos pos, const char *what)
{
    return sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, pos,
                    "parameters may be missing; record the step again", "%s",
                    what);
}

/* Other events than those of operators and annotations are left out. */
static sc_status on_event(void *ctx, const sc_kineto_event *from)
{
    reader *r = ctx;
    sc_time dur;
    event e = {.step = from->kind == SC_KINETO_STEP};
    if (!r->hides && from->name.type == SCAN_STRING &&
        hides_operators(&from->name)) {
        r->hidden = scan_here(&r->s);
        r->hides = true;
    }
    if (!is_kept(from->kind) || from->name.type != SCAN_STRING) return SC_OK;
    e.pos = scan_here(&r->s);
    if (!sc_kineto_time(&r->clock, from, &e.start, &dur))
        return damaged(r, e.pos, "an operator has no usable time");
    e.end = e.start + dur;
    e.pid = sc_kineto_id(&from->pid);
    e.tid = sc_kineto_id(&from->tid);
    e.dims = from->args->dims;
    e.types = from->args->types;
    e.concrete = from->args->concrete;
    r->shapes |= e.dims.type == SCAN_ARRAY;
    return add_event(r, &e, &from->name);
}

static sc_status read_events(reader *r)
{
    const sc_kineto_sink to = {r, on_event, NULL};
    sc_kineto_damage damage;
    SC_TRY(sc_kineto_read(&r->s, &to, &damage, r->err));
    if (damage.n_broken)
        return damaged(r, damage.broken, "an event of the trace can't be read");
    if (damage.truncated)
        return damaged(r, damage.end,
                       "the file ends inside its list of events");
    return SC_OK;
}

static bool on_thread(const event *e, const event *step)
{
    return e->pid == step->pid && e->tid == step->tid;
}

static int by_time(const void *x, const void *y)
{
    const event *a = x, *b = y;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->end != b->end) return a->end > b->end ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

/* ---- nodes --------------------------------------------------------------- */

typedef struct builder {
    reader *r;
    et_trace t;
    kineto_op *op; /* [n_ops] that no other calls, up to the backward pass */
    uint32_t n_ops;
    uint32_t
        *stack;    /* [n_open] nodes around the event at hand, with the ends */
    sc_time *ends; /* [n_open] */
    uint32_t *op_of; /* [n_open] the operator that calls; UINT32_MAX */
    uint32_t n_open;
    double fused; /* elements of tables whose kernel updates them */
} builder;

/* "aten::_softmax.int_" is "softmax". */
static const char *short_name(sc_arena *a, const char *name)
{
    const char *from = strstr(name, "::");
    from = from ? from + 2 : name;
    from += from[0] == '_';
    size_t len = strcspn(from, ".");
    if (len > 1 && from[len - 1] == '_') len--;
    return sc_strndup(a, from, len);
}

static void gradient(builder *b, const event *e)
{
    kineto_op o = {.node = &(et_node){.n_in = 0}};
    if (strcmp(e->name, "torch::autograd::AccumulateGrad") != 0 ||
        !kineto_args(&e->dims, &e->types, &e->concrete, b->r->a, &o))
        return;
    if (o.node->n_in > 0 && o.node->in[0].n == 1)
        b->t.gradients += et_elements(o.node->in[0].t);
}

/* Tables that their own kernel updates have no gradients to accumulate. */
static void add_fused(builder *b, const kineto_op *o)
{
    const et_node *n = o->node;
    if (strncmp(o->what, "split_embedding_codegen", 23) == 0 && n->n_in > 1 &&
        n->in[1].n == 1)
        b->fused += et_elements(n->in[1].t);
}

static sc_status open_op(builder *b, const event *e, et_node *n, uint32_t *op)
{
    kineto_op *o = &b->op[b->n_ops];
    *o = (kineto_op){.node = n, .what = short_name(b->r->a, e->name)};
    if (!o->what ||
        !kineto_args(&e->dims, &e->types, &e->concrete, b->r->a, o) ||
        !kineto_results(o, b->r->a))
        return sc_error_nomem(b->r->err);
    if (n->n_out == 0) return SC_OK;
    *op = b->n_ops++;
    add_fused(b, o);
    return SC_OK;
}

static bool is_operator(const event *e)
{
    return !e->backward && et_is_operator(e->name);
}

/* Adds an event of the thread that marks the steps. */
static sc_status add_node(builder *b, const event *e, bool forward)
{
    et_node *n = &b->t.node[b->t.n];
    while (b->n_open && b->ends[b->n_open - 1] <= e->start) b->n_open--;
    uint32_t up = b->n_open ? b->stack[b->n_open - 1] : UINT32_MAX;
    uint32_t op = b->n_open ? b->op_of[b->n_open - 1] : UINT32_MAX;
    *n = (et_node){.id = b->t.n + 1u,
                   .parent = up == UINT32_MAX ? 0 : b->t.node[up].id,
                   .name = e->name,
                   .backward = e->backward,
                   .pos = e->pos};
    if (op != UINT32_MAX)
        b->op[op].copies = true;
    else if (forward && is_operator(e))
        SC_TRY(open_op(b, e, n, &op));
    b->stack[b->n_open] = b->t.n++;
    b->ends[b->n_open] = e->end;
    b->op_of[b->n_open++] = op;
    return SC_OK;
}

/* Adds an operator of the backward pass on another thread. */
static void add_other(builder *b, const event *e)
{
    et_node *n = &b->t.node[b->t.n++];
    *n = (et_node){
        .id = b->t.n, .name = e->name, .backward = true, .pos = e->pos};
}

static bool alloc(builder *b)
{
    sc_arena *a = b->r->a;
    uint32_t n = b->r->n;
    b->t.node = SC_NEW_N(a, et_node, n);
    b->op = SC_NEW_N(a, kineto_op, n + (size_t)1);
    b->stack = SC_RAW_N(a, uint32_t, n + (size_t)1);
    b->ends = SC_RAW_N(a, sc_time, n + (size_t)1);
    b->op_of = SC_RAW_N(a, uint32_t, n + (size_t)1);
    return b->t.node && b->op && b->stack && b->ends && b->op_of;
}

/* Events of another step, or behind the last one, are left out. */
static sc_status build(builder *b, const event *step)
{
    bool backward = false;
    if (!alloc(b)) return sc_error_nomem(b->r->err);
    for (uint32_t i = 0; i < b->r->n; i++) {
        const event *e = &b->r->event[i];
        if (e->start < step->start || e->start >= step->end) continue;
        bool here = on_thread(e, step);
        if (!here && !e->backward) continue;
        backward |= e->backward;
        if (e->backward) gradient(b, e);
        if (here)
            SC_TRY(add_node(b, e, !backward));
        else
            add_other(b, e);
    }
    if (b->t.gradients == 0)
        SC_TRY(kineto_check_calls(b->op, b->n_ops, b->r->a, b->r->err));
    return kineto_match(b->op, b->n_ops, b->r->a, &b->t, b->r->err);
}

static bool has_product(const reader *r, const event *step)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const event *e = &r->event[i];
        if (on_thread(e, step) && e->start >= step->start &&
            e->start < step->end && is_operator(e) && et_computes(e->name))
            return true;
    }
    return false;
}

static sc_status missing(const reader *r, const char *file, const char *hint,
                         const char *what)
{
    return sc_error(r->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file), hint,
                    "%s", what);
}

/* The first step that has a product. */
static sc_status find_step(const reader *r, const char *file, const event **out)
{
    bool any = false;
    if (!r->shapes)
        return missing(r, file, "record with record_shapes=True",
                       "the profiler's trace has no shapes");
    for (uint32_t i = 0; i < r->n; i++) {
        any |= r->event[i].step;
        *out = &r->event[i];
        if (r->event[i].step && has_product(r, *out)) return SC_OK;
    }
    return missing(r, file,
                   "call the profiler's step() after each step of the program",
                   any ? "no step of the profiler's trace has a matrix product"
                       : "the profiler's trace does not mark steps");
}

sc_status et_kineto_read(const char *text, size_t len, const char *file,
                         sc_arena *a, et_trace *out, sc_err *err)
{
    const event *step = NULL;
    const char *name = sc_strdup(a, file);
    reader r = {.a = a, .err = err};
    if (!name) return sc_error_nomem(err);
    scan_open_text(&r.s, text, len, name, err);
    SC_TRY(read_events(&r));
    if (r.hides)
        return sc_error(
            err, SC_EINPUT, SC_C_UNSUPPORTED, r.hidden,
            "record the step without torch.compile and CUDA graphs",
            "a part of the program is compiled, or runs as a graph: "
            "its operators are not in the trace");
    if (r.n > 0) qsort(r.event, r.n, sizeof *r.event, by_time);
    SC_TRY(find_step(&r, name, &step));
    builder b = {.r = &r};
    SC_TRY(build(&b, step));
    *out = b.t;
    if (out->gradients > 0) out->gradients += b.fused;
    out->matched = true;
    return SC_OK;
}
