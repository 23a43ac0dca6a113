/* SPDX-License-Identifier: Apache-2.0 */
/* Random runs by both engines: the fast one composes segments, the other runs the
 * network of operators event by event.  How far the two are apart, by what the runs
 * ask for. */
#include "predict/internal.h"
#include "property.h"
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICK(p, list) ((list)[prop_below((p), SC_COUNT(list))])

/* Cases drawn; of these at least so many are legal. */
#define DRAWN    2000
#define COMPARED 500

typedef enum family {
    F_DENSE,
    F_MOE,
    F_ENCODER,
    F_LATENT,
    F_FROZEN,
    F_FORWARD,
    F_SHARDED,
    F_CONTEXT,
    F_REST,
    N_FAMILIES
} family;

static const char *const family_names[N_FAMILIES] = {
    "dense",        "experts", "encoder",         "latent attention",
    "frozen parts", "forward", "sharded weights", "context parallel",
    "rare options"};

/* What is compared: the step, and the memory of the fullest stage. */
enum { Q_STEP, Q_PEAK, N_QUANTITIES };

static const char *const names[N_QUANTITIES] = {"step", "peak memory"};

/* How far apart the two may be, in percent: the median, 95 of 100, the worst.
 * Only ever lowered: what closes a gap lowers its row. */
static const struct {
    double median, most, worst;
} bounds[N_QUANTITIES] = {
    {0.5, 8, 30},  /* step */
    {0.5, 12, 40}, /* peak memory */
};

typedef struct seen {
    double apart; /* percent, with its sign */
    uint32_t one; /* of ways.run */
} seen;

typedef struct ways {
    world w;
    uint32_t n;
    seen apart[N_QUANTITIES][DRAWN];

    struct {
        char text[240];
        uint32_t families; /* bit per family */
    } run[DRAWN];
} ways;

/* A few layers are like many. */
static bool smaller(world *w)
{
    sc_err err;
    sc_err_init(&err);
    for (uint32_t i = 0; i < w->n_models; i++) {
        sc_transformer t = w->model[i]->t;
        if (t.layers <= 8) continue;
        t.layers = 8;
        if (sc_model_from_transformer(&t, sc_pos_none(), &w->load, &w->model[i],
                                      &err)) {
            print_message("%s\n", err.d[0].msg);
            return false;
        }
    }
    return true;
}

static bool load(world *w)
{
    static const char *const model[] = {
        "gpt2",       "llama3-8b",        "mixtral-8x7b",
        "bert-large", "deepseek-v2-lite", NULL};
    static const char *const hw[] = {"dgx-h100:2", "dgx-a100-80g:4",
                                     "dgx1-v100:2", NULL};
    static const char *const sw[] = {"megatron-core",
                                     "megatron-lm-2022",
                                     "megatron-deepspeed-2022",
                                     "llm-foundry-2023",
                                     "pytorch-ddp",
                                     "torchtitan-2025",
                                     NULL};
    return world_load(w, model, hw, sw) && smaller(w);
}

/* What few runs ask for. */
static void rare(prop *p, const sc_model *m, sc_job *j)
{
    static const char *const formats[] = {"bf16", "int8", "topk:0.01",
                                          "powersgd:4"};
    switch (prop_below(p, 20)) {
    case 1: j->hsdp = 2; break;
    case 2: j->compress = PICK(p, formats); break;
    case 3: j->freeze = "layers.0-3"; break;
    case 4: j->offload = 0.5; break;
    case 5: j->forward_only = true; break;
    case 6: j->launch_blocking = true; break;
    case 7: j->numa_unbound = true; break;
    case 8: j->optimizer_tier = SC_TIER_CPU; break;
    case 9:
        if (m->t.experts) j->capacity = 1.25;
        break;
    case 10:
        if (m->t.experts) j->imbalance = 1.5;
        break;
    case 11:
    case 12:
        j->recompute = SC_RC_FULL;
        j->rc_method = (int)prop_below(p, 2);
        j->rc_blocks = 1 + (int64_t)prop_below(p, 4);
        break;
    default: break;
    }
}

static int64_t dividing(prop *p, uint64_t *left)
{
    static const uint64_t small[] = {1, 2, 4, 1};
    uint64_t n = PICK(p, small);
    if (*left % n != 0) n = 1;
    *left /= n;
    return (int64_t)n;
}

/* Legal more often than not: degrees multiply to the devices, replicas divide
 * the batch. */
static void draw(prop *p, const sc_hw *hw, const sc_model *m, sc_job *j)
{
    static const int schedules[] = {SC_SCH_1F1B, SC_SCH_GPIPE, SC_SCH_ZB_H1};
    static const int64_t seq[] = {512, 1024};
    uint64_t left = hw->n_devices;
    sc_job_init(j);
    j->tp = dividing(p, &left);
    j->pp = dividing(p, &left);
    j->cp = prop_below(p, 6) == 5 ? dividing(p, &left) : 1;
    j->ep = 1;
    j->dp = (int64_t)left;
    if (m->t.experts) j->ep = dividing(p, &left);
    j->vpp = j->pp > 1 && prop_below(p, 3) == 2 ? 2 : 1;
    j->schedule = j->vpp > 1 ? (int)SC_SCH_INTERLEAVED : PICK(p, schedules);
    if (j->pp == 1) j->schedule = SC_SCH_1F1B;
    j->mbs = 1 + (int64_t)prop_below(p, 2);
    j->gbs = j->mbs * j->dp * (j->pp > 1 ? 8 : 1 + (int64_t)prop_below(p, 2));
    j->seq = PICK(p, seq);
    if (m->t.max_seq && j->seq > m->t.max_seq) j->seq = m->t.max_seq;
    j->zero = (int64_t)prop_below(p, 4);
    j->sp = (int)prop_below(p, 2);
    j->recompute = (int)prop_below(p, 3);
    j->brief = true;
    rare(p, m, j);
}

