/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous.c - collectives that start on all members at once.
 *
 * A collective holds no slot while it waits for members. Calls of the same
 * communicator, kind, size and root belong together by their number in each
 * rank's trace, not by the time at which they are issued. The number is counted
 * in an order that respects dependencies and does not depend on durations.
 *
 * When the last member has arrived, every member puts the collective into its
 * queue, behind those that were complete before. If several become complete at
 * one time, the one with the smallest index is first. Slots are granted after
 * all other events of that time, so the result does not depend on which rank
 * arrived first. A rank grants its free slots to the first collectives of its
 * queue, and a collective starts when every member has granted it a slot. All
 * queues have the same order, so the oldest collective never waits behind one
 * that waits for it: there is no deadlock and no starvation. Sends, loads and
 * stores overtake a queued collective only if their index is smaller.
 */
#include "sim/world.h"

#include <stdlib.h>

/* A member's place in the queue of its rank. */
typedef struct sim_ticket {
    struct sim_ticket *next;
    struct sim_rendezvous *rendezvous;
    uint32_t task; /* SC_TASK_WORLD: has not arrived */
} sim_ticket;

struct sim_rendezvous {
    struct sim_rendezvous *next; /* complete, not queued yet */
    uint64_t number;             /* in the order in which they were complete */
    uint64_t hash;
    sim_comm *comm;
    sim_schedule *schedule;
    uint64_t size;
    uint32_t coll, root, ordinal;
    uint32_t n_arrived, n_granted;
    sim_ticket *ticket; /* [comm->n_live] */
};

struct sim_rendezvous_table {
    sc_map open;              /* sim_rendezvous */
    uint32_t **ordinal;       /* [n_classes][n_tasks] */
    sim_rendezvous *complete; /* complete but not queued, the latest first */
    uint64_t n_complete;
    sim_rank **touched; /* [w->n_ranks] ranks whose slots are to be granted */
    uint32_t n_touched;
    bool settling;
};

bool sim_needs_rendezvous(const sim_world *w, const sc_task_list *t,
                          uint32_t task)
{
    return w->together && t->kind[task] == SC_TASK_COLL &&
           !sim_is_replayed(w, t, task);
}

/* ---- which calls belong together --------------------------------------- */

typedef struct call_key {
    uint64_t size;
    uint32_t group, dims, root, coll;
    uint32_t place, task; /* position in the order of the trace */
} call_key;

static uint64_t size_of(const sim_world *w, const sc_task_list *t,
                        uint32_t task)
{
    return sim_is_custom(w, t, task) ? 0 : t->size[task];
}

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_kind(const call_key *x, const call_key *y)
{
    int d = by_number(x->size, y->size);
    if (d == 0) d = by_number(x->group, y->group);
    if (d == 0) d = by_number(x->dims, y->dims);
    if (d == 0) d = by_number(x->root, y->root);
    return d ? d : by_number(x->coll, y->coll);
}

static int by_kind_and_place(const void *a, const void *b)
{
    const call_key *x = a, *y = b;
    int d = by_kind(x, y);
    return d ? d : by_number(x->place, y->place);
}

static call_key key_of(const sim_world *w, const sc_task_list *t, uint32_t i)
{
    bool whole = t->group[i] == SC_TASK_WORLD && w->w->jobs[0].n == w->n_npus;
    return (call_key){.size = size_of(w, t, i),
                      .group = t->group[i],
                      .dims = whole ? sim_mask_of(w, t, i) : 0,
                      .root = sim_root_of(t, i),
                      .coll = t->coll[i],
                      .task = i};
}

