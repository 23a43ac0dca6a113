/* SPDX-License-Identifier: Apache-2.0 */
/* actor.c - emulated ranks that run the program of a trace. */
#include "emu/actor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ending {
    uint32_t actor, task;
    sc_time t;
} ending;

typedef struct actor {
    uint32_t rank;
    const sc_task_list *l;
    const sc_rank_trace *r;
    uint32_t *left;    /* [n_tasks] nodes that each waits for, in this round */
    uint32_t n_left;   /* nodes of this round that have not ended */
    uint8_t *ready;    /* [n_tasks] computation that may begin */
    uint32_t n_ready;  /* number of these */
    uint32_t first;    /* none before it is ready */
    bool busy, failed; /* it computes; it makes no call any more */
    sc_time began;     /* this round */
    uint64_t round, calls;
    uint32_t n_stalled; /* stalls that are over */
    emu_peer_model b;
    emu_list pending; /* posts of collectives without operation */
    sc_map known;     /* what its trace calls */
} actor;

struct emu_actors {
    const sc_workload *w;
    bool tagged; /* with the program's tags */
    sc_arena *a;
    uint32_t n;
    actor *v;
    uint32_t *number; /* [world] */
    uint32_t *op;     /* operations that wait for actors */
    uint32_t n_ops, cap_ops;
    ending *ending;
    uint32_t n_endings, cap_endings;
};

/* ---- traces -------------------------------------------------------------- */

static bool is_call(const sc_task_list *l, uint32_t i)
{
    return !(l->flags[i] & SC_TASK_NO_COMM) &&
           (l->kind[i] == SC_TASK_SEND || l->kind[i] == SC_TASK_RECV ||
            l->kind[i] == SC_TASK_COLL);
}

static sc_coll coll_of(const sc_task_list *l, uint32_t i)
{
    if (l->kind[i] == SC_TASK_COLL) return (sc_coll)l->coll[i];
    return l->kind[i] == SC_TASK_SEND ? SC_SEND : SC_RECV;
}

/* The group's ranks; NULL: all of the world. */
static const sc_rank_group *group_of(const emu_actors *x, const actor *a,
                                     uint32_t i)
{
    uint32_t slot = a->l->group[i];
    return slot == SC_TASK_WORLD ? NULL : &x->w->groups[a->r->groups[slot]];
}

/* As sc_emu_op counts them. */
static uint64_t bytes_of(const emu_actors *x, const actor *a, uint32_t i)
{
    sc_coll c = coll_of(a->l, i);
    const sc_rank_group *g =
        c == SC_SEND || c == SC_RECV ? NULL : group_of(x, a, i);
    if (c != SC_ALL_GATHER && c != SC_GATHER) return a->l->size[i];
    return a->l->size[i] * (g ? g->n : x->w->n_ranks);
}

/* `tag` SC_EMU_ANY_TAG: of messages with any tag, or of receives that take any. */
static uint64_t message_key(bool sends, uint32_t partner, int32_t tag)
{
    uint64_t v[3] = {sends, partner, (uint64_t)(tag + INT64_C(1))};
    return sc_hash(v, sizeof v, 1);
}

/* Other traces than those of scouts number their messages as they like. */
static int32_t tag_of(const emu_actors *x, const actor *a, uint32_t i)
{
    bool message = a->l->kind[i] != SC_TASK_COLL;
    return x->tagged && message ? (int32_t)a->r->tags[a->l->tag[i]]
                                : SC_EMU_ANY_TAG;
}

static uint64_t collective_key(sc_coll c, uint64_t bytes, const uint32_t *rank,
                               uint32_t n)
{
    uint64_t v[3] = {(uint64_t)c, c == SC_BARRIER ? 0 : bytes, n};
    uint64_t hash = sc_hash(v, sizeof v, 2);
    for (uint32_t i = 0; rank && i < n; i++)
        if (rank[i] != i) return sc_hash(rank, n * sizeof *rank, hash);
    return hash;
}

static bool learn(emu_actors *x, actor *a)
{
    for (uint32_t i = 0; i < a->l->n_tasks; i++) {
        if (!is_call(a->l, i)) continue;
        sc_coll c = coll_of(a->l, i);
        uint64_t key;
        if (c == SC_SEND || c == SC_RECV) {
            key = message_key(c == SC_SEND, a->r->peers[a->l->peer[i]],
                              tag_of(x, a, i));
        } else {
            const sc_rank_group *g = group_of(x, a, i);
            key = collective_key(c, bytes_of(x, a, i), g ? g->rank : NULL,
                                 g ? g->n : x->w->n_ranks);
        }
        if (!sc_map_set(&a->known, x->a, key, 0)) return false;
    }
    return true;
}

