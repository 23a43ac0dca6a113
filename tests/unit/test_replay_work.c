/* SPDX-License-Identifier: Apache-2.0 */
/* A measured step beside a predicted one: passes, kinds of kernels and layers. */
#include "predict/predict.h"
#include "replay/replay_work.h"
#include "report/report_against.h"
#include "written_trace.h"

static double now;
static int id;

/* An operator that launches one kernel, which is named as given. */
static void op(const char *name, const char *kernel_name, double us)
{
    id++;
    event("cpu_op", name, 1, now, 4, "\"x\":0");
    call("cudaLaunchKernel", now + 1, 2, id);
    kernel(kernel_name, 7, now + 100, us, id);
    now += 5;
}

static void begin(const char *name, double dur)
{
    event("user_annotation", name, 1, now, dur, "\"x\":0");
}

/* Two micro-batches of a model of three layers, and its optimizer. */
static void trace_of_model(void)
{
    now = 1;
    id = 0;
    step(5000);
    for (int micro = 0; micro < 2; micro++) {
        op("aten::embedding", "indexSelectLargeIndex", 3);
        for (int i = 0; i < 3; i++) {
            op("aten::native_layer_norm", "vectorized_layer_norm_kernel", 1);
            op("aten::addmm", "ampere_sgemm_tn", 10 + i);
            op("aten::_flash_attention_forward", "flash_fwd_kernel", 5);
            op("aten::add", "vectorized_elementwise_kernel", 2);
        }
        op("aten::_log_softmax", "cunn_SoftMaxForward", 4);
        begin("autograd::engine::evaluate_function: X", 5 * 8);
        op("aten::_log_softmax_backward_data", "cunn_SoftMaxBackward", 4);
        for (int i = 2; i >= 0; i--) {
            op("aten::mm", "ampere_sgemm_nn", 20 + i);
            op("aten::bmm", "ampere_sgemm_nt", 6);
        }
        op("aten::embedding_dense_backward", "embedding_backward", 7);
    }
    begin("Optimizer.step#Adam.step", 5);
    op("aten::_fused_adam_", "multi_tensor_apply", 9);
    op("aten::copy_", "plain", 8);
}

static void is(sc_time t, double us)
{
    assert_true(t == (sc_time)(us * 1e6));
}

static void measured_work(void **state)
{
    (void)state;
    sc_step_work w;
    trace_of_model();
    sc_replay_model *m = written("");
    sc_replay_work(m, 0, 3, &arena, &w, &err);
    no_error();
    sc_time(*f)[SC_N_WORK_KINDS] = w.time;
    is(f[SC_WORK_FORWARD][SC_WORK_PRODUCTS], 2 * 33);
    is(f[SC_WORK_FORWARD][SC_WORK_ATTENTION], 2 * 15);
    is(f[SC_WORK_FORWARD][SC_WORK_NORMS], 2 * 3);
    /* lookup, sum, loss, and the kernel behind the optimizer */
    is(f[SC_WORK_FORWARD][SC_WORK_KERNELS], 2 * (3 + 6 + 4) + 8);
    is(f[SC_WORK_BACKWARD][SC_WORK_PRODUCTS], 2 * 63);
    is(f[SC_WORK_BACKWARD][SC_WORK_ATTENTION], 2 * 18);
    is(f[SC_WORK_BACKWARD][SC_WORK_KERNELS], 2 * (4 + 7));
    is(f[SC_WORK_UPDATE][SC_WORK_KERNELS], 9);
    is(f[SC_WORK_ELSE][SC_WORK_KERNELS], 0);
    assert_int_equal(w.repeats[SC_WORK_FORWARD], 3);
    assert_int_equal(w.repeats[SC_WORK_BACKWARD], 3);
    for (uint32_t i = 0; i < 3; i++) {
        is(w.layer[1 + i].pass[SC_WORK_FORWARD], 2 * (18 + i));
        is(w.layer[1 + i].pass[SC_WORK_BACKWARD], 2 * (26 + i));
    }
    is(w.layer[0].pass[SC_WORK_FORWARD], 2 * 3);
    is(w.layer[0].pass[SC_WORK_BACKWARD], 2 * 7);
    is(w.layer[4].pass[SC_WORK_FORWARD], 2 * 4);
    is(w.layer[4].pass[SC_WORK_BACKWARD], 2 * 4);
    sc_replay_work(m, 0, 5, &arena, &w, &err);
    assert_int_equal(w.repeats[SC_WORK_FORWARD], 0); /* five times */
    /* three layers are not two, with half of them left over */
    sc_replay_work(m, 0, 2, &arena, &w, &err);
    assert_int_equal(w.repeats[SC_WORK_FORWARD], 3);
    assert_int_equal(w.repeats[SC_WORK_BACKWARD], 3);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(w.layer[i].pass[0] == 0 && w.layer[i].pass[1] == 0);
}

static sc_time of_pass(const sc_step_work *w, int pass)
{
    sc_time sum = 0;
    for (int k = 0; k <= SC_WORK_KERNELS; k++) sum += w->time[pass][k];
    return sum;
}

/* Layers and what is around them are all kernels of a pass, and everything together
 * is what the device does. */
static void predicted_work(void **state)
{
    (void)state;
    sc_job job;
    sc_inputs in;
    sc_prediction p;
    sc_against x;
    sc_step_work w;
    uint32_t n = 0;
    trace_of_model();
    sc_replay_model *m = written("");
    sc_replay_result r = run_with(m, NULL);
    sc_job_init(&job);
    job.model = "gpt2";
    job.cluster = "dgx-a100:1";
    job.tp = 2;
    job.each = true;
    sc_predict_load(&job, &arena, &in, &err);
    no_error();
    sc_predict(&job, in.hw, in.model, in.sw, in.cost, &arena, &p, &err);
    no_error();
    sc_against_layers(&p, 0, &arena, &n, &err);
    assert_int_equal(n, 12);
    sc_replay_work(m, 0, 3, &arena, &w, &err);
    sc_against_of(&p, &r, 0, &w, &arena, &x, &err);
    no_error();
    for (int pass = 0; pass < 2; pass++) {
        sc_time sum = 0;
        for (uint32_t i = 0; i < n + 2; i++)
            sum += x.predicted.layer[i].pass[pass];
        assert_true(sum == of_pass(&x.predicted, pass));
        assert_true(sum > 0);
    }
    assert_string_equal(x.predicted.layer[12].name, "layers.11");
    assert_true(x.predicted.time[SC_WORK_FORWARD][SC_WORK_COLLS] > 0);
    assert_true(x.predicted.time[SC_WORK_BACKWARD][SC_WORK_ATTENTION] >
                x.predicted.time[SC_WORK_FORWARD][SC_WORK_ATTENTION]);
    sc_time all = 0, kernels = 0;
    const sc_graph *g = &p.net->plan.step;
    for (sc_op i = 0; i < g->n_ops; i++)
        if (g->kind[i] == SC_OP_COMPUTE && g->cls[sc_op_place(g, i)] == 0)
            kernels += p.net->run.end[i] - p.net->run.start[i];
    for (int pass = 0; pass < SC_N_WORK_PASSES; pass++)
        all += of_pass(&x.predicted, pass);
    assert_true(all > 0 && all <= kernels && kernels - all < kernels / 10);
    assert_true(x.kernels[0] + x.exposed[0] + x.idle[0] == x.step[0]);
    is(x.step[1], 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(measured_work),
                                       TEST(predicted_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