/* The order in which a rank whose tasks take no time would start them. */
static uint32_t in_order(sim_world *w, const sc_task_list *t, uint32_t *left,
                         call_key *calls)
{
    sim_heap ready = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_tasks; i++) {
        left[i] = t->n_preds[i];
        if (left[i] == 0) sim_heap_push(w, &ready, i);
    }
    while (ready.n && w->status == SC_OK) {
        uint32_t i = sim_heap_pop(&ready);
        if (sim_needs_rendezvous(w, t, i)) {
            calls[n] = key_of(w, t, i);
            calls[n].place = n;
            n++;
        }
        for (uint32_t k = t->succ_head[i]; k < t->succ_head[i + 1]; k++)
            if (--left[t->succ[k]] == 0) sim_heap_push(w, &ready, t->succ[k]);
    }
    return n;
}

static void number(sim_world *w, const sc_task_list *t, uint32_t *ordinal)
{
    uint32_t *left = malloc((t->n_tasks + 1) * sizeof *left);
    call_key *calls = malloc((t->n_tasks + 1) * sizeof *calls);
    if (left && calls) {
        uint32_t n = in_order(w, t, left, calls), same = 0;
        qsort(calls, n, sizeof *calls, by_kind_and_place);
        for (uint32_t i = 0; i < n; i++) {
            same =
                i > 0 && by_kind(&calls[i - 1], &calls[i]) == 0 ? same + 1 : 0;
            ordinal[calls[i].task] = same;
        }
    } else {
        w->status = sc_error_nomem(w->err);
    }
    free(left);
    free(calls);
}

sc_status sim_rendezvous_init(sim_world *w)
{
    if (!w->together) return SC_OK;
    const sc_workload *x = w->w;
    w->rendezvous = SC_NEW(w->a, struct sim_rendezvous_table);
    if (!w->rendezvous) return sc_error_nomem(w->err);
    w->rendezvous->ordinal = SC_NEW_N(w->a, uint32_t *, x->n_classes);
    w->rendezvous->touched = SC_NEW_N(w->a, sim_rank *, w->n_ranks);
    if (!w->rendezvous->ordinal || !w->rendezvous->touched)
        return sc_error_nomem(w->err);
    for (uint32_t i = 0; i < x->n_classes && w->status == SC_OK; i++) {
        uint32_t *o = SC_NEW_N(w->a, uint32_t, x->classes[i].n_tasks + 1);
        if (!o) return sc_error_nomem(w->err);
        w->rendezvous->ordinal[i] = o;
        number(w, &x->classes[i], o);
    }
    return w->status;
}

/* ---- those that are open ----------------------------------------------- */

static bool same(const sim_rendezvous *a, const sim_rendezvous *b)
{
    return a->hash == b->hash && a->comm == b->comm && a->size == b->size &&
           a->coll == b->coll && a->root == b->root && a->ordinal == b->ordinal;
}

static sim_rendezvous wanted(const sim_world *w, const sim_rank *r,
                             sim_comm *comm, uint32_t task)
{
    const sc_task_list *t = r->tasks;
    sim_rendezvous key = {.comm = comm,
                          .size = size_of(w, t, task),
                          .coll = t->coll[task],
                          .root = sim_root_of(t, task),
                          .ordinal =
                              w->rendezvous->ordinal[r->trace->cls][task]};
    uint64_t words[] = {(uint64_t)(uintptr_t)comm, key.size,
                        (uint64_t)key.coll << 32 | key.root, key.ordinal};
    key.hash = sc_hash(words, sizeof words, 3);
    return key;
}

static sim_rendezvous *find(sim_world *w, const sim_rendezvous *key)
{
    sc_map *m = &w->rendezvous->open;
    uint32_t at = 0;
    sim_rendezvous *x;
    while ((x = sc_map_next_ptr(m, key->hash, &at)))
        if (same(x, key)) return x;
    x = sim_mem_alloc(w, sizeof *x);
    sim_ticket *ticket = sim_mem_alloc(w, key->comm->n_live * sizeof *ticket);
    if (w->status == SC_OK && !sc_map_add_ptr(m, w->a, key->hash, x))
        w->status = sc_error_nomem(w->err);
    if (w->status != SC_OK) return NULL;
    *x = *key;
    x->ticket = ticket;
    for (uint32_t i = 0; i < key->comm->n_live; i++) {
        ticket[i].rendezvous = x;
        ticket[i].task = SC_TASK_WORLD;
    }
    return x;
}

