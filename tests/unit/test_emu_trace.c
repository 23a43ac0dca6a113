/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded runs as workloads: written, read and simulated again they take the
 * time they took; sizes, groups and partners of ranks that follow. */
#include "emu/emu_log.h"
#include "graph/graph_scale.h"
#include "sim/sim_workload.h"
#include "trace/trace.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define US ((sc_time)1000000)

static struct fixture {
    sc_arena a;
    sc_err err;
    const sc_hw *hw;
    char folder[256];
} f;

static int set_up(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    sc_arena_init(&f.a, 0);
    sc_err_init(&f.err);
    snprintf(f.folder, sizeof f.folder, "%s/emutraceXXXXXX",
             tmp ? tmp : "/tmp");
    if (!mkdtemp(f.folder)) return -1;
    return sc_hw_build("h100-sxm:8", sc_pos_none(), &f.a, &f.hw, &f.err) ==
                   SC_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"system.json", "system-simulate.json",
                                        "network.yml", "memory.json",
                                        "run.json",    "run.0.et",
                                        "run.1.et",    "run.2.et",
                                        "run.3.et",    "run.4.et",
                                        "run.5.et",    "run.6.et",
                                        "run.7.et"};
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        char path[320];
        snprintf(path, sizeof path, "%s/%s", f.folder, names[i]);
        unlink(path);
    }
    rmdir(f.folder);
    sc_arena_free(&f.a);
    return 0;
}

/* ---- runs by hand --------------------------------------------------------------- */

typedef struct script {
    sc_emu_run run;
    sc_emu_record record[4000];
    sc_time now;
} script;

