/* SPDX-License-Identifier: Apache-2.0 */
/* Emulated ranks that run the programs of traces: what meets what, and when. */
#include "emu_world.h"
#include "small_workload.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <unistd.h>

static sw s;

static void start(uint32_t n_ranks)
{
    memset(&s, 0, sizeof s);
    s.n_ranks = n_ranks;
}

static sc_emu *follow(const asked *q, const sc_workload *w)
{
    sc_emu_config c = config_of(q);
    sc_emu *e = NULL;
    c.peers = w;
    plug_n = 0;
    if (sc_emu_new(&c, &arena, &e, &err) != SC_OK) no_error();
    return e;
}

static sc_emu *follow_all(const asked *q)
{
    sw_build(&s, &arena);
    return follow(q, &s.w);
}

static sc_emu_end reduce(sc_emu *e, uint64_t bytes, sc_time t)
{
    return block(e, (sc_emu_op){.coll = SC_ALL_REDUCE, .bytes = bytes}, t);
}

/* Rank 1: 50 us, all-reduce, 30 us that wait for it, all-reduce. */
static void step_of(uint32_t rank)
{
    sw_comp(&s, rank, 50 * US);
    sw_after(sw_coll(&s, rank, SC_ALL_REDUCE, 1000, SC_TASK_WORLD), 0);
    sw_after(sw_comp(&s, rank, 30 * US), 1);
    sw_after(sw_coll(&s, rank, SC_ALL_REDUCE, 2000, SC_TASK_WORLD), 2);
}

static void blocking(void **state)
{
    (void)state;
    start(2);
    step_of(1);
    sc_emu *e = follow_all(&(asked){.world = 2});
    sc_emu_end x = reduce(e, 1000, 10 * US);
    assert_true(x.begin == 50 * US && x.end == 61 * US);
    x = reduce(e, 2000, 71 * US); /* the trace: 61 + 30 */
    assert_true(x.begin == 91 * US && x.end == 103 * US);
    x = reduce(e, 1000, 110 * US); /* its next step: 103 + 50 */
    assert_true(x.begin == 153 * US && x.end == 164 * US);
    x = reduce(e, 2000, 300 * US); /* the real one is later */
    assert_true(x.begin == 300 * US);
}

/* What waits for nothing goes on meanwhile. */
static void not_waiting(void **state)
{
    (void)state;
    start(2);
    step_of(1);
    s.node[1][2].n_deps = 0;
    sc_emu *e = follow_all(&(asked){.world = 2});
    sc_emu_end x = reduce(e, 1000, 10 * US);
    assert_true(x.begin == 50 * US && x.end == 61 * US);
    x = reduce(e, 2000, 62 * US);
    assert_true(x.begin == 80 * US);
}

/* At operations that its trace has not, the rank is there. */
static void mirrored(void **state)
{
    (void)state;
    start(2);
    step_of(1);
    sc_emu *e = follow_all(&(asked){.world = 2, .whatif = {"straggler=1:2"}});
    sc_emu_end x = reduce(e, 64, 10 * US); /* of another size */
    assert_true(x.begin == 10 * US && x.end == 10 * US + plug_takes(64));
    x = reduce(e, 1000, x.end + US);
    assert_true(x.begin == 100 * US);
    x = reduce(e, 2000, x.end);
    assert_true(x.begin == 100 * US + plug_takes(1000) + 60 * US);
}

/* Groups by what they hold, whichever of the communicators with these ranks the
 * real one calls; operations of emulated ranks alone take their time. */
static void own_groups(void **state)
{
    (void)state;
    static const uint32_t low[2] = {0, 2}, high[2] = {1, 2},
                          all[4] = {0, 1, 2, 3};
    start(4);
    uint32_t g = sw_group(&s, 2, high), h = sw_group(&s, 2, low);
    uint32_t w = sw_group(&s, 4, all);
    sw_comp(&s, 2, 10 * US);
    sw_after(sw_coll(&s, 2, SC_ALL_GATHER, 500, g), 0);
    sw_after(sw_comp(&s, 2, 20 * US), 1);
    sw_after(sw_coll(&s, 2, SC_ALL_GATHER, 500, h), 2);
    sw_after(sw_comp(&s, 2, 40 * US), 3);
    sw_after(sw_coll(&s, 2, SC_BARRIER, 0, w), 4);
    sc_emu *e = follow_all(&(asked){.world = 4});
    uint32_t i;
    assert_int_equal(sc_emu_group(e, low, 2, 77, &i, &err), SC_OK);
    sc_emu_op op = {.coll = SC_ALL_GATHER, .group = i, .bytes = 1000};
    sc_emu_end x = block(e, op, US);
    sc_time first = 30 * US + plug_takes(1000);
    assert_true(x.begin == first);
    x = block(e, (sc_emu_op){.coll = SC_BARRIER}, x.end);
    assert_true(x.begin == first + plug_takes(1000) + 40 * US);
}

