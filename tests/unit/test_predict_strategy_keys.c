/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key of a strategy's file, for blocks and for networks of operators:
 * another value is another prediction, or is said to change nothing.
 */
#include "prediction.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 4000 };

static const char *const sections[] = {
    "software", "precision", "optimizer", "mesh",       "batch", "preset",
    "pipeline", "overlap",   "offload",   "checkpoint", "pools", "rules"};

/* Values by section, alternating with its name; NULL ends. */
typedef const char *const file[2 * SC_COUNT(sections) + 1];

static const char *value(const char *const *of, const char *section)
{
    for (; of && of[0]; of += 2)
        if (strcmp(of[0], section) == 0) return of[1];
    return NULL;
}

/* Blocks have stages on the outermost axis: with replicas on it, they are not
 * asked. */
static void compose(const char *const *base, const char *const *over,
                    bool graph, char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < SC_COUNT(sections); i++) {
        const char *name = sections[i], *v = value(over, name);
        if (!v) v = value(base, name);
        if (!v || !*v) continue;
        if (graph && strcmp(name, "mesh") == 0) /* "{pp: 2, dp: 2, ..." */
            n += (size_t)snprintf(text + n, TEXT - n, "%s: {%.5s, %.5s%s\n",
                                  name, v + 8, v + 1, v + 13);
        else
            n += (size_t)snprintf(text + n, TEXT - n, "%s: %s\n", name, v);
        assert_true(n < TEXT);
    }
}

/* What is predicted; `idle`: something is said to change nothing. */
static void numbers(const sc_prediction *p, char *out, bool *idle)
{
    size_t n = (size_t)snprintf(out, TEXT, "%.9g %.9g %.9g %.9g",
                                p->step_time_s, p->samples_per_s,
                                p->cost_usd_per_step, p->co2e_kg_per_step);
    for (uint32_t i = 0; i < p->n_stages; i++)
        n += (size_t)snprintf(out + n, TEXT - n, " %.9g %.9g",
                              p->memory[i].peak, p->memory[i].optimizer);
    for (uint32_t i = 0; i < SC_N_CATS; i++)
        n += (size_t)snprintf(out + n, TEXT - n, " %.9g",
                              p->time_breakdown_s[i]);
    for (uint32_t i = 0; i < p->n_warnings; i++)
        *idle |= strstr(p->warnings[i], "changes nothing") != NULL;
}

/* What comes of a file: numbers, or the first error; `graph` may be NULL. */
static void outcome(const char *model, const char *cluster, const char *text,
                    char *out, bool *graph, bool *idle)
{
    sc_strategy *s = SC_NEW(&f.a, sc_strategy);
    sc_prediction p;
    sc_job job;
    sc_job_init(&job);
    sc_err_init(&f.err);
    job.brief = true;
    job.tree = s;
    job.model = model;
    job.cluster = cluster;
    sc_status st =
        sc_strategy_read(text, strlen(text), "s.yml", &f.a, s, &f.err);
    if (st == SC_OK) st = sc_strategy_to_job(s, NULL, &job, &f.a, &f.err);
    if (st == SC_OK) st = sc_predict_job(&job, &f.a, &p, &f.err);
    *idle = false;
    if (st != SC_OK) {
        if (st == SC_EBUG) fail_msg("%s%s", text, f.err.d[0].msg);
        snprintf(out, TEXT, "error: %s", f.err.d[0].msg);
        return;
    }
    numbers(&p, out, idle);
    *graph = p.by_mesh;
}

typedef struct row {
    const char *key;
    file one, other; /* beside the base */
} row;

typedef struct path {
    const char *model, *cluster;
    bool net;
    file base;
} path;

static void differ(const path *p, const row *rows, size_t n)
{
    char text[TEXT], a[TEXT], b[TEXT];
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        bool graph = p->net, idle;
        compose(p->base, rows[i].one, p->net, text);
        outcome(p->model, p->cluster, text, a, &graph, &idle);
        if (strncmp(a, "error", 5) == 0 || graph != p->net) {
            print_message("%s: %s%s\n", rows[i].key, text, a);
            bad++;
        }
        compose(p->base, rows[i].other, p->net, text);
        outcome(p->model, p->cluster, text, b, &graph, &idle);
        if (strcmp(a, b) != 0 || idle) continue;
        print_message("%s changes nothing: %s%s\n", rows[i].key, text, a);
        bad++;
    }
    assert_int_equal(bad, 0);
}

