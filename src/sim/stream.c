/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - collectives in flight and the chunks they consist of.
 *
 * A chunk on one member is a stream.  It passes its phases in order; in each
 * it waits in a queue of the phase's dimension, behind streams that run and
 * those of at least its priority.
 */
#include "sim/world.h"

/* ---- instances --------------------------------------------------------- */

/* The first member that asks for `ordinal` makes the collective. */
sim_coll *sim_coll_at(sim_world *w, sim_comm *comm, uint32_t ordinal,
                      sim_schedule *schedule)
{
    sim_coll **at = &comm->open;
    while (*at && (*at)->ordinal < ordinal) at = &(*at)->next;
    if (*at && (*at)->ordinal == ordinal) return *at;
    sim_coll *c = sim_mem_alloc(w, sizeof *c);
    c->stream = sim_mem_alloc(w, (size_t)comm->n_live * schedule->n_streams *
                                     sizeof(sim_stream *));
    if (w->status != SC_OK) return NULL;
    c->comm = comm;
    c->schedule = schedule;
    c->ordinal = ordinal;
    c->next = *at;
    *at = c;
    return c;
}

static void forget(sim_world *w, sim_coll *c)
{
    if (c->n_ended < c->comm->n_live || c->n_live > 0) return;
    sim_coll **at = &c->comm->open;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    sim_mem_free(w, c->stream,
                 (size_t)c->comm->n_live * c->schedule->n_streams *
                     sizeof(sim_stream *));
    sim_mem_free(w, c, sizeof *c);
}

sim_stream *sim_stream_of(sim_world *w, sim_coll *c, uint32_t member,
                          uint32_t index)
{
    sim_stream **at =
        &c->stream[(size_t)member * c->schedule->n_streams + index];
    if (*at) return *at;
    sim_stream *s = sim_mem_alloc(w, sizeof *s);
    uint32_t n = c->schedule->n_phases;
    s->mailbox = sim_mem_alloc(w, n * sizeof *s->mailbox);
    s->queue = sim_mem_alloc(w, n * sizeof *s->queue);
    s->reverse = sim_mem_alloc(w, n);
    if (w->status != SC_OK) return NULL;
    s->coll = c;
    size_t list = c->schedule->list ? c->schedule->list[index] : 0;
    s->phases = c->schedule->phase + list * n;
    s->live = member;
    s->member = c->comm->symmetric ? c->comm->representative : member;
    s->index = index;
    s->rank = &w->rank[w->index[sim_comm_rank(w, c->comm, s->member)]];
    *at = s;
    c->n_live++;
    return s;
}

uint32_t sim_mailbox_size(const sim_phase *p)
{
    return p->kind == SC_COLL_RING || p->kind == SC_COLL_CHAIN ? 1 : p->n;
}

static void drop(sim_world *w, sim_stream *s)
{
    const sim_schedule *schedule = s->coll->schedule;
    for (uint32_t i = 0; i < schedule->n_phases; i++) {
        size_t n = sim_mailbox_size(&s->phases[i]);
        sim_mem_free(w, s->mailbox[i].balance, n * sizeof(int32_t));
        sim_mem_free(w, s->mailbox[i].permit, n * sizeof(sim_permit));
    }
    sim_mem_free(w, s->mailbox, schedule->n_phases * sizeof *s->mailbox);
    sim_mem_free(w, s->queue, schedule->n_phases * sizeof *s->queue);
    sim_mem_free(w, s->reverse, schedule->n_phases);
    sim_coll *c = s->coll;
    c->stream[(size_t)s->live * schedule->n_streams + s->index] = NULL;
    c->n_live--;
    sim_mem_free(w, s, sizeof *s);
    forget(w, c);
}

void sim_stream_release(sim_world *w, sim_stream *s)
{
    if (s->ended && s->held == 0) drop(w, s);
}

static void retire(sim_world *w, sim_stream *s)
{
    s->ended = true;
    sim_stream_release(w, s);
}

uint32_t sim_place(const sim_stream *s, const sim_phase *p)
{
    return s->member / p->stride % p->n;
}

/* ---- queues ------------------------------------------------------------- */

static void insert(const sim_world *w, sim_stream *s, sim_dim_queue *queue)
{
    sim_stream **at = &queue->head, *last = NULL;
    while (*at && ((*at)->running || sim_order_behind(w, s, *at, last))) {
        last = *at;
        at = &(*at)->next;
    }
    s->next = *at;
    *at = s;
}