static void messages(void **state)
{
    (void)state;
    start(4);
    sw_comp(&s, 1, 25 * US);
    sw_after(sw_pair(&s, 1, SC_TASK_SEND, 0, 3000, 0), 0);
    sw_after(sw_comp(&s, 1, 5 * US), 1);
    sw_after(sw_pair(&s, 1, SC_TASK_SEND, 3, 3000, 0), 2);
    sw_after(sw_pair(&s, 1, SC_TASK_RECV, 0, 4000, 0), 3);
    sc_emu *e = follow_all(&(asked){.world = 4});
    sc_emu_op recv = {.coll = SC_RECV, .peer = 1, .bytes = 3000};
    sc_emu_op send = {.coll = SC_SEND, .peer = 1, .bytes = 4000};
    sc_emu_end x = block(e, recv, US);
    assert_true(x.begin == 25 * US && x.end == 38 * US);
    x = block(e, send, 38 * US); /* 38 + 5 + 13 for the one to rank 3 */
    assert_true(x.begin == 56 * US && x.end == 70 * US);
    assert_true(block(e, recv, 71 * US).begin == 95 * US); /* 70 + 25 */
}

/* Tags of a scout are those of the program, which can receive in another order;
 * messages with a tag that the trace does not have come when they are asked
 * for. Other traces number their messages as they like. */
static void tags(void **state)
{
    (void)state;
    for (int scouted = 0; scouted < 2; scouted++) {
        start(2);
        sw_comp(&s, 1, 10 * US);
        sw_after(sw_pair(&s, 1, SC_TASK_SEND, 0, 1000, 1), 0);
        sw_after(sw_comp(&s, 1, 100 * US), 0);
        sw_after(sw_pair(&s, 1, SC_TASK_SEND, 0, 1000, 2), 2);
        sw_build(&s, &arena);
        sc_emu_config c = config_of(&(asked){.world = 2});
        sc_emu *e = NULL;
        c.peers = &s.w;
        c.peer_tags = scouted;
        assert_true(sc_emu_sends(&c, 1, 0) && !sc_emu_sends(&c, 0, 1));
        plug_n = 0;
        assert_int_equal(sc_emu_new(&c, &arena, &e, &err), SC_OK);
        sc_emu_op recv = {.coll = SC_RECV, .peer = 1, .bytes = 1000, .tag = 2};
        sc_emu_end x = block(e, recv, US);
        assert_true(x.begin == (scouted ? 110 * US : 10 * US) && x.tag == 2);
        recv.tag = 1;
        x = block(e, recv, 200 * US);
        assert_true(x.begin == (scouted ? 10 * US : 110 * US) && x.tag == 1);
        recv.tag = 7;
        x = block(e, recv, 201 * US);
        if (scouted) assert_true(x.begin == 201 * US && x.tag == 7);
    }
}

static sc_emu *scouted(const sc_workload *w)
{
    sc_emu_config c = config_of(&(asked){.world = 2});
    sc_emu *e = NULL;
    c.peers = w;
    c.peer_tags = true;
    plug_n = 0;
    if (sc_emu_new(&c, &arena, &e, &err) != SC_OK) no_error();
    return e;
}

/* Tags that each round raises, and a start that runs once: in the first round
 * tags 9, 4 and 5, then 6 and 7, and so on. */
static void rising_tags(void **state)
{
    (void)state;
    static const int32_t raised[3] = {0, 2, 2};
    start(2);
    sw_pair(&s, 1, SC_TASK_SEND, 0, 1000, 9);
    sw_after(sw_comp(&s, 1, 10 * US), 0);
    sw_after(sw_pair(&s, 1, SC_TASK_SEND, 0, 1000, 4), 1);
    sw_after(sw_comp(&s, 1, 100 * US), 1);
    sw_after(sw_pair(&s, 1, SC_TASK_SEND, 0, 1000, 5), 3);
    sw_build(&s, &arena);
    s.w.classes[1].n_once = 1;
    s.w.ranks[1].tag_steps = raised;
    sc_emu *e = scouted(&s.w);
    sc_emu_op recv = {.coll = SC_RECV, .peer = 1, .bytes = 1000};
    sc_time begin = plug_takes(1000), end = 0;
    recv.tag = 9;
    assert_true(block(e, recv, 0).begin == 0);
    for (int32_t round = 0; round < 4; round++) {
        recv.tag = 5 + 2 * round; /* sent later */
        sc_emu_end x = block(e, recv, end);
        assert_true(x.begin == begin + 110 * US && x.tag == recv.tag);
        recv.tag = 4 + 2 * round;
        assert_true(block(e, recv, x.end).begin == begin + 10 * US);
        begin = end = x.end;
    }
}

