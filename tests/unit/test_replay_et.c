/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays with execution traces: the same step to the picosecond, flows of data
 * between kernels and the waits that keep them, and real pairs.
 */
#include "et_pair.h"
#include "replay/model.h"
#include "tiny_workload.h"
#include "trace/trace_et.h"
#include "traces.h"

static sc_text notes;

static int noted_setup(void **state)
{
    sc_text_init(&notes);
    return setup(state);
}

static int noted_teardown(void **state)
{
    sc_text_free(&notes);
    return teardown(state);
}

static sc_profiled *profile_of(bool waits)
{
    sc_text text;
    sc_profiled *m = SC_NEW(&arena, sc_profiled);
    sc_text_init(&text);
    pair_profile(&text, "External id", waits);
    sc_profiled_read_memory(text.buf, text.len, "k.json", &arena, &notes, m,
                            &err);
    no_error();
    sc_text_free(&text);
    return m;
}

static void add_nodes(sc_profiled *m)
{
    sc_text text;
    sc_et_linked linked;
    sc_text_init(&text);
    pair_nodes(&text, ET_1_1_0);
    sc_et_link_memory(text.buf, text.len, "et.json", m, &arena, &linked, &err);
    no_error();
    assert_int_equal(linked.linked, 3);
    sc_text_free(&text);
}

static sc_replay_model *model_of(const sc_profiled *m)
{
    sc_replay_model *x;
    sc_text_free(&notes);
    sc_text_init(&notes);
    sc_replay_prepare(&m, 1, &(sc_replay_steps){0, UINT32_MAX}, &arena, &notes,
                      &x, &err);
    no_error();
    return x;
}

static const char *kernel_name(const sc_replay_model *m, uint32_t op)
{
    const replay_rank *r = &m->rank[0];
    return r->m->name[replay_span(r, r->op[op].span)->name];
}

/* The relu reads what the product wrote, and the addition changes what the relu
 * wrote. */
static void flows(void **state)
{
    (void)state;
    static const char *const expected[][2] = {{"gemm", "relu"},
                                              {"relu", "add"}};
    sc_profiled *m = profile_of(true);
    assert_int_equal(model_of(m)->rank[0].n_flows, 0);
    add_nodes(m);
    const sc_replay_model *x = model_of(m);
    assert_int_equal(x->rank[0].n_flows, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const replay_flow *f = &x->rank[0].flow[i];
        assert_string_equal(kernel_name(x, f->before), expected[i][0]);
        assert_string_equal(kernel_name(x, f->after), expected[i][1]);
    }
    assert_string_equal(notes.buf, "");
}

/* Without the event, nothing makes the relu wait for the product. */
static void lost_wait(void **state)
{
    (void)state;
    sc_profiled *m = profile_of(false);
    (void)model_of(m);
    assert_string_equal(notes.buf, "");
    add_nodes(m);
    (void)model_of(m);
    assert_non_null(strstr(notes.buf, "1 of 1 times that a kernel reads"));
}

static sc_time simulated(const sc_replay_model *m, const sc_replay_result *r,
                         uint32_t *deps)
{
    tiny t;
    tiny_init(&t);
    tiny_dim(&t, SC_DIM_RING, 2, 100, 500, SC_CCL_RING);
    sc_replay_workload(m, r, &arena, &notes, &t.w, &err);
    no_error();
    t.sys.replay_only = true;
    assert_int_equal(tiny_run(&t), SC_OK);
    *deps = t.w.classes[0].n_deps;
    sc_time out = t.r.makespan;
    tiny_free(&t);
    return out;
}

/* Emitted, flows are dependencies that change no time; those that no wait keeps
 * are left out, because they would. */
static void emitted(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++)
        for (int i = 0; i < 3; i++) {
            sc_replay_change c;
            uint32_t without, with;
            sc_replay_change_init(&c);
            c.factor[SC_REPLAY_COMPUTE] = i == 1 ? 5 : 1;
            c.overlap = i == 2;
            sc_profiled *m = profile_of(waits);
            const sc_replay_model *x = model_of(m);
            sc_replay_result r = run_with(x, &c);
            sc_time plain = simulated(x, &r, &without);
            add_nodes(m);
            x = model_of(m);
            sc_replay_result s = run_with(x, &c);
            assert_true(s.predicted == r.predicted);
            assert_true(simulated(x, &s, &with) == plain);
            /* of streams' own order and waits there are edges already */
            assert_int_equal(with, without);
        }
}

