/* SPDX-License-Identifier: Apache-2.0 */
/* workload.c - names of a workload's parts, and its invariants. */
#include "graph/graph_workload.h"

#include <stdlib.h>
#include <string.h>

const char *const sc_task_kind_names[] = {"invalid", "metadata", "load",
                                          "store",   "comp",     "send",
                                          "recv",    "coll",     NULL};

static sc_status bug(sc_err *err, const char *what, uint32_t of, uint32_t at)
{
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "workload: %s (%u of %u)", what, at, of);
}

/* ---- classes */

/* A task is a collective of several members; a scan is priced as another. */
static bool is_task_coll(uint8_t coll)
{
    return coll < SC_SEND && coll != SC_SCAN;
}

static const char *task_fault(const sc_task_list *l, uint32_t i)
{
    if (l->kind[i] >= SC_N_TASK_KINDS) return "a task of no kind";
    if (!is_task_coll(l->coll[i])) return "a collective of no kind";
    if (i > 0 && l->id[i] <= l->id[i - 1]) return "ids that do not rise";
    if (l->duration[i] < 0) return "a negative duration";
    if (l->kind[i] == SC_TASK_COLL && l->group[i] != SC_TASK_WORLD &&
        l->group[i] >= l->n_groups)
        return "a group beyond the slots";
    if (l->kind[i] != SC_TASK_SEND && l->kind[i] != SC_TASK_RECV) return NULL;
    if ((l->flags[i] & SC_TASK_NO_COMM) != 0) return NULL;
    if (l->peer[i] >= l->n_peers) return "a peer beyond the slots";
    return l->tag[i] >= l->n_tags ? "a tag beyond the slots" : NULL;
}

static const char *succ_fault(const sc_task_list *l, uint32_t i)
{
    uint32_t from = l->succ_head[i], to = l->succ_head[i + 1];
    if (from > to || to > l->n_deps) return "successors out of order";
    for (uint32_t k = from; k < to; k++) {
        if (l->succ[k] >= l->n_tasks) return "a successor that is no task";
        if (k > from && l->succ[k] <= l->succ[k - 1])
            return "successors that do not rise";
    }
    return NULL;
}

/* Counts the predecessors of each task and checks that all tasks can run. */
static const char *order_fault(const sc_task_list *l, uint32_t *left,
                               uint32_t *ready)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < l->n_deps; k++) left[l->succ[k]]++;
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (left[i] != l->n_preds[i]) return "predecessors counted wrongly";
        if (left[i] == 0) ready[n++] = i;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = l->succ_head[ready[i]];
             k < l->succ_head[ready[i] + 1]; k++)
            if (--left[l->succ[k]] == 0) ready[n++] = l->succ[k];
    return n == l->n_tasks ? NULL : "a cycle";
}

static const char *use_fault(const sc_task_list *l)
{
    if (l->use_head == NULL) return l->n_uses ? "uses without heads" : NULL;
    if (l->use_head[0] != 0 || l->use_head[l->n_tasks] != l->n_uses)
        return "uses out of order";
    for (uint32_t i = 0; i < l->n_tasks; i++)
        if (l->use_out[i] < l->use_head[i] ||
            l->use_out[i] > l->use_head[i + 1])
            return "uses out of order";
    for (uint32_t k = 0; k < l->n_uses; k++)
        if (l->use_tensor[k] >= l->n_tensors) return "a use of no tensor";
    return NULL;
}

static sc_status check_class(const sc_task_list *l, sc_err *err)
{
    if (l->succ_head[0] != 0 || l->succ_head[l->n_tasks] != l->n_deps)
        return bug(err, "successors out of order", l->n_tasks, 0);
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        const char *f = task_fault(l, i);
        if (f == NULL) f = succ_fault(l, i);
        if (f != NULL) return bug(err, f, l->n_tasks, i);
    }
    uint32_t *left = calloc((size_t)l->n_tasks + 1, sizeof *left);
    uint32_t *ready = calloc((size_t)l->n_tasks + 1, sizeof *ready);
    const char *f = left && ready ? order_fault(l, left, ready) : NULL;
    bool ok = left != NULL && ready != NULL;
    free(left);
    free(ready);
    if (!ok) return sc_error_nomem(err);
    if (f == NULL) f = use_fault(l);
    return f == NULL ? SC_OK : bug(err, f, l->n_tasks, 0);
}

