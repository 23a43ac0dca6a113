/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads with more replicas: those of small predictions, made larger, are
 * those of large predictions; and what can't be made larger.
 */
#include "emitted.h"
#include "graph/graph_scale.h"
#include "small_workload.h"

typedef struct layout {
    const char *name, *software;
    uint32_t tp, pp, dp, cp, ep, ga;
    int zero, sp;
    uint32_t to; /* data-parallel degree */
    bool experts, overlap;
    int64_t hsdp;
} layout;

static sc_workload of(const layout *v, uint32_t dp)
{
    sc_job j = f.job;
    char cluster[32];
    j.tp = v->tp;
    j.pp = v->pp;
    j.dp = dp;
    j.cp = v->cp;
    j.ep = v->ep;
    j.vpp = 1;
    j.mbs = 1;
    j.gbs = (int64_t)v->ga * dp;
    j.zero = v->zero;
    j.sp = v->sp;
    j.hsdp = v->hsdp;
    j.recompute = SC_RC_NONE;
    j.grad_overlap = v->overlap;
    snprintf(cluster, sizeof cluster, "h100-sxm:%u",
             v->tp * v->pp * v->cp * dp);
    return emitted(cluster, v->software, v->experts, &j);
}

static const layout layouts[] = {
    {"dense", NULL, 1, 1, 2, 1, 1, 2, 0, 0, 128, false, false, 0},
    {"tensors", NULL, 2, 1, 2, 1, 1, 2, 0, 1, 128, false, true, 0},
    {"ZeRO-1", "megatron-core", 2, 1, 2, 1, 1, 2, 1, 1, 128, false, true, 0},
    {"ZeRO-1 at the end", NULL, 2, 2, 2, 1, 1, 2, 1, 1, 128, false, false, 0},
    {"ZeRO-3", "llm-foundry-2023", 1, 1, 2, 1, 1, 2, 3, 0, 128, false, true, 0},
    {"ZeRO-3, tensors", "torchtitan-2024", 2, 1, 2, 1, 1, 2, 3, 1, 128, false,
     true, 0},
    {"stages", "megatron-core", 2, 2, 2, 1, 1, 4, 0, 1, 128, false, true, 0},
    {"context", "megatron-core", 2, 2, 2, 2, 1, 4, 1, 1, 64, false, true, 0},
    {"experts", "megatron-core", 1, 1, 8, 1, 4, 2, 1, 0, 128, true, true, 0},
    {"experts, tensors, stages", "megatron-core", 2, 2, 4, 1, 2, 4, 1, 1, 64,
     true, true, 0},
    {"groups that shard", "torchtitan-2024", 1, 1, 8, 1, 1, 2, 3, 0, 64, false,
     true, 4},
    {"no power of two", "megatron-core", 2, 1, 3, 1, 1, 2, 0, 1, 24, false,
     true, 0},
};

/* Kernels on shards: their times are not divisible, launches take as long. */
static void without_optimizer(sc_workload *w)
{
    for (uint32_t c = 0; c < w->n_classes; c++)
        for (uint32_t i = 0; i < w->classes[c].n_tasks; i++)
            if (strcmp(w->classes[c].name[i], "optimizer") == 0 ||
                w->classes[c].kind[i] != SC_TASK_COMP)
                w->classes[c].duration[i] = 0;
}

static void larger_ones_are_equal(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(layouts); i++) {
        const layout *v = &layouts[i];
        sc_text t;
        sc_text_init(&t);
        sc_workload small = of(v, v->dp), want = of(v, v->to), got;
        sc_status s = sc_workload_scale(&small, want.n_ranks, NULL, &f.a, &t,
                                        &got, &f.err);
        if (s != SC_OK) fail_msg("%s: %s", v->name, f.err.d[0].msg);
        assert_int_equal(sc_workload_check(&got, &f.err), SC_OK);
        without_optimizer(&got);
        without_optimizer(&want);
        const char *why = unequal(&got, &want, true);
        if (why) fail_msg("%s: %s differ", v->name, why);
        for (uint32_t g = 0; g < got.n_groups; g++)
            assert_string_equal(got.groups[g].name, want.groups[g].name);
        assert_non_null(strstr(t.buf, "replicas of"));
        sc_text_free(&t);
        tear_down(NULL);
        set_up(NULL);
    }
}

/* Two replicas of one rank become eight. A shard becomes a quarter, rounded up,
 * and so does a member's part of the gather. What comes before the scatter or
 * behind the gather works on all of it, as before. */
