/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c - the same job with more data-parallel replicas. */
#include "graph/graph_scale.h"
#include "graph/replicas.h"

#include <string.h>

typedef struct scaler {
    const sc_workload *w;
    graph_replicas r;
    uint32_t n;      /* number of replicas wanted */
    uint32_t factor; /* n / r.n */
    sc_arena *a;
    sc_text *assumed;
    sc_err *err;
    sc_workload out;
    uint32_t cap;         /* of out.groups */
    uint32_t *named;      /* [n_groups * n] new group + 1 of an old one in
                             a replica; across: at replica 0 */
    bool shares, sharded; /* assumption about sizes */
} scaler;

/* ---- tasks ------------------------------------------------------------------- */

static void *copied(sc_arena *a, const void *from, size_t n, size_t size)
{
    void *to = sc_alloc(a, n, size);
    if (to && n) memcpy(to, from, n * size);
    return to;
}

/* A class as one rank sees it: everything but names is a copy. */
static bool copy_list(sc_task_list *l, sc_arena *a)
{
    uint32_t n = l->n_tasks;
    return (l->kind = copied(a, l->kind, n, sizeof *l->kind)) &&
           (l->coll = copied(a, l->coll, n, sizeof *l->coll)) &&
           (l->flags = copied(a, l->flags, n, sizeof *l->flags)) &&
           (l->n_preds = copied(a, l->n_preds, n, sizeof *l->n_preds)) &&
           (l->succ_head =
                copied(a, l->succ_head, n + 1u, sizeof *l->succ_head)) &&
           (l->succ = copied(a, l->succ, l->n_deps, sizeof *l->succ)) &&
           (l->duration = copied(a, l->duration, n, sizeof *l->duration)) &&
           (l->size = copied(a, l->size, n, sizeof *l->size)) &&
           (l->group = copied(a, l->group, n, sizeof *l->group)) &&
           (l->peer = copied(a, l->peer, n, sizeof *l->peer)) &&
           (l->tag = copied(a, l->tag, n, sizeof *l->tag)) &&
           (l->id = copied(a, l->id, n, sizeof *l->id)) &&
           (l->ops = copied(a, l->ops, n, sizeof *l->ops)) &&
           (l->priority = copied(a, l->priority, n, sizeof *l->priority)) &&
           (l->dims = copied(a, l->dims, n, sizeof *l->dims)) &&
           (!l->name || (l->name = copied(a, l->name, n, sizeof *l->name)));
}

static uint64_t share(uint64_t whole, uint32_t of)
{
    return whole / of + (whole % of > 0);
}

static bool scatters(const sc_task_list *l, uint32_t i)
{
    return l->coll[i] == SC_REDUCE_SCATTER;
}

static bool gathers(const sc_task_list *l, uint32_t i)
{
    return l->coll[i] == SC_ALL_GATHER || l->coll[i] == SC_GATHER;
}

/* Of a task: it comes before a scatter across replicas, behind one, or behind
 * a gather that is behind the last one. */
enum { BEFORE = 1, BEHIND = 2, GATHERED = 4 };

static void mark_shards(const scaler *s, uint32_t rank, const sc_task_list *l,
                        uint8_t *mark)
{
    for (uint32_t i = l->n_tasks; i-- > 0;)
        for (uint32_t k = l->succ_head[i]; k < l->succ_head[i + 1]; k++) {
            uint32_t t = l->succ[k];
            bool scatter =
                scatters(l, t) && graph_replicas_across(s->w, &s->r, rank, t);
            if (scatter || mark[t] & BEFORE) mark[i] |= BEFORE;
        }
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        bool across = graph_replicas_across(s->w, &s->r, rank, i);
        uint8_t on = mark[i] & (BEHIND | GATHERED);
        if (across && scatters(l, i)) on |= BEHIND;
        if (across && gathers(l, i) && (mark[i] & (BEFORE | BEHIND)) == BEHIND)
            on |= GATHERED;
        for (uint32_t k = l->succ_head[i]; k < l->succ_head[i + 1]; k++)
            mark[l->succ[k]] |= on;
    }
}

/* Kernels that wait for a scatter, and no other scatter for them, work on what
 * it left on this rank, until that is gathered. */
static sc_status shrink_shards(scaler *s, uint32_t rank, sc_task_list *l)
{
    uint32_t f = s->factor;
    uint8_t *mark = SC_NEW_N(s->a, uint8_t, l->n_tasks);
    if (!mark) return sc_error_nomem(s->err);
    mark_shards(s, rank, l, mark);
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        bool sized = !(l->flags[i] & SC_TASK_NO_SIZE) && l->size[i] > 0;
        if (mark[i] != BEHIND || l->kind[i] != SC_TASK_COMP || !sized) continue;
        l->size[i] = share(l->size[i], f);
        l->ops[i] = share(l->ops[i], f);
        l->duration[i] /= f;
        s->sharded = true;
    }
    return SC_OK;
}