static void forget(sim_world *w, sim_rendezvous *x)
{
    sc_map_remove_ptr(&w->rendezvous->open, x->hash, x);
    sim_mem_free(w, x->ticket, x->comm->n_live * sizeof *x->ticket);
    sim_mem_free(w, x, sizeof *x);
}

/* ---- queues ------------------------------------------------------------ */

static sim_rank *rank_of(sim_world *w, const sim_comm *c, uint32_t live)
{
    uint32_t member = c->symmetric ? c->representative : live;
    return &w->rank[w->index[sim_comm_rank(w, c, member)]];
}

static uint32_t n_free(const sim_world *w, const sim_rank *r)
{
    return w->comm_slots - r->busy[SIM_COMM];
}

static void join(sim_rank *r, sim_ticket *t)
{
    t->next = NULL;
    if (r->queue_end)
        r->queue_end->next = t;
    else
        r->rendezvous_queue = t;
    r->queue_end = t;
    r->n_queued++;
}

static void leave(sim_rank *r, const sim_ticket *t)
{
    sim_ticket **at = &r->rendezvous_queue, *before = NULL;
    while (*at != t) {
        before = *at;
        at = &before->next;
    }
    *at = t->next;
    if (r->queue_end == t) r->queue_end = before;
    r->n_queued--;
    r->granted--;
}

static sim_ticket *in_place(const sim_rank *r, uint32_t k)
{
    sim_ticket *t = r->rendezvous_queue;
    while (k-- > 0) t = t->next;
    return t;
}

static void start(sim_world *w, sim_rendezvous *x)
{
    sim_comm *c = x->comm;
    for (uint32_t i = 0; i < c->n_live; i++) {
        sim_rank *r = rank_of(w, c, i);
        leave(r, &x->ticket[i]);
        sim_task_starts(w, r, x->ticket[i].task);
    }
    sim_coll *coll = sim_coll_new(w, c, x->schedule);
    for (uint32_t i = 0; i < c->n_live && w->status == SC_OK; i++)
        sim_coll_join(w, coll, rank_of(w, c, i), i, x->ticket[i].task);
    forget(w, x);
}

bool sim_rendezvous_resolving(const sim_world *w)
{
    return w->rendezvous->settling;
}

static void touch(sim_world *w, sim_rank *r)
{
    if (r->touched) return;
    r->touched = true;
    w->rendezvous->touched[w->rendezvous->n_touched++] = r;
}

void sim_rendezvous_grant(sim_world *w, sim_rank *r)
{
    if (!w->rendezvous->settling) {
        touch(w, r);
        return;
    }
    while (r->granted > n_free(w, r))
        in_place(r, --r->granted)->rendezvous->n_granted--;
    while (r->granted < r->n_queued && r->granted < n_free(w, r) &&
           w->status == SC_OK) {
        sim_rendezvous *x = in_place(r, r->granted++)->rendezvous;
        if (++x->n_granted == x->comm->n_live) start(w, x);
    }
}

bool sim_rendezvous_yields(const sim_world *w, const sim_rank *r, uint32_t task)
{
    return r->n_queued == 0 || n_free(w, r) > r->n_queued ||
           task < r->rendezvous_queue->task;
}

void sim_rendezvous_arrive(sim_world *w, sim_rank *r, uint32_t task)
{
    sim_comm *comm = sim_comm_of(w, r, task);
    sim_schedule *schedule = comm ? sim_schedule_of(w, r, comm, task) : NULL;
    if (!schedule) return;
    uint32_t member = sim_comm_member(w, comm, r->id);
    comm->representative = member;
    sim_rendezvous key = wanted(w, r, comm, task), *x = find(w, &key);
    if (!x) return;
    if (!x->schedule) x->schedule = schedule;
    x->ticket[comm->symmetric ? 0 : member].task = task;
    if (++x->n_arrived < comm->n_live) return;
    x->number = w->rendezvous->n_complete++;
    x->next = w->rendezvous->complete;
    w->rendezvous->complete = x;
}

