/* SPDX-License-Identifier: Apache-2.0 */
/* A world for several real ranks, which are threads here: who hears what when,
 * and what they give each other.  The live tests have them as processes. */
#define _XOPEN_SOURCE 700 /* P_tmpdir */
#include "emu/shared.h"
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define US 1000000LL

static struct fixture {
    char folder[256], path[300], times[300];
    sc_arena arena, ranks[2];
    sc_err err;
    sc_emu_shared *world;
    sc_emu_port *port[2];
    pthread_t thread;
} f;

static void *serve(void *arg)
{
    sc_err err;
    (void)arg;
    sc_err_init(&err);
    return sc_emu_serve_world(f.world, &err) == SC_OK ? NULL : &f;
}

/* 8 ranks, 0 and 1 real; an operation takes 100 us and 1 us per 1000 bytes. */
static void open_world(bool virt)
{
    const char *tmp = getenv("TMPDIR"), *ranks[] = {"0-1", NULL};
    char model[320];
    static const char times[] =
        "ranks: 8\ndefault: {alpha: 100us, beta: 1GB/s, cpu_alpha: 7us}\n";
    memset(&f, 0, sizeof f);
    snprintf(f.folder, sizeof f.folder, "%s/stepcast-shared-XXXXXX",
             tmp ? tmp : P_tmpdir);
    assert_non_null(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%s/shared", f.folder);
    snprintf(f.times, sizeof f.times, "%s/times.yml", f.folder);
    snprintf(model, sizeof model, "alpha-beta:%s", f.times);
    sc_arena_init(&f.arena, 0);
    sc_err_init(&f.err);
    assert_int_equal(sc_file_write(f.times, times, strlen(times), &f.err),
                     SC_OK);
    sc_emu_options o = {.cluster = "ring8@100GB/s,1us",
                        .world_size = 8,
                        .ranks = ranks,
                        .clock = virt ? SC_EMU_VIRTUAL : SC_EMU_REAL,
                        .delay_model = model,
                        .peer_data = "mirror",
                        .peers = "mirror"};
    sc_emu_config c;
    assert_int_equal(sc_emu_resolve(&o, &f.arena, &c, &f.err), SC_OK);
    assert_int_equal(sc_emu_shared_new(f.path, &c, &f.arena, &f.world, &f.err),
                     SC_OK);
    for (uint32_t i = 0; i < 2; i++) {
        sc_arena_init(&f.ranks[i], 0);
        assert_int_equal(
            sc_emu_port_open(f.path, i, &f.ranks[i], &f.port[i], &f.err),
            SC_OK);
    }
    assert_int_equal(pthread_create(&f.thread, NULL, serve, NULL), 0);
}

static void close_world(void)
{
    void *failed;
    sc_emu_shared_stop(f.world);
    assert_int_equal(pthread_join(f.thread, &failed), 0);
    assert_null(failed);
    sc_emu_shared_close(f.world);
    for (uint32_t i = 0; i < 2; i++) sc_arena_free(&f.ranks[i]);
    sc_arena_free(&f.arena);
    unlink(f.path);
    unlink(f.times);
    rmdir(f.folder);
}

/* ---- what ranks do -------------------------------------------------------------- */

static sc_emu_cell post(uint32_t rank, uint64_t bytes, sc_time t)
{
    sc_emu_cell k;
    sc_emu_op op = {.coll = SC_ALL_REDUCE, .bytes = bytes};
    assert_int_equal(sc_emu_port_post(f.port[rank], &op, false, t, &k, &f.err),
                     SC_OK);
    return k;
}

static bool is_done(uint32_t rank, sc_emu_cell k, sc_time *begin, sc_time *end)
{
    bool done;
    assert_int_equal(
        sc_emu_port_done(f.port[rank], k, &done, begin, end, &f.err), SC_OK);
    return done;
}

static void until_done(uint32_t rank, sc_emu_cell k, sc_time *begin,
                       sc_time *end)
{
    uint32_t seen = sc_emu_port_seen(f.port[rank]);
    while (!is_done(rank, k, begin, end)) {
        sc_emu_port_sleep(f.port[rank], seen, SC_PS_PER_S);
        seen = sc_emu_port_seen(f.port[rank]);
    }
}

static sc_emu_cell await(uint32_t rank, sc_emu_cell k, sc_time now, sc_time by)
{
    sc_emu_cell a;
    assert_int_equal(sc_emu_port_await(f.port[rank], k, now, by, &a, &f.err),
                     SC_OK);
    return a;
}

/* ---- tests ---------------------------------------------------------------------- */

static void test_virtual_order(void **state)
{
    (void)state;
    sc_time begin, end;
    bool canceled;
    open_world(true);
    /* Rank 1 could still call it earlier: nothing moves, however long. */
    sc_emu_cell a = post(0, 1000, 50 * US), w = await(0, a, 50 * US, 500 * US);
    sc_emu_port_sleep(f.port[0], sc_emu_port_seen(f.port[0]), SC_PS_PER_S / 50);
    assert_false(is_done(0, w, &begin, &end));
    sc_emu_cell b = post(1, 1000, 80 * US),
                v = await(1, b, 80 * US, SC_TIME_MAX);
    until_done(0, w, &begin, &end);
    until_done(1, v, &begin, &end);
    assert_true(is_done(0, a, &begin, &end) && is_done(1, b, &begin, &end));
    assert_int_equal(begin, 80 * US);
    assert_int_equal(end, 181 * US);
    /* Too late: it is still there. */
    assert_int_equal(
        sc_emu_port_cancel(f.port[0], a, 181 * US, &canceled, &f.err), SC_OK);
    assert_false(canceled);
    assert_true(is_done(0, a, &begin, &end));
    sc_emu_port_free(f.port[0], a);
    sc_emu_port_free(f.port[0], w);
    /* Given up before the other one comes. */
    a = post(0, 1000, 200 * US);
    w = await(0, a, 200 * US, 300 * US);
    b = post(1, 1000, 301 * US);
    until_done(0, w, &begin, &end);
    assert_false(is_done(0, a, &begin, &end));
    assert_int_equal(
        sc_emu_port_cancel(f.port[0], a, 300 * US, &canceled, &f.err), SC_OK);
    /* Cancelled while it is waited for: the wait is over. */
    a = post(0, 1000, 310 * US);
    w = await(0, a, 310 * US, SC_TIME_MAX);
    assert_int_equal(
        sc_emu_port_cancel(f.port[0], a, 320 * US, &canceled, &f.err), SC_OK);
    assert_true(canceled);
    until_done(0, w, &begin, &end);
    sc_emu_port_leave(f.port[0]);
    assert_int_equal(sc_emu_port_look(f.port[1], 400 * US, &f.err), SC_OK);
    assert_false(is_done(1, b, &begin, &end));
    assert_true(sc_emu_port_is_gone(f.port[1], 0));
    assert_false(sc_emu_port_is_gone(f.port[1], 1));
    close_world();
}

static void test_questions(void **state)
{
    (void)state;
    uint32_t list[3] = {0, 1, 5}, group, n_real;
    sc_time cpu, begin, end;
    sc_text why;
    open_world(false);
    assert_int_equal(
        sc_emu_port_group(f.port[0], NULL, 0, 0, 0, &group, &n_real, &f.err),
        SC_OK);
    assert_int_equal(group, 0);
    assert_int_equal(n_real, 2);
    assert_int_equal(
        sc_emu_port_group(f.port[0], list, 3, 0, 0, &group, &n_real, &f.err),
        SC_OK);
    uint32_t first = group;
    assert_int_equal(
        sc_emu_port_group(f.port[1], list, 3, 0, 0, &group, &n_real, &f.err),
        SC_OK);
    assert_int_equal(group, first);
    assert_int_not_equal(group, 0);
    list[2] = 99;
    assert_int_equal(
        sc_emu_port_group(f.port[1], list, 3, 0, 0, &group, &n_real, &f.err),
        SC_EINPUT);
    sc_emu_op op = {.coll = SC_ALL_REDUCE};
    assert_int_equal(sc_emu_port_cpu(f.port[0], &op, 0, &cpu, &f.err), SC_OK);
    assert_int_equal(cpu, 7 * US);
    sc_emu_cell k = post(0, 1000, 0);
    sc_text_init(&why);
    assert_int_equal(sc_emu_port_why(f.port[0], k, 0, &why, &f.err), SC_OK);
    assert_string_equal(why.buf, "real rank 1 has not called it");
    sc_text_free(&why);
    assert_int_equal(sc_emu_port_waited(f.port[0], 0, US, &f.err), SC_OK);
    sc_emu_cell other = post(1, 1000, 0);
    until_done(0, k, &begin, &end);
    until_done(1, other, &begin, &end);
    assert_int_equal(end - begin, 101 * US);
    close_world();
}

/* Members that call different operations: whoever comes last hears of it. */
static void test_conflict(void **state)
{
    (void)state;
    bool done;
    sc_time begin, end;
    open_world(true);
    post(0, 1000, 10 * US);
    sc_emu_cell k = post(1, 3000, 20 * US), w = await(1, k, 20 * US, 30 * US);
    sc_emu_port_leave(f.port[0]);
    (void)w;
    sc_status s = SC_OK;
    while (s == SC_OK) {
        uint32_t seen = sc_emu_port_seen(f.port[1]);
        s = sc_emu_port_done(f.port[1], k, &done, &begin, &end, &f.err);
        assert_false(done);
        if (s == SC_OK) sc_emu_port_sleep(f.port[1], seen, SC_PS_PER_S);
    }
    assert_int_equal(s, SC_EINPUT);
    assert_non_null(
        strstr(f.err.d[0].msg, "rank 1 calls all_reduce of 3000 B"));
    close_world();
}

/* Of questions for one time the lower rank's is first, whoever asked first: here
 * rank 1 did, and is the one that comes last all the same. */
static void test_ties_by_rank(void **state)
{
    (void)state;
    bool done;
    sc_time begin, end;
    open_world(true);
    sc_emu_cell k = post(1, 3000, 20 * US);
    post(0, 1000, 20 * US);
    (void)await(1, k, 20 * US, 30 * US);
    sc_emu_port_leave(f.port[0]);
    sc_status s = SC_OK;
    for (int i = 0; s == SC_OK && i < 60; i++) {
        uint32_t seen = sc_emu_port_seen(f.port[1]);
        s = sc_emu_port_done(f.port[1], k, &done, &begin, &end, &f.err);
        if (s == SC_OK) sc_emu_port_sleep(f.port[1], seen, SC_PS_PER_S);
    }
    assert_int_equal(s, SC_EINPUT);
    assert_non_null(
        strstr(f.err.d[0].msg, "rank 1 calls all_reduce of 3000 B"));
    close_world();
}

/* Silent operations only bring the real members together. */
static void test_meet(void **state)
{
    (void)state;
    sc_emu_cell k[2][3];
    sc_time begin, end;
    open_world(true);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t r = 0; r < 2; r++) {
            sc_emu_op op = {.coll = SC_ALL_GATHER, .bytes = r ? 2 - i : i};
            assert_int_equal(sc_emu_port_post(f.port[r], &op, true,
                                              (10 * (i + 1) + r) * US, &k[r][i],
                                              &f.err),
                             SC_OK);
        }
    for (uint32_t r = 0; r < 2; r++) sc_emu_port_leave(f.port[r]);
    for (uint32_t i = 0; i < 3; i++) {
        until_done(0, k[0][i], &begin, &end);
        uint32_t other = 2 - i;
        sc_time a = 10 * (i + 1) * US, b = (10 * (other + 1) + 1) * US;
        assert_int_equal(begin, a > b ? a : b);
        assert_int_equal(end, begin);
        until_done(1, k[1][other], &begin, &end);
        assert_int_equal(end, a > b ? a : b);
    }
    close_world();
}

