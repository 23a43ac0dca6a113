/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of random predictions: terms add up to them exactly, and a result
 * that was written and read gives the same ones. */
#include "property.h"
#include "report/report_difference.h"
#include "report/report_predict.h"
#include "world.h"

#include <math.h>
#include <string.h>

#define PICK(p, list) ((list)[prop_below((p), SC_COUNT(list))])

static void draw(prop *p, const sc_hw *hw, sc_job *j)
{
    static const int64_t small[] = {1, 2, 4, 8};
    sc_job_init(j);
    j->tp = PICK(p, small);
    j->pp = PICK(p, small);
    int64_t rest = hw->n_devices / (j->tp * j->pp);
    j->dp = rest ? rest : 1;
    j->gbs = 64;
    j->mbs = PICK(p, small);
    j->zero = (int64_t)prop_below(p, 4);
    j->recompute = (int)prop_below(p, 3);
    j->engine = (int)prop_below(p, 2);
    j->price = prop_below(p, 2) ? 0.001 : SC_INFER;
    j->tokens = prop_below(p, 2) ? 1000000000 : 0;
    j->brief = true;
}

static bool same_figures(const sc_outcome *x, const sc_outcome *y)
{
    bool ok = true;
    for (int i = 0; i < (int)SC_N_FIGURES; i++)
        ok = ok && (x->figure[i] == y->figure[i] ||
                    (isnan(x->figure[i]) && isnan(y->figure[i])));
    return ok;
}

static bool same(const sc_outcome *x, const sc_outcome *y)
{
    bool ok = x->step == y->step && x->peak == y->peak &&
              x->stage == y->stage && x->n_stages == y->n_stages &&
              x->fits == y->fits && x->n_devices == y->n_devices &&
              x->capacity == y->capacity && strcmp(x->model, y->model) == 0;
    ok = ok && memcmp(x->time, y->time, sizeof x->time) == 0;
    ok = ok && memcmp(x->memory, y->memory, sizeof x->memory) == 0;
    for (const sc_key *k = sc_job_keys; k->name; k++)
        ok = ok && sc_schema_same(k, &x->job, &y->job);
    return ok && same_figures(x, y);
}

/* Writes the result and reads it again. */
static bool reads_back(const sc_job *job, const sc_prediction *p,
                       const sc_outcome *o, sc_arena *a)
{
    sc_json j;
    sc_node *root;
    sc_outcome again;
    sc_err err;
    sc_err_init(&err);
    sc_json_init(&j, false);
    sc_report_prediction_json(job, p, NAN, NULL, &j);
    bool ok = !j.failed && !sc_doc_parse(j.buf, j.len, SC_FMT_JSON, "r.json", a,
                                         &root, &err);
    ok = ok && !sc_outcome_read(root, a, &again, &err) && same(o, &again);
    if (err.n) print_message("%s\n", err.d[0].msg);
    sc_json_free(&j);
    return ok;
}

static bool rises(const sc_term *t, uint32_t n, int64_t whole)
{
    int64_t last = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        int64_t d = t[i].b - t[i].a, size = d < 0 ? -d : d;
        if (size == 0 || size > last) return false;
        last = size;
        whole -= d;
    }
    return whole == 0;
}

static bool random_pair(prop *p, void *ctx)
{
    world *w = ctx;
    sc_arena a;
    sc_outcome o[2];
    sc_difference d;
    bool legal = true, ok = true;
    sc_arena_init(&a, 0);
    for (int i = 0; i < 2 && legal && ok; i++) {
        sc_job job;
        sc_prediction r;
        const sc_hw *hw = w->hw[prop_below(p, w->n_hw)];
        draw(p, hw, &job);
        legal = !sc_predict(&job, hw, w->model[prop_below(p, w->n_models)],
                            w->sw[0], &w->cost, &a, &r, NULL);
        if (!legal) break;
        job.model = r.run.model->name;
        job.cluster = hw->name;
        sc_outcome_of("x", &job, &r, &o[i]);
        ok = reads_back(&job, &r, &o[i], &a);
    }
    if (legal && ok) {
        ok = !sc_difference_of(&o[0], &o[1], &a, &d, NULL);
        ok = ok && rises(d.time, d.n_time, o[1].step - o[0].step);
        ok = ok && rises(d.memory, d.n_memory, o[1].peak - o[0].peak);
        for (uint32_t i = 0; i < d.n_choices; i++)
            ok = ok && !sc_schema_same(d.choice[i], &o[0].job, &o[1].job);
    }
    sc_arena_free(&a);
    return ok;
}

static void test_differences(void **state)
{
    static const char *const model[] = {"gpt2", "llama3-8b", "mixtral-8x7b",
                                        NULL};
    static const char *const hw[] = {"dgx-h100:2", "dgx-a100-80g:4", NULL};
    static const char *const sw[] = {"megatron-core", NULL};
    world w;
    (void)state;
    assert_true(world_load(&w, model, hw, sw));
    bool ok = prop_check("terms add up", 200, random_pair, &w);
    sc_arena_free(&w.load);
    assert_true(ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
