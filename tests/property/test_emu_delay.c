/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations under the delay models: nobody is faster than alone,
 * everything ends, and less of anything is never faster. */
#include "emu_delay.h"
#include "property.h"

#define OPS 12

typedef struct job {
    uint32_t group[OPS];
    sc_coll coll[OPS];
    uint64_t bytes[OPS];
    sc_time t[OPS];
    uint32_t n;
} job;

static const char table[] = "op,ranks,bytes,time_us\n"
                            "all_reduce,2,0,20\nall_reduce,2,4096,31\n"
                            "all_reduce,2,1048576,900\n"
                            "all_to_all,4,0,40\nall_to_all,4,65536,90\n"
                            "send,2,1,5\nsend,2,1048576,800\n";
static const char alpha_beta[] = "ranks: 4\n"
                                 "default: {alpha: 15us, beta: 2GB/s}\n";

static const sc_emu_delay_kind kinds[] = {
    SC_EMU_DELAY_ANALYTIC, SC_EMU_DELAY_TABLE, SC_EMU_DELAY_ALPHA_BETA,
    SC_EMU_DELAY_HOST,     SC_EMU_DELAY_FLOW,  SC_EMU_DELAY_CHUNK};

static job random_job(prop *p)
{
    job j = {.n = 1 + (uint32_t)prop_below(p, OPS)};
    sc_time t = 0;
    for (uint32_t k = 0; k < j.n; k++) {
        t += (sc_time)prop_below(p, 200000000);
        j.t[k] = t;
        j.group[k] = (uint32_t)prop_below(p, 5);
        j.coll[k] = (sc_coll)prop_below(p, SC_N_CALLED_COLLS);
        j.bytes[k] = 1 + prop_below(p, 1u << prop_below(p, 24));
    }
    return j;
}

static void use_model(sc_emu_delay_kind kind, const sc_emu_whatif *w,
                      uint32_t n)
{
    n_groups = 0;
    conf.delay = kind;
    conf.delay_file = NULL;
    if (kind == SC_EMU_DELAY_TABLE) conf.delay_file = file_of(table);
    if (kind == SC_EMU_DELAY_ALPHA_BETA) conf.delay_file = file_of(alpha_beta);
    conf.whatif = w;
    conf.n_whatif = n;
    begin();
}

/* Ends of all operations, of those in `mask`. */
static void run(const job *j, uint32_t mask)
{
    emu_group *g[5] = {ranks(0, 16, 1), ranks(0, 4, 1), ranks(2, 2, 8),
                       ranks(4, 8, 1), siblings(0, 2, 8, 8, 1)};
    memset(ended, 0, sizeof ended);
    for (uint32_t k = 0; k < j->n; k++) {
        const emu_delay_end *end;
        if (!(mask >> k & 1)) continue;
        /* time goes on to the next post, as a world lets it */
        for (sc_time t; (t = emu_delay_next(model_of_delay)) <= j->t[k];) {
            uint32_t n = emu_delay_advance(model_of_delay, t, &end);
            for (uint32_t i = 0; i < n; i++) ended[end[i].tag] = end[i].t;
        }
        uint32_t n = emu_delay_advance(model_of_delay, j->t[k], &end);
        assert_int_equal(n, 0);
        post(g[j->group[k]], j->coll[k], j->bytes[k], k, j->t[k]);
    }
    for (sc_time t; (t = emu_delay_next(model_of_delay)) != SC_TIME_MAX;) {
        const emu_delay_end *end;
        uint32_t n = emu_delay_advance(model_of_delay, t, &end);
        for (uint32_t i = 0; i < n; i++) ended[end[i].tag] = end[i].t;
    }
}

static bool never_faster_than_alone(prop *p, void *ctx)
{
    sc_time together[OPS];
    bool holds = true;
    setup(NULL);
    use_machine("dgx-a100-80g:2", SC_EMU_DELAY_ANALYTIC);
    job j = random_job(p);
    sc_emu_delay_kind kind = kinds[prop_below(p, SC_COUNT(kinds))];
    (void)ctx;
    use_model(kind, NULL, 0);
    run(&j, ~0u);
    memcpy(together, ended, sizeof together);
    for (uint32_t k = 0; k < j.n; k++) {
        use_model(kind, NULL, 0);
        run(&j, 1u << k);
        /* a picosecond for each time that its links were told apart */
        holds = holds && ended[k] >= j.t[k] && together[k] >= ended[k] - OPS;
    }
    teardown(NULL);
    return holds;
}

/* An operation alone: of several, one that is slowed can let another go
 * first. */
static bool less_is_never_faster(prop *p, void *ctx)
{
    bool holds = true;
    setup(NULL);
    use_machine("dgx-a100-80g:2", SC_EMU_DELAY_ANALYTIC);
    job j = random_job(p);
    sc_emu_delay_kind kind = kinds[prop_below(p, SC_COUNT(kinds))];
    sc_emu_whatif w = {.what = (sc_emu_what)prop_below(p, 3)};
    sc_time before = 0;
    (void)ctx;
    w.value = w.what == SC_EMU_LATENCY_ADD ? 0 : 1;
    for (int step = 0; step < 4; step++) {
        use_model(kind, &w, 1);
        run(&j, 1);
        holds = holds && ended[0] >= before;
        before = ended[0];
        double more = 1 + prop_unit(p);
        if (w.what == SC_EMU_LATENCY_ADD)
            w.value += more * 1e-6;
        else if (w.what == SC_EMU_LATENCY_TIMES)
            w.value *= more;
        else
            w.value /= more;
    }
    teardown(NULL);
    return holds;
}

static void alone_or_not(void **state)
{
    (void)state;
    assert_true(
        prop_check("delays together", 150, never_faster_than_alone, NULL));
}

static void monotone(void **state)
{
    (void)state;
    assert_true(
        prop_check("delays of what-ifs", 600, less_is_never_faster, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_or_not),
        cmocka_unit_test(monotone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
