/* SPDX-License-Identifier: Apache-2.0 */
/* actor_trace.c - which ranks run a trace, and which calls it has. */
#include "emu/actor_trace.h"

#include <string.h>

/* ---- traces -------------------------------------------------------------- */

bool actor_is_call(const sc_task_list *l, uint32_t i)
{
    return !(l->flags[i] & SC_TASK_NO_COMM) &&
           (l->kind[i] == SC_TASK_SEND || l->kind[i] == SC_TASK_RECV ||
            l->kind[i] == SC_TASK_COLL);
}

sc_coll actor_coll(const sc_task_list *l, uint32_t i)
{
    if (l->kind[i] == SC_TASK_COLL) return (sc_coll)l->coll[i];
    return l->kind[i] == SC_TASK_SEND ? SC_SEND : SC_RECV;
}

const sc_rank_group *actor_group(const emu_actors *x, const actor *a,
                                 uint32_t i)
{
    uint32_t slot = a->l->group[i];
    return slot == SC_TASK_WORLD ? NULL : &x->w->groups[a->r->groups[slot]];
}

uint64_t actor_bytes(const emu_actors *x, const actor *a, uint32_t i)
{
    sc_coll c = actor_coll(a->l, i);
    const sc_rank_group *g =
        c == SC_SEND || c == SC_RECV ? NULL : actor_group(x, a, i);
    if (c != SC_ALL_GATHER && c != SC_GATHER) return a->l->size[i];
    return a->l->size[i] * (g ? g->n : x->w->n_ranks);
}

/* What `tag` of a key of messages is: */
typedef enum tag_kind {
    TAG_EXACT, /* theirs */
    TAG_ANY,   /* not known, or that of receives that take any */
    TAG_SOME,  /* there are such messages */
    TAG_STEPS  /* theirs modulo a step, which is added to the kind */
} tag_kind;

static uint64_t message_key(const sc_emu_op *c, uint64_t scope, int64_t kind,
                            int64_t tag)
{
    uint64_t v[5] = {c->coll == SC_SEND, c->peer, scope, (uint64_t)kind,
                     (uint64_t)tag};
    return sc_hash(v, sizeof v, 1);
}

static uint64_t key_of_steps(const sc_emu_op *c, uint64_t scope, int32_t step,
                             int32_t tag)
{
    int64_t size = step < 0 ? -(int64_t)step : step;
    return message_key(c, scope, TAG_STEPS + size, tag % size);
}

int32_t actor_tag(const emu_actors *x, const actor *a, uint32_t i)
{
    if (!x->tagged || a->l->kind[i] == SC_TASK_COLL) return SC_EMU_ANY_TAG;
    int64_t tag = (int32_t)a->r->tags[a->l->tag[i]];
    if (tag < 0 || !a->r->tag_steps) return (int32_t)tag;
    int64_t rounds = a->round < INT32_MAX ? (int64_t)a->round : INT32_MAX;
    tag += rounds * a->r->tag_steps[a->l->tag[i]];
    return tag >= 0 && tag <= INT32_MAX ? (int32_t)tag : SC_EMU_ANY_TAG;
}

uint64_t actor_scope(const actor *a, uint32_t i)
{
    uint32_t slot = a->l->group[i];
    return a->scope && slot != SC_TASK_WORLD ? a->scope[slot] : 0;
}

uint64_t actor_collective_key(sc_coll c, uint64_t bytes, const uint32_t *rank,
                              uint32_t n)
{
    uint64_t v[3] = {(uint64_t)c, emu_coll_may_differ(c) ? 0 : bytes, n};
    uint64_t hash = sc_hash(v, sizeof v, 2);
    for (uint32_t i = 0; rank && i < n; i++)
        if (rank[i] != i) return sc_hash(rank, n * sizeof *rank, hash);
    return hash;
}

