/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that no model covers: the list of a trace, the program that measures
 * them, and its table. */
#include "cost/cost_alone.h"
#include "replay/replay_measure.h"
#include "written_trace.h"

#define A100 \
    "\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA A100-SXM4-80GB\"}],"

static sc_cost cost;

static const sc_device *known(const char *name)
{
    const sc_device *d;
    const char *why;
    sc_cost_builtin(&arena, &cost, &err);
    sc_cost_alone(&arena, &cost, &err);
    sc_device_nearest(name, &arena, &d, &why, &err);
    no_error();
    return d;
}

static void launch(const char *name, double us, int id)
{
    call("cudaLaunchKernel", 20 * id + 4, 2, id);
    kernel(name, 7, 150 * id, us, id);
}

static void op(const char *name, const char *dims, int id, double dur)
{
    event("cpu_op", name, 1, 20 * id, dur,
          "\"Input Dims\":%s,\"Input type\":[\"float\",\"long int\"],"
          "\"Concrete Inputs\":[\"\",\"5\"]",
          dims);
}

/* Two calls of an operator that nobody knows, of two kernels each, and others. */
static void small_trace(void)
{
    step(3000);
    op("aten::topk", "[[8,50],[]]", 1, 30);
    launch("first", 30, 1);
    launch("second", 10, 2);
    op("aten::topk", "[[8, 50], []]", 3, 30);
    launch("first", 50, 3);
    launch("second", 20, 4);
    op("aten::addmm", "[[8],[64,32],[32,8]]", 5, 15);
    launch("gemm", 40, 5);
    op("it's '''); import os", "[[9,9]]", 6, 15);
    launch("evil", 5, 6);
    op("aten::convolution", "[[1,3,8,8],[4,3,3,3]]", 7, 15);
    event("cpu_op", "aten::cudnn_convolution", 1, 141, 10,
          "\"Input Dims\":[[1,3,8,8],[4,3,3,3]]");
    launch("implicit", 60, 7);
    call("cudaLaunchKernel", 170, 2, 9);
    kernel("shapeless", 7, 1500, 3, 9);
}

static const sc_replay_operator *find(const sc_replay_operators *o,
                                      const char *name)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (strcmp(o->of[i].name, name) == 0) return &o->of[i];
    fail_msg("no %s", name);
    return NULL;
}

static void list(void **state)
{
    (void)state;
    sc_replay_operators o;
    small_trace();
    const sc_replay_model *m = written(A100);
    sc_replay_operators_of(&m, 1, &cost, known("NVIDIA A100-PCIE-40GB"), &arena,
                           &o, &err);
    no_error();
    assert_int_equal(o.n, 4);
    const sc_replay_operator *topk = &o.of[0];
    assert_string_equal(topk->name, "aten::topk");
    assert_string_equal(topk->dims, "[[8,50],[]]");
    assert_string_equal(topk->types, "[\"float\",\"long int\"]");
    assert_int_equal(topk->count, 2);
    assert_int_equal(topk->kernels, 4);
    assert_true(topk->total == 110000000);
    assert_string_equal(topk->why, "no model knows it");
    assert_null(find(&o, "aten::addmm")->why); /* measured on this device */
    (void)find(&o, "aten::convolution");       /* anybody can call it */
    assert_int_equal(o.n_shapeless, 1);
    assert_true(o.shapeless == 3000000);
    sc_replay_operators_of(&m, 1, &cost, known("NVIDIA H100 80GB HBM3"), &arena,
                           &o, &err);
    no_error();
    assert_string_equal(find(&o, "aten::addmm")->why,
                        "kernels of its kind were measured on other devices");
}