static sc_status tasks(scaler *s, uint32_t rank)
{
    uint32_t c = s->w->ranks[rank].cls;
    sc_task_list *l = &s->out.classes[c];
    if (l->kind) return SC_OK;
    *l = s->w->classes[c];
    if (!copy_list(l, s->a)) return sc_error_nomem(s->err);
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (!gathers(l, i) || !graph_replicas_across(s->w, &s->r, rank, i))
            continue;
        l->size[i] = share(l->size[i], s->factor);
        s->shares = true;
    }
    return shrink_shards(s, rank, l);
}

/* ---- communicators ------------------------------------------------------------- */

static void members(const scaler *s, const sc_rank_group *g, bool across,
                    uint32_t replica, uint32_t *out)
{
    uint32_t n = 0;
    if (!across)
        for (uint32_t k = 0; k < g->n; k++)
            out[k] =
                graph_replicas_rank(&s->r, s->n, replica, s->r.at[g->rank[k]]);
    for (uint32_t i = 0; across && i < s->factor; i++)
        for (uint32_t k = 0; k < g->n; k++)
            out[n++] = graph_replicas_rank(&s->r, s->n,
                                           i * s->r.n + s->r.of[g->rank[k]],
                                           s->r.at[g->rank[k]]);
}

static bool rises(const uint32_t *rank, uint32_t n)
{
    for (uint32_t k = 1; k < n; k++)
        if (rank[k] < rank[k - 1]) return false;
    return true;
}

/* Keeps members in the order of ranks if they were in that order before. */
static void sort(uint32_t *rank, uint32_t n, uint32_t *scratch)
{
    /* ascending runs, merged in pairs */
    for (uint32_t width = 1; width < n; width *= 2) {
        for (uint32_t at = 0; at < n; at += 2 * width) {
            uint32_t mid = at + width < n ? at + width : n;
            uint32_t end = at + 2 * width < n ? at + 2 * width : n;
            uint32_t i = at, j = mid;
            for (uint32_t k = at; k < end; k++)
                scratch[k] = j == end || (i < mid && rank[i] < rank[j])
                                 ? rank[i++]
                                 : rank[j++];
        }
        memcpy(rank, scratch, n * sizeof *rank);
    }
}

static sc_status open_group(scaler *s, const sc_rank_group *g, bool across,
                            uint32_t replica)
{
    sc_workload *o = &s->out;
    uint32_t n = across ? g->n * s->factor : g->n;
    uint32_t *rank = SC_NEW_N(s->a, uint32_t, n);
    uint32_t *scratch = SC_NEW_N(s->a, uint32_t, n);
    sc_rank_group *at =
        sc_grow(s->a, o->groups, o->n_groups, &s->cap, 64, sizeof *at);
    const char *name = sc_sprintf(s->a, "%u", o->n_groups + 1);
    if (!rank || !scratch || !at || !name) return sc_error_nomem(s->err);
    members(s, g, across, replica, rank);
    if (rises(g->rank, g->n)) sort(rank, n, scratch);
    o->groups = at;
    o->groups[o->n_groups++] = (sc_rank_group){name, n, rank};
    return SC_OK;
}

/* The communicators of a new rank, which has the tasks of rank `old`. */
static sc_status groups(scaler *s, uint32_t old, uint32_t rank,
                        uint32_t replica)
{
    const sc_rank_trace *t = &s->w->ranks[old];
    uint32_t n = s->w->classes[t->cls].n_groups;
    uint32_t *groups = SC_NEW_N(s->a, uint32_t, n);
    if (!groups) return sc_error_nomem(s->err);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t g = t->groups[k];
        bool across = s->r.across >> s->r.shape[g] & 1;
        uint32_t *named = &s->named[(size_t)g * s->n + (across ? 0 : replica)];
        if (*named == 0) {
            SC_TRY(open_group(s, &s->w->groups[g], across, replica));
            *named = s->out.n_groups;
        }
        groups[k] = *named - 1;
    }
    s->out.ranks[rank].groups = groups;
    return SC_OK;
}

static sc_status peers(scaler *s, uint32_t old, uint32_t rank, uint32_t replica)
{
    const sc_rank_trace *t = &s->w->ranks[old];
    uint32_t n = s->w->classes[t->cls].n_peers;
    uint32_t *peers = SC_NEW_N(s->a, uint32_t, n);
    if (!peers) return sc_error_nomem(s->err);
    for (uint32_t k = 0; k < n; k++)
        peers[k] =
            graph_replicas_rank(&s->r, s->n, replica, s->r.at[t->peers[k]]);
    s->out.ranks[rank].peers = peers;
    return SC_OK;
}

/* ---- ranks ----------------------------------------------------------------------- */

