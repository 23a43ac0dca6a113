/* SPDX-License-Identifier: Apache-2.0 */
/* Every open choice of small jobs, forced by options: none beats what is
 * inferred, and where any fits, that fits.  Choices within the habits that
 * docs/strategy.md lists, with the 5 % of memory that ours leave free. */
#include "prediction.h"

static void predict_as(const sc_job *job, sc_arena *a, sc_prediction *p,
                       sc_status *s)
{
    sc_err err;
    sc_err_init(&err);
    *s = sc_predict(job, f.in.hw, f.in.model, f.in.sw, f.in.cost, a, p, &err);
    assert_true(*s == SC_OK || *s == SC_EINPUT);
}

static double fullest(const sc_prediction *p)
{
    double most = 0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        most = fmax(most, p->memory[i].peak / p->memory[i].capacity);
    return most;
}

typedef struct best {
    double step_s;
    bool roomy, fits;
    uint32_t legal;
} best;

/* Each schedule's number of chunks, each recomputation, of a division. */
static void all_below(const sc_job *mesh, sc_arena *a, best *b)
{
    static const int recompute[] = {SC_RC_NONE, SC_RC_SELECTIVE, SC_RC_OPS,
                                    SC_RC_FULL};
    int64_t layers = f.in.model->t.layers;
    for (int64_t vpp = 1; vpp <= 8; vpp++)
        for (size_t i = 0; i < SC_COUNT(recompute); i++) {
            sc_job j = *mesh;
            sc_prediction p;
            sc_status s;
            if (vpp > 1 && (j.pp == 1 || layers % (j.pp * vpp))) continue;
            if (!(f.in.sw->recomputes >> recompute[i] & 1)) continue;
            j.vpp = vpp;
            j.recompute = recompute[i];
            sc_arena_mark mark = sc_arena_save(a);
            predict_as(&j, a, &p, &s);
            if (s == SC_OK) {
                b->legal++;
                b->fits |= p.fits;
                bool roomy = fullest(&p) <= 0.95;
                if (roomy && (!b->roomy || p.step_time_s < b->step_s))
                    b->step_s = p.step_time_s;
                b->roomy |= roomy;
            }
            sc_arena_restore(a, mark);
        }
}

static void all_of(const sc_job *open, best *b)
{
    int64_t n = f.in.hw->n_devices;
    sc_job j = *open;
    for (j.tp = 1; j.tp <= (int64_t)f.in.hw->node_size; j.tp++)
        for (j.pp = 1; j.tp * j.pp <= n; j.pp++)
            for (j.mbs = 1; j.mbs <= 16; j.mbs *= 2)
                for (j.zero = 0; j.zero <= 3; j.zero++) {
                    if (n % (j.tp * j.pp)) continue;
                    if (f.in.model->t.layers % j.pp) continue;
                    j.cp = 1;
                    if (n / (j.tp * j.pp) == 1 && j.zero > 0) continue;
                    all_below(&j, &f.a, b);
                }
}

static void nothing_beats_it(void **state)
{
    (void)state;

    static const struct {
        const char *model, *cluster, *software;
        int64_t gbs, seq;
    } jobs[] = {{"gpt2", "dgx-a100-80g:1", NULL, 32, 1024},
                {"llama2-7b", "dgx-a100-80g:1", NULL, 16, 4096},
                {"llama3-8b", "dgx-h100:2", "torchtitan", 32, 8192},
                {"llama2-13b", "dgx-h100:1", "megatron-lm-2022", 32, 4096},
                {"megatron-22b", "dgx-a100-80g:1", "llm-foundry", 16, 2048}};

    for (size_t i = 0; i < SC_COUNT(jobs); i++) {
        sc_job open;
        best b = {0};
        sc_status s;
        sc_job_init(&open);
        open.model = jobs[i].model;
        open.cluster = jobs[i].cluster;
        open.software = jobs[i].software;
        open.gbs = jobs[i].gbs;
        open.seq = jobs[i].seq;
        open.engine = SC_ENGINE_FAST;
        open.brief = true;
        assert_int_equal(sc_predict_load(&open, &f.a, &f.in, &f.err), SC_OK);
        predict_as(&open, &f.a, &f.p, &s);
        assert_int_equal(s, SC_OK);
        all_of(&open, &b);
        print_message("%s, %s: %u legal, %.4g s, best %.4g s\n", jobs[i].model,
                      f.in.sw->name, b.legal, f.p.step_time_s, b.step_s);
        assert_true(b.legal > 2);
        assert_true(f.p.fits || !b.fits);
        if (b.roomy) assert_true(f.p.step_time_s <= b.step_s * (1 + 1e-9));
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(nothing_beats_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