static uint32_t families_of(const sc_model *m, const sc_job *j)
{
    uint32_t f = 1u << (m->t.experts   ? F_MOE
                        : m->t.encoder ? F_ENCODER
                                       : F_DENSE);
    if (m->t.kv_rank) f |= 1u << F_LATENT;
    if (j->freeze || m->t.frozen) f |= 1u << F_FROZEN;
    if (j->forward_only) f |= 1u << F_FORWARD;
    if (j->zero == 3) f |= 1u << F_SHARDED;
    if (j->cp > 1) f |= 1u << F_CONTEXT;
    if (j->hsdp || j->compress || j->offload > 0 || j->launch_blocking ||
        j->numa_unbound || j->optimizer_tier > 0 || j->capacity > 0 ||
        j->imbalance > 0)
        f |= 1u << F_REST;
    return f;
}

static double fullest(const sc_prediction *p)
{
    double most = 0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        most = fmax(most, p->memory[i].peak);
    return most;
}

static void add(ways *x, uint32_t q, double segments, double operators)
{
    double apart = 100 * (operators - segments) / segments;
    x->apart[q][x->n] = (seen){apart, x->n};
}

/* A job that the network takes is priced by segments, too. */
static bool both(prop *p, void *ctx)
{
    ways *x = ctx;
    const world *w = &x->w;
    sc_arena a;
    sc_err err;
    sc_job job, none;
    sc_prediction o;
    predict_eval b;
    const sc_model *m = w->model[prop_below(p, w->n_models)];
    const sc_hw *hw = w->hw[prop_below(p, w->n_hw)];
    const sc_software *sw = w->sw[prop_below(p, w->n_sw)];
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    draw(p, hw, m, &job);
    sc_job_init(&none);
    none.brief = true;
    sc_status s = sc_predict(&job, hw, m, sw, &w->cost, &a, &o, &err);
    bool ok = true;
    if (s == SC_OK && x->n < DRAWN) {
        predict_memo memo = {
            .a = &a, .model = o.run.model, .sw = o.run.sw, .hw = hw};
        const char *asked = sc_job_options(&none, &job, &a);
        snprintf(x->run[x->n].text, sizeof x->run[x->n].text, "%s %s %s %s",
                 m->name, hw->name, sw->name, asked ? asked : "");
        x->run[x->n].families = families_of(m, &job);
        ok = predict_evaluate(&o.run, 0, INFINITY, &memo, &b, &err) == SC_OK;
        if (ok) {
            add(x, Q_STEP, b.step_s, o.step_time_s);
            add(x, Q_PEAK, b.peak, fullest(&o));
            x->n++;
        }
    }
    sc_arena_free(&a);
    return ok;
}

/* ---- the table ----------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = fabs(((const seen *)a)->apart),
           y = fabs(((const seen *)b)->apart);
    return (x > y) - (x < y);
}

/* Runs of a family, the ones that are least apart first. */
static uint32_t of_family(const ways *x, uint32_t q, uint32_t families,
                          seen *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->run[i].families & families) out[n++] = x->apart[q][i];
    qsort(out, n, sizeof *out, by_size);
    return n;
}

static void print_families(const ways *x, seen *room)
{
    print_message("%-18s %4s  %-22s %-22s\n", "by family, %", "runs",
                  "step: half 95 worst", "memory: half 95 worst");
    for (uint32_t f = 0; f < N_FAMILIES; f++) {
        double v[2][3] = {{0}};
        uint32_t n = 0;
        for (uint32_t k = 0; k < 2; k++) {
            n = of_family(x, k ? Q_PEAK : Q_STEP, 1u << f, room);
            if (n == 0) break;
            v[k][0] = room[n / 2].apart;
            v[k][1] = room[n * 95 / 100].apart;
            v[k][2] = room[n - 1].apart;
        }
        print_message("%-18s %4u  %6.1f %6.1f %7.1f   %6.1f %6.1f %7.1f\n",
                      family_names[f], n, v[0][0], v[0][1], v[0][2], v[1][0],
                      v[1][1], v[1][2]);
    }
}

/* Prints a row; whether it is within its bounds. */
static bool row(const ways *x, uint32_t q, seen *room)
{
    uint32_t n = of_family(x, q, ~0u, room);
    const seen *half = &room[n / 2], *most = &room[n * 95 / 100];
    const seen *worst = &room[n - 1];
    bool ok = fabs(half->apart) <= bounds[q].median &&
              fabs(most->apart) <= bounds[q].most &&
              fabs(worst->apart) <= bounds[q].worst;
    print_message("%-14s %7.2f %7.2f %8.2f %s %s\n", names[q], half->apart,
                  most->apart, worst->apart, ok ? " " : "!",
                  x->run[worst->one].text);
    return ok;
}

static void test_both(void **state)
{
    (void)state;
    ways *x = calloc(1, sizeof *x);
    seen *room = calloc(DRAWN, sizeof *room);
    assert_non_null(x);
    assert_non_null(room);
    assert_true(load(&x->w));
    bool ok = prop_check("predictions both ways", DRAWN, both, x);
    print_message("%u runs\n", x->n);
    print_message("%-14s %7s %7s %8s   %s\n", "apart by, %", "half", "95",
                  "worst", "which");
    for (uint32_t q = 0; x->n > 0 && q < N_QUANTITIES; q++)
        if (!row(x, q, room)) ok = false;
    print_families(x, room);
    ok = ok && x->n >= COMPARED;
    free(room);
    sc_arena_free(&x->w.load);
    free(x);
    assert_true(ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
