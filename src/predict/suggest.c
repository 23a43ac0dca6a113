/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.c - the smallest changes that help: one knob at a time, evaluated
 * with the fast engine, compared with the configuration evaluated the same
 * way.
 */
#include "predict/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct change {
    sc_run run;
    char text[64];
} change;

static bool legal(const sc_run *r)
{
    uint64_t dp = sc_run_dp(r), tp = r->size[SC_AX_TP], pp = r->size[SC_AX_PP];
    const sc_transformer *t = &r->model->t;
    return dp >= 1 && r->mbs >= 1 && r->gbs % (r->mbs * dp) == 0 &&
           dp * tp * pp * r->size[SC_AX_CP] == r->hw->n_devices &&
           (uint64_t)t->heads % tp == 0 && (uint64_t)t->ffn % tp == 0 &&
           tp <= r->hw->node_size && pp * r->vpp <= (uint64_t)t->layers &&
           ((uint64_t)t->layers % (pp * r->vpp) == 0 ||
            (uint64_t)(t->layers + 2) % (pp * r->vpp) == 0);
}

static bool settle(sc_run *r)
{
    if (!legal(r)) return false;
    r->ga = (uint32_t)(r->gbs / (r->mbs * sc_run_dp(r)));
    if (r->size[SC_AX_PP] == 1 || r->ga % r->size[SC_AX_PP] != 0) r->vpp = 1;
    r->schedule = r->vpp > 1                          ? SC_SCH_INTERLEAVED
                  : r->schedule == SC_SCH_INTERLEAVED ? SC_SCH_1F1B
                                                      : r->schedule;
    r->sp = r->sp && r->size[SC_AX_TP] > 1;
    return true;
}

static uint32_t scaled(uint32_t v, int up)
{
    return up ? v * 2 : v / 2;
}

static void mesh_changes(const sc_run *r, change *c, uint32_t *n)
{
    static const sc_axis knob[] = {SC_AX_TP, SC_AX_PP};
    static const char *const flag[] = {"--tp", "--pp"};
    for (uint32_t k = 0; k < 2; k++)
        for (int up = 0; up < 2; up++) {
            sc_run x = *r;
            uint32_t old = x.size[knob[k]];
            if (x.experts_over_tp && knob[k] == SC_AX_TP) continue;
            x.size[knob[k]] = scaled(old, up);
            if (!x.size[knob[k]] || (!up && old % 2)) continue;
            /* groups that shard together stay what they are */
            sc_axis other = x.size[SC_AX_REP] > 1 ? SC_AX_REP : SC_AX_DP;
            if (up && x.size[other] % 2) continue;
            x.size[other] = scaled(x.size[other], !up);
            if (!settle(&x)) continue;
            c[*n].run = x;
            snprintf(c[(*n)++].text, sizeof c->text, "%s %u", flag[k],
                     x.size[knob[k]]);
        }
}

static void other_changes(const sc_run *r, change *c, uint32_t *n)
{
    for (int up = 0; up < 2; up++) {
        sc_run x = *r;
        x.mbs = up ? r->mbs * 2 : r->mbs / 2;
        if (!settle(&x)) continue;
        c[*n].run = x;
        snprintf(c[(*n)++].text, sizeof c->text, "--micro-batch %llu",
                 (unsigned long long)x.mbs);
    }
    for (int rc = SC_RC_NONE; rc <= SC_RC_FULL; rc++) {
        sc_run x = *r;
        x.recompute = (sc_recompute)rc;
        if (rc == (int)r->recompute || !settle(&x)) continue;
        c[*n].run = x;
        snprintf(c[(*n)++].text, sizeof c->text, "--recompute %s",
                 sc_recompute_names[rc]);
    }
    for (int z = 0; z <= 3; z++) {
        sc_run x = *r;
        x.zero = z;
        bool whole = r->compress.kind >= SC_GRAD_TOPK && z > 0;
        if (z == r->zero || whole || sc_run_dp(r) == 1 || !settle(&x)) continue;
        c[*n].run = x;
        snprintf(c[(*n)++].text, sizeof c->text, "--zero %d", z);
    }
    for (uint32_t v = 1; v <= 4; v *= 2) {
        sc_run x = *r;
        x.vpp = v;
        if (v == r->vpp || r->size[SC_AX_PP] == 1 || !settle(&x) || x.vpp != v)
            continue;
        c[*n].run = x;
        snprintf(c[(*n)++].text, sizeof c->text, "--vp %u", v);
    }
}