static bool find_scopes(emu_actors *x, actor *a)
{
    if (!a->r->instances) return true;
    a->scope = SC_NEW_N(x->a, uint64_t, a->l->n_groups);
    for (uint32_t i = 0; a->scope && i < a->l->n_groups; i++) {
        const sc_rank_group *g = &x->w->groups[a->r->groups[i]];
        a->scope[i] = emu_scope(g->rank, g->n, a->r->instances[i]);
    }
    return a->scope != NULL;
}

/* Whether there is a key for the step; there is room for few. */
static bool knows_step(actor *a, int32_t step)
{
    for (uint32_t i = 0; i < a->n_steps; i++)
        if (a->step[i] == step) return true;
    if (a->n_steps == SC_COUNT(a->step)) return false;
    a->step[a->n_steps++] = step;
    return true;
}

static bool learn_message(emu_actors *x, actor *a, uint32_t i)
{
    const sc_emu_op c = {.coll = actor_coll(a->l, i),
                         .peer = a->r->peers[a->l->peer[i]]};
    uint64_t scope = actor_scope(a, i), key;
    int32_t tag = actor_tag(x, a, i),
            step = a->r->tag_steps ? a->r->tag_steps[a->l->tag[i]] : 0;
    if (tag == SC_EMU_ANY_TAG || (step != 0 && !knows_step(a, step)))
        key = message_key(&c, scope, TAG_ANY, 0);
    else if (step != 0)
        key = key_of_steps(&c, scope, step, tag);
    else
        key = message_key(&c, scope, TAG_EXACT, tag);
    return sc_map_set(&a->known, x->a, key, 0) &&
           sc_map_set(&a->known, x->a, message_key(&c, scope, TAG_SOME, 0), 0);
}

static bool learn(emu_actors *x, actor *a)
{
    if (!find_scopes(x, a)) return false;
    for (uint32_t i = 0; i < a->l->n_tasks; i++) {
        if (!actor_is_call(a->l, i)) continue;
        sc_coll c = actor_coll(a->l, i);
        if (sc_coll_is_message(c)) {
            if (!learn_message(x, a, i)) return false;
            continue;
        }
        const sc_rank_group *g = actor_group(x, a, i);
        uint64_t key =
            actor_collective_key(c, actor_bytes(x, a, i), g ? g->rank : NULL,
                                 g ? g->n : x->w->n_ranks);
        if (!sc_map_set(&a->known, x->a, key, 0)) return false;
    }
    return true;
}

/* ---- who is an actor ----------------------------------------------------- */

static bool calls_anything(const sc_task_list *l)
{
    for (uint32_t i = 0; i < l->n_tasks; i++)
        if (actor_is_call(l, i)) return true;
    return false;
}

/* A rank that stands for all that call each other, directly or through others. */
static uint32_t root_of(uint32_t *of, uint32_t rank)
{
    while (of[rank] != rank) rank = of[rank] = of[of[rank]];
    return rank;
}

static void unite(uint32_t *of, uint32_t a, uint32_t b)
{
    of[root_of(of, a)] = root_of(of, b);
}

/* The rank and those that it calls; seen [n_groups, and the world]: the members
 * of a group are united once. */
static void unite_called(const sc_workload *w, uint32_t rank, uint8_t *seen,
                         uint32_t *of)
{
    const sc_rank_trace *r = &w->ranks[rank];
    const sc_task_list *l = &w->classes[r->cls];
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (!actor_is_call(l, i)) continue;
        if (l->kind[i] != SC_TASK_COLL) {
            unite(of, rank, r->peers[l->peer[i]]);
            continue;
        }
        bool all = l->group[i] == SC_TASK_WORLD;
        uint32_t slot = all ? w->n_groups : r->groups[l->group[i]];
        uint32_t n = all ? w->n_ranks : w->groups[slot].n;
        for (uint32_t k = 0; k < (seen[slot] ? 1 : n); k++)
            unite(of, rank, all ? k : w->groups[slot].rank[k]);
        seen[slot] = 1;
    }
}

