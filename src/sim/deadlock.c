/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock.c - why a workload does not finish.
 *
 * When no event is left, every unfinished rank has tasks that started and wait
 * for another rank: receives, sends that no receiver requested, members of a
 * collective. For each, the counterpart on the other rank is looked up and, if
 * that has not started, the waiting task of that rank before it. Following
 * these steps from any rank ends in a cycle, or at something that never
 * happens.
 */
#include "sim/world.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct blocked {
    struct blocked *next; /* of the same rank */
    sim_waiting is;
    bool visited;
} blocked;

typedef struct search {
    sim_world *w;
    blocked **of; /* [n_ranks] */
    uint8_t *seen;
    uint32_t *todo;
} search;

/* ---- tasks that have not started --------------------------------------- */

static bool in_heap(const sim_heap *h, uint32_t task)
{
    for (uint32_t i = 0; i < h->n; i++)
        if (h->task[i] == task) return true;
    return false;
}

static bool is_ready(const sim_rank *r, uint32_t task)
{
    for (int s = 0; s < SIM_SLOTS; s++)
        if (in_heap(&r->ready[s], task)) return true;
    return in_heap(&r->fresh, task);
}

static bool is_pending(const sim_rank *r, uint32_t task)
{
    return r->left[task] > 0 || is_ready(r, task);
}

/* Whether the task has not started, or waits. */
static bool is_open(const search *x, uint32_t rank, uint32_t task)
{
    for (const blocked *b = x->of[rank]; b; b = b->next)
        if (b->is.task == task) return true;
    return is_pending(&x->w->rank[rank], task);
}

/* Whether `task` depends on `from` through tasks that have not started. */
static bool comes_after(search *x, const sim_rank *r, uint32_t from,
                        uint32_t task)
{
    const sc_task_list *t = r->tasks;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_tasks; i++) x->seen[i] = 0;
    x->todo[n++] = from;
    while (n > 0) {
        uint32_t i = x->todo[--n];
        if (i == task) return true;
        for (uint32_t k = t->succ_head[i]; k < t->succ_head[i + 1]; k++) {
            uint32_t s = t->succ[k];
            if (!x->seen[s]) x->todo[n++] = s;
            x->seen[s] = 1;
        }
    }
    return false;
}

static bool holds_slot(const sim_world *w, const sim_waiting *b)
{
    return b->kind == SIM_WAITS_RECEIVE || b->kind == SIM_WAITS_MESSAGES ||
           (b->kind == SIM_WAITS_MEMBER && !w->together);
}

/* The waiting task of a rank that keeps `task` from starting. */
static blocked *before(search *x, uint32_t rank, uint32_t task)
{
    const sim_rank *r = &x->w->rank[rank];
    for (blocked *b = x->of[rank]; b; b = b->next)
        if (b->is.task == task || comes_after(x, r, b->is.task, task)) return b;
    if (!is_ready(r, task)) return NULL;
    for (blocked *b = x->of[rank]; b; b = b->next)
        if (holds_slot(x->w, &b->is)) return b;
    return NULL;
}

/* ---- counterparts ------------------------------------------------------ */

/* The counterpart of a send or receive; SC_TASK_WORLD: there is none, and
 * `*near` is one of another size. */
static uint32_t counterpart(const search *x, const sim_waiting *b,
                            uint32_t *near)
{
    const sim_rank *r = &x->w->rank[b->on];
    const sc_task_list *t = r->tasks;
    uint8_t kind = b->kind == SIM_WAITS_SEND ? SC_TASK_SEND : SC_TASK_RECV;
    *near = SC_TASK_WORLD;
    for (uint32_t i = 0; i < t->n_tasks; i++) {
        if (t->kind[i] != kind || !is_open(x, b->on, i) ||
            r->trace->peers[t->peer[i]] != b->rank ||
            sim_tag(r->trace->tags[t->tag[i]]) != b->tag)
            continue;
        if (t->size[i] != b->size)
            *near = i;
        else if (is_pending(r, i))
            return i;
    }
    return SC_TASK_WORLD;
}

/* The call of `b->on` that belongs to the collective. */
static uint32_t call_of(const search *x, const sim_waiting *b, uint32_t *near)
{
    sim_world *w = x->w;
    sim_rank *r = &w->rank[b->on], *mine = &w->rank[b->rank];
    const sc_task_list *t = r->tasks;
    const sim_comm *comm = sim_comm_of(w, mine, b->task);
    uint8_t coll = mine->tasks->coll[b->task];
    *near = SC_TASK_WORLD;
    for (uint32_t i = 0; i < t->n_tasks; i++) {
        if (t->kind[i] != SC_TASK_COLL || t->coll[i] != coll ||
            !is_open(x, b->on, i) || sim_comm_of(w, r, i) != comm)
            continue;
        if (t->size[i] != b->size && !sim_is_custom(w, t, i))
            *near = i;
        else if (is_pending(r, i))
            return i;
    }
    return SC_TASK_WORLD;
}

