/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - `stepcast explain FIELD|ERROR`, and the words of --help. */
#include <stepcast/predict.h>

#include "cli/cli.h"

#include <stdio.h>
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
     "validation errors of comparable runs; step_time_high_s is the upper"},
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
    {"memory_per_stage", "bytes",
     "weights + gradients + optimizer + "
     "activations + communication + other = allocated; peak adds the "
     "allocator's reserve"},
    {"activations", "bytes",
     "what the backward pass needs of every "
     "micro-batch in flight (34 s b h + 5 a s^2 b per layer without "
     "recomputation: Korthikanti et al. 2022), plus one layer at work"},
    {"bubble", "s",
     "pipeline idle time: waiting for another stage beyond the "
     "transfer itself"},
    {"exposed_tp", "s",
     "tensor-parallel communication during which the "
     "device computes nothing; likewise exposed_pp, _dp, _cp, _ep"},
    {"host", "s", "the device waits for kernels to be issued"},
    {"energy_j_per_step", "J",
     "board power limit x (0.35 idle + 0.65 busy "
     "share) x devices, plus nodes, times PUE; not measured"},
    {"cost_usd_per_step", "USD", "--price x devices x step_time_s"},
    {"algbw", "GB/s", "bytes / time (nccl-tests)"},
    {"busbw", "GB/s",
     "algbw x 2(n-1)/n for all_reduce, (n-1)/n for "
     "all_gather and reduce_scatter (nccl-tests)"},
};

static bool explain_word(const char *name, sc_text *t)
{
    for (size_t i = 0; i < SC_COUNT(words_known); i++)
        if (strcmp(words_known[i].name, name) == 0) {
            sc_text_add(t, "%s [%s]: %s\n", name, words_known[i].unit,
                        words_known[i].text);
            return true;
        }
    for (int k = 0; k < (int)SC_N_CODES; k++)
        if (strcmp(sc_code_name((sc_code)k), name) == 0) {
            sc_text_add(t, "error %s: %s\n", name, sc_code_help((sc_code)k));
            return true;
        }
    int p = sc_param_find(name);
    if (p < 0) return false;
    sc_text_add(t, "parameter %s [%s]: %s\n", name, sc_params[p].unit,
                sc_params[p].text);
    return true;
}

sc_status cli_explain(cli *c, int argc, char *const *argv)
{
    sc_words words = {0};
    SC_TRY(cli_parse(c, argc, argv, NULL, 0, &words));
    sc_text t;
    sc_text_init(&t);
    sc_status s = SC_OK;
    if (words.n == 0)
        for (size_t i = 0; i < SC_COUNT(words_known); i++)
            explain_word(words_known[i].name, &t);
    for (uint32_t i = 0; i < words.n && s == SC_OK; i++)
        if (!explain_word(words.w[i], &t)) {
            const char *names[SC_COUNT(words_known) + 1];
            for (size_t k = 0; k < SC_COUNT(words_known); k++)
                names[k] = words_known[k].name;
            names[SC_COUNT(words_known)] = NULL;
            const char *near = sc_nearest(words.w[i], names);
            char hint[80] = "`stepcast explain` lists the fields";
            if (near) snprintf(hint, sizeof hint, "did you mean '%s'?", near);
            s = sc_error(c->err, SC_EINPUT, SC_C_UNKNOWN_NAME, sc_pos_none(),
                         hint, "nothing is called '%s'", words.w[i]);
        }
    if (s == SC_OK) s = cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}
