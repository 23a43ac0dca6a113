/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_workload.c - converts the step of a network to tasks of ranks that
 * exchange messages.
 *
 * Operations are converted in the order of their ids (workload_side.c), once
 * for each of their devices.
 */
#include "plan/lower_workload.h"

#include <string.h>

/* Tasks of an operation on the ranks of one device. */
typedef struct cell {
    uint32_t task;    /* its last task; SC_NONE: none */
    uint32_t arrived; /* of a transfer: the last receive; SC_NONE */
    uint32_t freed; /* task that marks the end of the exchange; SC_NONE: none */
    uint32_t n;     /* if there is no task: number of tasks that it waits for */
    uint32_t *wait; /* [n] tasks */
} cell;

typedef struct net {
    const sc_graph *g;
    const lower_notes *notes;
    work_sides *sides;
    work_build b;
    uint32_t *pred_head; /* [n_ops + 1] CSR */
    sc_op *pred;
    cell **cell;   /* [n_ops] one cell for each device of an operation */
    uint32_t *tag; /* [n_ops] tag of a transfer */
    bool apart;    /* each stream has a slot for communication */
} net;

/* ---- places ------------------------------------------------------------- */

/* Devices that have tasks of an operation; for a transfer, both ends. */
static uint32_t devices(const net *w, sc_op i, const uint32_t **dev)
{
    const lower_note *note = &w->notes->at[i];
    if (note->comm != SC_NONE) {
        *dev = w->notes->comm[note->comm].dev;
        return w->notes->comm[note->comm].n_dev;
    }
    *dev = w->g->cls + sc_op_place(w->g, i);
    return sc_op_place(w->g, i + 1) - sc_op_place(w->g, i);
}

/* The rank that represents all ranks of a device. */
static uint32_t first_rank(const net *w, uint32_t side)
{
    return side * w->notes->stride;
}

/* NULL: the device has no task of the operation. */
static cell *cell_of(const net *w, sc_op i, uint32_t side)
{
    const uint32_t *dev;
    uint32_t n = devices(w, i, &dev);
    for (uint32_t k = 0; k < n; k++)
        if (dev[k] == side) return w->cell[i] + k;
    return NULL;
}

/* ---- tasks -------------------------------------------------------------- */

static sc_status collective(net *w, sc_op i, work_side *s, const work_part *p,
                            work_task *t)
{
    const lower_note *note = &w->notes->at[i];
    const lower_comm *c = &w->notes->comm[note->comm];
    uint64_t v = work_bytes(note->bytes);
    *t = (work_task){
        .name = note->name,
        .duration = w->g->work[i],
        .size = c->coll == SC_ALL_GATHER ? (v + c->size - 1) / c->size : v,
        .group = SC_TASK_WORLD,
        .kind = SC_TASK_COLL,
        .coll = work_coll_of(c->coll),
        .flags = SC_TASK_NO_OPS};
    if (p->value == SC_TASK_WORLD) return SC_OK;
    return work_slot(&w->b, &s->group, &s->n_groups, &s->cap_groups, p->first,
                     &t->group);
}

static sc_status message(net *w, sc_op i, work_side *s, const work_part *p,
                         work_task *t)
{
    const lower_note *note = &w->notes->at[i];
    bool send = p->role == WORK_SENDS;
    *t = (work_task){.name = send ? note->name : "receive",
                     .duration = send ? w->g->work[i] : 0,
                     .size = work_bytes(note->bytes),
                     .kind = send ? SC_TASK_SEND : SC_TASK_RECV,
                     .flags = SC_TASK_NO_OPS};
    SC_TRY(work_slot(&w->b, &s->peer, &s->n_peers, &s->cap_peers, p->first,
                     &t->peer));
    return work_tag(&w->b, s, w->tag[i], &t->tag);
}

