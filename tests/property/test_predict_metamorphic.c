/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs with every choice given: what a better machine, a larger batch and
 * a larger micro-batch do to the step and to memory. */
#include "hw/hw_memo.h"
#include "prediction.h"

/* Of FULL jobs, kernels are changed too. */
enum { JOBS = 1000, FULL = 300 };

/* A better machine may make a step longer by this much.  Kernels that end sooner
 * may make an exchange start that another one, which is waited for, then
 * shares its links with: any greedy order has such cases. */
static const double limit[] = {1.03, 1.01, 1.005, 1.005};

/* Twice the batch at the same micro-batch, from sixteen micro-batches on: gradients
 * are exchanged once a step, which over one InfiniBand link is a quarter of a
 * short one. */
static const double least_ratio = 1.7, most_ratio = 2.05;

typedef struct machine {
    sc_hw hw;
    sc_device device;
} machine;

/* Rings of a node are searched once for each better machine, not in each job:
 * that took nine tenths of the test. */
static struct hw_memo *memo[4];

static const sc_hw *better(machine *m, const sc_hw *hw, int what)
{
    m->hw = *hw;
    m->device = *hw->device;
    m->hw.device = &m->device;
    m->hw.memo = memo[what];
    for (int i = 0; what == 0 && i < (int)SC_N_PRECISIONS; i++)
        m->device.peak[i] *= 2;
    if (what == 0) m->device.vector_flops *= 2;
    if (what == 1) m->device.mem_bw *= 2;
    if (what == 2) m->device.link_bw *= 2;
    for (uint32_t i = 0; i < hw->n_dims; i++) {
        bool nic = hw->dim[i].ports != 0;
        if (what != (nic ? 3 : 2)) continue;
        m->hw.dim[i].bw *= 2;
        m->hw.dim[i].port_bw *= 2;
    }
    return &m->hw;
}

static bool run_on(const sc_job *j, const sc_hw *hw, double *step_s,
                   double *peak)
{
    sc_err err;
    sc_prediction p;
    sc_err_init(&err);
    sc_arena_mark mark = sc_arena_save(&f.a);
    sc_status s =
        sc_predict(j, hw, f.in.model, f.in.sw, f.in.cost, &f.a, &p, &err);
    *peak = 0;
    for (uint32_t i = 0; s == SC_OK && i < p.n_stages; i++)
        *peak = fmax(*peak, p.memory[i].peak);
    if (s == SC_OK) *step_s = p.step_time_s;
    sc_arena_restore(&f.a, mark);
    assert_true(s == SC_OK || s == SC_EINPUT);
    return s == SC_OK;
}

/* Units that exchanges of gradients take, over sizes and kinds. */
static uint32_t channels(const sc_job *j, const sc_hw *hw)
{
    uint32_t size = hw->n_devices / (uint32_t)(j->tp * j->pp), sum = 0;
    uint32_t stride = (uint32_t)j->tp;
    sc_place at = sc_hw_place(hw, 1, &size, &stride);
    for (int c = 0; c < SC_N_PRICED_COLLS; c++)
        for (double v = 1 << 20; v < 2e9; v *= 4) {
            sc_coll_price p = {0};
            assert_int_equal(sc_cost_coll(f.in.cost, hw, sc_priced_colls[c], v,
                                          &at, -1, &p, &f.err),
                             SC_OK);
            sum += p.channels;
        }
    return sum;
}

static int64_t pick(uint64_t *seed, int64_t most_log2)
{
    return (int64_t)1 << sc_random(seed) % (uint64_t)(most_log2 + 1);
}

static void random_job(uint64_t *seed, sc_job *j)
{
    sc_job_init(j);
    j->engine = SC_ENGINE_FAST;
    j->brief = true;
    j->tp = pick(seed, 2);
    j->pp = pick(seed, 2);
    j->vpp = 1;
    j->cp = 1;
    j->mbs = pick(seed, 2);
    j->zero = (int64_t)(sc_random(seed) % 4);
    j->recompute = (int)(sc_random(seed) % 3);
    j->seq = 512 * pick(seed, 2);
    j->gbs = 16 * j->mbs * pick(seed, 3) * (j->pp > 1 ? 4 : 1);
}

