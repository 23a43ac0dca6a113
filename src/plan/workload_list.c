/* SPDX-License-Identifier: Apache-2.0 */
/* workload_list.c - writes the tasks of a class of ranks as a list of columns
 * and edges, with slots in the order in which tasks use them. */
#include "plan/workload.h"

static sc_status edges(const work_side *s, sc_task_list *l, sc_arena *a,
                       sc_err *err)
{
    uint32_t *at = SC_NEW_N(a, uint32_t, l->n_tasks);
    if (!at) return sc_error_nomem(err);
    for (uint32_t k = 0; k < s->n_preds; k++) l->succ_head[s->pred[k] + 1]++;
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        l->succ_head[i + 1] += l->succ_head[i];
        at[i] = l->succ_head[i];
    }
    for (uint32_t i = 0; i < l->n_tasks; i++)
        for (uint32_t k = 0; k < s->task[i].n_preds; k++)
            l->succ[at[s->pred[s->task[i].pred + k]]++] = i;
    return SC_OK;
}

static bool renaming_init(work_renaming *r, uint32_t n, sc_arena *a)
{
    r->n = 0;
    r->slot = SC_NEW_N(a, uint32_t, n);
    r->order = SC_NEW_N(a, uint32_t, n);
    if (!r->slot || !r->order) return false;
    for (uint32_t i = 0; i < n; i++) r->slot[i] = SC_NONE;
    return true;
}

static uint32_t renamed(work_renaming *r, uint32_t old, uint32_t value)
{
    if (r->slot[old] == SC_NONE) {
        r->order[r->n] = value;
        r->slot[old] = r->n++;
    }
    return r->slot[old];
}

static void fill(const work_side *s, work_slots *x, sc_task_list *l)
{
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        const work_task *t = &s->task[i];
        l->kind[i] = t->kind;
        l->coll[i] = t->coll;
        l->flags[i] = t->flags;
        l->n_preds[i] = t->n_preds;
        l->duration[i] = t->duration;
        l->size[i] = t->size;
        l->ops[i] = t->ops;
        l->id[i] = i;
        l->name[i] = t->name;
        if (t->kind == SC_TASK_COLL)
            l->group[i] =
                t->group == SC_TASK_WORLD
                    ? SC_TASK_WORLD
                    : renamed(&x->group, t->group, s->group[t->group]);
        if (t->kind != SC_TASK_SEND && t->kind != SC_TASK_RECV) continue;
        l->peer[i] = renamed(&x->peer, t->peer, s->peer[t->peer]);
        l->tag[i] = renamed(&x->tag, t->tag, s->tag[t->tag]);
    }
    l->n_groups = x->group.n;
    l->n_peers = x->peer.n;
    l->n_tags = x->tag.n;
}

sc_status work_list(const work_side *s, work_slots *x, sc_arena *a,
                    sc_task_list *l, sc_err *err)
{
    *l = (sc_task_list){.n_tasks = s->n, .n_deps = s->n_preds};
    if (!sc_task_list_alloc(l, a) ||
        !renaming_init(&x->group, s->n_groups, a) ||
        !renaming_init(&x->peer, s->n_peers, a) ||
        !renaming_init(&x->tag, s->n_tags, a))
        return sc_error_nomem(err);
    fill(s, x, l);
    return edges(s, l, a, err);
}
