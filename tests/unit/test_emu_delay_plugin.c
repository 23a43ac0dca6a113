/* SPDX-License-Identifier: Apache-2.0 */
/* Delay models of the user's own: what they hear, in which order. */
#include "emu_delay.h"

#define US   1000000LL
#define MOST 16

/* A plug-in that ends each operation after a microsecond per byte, and writes
 * down what it hears. */
static stepcast_delay_op heard[MOST];
static sc_time at[MOST], ends_at[MOST], last;
static uint32_t ranks_heard[MOST][4];
static uint32_t n_heard, n_ended;
static bool refuses;

static int fake_post(const stepcast_delay_op *op, int64_t t)
{
    assert_true(t >= last);
    last = t;
    if (refuses) return 1;
    heard[n_heard] = *op;
    memcpy(ranks_heard[n_heard], op->rank, (op->n < 4 ? op->n : 4) * 4);
    at[n_heard] = t;
    ends_at[n_heard++] = t + (sc_time)op->bytes * US;
    return 0;
}

static int64_t fake_next(void)
{
    int64_t t = INT64_MAX;
    for (uint32_t k = 0; k < n_heard; k++)
        if (ends_at[k] < t) t = ends_at[k];
    return t;
}

static uint32_t fake_advance(int64_t t, uint64_t *id, int64_t *end,
                             uint32_t cap)
{
    uint32_t n = 0;
    assert_true(t >= last && cap > 0);
    last = t;
    for (int64_t next; (next = fake_next()) <= t && n < cap && n_heard > 0;)
        for (uint32_t k = 0; k < n_heard; k++)
            if (ends_at[k] == next) {
                id[n] = heard[k].id;
                end[n++] = next;
                ends_at[k] = INT64_MAX;
                n_ended++;
                break;
            }
    return n;
}

static const stepcast_delay_plugin fake = {fake_post, fake_next, fake_advance};

static void begin_with(const stepcast_delay_plugin *p)
{
    use_machine("dgx-h100:4", SC_EMU_DELAY_PLUGIN);
    n_heard = n_ended = 0;
    last = 0;
    refuses = false;
    conf.plugin = p;
    begin();
}

static void what_it_hears(void **state)
{
    (void)state;
    begin_with(&fake);
    emu_group *g = ranks(4, 3, 2);
    emu_flight f = {g, SC_BROADCAST, 2, 0, 5, 1};
    if (emu_delay_post(model_of_delay, &f, 0, 0, &err)) no_error();
    assert_int_equal(n_heard, 1);
    assert_string_equal(heard[0].op, "broadcast");
    assert_int_equal(heard[0].n, 3);
    assert_int_equal(heard[0].root, 2);
    assert_int_equal(heard[0].bytes, 5);
    assert_int_equal(ranks_heard[0][1], 6);
    f = (emu_flight){g, SC_SEND, 2, 1, 9, 2};
    if (emu_delay_post(model_of_delay, &f, 0, 0, &err)) no_error();
    assert_string_equal(heard[1].op, "send");
    assert_int_equal(heard[1].n, 2);
    assert_int_equal(heard[1].root, 0);
    assert_int_equal(ranks_heard[1][0], 8);
    assert_int_equal(ranks_heard[1][1], 6);
    finish();
    assert_int_equal(ended[1], 5 * US);
    assert_int_equal(ended[2], 9 * US);
}

/* Advances to `at` and posts there. */
static void post_at(emu_group *g, uint64_t bytes, uint64_t tag, sc_time t)
{
    const emu_delay_end *end;
    assert_int_equal(emu_delay_advance(model_of_delay, t, &end), 0);
    post(g, SC_ALL_REDUCE, bytes, tag, t);
}

static void order(void **state)
{
    (void)state;
    begin_with(&fake);
    emu_group *g = ranks(0, 2, 1);
    post_at(g, 25, 4, 0);
    assert_int_equal(n_heard, 1);
    assert_int_equal(emu_delay_next(model_of_delay), 25 * US);
    post_at(g, 100, 2, 10 * US);
    post_at(g, 3, 3, 12 * US);
    post_at(g, 1, 1, 13 * US);
    finish();
    assert_int_equal(n_heard, 4);
    for (uint32_t k = 1; k < 4; k++) assert_true(at[k] >= at[k - 1]);
    assert_int_equal(ended[1], 14 * US);
    assert_int_equal(ended[2], 110 * US);
    assert_int_equal(ended[3], 15 * US);
    assert_int_equal(ended[4], 25 * US);
}

