/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of programs whose operations are alike: programs in words of computing
 * and operations, on a quiet clock and on noisy ones. */
#include "emu/emu_log.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define US        ((sc_time)1000000)
#define MOST_OPS  8000u
#define MOST_OPEN 64u
#define SEEDS     8u
#define CASES     150u /* of each noise */

static sc_arena arena;

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

/* ---- programs ------------------------------------------------------------------- */

typedef struct program {
    double noise;    /* of the logarithm of a time */
    double outliers; /* share of times that are up to 20 times as long */
    double load;     /* of the machine, which comes and goes: also in noise */
    uint64_t seed;
    sc_time now;
    sc_emu_record *o;
    uint64_t n, open[MOST_OPEN];
    uint32_t n_open;
} program;

static double uniform(program *p)
{
    uint64_t z = (p->seed += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static sc_time noisy(program *p, double us)
{
    double u = uniform(p), v = uniform(p);
    double x = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
    p->load = 0.95 * p->load + 0.2 * p->noise * (2 * uniform(p) - 1);
    double t = us * exp(p->noise * x + p->load);
    if (uniform(p) < p->outliers) t *= 1 + 19 * uniform(p);
    return (sc_time)(t * (double)US);
}

static void compute(program *p, double us)
{
    p->now += noisy(p, us);
}

static sc_emu_record *post(program *p, uint32_t group, uint64_t bytes,
                           double us)
{
    sc_emu_record *o = &p->o[p->n++];
    assert_true(p->n < MOST_OPS);
    *o = (sc_emu_record){.group = group,
                         .bytes = bytes,
                         .post = p->now,
                         .begin = p->now,
                         .end = p->now + (sc_time)(us * (double)US)};
    return o;
}

/* The program waits for it. */
static void blocking(program *p, uint32_t group, uint64_t bytes, double us)
{
    sc_emu_record *o = post(p, group, bytes, us);
    o->waited = o->end - o->post;
    p->now = o->resumed = o->end + noisy(p, 1);
}

/* It goes on, and waits for all that it has posted at drain(). */
static void posted(program *p, uint32_t group, uint64_t bytes, double us)
{
    assert_true(p->n_open < MOST_OPEN);
    p->open[p->n_open++] = p->n;
    post(p, group, bytes, us)->flags = SC_EMU_ASYNC;
}

static void drain(program *p)
{
    for (uint32_t i = 0; i < p->n_open; i++) {
        sc_emu_record *o = &p->o[p->open[i]];
        if (o->end > p->now) {
            o->waited = o->end - p->now;
            p->now = o->end;
        }
        o->resumed = p->now;
        compute(p, 5);
    }
    p->n_open = 0;
}

/* A thread of a library hears of its end, somewhat later. */
static void called_back(program *p, uint32_t group, uint64_t bytes, double us)
{
    sc_emu_record *o = post(p, group, bytes, us);
    o->flags = SC_EMU_ASYNC;
    o->resumed = o->end + noisy(p, 2500);
}

static void one(program *p, uint32_t step)
{
    (void)step;
    compute(p, 8000);
    blocking(p, 0, 1 << 20, 300);
}

static void one_slow_at_first(program *p, uint32_t step)
{
    if (step < 4) compute(p, 90000);
    one(p, step);
}

static void one_and_log(program *p, uint32_t step)
{
    one(p, step);
    if (step % 10 == 9) blocking(p, 0, 8, 20);
}

static void one_flying(program *p, uint32_t step)
{
    (void)step;
    compute(p, 8000);
    posted(p, 0, 1 << 20, 3000);
    compute(p, 1000);
    drain(p);
}

static void buckets(program *p, uint32_t step)
{
    (void)step;
    compute(p, 3000);
    for (int i = 0; i < 6; i++) {
        compute(p, 1000);
        posted(p, 0, 1 << 22, 2500);
    }
    drain(p);
}

static void buckets_called_back(program *p, uint32_t step)
{
    if (step < 3) compute(p, 100000);
    compute(p, 20000);
    for (int i = 0; i < 6; i++) {
        compute(p, 7000);
        called_back(p, 0, 1 << 22, 600);
    }
}

static void buckets_and_log(program *p, uint32_t step)
{
    buckets_called_back(p, step);
    if (step % 5 == 4) blocking(p, 0, 8, 20);
}

static void tensor_parallel(program *p, uint32_t step)
{
    (void)step;
    for (int i = 0; i < 12 * 4; i++) {
        compute(p, 500);
        blocking(p, 0, 1 << 20, 200);
    }
    compute(p, 2000);
}

/* Twice the time backward; of a layer, one half takes longer. */
static void forward_backward(program *p, uint32_t step)
{
    (void)step;
    for (int i = 0; i < 2 * 8; i++) {
        compute(p, 400 * (1 + i / 8));
        blocking(p, 0, 1 << 20, 200);
        compute(p, 700 * (1 + i / 8));
        blocking(p, 0, 1 << 20, 200);
    }
    compute(p, 6000);
}

static void sharded_layers(program *p, uint32_t step)
{
    (void)step;
    for (int i = 0; i < 8; i++) {
        blocking(p, 0, 1 << 20, 200);
        compute(p, 1000);
        blocking(p, 1, 1 << 20, 200);
        compute(p, 1000);
    }
    compute(p, 6000);
}

static void accumulation(program *p, uint32_t step)
{
    (void)step;
    for (int i = 0; i < 4; i++) {
        compute(p, 5000);
        blocking(p, 0, 1 << 22, 900);
    }
    compute(p, 6000);
}

static void pipeline(program *p, uint32_t step)
{
    (void)step;
    for (int i = 0; i < 4; i++) {
        compute(p, 900);
        blocking(p, 1, 1 << 16, 50);
    }
    for (int i = 0; i < 4; i++) {
        blocking(p, 2, 1 << 16, 50);
        compute(p, 1800);
    }
    compute(p, 500);
}

static void exchange(program *p, uint32_t step)
{
    compute(p, 2000);
    blocking(p, 0, 64, 20);
    blocking(p, 1, 100000 + step * step % 977, 50);
}

/* ---- generated programs ---------------------------------------------------------- */

/* Layers of equal operations, forward and backward, between pauses that are at least
 * as long as twice the computation before any of these operations. */
typedef struct shape {
    uint32_t layers, ops, steps; /* per pass, layer, run */
    bool backward;
    double op[4], pause; /* us */
} shape;

static uint32_t up_to(program *p, uint32_t least, uint32_t most)
{
    return least + (uint32_t)(uniform(p) * (most - least + 1));
}

static shape any_shape(program *p)
{
    shape s = {.layers = up_to(p, 1, 32), .ops = up_to(p, 1, 4)};
    s.backward = uniform(p) < 0.5;
    if (uniform(p) < 0.2) s.layers = s.ops = 1;
    uint32_t each = s.layers * s.ops * (1 + s.backward);
    s.steps = up_to(p, 5, each < 50 ? 60 : 3000 / each);
    double longest = 0;
    for (uint32_t i = 0; i < s.ops; i++) {
        s.op[i] = 300 + 2000 * uniform(p);
        if (i > 0 && uniform(p) < 0.5) s.op[i] = s.op[0];
        longest = fmax(longest, s.op[i] * (1 + s.backward));
    }
    s.pause = 2 * longest * exp(2.5 * uniform(p));
    return s;
}

static uint32_t generated(program *p, const shape *s)
{
    for (uint32_t k = 0; k < s->steps; k++) {
        for (uint32_t pass = 0; pass <= s->backward; pass++)
            for (uint32_t i = 0; i < s->layers * s->ops; i++) {
                compute(p, s->op[i % s->ops] * (1 + pass));
                blocking(p, 0, 1 << 20, 200);
            }
        compute(p, s->pause);
    }
    return s->layers * s->ops * (1 + s->backward);
}

enum { ACCUMULATION };

static const struct {
    const char *name;
    void (*step)(program *, uint32_t);
    uint32_t steps, each; /* operations of a step */
    double noise;
} programs[] = {
    {"accumulation", accumulation, 30, 4, 0.3},
    {"one", one, 200, 1, 0.7},
    {"one, few steps", one, 12, 1, 0.7},
    {"one, slow at first", one_slow_at_first, 40, 1, 0.7},
    {"one, and a log", one_and_log, 120, 1, 0.4},
    {"one in flight", one_flying, 60, 1, 0.7},
    {"one, many steps", one, 4000, 1, 0.7},
    {"buckets", buckets, 20, 6, 0.7},
    {"buckets, few steps", buckets, 6, 6, 0.7},
    {"buckets, called back, few steps", buckets_called_back, 8, 6, 0.2},
    {"tensor-parallel, few steps", tensor_parallel, 6, 48, 0.2},
    {"sharded layers, few steps", sharded_layers, 8, 16, 0.2},
    {"buckets, called back", buckets_called_back, 20, 6, 0.4},
    {"buckets, and a log", buckets_and_log, 40, 6, 0.3},
    {"tensor-parallel", tensor_parallel, 20, 48, 0.4},
    {"forward and backward", forward_backward, 20, 32, 0.3},
    {"sharded layers", sharded_layers, 20, 16, 0.4},
    {"pipeline", pipeline, 30, 8, 0.7},
    {"exchange", exchange, 30, 2, 0.5},
};

static void begin(program *p)
{
    p->o = SC_NEW_N(&arena, sc_emu_record, MOST_OPS);
    assert_non_null(p->o);
    p->n = 0;
    p->now = 0;
    compute(p, 5000);
    blocking(p, 7, 1 << 24, 5000); /* weights */
}

static sc_emu_run run_of(program *p, uint32_t i)
{
    begin(p);
    for (uint32_t k = 0; k < programs[i].steps; k++) programs[i].step(p, k);
    return (sc_emu_run){.world = 8, .n_records = p->n, .record = p->o};
}

typedef struct score {
    uint32_t right, guessed, unsure, wrong; /* guessed: right, but not sure */
} score;

static void judge(const sc_emu_run *r, uint32_t steps, uint32_t each,
                  const char *what, score *out)
{
    sc_emu_step *s = NULL;
    sc_err err;
    uint32_t n = 0;
    bool sure = false;
    sc_err_init(&err);
    assert_int_equal(sc_emu_steps(r, 0, &arena, &s, &n, &sure, &err), SC_OK);
    bool right = n <= steps && n + 1 >= steps && s[0].n == each;
    out->right += right && sure;
    out->guessed += right && !sure;
    out->unsure += !right && !sure;
    out->wrong += !right && sure;
    if (!right && sure)
        print_message("%s: %u steps of %u operations, not %u of %u\n", what, n,
                      n ? (unsigned)s[0].n : 0, steps, each);
    sc_arena_free(&arena);
}

static void check(uint32_t i, double noise, double outliers, score *out)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        program p = {.noise = noise, .outliers = outliers, .seed = seed << 32};
        sc_emu_run r = run_of(&p, i);
        judge(&r, programs[i].steps, programs[i].each, programs[i].name, out);
    }
}