static void shards_end_at_the_gather(void **state)
{
    (void)state;
    static const uint32_t both[] = {0, 1};
    static const uint64_t work[] = {8000, 0, 2000, 0, 4000};

    static const struct {
        uint64_t size, ops;
        sc_time duration;
    } want[] = {{800, 8000, 80},
                {1000, 0, 0},
                {251, 500, 25},
                {125, 0, 0},
                {1000, 4000, 40}};

    sw *s = SC_NEW(&f.a, sw);
    sc_workload out;
    sc_text t;
    s->n_ranks = 2;
    s->one_class = true;
    uint32_t g = sw_group(s, 2, both);
    for (uint32_t r = 0; r < 2; r++) {
        sw_comp(s, r, 80)->size = 800;
        sw_coll(s, r, SC_REDUCE_SCATTER, 1000, g);
        sw_comp(s, r, 100)->size = 1001;
        sw_coll(s, r, SC_ALL_GATHER, 500, g);
        sw_comp(s, r, 40)->size = 1000;
        for (uint32_t i = 1; i < 5; i++) sw_after(&s->node[r][i], i - 1);
    }
    const sc_workload *w = sw_build(s, &f.a);
    memcpy(w->classes[0].ops, work, sizeof work);
    sc_text_init(&t);
    assert_int_equal(sc_workload_scale(w, 8, NULL, &f.a, &t, &out, &f.err),
                     SC_OK);
    sc_text_free(&t);
    const sc_task_list *l = &out.classes[0];
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(l->size[i], want[i].size);
        assert_int_equal(l->ops[i], want[i].ops);
        assert_int_equal(l->duration[i], want[i].duration);
    }
}

static sc_status scaled(const sc_workload *w, uint32_t to, const char *group)
{
    sc_text t;
    sc_workload out;
    sc_text_init(&t);
    sc_status s = sc_workload_scale(w, to, group, &f.a, &t, &out, &f.err);
    if (s != SC_OK) assert_int_equal(t.len, 0);
    sc_text_free(&t);
    return s;
}

/* One replica: its sums and exchanges are not between replicas. */
static void one_replica(void **state)
{
    (void)state;
    const layout tensors = {"", "megatron-core", 4,    2, 1, 1, 1, 2, 0, 1,
                            0,  false,           true, 0};
    const layout all = {"", "megatron-core", 4,    1, 1, 1, 1, 2, 0, 0,
                        0,  false,           true, 0};
    const layout experts = {
        "", "megatron-core", 1, 1, 4, 1, 4, 2, 0, 0, 0, true, true, 0};
    const layout *each[] = {&tensors, &all, &experts};
    for (size_t i = 0; i < SC_COUNT(each); i++) {
        sc_workload w = of(each[i], each[i]->dp);
        sc_err_init(&f.err);
        assert_int_equal(scaled(&w, 2 * w.n_ranks, NULL), SC_EINPUT);
        assert_int_equal(f.err.d[0].code, SC_C_UNSUPPORTED);
    }
}

/* The largest of them is taken; a name says otherwise. */
static void named(void **state)
{
    (void)state;
    const layout v = {"", "megatron-core", 2,    2, 2, 1, 1, 4, 1, 1,
                      0,  false,           true, 0};
    sc_workload w = of(&v, 2);
    uint32_t across = 0, inside = 0;
    for (uint32_t g = 0; g < w.n_groups; g++) {
        uint32_t apart = w.groups[g].rank[1] - w.groups[g].rank[0];
        if (apart == 2) across = g;
        if (apart == 1) inside = g;
    }
    assert_int_equal(scaled(&w, 16, w.groups[across].name), SC_OK);
    assert_int_equal(scaled(&w, 16, "99"), SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_REFERENCE);
    assert_int_equal(scaled(&w, 12, NULL), SC_EINPUT);
    assert_int_equal(f.err.d[1].code, SC_C_DIVIDE);
    /* tensors as if they were replicas: equal parts, so it can be asked for */
    assert_int_equal(scaled(&w, 16, w.groups[inside].name), SC_OK);
}

/* A rank that does something of its own makes its replica another one. */
static void unequal_replicas(void **state)
{
    (void)state;
    const layout v = {"", NULL, 2, 1, 2, 1, 1, 2, 0, 1, 0, false, false, 0};
    sc_workload w = of(&v, 2);
    sc_task_list *two = SC_NEW_N(&f.a, sc_task_list, 2);
    two[0] = two[1] = w.classes[0];
    w.classes = two;
    w.n_classes = 2;
    w.ranks[3].cls = 1;
    assert_int_equal(scaled(&w, 8, NULL), SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(larger_ones_are_equal, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(shards_end_at_the_gather, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_replica, set_up, tear_down),
        cmocka_unit_test_setup_teardown(named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unequal_replicas, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