static uint32_t everyone[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static uint32_t half[4] = {4, 5, 6, 7};
static uint32_t column[2] = {1, 5};
static sc_rank_group groups[] = {
    {"0", 8, everyone}, {"1", 4, half}, {"2", 2, column}};

static script *begin(uint32_t rank)
{
    script *s = SC_NEW(&f.a, script);
    s->run = (sc_emu_run){.rank = rank,
                          .world = 8,
                          .n_groups = SC_COUNT(groups),
                          .group = groups,
                          .record = s->record};
    return s;
}

static void computes(script *s, double us)
{
    s->now += (sc_time)(us * 1e6);
}

static sc_emu_record *posts(script *s, sc_coll coll, uint32_t group,
                            uint64_t bytes, double us)
{
    sc_emu_record *o = &s->record[s->run.n_records++];
    *o = (sc_emu_record){.coll = (uint8_t)coll,
                         .group = group,
                         .bytes = bytes,
                         .flags = SC_EMU_ASYNC,
                         .post = s->now,
                         .begin = s->now,
                         .end = s->now + (sc_time)(us * 1e6)};
    return o;
}

/* Woken up half a microsecond late. */
static void waits(script *s, sc_emu_record *o)
{
    if (o->end > s->now) {
        o->waited = o->end + US / 2 - s->now;
        s->now = o->end + US / 2;
    }
    o->resumed = s->now;
}

static void calls(script *s, sc_coll coll, uint32_t group, uint64_t bytes,
                  double us)
{
    sc_emu_record *o = posts(s, coll, group, bytes, us);
    o->flags = 0;
    waits(s, o);
}

static void ends(script *s)
{
    s->run.totals.now = s->now;
    s->run.totals.ended = 1;
}

/* ---- written, read, simulated ------------------------------------------------- */

static const char *in_folder(const char *name)
{
    return sc_sprintf(&f.a, "%s/%s", f.folder, name);
}

static sc_workload workload(const sc_emu_run *runs, uint32_t n,
                            const uint32_t *like, bool steps)
{
    sc_workload w;
    sc_emu_trace_opts o = {.like = like, .steps = steps};
    if (sc_emu_workload(runs, n, &o, &f.a, &w, &f.err) != SC_OK)
        fail_msg("%s", f.err.d[0].msg);
    return w;
}

static sc_simulate_result simulated(const sc_workload *w, const char *system)
{
    sc_text notes, warnings;
    sc_workload back;
    sc_system sys;
    sc_network net;
    sc_pool pool;
    sc_simulate_opts o;
    sc_simulate_result r;
    sc_rank_group *g = NULL;
    sc_trace_opts t = {.names = true};
    sc_text_init(&notes);
    sc_text_init(&warnings);
    sc_simulate_opts_init(&o);
    o.record = true;
    bool ok =
        sc_emu_trace_write(w, f.hw, SC_BF16, f.folder, "run", &f.a, &notes,
                           &f.err) == SC_OK &&
        sc_system_read(in_folder(system), &f.a, &warnings, &sys, &f.err) ==
            SC_OK &&
        sc_network_read(in_folder("network.yml"), &f.a, &net, &f.err) ==
            SC_OK &&
        sc_pool_read(in_folder("memory.json"), &f.a, &pool, &f.err) == SC_OK &&
        (w->n_groups == 0 || sc_groups_read(in_folder("run.json"), 8, &f.a, &g,
                                            &t.n_groups, &f.err) == SC_OK);
    t.groups = g;
    ok = ok &&
         sc_trace_read(in_folder("run"), 8, &t, &f.a, &back, &f.err) == SC_OK &&
         sc_simulate(&back, &sys, &net, &pool, &o, &f.a, &r, &f.err) == SC_OK;
    if (!ok) fail_msg("%s: %s", f.err.d[0].file, f.err.d[0].msg);
    assert_int_equal(warnings.len, 0);
    assert_int_equal(r.n_finished, 8);
    sc_text_free(&notes);
    sc_text_free(&warnings);
    return r;
}

static void close_to(sc_time got, sc_time want, double by)
{
    double off = (double)got / (double)want - 1;
    if (off > by || off < -by)
        fail_msg("%.3f us instead of %.3f us", (double)got / 1e6,
                 (double)want / 1e6);
}

static const uint32_t like_first[8] = {0};

static script *blocking(void)
{
    script *s = begin(0);
    for (int i = 0; i < 20; i++) {
        computes(s, 100 + i);
        calls(s, SC_ALL_GATHER, 0, 1 << 20, 33.25);
        computes(s, 7);
        calls(s, SC_ALL_REDUCE, 0, 1 << 22, 150.5);
        calls(s, SC_BARRIER, 0, 0, 3);
    }
    computes(s, 11);
    ends(s);
    return s;
}

static void replays_blocking_calls(void **state)
{
    (void)state;
    script *s = blocking();
    sc_workload w = workload(&s->run, 1, like_first, false);
    sc_simulate_result r = simulated(&w, "system.json");
    close_to(r.makespan, s->now, 1e-6);
    assert_int_equal(w.n_classes, 1);
    assert_int_equal(w.classes[0].size[1], (1 << 20) / 8);
    /* on the network, exchanges take another time, computing does not */
    sc_simulate_result x = simulated(&w, "system-simulate.json");
    assert_true(x.makespan != r.makespan);
    close_to(x.rank[0].compute, r.rank[0].compute, 1e-6);
    /* and it can be made larger: every rank is a replica */
    sc_text assumed;
    sc_workload large;
    sc_text_init(&assumed);
    if (sc_workload_scale(&w, 64, NULL, &f.a, &assumed, &large, &f.err) !=
        SC_OK)
        fail_msg("%s", f.err.d[0].msg);
    sc_text_free(&assumed);
    assert_int_equal(large.n_ranks, 64);
    assert_int_equal(large.classes[0].size[1], (1 << 20) / 64);
}

/* As DDP: buckets go out while the rest is computed, and overlap. */
static script *overlapping(void)
{
    script *s = begin(0);
    computes(s, 1000); /* start-up */
    calls(s, SC_BROADCAST, 0, 4096, 12);
    for (int i = 0; i < 30; i++) {
        sc_emu_record *o[6];
        computes(s, 300 + (i % 3));
        for (int k = 0; k < 6; k++) {
            computes(s, 50);
            o[k] = posts(s, SC_ALL_REDUCE, 0, (uint64_t)(k + 1) << 20,
                         120 + 10 * k + i % 5);
        }
        for (int k = 0; k < 6; k++) waits(s, o[k]);
        computes(s, 40);
    }
    ends(s);
    return s;
}

/* Every operation, from its post or, with weak progress, its begin on. */
static void when_they_were(const script *s, const sc_workload *w,
                           const sc_simulate_result *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->classes[0].n_tasks; i++) {
        if (w->classes[0].kind[i] != SC_TASK_COLL) continue;
        const sc_emu_record *o = &s->record[n++];
        close_to(r->span[0][i].start,
                 o->flags & SC_EMU_HELD ? o->begin : o->post, 1e-6);
        close_to(r->span[0][i].end, o->end, 1e-6);
    }
    assert_int_equal(n, s->run.n_records);
}