/* Two communicators of the same ranks, the same tag. */
static void communicators(void **state)
{
    (void)state;
    static const uint32_t both[2] = {0, 1}, instance[2] = {0, 1};
    start(2);
    uint32_t first = sw_group(&s, 2, both), other = sw_group(&s, 2, both);
    sw_comp(&s, 1, 10 * US);
    sw_after(sw_pair(&s, 1, SC_TASK_SEND, 0, 1000, 3), 0);
    s.node[1][1].group = first;
    sw_after(sw_comp(&s, 1, 100 * US), 0);
    sw_after(sw_pair(&s, 1, SC_TASK_SEND, 0, 1000, 3), 2);
    s.node[1][3].group = other;
    sw_build(&s, &arena);
    s.w.ranks[1].instances = instance;
    sc_emu *e = scouted(&s.w);
    uint32_t a, b;
    assert_int_equal(sc_emu_group(e, NULL, 0, 0, &a, &err), SC_OK);
    assert_int_equal(sc_emu_group(e, both, 2, 77, &b, &err), SC_OK);
    sc_emu_op recv = {
        .coll = SC_RECV, .group = b, .peer = 1, .bytes = 1000, .tag = 3};
    sc_emu_end x = block(e, recv, US);
    assert_true(x.begin == 110 * US && x.tag == 3);
    recv.group = a;
    recv.tag = SC_EMU_ANY_TAG;
    x = block(e, recv, x.end);
    assert_true(x.begin == 10 * US && x.tag == 3);
}

/* Parts that differ: each rank of an all-to-all knows its own. */
static void uneven(void **state)
{
    (void)state;
    start(2);
    sw_comp(&s, 1, 50 * US);
    sw_after(sw_coll(&s, 1, SC_ALL_TO_ALL, 3000, SC_TASK_WORLD), 0);
    sc_emu *e = follow_all(&(asked){.world = 2});
    sc_emu_end x =
        block(e, (sc_emu_op){.coll = SC_ALL_TO_ALL, .bytes = 1000}, 10 * US);
    assert_true(x.begin == 50 * US && x.end == 50 * US + plug_takes(3000));
}

/* A stage of a pipeline that is not real: it sends what it has received, and
 * the real stage waits for both. */
static void chain(void **state)
{
    (void)state;
    start(3);
    /* Ranks 1, 2: receive from the rank before, 10 us, send on; the last one
     * sends back to rank 0. */
    for (uint32_t r = 1; r < 3; r++) {
        sw_pair(&s, r, SC_TASK_RECV, r - 1, 1000, 0);
        sw_after(sw_comp(&s, r, 10 * US), 0);
        sw_after(sw_pair(&s, r, SC_TASK_SEND, (r + 1) % 3, 1000, 0), 1);
    }
    sc_emu *e = follow_all(&(asked){.world = 4});
    sc_emu_op send = {.coll = SC_SEND, .peer = 1, .bytes = 1000, .tag = 5};
    sc_emu_op recv = {.coll = SC_RECV,
                      .peer = SC_EMU_ANY,
                      .bytes = 1000,
                      .tag = SC_EMU_ANY_TAG};
    for (sc_time t = 100 * US; t < 10 * MS; t += MS) {
        sc_emu_end x = block(e, send, t);
        assert_true(x.begin == t && x.end == t + plug_takes(1000));
        x = block(e, recv, x.end);
        assert_true(x.from == 2 && x.bytes == 1000);
        assert_true(x.end == t + 3 * plug_takes(1000) + 20 * US);
    }
    /* Twice in a row: the second one is behind the first all the way. */
    block(e, send, 20 * MS);
    sc_emu_end x = block(e, send, 20 * MS + plug_takes(1000));
    assert_true(x.begin == 20 * MS + 2 * plug_takes(1000) + 10 * US);
}

