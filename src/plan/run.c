/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - checks a run, places its groups, and computes the keys by which runs
 * share priced layers.
 */
#include "plan/internal.h"
#include "plan/plan_strategy.h"

#include <stdio.h>
#include <string.h>

const char *const sc_recompute_names[] = {"none", "selective", "full", "ops",
                                          NULL};

/* Number of replicas; callers may leave it 0, which means 1. */
static uint32_t replicas(const sc_run *run)
{
    return run->size[SC_AX_REP] ? run->size[SC_AX_REP] : 1;
}

uint32_t sc_run_dp(const sc_run *run)
{
    return replicas(run) * run->size[SC_AX_DP] * run->size[SC_AX_EP];
}

uint32_t sc_run_segments(const sc_run *run)
{
    bool some = run->recompute == SC_RC_FULL && run->rc_first > 0;
    return run->model->n_layers * (some ? 2 : 1);
}

uint32_t sc_run_reductions(const sc_run *run)
{
    return run->zero >= 2 && !sc_run_stays_gathered(run) ? run->ga : 1;
}

bool sc_run_shards(const sc_run *run)
{
    if (run->zero != 2) return run->zero >= 3;
    /* Rules that imply a ZeRO stage give the layout of each tensor. */
    bool said = run->strategy && plan_strategy_zero(run->strategy) >= 2;
    return run->sw->zero2_weights && !said;
}

bool sc_run_stays_gathered(const sc_run *run)
{
    return run->sw->stage_gather && run->zero >= 2 && run->size[SC_AX_PP] > 1 &&
           !run->forward_only;
}

double plan_rows(double capacity, double imbalance)
{
    if (capacity > 0) return capacity;
    return imbalance > 0 ? imbalance : 1;
}

uint32_t sc_run_ep(const sc_run *run)
{
    uint32_t over = run->experts_over_tp ? run->size[SC_AX_TP] : 1;
    return run->size[SC_AX_EP] * over;
}

/* Number of samples of one micro-batch on all replicas. */
static uint64_t batch_of(const sc_run *r)
{
    return r->mbs * sc_run_dp(r);
}

/* ---- checks ---------------------------------------------------------- */

static sc_status need_divides(uint64_t part, uint64_t whole, const char *opt,
                              const char *what, sc_err *err)
{
    if (part && whole % part == 0) return SC_OK;
    char where[40], hint[160] = "divisors: ";
    size_t at = strlen(hint);
    snprintf(where, sizeof where, "%s %llu", opt, (unsigned long long)part);
    for (uint64_t d = 1; d <= whole && d <= 4096 && at < sizeof hint - 12; d++)
        if (whole % d == 0)
            at += (size_t)snprintf(hint + at, sizeof hint - at, "%s%llu",
                                   d > 1 ? ", " : "", (unsigned long long)d);
    return sc_error(err, SC_EINPUT, SC_C_DIVIDE, sc_pos_file(where), hint,
                    "%llu does not divide %s %llu", (unsigned long long)part,
                    what, (unsigned long long)whole);
}

static void keep(sc_status *first, sc_status s)
{
    if (*first == SC_OK) *first = s;
}

static sc_status check_sizes(const sc_run *r, sc_err *err)
{
    sc_status first = SC_OK;
    uint64_t ranks = 1;
    char where[80];
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        ranks *= ax == SC_AX_REP ? replicas(r) : r->size[ax];
    if (ranks != r->hw->n_devices) {
        snprintf(where, sizeof where, "--tp %u --pp %u --dp %u --cp %u",
                 r->size[SC_AX_TP], r->size[SC_AX_PP], sc_run_dp(r),
                 r->size[SC_AX_CP]);
        keep(&first,
             sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(where),
                      "tp * cp * dp * pp must be the number of devices",
                      "tp %u x cp %u x dp %u x pp %u is %llu ranks; the "
                      "cluster has %u devices",
                      r->size[SC_AX_TP], r->size[SC_AX_CP], sc_run_dp(r),
                      r->size[SC_AX_PP], (unsigned long long)ranks,
                      r->hw->n_devices));
    }
    if (r->mbs == 0 || r->gbs % batch_of(r) != 0) {
        snprintf(where, sizeof where, "--global-batch %llu",
                 (unsigned long long)r->gbs);
        keep(&first, sc_error(err, SC_EINPUT, SC_C_DIVIDE, sc_pos_file(where),
                              "global batch = micro-batch x dp x micro-batches",
                              "global batch %llu is not a multiple of "
                              "micro-batch %llu x dp %u",
                              (unsigned long long)r->gbs,
                              (unsigned long long)r->mbs, sc_run_dp(r)));
    }
    return first;
}

