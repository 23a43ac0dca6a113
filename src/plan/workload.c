/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.c - the lowered step of blocks as tasks of ranks that exchange
 * messages.
 */
#include "plan/workload.h"

#include "plan/plan_internal.h"

#include <math.h>
#include <string.h>

typedef struct work {
    const sc_plan *p;
    const sc_graph *g;
    const lower_note *note; /* [n_ops] */
    sc_arena *a;
    sc_err *err;
    work_build b;
    work_side *side;        /* [n_classes] */
    uint32_t *pred_head;    /* [n_ops + 1] CSR */
    sc_op *pred;            /* [n_deps] */
    uint32_t *first, *last; /* [n_ops] tasks of its own class */
    uint32_t *arrived;      /* [n_ops] of P2P: task of the peer */
    uint32_t *tag;          /* [n_ops] of P2P */
    uint32_t **met;         /* [n_ops] of marks that exchange: task
                                      by class */
    bool ahead;             /* receives are there from the start */
} work;

/* Axes of one member say nothing; of two stages both are ends. */
static uint32_t real_axes(const sc_run *r, uint32_t axes)
{
    uint32_t real = axes & (LOWER_ENDS | LOWER_MIRROR);
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (axes >> ax & 1 && r->size[ax] > 1) real |= 1u << ax;
    bool two = r->size[SC_AX_PP] == 2;
    return two ? real & ~(LOWER_ENDS | LOWER_MIRROR) : real;
}

static sc_status collective(work *w, work_side *s, const lower_transfer *t,
                            const char *name, sc_time duration, work_task *out)
{
    const sc_run *r = &w->p->run;
    uint32_t axes = real_axes(r, t->axes), n = work_members(r, axes);
    uint64_t v = work_bytes(t->bytes);
    *out = (work_task){.name = name,
                       .duration = duration,
                       .size = t->coll == SC_ALL_GATHER ? (v + n - 1) / n : v,
                       .group = SC_TASK_WORLD,
                       .kind = SC_TASK_COLL,
                       .coll = work_coll_of[t->coll],
                       .flags = SC_TASK_NO_OPS};
    if (n == r->hw->n_devices) return SC_OK;
    return work_slot(&w->b, &s->group, &s->n_groups, &s->cap_groups, axes,
                     &out->group);
}

static sc_status message(work *w, sc_op i, bool send, work_task *out)
{
    const sc_graph *g = w->g;
    work_side *s = &w->side[send ? g->cls[i] : g->peer[i]];
    *out = (work_task){.name = send ? g->name[i] : "receive",
                       .duration = send ? g->work[i] : 0,
                       .size = work_bytes((double)g->bytes[i]),
                       .kind = send ? SC_TASK_SEND : SC_TASK_RECV,
                       .flags = SC_TASK_NO_OPS};
    SC_TRY(work_slot(&w->b, &s->peer, &s->n_peers, &s->cap_peers,
                     send ? g->peer[i] : g->cls[i], &out->peer));
    return work_tag(&w->b, s, w->tag[i], &out->tag);
}

static work_task simple(const work *w, sc_op i)
{
    const sc_graph *g = w->g;
    double bytes = w->note[i].traffic;
    if (bytes <= 0) bytes = (double)g->bytes[i];
    work_task t = {.name = g->name[i], .duration = g->work[i]};
    if (g->kind[i] == SC_OP_MEM) {
        t.kind = w->note[i].load ? SC_TASK_LOAD : SC_TASK_STORE;
        t.size = work_bytes(bytes);
        t.flags = SC_TASK_NO_OPS;
        return t;
    }
    t.kind = SC_TASK_COMP;
    if (g->kind[i] == SC_OP_COMPUTE && bytes > 0) {
        /* a roofline divides by both */
        t.size = work_bytes(bytes);
        t.ops = g->flops[i] < 1 ? 1 : (uint64_t)g->flops[i];
    } else {
        t.flags = SC_TASK_NO_SIZE | SC_TASK_NO_OPS;
    }
    return t;
}

/* ---- what an op waits for --------------------------------------------------- */