/* A model of blocks on two nodes. */
static const path blocks = {
    "gpt3-xl",
    "dgx-a100-80g:2",
    false,
    {"software", "megatron-core", "mesh", "{pp: 2, dp: 2, tp: 4}", "batch",
     "{global: 32, micro: 2, seq: 1024}", "preset",
     "{tensor_parallel: megatron-sp, zero: 1, recompute: none}", NULL}};

#define CP "mesh", "{pp: 2, dp: 2, cp: 2, tp: 2}"

static const row of_blocks[] = {
    {"software", {NULL}, {"software", "megatron-lm-2022", NULL}},
    {"precision", {NULL}, {"precision", "fp32", NULL}},
    {"optimizer", {NULL}, {"optimizer", "sgd", NULL}},
    {"mesh", {NULL}, {"mesh", "{pp: 4, dp: 2, tp: 2}", NULL}},
    {"batch.global",
     {NULL},
     {"batch", "{global: 64, micro: 2, seq: 1024}", NULL}},
    {"batch.micro",
     {NULL},
     {"batch", "{global: 32, micro: 1, seq: 1024}", NULL}},
    {"batch.seq", {NULL}, {"batch", "{global: 32, micro: 2, seq: 2048}", NULL}},
    {"tensor_parallel",
     {NULL},
     {"preset", "{tensor_parallel: megatron, zero: 1, recompute: none}", NULL}},
    {"zero",
     {NULL},
     {"preset", "{tensor_parallel: megatron-sp, zero: 0, recompute: none}",
      NULL}},
    {"zero_axis",
     {NULL},
     {"preset",
      "{tensor_parallel: megatron-sp, zero: 1, zero_axis: tp, recompute: none}",
      NULL}},
    {"recompute",
     {NULL},
     {"preset", "{tensor_parallel: megatron-sp, zero: 1, recompute: full}",
      NULL}},
    {"recompute_method",
     {"preset", "{tensor_parallel: megatron-sp, zero: 1, recompute: full}",
      NULL},
     {"preset",
      "{tensor_parallel: megatron-sp, zero: 1, recompute: full, "
      "recompute_method: block}",
      NULL}},
    {"recompute_num_layers",
     {"preset",
      "{tensor_parallel: megatron-sp, zero: 1, recompute: full, "
      "recompute_method: block}",
      NULL},
     {"preset",
      "{tensor_parallel: megatron-sp, zero: 1, recompute: full, "
      "recompute_method: block, recompute_num_layers: 3}",
      NULL}},
    {"context_parallel",
     {CP, NULL},
     {CP, "preset",
      "{tensor_parallel: megatron-sp, zero: 1, recompute: none, "
      "context_parallel: ulysses}",
      NULL}},
    {"context_parallel",
     {CP, NULL},
     {CP, "preset",
      "{tensor_parallel: megatron-sp, zero: 1, recompute: none, "
      "context_parallel: all-gather}",
      NULL}},
    {"data_parallel",
     {NULL},
     {"preset",
      "{tensor_parallel: megatron-sp, zero: 1, recompute: none, data_parallel: "
      "false}",
      NULL}},
    {"schedule", {NULL}, {"pipeline", "{schedule: gpipe}", NULL}},
    {"virtual",
     {NULL},
     {"pipeline", "{schedule: interleaved, virtual: 2}", NULL}},
    {"order", {NULL}, {"pipeline", "{order: absent.yml}", NULL}},
    {"cuts", {NULL}, {"pipeline", "{cuts: [10, 14]}", NULL}},
    {"cuts", {NULL}, {"pipeline", "{cuts: [layers.9]}", NULL}},
    {"max_in_flight", {NULL}, {"pipeline", "{max_in_flight: [1, 1]}", NULL}},
    {"grad_bucket", {NULL}, {"overlap", "{grad_bucket: 1MB}", NULL}},
    {"grad",
     {"overlap", "{grad: true}", NULL},
     {"overlap", "{grad: false}", NULL}},
    {"p2p",
     {"overlap", "{p2p: false}", NULL},
     {"overlap", "{p2p: true}", NULL}},
    {"p2p of chunks",
     {"pipeline", "{virtual: 2}", "overlap", "{p2p: false}", NULL},
     {"pipeline", "{virtual: 2}", "overlap", "{p2p: true}", NULL}},
    {"tp", {"overlap", "{tp: false}", NULL}, {"overlap", "{tp: true}", NULL}},
    {"tp without sp",
     {"preset", "{tensor_parallel: megatron}", "overlap", "{tp: false}", NULL},
     {"preset", "{tensor_parallel: megatron}", "overlap", "{tp: true}", NULL}},
    {"gamma", {NULL}, {"overlap", "{gamma: 0.5}", NULL}},
    {"activations", {NULL}, {"offload", "{activations: 0.5}", NULL}},
    {"offload.optimizer", {NULL}, {"offload", "{optimizer: cpu}", NULL}},
    {"offload.optimizer",
     {"offload", "{optimizer: cpu}", NULL},
     {"offload", "{optimizer: nvme}", NULL}},
    {"checkpoint.every", {NULL}, {"checkpoint", "{every: 10}", NULL}},
    {"checkpoint.async",
     {"checkpoint", "{every: 10}", NULL},
     {"checkpoint", "{every: 10, async: true}", NULL}},
    {"checkpoint.to",
     {"checkpoint", "{every: 10}", NULL},
     {"checkpoint", "{every: 10, to: cpu}", NULL}},
    {"checkpoint.to",
     {"checkpoint", "{every: 10, to: cpu}", NULL},
     {"checkpoint", "{every: 10, to: nvme}", NULL}},
    {"checkpoint.to",
     {"checkpoint", "{every: 10}", NULL},
     {"checkpoint", "{every: 10, to: device}", NULL}},
    {"pools.device",
     {NULL},
     {"pools", "[{name: a, device: h100-sxm, stages: 2}]", NULL}},
    {"pools.replicas",
     {NULL},
     {"pools", "[{name: a, device: h100-sxm, replicas: 2}]", NULL}},
    {"rules.split",
     {NULL},
     {"rules",
      "[{match: 'layers.*.fc1', split: {}}, {match: 'layers.*.fc2', split: "
      "{}}]",
      NULL}},
    {"rules.weight",
     {NULL},
     {"rules", "[{match: '*', tensor: weight, place: {dim0: dp}}]", NULL}},
    {"rules.bias",
     {NULL},
     {"rules", "[{match: '*', tensor: bias, place: {dim0: dp}}]", NULL}},
    {"rules.grad",
     {NULL},
     {"rules", "[{match: '*', tensor: grad, place: {dim0: dp}}]", NULL}},
    {"rules.optim",
     {NULL},
     {"rules", "[{match: '*', tensor: optim, place: {}}]", NULL}},
    {"rules.tier",
     {NULL},
     {"rules", "[{match: '*', tensor: optim, place: cpu}]", NULL}},
    {"rules.recompute",
     {NULL},
     {"rules", "[{match: layers.0-5, recompute: true}]", NULL}},
    {"rules.recompute",
     {"rules", "[{match: layers, recompute: true}]", NULL},
     {"rules", "[{match: layers, recompute: {uniform: 3}}]", NULL}},
    {"rules.recompute",
     {"rules", "[{match: layers, recompute: true}]", NULL},
     {"rules", "[{match: layers, recompute: {block: 1}}]", NULL}},
    {"rules.devices",
     {NULL},
     {"rules", "[{match: layers.9, devices: {pp: 1}}]", NULL}},
    {"rules.assign",
     {NULL},
     {"rules", "[{match: 'layers.*.fc1', assign: round_robin, over: tp}]",
      NULL}},
};

