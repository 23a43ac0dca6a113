/* SPDX-License-Identifier: Apache-2.0 */
/* test_emu_store.c - the rendezvous store, byte for byte: every message of both
 * dialects, in pieces and at once; what no client sends. */
#include "store_client.h"

/* ---- messages -------------------------------------------------------------------- */

static void torch_1_messages(bool whole)
{
    static const uint32_t real[] = {0, 1};
    begin(2, real, 2); /* nobody is emulated */
    f.whole = whole;
    exchange(0, ".0 'a' 'one'", "");                /* SET */
    exchange(1, ".2 'a'", "'one'");                 /* GET */
    exchange(1, ".3 'n' #5", "#5");                 /* ADD */
    exchange(1, ".3 'n' #-7", "#-2");               /* ADD */
    exchange(0, ".2 'n'", "'-2'");                  /* GET: decimal */
    exchange(0, ".4 #2 'a' 'n'", ".0");             /* CHECK: ready */
    exchange(0, ".4 #2 'a' 'x'", ".1");             /* CHECK: not ready */
    exchange(0, ".4 #0", ".0");                     /* CHECK of nothing */
    exchange(0, ".5 #2 'a' 'n'", ".0");             /* WAIT: there */
    exchange(0, ".6", "#2");                        /* GETNUMKEYS */
    exchange(0, ".1 'a' 'two' 'three'", "'one'");   /* COMPARE_SET: differs */
    exchange(0, ".1 'a' 'one' 'three'", "'three'"); /* the same: set */
    exchange(0, ".1 'b' 'x' 'y'", "'x'"); /* not there, but expected */
    exchange(0, ".1 'b' '' 'y'", "'y'");  /* not there, as expected */
    exchange(1, ".2 'b'", "'y'");
    exchange(2, ".7 'w'", ".3"); /* WATCH_KEY: registered */
    exchange(0, ".0 'w' 'v'", "");
    comes(2, ".1 'w' '' 'v'"); /* created */
    exchange(0, ".0 'w' 'u'", "");
    comes(2, ".0 'w' 'v' 'u'");  /* updated */
    exchange(0, ".8 'w'", "#1"); /* DELETE_KEY */
    comes(2, ".2 'w' 'u' ''");   /* deleted */
    exchange(0, ".8 'w'", "#0");
    exchange(0, ".6", "#3");
    exchange(0, ".0 '' ''", ""); /* no letters at all */
    exchange(0, ".2 ''", "''");
    exchange(0, ".5 #2 'late' 'later'", ""); /* WAIT for two */
    exchange(1, ".0 'later' ''", "");
    comes(0, "");
    exchange(1, ".3 'late' #0", "#0");
    comes(0, ".0");
}

static void torch_1(void **state)
{
    (void)state;
    torch_1_messages(true);
    torch_1_messages(false);
}