/* The replica and place of every new rank. */
static sc_status origins(scaler *s, uint32_t to, uint32_t **out)
{
    uint32_t *from = SC_NEW_N(s->a, uint32_t, to);
    if (!from) return sc_error_nomem(s->err);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t p = 0; p < s->r.size; p++)
            from[graph_replicas_rank(&s->r, s->n, i, p)] = i * s->r.size + p;
    *out = from;
    return SC_OK;
}

static sc_status ranks(scaler *s, uint32_t to)
{
    uint32_t *from = NULL;
    SC_TRY(origins(s, to, &from));
    for (uint32_t r = 0; r < to; r++) {
        uint32_t replica = from[r] / s->r.size, place = from[r] % s->r.size;
        uint32_t old = s->r.rank[replica % s->r.n * s->r.size + place];
        s->out.ranks[r].cls = s->w->ranks[old].cls;
        s->out.ranks[r].tags = s->w->ranks[old].tags;
        SC_TRY(tasks(s, old));
        SC_TRY(groups(s, s->r.rank[place], r, replica));
        SC_TRY(peers(s, s->r.rank[place], r, replica));
    }
    return SC_OK;
}

/* ---- what was assumed --------------------------------------------------------------- */

static void say(const scaler *s)
{
    const graph_replicas *r = &s->r;
    sc_text *t = s->assumed;
    sc_text_add(t, "%u replicas of %u ranks", r->n, r->size);
    bool any = false;
    for (uint32_t k = 0; k < r->n_shapes; k++) {
        uint32_t g = 0;
        if (!(r->across >> k & 1)) continue;
        while (r->shape[g] != k) g++;
        sc_text_add(t, "%s \"%s\" of %u ranks", any ? "," : ", joined by",
                    s->w->groups[g].name, s->w->groups[g].n);
        any = true;
    }
    sc_text_add(t, ", become %u\n", s->n);
    if (r->regular)
        sc_text_add(
            t,
            "the rank at the same position of the next replica is %u higher\n",
            r->stride);
    else
        sc_text_add(t, "replicas are not at equal distances: new replicas are "
                       "numbered after all others\n");
    sc_text_add(t,
                "every replica keeps its batch, so the global batch is %u "
                "times as large\n",
                s->factor);
    if (s->shares)
        sc_text_add(t,
                    "all-gathers across replicas gather as many bytes as "
                    "before: the part of a member is 1/%u\n",
                    s->factor);
    if (s->sharded)
        sc_text_add(t,
                    "kernels after the last reduce-scatter across replicas "
                    "work on shards: size, FLOP and recorded time are 1/%u\n",
                    s->factor);
    sc_text_add(t, "recorded times of collectives are kept\n");
}

static sc_status find_group(const sc_workload *w, const char *name,
                            uint32_t *out, sc_err *err)
{
    *out = UINT32_MAX;
    for (uint32_t g = 0; name && g < w->n_groups; g++)
        if (strcmp(w->groups[g].name, name) == 0) {
            *out = g;
            return SC_OK;
        }
    if (!name) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_REFERENCE, sc_pos_none(), NULL,
                    "no communicator is called \"%.60s\"", name);
}

static sc_status check(const sc_workload *w, uint32_t to, sc_err *err)
{
    if (w->n_jobs != 1)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(), NULL,
                        "%u jobs at once cannot be scaled", w->n_jobs);
    if (to == 0 || to % w->n_ranks != 0)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, sc_pos_none(), NULL,
                        "%u ranks are not a multiple of %u", to, w->n_ranks);
    return SC_OK;
}

sc_status sc_workload_scale(const sc_workload *w, uint32_t to,
                            const char *group, sc_arena *a, sc_text *assumed,
                            sc_workload *out, sc_err *err)
{
    scaler s = {.w = w, .a = a, .assumed = assumed, .err = err};
    uint32_t g;
    SC_TRY(check(w, to, err));
    SC_TRY(find_group(w, group, &g, err));
    SC_TRY(graph_replicas_find(w, g, a, &s.r, err));
    s.factor = to / w->n_ranks;
    s.n = s.r.n * s.factor;
    s.out =
        (sc_workload){.n_ranks = to, .n_classes = w->n_classes, .n_jobs = 1};
    s.named = SC_NEW_N(a, uint32_t, (size_t)w->n_groups * s.n);
    s.out.classes = SC_NEW_N(a, sc_task_list, w->n_classes);
    s.out.ranks = SC_NEW_N(a, sc_rank_trace, to);
    s.out.jobs = SC_NEW(a, sc_rank_job);
    if (!s.named || !s.out.classes || !s.out.ranks || !s.out.jobs)
        return sc_error_nomem(err);
    s.out.jobs[0] = (sc_rank_job){w->jobs[0].name, 0, to};
    SC_TRY(ranks(&s, to));
    say(&s);
    *out = s.out;
    return SC_OK;
}