static void erase(sim_stream *s, sim_dim_queue *queue)
{
    sim_stream **at = &queue->head;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
}

/* If the streams of a dimension have a start order, all members start them in
 * this order; otherwise two members could each occupy a queue in which the
 * partner of the other waits. */
static bool may_start(const sim_stream *s)
{
    const sim_schedule *schedule = s->coll->schedule;
    if (!schedule->start_order) return true;
    uint32_t dim = s->phases[s->phase].dim;
    return schedule->start_order[s->index * schedule->n_phases + s->phase] ==
           s->end->started[dim];
}

static sim_stream *first_waiting(const sim_dim_queue *queue)
{
    sim_stream *s = queue->head;
    for (uint32_t i = 0; i < queue->running && s; i++) s = s->next;
    return s;
}

static void fill(sim_world *w, sim_dim_queue *queue);

/* Starts the waiting stream `s`; the next in the start order may follow. */
static void start_next(sim_world *w, sim_stream *s, sim_dim_queue *queue)
{
    uint32_t dim = s->phases[s->phase].dim, n = w->o->queues;
    size_t at_dim = (size_t)s->end->slot * w->n_dims + dim;
    sim_dim_queue *first = &s->rank->queues[at_dim * n];
    erase(s, queue);
    sim_stream **at = &queue->head;
    for (uint32_t i = 0; i < queue->running; i++) at = &(*at)->next;
    s->next = *at;
    *at = s;
    s->running = true;
    queue->running++;
    s->end->started[dim]++;
    sim_alg_start(w, s);
    for (uint32_t i = 0; i < n; i++)
        if (&first[i] != queue) fill(w, &first[i]);
}

/* Waiting streams start while the queue has room. */
static void fill(sim_world *w, sim_dim_queue *queue)
{
    sim_stream *s = first_waiting(queue), *next;
    for (; s && queue->running < w->queue_limit && w->status == SC_OK;
         s = next) {
        next = s->next;
        if (!may_start(s)) continue;
        if (w->trial) sim_order_note(w, s);
        if (s->coll->schedule->start_order) {
            start_next(w, s, queue);
            next = first_waiting(queue);
            continue;
        }
        s->running = true;
        queue->running++;
        sim_alg_start(w, s);
    }
}

static sim_dim_queue *queue_of(sim_stream *s)
{
    return &s->rank->queues[s->queue[s->phase]];
}

static void enter(sim_world *w, sim_stream *s, sim_dim_queue *left)
{
    s->running = false;
    sim_dim_queue *queue = queue_of(s);
    insert(w, s, queue);
    if (left) {
        left->running--;
        fill(w, left);
    }
    fill(w, queue);
}

/* The member's collective ends with its last stream, which still counts as
 * running then: tasks that it enables start after it. */
void sim_stream_leave(sim_world *w, sim_stream *s)
{
    sim_rank *r = s->rank;
    sim_dim_queue *queue = queue_of(s);
    if (s->phase + 1 < s->coll->schedule->n_phases) {
        erase(s, queue);
        s->phase++;
        enter(w, s, queue);
        return;
    }
    sim_end *end = s->end;
    if (--end->left == 0) {
        uint32_t task = end->task;
        if (w->together) r->slot_used[end->slot] = false;
        sim_mem_free(w, end, sizeof *end);
        s->coll->n_ended++;
        sim_task_done(w, r, task);
    }
    erase(s, queue);
    retire(w, s);
    queue->running--;
    fill(w, queue);
}

/* ---- beginning --------------------------------------------------------- */

/* By the chunk's number, which is the same on all members, whatever they ran
 * before. */
void sim_stream_queue(const sim_world *w, sim_stream *s, uint32_t i)
{
    const sim_phase *p = &s->phases[i];
    uint32_t n = w->o->queues, half = n / 2, at = s->index % n;
    if (p->queue_half == 1) at = half ? s->index % half : 0;
    if (p->queue_half == 2) at = half + s->index % (n - half);
    s->queue[i] = p->dim * n + at;
    s->reverse[i] = n > 1 && at >= half;
    if (p->kind == SC_COLL_TREE) s->reverse[i] = s->index & 1;
}