static sc_status lost(const work *w, sc_op i)
{
    return sc_error(w->err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "op %u (%s) has no form in a workload", i, w->g->name[i]);
}

/* The receive of a transfer, and the gather of its parts if it was split, just
 * before the first task that needs it.  It is posted when the device has run
 * what it runs before, without the sends: both ends of an exchange in opposite
 * directions are ready to receive.  Between chunks sends may be far ahead of
 * that, as between split passes: their receives are there from the start. */
static sc_status arrive(work *w, sc_op i)
{
    work_side *s = &w->side[w->g->peer[i]];
    work_task t;
    if (w->arrived[i] != SC_NONE) return SC_OK;
    work_build keep = w->b;
    w->b = (work_build){.a = w->a, .err = w->err};
    if (!w->ahead) SC_TRY(work_wait(&w->b, s->posted));
    SC_TRY(message(w, i, false, &t));
    SC_TRY(work_add(&w->b, s, &t, false, &w->arrived[i]));
    if (w->note[i].n) {
        w->b.n_list = 0;
        SC_TRY(work_wait(&w->b, w->arrived[i]));
        SC_TRY(collective(w, s, w->note[i].t, "gather parts", 0, &t));
        SC_TRY(work_enqueue(&w->b, s, &t, SC_S_COMPUTE, &w->arrived[i]));
    }
    w->b = keep;
    return SC_OK;
}

/* Adds what `cls` has of op `p`. */
static sc_status wait_for_op(work *w, sc_op p, uint32_t cls)
{
    const sc_graph *g = w->g;
    if (g->kind[p] == SC_OP_MARK) {
        if (w->met[p]) return work_wait(&w->b, w->met[p][cls]);
        for (uint32_t k = w->pred_head[p]; k < w->pred_head[p + 1]; k++) {
            sc_op q = w->pred[k];
            if (g->cls[q] == cls || g->kind[q] == SC_OP_MARK)
                SC_TRY(wait_for_op(w, q, cls));
        }
        return SC_OK;
    }
    if (g->cls[p] == cls) return work_wait(&w->b, w->last[p]);
    if (g->kind[p] != SC_OP_P2P || g->peer[p] != cls) return lost(w, p);
    SC_TRY(arrive(w, p));
    return work_wait(&w->b, w->arrived[p]);
}

/* ---- ops --------------------------------------------------------------------- */

static sc_status place(work *w, sc_op i, const work_task *t)
{
    uint32_t cls = w->g->cls[i];
    uint32_t back = w->note[i].beside;
    bool done = false;
    if (back && back <= i)
        SC_TRY(work_beside(&w->b, &w->side[cls], w->first[i - back], t,
                           &w->last[i], &done));
    w->first[i] = w->last[i];
    if (done) return SC_OK;
    w->b.n_list = 0;
    for (uint32_t k = w->pred_head[i]; k < w->pred_head[i + 1]; k++)
        SC_TRY(wait_for_op(w, w->pred[k], cls));
    SC_TRY(work_enqueue(&w->b, &w->side[cls], t, w->g->stream[i], &w->last[i]));
    w->first[i] = w->last[i];
    return SC_OK;
}

/* One task per communicator, one after the other; the op's time is shared by
 * size. */
static sc_status exchange(work *w, sc_op i)
{
    const lower_note *note = &w->note[i];
    work_side *s = &w->side[w->g->cls[i]];
    double sum = 0;
    for (uint32_t k = 0; k < note->n; k++) sum += note->t[k].bytes;
    if (note->n == 0) return lost(w, i);
    for (uint32_t k = 0; k < note->n; k++) {
        double share = sum > 0 ? note->t[k].bytes / sum : 0;
        work_task t;
        SC_TRY(collective(w, s, &note->t[k], w->g->name[i],
                          (sc_time)((double)w->g->work[i] * share), &t));
        if (k == 0) {
            SC_TRY(place(w, i, &t));
            continue;
        }
        w->b.n_list = 0;
        SC_TRY(work_wait(&w->b, w->last[i]));
        SC_TRY(work_enqueue(&w->b, s, &t, w->g->stream[i], &w->last[i]));
    }
    return SC_OK;
}

