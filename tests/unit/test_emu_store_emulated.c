/* SPDX-License-Identifier: Apache-2.0 */
/* test_emu_store_emulated.c - what the rendezvous store answers for emulated
 * ranks. */
#include "store_client.h"

/* ---- emulated ranks ---------------------------------------------------------------- */

static void counters_count_all(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0, 3, 511};
    alone(3, 512);
    exchange(0, ".3 'init/' #1", "#512");
    exchange(0, ".3 '/store_based_barrier_key:1' #1", "#512");
    exchange(0, ".3 '/store_based_barrier_key:1' #0", "#512");
    exchange(0, ".3 '/store_based_barrier_key:1' #1", "#1024");
    exchange(0, ".3 'other' #2", "#2");
    exchange(0, ".8 'init/'", "#1");
    exchange(0, ".3 'init/' #1", "#512");
    begin(512, ranks, 3);
    exchange(0, ".3 'n' #1", "#170");
    exchange(1, ".3 'n' #1", "#341");
    exchange(1, ".3 'n' #0", "#341");
    exchange(2, ".3 'n' #1", "#512");
    exchange(2, ".3 'n' #1", "#682");
    alone(65535, 65536);
    exchange(0, ".3 'n' #1", "#65536");
}

/* PyTorch 2's barrier: whoever is last says so. */
static void barriers_of_2(void **state)
{
    (void)state;
    alone(1, 8);
    validate(0);
    exchange(0, ".4 'b:0' #1", "#8");
    exchange(0, ".6 #1 'b:0:last_worker'", ".0");
    exchange(0, ".3 'b:0:last_worker'", "'1'");
}

/* The message for a barrier: every emulated rank has come. */
static void barrier_message(void **state)
{
    (void)state;
    static const uint32_t two[] = {0, 3};
    alone(1, 8);
    validate(0);
    exchange(0, ".18 'b' #8", ".0");
    exchange(0, ".3 'b'", "'8'");
    exchange(0, ".18 'part' #4", ".0");
    begin(8, two, 2);
    validate(0);
    validate(1);
    exchange(0, ".18 'b' #8", "");
    assert_int_equal(store_tick(f.s, 0), -1); /* however long it takes */
    assert_int_equal(store_tick(f.s, 1000000), -1);
    exchange(1, ".18 'b' #8", ".0");
    comes(0, ".0");
    exchange(0, ".3 'b'", "'8'");
    /* Of a part of the world one real rank may be the only one: it is answered
     * when the other one waits, too, or late. */
    exchange(0, ".18 'part' #4", "");
    exchange(1, ".6 #1 'part2'", "");
    comes(0, ".0");
    exchange(1, ".1 'part2' ''", "");
    exchange(0, ".18 'part3' #4", "");
    int ms = store_tick(f.s, 0);
    assert_true(ms >= 1000);
    comes(0, "");
    assert_int_equal(store_tick(f.s, ms), -1);
    comes(0, ".0");
}

static void emulated_ranks_do_as_real_ones(void **state)
{
    (void)state;
    alone(3, 8);
    /* addresses: a real one, then everyone's */
    exchange(0, ".0 '/g/3' 'address'", "");
    exchange(0, ".5 #3 '/g/0' '/g/3' '/g/7'", ".0");
    exchange(0, ".2 '/g/7'", "'address'");
}

static void identity(int client, const char *get, uint8_t *out)
{
    uint8_t got[136];
    uint64_t len;
    send_to(client, get);
    assert_int_equal(sc_store_output(f.c[client], got, sizeof got), 136);
    assert_false(sc_store_has_output(f.c[client]));
    memcpy(&len, got, sizeof len);
    assert_int_equal(len, 128);
    memcpy(out, got + 8, 128);
}

/* A large communicator has several roots, each of which sets its identity; all
 * are asked for at once. */
static void several_roots(void)
{
    uint8_t got[3 * 136];
    send_to(0, ".10 #3 '/p/UniqueNCCLID:0' '/p/UniqueNCCLID:1' "
               "'/p/UniqueNCCLID:2'");
    assert_int_equal(sc_store_output(f.c[0], got, sizeof got), sizeof got);
    for (int i = 0; i < 3; i++) {
        uint64_t len;
        memcpy(&len, got + 136 * i, 8);
        assert_int_equal(len, 128);
        assert_memory_equal(got + 136 * i + 8, SC_STORE_ID_TAG, 8);
    }
    assert_memory_not_equal(got + 8, got + 136 + 8, 128);
}