static const char *subject(const search *x, const sim_waiting *b)
{
    const sc_task_list *t = x->w->rank[b->rank].tasks;
    switch (b->kind) {
    case SIM_WAITS_SEND:
        return sc_sprintf(x->w->a, "%" PRIu64 " bytes with tag %u from rank %u",
                          b->size, b->tag, b->on);
    case SIM_WAITS_RECEIVE:
        return sc_sprintf(x->w->a,
                          "rank %u to receive %" PRIu64 " bytes with tag %u",
                          b->on, b->size, b->tag);
    case SIM_WAITS_MEMBER:
        return sc_sprintf(x->w->a,
                          "rank %u to join its %s of %" PRIu64 " bytes", b->on,
                          sc_coll_names[t->coll[b->task]], b->size);
    default:
        return sc_sprintf(x->w->a, "messages of its %s that never arrive",
                          sc_coll_names[t->coll[b->task]]);
    }
}

/* The next step of the walk, NULL at its end; `out` says why `b` waits. */
static blocked *follow(search *x, const sim_waiting *b, sc_wait *out)
{
    uint32_t near, task;
    *out = (sc_wait){.rank = b->rank,
                     .on = b->on,
                     .task = b->task,
                     .other = SC_TASK_WORLD,
                     .why = subject(x, b)};
    if (b->kind == SIM_WAITS_MESSAGES) return NULL;
    task = b->kind == SIM_WAITS_MEMBER ? call_of(x, b, &near)
                                       : counterpart(x, b, &near);
    if (task == SC_TASK_WORLD && near != SC_TASK_WORLD) {
        out->other = near;
        out->state = sc_sprintf(x->w->a, "is of %" PRIu64 " bytes",
                                x->w->rank[b->on].tasks->size[near]);
        return NULL;
    }
    if (task == SC_TASK_WORLD) {
        out->why = sc_sprintf(x->w->a, "%s, which never does", out->why);
        return NULL;
    }
    blocked *next = before(x, b->on, task);
    if (next && next->is.task == task) return next;
    out->other = task;
    out->state = next ? "has not started"
                 : is_ready(&x->w->rank[b->on], task)
                     ? "is ready, but no remaining event starts it"
                     : "waits for another task of its rank, which never ends";
    return next;
}

/* ---- collecting -------------------------------------------------------- */

static void note(void *ctx, const sim_waiting *is)
{
    search *x = ctx;
    blocked **at = &x->of[is->rank];
    while (*at && (*at)->is.task < is->task) at = &(*at)->next;
    if (*at && (*at)->is.task == is->task) return;
    blocked *b = SC_NEW(x->w->a, blocked);
    if (!b) return;
    b->is = *is;
    b->next = *at;
    *at = b;
}

static void add(sc_simulate_result *out, sc_wait wait)
{
    if (!wait.why) wait.why = "";
    out->wait[out->n_waits++] = wait;
}

/* Follows the walk from `b`; the cycle, or what never happens, comes first. */
static void walk(search *x, blocked *b, sc_simulate_result *out)
{
    sc_wait wait;
    blocked *at = b, *next;
    for (;; at = next) {
        at->visited = true;
        next = follow(x, &at->is, &wait);
        if (!next || next->visited) break;
    }
    if (!next) {
        add(out, wait);
        return;
    }
    blocked *first = next;
    do {
        at = next;
        next = follow(x, &at->is, &wait);
        add(out, wait);
    } while (next && next != first);
    out->n_cycle = out->n_waits;
}

/* A rank without a waiting task has tasks that depend on themselves, or that
 * became ready after the last attempt to start tasks. */
static void stuck(const search *x, uint32_t rank, sc_simulate_result *out)
{
    const sim_rank *r = &x->w->rank[rank];
    uint32_t i = 0;
    while (i + 1 < r->tasks->n_tasks && !is_ready(r, i)) i++;
    bool ready = is_ready(r, i);
    for (i = ready ? i : 0; !ready && r->left[i] == 0;) i++;
    out->wait[out->n_waits++] = (sc_wait){
        .rank = rank,
        .on = rank,
        .task = i,
        .other = SC_TASK_WORLD,
        .why = ready ? "an event that starts it"
                     : "tasks that wait for it (a cycle of dependencies)"};
}