/* The same where blocks choose nothing. */
static const row of_graphs[] = {
    {"offload at rest",
     {"offload", "{activations: 0.2}", NULL},
     {"offload", "{activations: 0.9}", NULL}},
    {"optimizer", {"optimizer", "adam", NULL}, {"optimizer", "adagrad", NULL}},
    {"rules.devices",
     {NULL},
     {"rules", "[{match: layers.9, devices: {tp: 0}}]", NULL}},
    {"rules.out",
     {NULL},
     {"rules", "[{match: 'layers.*.fc1', tensor: out, place: {}}]", NULL}},
    {"rules.out_grad",
     {NULL},
     {"rules", "[{match: 'layers.*.fc1', tensor: out_grad, place: {}}]", NULL}},
    {"rules.in",
     {NULL},
     {"rules", "[{match: 'layers.*.fc2', tensor: in, place: {}}]", NULL}},
    {"rules.out on the host",
     {NULL},
     {"rules", "[{match: 'layers.*.fc1', tensor: out, place: cpu}]", NULL}},
    {"rules.weight on the host",
     {NULL},
     {"rules", "[{match: 'layers.*.fc1', tensor: weight, place: cpu}]", NULL}},
    {"rules.grad on the host",
     {NULL},
     {"rules", "[{match: 'layers.*.fc1', tensor: grad, place: cpu}]", NULL}},
    {"cuts", {NULL}, {"pipeline", "{cuts: balanced}", NULL}},
    {"chunks of cuts",
     {NULL},
     {"pipeline", "{schedule: interleaved, cuts: [5, 6, 6, 7]}", NULL}},
};