static work_task alone(const net *w, sc_op i)
{
    const sc_graph *g = w->g;
    const lower_note *note = &w->notes->at[i];
    work_task t = {.name = note->name,
                   .duration = g->work[i],
                   .kind = SC_TASK_COMP,
                   .flags = SC_TASK_NO_SIZE | SC_TASK_NO_OPS};
    if (note->copy) {
        t.kind = note->load ? SC_TASK_LOAD : SC_TASK_STORE;
        t.size = work_bytes((double)g->bytes[i]);
        t.flags = SC_TASK_NO_OPS;
    } else if (g->kind[i] == SC_OP_COMPUTE && g->bytes[i]) {
        /* roofline models divide by both, so neither may be 0 */
        t.size = g->bytes[i];
        t.ops = g->flops[i] < 1 ? 1 : (uint64_t)g->flops[i];
        t.flags = 0;
    }
    if (g->stream[i] == SC_S_HOST) t.flags |= SC_TASK_CPU;
    return t;
}

/* ---- waits of tasks ----------------------------------------------------- */

/* Adds the receives of a transfer before the first task that needs them.  They
 * wait for the device's last task that is not a send, so that two devices which
 * send to each other can both receive.  If sends may be far ahead (chunks,
 * split passes), receives wait for nothing. */
static sc_status arrive(net *w, sc_op i, uint32_t side, cell *at)
{
    work_side *s = &w->sides->side[side];
    uint32_t from, to;
    if (at->arrived != SC_NONE || w->notes->at[i].comm == SC_NONE) return SC_OK;
    work_parts(w->sides, first_rank(w, side), w->notes->at[i].comm, &from, &to);
    work_build keep = w->b;
    w->b = (work_build){.a = keep.a, .err = keep.err};
    for (uint32_t k = from; k < to; k++) {
        work_task t;
        if (w->sides->part[k].role != WORK_RECEIVES) continue;
        w->b.n_list = 0;
        if (at->arrived != SC_NONE)
            SC_TRY(work_wait(&w->b, at->arrived));
        else if (!w->notes->ahead)
            SC_TRY(work_wait(&w->b, s->posted));
        SC_TRY(message(w, i, s, &w->sides->part[k], &t));
        SC_TRY(work_add(&w->b, s, &t, false, &at->arrived));
    }
    w->b = keep;
    return SC_OK;
}

/* Waits for the tasks of operation `p` on `side`, and for messages that other
 * devices send to it.  A received value counts as ready when its first reader
 * has run, which keeps later exchanges off the chain. */
static sc_status wait_for(net *w, sc_op p, uint32_t side)
{
    cell *at = cell_of(w, p, side);
    if (!at) return SC_OK;
    SC_TRY(arrive(w, p, side, at));
    if (at->arrived != SC_NONE) {
        uint32_t user = w->sides->side[side].task[at->arrived].user;
        SC_TRY(work_wait(&w->b, user ? user - 1 : at->arrived));
    }
    SC_TRY(work_wait(&w->b, at->task));
    if (at->task != SC_NONE || at->arrived != SC_NONE) return SC_OK;
    for (uint32_t k = 0; k < at->n; k++) SC_TRY(work_wait(&w->b, at->wait[k]));
    return SC_OK;
}

/* Whether a kernel waits for an exchange only because it reuses the buffer.  A
 * task of zero time between them marks in traces that no data flows. */
static bool wants_buffer(const net *w, sc_op p, sc_op i)
{
    const lower_note *of = &w->notes->at[p], *by = &w->notes->at[i];
    return of->fills && of->comm != SC_NONE && by->fills && by->comm == SC_NONE;
}

static const work_task freed = {.name = "buffer free",
                                .kind = SC_TASK_METADATA,
                                .flags = SC_TASK_CPU | SC_TASK_NO_SIZE |
                                         SC_TASK_NO_OPS};

static sc_status wait_for_buffer(net *w, sc_op p, uint32_t side)
{
    cell *at = cell_of(w, p, side);
    if (!at || at->task == SC_NONE) return wait_for(w, p, side);
    if (at->freed == SC_NONE) {
        work_build keep = w->b;
        w->b = (work_build){.a = keep.a, .err = keep.err};
        SC_TRY(work_wait(&w->b, at->task));
        SC_TRY(
            work_add(&w->b, &w->sides->side[side], &freed, false, &at->freed));
        w->b = keep;
    }
    return work_wait(&w->b, at->freed);
}

static sc_status wait_for_all(net *w, sc_op i, uint32_t side)
{
    w->b.n_list = 0;
    for (uint32_t k = w->pred_head[i]; k < w->pred_head[i + 1]; k++)
        SC_TRY(wants_buffer(w, w->pred[k], i)
                   ? wait_for_buffer(w, w->pred[k], side)
                   : wait_for(w, w->pred[k], side));
    return SC_OK;
}

