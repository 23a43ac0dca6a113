/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_side.c - orders the tasks of a class of ranks.
 *
 * No operation of a graph waits for one with a larger id, and the tasks of
 * every rank keep the order of ids.  A collective or send may not start while
 * one with a smaller id still waits for computation.  So every rank issues its
 * communication in the order of the graph, even with a single slot for
 * communication, and no deadlock is possible.  If the graph leaves the order
 * open (prefetched weights), the later task also waits for the kernels for
 * which the earlier one waits.  Ranks with a slot for each stream keep the
 * order of every stream.
 */
#include "plan/workload.h"

#include <string.h>

/* ---- lists -------------------------------------------------------------- */

static sc_status push(work_build *w, uint32_t **array, uint32_t *n,
                      uint32_t *cap, uint32_t value)
{
    uint32_t *at = sc_grow(w->a, *array, *n, cap, 64, sizeof *at);
    if (!at) return sc_error_nomem(w->err);
    at[(*n)++] = value;
    *array = at;
    return SC_OK;
}

sc_status work_wait(work_build *w, uint32_t task)
{
    if (task == SC_NONE) return SC_OK;
    for (uint32_t i = 0; i < w->n_list; i++)
        if (w->list[i] == task) return SC_OK;
    return push(w, &w->list, &w->n_list, &w->cap, task);
}

sc_status work_slot(work_build *w, uint32_t **array, uint32_t *n, uint32_t *cap,
                    uint32_t value, uint32_t *out)
{
    for (*out = 0; *out < *n; ++*out)
        if ((*array)[*out] == value) return SC_OK;
    return push(w, array, n, cap, value);
}

sc_status work_tag(work_build *w, work_side *s, uint32_t tag, uint32_t *out)
{
    if (s->tag_slot[tag] == SC_NONE) {
        s->tag_slot[tag] = s->n_tags;
        SC_TRY(push(w, &s->tag, &s->n_tags, &s->cap_tags, tag));
    }
    *out = s->tag_slot[tag];
    return SC_OK;
}

/* ---- one task ----------------------------------------------------------- */

/* Whether other ranks wait for a task: it is a collective or a send. */
static bool exchanges(const work_task *t)
{
    return t->kind == SC_TASK_COLL || t->kind == SC_TASK_SEND;
}

/* Largest `reach` of the tasks in the list, and whether a receive is in it. */
static uint32_t reach_of(const work_build *w, const work_side *s,
                         bool *receives)
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

sc_status work_add(work_build *w, work_side *s, const work_task *what,
                   bool chain, uint32_t *out)
{
    work_task t = *what;
    bool receives;
    t.reach = reach_of(w, s, &receives);
    uint32_t *need = &s->need[t.stream];
    if (exchanges(&t) && t.reach < *need) {
        SC_TRY(work_wait(w, s->chain[*need - 1]));
        t.reach = *need;
    }
    if (exchanges(&t) && t.reach > *need) *need = t.reach;
    t.pred = s->n_preds;
    t.n_preds = w->n_list;
    for (uint32_t i = 0; i < w->n_list; i++)
        SC_TRY(push(w, &s->pred, &s->n_preds, &s->cap_preds, w->list[i]));
    if (chain) {
        SC_TRY(push(w, &s->chain, &s->n_chain, &s->cap_chain, s->n));
        t.reach = s->n_chain;
        for (uint32_t i = 0; i < w->n_list; i++)
            if (!s->task[w->list[i]].user) s->task[w->list[i]].user = s->n + 1;
        if (exchanges(&t) && receives) *need = t.reach;
        if (t.kind != SC_TASK_SEND) s->posted = s->n;
    }
    work_task *at = sc_grow(w->a, s->task, s->n, &s->cap, 256, sizeof *at);
    if (!at) return sc_error_nomem(w->err);
    s->task = at;
    s->task[s->n] = t;
    *out = s->n++;
    return SC_OK;
}

/* Adds the waits of the compute stream's next task to the list. */
static sc_status behind_chain(work_build *w, work_side *s)
{
    SC_TRY(work_wait(w, s->tail[SC_S_COMPUTE]));
    for (uint32_t i = 0; i < s->n_overlaps; i++)
        SC_TRY(work_wait(w, s->overlap[i]));
    s->n_overlaps = 0;
    return SC_OK;
}

/* Communication that waits for a receive is put on the compute stream, so that
 * later tasks can be ordered after it. */
sc_status work_enqueue(work_build *w, work_side *s, const work_task *t,
                       uint8_t stream, uint32_t *out)
{
    bool receives;
    reach_of(w, s, &receives);
    bool chain = stream == SC_S_COMPUTE || (receives && exchanges(t));
    if (stream != SC_S_COMPUTE) SC_TRY(work_wait(w, s->tail[stream]));
    if (chain) SC_TRY(behind_chain(w, s));
    SC_TRY(work_add(w, s, t, chain, out));
    s->tail[stream] = *out;
    if (chain) s->tail[SC_S_COMPUTE] = *out;
    return SC_OK;
}

sc_status work_overlap(work_build *w, work_side *s, uint32_t kernel,
                       const work_task *t, uint32_t *out, bool *done)
{
    bool receives;
    *done = false;
    if (s->n_overlaps == WORK_OVERLAPS) return SC_OK;
    const work_task *of = &s->task[kernel];
    w->n_list = 0;
    for (uint32_t k = 0; k < of->n_preds; k++)
        SC_TRY(work_wait(w, s->pred[of->pred + k]));
    reach_of(w, s, &receives);
    if (receives && exchanges(t)) return SC_OK;
    SC_TRY(work_add(w, s, t, false, out));
    s->overlap[s->n_overlaps++] = *out;
    *done = true;
    return SC_OK;
}

/* ---- set-up ------------------------------------------------------------- */

sc_status work_side_init(work_build *w, work_side *s, uint32_t tags)
{
    memset(s->tail, 0xff, sizeof s->tail);
    s->posted = SC_NONE;
    s->tag_slot = SC_NEW_N(w->a, uint32_t, (size_t)tags + 1);
    if (!s->tag_slot) return sc_error_nomem(w->err);
    memset(s->tag_slot, 0xff, ((size_t)tags + 1) * sizeof *s->tag_slot);
    return SC_OK;
}

sc_status work_preds(const sc_graph *g, sc_arena *a, uint32_t **head,
                     sc_op **pred, sc_err *err)
{
    *head = SC_NEW_N(a, uint32_t, (size_t)g->n_ops + 1);
    *pred = SC_NEW_N(a, sc_op, g->n_deps);
    uint32_t *at = SC_NEW_N(a, uint32_t, g->n_ops);
    if (!*head || !*pred || !at) return sc_error_nomem(err);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        (*head)[i + 1] = (*head)[i] + g->n_preds[i];
        at[i] = (*head)[i];
    }
    for (uint32_t i = 0; i < g->n_ops; i++)
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            (*pred)[at[g->succ[k]]++] = i;
    return SC_OK;
}

uint8_t work_coll_of(sc_coll coll)
{
    return coll == SC_SENDRECV ? SC_ALL_GATHER : (uint8_t)coll;
}