static bool in_front(const sc_simulate_result *out, uint32_t n, uint32_t rank)
{
    for (uint32_t i = 0; i < n; i++)
        if (out->wait[i].rank == rank) return true;
    return false;
}

static void collect(search *x, sc_simulate_result *out)
{
    sim_world *w = x->w;
    uint32_t start = w->n_ranks;
    for (uint32_t r = w->n_ranks; r-- > 0;)
        if (x->of[r]) start = r;
    if (start < w->n_ranks) walk(x, x->of[start], out);
    uint32_t front = out->n_waits;
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        sc_wait wait;
        if (w->rank[r].out.finished || in_front(out, front, r)) continue;
        if (!x->of[r]) {
            stuck(x, r, out);
            continue;
        }
        (void)follow(x, &x->of[r]->is, &wait);
        add(out, wait);
    }
}

sc_status sim_deadlock(sim_world *w, sc_simulate_result *out)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < w->w->n_classes; i++)
        if (w->w->classes[i].n_tasks > most) most = w->w->classes[i].n_tasks;
    search x = {.w = w};
    x.of = SC_NEW_N(w->a, blocked *, w->n_ranks);
    x.seen = SC_NEW_N(w->a, uint8_t, most + 1);
    x.todo = SC_NEW_N(w->a, uint32_t, most + 1);
    out->wait = SC_NEW_N(w->a, sc_wait, 2 * (size_t)w->n_ranks + 1);
    if (!x.of || !x.seen || !x.todo || !out->wait)
        return sc_error_nomem(w->err);
    sim_pair_waiting(w, note, &x);
    sim_rendezvous_waiting(w, note, &x);
    sim_coll_waiting(w, note, &x);
    collect(&x, out);
    return w->status;
}

/* ---- texts -------------------------------------------------------- */

sc_pos sim_rank_pos(const sc_workload *w, uint32_t rank, char *buf, size_t size)
{
    const sc_rank_job *job = &w->jobs[w->ranks[rank].job];
    if (!job->name) return sc_pos_none();
    (void)snprintf(buf, size, "%s.%u.et", job->name, rank - job->first);
    return sc_pos_file(buf);
}

/* The name that the rank's own trace has. */
static void name_task(const sc_workload *w, uint32_t rank, uint32_t task,
                      char *buf, size_t size)
{
    const sc_task_list *t = &w->classes[w->ranks[rank].cls];
    const char *name = t->name && t->name[task] ? t->name[task] : "";
    (void)snprintf(buf, size, "task %" PRIu64 "%s%.60s%s", t->id[task],
                   *name ? " \"" : "", name, *name ? "\"" : "");
}

static void around(const sc_simulate_result *r, char *buf, size_t size)
{
    int at =
        snprintf(buf, size, "%u of %u ranks finish", r->n_finished, r->n_ranks);
    for (uint32_t i = 0; i < r->n_cycle && at > 0 && (size_t)at < size; i++)
        at += snprintf(buf + at, size - (size_t)at, "%s%u",
                       i ? " -> " : "; cycle of ranks ", r->wait[i].rank);
    if (r->n_cycle && at > 0 && (size_t)at < size)
        (void)snprintf(buf + at, size - (size_t)at, " -> %u", r->wait[0].rank);
}

sc_status sc_simulate_deadlock(const sc_workload *w,
                               const sc_simulate_result *r, sc_err *err)
{
    char file[160], hint[240], task[100], other[100];
    if (r->n_finished == r->n_ranks) return SC_OK;
    around(r, hint, sizeof hint);
    uint32_t n = r->n_cycle ? r->n_cycle : r->n_waits ? 1 : 0;
    for (uint32_t i = 0; i < n; i++) {
        const sc_wait *k = &r->wait[i];
        bool whose = k->other != SC_TASK_WORLD;
        sc_pos pos = sim_rank_pos(w, k->rank, file, sizeof file);
        name_task(w, k->rank, k->task, task, sizeof task);
        if (whose) name_task(w, k->on, k->other, other, sizeof other);
        (void)sc_error(err, SC_EINPUT, SC_C_CYCLE, pos, i ? NULL : hint,
                       "%s waits for %s%s%s%s%s", task, k->why,
                       whose ? ", whose " : "", whose ? other : "",
                       whose ? " " : "", whose ? k->state : "");
    }
    if (n == 0)
        (void)sc_error(err, SC_EINPUT, SC_C_CYCLE, sc_pos_none(), NULL, "%s",
                       hint);
    return SC_EINPUT;
}