/* A pair that is a whole world keeps its root. */
static void pair(void **state)
{
    (void)state;
    begin_with(&fake);
    emu_group *g = ranks(0, 2, 1);
    g->rank = NULL;
    emu_flight f = {g, SC_BROADCAST, 1, 0, 5, 1};
    if (emu_delay_post(model_of_delay, &f, 0, 0, &err)) no_error();
    assert_int_equal(heard[0].root, 1);
    assert_int_equal(ranks_heard[0][1], 1);
}

static void forgotten(void **state)
{
    (void)state;
    begin_with(&fake);
    emu_group *g = ranks(0, 2, 1);
    post(g, SC_ALL_REDUCE, 1, 1, 0);
    post(g, SC_ALL_REDUCE, 2, 2, 0);
    emu_delay_cancel(model_of_delay, 1);
    finish();
    assert_int_equal(n_heard, 2);
    assert_int_equal(ended[1], 0);
    assert_int_equal(ended[2], 2 * US);
}

static void refused(void **state)
{
    (void)state;
    begin_with(&fake);
    refuses = true;
    emu_flight f = {.group = ranks(0, 2, 1), .bytes = 7};
    assert_int_equal(emu_delay_post(model_of_delay, &f, 0, 0, &err), SC_EINPUT);
    assert_string_equal(
        err.d[0].msg, "the plug-in refuses all_reduce of 7 bytes over 2 ranks");
}

static void what_ifs(void **state)
{
    (void)state;
    const sc_emu_whatif half = {.what = SC_EMU_BANDWIDTH_TIMES, .value = 0.5};
    emu_delay *d = NULL;
    use_machine("dgx-h100:4", SC_EMU_DELAY_PLUGIN);
    conf.plugin = &fake;
    conf.whatif = &half;
    conf.n_whatif = 1;
    assert_int_equal(emu_delay_new(&conf, &arena, &d, &err), SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_CONFLICT);
}

static void opened(void **state)
{
    (void)state;
    const stepcast_delay_plugin *p = NULL;
    assert_int_equal(sc_emu_plugin_open("./none.so", &arena, &p, &err),
                     SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_IO);
    assert_string_equal(err.d[0].file, "--delay-model ./none.so");
    sc_err_init(&err);
    assert_int_equal(sc_emu_plugin_open("libm.so.6", &arena, &p, &err),
                     SC_EINPUT);
    assert_int_equal(err.n, 3);
    assert_string_equal(err.d[0].msg,
                        "it does not export stepcast_delay_post()");
    assert_string_equal(err.d[1].msg,
                        "it does not export stepcast_delay_next()");
    assert_string_equal(err.d[2].msg,
                        "it does not export stepcast_delay_advance()");
}

/* The example: 50 us, then a window of 64 KiB that doubles every millisecond
 * until the pipe of 10 Gbit/s is full. */
static void example(void **state)
{
    (void)state;
    const char *path = getenv("STEPCAST_PLUGIN");
    const stepcast_delay_plugin *p = NULL;
    if (path == NULL) skip();
    if (sc_emu_plugin_open(path, &arena, &p, &err)) no_error();
    begin_with(p);
    emu_group *g = ranks(0, 2, 1);
    /* half of the first window, then one and a half windows */
    sc_time t = alone(g, SC_SEND, 32768);
    assert_true(t >= 550 * US && t < 561 * US);
    t = alone(g, SC_ALL_REDUCE, 98304);
    assert_true(t >= 1300 * US && t < 1311 * US);
    /* full: 100 MB at 1.25 GB/s, alone and together */
    t = alone(g, SC_SEND, 100000000);
    assert_true(t > 80000 * US && t < 86000 * US);
    sc_time from = now;
    post(g, SC_SEND, 100000000, 1, from);
    post(g, SC_SEND, 100000000, 2, from);
    finish();
    assert_true(ended[1] - from > 160000 * US);
    assert_true(ended[1] - from < 166000 * US);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_it_hears), TEST(order),    TEST(pair),   TEST(forgotten),
        TEST(refused),       TEST(what_ifs), TEST(opened), TEST(example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
