/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.c - the lowered step as tasks of ranks that exchange messages.
 *
 * The ids of the graph are one order of everything that all devices do, in
 * which nothing waits for what comes later.  Every rank's tasks keep it, and no
 * collective or send may start while one of a smaller id lacks something else
 * than communication: then every rank issues its communication in the order of
 * the graph even if it has one slot for it, and no cycle of waits can close.
 * Where the graph leaves the order open (weights gathered ahead), the later one
 * gets a dependency on what the earlier one waits for on the compute stream.
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
    work_side *side;             /* [n_classes] */
    uint32_t *pred_head;         /* [n_ops + 1] CSR */
    sc_op *pred;                 /* [n_deps] */
    uint32_t *first, *last;      /* [n_ops] tasks of its own class */
    uint32_t *arrived;           /* [n_ops] of P2P: task of the peer */
    uint32_t *tag;               /* [n_ops] of P2P */
    uint32_t **met;              /* [n_ops] of marks that exchange: task
                                      by class */
    uint32_t *list, n_list, cap; /* what the next task waits for */
    bool ahead;                  /* receives are there from the start */
} work;

/* ---- lists ----------------------------------------------------------------- */

static sc_status push(work *w, uint32_t **array, uint32_t *n, uint32_t *cap,
                      uint32_t value)
{
    uint32_t *at = sc_grow(w->a, *array, *n, cap, 64, sizeof *at);
    if (!at) return sc_error_nomem(w->err);
    at[(*n)++] = value;
    *array = at;
    return SC_OK;
}

static sc_status wait_for(work *w, uint32_t task)
{
    if (task == SC_NONE) return SC_OK;
    for (uint32_t i = 0; i < w->n_list; i++)
        if (w->list[i] == task) return SC_OK;
    return push(w, &w->list, &w->n_list, &w->cap, task);
}

/* Slot of a value among those named before. */
static sc_status slot_of(work *w, uint32_t **array, uint32_t *n, uint32_t *cap,
                         uint32_t value, uint32_t *out)
{
    for (*out = 0; *out < *n; ++*out)
        if ((*array)[*out] == value) return SC_OK;
    return push(w, array, n, cap, value);
}

static sc_status tag_slot(work *w, work_side *s, uint32_t tag, uint32_t *out)
{
    if (s->tag_slot[tag] == SC_NONE) {
        s->tag_slot[tag] = s->n_tags;
        SC_TRY(push(w, &s->tag, &s->n_tags, &s->cap_tags, tag));
    }
    *out = s->tag_slot[tag];
    return SC_OK;
}

/* ---- one task -------------------------------------------------------------- */

static bool exchanges(const work_task *t)
{
    return t->kind == SC_TASK_COLL || t->kind == SC_TASK_SEND;
}

/* Of the list: how far the chain is done, and whether it holds a receive. */
static uint32_t reach_of(const work *w, const work_side *s, bool *receives)
{
    uint32_t reach = 0;
    *receives = false;
    for (uint32_t i = 0; i < w->n_list; i++) {
        const work_task *t = &s->task[w->list[i]];
        if (t->reach > reach) reach = t->reach;
        *receives = *receives || t->kind == SC_TASK_RECV;
    }
    return reach;
}

/* Appends a task that waits for the list; the list is left as it is. */
static sc_status add(work *w, work_side *s, const work_task *what, bool chain,
                     uint32_t *out)
{
    work_task t = *what;
    bool receives;
    t.reach = reach_of(w, s, &receives);
    if (exchanges(&t) && t.reach < s->need) {
        SC_TRY(wait_for(w, s->chain[s->need - 1]));
        t.reach = s->need;
    }
    if (exchanges(&t) && t.reach > s->need) s->need = t.reach;
    t.pred = s->n_preds;
    t.n_preds = w->n_list;
    for (uint32_t i = 0; i < w->n_list; i++)
        SC_TRY(push(w, &s->pred, &s->n_preds, &s->cap_preds, w->list[i]));
    if (chain) {
        SC_TRY(push(w, &s->chain, &s->n_chain, &s->cap_chain, s->n));
        t.reach = s->n_chain;
        if (exchanges(&t) && receives) s->need = t.reach;
        if (t.kind != SC_TASK_SEND) s->posted = s->n;
    }
    work_task *at = sc_grow(w->a, s->task, s->n, &s->cap, 256, sizeof *at);
    if (!at) return sc_error_nomem(w->err);
    s->task = at;
    s->task[s->n] = t;
    *out = s->n++;
    return SC_OK;
}

/* What the next task of the compute stream waits for. */
static sc_status behind_chain(work *w, work_side *s)
{
    SC_TRY(wait_for(w, s->tail[SC_S_COMPUTE]));
    for (uint32_t i = 0; i < s->n_beside; i++)
        SC_TRY(wait_for(w, s->beside[i]));
    s->n_beside = 0;
    return SC_OK;
}