static void load(const char *model, const char *cluster)
{
    sc_job j;
    sc_job_init(&j);
    j.model = model;
    j.cluster = cluster;
    j.software = "default";
    assert_int_equal(sc_predict_load(&j, &f.a, &f.in, &f.err), SC_OK);
    for (int w = 0; w < 4; w++) assert_non_null(memo[w] = hw_memo_new(&f.a));
}

static void machines_and_batches(void **state)
{
    (void)state;
    static const char *const model[] = {"gpt2", "gpt2-xl", "llama3-8b",
                                        "gpt3-xl"};
    static const char *const cluster[] = {"dgx-a100-80g:2", "dgx-h100:2",
                                          "dgx1-v100-1ib:2"};
    static const char *const names[] = {"peak", "memory", "links", "NICs"};
    uint64_t seed = 20261122;
    uint32_t jobs = 0, slower[4] = {0}, ratio = 0;
    double worst[4] = {0};
    for (uint32_t k = 0; jobs < JOBS; k++) {
        sc_job j;
        machine m;
        double t, u, peak, more;
        if (k % 25 == 0) load(model[k / 25 % 4], cluster[k / 100 % 3]);
        random_job(&seed, &j);
        if (!run_on(&j, f.in.hw, &t, &peak)) continue;
        jobs++;
        for (int w = jobs <= FULL ? 0 : 2; w < 4; w++) {
            assert_true(run_on(&j, better(&m, f.in.hw, w), &u, &more));
            slower[w] += u > t * (1 + 1e-9);
            worst[w] = fmax(worst[w], u / t);
        }
        if (jobs > FULL) continue;
        sc_job twice = j, wide = j;
        twice.gbs *= 2;
        assert_true(run_on(&twice, f.in.hw, &u, &more));
        double replicas = (double)f.in.hw->n_devices / (double)(j.tp * j.pp);
        bool steady = (double)j.gbs >= 16 * (double)(j.mbs * j.pp) * replicas;
        double fixed = f.in.cost->p[SC_P_STEP_FIXED]; /* once a step */
        double least = fixed + (steady ? least_ratio : 1) * (t - fixed);
        if (u > most_ratio * t || u < least)
            print_message("%s on %s, tp %d, pp %d, batch %d: %.4f times\n",
                          f.in.model->name, f.in.hw->name, (int)j.tp, (int)j.pp,
                          (int)j.gbs, u / t);
        ratio += u > most_ratio * t || u < least;
        wide.mbs *= 2;
        if (run_on(&wide, f.in.hw, &u, &more)) assert_true(more >= peak);
    }
    for (int w = 0; w < 4; w++)
        print_message("twice the %s: %u of %u slower, at most %.4f times\n",
                      names[w], slower[w], w < 2 ? FULL : JOBS, worst[w]);
    print_message("%u batches beyond their ratio\n", ratio);
    for (int w = 0; w < 4; w++) assert_true(worst[w] <= limit[w]);
    assert_int_equal(ratio, 0);
}

/* The same by the event engine, in less time. */
static void by_events(void **state)
{
    (void)state;
    static const char *const model[] = {"gpt2", "gpt3-xl"};
    static const char *const cluster[] = {"dgx-a100-80g:2", "dgx-h100:2"};
    uint64_t seed = 20261123;
    double worst[4] = {0};
    for (uint32_t k = 0, jobs = 0; jobs < 24; k++) {
        sc_job j;
        machine m;
        double t, u, peak, more;
        if (k % 8 == 0) load(model[k / 8 % 2], cluster[k / 16 % 2]);
        random_job(&seed, &j);
        j.engine = SC_ENGINE_EVENT;
        if (!run_on(&j, f.in.hw, &t, &peak)) continue;
        jobs++;
        for (int w = 0; w < 4; w++) {
            assert_true(run_on(&j, better(&m, f.in.hw, w), &u, &more));
            worst[w] = fmax(worst[w], u / t);
        }
    }
    for (int w = 0; w < 4; w++) {
        print_message("%.4f times with twice\n", worst[w]);
        assert_true(worst[w] <= limit[w]);
    }
}

