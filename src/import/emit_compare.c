/* SPDX-License-Identifier: Apache-2.0 */
/* emit_compare.c - whether a job that was written and read has the same
 * choices. */
#include "import/emit.h"
#include "plan/plan_strategy.h"

#include <stdio.h>
#include <string.h>

/* What can state a choice. */
static const struct {
    const char *key, *hint;
} hints[] = {
    {"schedule", "torchtitan has gpipe and zb-v; a strategy and a job have "
                 "every schedule"},
    {"vp", "Megatron-LM and NeMo have any number of virtual stages"},
    {"zero", "torchtitan has 0 and 3, the others 0 to 3"},
    {"recompute", "ops is torchtitan's, selective Megatron-LM's and NeMo's"},
    {"sp", "torchtitan always has sequence parallelism with tp, DeepSpeed "
           "never"},
    {"ep", "Megatron-LM, NeMo and torchtitan have expert parallelism"},
    {"precision", "Megatron-LM has fp8, fp8-block, mxfp8 and nvfp4, "
                  "torchtitan fp8, fp8-row and mxfp8"},
    {"cp-comm", "Megatron-LM and NeMo have ring, all-gather and ulysses, "
                "torchtitan the first two"},
    {"offload-optimizer",
     "DeepSpeed has cpu and nvme, Megatron-LM cpu, torchtitan cpu with "
     "--offload-weights 1"},
    {"offload", "DeepSpeed has all activations in host memory"},
    {"offload-weights", "with ZeRO-3, DeepSpeed has all weights in host memory "
                        "or on drives, torchtitan in host memory with "
                        "--offload-optimizer cpu"},
    {"offload-to", "DeepSpeed has cpu, and nvme for weights; a strategy and a "
                   "job have every memory"},
};

static const char *hint_of(const char *key)
{
    for (size_t i = 0; i < SC_COUNT(hints); i++)
        if (strcmp(hints[i].key, key) == 0) return hints[i].hint;
    return "--emit job states every choice";
}

/* What the job says about how full recomputation is divided: as blocks of a
 * method, without different words for the same. */
static int64_t recomputed(const sc_job *j)
{
    int64_t n = j->rc_blocks > 0 ? j->rc_blocks : 1;
    if (j->recompute != SC_RC_FULL) return 0;
    return j->rc_method == SC_RCM_BLOCK ? -n : n;
}

static bool same_ends(const emitter *e, const sc_job *x, const sc_job *y)
{
    int64_t layers = e->run->model->t.layers, n[4];
    if (!x->keep_bf16 || !y->keep_bf16) return x->keep_bf16 == y->keep_bf16;
    return strcmp(x->keep_bf16, y->keep_bf16) == 0 ||
           (emit_ends(x->keep_bf16, layers, &n[0], &n[1]) &&
            emit_ends(y->keep_bf16, layers, &n[2], &n[3]) && n[0] == n[2] &&
            n[1] == n[3]);
}

static int64_t sharing(const sc_job *j)
{
    return j->hsdp > 0 && j->hsdp < j->dp ? j->hsdp : j->dp;
}

/* The memory of weights and activations; the device's if none are moved. */
static int moved_to(const sc_job *j)
{
    bool moves = j->offload > 0 || j->offload_weights > 0;
    return moves ? (int)sc_offload_tier(j->offload_to) : SC_TIER_DEVICE;
}

typedef enum verdict { SAME, DIFFERENT, ORDINARY } verdict;

static verdict judge(bool same)
{
    return same ? SAME : DIFFERENT;
}