/* Appends a task to a stream.  Communication right behind a receive is kept in
 * the compute stream, so that what comes later can be ordered behind it. */
static sc_status enqueue(work *w, work_side *s, const work_task *t,
                         uint8_t stream, uint32_t *out)
{
    bool receives;
    reach_of(w, s, &receives);
    bool chain = stream == SC_S_COMPUTE || (receives && exchanges(t));
    if (stream != SC_S_COMPUTE) SC_TRY(wait_for(w, s->tail[stream]));
    if (chain) SC_TRY(behind_chain(w, s));
    SC_TRY(add(w, s, t, chain, out));
    s->tail[stream] = *out;
    if (chain) s->tail[SC_S_COMPUTE] = *out;
    return SC_OK;
}

/* Whole bytes of a size that was worked out as a share of something. */
static uint64_t whole_bytes(double bytes)
{
    return bytes < 1 ? 1 : (uint64_t)(bytes + 0.5);
}

static const uint8_t coll_of[SC_N_COLLS] = {
    [SC_ALL_REDUCE] = SC_TC_ALL_REDUCE,
    [SC_ALL_GATHER] = SC_TC_ALL_GATHER,
    [SC_REDUCE_SCATTER] = SC_TC_REDUCE_SCATTER,
    [SC_ALL_TO_ALL] = SC_TC_ALL_TO_ALL,
    [SC_BROADCAST] = SC_TC_BROADCAST,
    [SC_REDUCE] = SC_TC_REDUCE,
    [SC_SENDRECV] = SC_TC_ALL_GATHER, /* in a ring, to everyone */
};

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
    uint64_t v = whole_bytes(t->bytes);
    *out = (work_task){.name = name,
                       .duration = duration,
                       .size = t->coll == SC_ALL_GATHER ? (v + n - 1) / n : v,
                       .group = SC_TASK_WORLD,
                       .kind = SC_TASK_COLL,
                       .coll = coll_of[t->coll],
                       .flags = SC_TASK_NO_OPS};
    if (n == r->hw->n_devices) return SC_OK;
    return slot_of(w, &s->axes, &s->n_groups, &s->cap_groups, axes,
                   &out->group);
}

static sc_status message(work *w, sc_op i, bool send, work_task *out)
{
    const sc_graph *g = w->g;
    work_side *s = &w->side[send ? g->cls[i] : g->peer[i]];
    *out = (work_task){.name = send ? g->name[i] : "receive",
                       .duration = send ? g->work[i] : 0,
                       .size = whole_bytes((double)g->bytes[i]),
                       .kind = send ? SC_TASK_SEND : SC_TASK_RECV,
                       .flags = SC_TASK_NO_OPS};
    SC_TRY(slot_of(w, &s->peer, &s->n_peers, &s->cap_peers,
                   send ? g->peer[i] : g->cls[i], &out->peer));
    return tag_slot(w, s, w->tag[i], &out->tag);
}