/* Neither is certain: it says so, and takes the operation that repeats. */
static void in_doubt(void **state)
{
    (void)state;
    uint32_t doubts = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        program p = {.noise = 0.9, .seed = seed << 32};
        sc_emu_run r = run_of(&p, ACCUMULATION);
        sc_emu_step *s = NULL;
        sc_err err;
        uint32_t n = 0;
        bool sure = true;
        sc_err_init(&err);
        assert_int_equal(sc_emu_steps(&r, 0, &arena, &s, &n, &sure, &err),
                         SC_OK);
        doubts += !sure;
        if (sure) assert_int_equal(s[0].n, 4);
        assert_int_equal(sc_emu_steps(&r, 4, &arena, &s, &n, &sure, &err),
                         SC_OK);
        assert_true(sure && s[0].n == 4 &&
                    n >= programs[ACCUMULATION].steps - 1);
        sc_arena_free(&arena);
    }
    assert_true(doubts > 0);
}

static void report(const char *of, const score *x)
{
    print_message("%s: %u right and sure, %u right and not sure, %u not sure, "
                  "%u wrong\n",
                  of, x->right, x->guessed, x->unsure, x->wrong);
}

static void quiet_clock(void **state)
{
    (void)state;
    score all = {0};
    for (uint32_t i = 0; i < SC_COUNT(programs); i++) check(i, 0.01, 0, &all);
    report("quiet", &all);
    assert_int_equal(all.right + all.guessed, SC_COUNT(programs) * SEEDS);
}