/* [n_ranks] equal root_of() for ranks that call each other, and all real ones. */
static uint32_t *reach(const sc_emu_config *c, sc_arena *a)
{
    const sc_workload *w = c->peers;
    uint32_t *of = SC_NEW_N(a, uint32_t, w->n_ranks);
    uint8_t *seen = SC_NEW_N(a, uint8_t, (size_t)w->n_groups + 1);
    if (!of || !seen) return NULL;
    for (uint32_t r = 0; r < w->n_ranks; r++) of[r] = r;
    for (uint32_t i = 1; i < c->n_real; i++) unite(of, c->real[0], c->real[i]);
    for (uint32_t r = 0; r < w->n_ranks; r++) unite_called(w, r, seen, of);
    return of;
}

static sc_status fill(emu_actors *x, actor *a, uint32_t rank, sc_err *err)
{
    const sc_rank_trace *r = &x->w->ranks[rank];
    const sc_task_list *l = &x->w->classes[r->cls];
    *a = (actor){.rank = rank,
                 .l = l,
                 .r = r,
                 .left = SC_NEW_N(x->a, uint32_t, l->n_tasks),
                 .again = SC_NEW_N(x->a, uint32_t, l->n_tasks),
                 .ready = SC_NEW_N(x->a, uint8_t, l->n_tasks),
                 .pending = {EMU_NONE, EMU_NONE}};
    if (!a->left || !a->again || !a->ready || !learn(x, a))
        return sc_error_nomem(err);
    memcpy(a->again, l->n_preds, l->n_tasks * sizeof *a->again);
    for (uint32_t k = 0; k < l->succ_head[l->n_once]; k++)
        a->again[l->succ[k]]--;
    return SC_OK;
}

sc_status emu_actors_new(const sc_emu_config *c, sc_arena *a, emu_actors **out,
                         sc_err *err)
{
    const sc_workload *w = c->peers;
    *out = NULL;
    if (!w) return SC_OK;
    emu_actors *x = SC_NEW(a, emu_actors);
    uint32_t *of = reach(c, a);
    if (!x || !of) return sc_error_nomem(err);
    *x = (emu_actors){.w = w, .tagged = c->peer_tags, .a = a};
    x->v = SC_NEW_N(a, actor, w->n_ranks);
    x->number = SC_NEW_N(a, uint32_t, w->n_ranks);
    if (!x->v || !x->number) return sc_error_nomem(err);
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        x->number[r] = EMU_NONE;
        if (root_of(of, r) != root_of(of, c->real[0]) ||
            emu_real_number(c, r) != EMU_NONE ||
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

static bool knows(const actor *a, uint64_t key)
{
    return sc_map_get(&a->known, key) != SC_MAP_END;
}

static bool meets(const actor *a, const sc_emu_op *c, uint64_t scope)
{
    if (c->tag == SC_EMU_ANY_TAG)
        return knows(a, message_key(c, scope, TAG_SOME, 0));
    if (knows(a, message_key(c, scope, TAG_EXACT, c->tag)) ||
        knows(a, message_key(c, scope, TAG_ANY, 0)))
        return true;
    for (uint32_t i = 0; i < a->n_steps; i++)
        if (knows(a, key_of_steps(c, scope, a->step[i], c->tag))) return true;
    return false;
}

bool emu_actor_meets(sc_emu *e, uint32_t rank, const sc_emu_op *call)
{
    uint32_t i = emu_actor_number(e->actors, rank);
    if (i == EMU_NONE) return false;
    const actor *a = &e->actors->v[i];
    const emu_members *m = e->groups.v[call->group]->world;
    sc_emu_op other = *call; /* as the actor calls it */
    other.coll = call->coll == SC_SEND ? SC_RECV : SC_SEND;
    other.peer = call->rank;
    return meets(a, &other, m->scope) || meets(a, &other, 0);
}
