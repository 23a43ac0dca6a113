/* SPDX-License-Identifier: Apache-2.0 */
/* suggest_moves.c - changes one choice of a run, and says so in options. */
#include "predict/suggest_moves.h"

#include <stdlib.h>
#include <string.h>

const suggest_move suggest_moves[SUGGEST_MOVES] = {
    {M_TP, -1},
    {M_TP, 1},
    {M_TP, 2},
    {M_TP, 3},
    {M_PP, -1},
    {M_PP, 1},
    {M_PP, 2},
    {M_PP, 3},
    {M_CP, -1},
    {M_CP, 1},
    {M_BATCH, -3},
    {M_BATCH, -2},
    {M_BATCH, -1},
    {M_BATCH, 1},
    {M_RECOMPUTE, SC_RC_NONE},
    {M_RECOMPUTE, SC_RC_SELECTIVE},
    {M_RECOMPUTE, SC_RC_FULL},
    {M_ZERO, 0},
    {M_ZERO, 1},
    {M_ZERO, 2},
    {M_ZERO, 3},
    {M_CHUNKS, 1},
    {M_CHUNKS, 2},
    {M_CHUNKS, 4},
    {M_SP, 1},
    {M_SCHEDULE, SC_SCH_1F1B}};

/* ---- changing a run ------------------------------------------------------ */

static bool scale(uint64_t *v, int log2)
{
    uint64_t by = (uint64_t)1 << abs(log2);
    if (log2 < 0 && *v % by) return false;
    *v = log2 < 0 ? *v / by : *v * by;
    return *v <= UINT32_MAX;
}

static bool change_degree(sc_run *r, sc_axis ax, int log2)
{
    /* groups that shard together keep their size */
    sc_axis other = r->size[SC_AX_REP] > 1 ? SC_AX_REP : SC_AX_DP;
    uint64_t degree = r->size[ax], dp = r->size[other];
    if (r->experts_over_tp && ax == SC_AX_TP) return false;
    if (!scale(&degree, log2) || !scale(&dp, -log2)) return false;
    r->size[ax] = (uint32_t)degree;
    r->size[other] = (uint32_t)dp;
    return true;
}

bool suggest_change(sc_run *r, suggest_move m)
{
    switch (m.what) {
    case M_TP: return change_degree(r, SC_AX_TP, m.to);
    case M_PP: return change_degree(r, SC_AX_PP, m.to);
    case M_CP: return change_degree(r, SC_AX_CP, m.to);
    case M_BATCH: return scale(&r->mbs, m.to);
    case M_RECOMPUTE:
        if (r->forward_only || (int)r->recompute == m.to) return false;
        r->recompute = (sc_recompute)m.to;
        return true;
    case M_ZERO:
        if (r->zero == m.to || sc_run_dp(r) * r->size[SC_AX_CP] == 1 ||
            (r->compress.kind >= SC_GRAD_TOPK && m.to > 0))
            return false;
        r->zero = m.to;
        return true;
    case M_CHUNKS:
        if (r->vpp == (uint32_t)m.to || r->size[SC_AX_PP] == 1 ||
            r->schedule > SC_SCH_INTERLEAVED)
            return false;
        r->vpp = (uint32_t)m.to;
        return true;
    case M_SP:
        if (r->sp || r->size[SC_AX_TP] == 1) return false;
        r->sp = true;
        return true;
    case M_SCHEDULE:
        if (r->schedule != SC_SCH_GPIPE || r->size[SC_AX_PP] == 1) return false;
        r->schedule = SC_SCH_1F1B;
        return true;
    }
    return false;
}

static bool legal(const sc_run *r)
{
    uint64_t dp = sc_run_dp(r), tp = r->size[SC_AX_TP];
    uint64_t stages = sc_run_stages(r);
    const sc_transformer *t = &r->model->t;
    return dp >= 1 && r->mbs >= 1 && r->gbs % (r->mbs * dp) == 0 &&
           (uint64_t)t->heads % tp == 0 && (uint64_t)t->ffn % tp == 0 &&
           tp <= r->hw->node_size && stages <= (uint64_t)t->layers &&
           ((uint64_t)t->layers % stages == 0 ||
            (uint64_t)(t->layers + 2) % stages == 0);
}