/* ---- at the end of a time ---------------------------------------------- */

/* By index on the first member, then by its rank, which no two share. */
static bool goes_before(sim_world *w, const sim_rendezvous *a,
                        const sim_rendezvous *b)
{
    uint32_t x = a->ticket[0].task, y = b->ticket[0].task;
    if (x != y) return x < y;
    x = rank_of(w, a->comm, 0)->id;
    y = rank_of(w, b->comm, 0)->id;
    return x != y ? x < y : a->number < b->number;
}

static sim_rendezvous *merge(sim_world *w, sim_rendezvous *a, sim_rendezvous *b)
{
    sim_rendezvous *first = NULL, **at = &first;
    while (a && b) {
        sim_rendezvous **from = goes_before(w, b, a) ? &b : &a;
        *at = *from;
        at = &(*at)->next;
        *from = *at;
    }
    *at = a ? a : b;
    return first;
}

static sim_rendezvous *sorted(sim_world *w, sim_rendezvous *list)
{
    sim_rendezvous *run[64] = {0}, *all = NULL;
    while (list) {
        sim_rendezvous *x = list;
        uint32_t i = 0;
        list = x->next;
        x->next = NULL;
        for (; run[i]; i++) {
            x = merge(w, run[i], x);
            run[i] = NULL;
        }
        run[i] = x;
    }
    for (uint32_t i = 0; i < 64; i++) all = merge(w, run[i], all);
    return all;
}

static void enqueue_complete(sim_world *w)
{
    sim_rendezvous *x = sorted(w, w->rendezvous->complete);
    w->rendezvous->complete = NULL;
    for (; x; x = x->next)
        for (uint32_t i = 0; i < x->comm->n_live; i++) {
            sim_rank *r = rank_of(w, x->comm, i);
            join(r, &x->ticket[i]);
            touch(w, r);
        }
}

bool sim_rendezvous_resolve(sim_world *w)
{
    struct sim_rendezvous_table *m = w->rendezvous;
    if (!m || (!m->complete && m->n_touched == 0)) return false;
    m->settling = true;
    while ((m->complete || m->n_touched > 0) && w->status == SC_OK) {
        enqueue_complete(w);
        uint32_t n = m->n_touched;
        m->n_touched = 0;
        for (uint32_t i = 0; i < n; i++) {
            m->touched[i]->touched = false;
            sim_task_resolve(w, m->touched[i]);
        }
    }
    m->settling = false;
    return true;
}

/* ---- diagnosis of deadlocks -------------------------------------------- */

static void report(sim_world *w, const sim_rendezvous *x, sim_note *note,
                   void *ctx)
{
    uint32_t n = x->comm->n_live, missing = 0;
    while (missing < n && x->ticket[missing].task != SC_TASK_WORLD) missing++;
    if (missing == n)
        missing = 0; /* complete, but some member has no free slot */
    for (uint32_t i = 0; i < n; i++) {
        if (x->ticket[i].task == SC_TASK_WORLD) continue;
        sim_waiting is = {.rank = rank_of(w, x->comm, i)->id,
                          .task = x->ticket[i].task,
                          .on = rank_of(w, x->comm, missing)->id,
                          .kind = SIM_WAITS_MEMBER,
                          .size = x->schedule->size};
        note(ctx, &is);
    }
}

void sim_rendezvous_waiting(sim_world *w, sim_note *note, void *ctx)
{
    if (!w->together) return;
    const sim_rendezvous *x;
    for (uint32_t i = 0; (x = sc_map_each_ptr(&w->rendezvous->open, &i));)
        report(w, x, note, ctx);
}