/* A flow past another kernel is an edge of its own. */
static void emitted_past(void **state)
{
    (void)state;
    sc_text text, nodes;
    sc_et_linked linked;
    sc_profiled *m = SC_NEW(&arena, sc_profiled);
    uint32_t without, with;
    sc_text_init(&text);
    sc_text_init(&nodes);
    for (int i = 1; i <= 3; i++) {
        const char *name = sc_sprintf(&arena, "op%d", i);
        pair_op(&text, name, 7, 10 * i, 5, "External id", i);
        pair_call(&text, "cudaLaunchKernel", 7, 10 * i + 1, 1, 10 + i);
        pair_kernel(&text, name, 7, 100 * i, 90, 10 + i);
        pair_add(&nodes, ET_1_0_1,
                 &(pair_node){.name = name,
                              .id = 10 * i,
                              .record = i,
                              .thread = 1,
                              .in = i == 3 ? PAIR_TENSOR(1, 1) : "",
                              .in_shapes = i == 3 ? "[64, 64]" : "",
                              .in_types = i == 3 ? PAIR_HALF : "",
                              .out = i == 1 ? PAIR_TENSOR(1, 1) : "",
                              .out_shapes = i == 1 ? "[64, 64]" : "",
                              .out_types = i == 1 ? PAIR_HALF : ""});
    }
    sc_text all;
    sc_text_init(&all);
    sc_text_add(&all, "[%s]", text.buf);
    sc_profiled_read_memory(all.buf, all.len, "k.json", &arena, &notes, m,
                            &err);
    no_error();
    const sc_replay_model *x = model_of(m);
    sc_replay_result r = run_with(x, NULL);
    sc_time plain = simulated(x, &r, &without);
    pair_close(&nodes, ET_1_0_1);
    sc_et_link_memory(nodes.buf, nodes.len, "et.json", m, &arena, &linked,
                      &err);
    no_error();
    x = model_of(m);
    r = run_with(x, NULL);
    assert_true(simulated(x, &r, &with) == plain);
    assert_int_equal(with, without + 1);
    assert_string_equal(notes.buf, "");
    sc_text_free(&text);
    sc_text_free(&nodes);
    sc_text_free(&all);
}

/* ---- real pairs ---------------------------------------------------------- */

/* Fraction of the time of kernels whose operator has shapes. */
static double shaped(const sc_replay_model *m)
{
    sc_time all = 0, with = 0;
    for (uint32_t k = 0; k < m->n_ranks; k++) {
        const replay_rank *r = &m->rank[k];
        for (uint32_t i = 0; i < r->n_ops; i++) {
            uint32_t item = r->op[i].item;
            if (replay_span(r, r->op[i].span)->kind != SC_SPAN_KERNEL) continue;
            all += r->op[i].dur;
            uint32_t s = item == REPLAY_NONE ? REPLAY_NONE : r->item[item].op;
            while (s != REPLAY_NONE &&
                   !r->m->args[replay_span(r, s)->args].dims)
                s = r->parent[s];
            with += s != REPLAY_NONE ? r->op[i].dur : 0;
        }
    }
    return all ? (double)with / (double)all : 0;
}

/* A member of the archive of DLRM's execution traces, unpacked. */
static const char *dlrm_et(const char *dir, uint32_t rank)
{
    return sc_sprintf(&arena, "%s/dlrm_eg_%u.json", dir, rank);
}

static void check_same(const sc_replay_result *a, const sc_replay_result *b)
{
    assert_true(a->predicted == b->predicted && a->measured == b->measured);
    assert_int_equal(a->n_ops, b->n_ops);
    for (uint32_t i = 0; i < a->n_ops; i++)
        assert_true(a->run->start[i] == b->run->start[i] &&
                    a->run->end[i] == b->run->end[i]);
}

static void link_real(sc_profiled *m, const char *et, sc_et_linked *linked)
{
    sc_et_file f = sc_et_file_look(et);
    if (!f.is) fail_msg("%s is not recognised", et);
    assert_true(sc_profiled_has_process(m, f.pid));
    sc_et_link(et, m, &arena, linked, &err);
    no_error();
    if (linked->linked != linked->nodes)
        fail_msg("%s: only %u of %u", et, linked->linked, linked->nodes);
}