/* ---- who is an actor ----------------------------------------------------- */

static bool calls_anything(const sc_task_list *l)
{
    for (uint32_t i = 0; i < l->n_tasks; i++)
        if (is_call(l, i)) return true;
    return false;
}

/* Marks the ranks that this one calls; true: there are new ones. */
static bool spread(const sc_workload *w, uint32_t rank, uint8_t *reached)
{
    const sc_rank_trace *r = &w->ranks[rank];
    const sc_task_list *l = &w->classes[r->cls];
    bool more = false;
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (!is_call(l, i)) continue;
        const uint32_t *to = NULL;
        uint32_t n = 1;
        if (l->kind[i] != SC_TASK_COLL) {
            to = &r->peers[l->peer[i]];
        } else if (l->group[i] == SC_TASK_WORLD) {
            n = w->n_ranks;
        } else {
            to = w->groups[r->groups[l->group[i]]].rank;
            n = w->groups[r->groups[l->group[i]]].n;
        }
        for (uint32_t k = 0; k < n; k++) {
            uint8_t *at = &reached[to ? to[k] : k];
            more = more || !*at;
            *at = 1;
        }
    }
    return more;
}

/* Ranks that call each other, from the real ones on. A real rank's own trace is
 * not asked: what calls it reaches it. */
static uint8_t *reach(const sc_emu_config *c, sc_arena *a)
{
    const sc_workload *w = c->peers;
    uint8_t *reached = SC_NEW_N(a, uint8_t, w->n_ranks);
    uint8_t *calls = SC_NEW_N(a, uint8_t, w->n_ranks);
    if (!reached || !calls) return NULL;
    for (uint32_t i = 0; i < c->n_real; i++) reached[c->real[i]] = 1;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t r = 0; r < w->n_ranks; r++) {
            memset(calls, 0, w->n_ranks);
            if (!spread(w, r, calls)) continue;
            bool meets = reached[r];
            for (uint32_t k = 0; !meets && k < w->n_ranks; k++)
                meets = calls[k] && reached[k];
            if (!meets) continue;
            more = more || !reached[r];
            reached[r] = 1;
            for (uint32_t k = 0; k < w->n_ranks; k++) {
                more = more || (calls[k] && !reached[k]);
                reached[k] |= calls[k];
            }
        }
    }
    return reached;
}

static sc_status fill(emu_actors *x, actor *a, uint32_t rank, sc_err *err)
{
    const sc_rank_trace *r = &x->w->ranks[rank];
    const sc_task_list *l = &x->w->classes[r->cls];
    *a = (actor){.rank = rank,
                 .l = l,
                 .r = r,
                 .left = SC_NEW_N(x->a, uint32_t, l->n_tasks),
                 .ready = SC_NEW_N(x->a, uint8_t, l->n_tasks),
                 .pending = {EMU_NONE, EMU_NONE}};
    return a->left && a->ready && learn(x, a) ? SC_OK : sc_error_nomem(err);
}

sc_status emu_actors_new(const sc_emu_config *c, sc_arena *a, emu_actors **out,
                         sc_err *err)
{
    const sc_workload *w = c->peers;
    *out = NULL;
    if (!w) return SC_OK;
    emu_actors *x = SC_NEW(a, emu_actors);
    uint8_t *reached = reach(c, a);
    if (!x || !reached) return sc_error_nomem(err);
    *x = (emu_actors){.w = w, .tagged = c->peer_tags, .a = a};
    x->v = SC_NEW_N(a, actor, w->n_ranks);
    x->number = SC_NEW_N(a, uint32_t, w->n_ranks);
    if (!x->v || !x->number) return sc_error_nomem(err);
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        x->number[r] = EMU_NONE;
        if (!reached[r] || emu_real_number(c, r) != EMU_NONE ||
            !calls_anything(&w->classes[w->ranks[r].cls]))
            continue;
        x->number[r] = x->n;
        SC_TRY(fill(x, &x->v[x->n++], r, err));
    }
    *out = x;
    return SC_OK;
}

uint32_t emu_actor_number(const emu_actors *x, uint32_t rank)
{
    return x && rank < x->w->n_ranks ? x->number[rank] : EMU_NONE;
}