/* ---- ranks and groups */

/* `seen` has a mark per rank: the number of the group, plus 1, that named it
 * last. */
static sc_status check_groups(const sc_workload *w, uint32_t *seen, sc_err *err)
{
    for (uint32_t g = 0; g < w->n_groups; g++)
        for (uint32_t i = 0; i < w->groups[g].n; i++) {
            uint32_t r = w->groups[g].rank[i];
            if (r >= w->n_ranks)
                return bug(err, "a member that is no rank", w->n_groups, g);
            if (seen[r] == g + 1)
                return bug(err, "a member twice", w->n_groups, g);
            seen[r] = g + 1;
        }
    return SC_OK;
}

static const char *rank_fault(const sc_workload *w, uint32_t r)
{
    const sc_rank_trace *t = &w->ranks[r];
    if (t->cls >= w->n_classes) return "a rank of no class";
    if (t->job >= w->n_jobs) return "a rank of no job";
    const sc_rank_job *j = &w->jobs[t->job];
    if (r < j->first || r - j->first >= j->n) return "a rank outside its job";
    const sc_task_list *l = &w->classes[t->cls];
    for (uint32_t i = 0; i < l->n_groups; i++)
        if (t->groups[i] >= w->n_groups) return "a slot of no group";
    for (uint32_t i = 0; i < l->n_peers; i++)
        if (t->peers[i] >= w->n_ranks) return "a slot of no rank";
    return NULL;
}

static sc_status check_jobs(const sc_workload *w, sc_err *err)
{
    uint32_t next = 0;
    for (uint32_t j = 0; j < w->n_jobs; j++) {
        if (w->jobs[j].first != next || w->jobs[j].n > w->n_ranks - next)
            return bug(err, "jobs that are not side by side", w->n_jobs, j);
        next += w->jobs[j].n;
    }
    if (next != w->n_ranks)
        return bug(err, "ranks of no job", w->n_ranks, next);
    return SC_OK;
}

bool sc_task_list_alloc(sc_task_list *l, sc_arena *a)
{
    uint32_t n = l->n_tasks;
    return (l->kind = SC_NEW_N(a, uint8_t, n)) &&
           (l->coll = SC_NEW_N(a, uint8_t, n)) &&
           (l->flags = SC_NEW_N(a, uint8_t, n)) &&
           (l->n_preds = SC_NEW_N(a, uint32_t, n)) &&
           (l->succ_head = SC_NEW_N(a, uint32_t, (size_t)n + 1)) &&
           (l->succ = SC_NEW_N(a, uint32_t, l->n_deps)) &&
           (l->duration = SC_NEW_N(a, sc_time, n)) &&
           (l->size = SC_NEW_N(a, uint64_t, n)) &&
           (l->group = SC_NEW_N(a, uint32_t, n)) &&
           (l->peer = SC_NEW_N(a, uint32_t, n)) &&
           (l->tag = SC_NEW_N(a, uint32_t, n)) &&
           (l->id = SC_NEW_N(a, uint64_t, n)) &&
           (l->ops = SC_NEW_N(a, uint64_t, n)) &&
           (l->priority = SC_NEW_N(a, uint32_t, n)) &&
           (l->dims = SC_NEW_N(a, uint32_t, n)) &&
           (l->name = SC_NEW_N(a, const char *, n));
}

sc_status sc_workload_check(const sc_workload *w, sc_err *err)
{
    for (uint32_t i = 0; i < w->n_classes; i++)
        SC_TRY(check_class(&w->classes[i], err));
    SC_TRY(check_jobs(w, err));
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        const char *f = rank_fault(w, r);
        if (f != NULL) return bug(err, f, w->n_ranks, r);
    }
    uint32_t *seen = calloc((size_t)w->n_ranks + 1, sizeof *seen);
    if (seen == NULL) return sc_error_nomem(err);
    sc_status s = check_groups(w, seen, err);
    free(seen);
    return s;
}

bool sc_workload_has_copies(const sc_workload *w)
{
    for (uint32_t k = 0; k < w->n_classes; k++)
        for (uint32_t i = 0; i < w->classes[k].n_tasks; i++)
            if (w->classes[k].kind[i] == SC_TASK_LOAD ||
                w->classes[k].kind[i] == SC_TASK_STORE)
                return true;
    return false;
}