/* Both profiles have no shapes. */
static void pairs(void **state)
{
    (void)state;

    static const struct {
        const char *profile, *et;
        bool by_record;
        uint32_t nodes;
        double shaped;
    } real[] = {{"hta/tests/data/execution_trace/"
                 "benchmark_simple_add_trace.json.gz",
                 "hta/tests/data/execution_trace/benchmark_simple_add_et.json"
                 ".gz",
                 true, 36, 1},
                {"param/inputs/linear_kineto.json.gz",
                 "param/inputs/linear_et.json.gz", false, 928, 0.9}};

    if (no_traces()) skip();
    for (size_t i = 0; i < SC_COUNT(real); i++) {
        sc_et_linked linked;
        sc_profiled *m = (sc_profiled *)(uintptr_t)read_trace(real[i].profile);
        const sc_profiled *one = m;
        const sc_replay_model *x = prepare(&one, 1);
        sc_replay_result plain = run_with(x, NULL);
        assert_true(shaped(x) == 0);
        link_real(m, sc_sprintf(&arena, "%s/%s", traces_folder(), real[i].et),
                  &linked);
        assert_int_equal(linked.nodes, real[i].nodes);
        assert_int_equal(linked.by_record, real[i].by_record);
        x = prepare(&one, 1);
        sc_replay_result with = run_with(x, NULL);
        check_same(&plain, &with);
        printf("%s: %u of %u, %.1f %% of kernels with shapes\n", real[i].et,
               linked.linked, linked.nodes, 100 * shaped(x));
        assert_true(shaped(x) >= real[i].shaped);
    }
}

/* Shapes of DLRM's profile, without which it is linked again, are those of the
 * execution trace; lists of tensors have none in the profile. */
static uint32_t check_shapes(const sc_profiled *stated, sc_profiled *m,
                             const char *et)
{
    sc_et_linked linked;
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_args; i++)
        m->args[i].dims = m->args[i].types = 0;
    sc_et_link(et, m, &arena, &linked, &err);
    no_error();
    for (uint64_t i = 0; i < m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(stated, i);
        const sc_trace_span *t = sc_trace_span_at(m, i);
        const sc_trace_span_args *x = &stated->args[s->args];
        const sc_trace_span_args *y = &m->args[t->args];
        const char *dims = m->name[y->dims];
        if (!x->dims || strstr(dims, "[[[") || strstr(dims, ", [[")) continue;
        if (strcmp(stated->name[x->dims], dims) != 0)
            fail_msg("%s: %s, not %s", stated->name[s->name], dims,
                     stated->name[x->dims]);
        n++;
    }
    return n;
}

static void dlrm(void **state)
{
    (void)state;
    char dir[] = "/tmp/stepcast-et-XXXXXX";
    const sc_profiled *m[8];
    sc_et_linked linked;
    uint32_t compared = 0;
    if (no_traces()) skip();
    assert_non_null(mkdtemp(dir));
    assert_true(archive_unpack(
        sc_sprintf(&arena, "%s/param/inputs/dlrm_pytorch_et.tar.gz",
                   traces_folder()),
        dir, &err));
    sc_csv facts = trace_facts();
    sc_replay_model *x = dlrm_job(&facts);
    sc_replay_result plain = run_with(x, NULL);
    for (uint32_t k = 0; k < 8; k++) {
        m[k] = x->rank[k].m;
        link_real((sc_profiled *)(uintptr_t)m[k], dlrm_et(dir, x->rank[k].rank),
                  &linked);
        assert_int_equal(linked.comms, 8);
    }
    sc_replay_prepare(m, 8, &(sc_replay_steps){0, UINT32_MAX}, &arena, &notes,
                      &x, &err);
    no_error();
    assert_non_null(strstr(notes.buf, "6 of 462 times that a kernel reads"));
    sc_replay_result with = run_with(x, NULL);
    check_same(&plain, &with);
    const sc_replay_model *again = dlrm_job(&facts);
    for (uint32_t k = 0; k < 8; k++) {
        sc_profiled *own = (sc_profiled *)(uintptr_t)again->rank[k].m;
        compared += check_shapes(m[k], own, dlrm_et(dir, again->rank[k].rank));
    }
    archive_remove(dir);
    printf("dlrm: %.1f %% of kernels with shapes, %u operators compared\n",
           100 * shaped(x), compared);
    assert_true(compared > 8 * 1500);
}

#define TEST(fn) \
    cmocka_unit_test_setup_teardown(fn, noted_setup, noted_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(flows),   TEST(lost_wait),
                                       TEST(emitted), TEST(emitted_past),
                                       TEST(pairs),   TEST(dlrm)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_traces();
    return failed;
}