static void program(void **state)
{
    (void)state;
    sc_replay_operators o;
    sc_text text;
    small_trace();
    const sc_replay_model *m = written(A100);
    sc_replay_operators_of(&m, 1, &cost, known("NVIDIA A100-PCIE-40GB"), &arena,
                           &o, &err);
    sc_text_init(&text);
    sc_replay_measure_script(&o, &text);
    assert_false(text.failed);
    assert_non_null(strstr(text.buf, "\"aten::topk\""));
    assert_null(strstr(text.buf, "\"aten::addmm\""));
    /* a name can't end the string in which it is */
    assert_non_null(strstr(text.buf, "it\\u0027s \\u0027\\u0027\\u0027); imp"));
    assert_null(strstr(text.buf, "'''); import"));
    char path[] = "/tmp/stepcast-measure-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    assert_true(fputs(text.buf, f) >= 0 && fclose(f) == 0);
    char *command = sc_sprintf(&arena,
                               "python3 -c 'import ast, sys; "
                               "ast.parse(open(sys.argv[1]).read())' %s",
                               path);
    if (system("python3 -c pass 2>/dev/null") == 0)
        assert_int_equal(system(command), 0);
    remove(path);
    sc_text_free(&text);
}

static sc_csv csv_of(const char *text)
{
    sc_csv t;
    sc_csv_parse(text, strlen(text), "k.csv", &arena, &t, &err);
    no_error();
    return t;
}

#define HEAD "operator,dims,types,concrete,device,seconds\n"
#define TOPK                                                           \
    "aten::topk,\"[[8,50],[]]\",\"[\"\"float\"\",\"\"long int\"\"]\"," \
    "\"[\"\"\"\",\"\"5\"\"]\","

static sc_time predicted(const sc_replay_model *m, const sc_replay_change *c,
                         const char *name)
{
    uint32_t n;
    sc_replay_kernel *k;
    sc_replay_result r = run_with(m, c);
    sc_replay_kernels(m, &r, &arena, &k, &n, &err);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(k[i].name, name) == 0) return k[i].predicted;
    return -1;
}

/* Kernels keep their shares of what was measured of their operator. */
static void times(void **state)
{
    (void)state;
    sc_replay_times t;
    sc_replay_change c;
    uint32_t other;
    small_trace();
    const sc_replay_model *m = written(A100);
    sc_csv csv = csv_of(HEAD TOPK "NVIDIA H100 80GB HBM3,20e-6\n" TOPK
                                  "Tesla V100-SXM2-32GB,1\n");
    sc_replay_change_init(&c);
    c.cost = &cost;
    c.to = known("NVIDIA H100 80GB HBM3");
    c.from = known("NVIDIA A100-SXM4-80GB");
    sc_time without = predicted(m, &c, "gemm");
    sc_replay_times_read(&csv, c.to, &arena, &t, &other, &err);
    no_error();
    assert_int_equal(t.n, 1);
    assert_int_equal(other, 1);
    c.times = &t;
    assert_int_equal(predicted(m, &c, "first"), 15000000 + 14285714);
    assert_int_equal(predicted(m, &c, "second"), 5000000 + 5714286);
    assert_true(predicted(m, &c, "gemm") == without);
}

static void bad_tables(void **state)
{
    (void)state;
    sc_replay_times t;
    uint32_t other;
    const sc_device *d = known("NVIDIA H100 80GB HBM3");
    static const char *const bad[][2] = {
        {"operator,dims\na,b\n", "no column types"},
        {HEAD TOPK "NVIDIA H100 80GB HBM3,fast\n", "are no seconds"},
        {HEAD TOPK "NVIDIA H100 80GB HBM3,-1\n", "are no seconds"},
        {HEAD TOPK "NVIDIA H100 80GB HBM3,\n", "are no seconds"}};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_csv csv = csv_of(bad[i][0]);
        assert_int_equal(
            sc_replay_times_read(&csv, d, &arena, &t, &other, &err), SC_EINPUT);
        assert_non_null(strstr(err.d[0].msg, bad[i][1]));
        sc_err_init(&err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(list), TEST(program), TEST(times),
                                       TEST(bad_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