static void torch_2_messages(bool whole)
{
    static const uint32_t real[] = {0, 1};
    begin(2, real, 2);
    f.whole = whole;
    validate(0);
    validate(1);
    comes(0, "");
    exchange(0, ".13 %0x01020304", "%0x01020304"); /* PING */
    exchange(0, ".1 'a' 'one'", "");               /* SET */
    exchange(1, ".3 'a'", "'one'");                /* GET */
    exchange(1, ".4 'n' #5", "#5");                /* ADD */
    exchange(1, ".4 'n' #-7", "#-2");
    exchange(0, ".5 #2 'a' 'n'", ".0"); /* CHECK */
    exchange(0, ".5 #2 'a' 'x'", ".1");
    exchange(0, ".6 #1 'a'", ".0");           /* WAIT */
    exchange(0, ".7", "#2");                  /* GETNUMKEYS */
    exchange(0, ".2 'a' 'two' 'x'", "'one'"); /* COMPARE_SET */
    exchange(0, ".2 'a' 'one' 'x'", "'x'");
    exchange(0, ".2 'b' 'x' 'y'", "'x'");
    exchange(0, ".2 'b' '' 'y'", "'y'");
    exchange(0, ".8 'b'", "#1"); /* DELETE_KEY */
    exchange(0, ".8 'b'", "#0");
    exchange(0, ".9 'a' 'yz'", ""); /* APPEND */
    exchange(0, ".9 'fresh' 'f'", "");
    exchange(0, ".10 #2 'a' 'fresh'", "'xyz' 'f'"); /* MULTI_GET */
    exchange(0, ".10 #0", "");
    exchange(0, ".11 #2 'p' '1' 'q' '2'", ""); /* MULTI_SET */
    exchange(0, ".10 #2 'q' 'p'", "'2' '1'");
    exchange(0, ".6 #2 'p' 'late'", ""); /* WAIT */
    exchange(0, ".12", ".1");            /* CANCEL_WAIT */
    exchange(1, ".1 'late' ''", "");
    comes(0, "");
    exchange(0, ".12", ".1"); /* without a wait */
    exchange(0, ".6 #1 'late2'", "");
    exchange(1, ".11 #2 'z' '' 'late2' ''", "");
    comes(0, ".0");
    exchange(0, ".16 'queue'", "#0");     /* QUEUE_LEN */
    exchange(0, ".15 'queue'", "#0");     /* QUEUE_POP of nothing */
    exchange(0, ".14 'queue' 'one'", ""); /* QUEUE_PUSH */
    exchange(0, ".14 'queue' 'two'", "");
    exchange(0, ".16 'queue'", "#2");
    exchange(0, ".5 #1 'queue'", ".0"); /* counts as there */
    exchange(1, ".15 'queue'", "#2 'one'");
    exchange(1, ".15 'queue'", "#1 'two'");
    exchange(1, ".16 'queue'", "#0");
    exchange(0, ".6 #1 'queue'", "");
    exchange(1, ".14 'queue' 'three'", "");
    comes(0, ".0");
    exchange(0, ".18 'barrier' #2", ""); /* BARRIER */
    exchange(1, ".18 'barrier' #2", ".0");
    comes(0, ".0");
    exchange(0, ".18 'barrier' #2", ".0"); /* both have come already */
    exchange(0, ".18 'other' #2", "");
    exchange(0, ".12", ".1"); /* CANCEL_WAIT: it has come all the same */
    exchange(1, ".18 'other' #2", ".0");
    comes(0, "");
}

/* LIST_KEYS: each once, in any order; queues are not listed. */
static void list_of_keys(void **state)
{
    (void)state;
    uint8_t got[64], want[2][64];
    alone(0, 1);
    validate(0);
    exchange(0, ".17", "#0");
    exchange(0, ".11 #2 'a' '1' 'bc' '2'", "");
    exchange(0, ".14 'queue' 'one'", "");
    size_t n = assemble("#2 'a' 'bc'", want[0]);
    assemble("#2 'bc' 'a'", want[1]);
    send_to(0, ".17");
    assert_int_equal(sc_store_output(f.c[0], got, sizeof got), n);
    assert_true(memcmp(got, want[0], n) == 0 || memcmp(got, want[1], n) == 0);
    exchange(0, ".8 'a'", "#1");
    exchange(0, ".17", "#1 'bc'");
}

static void torch_2(void **state)
{
    (void)state;
    torch_2_messages(true);
    torch_2_messages(false);
}

/* 2.1 does not say who it is: it deletes by 7, cancels by 11. */
static void torch_21(void **state)
{
    (void)state;
    static const uint32_t real[] = {0, 1};
    begin(2, real, 2);
    exchange(0, ".0 'a' 'one'", "");
    exchange(0, ".7 'a'", "#1");
    exchange(0, ".8 'a' 'x'", "");
    exchange(0, ".10 #1 'b' 'y'", "");
    exchange(0, ".9 #2 'a' 'b'", "'x' 'y'");
    exchange(1, ".5 #1 'never'", "");
    exchange(1, ".11", ".1");
    exchange(1, ".7 'b'", "#1");
}

static void several_at_once(void **state)
{
    (void)state;
    alone(0, 4);
    f.whole = true;
    exchange(0, ".0 %0x3C85F7CE .1 'a' 'x' .3 'a' .4 'n' #2 .7", "'x' #2 #2");
}

/* ---- what no client sends ------------------------------------------------------ */

