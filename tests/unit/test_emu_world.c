/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of an emulated world: who meets whom, when they begin and end. */
#include "emu_world.h"

#include <stdlib.h>
#include <unistd.h>

static void text_is(const sc_emu *e, uint64_t ticket, const char *want)
{
    sc_text t;
    sc_text_init(&t);
    sc_emu_why(e, ticket, &t);
    assert_string_equal(t.buf, want);
    sc_text_free(&t);
}

static void error_is(sc_code code, const char *msg)
{
    assert_int_equal(err.n, 1);
    assert_int_equal(err.d[0].code, code);
    assert_string_equal(err.d[0].msg, msg);
}

static void one_rank(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){0});
    assert_true(sc_emu_next(e) == SC_TIME_MAX);
    uint64_t k = all_reduce(e, 0, 0, 5000, 3 * US);
    assert_true(sc_emu_next(e) == 3 * US); /* it begins */
    sc_emu_end x = end_of(e, k);
    assert_int_equal(x.rank, 0);
    assert_true(x.begin == 3 * US && x.end == 18 * US);
    text_is(e, k, "");
    assert_true(sc_emu_next(e) == SC_TIME_MAX);
}

/* The world may have been advanced beyond the call: what has gone by is taken
 * off the latency. */
static void late_call(void **state)
{
    (void)state;
    static const char text[] = "default: {alpha: 10us, beta: 1GB/s}\n";
    const sc_emu_end *end;
    sc_emu *e;
    sc_emu_config c = config_of(&(asked){0});
    char path[] = "/tmp/stepcast-emu-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) > 0);
    close(fd);
    c.delay = SC_EMU_DELAY_ALPHA_BETA;
    c.delay_file = path;
    if (sc_emu_new(&c, &arena, &e, &err) != SC_OK) no_error();
    unlink(path);
    assert_int_equal(sc_emu_advance(e, 50 * US, &end), 0);
    sc_emu_end x = end_of(e, all_reduce(e, 0, 0, 0, 46 * US));
    assert_true(x.begin == 46 * US);
    assert_true(x.end == 56 * US);
    x = end_of(e, all_reduce(e, 0, 0, 0, 0)); /* not below 0 */
    assert_true(x.begin == 0 && x.end == 56 * US);
}

static void in_order_of_time(void **state)
{
    (void)state;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){.ranks = "0,4"});
    uint64_t a = all_reduce(e, 0, 0, 3000, 1 * US);
    uint64_t b = all_reduce(e, 0, 0, 1000, 3 * US);
    uint64_t c = all_reduce(e, 0, 4, 3000, 2 * US);
    uint64_t d = all_reduce(e, 0, 4, 1000, 2 * US);
    assert_int_equal(sc_emu_advance(e, MS, &end), 4);
    assert_true(end[0].ticket == b && end[0].rank == 0);
    assert_true(end[1].ticket == d && end[1].rank == 4);
    assert_true(end[0].begin == 3 * US && end[0].end == 14 * US);
    assert_true(end[2].ticket == a && end[3].ticket == c);
    assert_true(end[3].begin == 2 * US && end[3].end == 15 * US);
    assert_int_equal(sc_emu_advance(e, MS, &end), 0);
}

/* Operations that begin at one time are handed to the delay model in the order
 * in which they were called: those that share links depend on it. */
static void ties_by_call(void **state)
{
    (void)state;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){0});
    for (uint64_t i = 0; i < 8; i++) all_reduce(e, 0, 0, 1000 * i, 5 * US);
    assert_int_equal(sc_emu_advance(e, 5 * US, &end), 0);
    assert_int_equal(plug_n, 8);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(plug[i].end, 5 * US + plug_takes(1000 * i));
}