static void test_data(void **state)
{
    (void)state;
    size_t len;
    open_world(false);
    for (uint64_t i = 0; i < 3000; i++) {
        sc_emu_key key = {0, SC_EMU_NO_CELL, SC_EMU_NO_CELL, i};
        uint64_t v[600] = {i, 7};
        size_t n = (1 + i % 600) * sizeof *v;
        assert_null(sc_emu_port_peek(f.port[1], 0, &key, &len));
        assert_false(sc_emu_port_drop(f.port[1], 0, &key));
        assert_int_equal(sc_emu_port_push(f.port[0], &key, v, n, 2, &f.err),
                         SC_OK);
        const uint64_t *p = sc_emu_port_peek(f.port[1], 0, &key, &len);
        assert_non_null(p);
        assert_int_equal(len, n);
        assert_int_equal(p[0], i);
        assert_true(sc_emu_port_drop(f.port[1], 0, &key));
        assert_non_null(sc_emu_port_peek(f.port[0], 0, &key, &len));
        assert_true(sc_emu_port_drop(f.port[0], 0, &key));
        assert_false(sc_emu_port_drop(f.port[0], 0, &key));
    }
    close_world();
}

static void test_refused(void **state)
{
    (void)state;
    sc_emu_port *p;
    open_world(false);
    assert_int_equal(sc_emu_port_open(f.path, 0, &f.ranks[0], &p, &f.err),
                     SC_EINPUT);
    assert_non_null(strstr(f.err.d[0].msg, "rank 0 has run already"));
    assert_int_equal(sc_emu_port_open(f.path, 3, &f.ranks[0], &p, &f.err),
                     SC_EINPUT);
    assert_int_equal(sc_emu_port_open(f.times, 0, &f.ranks[0], &p, &f.err),
                     SC_EINPUT);
    sc_emu_op op = {.coll = SC_ALL_REDUCE};
    sc_emu_cell k;
    sc_status s = SC_OK;
    for (uint32_t i = 0; s == SC_OK && i <= SHARED_CELLS; i++)
        s = sc_emu_port_post(f.port[0], &op, false, 0, &k, &f.err);
    assert_int_equal(s, SC_EINPUT);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_virtual_order),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_conflict),
        cmocka_unit_test(test_ties_by_rank),
        cmocka_unit_test(test_meet),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