/* Counted over its own operations. */
static void stall_and_failure(void **state)
{
    (void)state;
    start(4);
    step_of(1);
    sc_emu *e = follow_all(
        &(asked){.world = 4, .whatif = {"stall=1:7us@1", "fail=1@2"}});
    uint32_t pair[2] = {0, 3};
    uint32_t g = group_of(e, pair, 2);
    block(e, (sc_emu_op){.coll = SC_BARRIER, .group = g}, 0);
    sc_emu_end x = reduce(e, 1000, 12 * US);
    assert_true(x.begin == 50 * US);
    x = reduce(e, 2000, x.end);
    assert_true(x.begin == 61 * US + 30 * US + 7 * US);
    sc_text t;
    const sc_emu_end *end;
    sc_text_init(&t);
    uint64_t k = all_reduce(e, 0, 0, 1000, MS);
    sc_emu_why(e, k, &t);
    assert_string_equal(t.buf, "rank 1 has not come to it in its trace");
    sc_text_free(&t);
    sc_text_init(&t);
    assert_int_equal(sc_emu_advance(e, MS, &end), 0);
    sc_emu_why(e, k, &t);
    assert_string_equal(t.buf, "rank 1 never arrives: --what-if fail=1@2");
    sc_text_free(&t);
}

static void jitter(void **state)
{
    (void)state;
    start(2);
    step_of(1);
    sc_time first[2];
    for (int i = 0; i < 2; i++) {
        sc_emu *e = follow_all(
            &(asked){.world = 2, .whatif = {"jitter=0.1"}, .seed = 5});
        first[i] = reduce(e, 1000, 10 * US).begin;
        assert_true(first[i] != 50 * US);
        assert_true(llabs(first[i] - 50 * US) < 20 * US);
    }
    assert_true(first[0] == first[1]);
}

/* ---- files ----------------------------------------------------------------- */

static char dir[40], prefix[60];

static void write_traces(void)
{
    strcpy(dir, "/tmp/stepcast-emu-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(prefix, sizeof prefix, "%s/t", dir);
    sw_build(&s, &arena);
    if (sc_trace_write(&s.w, prefix, &err) != SC_OK) no_error();
}

static void forget(uint32_t rank)
{
    char path[80];
    snprintf(path, sizeof path, "%s.%u.et", prefix, rank);
    unlink(path);
}

static void drop_traces(void)
{
    char path[80];
    for (uint32_t r = 0; r < s.n_ranks; r++) forget(r);
    snprintf(path, sizeof path, "%s.json", prefix);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

/* Ranks without a file mirror, wherever they are. */
static void some_files(void **state)
{
    (void)state;
    static const uint32_t low[3] = {0, 2, 3};
    start(4);
    uint32_t g = sw_group(&s, 3, low);
    for (uint32_t r = 0; r < 4; r++) {
        sw_comp(&s, r, 100 * US);
        if (r != 1) sw_after(sw_coll(&s, r, SC_ALL_REDUCE, 1000, g), 0);
    }
    s.node[2][0].duration = 40 * US;
    write_traces();
    forget(3);
    sc_emu_options o = {0};
    assert_int_equal(sc_schema_defaults(sc_emu_keys, &o, &arena, &err), SC_OK);
    o.cluster = "dgx-h100:1";
    o.world_size = 4;
    o.peers = prefix;
    sc_emu_config c;
    if (sc_emu_resolve(&o, &arena, &c, &err) != SC_OK) no_error();
    assert_int_equal(c.peers->n_ranks, 4);
    assert_int_equal(c.peers->classes[c.peers->ranks[3].cls].n_tasks, 0);
    assert_int_equal(sc_workload_check(c.peers, &err), SC_OK);
    sc_emu *e = follow(&(asked){.world = 4}, c.peers);
    sc_emu_op op = {
        .coll = SC_ALL_REDUCE, .group = group_of(e, low, 3), .bytes = 1000};
    assert_true(block(e, op, 10 * US).begin == 40 * US);
    drop_traces();
}

static void no_durations(void **state)
{
    (void)state;
    char want[200];
    start(2);
    for (uint32_t r = 0; r < 2; r++) sw_comp(&s, r, 0);
    write_traces();
    sc_emu_options o = {.cluster = "dgx-h100:1", .world_size = 2};
    o.peers = prefix;
    sc_emu_config c;
    assert_int_equal(sc_emu_resolve(&o, &arena, &c, &err), SC_EINPUT);
    assert_int_equal(err.n, 1);
    assert_int_equal(err.d[0].code, SC_C_MISSING);
    snprintf(want, sizeof want, "--peers %s", prefix);
    assert_string_equal(err.d[0].file, want);
    assert_string_equal(err.d[0].msg,
                        "no kernel of these traces has a duration");
    drop_traces();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(blocking),   T(not_waiting),  T(mirrored),          T(own_groups),
        T(messages),   T(tags),         T(rising_tags),       T(communicators),
        T(uneven),     T(chain),        T(stall_and_failure), T(jitter),
        T(some_files), T(no_durations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