/* The n-th call of one is the n-th of the other, however far ahead it is. */
static void ordinals(void **state)
{
    (void)state;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){.ranks = "1,3,6"});
    uint64_t k[3][20];
    for (uint32_t i = 0; i < 20; i++)
        k[0][i] = all_reduce(e, 0, 3, 100 * i, (sc_time)i * US);
    text_is(e, k[0][19], "real rank 1 and 1 other have not called it");
    for (uint32_t i = 0; i < 20; i++) {
        k[1][i] = all_reduce(e, 0, 1, 100 * i, 0);
        if (i % 2) continue;
        text_is(e, k[0][i], "real rank 6 has not called it");
        k[2][i] = all_reduce(e, 0, 6, 100 * i, 0);
        k[2][i + 1] = all_reduce(e, 0, 6, 100 * (i + 1), 0);
    }
    assert_int_equal(sc_emu_advance(e, MS, &end), 60);
    for (uint32_t i = 0; i < 60; i++) {
        sc_time n = i / 3;
        assert_true(end[i].begin == n * US);
        assert_true(end[i].end == n * US + plug_takes(100 * (uint64_t)n));
        assert_true(end[i].ticket == k[0][n] || end[i].ticket == k[1][n] ||
                    end[i].ticket == k[2][n]);
    }
}

static void wrong_order(void **state)
{
    (void)state;
    uint64_t k;
    uint32_t first[4] = {0, 2, 4, 6};
    sc_emu *e = world_of(&(asked){.ranks = "0,4"});
    uint32_t g = group_of(e, first, 4);
    sc_emu_op op = {.coll = SC_ALL_GATHER, .rank = 4, .bytes = 4096};
    for (int i = 0; i < 17; i++) {
        all_reduce(e, 0, 0, 1024, 0);
        all_reduce(e, 0, 4, 1024, 0);
    }
    all_reduce(e, 0, 0, 1024, 0);
    assert_int_equal(sc_emu_post(e, &op, 0, &k, &err), SC_EINPUT);
    error_is(SC_C_CONFLICT,
             "rank 4 calls all_gather of 4096 B where rank 0 called all_reduce "
             "of 1024 B, call 17 of the group of ranks 0-7");
    sc_err_init(&err);
    call(
        e,
        (sc_emu_op){
            .coll = SC_BROADCAST, .group = g, .rank = 0, .peer = 2, .bytes = 8},
        0);
    op = (sc_emu_op){
        .coll = SC_BROADCAST, .group = g, .rank = 4, .peer = 6, .bytes = 8};
    assert_int_equal(sc_emu_post(e, &op, 0, &k, &err), SC_EINPUT);
    error_is(SC_C_CONFLICT,
             "rank 4 calls broadcast from rank 6 of 8 B where rank 0 called "
             "broadcast from rank 2 of 8 B, call 0 of the group of ranks 0, 2, "
             "4, 6");
}

static void sizes(void **state)
{
    (void)state;
    uint64_t k;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){.ranks = "0,4"});
    sc_emu_op op = {.coll = SC_ALL_TO_ALL, .rank = 0, .bytes = 1000};
    call(e, op, 0); /* uneven shares: as if all had the largest */
    op.rank = 4;
    op.bytes = 9000;
    call(e, op, 0);
    assert_int_equal(sc_emu_advance(e, MS, &end), 2);
    assert_true(end[0].end == plug_takes(9000));
    all_reduce(e, 0, 0, 8, 0);
    op.coll = SC_ALL_REDUCE;
    assert_int_equal(sc_emu_post(e, &op, 0, &k, &err), SC_EINPUT);
    error_is(SC_C_CONFLICT,
             "rank 4 calls all_reduce of 9000 B where rank 0 called all_reduce "
             "of 8 B, call 1 of the group of ranks 0-7");
}