/* A mark at which devices meet is a collective of all of them. */
static sc_status meet(work *w, sc_op i)
{
    const lower_note *note = &w->note[i];
    uint32_t n = w->g->n_classes;
    if (note->n == 0) return SC_OK;
    w->met[i] = SC_NEW_N(w->a, uint32_t, n);
    if (!w->met[i]) return sc_error_nomem(w->err);
    uint32_t *met = w->met[i];
    w->met[i] = NULL; /* not met yet */
    for (uint32_t c = 0; c < n; c++) {
        work_task t;
        w->b.n_list = 0;
        SC_TRY(wait_for_op(w, i, c));
        SC_TRY(collective(w, &w->side[c], note->t, w->g->name[i], 0, &t));
        SC_TRY(work_enqueue(&w->b, &w->side[c], &t, w->g->stream[i], &met[c]));
    }
    w->met[i] = met;
    return SC_OK;
}

static sc_status convert(work *w, sc_op i)
{
    work_task t;
    switch ((sc_op_kind)w->g->kind[i]) {
    case SC_OP_MARK: return meet(w, i);
    case SC_OP_COLL: return exchange(w, i);
    case SC_OP_P2P: SC_TRY(message(w, i, true, &t)); break;
    default: t = simple(w, i); break;
    }
    return place(w, i, &t);
}

/* ---- set-up ------------------------------------------------------------------ */

/* Transfers between two devices are numbered in order, from 1: by their place
 * among micro-batches, chunks and directions. */
static sc_status number(work *w, uint32_t *most)
{
    const sc_graph *g = w->g;
    size_t pairs = (size_t)g->n_classes * g->n_classes;
    uint32_t *n = SC_NEW_N(w->a, uint32_t, pairs);
    w->tag = SC_NEW_N(w->a, uint32_t, g->n_ops);
    if (!n || !w->tag) return sc_error_nomem(w->err);
    *most = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (g->kind[i] != SC_OP_P2P) continue;
        w->tag[i] = ++n[(size_t)g->cls[i] * g->n_classes + g->peer[i]];
        if (w->tag[i] > *most) *most = w->tag[i];
    }
    return SC_OK;
}

static sc_status prepare(work *w)
{
    const sc_graph *g = w->g;
    uint32_t tags = 0;
    SC_TRY(work_preds(g, w->a, &w->pred_head, &w->pred, w->err));
    SC_TRY(number(w, &tags));
    w->side = SC_NEW_N(w->a, work_side, g->n_classes);
    w->first = SC_NEW_N(w->a, uint32_t, g->n_ops);
    w->last = SC_NEW_N(w->a, uint32_t, g->n_ops);
    w->arrived = SC_NEW_N(w->a, uint32_t, g->n_ops);
    w->met = SC_NEW_N(w->a, uint32_t *, g->n_ops);
    if (!w->side || !w->first || !w->last || !w->arrived || !w->met)
        return sc_error_nomem(w->err);
    memset(w->arrived, 0xff, g->n_ops * sizeof *w->arrived);
    for (uint32_t c = 0; c < g->n_classes; c++)
        SC_TRY(work_side_init(&w->b, &w->side[c], tags));
    return SC_OK;
}

sc_status sc_plan_workload(const sc_plan *p, const sc_block *blocks,
                           sc_arena *a, sc_workload *out, sc_err *err)
{
    sc_graph g;
    lower_notes notes = {.a = a};
    work w = {.p = p, .g = &g, .a = a, .err = err, .b = {.a = a, .err = err}};
    w.ahead = sc_run_chunks(&p->run) > 1 || sc_run_splits(&p->run);
    SC_TRY(lower_graph(p, blocks, true, &notes, a, &g, err));
    if (notes.failed) return sc_error_nomem(err);
    w.note = notes.at;
    for (uint32_t i = 0; i < g.n_ops; i++)
        if (i >= notes.n || notes.at[i].name != g.name[i])
            return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "lowering added op %u out of order", i);
    SC_TRY(prepare(&w));
    for (uint32_t i = 0; i < g.n_ops; i++) SC_TRY(convert(&w, i));
    return work_finish(p, w.side, a, out, err);
}