/* What noise hides is not sure; a step that is said to be sure is the true one. */
static void noisy_clock(void **state)
{
    (void)state;
    score all = {0};
    for (uint32_t i = 0; i < SC_COUNT(programs); i++)
        check(i, programs[i].noise, 0.02, &all);
    report("noisy", &all);
    assert_int_equal(all.wrong, 0);
    assert_true(all.right + all.guessed > SC_COUNT(programs) * SEEDS * 4 / 5);
}

/* A pause at least twice as long as any other computation: found, or not sure. */
static void any_program(void **state)
{
    (void)state;
    static const double noises[] = {0.01, 0.1, 0.2, 0.4, 0.7};
    score all = {0};
    for (uint32_t k = 0; k < SC_COUNT(noises); k++)
        for (uint64_t seed = 1; seed <= CASES; seed++) {
            program p = {.seed = seed << 32};
            shape s = any_shape(&p);
            p.noise = noises[k];
            p.outliers = 0.03 * uniform(&p);
            begin(&p);
            uint32_t each = generated(&p, &s), wrong = all.wrong;
            sc_emu_run r = {.world = 8, .n_records = p.n, .record = p.o};
            judge(&r, s.steps, each, "generated", &all);
            if (all.wrong > wrong)
                print_message("seed %u, noise %g: %u layers of %u, pause %g\n",
                              (unsigned)seed, noises[k], s.layers, s.ops,
                              s.pause);
        }
    report("generated", &all);
    assert_int_equal(all.wrong, 0);
    assert_true(all.unsure * 12 <= CASES * SC_COUNT(noises));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(in_doubt, tear_down),
        cmocka_unit_test_teardown(quiet_clock, tear_down),
        cmocka_unit_test_teardown(noisy_clock, tear_down),
        cmocka_unit_test_teardown(any_program, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