/* Options that have several words for the same, or no effect on some runs. */
static verdict special(const emitter *e, const sc_key *k, const sc_job *x,
                       const sc_job *y, const sc_run *run)
{
    static const char *const skipped[] = {"model", "strategy", "fsdp",
                                          "accumulation"};
    for (size_t i = 0; i < SC_COUNT(skipped); i++)
        if (strcmp(k->name, skipped[i]) == 0) return SAME;
    if (strncmp(k->name, "recompute-", 10) == 0)
        return judge(recomputed(x) == recomputed(y));
    if (k->offset == offsetof(sc_job, sp) && x->tp == 1) return SAME;
    if (k->offset == offsetof(sc_job, hsdp))
        return judge(sharing(x) == sharing(y));
    if (k->offset == offsetof(sc_job, keep_bf16))
        return judge(same_ends(e, x, y));
    if (k->offset == offsetof(sc_job, grad_bytes))
        return judge(emit_grad_bytes(x, e->run) == emit_grad_bytes(y, run));
    if (k->offset == offsetof(sc_job, optimizer_tier))
        return judge((x->optimizer_tier > 0 ? x->optimizer_tier : 0) ==
                     (y->optimizer_tier > 0 ? y->optimizer_tier : 0));
    if (k->offset == offsetof(sc_job, offload_to))
        return judge(moved_to(x) == moved_to(y));
    /* the program's own settings are filled in where they have an effect */
    if (sc_job_of_program(k) && (!sc_job_has(x, k) || !sc_job_has(y, k)))
        return SAME;
    return ORDINARY;
}

/* Errors at options that emit_expanded() reports are not reported again. */
static bool of_expanded(const sc_key *k, const sc_job *j)
{
    static const size_t moved[] = {
        offsetof(sc_job, offload), offsetof(sc_job, offload_weights),
        offsetof(sc_job, offload_to), offsetof(sc_job, optimizer_tier)};
    bool is = false;
    for (size_t i = 0; i < SC_COUNT(moved); i++)
        is = is || k->offset == moved[i];
    return is && (moved_to(j) == SC_TIER_EXPANDED ||
                  j->optimizer_tier == SC_TIER_EXPANDED);
}

bool emit_same(const emitter *e, const sc_key *k, const sc_job *want,
               const sc_job *got, const sc_run *run)
{
    verdict v = special(e, k, want, got, run);
    /* the software is given beside the files; an alias may stay one or not */
    if (k->offset == offsetof(sc_job, software)) return true;
    return v == SAME || (v == ORDINARY && sc_schema_same(k, want, got));
}

static void text_of(const sc_job *j, const sc_key *k, char buf[80])
{
    const void *field = (const char *)j + k->offset;
    if (!sc_job_has(j, k) && !sc_key_is_flag(k))
        snprintf(buf, 80, "none");
    else if (k->type == SC_T_STRING)
        snprintf(buf, 80, "%s", *(const char *const *)field);
    else
        sc_schema_print(k, j, buf, 80);
}

static sc_status no_expanded(const emitter *e, const char *option)
{
    return sc_error(e->err, SC_EINPUT, SC_C_UNSUPPORTED,
                    sc_pos_option(e->a, option, "expanded"),
                    "a strategy and a job state it; --offload 0 keeps "
                    "everything on the devices",
                    "%s can't state what expanded memory keeps", e->title);
}

sc_status emit_expanded(const emitter *e)
{
    const sc_job *j = e->job;
    sc_status s = SC_OK, first = SC_OK;
    if (j->optimizer_tier == SC_TIER_EXPANDED)
        first = no_expanded(e, "--offload-optimizer");
    if (moved_to(j) == SC_TIER_EXPANDED) s = no_expanded(e, "--offload-to");
    return first == SC_OK ? s : first;
}

sc_status emit_compare(const emitter *e, const sc_job *want, const sc_job *got,
                       const sc_run *run)
{
    sc_status first = SC_OK;
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        char mine[80], theirs[80];
        if (emit_same(e, k, want, got, run)) continue;
        if (e->program && of_expanded(k, want)) continue;
        text_of(want, k, mine);
        text_of(got, k, theirs);
        bool flag = sc_key_is_flag(k);
        const char *option =
            flag ? sc_sprintf(e->a, "--%s%s",
                              strcmp(mine, "true") == 0 ? "" : "no-", k->name)
                 : k->flag;
        if (!option) return sc_error_nomem(e->err);
        sc_status s = sc_error(
            e->err, SC_EINPUT, SC_C_UNSUPPORTED,
            sc_pos_option(e->a, option, flag ? NULL : mine), hint_of(k->name),
            "%s can't state this, its file would mean %s", e->title, theirs);
        if (first == SC_OK) first = s;
    }
    return first;
}