uint32_t emu_actors_count(const emu_actors *x)
{
    return x ? x->n : 0;
}

bool sc_emu_sends(const sc_emu_config *c, uint32_t from, uint32_t to)
{
    if (!c->peers) return false;
    const sc_rank_trace *r = &c->peers->ranks[from];
    const sc_task_list *l = &c->peers->classes[r->cls];
    for (uint32_t i = 0; i < l->n_tasks; i++)
        if (l->kind[i] == SC_TASK_SEND && r->peers[l->peer[i]] == to)
            return true;
    return false;
}

bool emu_actor_meets(sc_emu *e, uint32_t rank, const sc_emu_op *call)
{
    uint32_t i = emu_actor_number(e->actors, rank);
    if (i == EMU_NONE) return false;
    bool sends = call->coll == SC_RECV;
    if (sends && call->tag == SC_EMU_ANY_TAG)
        return sc_emu_sends(&e->c, rank, call->rank);
    const sc_map *known = &e->actors->v[i].known;
    uint64_t own = message_key(sends, call->rank, call->tag),
             any = message_key(sends, call->rank, SC_EMU_ANY_TAG);
    return sc_map_get(known, own) != SC_MAP_END ||
           sc_map_get(known, any) != SC_MAP_END;
}

/* ---- collectives --------------------------------------------------------- */

static bool equal(const sc_emu *e, const emu_op *o, const emu_group *base,
                  const sc_emu_op *call)
{
    const emu_group *g = o->g, *h = base;
    (void)e;
    if (o->coll != call->coll || g->n != h->n) return false;
    if (o->coll != SC_BARRIER && o->bytes != call->bytes) return false;
    if (!g->rank || !h->rank) return g->rank == h->rank;
    return g->rank == h->rank ||
           memcmp(g->rank, h->rank, g->n * sizeof *g->rank) == 0;
}

static bool has_joined(const sc_emu *e, const emu_op *o, uint32_t rank)
{
    for (uint32_t k = o->first; k != EMU_NONE; k = e->post[k].next)
        if (e->post[k].rank == rank) return true;
    return false;
}

static sc_status wait_for_actors(sc_emu *e, uint32_t op, sc_err *err)
{
    emu_actors *x = e->actors;
    uint32_t *v = sc_grow(x->a, x->op, x->n_ops, &x->cap_ops, 16, sizeof *v);
    if (!v) return sc_error_nomem(err);
    x->op = v;
    v[x->n_ops++] = op;
    return SC_OK;
}

void emu_actors_forget(sc_emu *e, uint32_t op)
{
    emu_actors *x = e->actors;
    for (uint32_t i = 0; x && i < x->n_ops; i++)
        if (x->op[i] == op) {
            memmove(&x->op[i], &x->op[i + 1], (--x->n_ops - i) * sizeof *x->op);
            return;
        }
}

static void join(sc_emu *e, uint32_t op, uint32_t post)
{
    emu_op *o = &e->op[op];
    emu_post_join(e, post, op);
    if (e->post[post].t > o->begin) o->begin = e->post[post].t;
}

/* All actors are there: it begins if the real ranks are, too. */
static sc_status complete(sc_emu *e, uint32_t op, sc_err *err)
{
    emu_op *o = &e->op[op];
    if (--o->missing > 0) return SC_OK;
    emu_actors_forget(e, op);
    return o->n_real == o->expected ? emu_op_begin(e, op, err) : SC_OK;
}

/* A group of actors and mirrored ranks only. */
static sc_status open_among(sc_emu *e, emu_group *g, uint32_t post, sc_err *err)
{
    uint32_t i;
    emu_op *o = emu_op_alloc(e, &i, err);
    if (!o) return SC_ENOMEM;
    const sc_emu_op *call = &e->post[post].call;
    o->g = g;
    o->coll = call->coll;
    o->bytes = call->bytes;
    o->state = EMU_OPEN;
    uint64_t key = collective_key(call->coll, call->bytes, g->rank, g->n);
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t n = emu_actor_number(e->actors, emu_group_rank_at(g, k));
        if (n != EMU_NONE &&
            sc_map_get(&e->actors->v[n].known, key) != SC_MAP_END)
            o->missing++;
    }
    join(e, i, post);
    SC_TRY(wait_for_actors(e, i, err));
    return complete(e, i, err);
}

