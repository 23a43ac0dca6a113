/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runwords.c - the words that conditions, overlap_notes and notes of a row may
 * have.  Each states a fact that an option of `predict` states too; data/
 * validation/README.md lists them.
 */
#include "calib/runs.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* What a phrase states: a setting of an option, or a fact that has no option.
 * If one phrase contains another, the longer one comes first. */
static const struct {
    const char *words;
    const char *setting; /* of sc_job_keys; NULL: none */
    calib_facts fact;
} known[] = {
    {"CUDA_LAUNCH_BLOCKING=1", "launch-blocking=yes", {.variant = NULL}},
    {"before the PCIe/NUMA affinity fix",
     "numa-unbound=yes",
     {.variant = NULL}},
    {"fp32 gradient accumulation", "grad-bytes=4B", {.variant = NULL}},
    {"fp32 gradients", "grad-bytes=4B", {.variant = NULL}},
    {"bf16 gradients", "grad-bytes=2B", {.variant = NULL}},
    {"mixed_precision=DEFAULT", NULL, {.variant = NULL}},
    {"mixed_precision=PURE", NULL, {.variant = "pure"}},
    {"eager", NULL, {.variant = "eager"}},
    {"no TP overlap", "tp-overlap=no", {.variant = NULL}},
    {"vanilla TP", "tp-overlap=no", {.variant = NULL}},
    {"AsyncTP", "tp-overlap=yes", {.variant = NULL}},
    {"async TP", "tp-overlap=yes", {.variant = NULL}},
    {"TP overlap", "tp-overlap=yes", {.variant = NULL}},
    {"no EP overlap", "ep-overlap=no", {.variant = NULL}},
    {"EP overlap", "ep-overlap=yes", {.variant = NULL}},
    {"overlaps no communication", "overlap-grad-reduce=no", {.variant = NULL}},
    {"no communication overlap", "overlap-grad-reduce=no", {.variant = NULL}},
    {"gradient and parameter exchange not overlapped",
     "overlap-grad-reduce=no",
     {.variant = NULL}},
    {"gradient exchange not overlapped",
     "overlap-grad-reduce=no",
     {.variant = NULL}},
    {"no CUDA graphs", "cuda-graphs=none", {.variant = NULL}},
    {"full-iteration CUDA graphs", "cuda-graphs=step", {.variant = NULL}},
    {"CUDA graphs", "cuda-graphs=layers", {.variant = NULL}},
    {"no gradient accumulation fusion",
     "fused-accumulation=no",
     {.variant = NULL}},
    {"gradient accumulation fusion",
     "fused-accumulation=yes",
     {.variant = NULL}},
    {"fused experts", "fused-experts=yes", {.variant = NULL}},
    {"FP8 attention", "fp8-attention=yes", {.variant = NULL}},
    {"FP8 parameters", "low-params=yes", {.variant = NULL}},
    {"SFT", "fine-tune=yes", {.variant = NULL}},
    {"fine-tuning", "fine-tune=yes", {.variant = NULL}},
    {"embeddings untied", NULL, {.tied = CALIB_UNTIED}},
    {"embeddings tied", NULL, {.tied = CALIB_TIED}},
    {"LoRA", NULL, {.lora = 16}},
    {"schedule 1f1b", "schedule=1f1b", {.variant = NULL}},
    {"schedule zb-h1", "schedule=zb-h1", {.variant = NULL}},
    {"schedule zb-v", "schedule=zb-v", {.variant = NULL}},
    {"analytic figure", NULL, {.formula = true}},
    {"EFA", NULL, {.network = SC_NETWORK_EFA}},
    {"InfiniBand", NULL, {.network = SC_NETWORK_INFINIBAND}},
    {"RoCE", NULL, {.network = SC_NETWORK_ROCE}},
    {"RoCEv2", NULL, {.network = SC_NETWORK_ROCE}},
    {"TCPX", NULL, {.network = SC_NETWORK_TCP}},
};

static bool part_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Where `words` stand in `text`, as whole words; NULL: nowhere. */
static const char *find(const char *text, const char *words)
{
    size_t n = strlen(words);
    for (const char *s = text; *s; s++)
        if (strncasecmp(s, words, n) == 0 &&
            (s == text || !part_of_word(s[-1])) && !part_of_word(s[n]))
            return s;
    return NULL;
}

sc_status calib_set_option(const char *setting, sc_pos pos, sc_arena *a,
                           sc_job *job, sc_err *err)
{
    size_t len = strcspn(setting, "=");
    const sc_key *k = sc_job_keys;
    while (k->name && (strncmp(k->name, setting, len) != 0 || k->name[len]))
        k++;
    if (!k->name || !setting[len])
        return sc_error(err, SC_EBUG, SC_C_BUG, pos, NULL,
                        "\"%.40s\" sets no option", setting);
    return sc_schema_set(k, setting + len + 1, pos, job, a, err);
}

static void add_facts(const calib_facts *from, calib_facts *to)
{
    if (from->variant) to->variant = from->variant;
    if (from->lora) to->lora = from->lora;
    if (from->tied) to->tied = from->tied;
    to->formula = to->formula || from->formula;
    if (from->network) to->network = from->network;
}

/* Whether the place of a phrase belongs to one that is earlier in the table. */
static bool inside(const char *text, size_t i, const char *at)
{
    for (size_t k = 0; k < i; k++) {
        const char *other = find(text, known[k].words);
        if (other && other < at + strlen(known[i].words) &&
            at < other + strlen(known[k].words))
            return true;
    }
    return false;
}

static sc_status read_text(const char *text, sc_pos pos, sc_arena *a,
                           calib_facts *f, sc_job *job, sc_err *err)
{
    for (size_t i = 0; i < SC_COUNT(known); i++) {
        const char *at = find(text, known[i].words);
        if (!at || inside(text, i, at)) continue;
        add_facts(&known[i].fact, f);
        if (known[i].setting)
            SC_TRY(calib_set_option(known[i].setting, pos, a, job, err));
    }
    return SC_OK;
}

static bool any_word(const char *text)
{
    for (size_t i = 0; i < SC_COUNT(known); i++)
        if (find(text, known[i].words)) return true;
    return false;
}

/* Warns of conditions without a known word: they state what changes a run's
 * speed. */
static sc_status unknown_conditions(const char *text, sc_arena *a,
                                    calib_run *run, sc_err *err)
{
    while (*text) {
        size_t len = strcspn(text, ";|");
        char *one = sc_strndup(a, text, len);
        if (!one) return sc_error_nomem(err);
        if (len > 0 && !any_word(one))
            SC_TRY(calib_warn(run, a, err,
                              "condition \"%.80s\" is not known and changes "
                              "nothing",
                              one));
        text += len;
        text += strspn(text, ";| ");
    }
    return SC_OK;
}

sc_status calib_read_words(const calib_cells *c, sc_arena *a, calib_run *run,
                           calib_facts *out, sc_err *err)
{
    static const calib_column cells[] = {C_NOTES, C_OVERLAP, C_CONDITIONS};
    *out = (calib_facts){.variant = NULL};
    for (size_t i = 0; i < SC_COUNT(cells); i++)
        SC_TRY(read_text(c->text[cells[i]], c->pos, a, out, &run->job, err));
    if (find(c->text[C_MODEL], "LoRA")) out->lora = 16;
    if (find(c->text[C_MODEL], "SFT")) run->job.fine_tune = true;
    if (out->lora)
        SC_TRY(calib_assume(run, a, err,
                            "adapters of rank %d beside attention's products",
                            out->lora));
    return unknown_conditions(c->text[C_CONDITIONS], a, run, err);
}