static int32_t next_priority(const sim_world *w, sim_rank *r, uint32_t task)
{
    switch (w->sys->order) {
    case SC_LIFO: return r->priority++;
    case SC_FIFO: return r->priority--;
    case SC_EXPLICIT: return (int32_t)r->tasks->priority[task];
    }
    return 0;
}

static void begin_stream(sim_world *w, sim_stream *s)
{
    const sim_schedule *schedule = s->coll->schedule;
    for (uint32_t i = 0; i < schedule->n_phases; i++) {
        const sim_phase *p = &s->phases[i];
        uint32_t first = s->end->slot * w->n_dims * w->o->queues;
        s->queue[i] = first;
        if (p->kind == SC_COLL_MESSAGE) continue; /* the first queue */
        w->hooks.queue(w, s, i);
        s->queue[i] += first;
    }
    enter(w, s, NULL);
}

/* Collectives that run at once have queues of their own: in common queues, two
 * members could start different ones first. */
static uint32_t take_slot(const sim_world *w, sim_rank *r)
{
    uint32_t i = 0;
    if (!w->together) return 0;
    while (i + 1 < w->comm_slots && r->slot_used[i]) i++;
    r->slot_used[i] = true;
    return i;
}

void sim_coll_begin(sim_world *w, sim_coll *c, sim_rank *r, uint32_t member,
                    uint32_t task)
{
    const sim_schedule *schedule = c->schedule;
    sim_end *end = sim_mem_alloc(w, sizeof *end);
    end->task = task;
    end->left = schedule->n_streams;
    end->coll = c;
    end->slot = take_slot(w, r);
    int32_t priority = next_priority(w, r, task);
    c->n_begun++;
    for (uint32_t i = 0; i < schedule->n_streams && w->status == SC_OK; i++) {
        sim_stream *s = sim_stream_of(w, c, member, i);
        if (!s) return;
        s->end = end;
        s->priority = priority;
        begin_stream(w, s);
    }
}

sim_coll *sim_coll_new(sim_world *w, sim_comm *c, sim_schedule *schedule)
{
    return sim_coll_at(w, c, c->count[0]++, sim_order_now(w, c, schedule));
}

/* A member of a group that has nothing to exchange is done. */
void sim_coll_join(sim_world *w, sim_coll *c, sim_rank *r, uint32_t live,
                   uint32_t task)
{
    if (c->schedule->n_phases > 0) {
        sim_coll_begin(w, c, r, live, task);
        return;
    }
    sim_later(w, r, 0, SIM_CALL_TASK, NULL, 0, task);
    c->n_ended++;
    forget(w, c);
}

/* ---- diagnosis of deadlocks -------------------------------------------- */

/* The stream of a member that has begun and not ended. */
static const sim_stream *waits(const sim_coll *c, uint32_t member)
{
    const sim_schedule *schedule = c->schedule;
    for (uint32_t i = 0; i < schedule->n_streams; i++) {
        const sim_stream *s =
            c->stream[(size_t)member * schedule->n_streams + i];
        if (s && s->end && !s->ended) return s;
    }
    return NULL;
}

static bool has_begun(const sim_coll *c, uint32_t member)
{
    const sim_schedule *schedule = c->schedule;
    for (uint32_t i = 0; i < schedule->n_streams; i++) {
        const sim_stream *s =
            c->stream[(size_t)member * schedule->n_streams + i];
        if (s && s->end) return true;
    }
    return false;
}

static void report(sim_world *w, const sim_coll *c, sim_note *note, void *ctx)
{
    uint32_t n = c->comm->n_live, missing = 0;
    bool some = c->n_begun < n;
    while (some && missing + 1 < n && has_begun(c, missing)) missing++;
    for (uint32_t i = 0; i < n; i++) {
        const sim_stream *s = waits(c, i);
        if (!s) continue;
        sim_waiting is = {.rank = s->rank->id,
                          .task = s->end->task,
                          .on = some ? sim_comm_rank(w, c->comm, missing)
                                     : s->rank->id,
                          .kind = some ? SIM_WAITS_MEMBER : SIM_WAITS_MESSAGES,
                          .size = c->schedule->size};
        note(ctx, &is);
    }
}

void sim_coll_waiting(sim_world *w, sim_note *note, void *ctx)
{
    const sim_comm *c;
    for (uint32_t i = 0; (c = sc_map_each_ptr(&w->comms, &i));)
        for (const sim_coll *k = c->open; k; k = k->next)
            report(w, k, note, ctx);
}