static sc_status call_collective(sc_emu *e, actor *a, uint32_t post,
                                 sc_err *err)
{
    emu_actors *x = e->actors;
    const sc_emu_op *call = &e->post[post].call;
    emu_group *base = e->groups.v[call->group];
    for (uint32_t i = 0; i < x->n_ops; i++) {
        uint32_t op = x->op[i];
        if (!equal(e, &e->op[op], base, call) ||
            has_joined(e, &e->op[op], a->rank))
            continue;
        join(e, op, post);
        return complete(e, op, err);
    }
    if (base->n_real == 0) return open_among(e, base, post, err);
    emu_list_append(e, &a->pending, post);
    return SC_OK;
}

sc_status emu_actors_expect(sc_emu *e, uint32_t op, sc_err *err)
{
    emu_actors *x = e->actors;
    const emu_group *g = e->op[op].g;
    if (emu_actors_count(x) == 0) return SC_OK;
    uint64_t key =
        collective_key(e->op[op].coll, e->op[op].bytes, g->rank, g->n);
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t n = emu_actor_number(x, emu_group_rank_at(g, k));
        if (n == EMU_NONE) continue;
        actor *a = &x->v[n];
        if (sc_map_get(&a->known, key) == SC_MAP_END) continue;
        uint32_t post = a->pending.head;
        while (post != EMU_NONE &&
               !equal(e, &e->op[op], e->groups.v[e->post[post].call.group],
                      &e->post[post].call))
            post = e->post[post].next;
        if (post == EMU_NONE) {
            e->op[op].missing++;
            continue;
        }
        emu_list_remove(e, &a->pending, post);
        join(e, op, post);
    }
    return e->op[op].missing > 0 ? wait_for_actors(e, op, err) : SC_OK;
}

void emu_actors_why(const sc_emu *e, const emu_op *o, sc_text *out)
{
    const emu_actors *x = e->actors;
    for (uint32_t k = 0; k < o->g->n; k++) {
        uint32_t rank = emu_group_rank_at(o->g, k);
        uint32_t n = emu_actor_number(x, rank);
        if (n == EMU_NONE || has_joined(e, o, rank)) continue;
        if (x->v[n].failed)
            sc_text_add(out, "rank %u never arrives: --what-if fail=%u@%llu",
                        rank, rank, (unsigned long long)x->v[n].b.fail);
        else
            sc_text_add(out, "rank %u has not come to it in its trace", rank);
        return;
    }
}

/* ---- programs ------------------------------------------------------------ */

static sc_status note(sc_emu *e, uint32_t n, uint32_t task, sc_time t,
                      sc_err *err)
{
    emu_actors *x = e->actors;
    ending *v =
        sc_grow(x->a, x->ending, x->n_endings, &x->cap_endings, 64, sizeof *v);
    if (!v) return sc_error_nomem(err);
    x->ending = v;
    v[x->n_endings++] = (ending){n, task, t};
    return SC_OK;
}

/* The next computation that is ready. */
static sc_status compute(sc_emu *e, uint32_t n, sc_time t, sc_err *err)
{
    actor *a = &e->actors->v[n];
    uint32_t op;
    if (a->busy || a->n_ready == 0) return SC_OK;
    while (!a->ready[a->first]) a->first++;
    uint32_t task = a->first;
    a->ready[task] = 0;
    a->n_ready--;
    a->busy = true;
    double d = a->b.factor * (double)a->l->duration[task];
    uint64_t who[3] = {a->rank, a->round, task};
    d += emu_peers_deviation(&e->peers, d, sc_hash(who, sizeof who, e->c.seed),
                             a->rank);
    emu_op *o = emu_op_alloc(e, &op, err);
    if (!o) return SC_ENOMEM;
    o->actor = n;
    o->root = task;
    return emu_op_act(e, op, t + (sc_time)d, err);
}

/* Whether no node waits for the message: the program sent it and went on. */
static bool is_eager(const sc_task_list *l, uint32_t i)
{
    return l->kind[i] == SC_TASK_SEND && l->succ_head[i] == l->succ_head[i + 1];
}