static void out_of_range(void **state)
{
    (void)state;
    uint64_t k;
    uint32_t pair[2] = {0, 1};
    sc_emu *e = world_of(&(asked){0});
    uint32_t g = group_of(e, pair, 2);

    static const struct {
        sc_emu_op op;
        const char *msg;
    } c[] = {
        {{.coll = SC_ALL_REDUCE, .group = 9, .rank = 0, .peer = 0, .bytes = 8},
         "there is no group 9, or no operation 0"},
        {{.coll = SC_ALL_REDUCE, .group = 0, .rank = 5, .peer = 0, .bytes = 8},
         "rank 5 calls all_reduce, but is not real"},
        {{.coll = SC_REDUCE, .group = 1, .rank = 0, .peer = 5, .bytes = 8},
         "rank 0 calls reduce with rank 5, which is not in the group"},
        {{.coll = SC_SEND, .group = 1, .rank = 0, .peer = 2, .bytes = 8},
         "rank 0 calls send with rank 2, which is not in the group"},
    };

    assert_int_equal(g, 1);
    for (size_t i = 0; i < SC_COUNT(c); i++) {
        sc_err_init(&err);
        assert_int_equal(sc_emu_post(e, &c[i].op, 0, &k, &err), SC_EINPUT);
        error_is(SC_C_RANGE, c[i].msg);
    }
    uint32_t others[2] = {2, 3};
    g = group_of(e, others, 2);
    assert_int_equal(sc_emu_group_real(e, g), 0);
    sc_err_init(&err);
    sc_emu_op op = {.coll = SC_BARRIER, .group = g};
    assert_int_equal(sc_emu_post(e, &op, 0, &k, &err), SC_EINPUT);
    error_is(SC_C_RANGE, "rank 0 calls barrier, but is not in the group");
}

static sc_emu_op message(sc_coll coll, uint32_t rank, uint32_t peer,
                         uint64_t bytes)
{
    return (sc_emu_op){
        .coll = coll, .rank = rank, .peer = peer, .bytes = bytes};
}

/* To and from emulated ranks: they come at the same time. */
static void emulated_messages(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){.ranks = "2"});
    sc_emu_end x = end_of(e, call(e, message(SC_SEND, 2, 3, 100), 5 * US));
    assert_true(x.begin == 5 * US && x.end == 5 * US + plug_takes(100));
    assert_string_equal(plug_last.op, "send");
    assert_int_equal(plug_last.n, 2);
    assert_true(plug_pair[0] == 2 && plug_pair[1] == 3);
    x = end_of(e, call(e, message(SC_RECV, 2, 1, 300), 50 * US));
    assert_true(x.begin == 50 * US && x.end == 50 * US + plug_takes(300));
    assert_true(plug_pair[0] == 1 && plug_pair[1] == 2);
}

/* Between real ones: in order, of which either side may come first. */
static void real_messages(void **state)
{
    (void)state;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){.ranks = "1,2"});
    uint64_t a = call(e, message(SC_SEND, 1, 2, 100), 5 * US);
    uint64_t b = call(e, message(SC_SEND, 1, 2, 200), 6 * US);
    uint64_t c = call(e, message(SC_SEND, 2, 1, 400), 7 * US);
    text_is(e, a, "real rank 2 has not called its receive");
    assert_true(sc_emu_next(e) == SC_TIME_MAX);
    uint64_t d = call(e, message(SC_RECV, 2, 1, 1000), 8 * US);
    uint64_t f = call(e, message(SC_RECV, 2, 1, 1000), 9 * US);
    uint64_t g = call(e, message(SC_RECV, 2, 1, 1000), 9 * US);
    text_is(e, g, "real rank 1 has not called its send");
    uint64_t h = call(e, message(SC_RECV, 1, 2, 400), 10 * US);
    assert_int_equal(sc_emu_advance(e, MS, &end), 6);
    assert_true(end[0].ticket == a && end[1].ticket == d);
    assert_true(end[0].begin == 8 * US);
    assert_true(end[0].end == 8 * US + plug_takes(100));
    assert_true(end[2].ticket == b && end[3].ticket == f);
    assert_true(end[2].end == 9 * US + plug_takes(200));
    assert_true(end[4].ticket == c && end[5].ticket == h);
    assert_true(end[5].end == 10 * US + plug_takes(400));
    sc_emu_op op = message(SC_SEND, 1, 2, 1001);
    assert_int_equal(sc_emu_post(e, &op, 0, &a, &err), SC_EINPUT);
    error_is(SC_C_CONFLICT,
             "rank 2 calls recv of 1000 B where rank 1 called send of 1001 B, "
             "in the group of ranks 0-7");
}

/* No link is used. */
static void to_itself(void **state)
{
    (void)state;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){0});
    call(e, message(SC_SEND, 0, 0, 100), 5 * US);
    call(e, message(SC_RECV, 0, 0, 100), 6 * US);
    assert_int_equal(sc_emu_advance(e, MS, &end), 2);
    assert_true(end[0].end == 6 * US && end[1].end == 6 * US);
}

