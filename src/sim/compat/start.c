/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - collectives that each rank starts by itself.
 *
 * Calls of one communicator belong together by the order in which each rank
 * issues them, so ranks that issue them in different orders never finish; such
 * a run ends, and together.c starts another.  A broadcast may take the time
 * that the trace recorded for it.
 */
#include "sim/compat/compat.h"

/* ---- queues -------------------------------------------------------------- */

/* The operation whose logical topology a collective uses. */
static uint8_t topology_op(uint32_t coll)
{
    int op = sim_op_of((uint8_t)coll);
    return (uint8_t)(op < 0 ? SC_ALL_REDUCE : op);
}

static void next_tree(const sim_world *w, sim_rank *r, const sim_phase *p,
                      uint8_t coll_op, uint8_t *reverse)
{
    uint8_t *next = &r->trees[coll_op * w->n_dims + p->dim];
    *reverse = *next & 1;
    ++*next;
}

/* Round robin over the queues; the way back uses the second half, and the other
 * direction of a ring. */
void sim_compat_queue(const sim_world *w, sim_stream *s, uint32_t phase)
{
    const sim_phase *p = &s->phases[phase];
    sim_rank *r = s->rank;
    uint8_t *reverse = &s->reverse[phase];
    sim_next_queue *next = &r->next_queue[p->dim];
    uint32_t n = w->o->queues, at;
    if (p->queue_half == 1) {
        at = next->first++;
        if (next->first >= n / 2) next->first = 0;
        *reverse = 0;
    } else if (p->queue_half == 2) {
        at = next->last++;
        if (next->last >= n) next->last = n / 2;
        *reverse = 1;
    } else {
        *reverse = n > 1 && next->any >= n / 2;
        at = next->any++;
        if (next->any >= n) next->any = 0;
    }
    s->queue[phase] = p->dim * n + at;
    if (p->kind == SC_COLL_TREE)
        next_tree(w, r, p, topology_op(s->coll->schedule->coll), reverse);
}

/* ---- starting ------------------------------------------------------------ */

/* Ends the run: the members disagree on the order of collectives. */
static void mismatch(sim_world *w, const sim_rank *r, uint32_t task,
                     const sim_coll *c)
{
    if (w->status != SC_OK) return;
    w->disorder = sc_sprintf(
        w->a,
        "rank %u, task %llu: %s of %llu bytes is collective %u of its group, "
        "where another member calls %s of %llu bytes",
        r->id, (unsigned long long)r->tasks->id[task],
        sc_coll_names[r->tasks->coll[task]],
        (unsigned long long)r->tasks->size[task], c->ordinal,
        sc_coll_names[c->schedule->coll],
        (unsigned long long)c->schedule->size);
    w->status = w->disorder ? SC_NO : sc_error_nomem(w->err);
}

static void issue(sim_world *w, sim_rank *r, uint32_t task)
{
    sim_comm *comm = sim_comm_of(w, r, task);
    if (!comm) return;
    sim_schedule *schedule = sim_schedule_of(w, r, comm, task);
    if (!schedule) return;
    if (schedule->n_phases == 0) { /* no other member */
        sim_later(w, r, 0, SIM_CALL_TASK, NULL, 0, task);
        return;
    }
    uint32_t member = sim_comm_member(w, comm, r->id);
    comm->representative = member;
    if (comm->symmetric) member = 0;
    sim_coll *c = sim_coll_at(w, comm, comm->count[member]++, schedule);
    if (!c) return;
    if (c->schedule != schedule &&
        !(schedule->custom && schedule->node == c->schedule->node &&
          schedule->coll == c->schedule->coll))
        mismatch(w, r, task, c);
    else
        sim_coll_begin(w, c, r, member, task);
}

void sim_compat_start(sim_world *w, sim_rank *r, uint32_t task)
{
    const sc_task_list *t = r->tasks;
    if (sim_is_replayed(w, t, task))
        sim_later(w, r, sim_recorded(w, t->duration[task]), SIM_CALL_TASK, NULL,
                  0, task);
    else
        issue(w, r, task);
}