/* An operation without a task: its successors wait for its predecessors. */
static sc_status pass(net *w, sc_op i, uint32_t side, cell *at)
{
    SC_TRY(wait_for_all(w, i, side));
    at->n = w->b.n_list;
    at->wait = SC_NEW_N(w->b.a, uint32_t, at->n);
    if (!at->wait) return sc_error_nomem(w->b.err);
    if (at->n) memcpy(at->wait, w->b.list, at->n * sizeof *at->wait);
    return SC_OK;
}

/* ---- operations --------------------------------------------------------- */

static sc_status place(net *w, sc_op i, uint32_t side, const work_task *t,
                       cell *at)
{
    work_side *s = &w->sides->side[side];
    bool done = false;
    if (w->notes->at[i].hidden && s->n_chain)
        SC_TRY(work_overlap(&w->b, s, s->chain[s->n_chain - 1], t, &at->task,
                            &done));
    if (done) return SC_OK;
    if (at->task == SC_NONE) {
        SC_TRY(wait_for_all(w, i, side));
    } else { /* a further task of the same operation */
        w->b.n_list = 0;
        SC_TRY(work_wait(&w->b, at->task));
    }
    return work_enqueue(&w->b, s, t, w->g->stream[i], &at->task);
}

static sc_status exchange(net *w, sc_op i, uint32_t side, cell *at)
{
    work_side *s = &w->sides->side[side];
    uint32_t from, to;
    bool any = false;
    work_parts(w->sides, first_rank(w, side), w->notes->at[i].comm, &from, &to);
    for (uint32_t k = from; k < to; k++) {
        const work_part *p = &w->sides->part[k];
        work_task t;
        any = any || p->role == WORK_RECEIVES;
        if (p->role == WORK_RECEIVES) continue;
        SC_TRY(p->role == WORK_SENDS ? message(w, i, s, p, &t)
                                     : collective(w, i, s, p, &t));
        if (w->apart) t.stream = w->g->stream[i];
        SC_TRY(place(w, i, side, &t, at));
        any = true;
    }
    if (at->task != SC_NONE && w->notes->at[i].grad &&
        w->g->stream[i] == SC_S_COMPUTE) {
        w->b.n_list = 0; /* later kernels read no data of it either */
        SC_TRY(work_enqueue(&w->b, s, &freed, SC_S_COMPUTE, &at->freed));
    }
    return any ? SC_OK : pass(w, i, side, at);
}

static sc_status on_side(net *w, sc_op i, uint32_t side)
{
    cell *at = cell_of(w, i, side);
    if (w->notes->at[i].comm != SC_NONE) return exchange(w, i, side, at);
    if (w->g->kind[i] == SC_OP_MARK) return pass(w, i, side, at);
    work_task t = alone(w, i);
    return place(w, i, side, &t, at);
}

static sc_status convert(net *w, sc_op i)
{
    const uint32_t *dev;
    uint32_t n = devices(w, i, &dev);
    w->cell[i] = SC_NEW_N(w->b.a, cell, n);
    if (!w->cell[i]) return sc_error_nomem(w->b.err);
    for (uint32_t k = 0; k < n; k++)
        w->cell[i][k] =
            (cell){.task = SC_NONE, .arrived = SC_NONE, .freed = SC_NONE};
    for (uint32_t k = 0; k < n; k++) SC_TRY(on_side(w, i, dev[k]));
    return SC_OK;
}

/* ---- set-up ------------------------------------------------------------- */

/* Numbers the transfers between two devices in order, from 1. */
static sc_status number(net *w, uint32_t *most)
{
    size_t pairs = (size_t)w->notes->pp * w->notes->pp;
    uint32_t *n = SC_NEW_N(w->b.a, uint32_t, pairs), from, to;
    w->tag = SC_NEW_N(w->b.a, uint32_t, w->g->n_ops);
    if (!n || !w->tag) return sc_error_nomem(w->b.err);
    *most = 0;
    for (sc_op i = 0; i < w->g->n_ops; i++) {
        const lower_note *note = &w->notes->at[i];
        if (note->comm == SC_NONE) continue;
        const lower_comm *c = &w->notes->comm[note->comm];
        if (c->coll != SC_SENDRECV || c->n_groups == 0) continue;
        from = c->rank[0] / w->notes->stride % w->notes->pp;
        to = c->rank[1] / w->notes->stride % w->notes->pp;
        w->tag[i] = ++n[(size_t)from * w->notes->pp + to];
        if (w->tag[i] > *most) *most = w->tag[i];
    }
    return SC_OK;
}