static void replays_overlap(void **state)
{
    (void)state;
    script *s = overlapping();
    sc_workload w = workload(&s->run, 1, like_first, false);
    sc_simulate_result r = simulated(&w, "system.json");
    close_to(r.makespan, s->now, 1e-6);
    when_they_were(s, &w, &r);
    /* only the steps */
    sc_emu_step *step;
    uint32_t n_steps;
    assert_int_equal(
        sc_emu_steps(&s->run, 0, &f.a, &step, &n_steps, NULL, &f.err), SC_OK);
    assert_true(n_steps >= 29);
    w = workload(&s->run, 1, like_first, true);
    r = simulated(&w, "system.json");
    close_to(r.makespan, step[n_steps - 1].end - step[0].begin, 1e-4);
    (void)simulated(&w, "system-simulate.json");
}

/* With weak progress, operations begin when the program waits for the first, or
 * in a test, which has no record. */
static void replays_weak_progress(void **state)
{
    (void)state;
    script *s = begin(0);
    for (int i = 0; i < 8; i++) {
        sc_emu_record *o[3];
        for (int k = 0; k < 3; k++) {
            computes(s, 100);
            o[k] = posts(s, SC_ALL_REDUCE, 0, 1 << 20, 0);
            o[k]->flags |= SC_EMU_HELD;
        }
        sc_time tested = s->now + 30 * US;
        computes(s, 50);
        for (int k = 0; k < 3; k++) {
            o[k]->begin = i % 2 ? tested : s->now;
            o[k]->end = s->now + (70 + 10 * k) * US;
        }
        for (int k = 0; k < 3; k++) waits(s, o[k]);
    }
    ends(s);
    sc_workload w = workload(&s->run, 1, like_first, false);
    sc_simulate_result r = simulated(&w, "system.json");
    close_to(r.makespan, s->now, 1e-6);
    when_they_were(s, &w, &r);
}

/* Two real ranks of a pipeline: each its own side of every message. */
static void pipeline(script *s, bool first)
{
    for (int i = 0; i < 25; i++) {
        sc_emu_record *o;
        if (first) {
            computes(s, 200);
            o = posts(s, SC_SEND, 0, 1 << 20, 25);
            o->peer = 1;
            computes(s, 10);
            waits(s, o);
            o = posts(s, SC_RECV, 0, 1 << 19, 480);
            o->peer = 1;
            waits(s, o);
            computes(s, 90);
        } else {
            o = posts(s, SC_RECV, 0, 1 << 20, i == 0 ? 225 : 300);
            o->peer = 0;
            waits(s, o);
            computes(s, 400);
            o = posts(s, SC_SEND, 0, 1 << 19, 20);
            o->peer = 0;
            waits(s, o);
        }
    }
    ends(s);
}