/* NCCL makes two channels of one of 25 GB/s or more (ncclTopoDupChannels() in its
 * graph/search.cc), whose blocks take units from kernels.  Faster NICs still do
 * not make the inferred job slower. */
static void twice_the_channels(void **state)
{
    (void)state;
    sc_job j;
    machine m;
    double t = 0, u = 0, peak;
    sc_job_init(&j);
    load("gpt2-xl", "dgx-a100-80g:2");
    j.engine = SC_ENGINE_FAST;
    j.brief = true;
    j.gbs = 64;
    j.seq = 1024;
    const sc_hw *hw = better(&m, f.in.hw, 3);
    assert_true(run_on(&j, f.in.hw, &t, &peak) && run_on(&j, hw, &u, &peak));
    assert_true(u <= limit[3] * t);
    j.tp = j.pp = 1; /* of all devices */
    uint32_t before = channels(&j, f.in.hw), after = channels(&j, hw);
    print_message("channels %u, with twice the NICs %u\n", before, after);
    assert_true(after > before);
}

/* Parameters and forms by which casts take no time, nor does the host. */
static void without_casts(const sc_cost *c, sc_cost *out, sc_forms *forms)
{
    static const sc_form none = {
        .c = {.start = 1e-15, .memory = 1e9, .blend = 1}};
    *out = *c;
    *forms = *c->forms;
    for (int i = 0; i < (int)SC_N_FIT_CLASSES; i++)
        for (int k = 0; k < (int)SC_N_FORMS; k++)
            if (sc_form_is_cast((sc_form_kind)k)) forms->at[i][k] = &none;
    out->forms = forms;
    out->p[SC_P_HOST_KERNEL] = 1e-15;
}

/* Low precision is slower by its casts and the host that launches them, and by
 * nothing else.  Small products are an exception: with 512 rows, 25 of the 58
 * shapes that were measured on a B200 are slower in NVFP4 than in bf16. */
static void low_precision(void **state)
{
    (void)state;

    static const struct {
        const char *model, *cluster;
        sc_recipe recipe;
    } in[] = {{"llama3-8b", "dgx-h100:2", SC_RECIPE_FP8},
              {"gpt3-6.7b", "dgx-h200:2", SC_RECIPE_FP8},
              {"llama3-8b", "dgx-b200:2", SC_RECIPE_MXFP8},
              {"mixtral-8x7b", "dgx-b200:2", SC_RECIPE_MXFP8},
              {"llama3-8b", "dgx-b200:2", SC_RECIPE_NVFP4},
              {"mixtral-8x7b", "dgx-h100:4", SC_RECIPE_FP8}};

    uint64_t seed = 20261124;

    enum { SMALL = 2048 }; /* tokens of a micro-batch */

    uint32_t jobs = 0, slower = 0;
    double worst[2] = {0};
    sc_cost cost;
    sc_forms forms;
    for (uint32_t k = 0; jobs < JOBS; k++) {
        sc_job j;
        double t, u, peak;
        size_t x = k / 25 % SC_COUNT(in);
        if (k % 25 == 0) {
            load(in[x].model, in[x].cluster);
            without_casts(f.in.cost, &cost, &forms);
            f.in.cost = &cost;
        }
        random_job(&seed, &j);
        j.precision = SC_RECIPE_BF16;
        if (!run_on(&j, f.in.hw, &t, &peak)) continue;
        j.precision = (int)in[x].recipe;
        assert_true(run_on(&j, f.in.hw, &u, &peak));
        jobs++;
        slower += u > t * (1 + 1e-9);
        bool small = j.seq * j.mbs < SMALL;
        worst[small] = fmax(worst[small], u / t);
    }
    print_message("low precision: %u of %u slower without casts, at most %.4f "
                  "times, with few tokens %.4f\n",
                  slower, JOBS, worst[0], worst[1]);
    assert_true(worst[0] <= 1.005 && worst[1] <= 1.1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(machines_and_batches), TEST(by_events), TEST(twice_the_channels),
        TEST(low_precision)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
