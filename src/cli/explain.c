/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - `stepcast explain FIELD|ERROR`, and the words of --help. */
#include <stepcast/predict.h>

#include "cli/cli.h"

#include <string.h>

typedef struct word {
    const char *name, *unit, *text;
} word;

static const word words_known[] = {
    {"step_time_s", "s",
     "time of one optimizer step: all micro-batches, "
     "gradient exchange, optimizer, fixed part"},
    {"step_time_low_s", "s",
     "lower end of the 80 % interval, from the "
     "validation errors of comparable runs"},
    {"step_time_high_s", "s", "upper end of that interval"},
    {"step_time_other_engine_s", "s",
     "the same step by the engine that was not asked for"},
    {"measured_s", "s", "what --measured gives, or the median of its log"},
    {"measured_steps", "-", "steps of the log that the median is of"},
    {"measured_spread_s", "s",
     "half the distance between the quartiles of these steps"},
    {"measured_peak", "bytes", "largest memory that the log prints"},
    {"peak_error", "fraction", "largest predicted peak / measured_peak - 1"},
    {"gap_s", "s", "measured_s - step_time_s"},
    {"gap_causes", "fraction",
     "by how much a part of the step would have to change to explain the gap "
     "alone; the largest parts first"},
    {"sensitivity", "fraction",
     "change of the step time where one parameter grows by 10 %, by the fast "
     "engine; the five largest"},
    {"samples_per_s", "1/s", "global batch / step_time_s"},
    {"tokens_per_s", "1/s", "global batch x sequence / step_time_s"},
    {"tokens_per_s_per_device", "1/s", "tokens_per_s / devices"},
    {"model_tflops_per_device", "TFLOP/s",
     "model FLOP / step_time_s / "
     "devices / 1e12; see mfu for what counts"},
    {"mfu", "fraction",
     "model FLOP/s over the dense peak of the precision "
     "computed in.  Model FLOP: 6 per parameter of matrix products and token, "
     "plus 12 x sum over layers of heads x head_dim x min(seq, window) per "
     "token, not halved for the causal mask; vocabulary projection included; "
     "a third for --forward-only"},
    {"hfu", "fraction", "as mfu, with recomputed FLOP counted again"},
    {"fits", "yes/no", "peak <= device memory on every stage"},
    {"memory_capacity_bytes", "bytes", "memory of one device"},
    {"memory_per_stage", "bytes",
     "weights + gradients + optimizer + "
     "activations + communication + other = allocated; peak adds the "
     "allocator's reserve"},
    {"time_breakdown_s", "s",
     "where the step of the slowest rank goes: compute, exposed_tp, "
     "exposed_pp, exposed_dp, exposed_cp, exposed_ep, bubble, host, "
     "memory_offload, optimizer, other; the sum is step_time_s"},
    {"weights", "bytes", "parameters as they are kept on the stage"},
    {"gradients", "bytes", "gradients as they are kept on the stage"},
    {"optimizer", "bytes or s",
     "in memory_per_stage states and master weights; in time_breakdown_s the "
     "update of the weights"},
    {"communication", "bytes", "buffers of collectives and transfers"},
    {"allocated", "bytes",
     "weights + gradients + optimizer + activations + communication + other"},
    {"peak", "bytes", "allocated, the allocator's reserve and the context"},
    {"activations", "bytes",
     "what the backward pass needs of every "
     "micro-batch in flight (34 s b h + 5 a s^2 b per layer without "
     "recomputation: Korthikanti et al. 2022), plus one layer at work"},
    {"compute", "s", "the device runs kernels of the model"},
    {"bubble", "s",
     "pipeline idle time: waiting for another stage beyond the "
     "transfer itself"},
    {"exposed_tp", "s",
     "tensor-parallel communication during which the device computes nothing"},
    {"exposed_pp", "s", "the same of transfers between pipeline stages"},
    {"exposed_dp", "s",
     "the same of gradient reductions and of gathers of sharded weights"},
    {"exposed_cp", "s", "the same of context parallelism"},
    {"exposed_ep", "s", "the same of expert parallelism"},
    {"memory_offload", "s",
     "the device waits for copies to and from the host's memory"},
    {"other", "bytes or s",
     "in memory_per_stage context, libraries and staging buffers; in "
     "time_breakdown_s the fixed part of a step: data, clipping, logging"},
    {"host", "s", "the device waits for kernels to be issued"},
    {"hsdp", "ranks",
     "data-parallel ranks that share one set of sharded states; dp where all "
     "do"},
    {"prefetch", "layers",
     "layers whose weights ZeRO-3 gathers ahead of the one at work; one more "
     "is in memory"},
    {"cp_comm", "-",
     "how context-parallel attention gets all keys: ring passes them round "
     "beside it, all-gather fetches them before it, ulysses exchanges tokens "
     "for heads"},
    {"grad_compress", "-",
     "format of gradients on the wire: none, fp16, bf16, fp8, int8, "
     "topk:SHARE, powersgd:RANK"},
    {"capacity_factor", "-",
     "rows of every expert over balanced, to which tokens are padded or "
     "dropped; null: as many as are routed"},
    {"expert_imbalance", "-",
     "tokens of the busiest rank's experts over the mean"},
    {"trained_params", "-", "parameters that are not frozen"},
    {"energy_j_per_step", "J",
     "board power limit x (0.35 idle + 0.65 busy "
     "share) x devices, plus nodes, times PUE; not measured"},
    {"cost_usd_per_step", "USD", "--price x devices x step_time_s"},
    {"error", "fraction",
     "predicted / measured - 1; mape, median_ape and p90_ape are mean, median "
     "and 90th percentile of its absolute value, bias its mean"},
    {"kendall_tau", "-1 to 1",
     "how well a group's rows are ranked by the prediction (Kendall's tau-b)"},
    {"regret", "fraction",
     "time lost by running the row predicted fastest instead of the one that "
     "is, among rows that differ in configuration only"},
    {"algbw", "GB/s", "bytes / time (nccl-tests)"},
    {"busbw", "GB/s",
     "algbw x 2(n-1)/n for all_reduce, (n-1)/n for "
     "all_gather and reduce_scatter (nccl-tests)"},
};