static sc_status call(sc_emu *e, uint32_t n, uint32_t i, sc_time t, sc_err *err)
{
    emu_actors *x = e->actors;
    actor *a = &x->v[n];
    if (a->calls >= a->b.fail) a->failed = true;
    if (a->failed) return SC_OK;
    for (; a->n_stalled < a->b.n_stalls &&
           a->b.stall[a->n_stalled].at <= a->calls;
         a->n_stalled++)
        t += a->b.stall[a->n_stalled].t;
    a->calls++;
    sc_emu_op c = {.coll = coll_of(a->l, i),
                   .rank = a->rank,
                   .bytes = bytes_of(x, a, i),
                   .eager = is_eager(a->l, i),
                   .cuts = true,
                   .tag = tag_of(x, a, i)};
    bool message = sc_coll_is_message(c.coll);
    const sc_rank_group *g = message ? NULL : group_of(x, a, i);
    if (g)
        SC_TRY(emu_groups_get(&e->groups, &e->c, &e->peers, g->rank, g->n, 0,
                              e->a, &c.group, err));
    if (message) c.peer = a->r->peers[a->l->peer[i]];
    if (sc_coll_is_rooted(c.coll))
        c.peer = emu_group_rank_at(e->groups.v[c.group], a->l->peer[i]);
    uint32_t post;
    if (message && emu_real_number(&e->c, c.peer) == EMU_NONE &&
        emu_actor_number(x, c.peer) == EMU_NONE)
        return emu_message_alone(e, &c, t, i, err);
    SC_TRY(emu_post_add(e, &c, t, &post, err));
    e->post[post].task = i;
    return message ? emu_message_call(e, post, err)
                   : call_collective(e, a, post, err);
}

static sc_status start(sc_emu *e, uint32_t n, uint32_t i, sc_time t,
                       sc_err *err)
{
    actor *a = &e->actors->v[n];
    if (is_call(a->l, i)) return call(e, n, i, t, err);
    if (a->l->kind[i] != SC_TASK_COMP || a->l->duration[i] <= 0)
        return note(e, n, i, t, err);
    a->ready[i] = 1;
    a->n_ready++;
    if (i < a->first) a->first = i;
    return SC_OK;
}

static sc_status begin_round(sc_emu *e, uint32_t n, sc_time t, sc_err *err)
{
    actor *a = &e->actors->v[n];
    memcpy(a->left, a->l->n_preds, a->l->n_tasks * sizeof *a->left);
    a->n_left = a->l->n_tasks;
    a->began = t;
    a->first = 0;
    for (uint32_t i = 0; i < a->l->n_tasks; i++)
        if (a->l->n_preds[i] == 0) SC_TRY(start(e, n, i, t, err));
    return compute(e, n, t, err);
}

static sc_status go_on(sc_emu *e, const ending *x, sc_err *err)
{
    actor *a = &e->actors->v[x->actor];
    const sc_task_list *l = a->l;
    for (uint32_t k = l->succ_head[x->task]; k < l->succ_head[x->task + 1]; k++)
        if (--a->left[l->succ[k]] == 0)
            SC_TRY(start(e, x->actor, l->succ[k], x->t, err));
    if (--a->n_left > 0) return compute(e, x->actor, x->t, err);
    a->round++;
    /* A trace without any time would be run for ever. */
    return x->t > a->began ? begin_round(e, x->actor, x->t, err) : SC_OK;
}

sc_status emu_actors_go_on(sc_emu *e, sc_err *err)
{
    emu_actors *x = e->actors;
    for (uint32_t i = 0; x && i < x->n_endings; i++) {
        ending now = x->ending[i]; /* more may be added */
        SC_TRY(go_on(e, &now, err));
    }
    if (x) x->n_endings = 0;
    return SC_OK;
}

void emu_actor_computed(sc_emu *e, uint32_t op)
{
    const emu_op *o = &e->op[op];
    e->actors->v[o->actor].busy = false;
    e->failed = note(e, o->actor, o->root, o->due, &e->err);
    emu_op_free(e, op);
}

bool emu_actor_ended(sc_emu *e, const emu_posted *p, sc_time t)
{
    uint32_t n = emu_actor_number(e->actors, p->rank);
    if (n == EMU_NONE) return false;
    if (note(e, n, p->task, t, &e->err) != SC_OK) e->failed = SC_ENOMEM;
    return true;
}

sc_status emu_actors_start(sc_emu *e, sc_err *err)
{
    for (uint32_t n = 0; n < emu_actors_count(e->actors); n++) {
        actor *a = &e->actors->v[n];
        SC_TRY(emu_peers_model(&e->peers, a->rank, &a->b, err));
        SC_TRY(begin_round(e, n, 0, err));
    }
    return emu_actors_go_on(e, err);
}