static void made_up(void **state)
{
    (void)state;
    uint8_t one[128], two[128], again[128];
    alone(3, 8);
    validate(0);
    exchange(0, ".6 #1 '/default_pg/0//cuda//0'", ".0");
    identity(0, ".3 '/default_pg/0//cuda//0'", one);
    identity(0, ".3 '/default_pg/1//cuda//0'", two);
    identity(0, ".3 '/default_pg/0//cuda//0'", again);
    assert_memory_equal(one, again, 128);
    assert_memory_not_equal(one, two, 128);
    assert_memory_equal(one, SC_STORE_ID_TAG, 8);
    several_roots();
    identity(0, ".3 '/p/UniqueNCCLID:1'", two);
    /* not that of another communicator which this rank made */
    exchange(0, ".1 '/default_pg/5//cuda//3' 'x'", "");
    uint8_t set[512];
    size_t n = assemble(".1 '/default_pg/6//cuda//3' ", set);
    uint64_t len = 128;
    memcpy(set + n, &len, 8);
    memset(set + n + 8, 'u', 128);
    assert_int_equal(put(0, set, n + 136), SC_OK);
    identity(0, ".3 '/default_pg/6//cuda//0'", two);
    assert_true(two[0] == 's' && two[127] != 'u');
    exchange(0, ".6 #1 '/x/SEQ_NUM_STORE_KEY'", ".0");
    exchange(0, ".3 '/x/SEQ_NUM_STORE_KEY'", "#8 #1");
    exchange(0, ".6 #2 'word' '/rank5/word'", ".0");
    exchange(0, ".3 'word'", "''");
}

/* Only what tells of a failure is never made up: it is waited for and polled
 * while all is well. */
static void failures_are_not_made_up(void **state)
{
    (void)state;
    alone(0, 8);
    exchange(0, ".5 #1 '/NCCLABORTEDCOMM:12'", "");
    exchange(0, ".4 #1 '/x/exception_dump'", ".1");
    comes(0, "");
    validate(1);
    exchange(1, ".6 #1 '/remote_error'", "");
    exchange(1, ".12", ".1");
    exchange(1, ".5 #1 'stuff'", ".1"); /* CHECK does not guess */
}

/* A client of 1.x has a timeout of its own and then asks on. */
static void given_up(void **state)
{
    (void)state;
    alone(0, 8);
    exchange(0, ".5 #1 'abort'", "");
    exchange(0, ".6", "#0");
    exchange(1, ".0 'abort' ''", "");
    comes(0, "");
}

static const uint32_t pair[] = {1, 8};

static void real_ranks_are_waited_for(void **state)
{
    (void)state;
    begin(16, pair, 2);
    /* rank 8's own key: only it sets that */
    exchange(0, ".5 #1 '/x/rank8/y'", "");
    exchange(1, ".0 '/x/rank8/y' 'v'", "");
    comes(0, ".0");
    /* an emulated one's, as soon as a real one's is there */
    exchange(0, ".5 #1 '/x/rank9/z'", "");
    exchange(1, ".0 '/x/rank8/z' 'v'", "");
    comes(0, ".0");
    exchange(0, ".2 '/x/rank9/z'", "'v'");
}

/* All real ranks wait: the one furthest behind for an emulated rank. */
static void all_wait(void **state)
{
    (void)state;
    uint8_t uid[128];
    begin(16, pair, 2);
    exchange(0, ".5 #1 '/p/10//cuda//0'", "");
    exchange(1, ".5 #1 '/p/9//cuda//0'", ".0");
    comes(0, "");
    identity(1, ".2 '/p/9//cuda//0'", uid);
    exchange(1, ".0 '/p/10//cuda//0' 'real'", "");
    comes(0, ".0");
    exchange(0, ".2 '/p/10//cuda//0'", "'real'");
    /* asking for a barrier again and again is waiting, until it is complete */
    exchange(0, ".3 'b' #1", "#8");
    exchange(0, ".3 'b' #0", "#8");
    exchange(1, ".5 #1 '/p/12//cuda//0'", ".0");
    exchange(1, ".3 'b' #1", "#16");
    exchange(1, ".5 #1 '/p/13//cuda//0'", "");
    exchange(0, ".0 '/p/13//cuda//0' 'real'", "");
    comes(1, ".0");
    /* watchdogs don't count */
    exchange(2, ".5 #1 '/NCCLABORTEDCOMM:x'", "");
    exchange(0, ".5 #1 '/p/11//cuda//0'", "");
    comes(0, "");
}