bool suggest_resolve(sc_run *r, bool chunks)
{
    if (!legal(r)) return false;
    r->ga = (uint32_t)(r->gbs / (r->mbs * sc_run_dp(r)));
    bool own = r->schedule > SC_SCH_INTERLEAVED && r->size[SC_AX_PP] > 1;
    if (!own && r->schedule > SC_SCH_INTERLEAVED) {
        r->schedule = SC_SCH_1F1B;
        r->order = NULL;
        r->vpp = 1;
    }
    r->sp = r->sp && r->size[SC_AX_TP] > 1;
    if (own) return true;
    if (r->size[SC_AX_PP] < 2 || r->ga % r->size[SC_AX_PP] != 0) {
        if (chunks && r->vpp > 1) return false;
        r->vpp = 1;
    }
    if (r->vpp > 1)
        r->schedule = SC_SCH_INTERLEAVED;
    else if (r->schedule == SC_SCH_INTERLEAVED)
        r->schedule = SC_SCH_1F1B;
    return true;
}

/* ---- the change as options ----------------------------------------------- */

sc_job suggest_job(const sc_job *job, const sc_run *from, const sc_run *to,
                   bool chunks, bool schedule)
{
    sc_job j = *job;
    if (to->size[SC_AX_TP] != from->size[SC_AX_TP]) j.tp = to->size[SC_AX_TP];
    if (to->size[SC_AX_PP] != from->size[SC_AX_PP]) j.pp = to->size[SC_AX_PP];
    if (to->size[SC_AX_CP] != from->size[SC_AX_CP]) j.cp = to->size[SC_AX_CP];
    if (j.dp) j.dp = sc_run_dp(to);
    if (to->mbs != from->mbs || (j.accumulation && to->ga != from->ga)) {
        j.mbs = (int64_t)to->mbs;
        j.accumulation = 0;
    }
    if (to->recompute != from->recompute) j.recompute = (int)to->recompute;
    if (to->zero != from->zero) {
        j.fsdp = false;
        j.zero = to->zero;
    }
    if (to->vpp != from->vpp && (chunks || j.vpp)) j.vpp = to->vpp;
    if (to->schedule != from->schedule && (schedule || j.schedule >= 0))
        j.schedule = (int)to->schedule;
    if (!to->order) j.schedule_file = NULL;
    if (to->sp && !from->sp) j.sp = true;
    return j;
}

bool suggest_said(const sc_job *j, suggest_choice what)
{
    switch (what) {
    case M_TP: return j->tp > 0;
    case M_PP: return j->pp > 0;
    case M_CP: return j->cp > 0;
    case M_BATCH: return j->mbs > 0 || j->accumulation > 0;
    case M_RECOMPUTE: return j->recompute >= 0;
    case M_ZERO: return j->zero >= 0 || j->fsdp;
    case M_CHUNKS: return j->vpp > 0;
    case M_SP:
    case M_SCHEDULE: break;
    }
    return false;
}

bool suggest_divided(const sc_job *j)
{
    return j->tp && j->pp && j->mbs && j->recompute >= 0;
}

bool suggest_open(const sc_job *j)
{
    return !suggest_divided(j) || !j->vpp || (j->zero < 0 && !j->fsdp);
}

bool predict_same_run(const sc_run *x, const sc_run *y)
{
    return memcmp(x->size, y->size, sizeof x->size) == 0 && x->mbs == y->mbs &&
           x->gbs == y->gbs && x->seq == y->seq && x->vpp == y->vpp &&
           x->schedule == y->schedule && x->zero == y->zero &&
           x->recompute == y->recompute && x->offload == y->offload &&
           x->sp == y->sp && x->experts_over_tp == y->experts_over_tp;
}