static bool better(const predict_eval *a, const predict_eval *b)
{
    if (a->fits != b->fits) return a->fits;
    return a->fits ? a->step_s < b->step_s : a->peak < b->peak;
}

/* Clearly faster: more than 3 %. */
static bool helps(const predict_eval *e, double now_s, bool fits, double peak)
{
    if (fits) return e->fits && e->step_s < 0.97 * now_s;
    return e->fits || e->peak < 0.9 * peak;
}

#define CHANGES 24

sc_status predict_suggest(const sc_run *run, double step_s, bool fits,
                          predict_memo *memo, sc_arena *a, sc_suggestion out[3],
                          uint32_t *n, sc_err *err)
{
    change c[CHANGES];
    predict_eval now, best[3];
    const char *text[3] = {0};
    uint32_t n_c = 0, kept = 0;
    SC_TRY(predict_evaluate(run, 0, memo, a, &now, err));
    mesh_changes(run, c, &n_c);
    other_changes(run, c, &n_c);
    for (uint32_t i = 0; i < n_c; i++) {
        predict_eval e;
        sc_err quiet;
        sc_err_init(&quiet);
        if (predict_evaluate(&c[i].run, 0, memo, a, &e, &quiet) != SC_OK)
            continue;
        if (!helps(&e, now.step_s, fits, now.peak)) continue;
        uint32_t at = kept < 3 ? kept : 3;
        while (at > 0 && better(&e, &best[at - 1])) at--;
        if (at == 3) continue;
        for (uint32_t k = kept < 3 ? kept : 2; k > at; k--) {
            best[k] = best[k - 1];
            text[k] = text[k - 1];
        }
        best[at] = e;
        text[at] = c[i].text;
        if (kept < 3) kept++;
    }
    for (uint32_t i = 0; i < kept; i++) {
        out[i].change = sc_strdup(a, text[i]);
        if (!out[i].change) return sc_error_nomem(err);
        /* In the engine that was asked for, to first order. */
        out[i].step_time_s = best[i].step_s * step_s / now.step_s;
        out[i].peak = best[i].peak;
    }
    *n = kept;
    return SC_OK;
}

/* "dgx-a100-80g:4" with another number behind the colon. */
static const char *resized(const char *name, uint64_t nodes, sc_arena *a)
{
    const char *colon = strrchr(name, ':');
    size_t n = colon ? (size_t)(colon - name) : strlen(name);
    if (strpbrk(name, "@ /;")) return NULL; /* a file or a one-line machine */
    return sc_sprintf(a, "%.*s:%llu", (int)n, name, (unsigned long long)nodes);
}

static bool fits_on(const sc_job *job, const char *spec, const sc_run *like,
                    sc_arena *a, predict_eval *e)
{
    const sc_hw *hw = NULL;
    sc_err quiet;
    sc_run run = {.model = like->model, .sw = like->sw, .cost = like->cost};
    predict_notes notes = {.arena = a};
    uint32_t tried = 0;
    sc_err_init(&quiet);
    predict_memo *memo = SC_NEW(a, predict_memo);
    if (!memo || sc_hw_build(spec, sc_pos_none(), a, &hw, &quiet) != SC_OK)
        return false;
    run.hw = hw;
    return predict_check(job, hw, like->model, &quiet) == SC_OK &&
           predict_infer(job, a, &run, &notes, memo, &tried, &quiet) == SC_OK &&
           predict_evaluate(&run, 0, memo, a, e, &quiet) == SC_OK && e->fits;
}

sc_status predict_larger(const sc_job *job, sc_prediction *p, sc_arena *a,
                         sc_err *err)
{
    const sc_hw *hw = p->run.hw;
    uint64_t units = hw->n_nodes;
    const char *colon = strrchr(hw->name, ':');
    if (colon) units = strtoull(colon + 1, NULL, 10);
    sc_job open = *job; /* what was inferred may change with the cluster */
    open.gbs = (int64_t)p->run.gbs;
    open.dp = 0;
    for (uint64_t k = 2; units && k <= 256; k *= 2) {
        predict_eval e;
        const char *spec = resized(hw->name, units * k, a);
        if (!spec) return SC_OK;
        if (!fits_on(&open, spec, &p->run, a, &e)) continue;
        sc_suggestion *s = &p->suggestion[p->n_suggestions];
        s->change = sc_sprintf(a, "--cluster %s", spec);
        if (!s->change) return sc_error_nomem(err);
        s->step_time_s = e.step_s;
        s->peak = e.peak;
        p->n_suggestions++;
        return SC_OK;
    }
    return SC_OK;
}