static void replays_a_pipeline(void **state)
{
    (void)state;
    script *s[2] = {begin(0), begin(1)};
    static const uint32_t like[8] = {0, 1, 0, 1, 0, 1, 0, 1};
    pipeline(s[0], true);
    pipeline(s[1], false);
    sc_emu_run runs[2] = {s[0]->run, s[1]->run};
    sc_workload w = workload(runs, 2, like, false);
    sc_simulate_result r = simulated(&w, "system.json");
    for (uint32_t i = 0; i < 8; i++)
        close_to(r.rank[i].finish, s[i % 2]->now, 1e-6);
    assert_int_equal(w.ranks[6].peers[0], 7);
    assert_int_equal(w.ranks[7].peers[0], 6);
    /* sends meet their receives on the network, too */
    (void)simulated(&w, "system-simulate.json");
    /* the others idle */
    w = workload(runs, 2, NULL, false);
    r = simulated(&w, "system.json");
    assert_int_equal(r.rank[5].finish, 0);
    close_to(r.rank[1].finish, s[1]->now, 1e-6);
    /* a rank that has made a step less is recorded with the last ones */
    runs[1].record += 2;
    runs[1].n_records -= 2;
    w = workload(runs, 2, like, true);
    (void)simulated(&w, "system-simulate.json");
}

static bool members(const sc_workload *w, uint32_t rank, uint32_t slot,
                    const uint32_t *want, uint32_t n)
{
    const sc_rank_group *g = &w->groups[w->ranks[rank].groups[slot]];
    return g->n == n && memcmp(g->rank, want, n * sizeof *want) == 0;
}

static void groups_of_followers(void **state)
{
    (void)state;
    static const uint32_t like[8] = {0}, low[] = {0, 1, 2, 3}, other[] = {2, 6};
    script *s = begin(5);
    for (int i = 0; i < 3; i++) {
        computes(s, 10);
        calls(s, SC_REDUCE_SCATTER, 1, 4 << 20, 20);
        calls(s, SC_BROADCAST, 2, 4 << 20, 20);
        s->record[s->run.n_records - 1].peer = 5;
        calls(s, SC_GATHER, 1, 4 << 20, 20);
    }
    ends(s);
    sc_workload w = workload(&s->run, 1, like, false);
    assert_int_equal(w.n_groups, 2 + 4);
    assert_true(members(&w, 5, 0, half, 4));
    assert_true(members(&w, 5, 1, column, 2));
    assert_true(members(&w, 2, 0, low, 4));
    assert_true(members(&w, 7, 0, half, 4));
    assert_true(members(&w, 2, 1, other, 2));
    const sc_task_list *l = &w.classes[0];
    assert_int_equal(l->coll[1], SC_REDUCE_SCATTER);
    assert_int_equal(l->size[1], 4 << 20);
    /* woken up late between operations */
    assert_int_equal(l->kind[2], SC_TASK_COMP);
    assert_int_equal(l->coll[3], SC_BROADCAST);
    assert_int_equal(l->peer[3], 1);
    assert_int_equal(l->size[5], 1 << 20);
    sc_simulate_result r = simulated(&w, "system.json");
    close_to(r.makespan, s->now, 1e-6);
    (void)simulated(&w, "system-simulate.json");
}

/* A device's queue: nobody waits, one operation follows the other. */
static void queues(void **state)
{
    (void)state;
    script *s = begin(0);
    sc_time last = 0;
    for (int i = 0; i < 10; i++) {
        computes(s, 5);
        if (last > s->now) s->now = last;
        sc_emu_record *o = posts(s, SC_ALL_REDUCE, 0, 1 << 20, 50);
        o->stream = 3;
        last = o->end;
    }
    ends(s);
    s->run.totals.now = last;
    sc_workload w = workload(&s->run, 1, like_first, false);
    sc_simulate_result r = simulated(&w, "system.json");
    close_to(r.makespan, last, 1e-6);
    uint32_t on_others = 0;
    for (uint32_t i = 0; i < w.classes[0].n_tasks; i++)
        on_others += w.classes[0].kind[i] == SC_TASK_COLL &&
                     w.classes[0].n_preds[i] == 2;
    assert_int_equal(on_others, 9);
}