static sc_status prepare(net *w)
{
    const sc_graph *g = w->g;
    uint32_t tags = 0;
    SC_TRY(work_preds(g, w->b.a, &w->pred_head, &w->pred, w->b.err));
    SC_TRY(number(w, &tags));
    w->cell = SC_NEW_N(w->b.a, cell *, g->n_ops);
    if (!w->cell) return sc_error_nomem(w->b.err);
    for (uint32_t s = 0; s < w->sides->n; s++)
        SC_TRY(work_side_init(&w->b, &w->sides->side[s], tags));
    return SC_OK;
}

static sc_status tasks_of(const net *w, sc_net_workload *out)
{
    const sc_graph *g = w->g;
    sc_arena *a = w->b.a;
    out->task = SC_NEW_N(a, uint32_t, sc_op_place(g, g->n_ops));
    out->receive = SC_NEW_N(a, uint32_t, g->n_ops);
    out->receiver = SC_NEW_N(a, uint32_t, g->n_ops);
    if (!out->task || !out->receive || !out->receiver)
        return sc_error_nomem(w->b.err);
    for (sc_op i = 0; i < g->n_ops; i++) {
        const uint32_t *dev;
        uint32_t n = devices(w, i, &dev);
        for (uint32_t k = sc_op_place(g, i); k < sc_op_place(g, i + 1); k++)
            out->task[k] = cell_of(w, i, g->cls[k])->task;
        out->receive[i] = SC_NONE;
        for (uint32_t k = 0; k < n; k++) {
            if (w->cell[i][k].arrived == SC_NONE) continue;
            out->receive[i] = w->cell[i][k].arrived;
            out->receiver[i] = dev[k];
        }
    }
    return SC_OK;
}

/* Adds the time that ranks spend once a step outside of all operations. */
static sc_status fixed(net *w, double seconds)
{
    const work_task t = {.name = "step",
                         .duration = sc_time_from_s(seconds),
                         .kind = SC_TASK_COMP,
                         .flags = SC_TASK_NO_SIZE | SC_TASK_NO_OPS};
    for (uint32_t s = 0; seconds > 0 && s < w->sides->n; s++) {
        uint32_t task;
        w->b.n_list = 0;
        SC_TRY(
            work_enqueue(&w->b, &w->sides->side[s], &t, SC_S_COMPUTE, &task));
    }
    return SC_OK;
}

sc_status sc_net_plan_workload(const sc_net_run *job, double fixed_s,
                               bool apart, sc_arena *a, sc_net_workload *out,
                               sc_err *err)
{
    sc_net_run *folded = SC_NEW(a, sc_net_run);
    sc_net_workload r;
    lower_notes notes = {.slow = 1};
    work_sides sides;
    if (!folded) return sc_error_nomem(err);
    *folded = *job;
    folded->unfold = false;
    SC_TRY(sc_net_plan_compile(folded, a, &r.plan, err));
    SC_TRY(lower_lower(&r.plan, &notes, a, err));
    uint32_t all = job->hw ? job->hw->n_devices : r.plan.n_ranks;
    SC_TRY(work_sides_of(&notes, r.plan.n_ranks, all, a, &sides, err));
    net w = {.g = &r.plan.step,
             .notes = &notes,
             .sides = &sides,
             .apart = apart,
             .b = {.a = a, .err = err}};
    SC_TRY(prepare(&w));
    for (sc_op i = 0; i < r.plan.step.n_ops; i++) SC_TRY(convert(&w, i));
    SC_TRY(fixed(&w, fixed_s));
    SC_TRY(tasks_of(&w, &r));
    SC_TRY(work_finish(&sides, all, job->net->name, a, &r.work, err));
    r.slow = notes.slow;
    *out = r;
    return SC_OK;
}
