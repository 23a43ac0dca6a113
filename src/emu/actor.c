/* SPDX-License-Identifier: Apache-2.0 */
/* actor.c - emulated ranks that run the program of a trace. */
#include "emu/actor_trace.h"

#include <string.h>

/* ---- collectives --------------------------------------------------------- */

static bool equal(const emu_op *o, const emu_group *g, const sc_emu_op *call)
{
    return o->coll == call->coll && emu_group_is(o->g, g->rank, g->n) &&
           (emu_coll_may_differ(o->coll) || o->bytes == call->bytes);
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
    if (e->post[post].call.bytes > o->bytes)
        o->bytes = e->post[post].call.bytes;
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
    uint64_t key = actor_collective_key(call->coll, call->bytes, g->rank, g->n);
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
        if (!equal(&e->op[op], base, call) ||
            emu_op_has(e, &e->op[op], a->rank))
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
        actor_collective_key(e->op[op].coll, e->op[op].bytes, g->rank, g->n);
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t n = emu_actor_number(x, emu_group_rank_at(g, k));
        if (n == EMU_NONE) continue;
        actor *a = &x->v[n];
        if (sc_map_get(&a->known, key) == SC_MAP_END) continue;
        uint32_t post = a->pending.head;
        while (post != EMU_NONE &&
               !equal(&e->op[op], e->groups.v[e->post[post].call.group],
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
        if (n == EMU_NONE || emu_op_has(e, o, rank)) continue;
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
    return emu_op_schedule(e, op, EMU_ACTING, t + (sc_time)d, err);
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
    sc_emu_op c = {.coll = actor_coll(a->l, i),
                   .rank = a->rank,
                   .bytes = actor_bytes(x, a, i),
                   .eager = is_eager(a->l, i),
                   .cuts = true,
                   .tag = actor_tag(x, a, i)};
    bool message = sc_coll_is_message(c.coll);
    const sc_rank_group *g = message ? NULL : actor_group(x, a, i);
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
    if (message) e->post[post].scope = actor_scope(a, i);
    return message ? emu_message_call(e, post, err)
                   : call_collective(e, a, post, err);
}

static sc_status start(sc_emu *e, uint32_t n, uint32_t i, sc_time t,
                       sc_err *err)
{
    actor *a = &e->actors->v[n];
    if (actor_is_call(a->l, i)) return call(e, n, i, t, err);
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
    const uint32_t *preds = a->round == 0 ? a->l->n_preds : a->again;
    uint32_t from = a->round == 0 ? 0 : a->l->n_once;
    memcpy(a->left, preds, a->l->n_tasks * sizeof *a->left);
    a->n_left = a->l->n_tasks - from;
    a->began = t;
    a->first = from;
    for (uint32_t i = from; i < a->l->n_tasks; i++)
        if (preds[i] == 0) SC_TRY(start(e, n, i, t, err));
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
