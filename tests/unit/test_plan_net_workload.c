/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of operator networks: what they hold of exchanges and kernels, and
 * that ranks with one slot for communication run them to the end. */
#include "prediction.h"
#include "slots.h"

static sc_workload workload_of(const char *model, const char *cluster,
                               const char *software)
{
    sc_net_workload w;
    f.job.model = model;
    f.job.cluster = cluster;
    f.job.software = software;
    f.job.brief = true;
    sc_status s = sc_predict_job(&f.job, &f.a, &f.p, &f.err);
    if (s == SC_OK)
        s = sc_net_plan_workload(f.p.net->job, 0, false, &f.a, &w, &f.err);
    if (s == SC_OK) s = sc_workload_check(&w.work, &f.err);
    if (s != SC_OK)
        fail_msg("%s: %s %s", model, f.err.d[0].file, f.err.d[0].msg);
    return w.work;
}

/* What all members but one of a pair put in or get. */
static double volume(const sc_workload *w, uint32_t rank, uint32_t task)
{
    const sc_rank_trace *t = &w->ranks[rank];
    const sc_task_list *l = &w->classes[t->cls];
    uint32_t slot = l->group[task];
    double n =
        slot == SC_TASK_WORLD ? w->n_ranks : w->groups[t->groups[slot]].n;
    bool gathers = l->coll[task] == SC_ALL_GATHER;
    return gathers ? n * (double)l->size[task] : (double)l->size[task];
}

static double sent(const sc_workload *w, uint32_t rank, uint8_t kind)
{
    const sc_task_list *l = &w->classes[w->ranks[rank].cls];
    double sum = 0;
    for (uint32_t i = 0; i < l->n_tasks; i++)
        if (l->kind[i] == kind)
            sum +=
                kind == SC_TASK_COLL ? volume(w, rank, i) : (double)l->size[i];
    return sum;
}

/* What the step says that a device exchanges, or sends. */
static double planned(const sc_graph *g, uint32_t dev, uint8_t kind)
{
    double sum = 0;
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t from = sc_op_place(g, i), to = sc_op_place(g, i + 1);
        if (g->kind[i] != kind) continue;
        if (kind == SC_OP_P2P) to = from + 1;
        for (uint32_t k = from; k < to; k++)
            if (g->cls[k] == dev) sum += (double)g->bytes[i];
    }
    return sum;
}

typedef struct family {
    const char *model, *software;
    int64_t tp, pp, ep, gbs;
} family;

static const char megatron[] = "megatron-lm-2022";

static const family families[] = {
    {"resnet50", NULL, 0, 0, 0, 64},
    {"vgg19", NULL, 0, 2, 0, 64},
    {"dlrm", NULL, 0, 0, 0, 4096},
    {"unet3d", NULL, 0, 0, 0, 8},
    {"gpt2", megatron, 2, 2, 0, 8},
    {"t5-small", megatron, 1, 1, 0, 8},
    {"gpt-oss-20b", "megatron-core", 1, 2, 4, 8},
    {"deepseek-v2-lite", "megatron-core", 1, 1, 8, 8},
    {"nemotron-nano-9b-v2", "megatron-core", 2, 2, 0, 4},
};

/* A step has only the exposed part of an exchange that overlaps kernels: of
 * tokens to their experts, and of sums of gradients over tp. */
static void moves(const sc_workload *w, const family *v, uint32_t dev,
                  uint8_t op, uint8_t task)
{
    const sc_graph *g = &f.p.net->plan.step;
    double want = planned(g, dev, op);
    double got = sent(w, g->classes[dev].rank, task);
    bool less = got < (1 - 1e-3) * want;
    if (less || (v->ep == 0 && v->tp < 2 && got > (1 + 1e-3) * want))
        fail_msg("%s: device %u moves %g, not %g", v->model, dev, got, want);
}

static void every_family_moves_what_is_planned(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(families); i++) {
        const family *v = &families[i];
        sc_job_init(&f.job);
        f.job.tp = v->tp;
        f.job.pp = v->pp;
        f.job.ep = v->ep;
        f.job.gbs = v->gbs;
        f.job.seq = v->tp ? 512 : 0;
        f.job.mbs = v->tp ? 1 : 0;
        f.job.sp = 0;
        f.job.tp_overlap = 0;
        sc_workload w = workload_of(v->model, "dgx-h100:1", v->software);
        assert_int_equal(w.n_classes, f.p.net->plan.step.n_classes);
        for (uint32_t d = 0; d < w.n_classes; d++) {
            moves(&w, v, d, SC_OP_COLL, SC_TASK_COLL);
            moves(&w, v, d, SC_OP_P2P, SC_TASK_SEND);
        }
        const char *wrong = slots_run(&w, 3, true);
        if (wrong) fail_msg("%s: %s", v->model, wrong);
    }
}

/* Of three samples one device gets none: it has no tasks, and is in no
 * communicator. */
static void idle_devices_have_no_tasks(void **state)
{
    (void)state;
    f.job.gbs = 3;
    sc_workload w = workload_of("resnet50", "h100-sxm:4", NULL);
    assert_int_equal(w.n_ranks, 4);
    assert_int_equal(w.classes[w.ranks[3].cls].n_tasks, 0);
    assert_true(w.classes[w.ranks[2].cls].n_tasks > 0);
    assert_int_equal(w.n_groups, 1);
    assert_int_equal(w.groups[0].n, 3);
}

/* A device for each rank or one for all: the same ranks. */
static void folds_what_was_not(void **state)
{
    (void)state;
    f.job.gbs = 8;
    sc_workload folded = workload_of("resnet50", "h100-sxm:4", NULL);
    f.job.no_symmetry = true;
    sc_workload each = workload_of("resnet50", "h100-sxm:4", NULL);
    assert_int_equal(f.p.net->plan.step.n_classes, 4);
    assert_int_equal(each.n_classes, 1);
    assert_int_equal(each.classes[0].n_tasks, folded.classes[0].n_tasks);
}

/* Updates on the host take none of the device's time. */
static void hosts_update(void **state)
{
    (void)state;
    f.job.gbs = 8;
    f.job.zero = 1;
    f.job.optimizer_tier = SC_TIER_CPU;
    sc_workload w = workload_of("resnet50", "h100-sxm:4", NULL);
    const sc_task_list *l = &w.classes[0];
    uint32_t updates = 0, copies = 0;
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        bool host = l->kind[i] == SC_TASK_COMP && l->flags[i] & SC_TASK_CPU;
        updates += host;
        copies += l->kind[i] == SC_TASK_LOAD || l->kind[i] == SC_TASK_STORE;
    }
    assert_int_equal(updates, 1);
    assert_true(copies > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_family_moves_what_is_planned,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_devices_have_no_tasks, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(folds_what_was_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hosts_update, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