typedef struct nonsense {
    const char *bytes;
    sc_code code;
    uint32_t col;
} nonsense;

static const nonsense nonsenses[] = {
    {".99", SC_C_SYNTAX, 1},
    {".0 %0x3C85F7CE .19", SC_C_SYNTAX, 6},
    {".0 %0x3C85F7CE .0 %0x3C85F7CF", SC_C_SYNTAX, 6},
    {".0 %0x3C85F7CD", SC_C_SYNTAX, 1}, /* a key of a gigabyte */
    {".0 'a' 'b' .0 #8193", SC_C_SYNTAX, 20},
    {".0 'k' #104857600", SC_C_SYNTAX, 1},
    {".5 #131073", SC_C_SYNTAX, 1},
    {".5 #-1", SC_C_SYNTAX, 1},
    {".5 #2 'a' #-1", SC_C_SYNTAX, 1},
};

static void refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(nonsenses); i++) {
        uint8_t bytes[256];
        alone(0, 4);
        send_to(1, ".0 'kept' 'x'");
        size_t n = assemble(nonsenses[i].bytes, bytes);
        f.whole = true;
        sc_status s = put(0, bytes, n);
        /* a length of 5 bytes is not read yet: the rest makes it one */
        if (s == SC_OK) s = put(0, "\0\0\0\0\0\0\0\0", 8);
        if (s != SC_EINPUT || f.err.d[0].code != nonsenses[i].code ||
            f.err.d[0].col != nonsenses[i].col)
            fail_msg("%s: status %d, column %u", nonsenses[i].bytes, (int)s,
                     f.err.d[0].col);
        sc_store_close(f.s, f.c[0]);
        exchange(1, ".2 'kept'", "'x'");
    }
}

/* Values by the megabyte: refused in time, and what was closed is free
 * again. */
static void floods(void **state)
{
    (void)state;

    enum { SIZE = 20 << 20 };

    uint8_t *m = calloc(1, SIZE + 64), got[8];
    assert_non_null(m);
    alone(0, 4);
    f.whole = true;
    sc_status s = SC_OK;
    int i = 0;
    for (; s == SC_OK && i < 50; i++) {
        char key[8];
        snprintf(key, sizeof key, "%02d", i);
        uint64_t two = 2, size = SIZE;
        m[0] = 0;
        memcpy(m + 1, &two, 8);
        memcpy(m + 9, key, 2);
        memcpy(m + 11, &size, 8);
        s = put(0, m, 19 + SIZE);
    }
    assert_int_equal(s, SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_TOO_BIG);
    assert_true(i > 2 && i < 20);
    assert_true(f.a.used < (size_t)400 << 20);
    sc_store_close(f.s, f.c[0]);
    send_to(1, ".6");
    assert_int_equal(sc_store_output(f.c[1], got, 8), 8);
    /* one that comes and goes takes no more memory each time */
    size_t used = f.a.used;
    for (int k = 0; k < 50; k++) {
        f.c[0] = sc_store_connect(f.s);
        assert_int_equal(put(0, m, 1000), SC_OK);
        sc_store_close(f.s, f.c[0]);
    }
    assert_true(f.a.used <= used + 4096);
    free(m);
}

static void no_store(void **state)
{
    (void)state;
    static const uint32_t bad[] = {3, 3};
    sc_store *s = NULL;
    alone(0, 4);
    assert_int_equal(sc_store_new(4, bad, 2, &f.a, &s, &f.err), SC_EINPUT);
    assert_int_equal(sc_store_new(3, bad, 1, &f.a, &s, &f.err), SC_EINPUT);
    assert_int_equal(sc_store_new(4, bad, 0, &f.a, &s, &f.err), SC_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(torch_1, tear_down),
        cmocka_unit_test_teardown(torch_2, tear_down),
        cmocka_unit_test_teardown(list_of_keys, tear_down),
        cmocka_unit_test_teardown(torch_21, tear_down),
        cmocka_unit_test_teardown(several_at_once, tear_down),
        cmocka_unit_test_teardown(refused, tear_down),
        cmocka_unit_test_teardown(floods, tear_down),
        cmocka_unit_test_teardown(no_store, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