static void sends(sc_emu *e, uint32_t from, int32_t tag, uint64_t bytes,
                  sc_time t)
{
    sc_emu_op op = message(SC_SEND, from, 2, bytes);
    op.tag = tag;
    op.seq = (uint64_t)(100 + tag);
    op.eager = true;
    call(e, op, t);
}

/* A receive of rank 2. */
static sc_emu_op receive(uint32_t from, int32_t tag, sc_emu_take take)
{
    sc_emu_op op = message(SC_RECV, 2, from, 1000);
    op.tag = tag;
    op.take = (uint8_t)take;
    return op;
}

/* The end of the operation; others may end before. */
static sc_emu_end got(sc_emu *e, uint64_t ticket)
{
    const sc_emu_end *end = NULL;
    for (;;) {
        uint32_t n = ends_of(e, &end);
        assert_true(n > 0);
        for (uint32_t i = 0; i < n; i++)
            if (end[i].ticket == ticket) return end[i];
    }
}

/* Tags and sources, whatever the order of the calls. */
static void envelopes(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){.ranks = "1,2,4"});
    sends(e, 1, 7, 100, 5 * US);
    sends(e, 1, 8, 200, 6 * US);
    sc_emu_end x = got(e, call(e, receive(1, 8, SC_EMU_TAKE), 9 * US));
    assert_true(x.tag == 8 && x.bytes == 200 && x.from == 1 && x.seq == 108);
    /* It was on its way from its post on. */
    assert_true(x.begin == 6 * US && x.end == 6 * US + plug_takes(200));
    sc_emu_op any = receive(SC_EMU_ANY, SC_EMU_ANY_TAG, SC_EMU_TAKE);
    x = got(e, call(e, any, MS));
    assert_true(x.tag == 7 && x.bytes == 100 && x.end == MS);
    /* The first that comes, not the first rank. */
    uint64_t k = call(e, receive(SC_EMU_ANY, 3, SC_EMU_TAKE), MS);
    text_is(e, k, "no rank has sent it a message with tag 3");
    sends(e, 1, 4, 50, MS);
    sends(e, 4, 3, 60, MS + US);
    x = got(e, k);
    assert_true(x.from == 4 && x.bytes == 60);
    x = got(e, call(e, receive(1, 4, SC_EMU_TAKE), 2 * MS));
    assert_true(x.bytes == 50 && x.end == 2 * MS);
    /* A receive that is cancelled takes nothing. */
    sc_emu_cancel(e, call(e, receive(1, 5, SC_EMU_TAKE), 3 * MS));
    sends(e, 1, 5, 10, 3 * MS);
    x = got(e, call(e, receive(1, 5, SC_EMU_TAKE), 4 * MS));
    assert_true(x.bytes == 10);
    /* A longer message, where that is no error. */
    sc_emu_op small = receive(1, 6, SC_EMU_TAKE);
    small.bytes = 4;
    small.cuts = true;
    sends(e, 1, 6, 10, 5 * MS);
    x = got(e, call(e, small, 6 * MS));
    assert_true(x.bytes == 10);
}

static void probes(void **state)
{
    (void)state;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){.ranks = "1,2"});
    uint64_t k = call(e, receive(1, 7, SC_EMU_PROBE), 2 * US);
    uint64_t m = call(e, receive(SC_EMU_ANY, 7, SC_EMU_CLAIM), 2 * US);
    sends(e, 1, 7, 100, 5 * US);
    assert_int_equal(sc_emu_advance(e, MS, &end), 3);
    assert_true(end[0].ticket == k && end[1].ticket == m);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(end[i].end == 5 * US + plug_takes(100) && end[i].tag == 7 &&
                    end[i].bytes == 100);
    /* It is claimed: others do not get it. */
    k = call(e, receive(1, 7, SC_EMU_TAKE), MS);
    assert_true(sc_emu_next(e) == SC_TIME_MAX);
    sc_emu_op claimed = receive(1, 7, SC_EMU_CLAIMED);
    claimed.seq = 107;
    sc_emu_end x = got(e, call(e, claimed, 2 * MS));
    assert_true(x.bytes == 100 && x.end == 2 * MS);
    sc_emu_cancel(e, k);
    /* A message that waits for its receive is seen when it was sent. */
    sc_emu_op large = message(SC_SEND, 1, 2, 500);
    uint64_t s = call(e, large, 3 * MS);
    x = got(e, call(e, receive(1, 0, SC_EMU_PROBE), 2 * MS));
    assert_true(x.end == 3 * MS && x.bytes == 500);
    text_is(e, s, "real rank 2 has not called its receive");
    x = got(e, call(e, receive(1, 0, SC_EMU_TAKE), 4 * MS));
    assert_true(x.end == 4 * MS + plug_takes(500));
    /* What is given up leaves the message alone. */
    sends(e, 1, 3, 30, 6 * MS);
    sc_emu_cancel(e, call(e, receive(1, 3, SC_EMU_PROBE), 6 * MS));
    sc_emu_cancel(e, call(e, receive(1, 3, SC_EMU_TAKE), 6 * MS));
    x = got(e, call(e, receive(1, 3, SC_EMU_TAKE), 6 * MS));
    assert_true(x.bytes == 30 && x.end == 6 * MS + plug_takes(30));
}