static work_task simple(const work *w, sc_op i)
{
    const sc_graph *g = w->g;
    double bytes = w->note[i].traffic;
    if (bytes <= 0) bytes = (double)g->bytes[i];
    work_task t = {.name = g->name[i], .duration = g->work[i]};
    if (g->kind[i] == SC_OP_MEM) {
        t.kind = w->note[i].load ? SC_TASK_LOAD : SC_TASK_STORE;
        t.size = whole_bytes(bytes);
        t.flags = SC_TASK_NO_OPS;
        return t;
    }
    t.kind = SC_TASK_COMP;
    if (g->kind[i] == SC_OP_COMPUTE && bytes > 0) {
        /* a roofline divides by both */
        t.size = whole_bytes(bytes);
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
    uint32_t *list = w->list, n = w->n_list, cap = w->cap;
    w->list = NULL;
    w->n_list = w->cap = 0;
    if (!w->ahead) SC_TRY(wait_for(w, s->posted));
    SC_TRY(message(w, i, false, &t));
    SC_TRY(add(w, s, &t, false, &w->arrived[i]));
    if (w->note[i].n) {
        w->n_list = 0;
        SC_TRY(wait_for(w, w->arrived[i]));
        SC_TRY(collective(w, s, w->note[i].t, "gather parts", 0, &t));
        SC_TRY(enqueue(w, s, &t, SC_S_COMPUTE, &w->arrived[i]));
    }
    w->list = list;
    w->n_list = n;
    w->cap = cap;
    return SC_OK;
}

/* Adds what `cls` has of op `p`. */
static sc_status wait_for_op(work *w, sc_op p, uint32_t cls)
{
    const sc_graph *g = w->g;
    if (g->kind[p] == SC_OP_MARK) {
        if (w->met[p]) return wait_for(w, w->met[p][cls]);
        for (uint32_t k = w->pred_head[p]; k < w->pred_head[p + 1]; k++) {
            sc_op q = w->pred[k];
            if (g->cls[q] == cls || g->kind[q] == SC_OP_MARK)
                SC_TRY(wait_for_op(w, q, cls));
        }
        return SC_OK;
    }
    if (g->cls[p] == cls) return wait_for(w, w->last[p]);
    if (g->kind[p] != SC_OP_P2P || g->peer[p] != cls) return lost(w, p);
    SC_TRY(arrive(w, p));
    return wait_for(w, w->arrived[p]);
}

/* ---- ops --------------------------------------------------------------------- */

/* Waits for what the first of the kernels it runs beside waits for; false if it
 * has to wait for them. */
static sc_status run_beside(work *w, work_side *s, sc_op i, const work_task *t,
                            bool *done)
{
    uint32_t back = w->note[i].beside;
    bool receives;
    *done = false;
    if (back == 0 || back > i || s->n_beside == WORK_BESIDE) return SC_OK;
    const work_task *beside = &s->task[w->first[i - back]];
    w->n_list = 0;
    for (uint32_t k = 0; k < beside->n_preds; k++)
        SC_TRY(wait_for(w, s->pred[beside->pred + k]));
    reach_of(w, s, &receives);
    if (receives && exchanges(t)) return SC_OK;
    SC_TRY(add(w, s, t, false, &w->last[i]));
    s->beside[s->n_beside++] = w->last[i];
    w->first[i] = w->last[i];
    *done = true;
    return SC_OK;
}

static sc_status place(work *w, sc_op i, const work_task *t)
{
    uint32_t cls = w->g->cls[i];
    bool done = false;
    SC_TRY(run_beside(w, &w->side[cls], i, t, &done));
    if (done) return SC_OK;
    w->n_list = 0;
    for (uint32_t k = w->pred_head[i]; k < w->pred_head[i + 1]; k++)
        SC_TRY(wait_for_op(w, w->pred[k], cls));
    SC_TRY(enqueue(w, &w->side[cls], t, w->g->stream[i], &w->last[i]));
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
        w->n_list = 0;
        SC_TRY(wait_for(w, w->last[i]));
        SC_TRY(enqueue(w, s, &t, w->g->stream[i], &w->last[i]));
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
        w->n_list = 0;
        SC_TRY(wait_for_op(w, i, c));
        SC_TRY(collective(w, &w->side[c], note->t, w->g->name[i], 0, &t));
        SC_TRY(enqueue(w, &w->side[c], &t, w->g->stream[i], &met[c]));
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

static sc_status reversed(work *w)
{
    const sc_graph *g = w->g;
    w->pred_head = SC_NEW_N(w->a, uint32_t, (size_t)g->n_ops + 1);
    w->pred = SC_NEW_N(w->a, sc_op, g->n_deps);
    uint32_t *at = SC_NEW_N(w->a, uint32_t, g->n_ops);
    if (!w->pred_head || !w->pred || !at) return sc_error_nomem(w->err);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        w->pred_head[i + 1] = w->pred_head[i] + g->n_preds[i];
        at[i] = w->pred_head[i];
    }
    for (uint32_t i = 0; i < g->n_ops; i++)
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            w->pred[at[g->succ[k]]++] = i;
    return SC_OK;
}

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
    SC_TRY(reversed(w));
    SC_TRY(number(w, &tags));
    w->side = SC_NEW_N(w->a, work_side, g->n_classes);
    w->first = SC_NEW_N(w->a, uint32_t, g->n_ops);
    w->last = SC_NEW_N(w->a, uint32_t, g->n_ops);
    w->arrived = SC_NEW_N(w->a, uint32_t, g->n_ops);
    w->met = SC_NEW_N(w->a, uint32_t *, g->n_ops);
    if (!w->side || !w->first || !w->last || !w->arrived || !w->met)
        return sc_error_nomem(w->err);
    memset(w->arrived, 0xff, g->n_ops * sizeof *w->arrived);
    for (uint32_t c = 0; c < g->n_classes; c++) {
        work_side *s = &w->side[c];
        memset(s->tail, 0xff, sizeof s->tail);
        s->posted = SC_NONE;
        s->tag_slot = SC_NEW_N(w->a, uint32_t, (size_t)tags + 1);
        if (!s->tag_slot) return sc_error_nomem(w->err);
        memset(s->tag_slot, 0xff, ((size_t)tags + 1) * sizeof *s->tag_slot);
    }
    return SC_OK;
}

sc_status sc_plan_workload(const sc_plan *p, const sc_block *blocks,
                           sc_arena *a, sc_workload *out, sc_err *err)
{
    sc_graph g;
    lower_notes notes = {.a = a};
    work w = {.p = p, .g = &g, .a = a, .err = err};
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