/* All-to-all context parallelism gives each rank whole heads of queries and of
 * keys, so it must divide both numbers. */
static sc_status check_heads(const sc_run *r, sc_err *err)
{
    uint64_t cp = r->size[SC_AX_CP], tp = r->size[SC_AX_TP];
    uint64_t heads = (uint64_t)r->model->t.kv_heads;
    if (cp <= 1 || r->sw->cp_comm != SC_CP_ULYSSES || heads % (cp * tp) == 0)
        return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_DIVIDE,
                    sc_pos_file("--cp-comm ulysses"),
                    "use a smaller --cp or --tp, or --cp-comm ring",
                    "cp %llu x tp %llu does not divide %llu heads of keys and "
                    "values",
                    (unsigned long long)cp, (unsigned long long)tp,
                    (unsigned long long)heads);
}

static sc_status check_run(const sc_run *r, sc_err *err)
{
    const sc_transformer *t = &r->model->t;
    uint64_t tp = r->size[SC_AX_TP], pp = r->size[SC_AX_PP];
    sc_status first = check_sizes(r, err);
    if (tp > 1) {
        keep(&first, need_divides(tp, (uint64_t)t->heads, "--tp",
                                  "attention heads", err));
        keep(&first,
             need_divides(tp, (uint64_t)t->ffn, "--tp", "ffn width", err));
    }
    if (r->sp && tp > 1)
        keep(&first,
             need_divides(tp, r->seq, "--sp: tp", "tokens of a sequence", err));
    if (sc_run_ep(r) > 1)
        keep(&first, need_divides(sc_run_ep(r), (uint64_t)t->experts, "--ep",
                                  "experts", err));
    uint64_t part = r->size[SC_AX_CP] * (r->sp ? tp : 1);
    if (r->size[SC_AX_CP] > 1)
        keep(&first, need_divides(part, r->seq, "--cp: cp x tp",
                                  "tokens of a sequence", err));
    keep(&first, check_heads(r, err));
    uint64_t stages = sc_run_stages(r), blocks = r->model->n_blocks;
    if (stages > blocks && (blocks + 2) % stages != 0 &&
        r->sw->stage_split != SC_SPLIT_COST)
        keep(&first,
             sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_file("--pp"), NULL,
                      "%llu pipeline stages are too many for %lld layers",
                      (unsigned long long)stages, (long long)t->layers));
    if (r->schedule == SC_SCH_INTERLEAVED &&
        !sc_schedule_rounds(r->sw, pp, r->ga))
        keep(&first,
             sc_error(err, SC_EINPUT, SC_C_DIVIDE,
                      sc_pos_file("--schedule interleaved"),
                      "the interleaved schedule runs micro-batches in rounds "
                      "of pp",
                      "%u micro-batches are not a multiple of pp %llu", r->ga,
                      (unsigned long long)pp));
    keep(&first, plan_check_schedule(r, err));
    if (r->vpp > 1 && r->schedule <= SC_SCH_GPIPE)
        keep(&first, sc_error(err, SC_EINPUT, SC_C_CONFLICT,
                              sc_pos_file("--vp"), "add --schedule interleaved",
                              "virtual stages need the interleaved schedule"));
    if (r->offload_weights > 0 && sc_run_stays_gathered(r))
        keep(&first,
             sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                      sc_pos_file("--offload-weights"), "use --pp 1",
                      "stages of this program keep their weights gathered "
                      "during a step"));
    return first;
}

static sc_place place_group(const sc_plan *p, uint32_t mask)
{
    uint32_t size[SC_N_AX], stride[SC_N_AX], n = 0;
    for (uint32_t i = 0; i < SC_N_AX; i++) {
        sc_axis ax = plan_inner_first[i];
        if (!(mask >> ax & 1)) continue;
        size[n] = p->run.size[ax];
        stride[n++] = p->stride[ax];
    }
    return sc_hw_place(p->run.hw, n, size, stride);
}