static void blocks_follow(void **state)
{
    (void)state;
    differ(&blocks, of_blocks, SC_COUNT(of_blocks));
}

static void graphs_follow(void **state)
{
    (void)state;
    path graph = blocks;
    graph.net = true;
    differ(&graph, of_blocks, SC_COUNT(of_blocks));
    differ(&graph, of_graphs, SC_COUNT(of_graphs));
}

/* ---- options of a network of operators --------------------------------------- */

typedef struct option {
    const char *key, *one, *other; /* `one` NULL: not given */
    const char *with;              /* "key=value" beside both; NULL: nothing */
} option;

static const option options[] = {
    {"model", "resnet50", "resnet152", NULL},
    {"cluster", "dgx-h100:1", "dgx-a100-80g:1", NULL},
    {"nic-bw", NULL, "10GB/s", "cluster=dgx-h100:2"},
    {"vocab-size", NULL, "1000", NULL},
    {"power-cap", NULL, "400W", NULL},
    {"mean-tokens", NULL, "100", NULL},
    {"document-tokens", NULL, "100", NULL},
    {"etp", NULL, "1", NULL},
    {"tp-overlap", NULL, "true", NULL},
    {"ep-overlap", NULL, "true", NULL},
    {"cuda-graphs", NULL, "step", NULL},
    {"fused-accumulation", NULL, "true", NULL},
    {"fused-experts", NULL, "true", NULL},
    {"fp8-attention", NULL, "true", NULL},
    {"low-params", NULL, "true", NULL},
    {"fine-tune", NULL, "true", NULL},
    {"optimizer-bytes", NULL, "20B", NULL},
    {"software", NULL, "mlperf-mxnet", NULL},
    {"tp", NULL, "2", NULL},
    {"pp", NULL, "2", NULL},
    {"dp", NULL, "4", NULL},
    {"cp", NULL, "2", NULL},
    {"ep", NULL, "2", NULL},
    {"vp", NULL, "2", "pp=2"},
    {"global-batch", NULL, "512", NULL},
    {"micro-batch", NULL, "8", NULL},
    {"accumulation", NULL, "4", NULL},
    {"seq", NULL, "128", NULL},
    {"zero", NULL, "1", NULL},
    {"fsdp", NULL, "true", NULL},
    {"hsdp", NULL, "2", NULL},
    {"prefetch", NULL, "3", NULL},
    {"cp-comm", NULL, "ulysses", NULL},
    {"capacity-factor", NULL, "1.5", NULL},
    {"expert-imbalance", NULL, "1.5", NULL},
    {"grad-compress", NULL, "fp8", NULL},
    {"freeze", NULL, "layer1.*", NULL},
    {"freeze", NULL, "nothing.of.it", NULL},
    {"sp", NULL, "true", NULL},
    {"recompute", NULL, "selective", NULL},
    {"recompute", NULL, "full", NULL},
    {"recompute-method", NULL, "block", "recompute=full"},
    {"recompute-num-layers", NULL, "2", NULL},
    {"offload", NULL, "0.5", NULL},
    {"offload-optimizer", NULL, "cpu", NULL},
    {"offload-weights", NULL, "0.5", NULL},
    {"offload-to", NULL, "nvme", "offload=0.5"},
    {"expanded-fraction", "0.25", "0.5", NULL},
    {"expanded-access", "at-once", "in-turn", "expanded-fraction=0.5"},
    {"host-mem-bw", NULL, "1GB/s", NULL},
    {"nvme-bw", NULL, "1GB/s", NULL},
    {"checkpoint-every", NULL, "10", NULL},
    {"checkpoint-async", NULL, "true", NULL},
    {"checkpoint-async", NULL, "true", "checkpoint-every=10"},
    {"storage-bw", NULL, "1GB/s", "checkpoint-every=10"},
    {"schedule", NULL, "gpipe", "pp=2"},
    {"schedule", NULL, "file", "pp=2"},
    {"schedule-file", NULL, "absent.yml", NULL},
    {"keep-bf16", NULL, "layer1.*", NULL},
    {"precision", NULL, "fp32", NULL},
    {"overlap-grad-reduce", "true", "false", NULL},
    {"grad-bytes", "4B", "2B", NULL},
    {"forward-only", NULL, "true", NULL},
    {"launch-blocking", NULL, "true", NULL},
    {"numa-unbound", NULL, "true", NULL},
    {"engine", NULL, "fast", NULL},
    {"price", "1USD/h", "2USD/h", NULL},
    {"purchase", NULL, "list-2024", NULL},
    {"electricity", "0.1USD/kWh", "0.2USD/kWh", "purchase=list-2024"},
    {"grid-intensity", NULL, "0.4kg/kWh", NULL},
    {"tokens", NULL, "1M", NULL}, /* images are none */
    {"failures", NULL, "llama3", NULL},
    {"restart", NULL, "1min", NULL},
    {"repair", NULL, "1h", NULL},
    {"spares", NULL, "2", NULL},
    {"availability", NULL, "99%", NULL},
    {"optimizer", NULL, "lamb", NULL},
    {"compat", NULL, "proteus", NULL},
    {"gamma", "0.5", "1", NULL},
    {"op-times", NULL, "absent.csv", NULL},
};