/* A barrier, then six steps of a receive and a send on a second communicator of
 * all ranks, whose tags rise by 2; the run was ended in a receive. */
static script *goes_on(void)
{
    script *s = begin(0);
    static sc_rank_group both[] = {{"0", 8, everyone}, {"1", 8, everyone}};
    s->run.group = both;
    s->run.n_groups = 2;
    calls(s, SC_BARRIER, 0, 0, 1);
    for (int i = 0; i < 7; i++) {
        computes(s, 10);
        sc_emu_record *o = posts(s, SC_RECV, 1, 800, 5);
        o->peer = 1;
        o->tag = 2 * i;
        if (i == 6) {
            o->end = SC_TIME_MAX;
            break;
        }
        waits(s, o);
        computes(s, 20);
        calls(s, SC_SEND, 1, 900, 5);
        o[1].peer = 2;
        o[1].tag = 2 * i + 1;
    }
    ends(s);
    return s;
}

static void repeats(void **state)
{
    (void)state;
    script *s = goes_on();
    sc_emu_loop x = sc_emu_loop_find(&s->run, 0, &f.a);
    assert_true(x.from == 1 && x.each == 2 && x.n == 6 && !x.tags);
    sc_emu_loop_cut(&s->run, &x);
    assert_true(s->run.n_records == 13 && s->run.record[12].tag == 11);
    assert_true(s->run.totals.loop == 2 && s->run.totals.loop_from == 3);
    assert_int_equal(s->run.totals.now, s->record[12].end);
    sc_workload w;
    sc_emu_trace_opts o = {.envelopes = true};
    assert_int_equal(sc_emu_workload(&s->run, 1, &o, &f.a, &w, &f.err), SC_OK);
    const sc_task_list *l = &w.classes[0];
    const sc_rank_trace *r = &w.ranks[0];
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (l->kind[i] != SC_TASK_SEND && l->kind[i] != SC_TASK_RECV) continue;
        uint32_t tag = r->tags[l->tag[i]];
        assert_int_equal(r->instances[l->group[i]], 1);
        /* five steps repeat */
        assert_int_equal(r->tag_steps[l->tag[i]], i < l->n_once ? 0 : 10);
        assert_true((tag < 2) == (i < l->n_once));
    }
    assert_true(l->n_once > 0);
    s = goes_on(); /* a tag that does not rise as the others */
    s->record[6].tag = 3;
    x = sc_emu_loop_find(&s->run, 0, &f.a);
    sc_emu_loop_cut(&s->run, &x);
    assert_int_equal(s->record[2].tag, 1);
    assert_int_equal(s->record[3].tag, SC_EMU_ANY_TAG);
}

static void refused(void **state)
{
    (void)state;
    sc_workload w;
    script *s = begin(0);
    calls(s, SC_ALL_REDUCE, 0, 8, 1);
    ends(s);
    static const uint32_t like[8] = {1};
    sc_emu_trace_opts o = {.like = like};
    assert_int_equal(sc_emu_workload(&s->run, 1, &o, &f.a, &w, &f.err),
                     SC_EINPUT);
    o = (sc_emu_trace_opts){.like = like_first, .steps = true};
    assert_int_equal(sc_emu_workload(&s->run, 1, &o, &f.a, &w, &f.err),
                     SC_EINPUT);
    assert_int_equal(sc_emu_workload(&s->run, 0, &o, &f.a, &w, &f.err),
                     SC_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(replays_blocking_calls, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(replays_overlap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(repeats, set_up, tear_down),
        cmocka_unit_test_setup_teardown(replays_weak_progress, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(replays_a_pipeline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(groups_of_followers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(queues, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