static void place_groups(sc_plan *p)
{
    uint32_t stride = 1, wide = 0; /* axes of size > 1 */
    for (uint32_t i = 0; i < SC_N_AX; i++) {
        sc_axis ax = plan_inner_first[i];
        p->stride[ax] = stride;
        stride *= p->run.size[ax];
        if (p->run.size[ax] > 1) wide |= 1u << ax;
    }
    p->place[0] = place_group(p, 0);
    /* No communicator of a layer spans the pipeline axis (bit 0). */
    for (uint32_t mask = 2; mask < 1u << SC_N_AX; mask += 2)
        p->place[mask] =
            mask & ~wide ? p->place[mask & wide] : place_group(p, mask);
}

/* Hash of the inputs that all results for a layer depend on. */
static uint64_t common_key(const sc_run *r, uint64_t seed)
{
    uint64_t key[] = {(uint64_t)(uintptr_t)r->hw,
                      (uint64_t)(uintptr_t)r->model,
                      (uint64_t)(uintptr_t)r->sw,
                      (uint64_t)(uintptr_t)r->cost,
                      r->size[SC_AX_EP],
                      r->size[SC_AX_CP],
                      r->size[SC_AX_TP],
                      r->seq,
                      (uint64_t)r->precision,
                      (uint64_t)r->recipe,
                      r->sp,
                      r->experts_over_tp,
                      (uint64_t)r->compress.kind,
                      (uint64_t)(uintptr_t)r->strategy};
    uint64_t h = sc_hash(key, sizeof key, seed);
    h = sc_hash(&r->compress.arg, sizeof r->compress.arg, h);
    return sc_hash(&r->opts, sizeof r->opts, h);
}

int sc_run_offload_tier(const sc_run *run)
{
    return (int)sc_offload_tier(run->offload_to);
}

uint64_t sc_plan_pass_key(const sc_run *r)
{
    bool rules = r->strategy && r->strategy->n_rules > 0;
    uint64_t key[] = {rules ? r->size[SC_AX_DP] : 1,
                      rules ? replicas(r) : 1,
                      !sc_run_shards(r) && r->ga > 1, /* gradients add up */
                      r->mbs,
                      (uint64_t)r->recompute,
                      r->rc_group > 1,
                      r->rc_first > 0,
                      (uint64_t)(r->offload * 1e6)};
    return common_key(r, sc_hash(key, sizeof key, 0));
}

bool sc_run_saving_less(const sc_run *of, uint32_t i, sc_run *out)
{
    *out = *of;
    if (i != 0) out->sp = of->size[SC_AX_TP] > 1;
    if (i != 1) {
        out->recompute = SC_RC_FULL;
        out->rc_group = out->rc_first = 0;
    }
    return (i == 0 || out->sp != of->sp) &&
           (i == 1 || of->recompute != SC_RC_FULL);
}

uint64_t sc_plan_list_key(const sc_run *r)
{
    return common_key(r, 2);
}

uint64_t sc_plan_weight_key(const sc_run *r)
{
    uint64_t key[] = {r->size[SC_AX_DP],       replicas(r), (uint64_t)r->zero,
                      (uint64_t)r->zero_else,  r->ga > 1,   plan_ends_apart(r),
                      sc_run_stays_gathered(r)};
    return common_key(r, sc_hash(key, sizeof key, 1));
}

void plan_resolve_zero(int zero, sc_run *r)
{
    int said = r->strategy ? plan_strategy_zero(r->strategy) : 0;
    r->zero_else = zero;
    r->zero = said > zero ? said : zero;
    /* With one rank for each weight, ZeRO shards nothing. */
    uint64_t shares =
        (uint64_t)r->size[SC_AX_DP] * r->size[SC_AX_EP] * r->size[SC_AX_CP];
    if (shares == 1 && r->optim_tier < SC_TIER_CPU) r->zero = r->zero_else = 0;
}

static sc_run resolved(const sc_run *run)
{
    sc_run r = *run;
    r.size[SC_AX_REP] = replicas(run);
    plan_resolve_zero(run->zero, &r);
    return r;
}

static sc_status not_generated(const sc_model *m, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                    "divide it by a strategy file with a mesh and rules",
                    "%.60s is not a generated transformer", m->name);
}

sc_status sc_plan_build(const sc_run *run, sc_arena *a, sc_plan *out,
                        sc_err *err)
{
    sc_plan p = {.run = resolved(run)};
    if (run->model->net) return not_generated(run->model, err);
    SC_TRY(check_run(run, err));
    place_groups(&p);
    SC_TRY(plan_strategy_check(&p, err));
    SC_TRY(plan_kinds(&p, a, err));
    SC_TRY(plan_cut_stages(&p, a, err));
    *out = p;
    return SC_OK;
}