static void set(sc_job *job, sc_given *given, const char *key, const char *text)
{
    const sc_key *k = sc_job_keys;
    while (k->name && strcmp(k->name, key) != 0) k++;
    assert_non_null(k->name);
    sc_given_set(given, sc_job_keys, key);
    if (sc_schema_set(k, text, sc_pos_none(), job, &f.a, &f.err) != SC_OK)
        fail_msg("--%s %s: %s", key, text, f.err.d[0].msg);
}

static void predicted(const option *o, const char *text, char *out, bool *idle)
{
    char with[80] = "";
    sc_given given = {{0}};
    sc_prediction p;
    sc_job job;
    sc_job_init(&job);
    sc_err_init(&f.err);
    job.brief = true;
    set(&job, &given, "model", "resnet50");
    /* the built-in prices have none of expanded memory */
    bool plain = strcmp(o->key, "purchase") == 0 ||
                 (o->with && strstr(o->with, "purchase"));
    set(&job, &given, "cluster",
        plain ? "dgx-h100:1"
              : "dgx-h100:1; expanded_memory=1TB; expanded_bw=100GB/s");
    set(&job, &given, "global-batch", "256");
    set(&job, &given, "micro-batch", "16");
    if (o->with) snprintf(with, sizeof with, "%s", o->with);
    if (o->with) {
        char *eq = strchr(with, '=');
        *eq = '\0';
        set(&job, &given, with, eq + 1);
    }
    if (text) set(&job, &given, o->key, text);
    sc_status st = sc_predict_job(&job, &f.a, &p, &f.err);
    *idle = false;
    if (st != SC_OK) {
        if (st == SC_EBUG) fail_msg("%s: %s", o->key, f.err.d[0].msg);
        snprintf(out, TEXT, "error: %s", f.err.d[0].msg);
        return;
    }
    numbers(&p, out, idle);
}

/* Those that make the same step another way, or say where it is written. */
static bool no_effect(const char *key)
{
    return strcmp(key, "fidelity") == 0 || strcmp(key, "no-symmetry") == 0 ||
           strcmp(key, "strategy") == 0;
}

static void options_follow(void **state)
{
    (void)state;
    uint32_t bad = 0;
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        bool listed = no_effect(k->name);
        for (size_t i = 0; i < SC_COUNT(options); i++)
            listed |= strcmp(k->name, options[i].key) == 0;
        if (!listed) print_message("%s is not in the table\n", k->name);
        bad += !listed;
    }
    for (size_t i = 0; i < SC_COUNT(options); i++) {
        char a[TEXT], b[TEXT];
        bool idle;
        predicted(&options[i], options[i].one, a, &idle);
        if (strncmp(a, "error", 5) == 0) fail_msg("%s: %s", options[i].key, a);
        predicted(&options[i], options[i].other, b, &idle);
        if (strcmp(a, b) != 0 || idle) continue;
        print_message("--%s changes nothing: %s\n", options[i].key, a);
        bad++;
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocks_follow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(graphs_follow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(options_follow, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
