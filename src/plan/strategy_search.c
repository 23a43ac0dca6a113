/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_search.c - checks whether the search (predict/space.c) can choose
 * the values that a strategy leaves open.  It supports only the axes of a run
 * (plan.h) and kinds of layers.
 */
#include "plan/internal.h"
#include "plan/strategy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- axes ------------------------------------------------------------ */

/* In a mesh with fsdp, the ranks of fsdp shard, and dp are the replicas of
 * these groups (HSDP). */
int plan_run_axis(const sc_strategy *s, uint32_t axis)
{
    sc_axis is = s->axis[axis].is;
    bool fsdp = sc_strategy_axis(s, SC_AX_FSDP) >= 0;
    if (is == SC_AX_FSDP) return SC_AX_DP;
    if (is == SC_AX_DP) return fsdp ? SC_AX_REP : SC_AX_DP;
    return is < SC_N_AX ? (int)is : -1;
}

/* Position of an axis, counted from the innermost. */
static uint32_t depth_of(int ax)
{
    uint32_t i = 0;
    while ((int)plan_inner_first[i] != ax) i++;
    return i;
}

/* ---- limits of the search -------------------------------------------- */

typedef struct verdict {
    const char *why; /* NULL: no obstacle so far */
    sc_pos at;
} verdict;

static void cant(verdict *v, const char *why, sc_pos at)
{
    if (v->why) return;
    v->why = why;
    v->at = at;
}

static void judge_mesh(const sc_strategy *s, verdict *v)
{
    uint32_t used = 0, inner = SC_N_AX;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        int ax = plan_run_axis(s, i);
        if (s->axis[i].size == 1) continue; /* splits nothing */
        if (ax < 0) {
            cant(
                v,
                "the search supports the axes pp, rep, dp, fsdp, ep, cp and tp",
                s->axis[i].pos);
            continue;
        }
        if (used >> ax & 1)
            cant(
                v,
                "the search supports one axis of replicas of groups that shard",
                s->axis[i].pos);
        used |= 1u << ax;
        if (depth_of(ax) > inner)
            cant(v,
                 "the search needs axes in the order pp, rep, dp, ep, cp, tp",
                 s->axis[i].pos);
        inner = depth_of(ax);
    }
}

static bool layer_dim(const char *name)
{
    static const char *const dims[] = {"batch", "seq",   "hidden", "head",
                                       "ffn",   "vocab", "expert", "rank",
                                       "state", "out",   "in"};
    for (size_t d = 0; d < SC_COUNT(dims); d++)
        if (strcmp(name, dims[d]) == 0) return true;
    return false;
}

static bool stages_split(const sc_strategy *s, sc_axes axes)
{
    int pp = sc_strategy_axis(s, SC_AX_PP);
    return pp >= 0 && sc_axes_mask(axes) >> pp & 1;
}

static void judge_split(const sc_strategy *s, const sc_strategy_rule *r,
                        verdict *v)
{
    for (uint32_t i = 0; i < r->n_split; i++) {
        const sc_rule_split *d = &r->split[i];
        if (stages_split(s, d->axes))
            cant(v, "layers are not split over pp", d->pos);
        else if (r->tensor != SC_RT_OP && strcmp(d->dim, "dim0") != 0)
            cant(v, "the search shards the first dim of a tensor, dim0",
                 d->pos);
        else if (r->tensor == SC_RT_OP && !layer_dim(d->dim))
            cant(v,
                 "dims of layers are batch, seq, hidden, head, ffn, vocab, "
                 "expert, state, out and in",
                 d->pos);
    }
}

static void judge_rule(const sc_strategy *s, const sc_strategy_rule *r,
                       verdict *v)
{
    bool state = r->tensor == SC_RT_OP || r->tensor == SC_RT_WEIGHT ||
                 r->tensor == SC_RT_GRAD || r->tensor == SC_RT_OPTIM;
    if (r->round_robin)
        cant(v, "the search does not support operators on single ranks",
             r->pos);
    if (r->n_at || r->pool)
        cant(
            v,
            "the search does not support rules that place operators on devices",
            r->pos);
    bool apart = r->tier == SC_TIER_DEVICE && s->optimizer_tier > r->tier;
    if (r->tier > SC_TIER_DEVICE || apart)
        cant(v,
             "the search keeps single tensors on devices; `offload` moves "
             "states",
             r->pos);
    if (!state)
        cant(v, "the search places weights, grads and optim only", r->pos);
    if (r->recompute >= 0 && s->recompute == SC_RC_OPS)
        cant(v, "recompute: ops keeps every other product of all blocks",
             r->pos);
    judge_split(s, r, v);
}

/* The search supports only limits that 1F1B satisfies anyway. */
static void judge_in_flight(const sc_strategy *s, verdict *v)
{
    uint64_t pp = sc_strategy_degree(s, SC_AX_PP);
    bool plain = s->schedule < 0 || s->schedule == SC_SCH_1F1B;
    plain = plain && sc_strategy_chunks(s) <= 1 && !s->schedule_file;
    for (uint32_t d = 0; d < s->n_in_flight; d++)
        if (!plain || d >= pp || s->in_flight[d] < pp - d)
            cant(v, "the search runs as many passes ahead as the schedule has",
                 sc_strategy_pos(s, "pipeline", "max_in_flight"));
}

/* Block at which a stage begins ("layers.12"); -1: none. */
static int64_t block_of(const char *path)
{
    const char *digits = path + 7;
    if (strncmp(path, "layers.", 7) != 0) return -1;
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 9 || digits[n] != '\0') return -1;
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) v = 10 * v + (digits[i] - '0');
    return v;
}

bool sc_strategy_searchable(const sc_strategy *s, const char **why, sc_pos *at)
{
    verdict v = {0};
    judge_mesh(s, &v);
    if (!s->data_parallel)
        cant(&v, "replicas split the samples",
             sc_strategy_pos(s, "preset", "data_parallel"));
    bool fsdp = sc_strategy_axis(s, SC_AX_FSDP) >= 0;
    if (s->zero_axis >= 0 &&
        s->axis[s->zero_axis].is != (fsdp ? SC_AX_FSDP : SC_AX_DP))
        cant(&v, "weights are sharded over fsdp, over dp where there is none",
             sc_strategy_pos(s, "preset", "zero_axis"));
    judge_in_flight(s, &v);
    for (uint32_t i = 0; i < s->n_cuts; i++)
        if (s->cut[i].path && block_of(s->cut[i].path) < 0)
            cant(&v, "stages are cut between blocks: layers.12", s->cut[i].pos);
    for (uint32_t i = 0; i < s->n_rules; i++) judge_rule(s, &s->rule[i], &v);
    if (why) *why = v.why;
    if (at) *at = v.why ? v.at : sc_pos_none();
    return v.why == NULL;
}

/* ---- rules ----------------------------------------------------------- */

int plan_strategy_zero(const sc_strategy *s)
{
    int zero = 0;
    for (uint32_t i = 0; i < s->n_rules; i++) {
        const sc_strategy_rule *r = &s->rule[i];
        int level = r->tensor == SC_RT_WEIGHT  ? 3
                    : r->tensor == SC_RT_GRAD  ? 2
                    : r->tensor == SC_RT_OPTIM ? 1
                                               : 0;
        for (uint32_t k = 0; k < r->n_split; k++)
            if (r->split[k].axes && level > zero) zero = level;
    }
    return zero;
}