/* A clock helps where the others wait elsewhere. */
static void patience(void **state)
{
    (void)state;
    uint8_t uid[128];
    begin(16, pair, 2);
    assert_int_equal(store_tick(f.s, 0), -1);
    exchange(0, ".5 #1 '/x/SEQ_NUM_STORE_KEY'", "");
    int ms = store_tick(f.s, 5000);
    assert_true(ms > 0 && ms <= 1000);
    comes(0, "");
    assert_int_equal(store_tick(f.s, 5000 + ms), -1);
    comes(0, ".0");
    exchange(0, ".5 #2 '/p/3//cuda//0' '/p/3//cuda//1'", "");
    ms = store_tick(f.s, 10000);
    assert_true(ms >= 5000);
    assert_true(store_tick(f.s, 10001) == ms - 1);
    comes(0, "");
    assert_int_equal(store_tick(f.s, 10000 + ms), ms); /* the second */
    assert_int_equal(store_tick(f.s, 10000 + 2 * ms), -1);
    comes(0, ".0");
    identity(0, ".2 '/p/3//cuda//0'", uid);
    /* rank 0 is real: what it sets first of all is waited for */
    static const uint32_t with_0[] = {0, 8};
    begin(16, with_0, 2);
    exchange(1, ".5 #1 '/default_pg/0//cuda//0'", "");
    assert_int_equal(store_tick(f.s, 0), -1);
    assert_int_equal(store_tick(f.s, 1000000), -1);
    comes(1, "");
}

static void large_worlds(void **state)
{
    (void)state;

    enum { N = 65536 };

    size_t n = 0;
    uint8_t *m = NULL;
    alone(4097, N);
    validate(0);
    send_to(0, ".1 '/g/4097' 'address'");
    m = malloc((size_t)N * 20 + 9);
    assert_non_null(m);
    uint64_t count = N;
    m[n++] = 6;
    memcpy(m + n, &count, 8);
    n += 8;
    for (uint32_t i = 0; i < N; i++) {
        char key[16];
        uint64_t len = (uint64_t)snprintf(key, sizeof key, "/g/%u", i);
        memcpy(m + n, &len, 8);
        memcpy(m + n + 8, key, (size_t)len);
        n += 8 + (size_t)len;
    }
    for (size_t at = 0; at < n; at += 1400)
        assert_int_equal(sc_store_input(f.s, f.c[0], m + at,
                                        n - at < 1400 ? n - at : 1400, &f.err),
                         SC_OK);
    comes(0, ".0");
    m[0] = 10;
    f.whole = true;
    assert_int_equal(put(0, m, n), SC_OK);
    uint8_t got[15];
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(sc_store_output(f.c[0], got, sizeof got), 15);
        assert_memory_equal(got + 8, "address", 7);
    }
    assert_false(sc_store_has_output(f.c[0]));
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(counters_count_all, tear_down),
        cmocka_unit_test_teardown(barriers_of_2, tear_down),
        cmocka_unit_test_teardown(barrier_message, tear_down),
        cmocka_unit_test_teardown(emulated_ranks_do_as_real_ones, tear_down),
        cmocka_unit_test_teardown(made_up, tear_down),
        cmocka_unit_test_teardown(failures_are_not_made_up, tear_down),
        cmocka_unit_test_teardown(given_up, tear_down),
        cmocka_unit_test_teardown(real_ranks_are_waited_for, tear_down),
        cmocka_unit_test_teardown(all_wait, tear_down),
        cmocka_unit_test_teardown(patience, tear_down),
        cmocka_unit_test_teardown(large_worlds, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