static void cancelled(void **state)
{
    (void)state;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){.ranks = "0,4"});
    uint64_t a = all_reduce(e, 0, 0, 0, 0), b = all_reduce(e, 0, 0, 1000, 0);
    sc_emu_cancel(e, a);
    text_is(e, a, "");
    uint64_t c = all_reduce(e, 0, 4, 0, 0); /* of the one that is gone */
    text_is(e, c, "another member has cancelled it");
    uint64_t d = all_reduce(e, 0, 4, 1000, 0);
    assert_int_equal(sc_emu_advance(e, MS, &end), 2);
    assert_true(end[0].ticket == b && end[1].ticket == d);
    sc_emu_cancel(e, c);
    text_is(e, c, "");
    a = all_reduce(e, 0, 0, 0, 5 * MS);
    b = all_reduce(e, 0, 4, 0, 5 * MS);
    sc_emu_cancel(e, b); /* before it began */
    assert_true(sc_emu_next(e) == SC_TIME_MAX);
    all_reduce(e, 0, 0, 0, 0);
    all_reduce(e, 0, 4, 0, 0);
    assert_int_equal(sc_emu_advance(e, 2 * MS, &end), 2);
}

/* What the model does not understand ends the run, now or later. */
static void model_fails(void **state)
{
    (void)state;
    uint64_t k;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){0});
    all_reduce(e, 0, 0, 666, US);
    assert_int_equal(sc_emu_advance(e, MS, &end), SC_FLOW_NONE);
    assert_int_equal(sc_emu_failed(e, &err), SC_EINPUT);
    assert_int_equal(err.n, 1);
    assert_int_equal(sc_emu_advance(e, MS, &end), SC_FLOW_NONE);
    sc_emu_op op = {.coll = SC_BARRIER};
    assert_int_equal(sc_emu_post(e, &op, 0, &k, &err), SC_EINPUT);
    assert_true(sc_emu_next(e) != SC_TIME_MAX);
}

/* Records are used again, whatever has been. */
static void memory_stays(void **state)
{
    (void)state;
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){.ranks = "0,4", .whatif = {"jitter=0.1"}});
    size_t used = 0;
    sc_time t = 0;
    for (int i = 0; i < 20000; i++, t += 100 * US) {
        all_reduce(e, 0, 0, 8, t);
        call(e, message(SC_SEND, 0, 4, 8), t);
        call(e, message(SC_RECV, 4, 0, 8), t);
        sc_emu_cancel(e, call(e, message(SC_SEND, 4, 1, 8), t + US));
        all_reduce(e, 0, 4, 8, t);
        assert_int_equal(sc_emu_advance(e, t + 90 * US, &end), 4);
        if (i == 10) used = arena.used;
    }
    assert_true(arena.used == used);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(ties_by_call),
        T(one_rank),
        T(late_call),
        T(in_order_of_time),
        T(ordinals),
        T(wrong_order),
        T(sizes),
        T(out_of_range),
        T(emulated_messages),
        T(real_messages),
        T(to_itself),
        T(envelopes),
        T(probes),
        T(cancelled),
        T(model_fails),
        T(memory_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