typedef struct found {
    const char *kind, *name, *unit, *text;
} found;

static bool find(const char *name, found *out)
{
    for (size_t i = 0; i < SC_COUNT(words_known); i++)
        if (strcmp(words_known[i].name, name) == 0) {
            *out = (found){"field", name, words_known[i].unit,
                           words_known[i].text};
            return true;
        }
    for (int k = 0; k < (int)SC_N_CODES; k++)
        if (strcmp(sc_code_name((sc_code)k), name) == 0) {
            *out = (found){"error", name, NULL, sc_code_help((sc_code)k)};
            return true;
        }
    int p = sc_param_find(name);
    if (p < 0) return false;
    *out = (found){"parameter", name, sc_params[p].unit, sc_params[p].text};
    return true;
}

static void print_text(const found *f, sc_text *t)
{
    if (strcmp(f->kind, "field") != 0) sc_text_add(t, "%s ", f->kind);
    sc_text_add(t, "%s", f->name);
    if (f->unit) sc_text_add(t, " [%s]", f->unit);
    sc_text_add(t, "\n");
    cli_wrap(t, 2, f->text);
}

static void print_json(const found *f, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_key(j, "name");
    sc_json_string(j, f->name);
    sc_json_key(j, "kind");
    sc_json_string(j, f->kind);
    sc_json_key(j, "unit");
    sc_json_string(j, f->unit);
    sc_json_key(j, "text");
    sc_json_string(j, f->text);
    sc_json_end(j, '}');
}

static sc_status unknown(cli *c, const char *name)
{
    const char *names[SC_COUNT(words_known) + SC_N_CODES + SC_N_PARAMS + 1];
    size_t n = 0;
    for (size_t i = 0; i < SC_COUNT(words_known); i++)
        names[n++] = words_known[i].name;
    for (int k = 0; k < (int)SC_N_CODES; k++)
        names[n++] = sc_code_name((sc_code)k);
    for (int i = 0; i < (int)SC_N_PARAMS; i++) names[n++] = sc_params[i].name;
    names[n] = NULL;
    return sc_error(
        c->err, SC_EINPUT, SC_C_UNKNOWN_NAME, sc_pos_none(),
        cli_hint(c, name, names, "`stepcast explain` lists the fields"),
        "nothing is called \"%.60s\"", name);
}

sc_status cli_explain(cli *c, int argc, char *const *argv)
{
    sc_words words = {0};
    sc_status s = SC_OK;
    sc_text t;
    sc_json j;
    SC_TRY(cli_parse(c, argc, argv, NULL, 0, &words));
    sc_text_init(&t);
    sc_json_init(&j, true);
    sc_json_begin(&j, '[');
    size_t n = words.n ? words.n : SC_COUNT(words_known);
    for (size_t i = 0; i < n; i++) {
        const char *name = words.n ? words.w[i] : words_known[i].name;
        found f;
        if (find(name, &f)) {
            print_text(&f, &t);
            print_json(&f, &j);
        } else {
            s = unknown(c, name);
        }
    }
    sc_json_end(&j, ']');
    if (s == SC_OK) s = c->json ? cli_emit_json(c, &j) : cli_emit_text(c, &t);
    sc_text_free(&t);
    sc_json_free(&j);
    return s;
}
