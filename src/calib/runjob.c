/* SPDX-License-Identifier: Apache-2.0 */
/* runjob.c - turns a row of a table of runs into a job. */
#include "calib/runs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The number of a cell; 0 if the cell is empty. */
static int64_t whole(const calib_cells *c, calib_column col)
{
    return isnan(c->number[col]) ? 0 : (int64_t)c->number[col];
}

static bool starts(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

/* Whether a text has a word, in any case of letters. */
static bool has_word(const char *text, const char *word)
{
    for (; *text; text++)
        if (starts(text, word)) return true;
    return false;
}

/* The text with dashes for lines below: "fp8_block". */
static const char *dashed(const char *text, char *buf, size_t size)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        buf[n] = text[n] == '_' ? '-' : text[n];
    buf[n] = '\0';
    return buf;
}

static sc_status append(const char **list, uint32_t *n, sc_arena *a,
                        sc_err *err, const char *fmt, va_list args)
{
    char buf[400];
    vsnprintf(buf, sizeof buf, fmt, args);
    if (*n == CALIB_ASSUMPTIONS) return SC_OK;
    if (!(list[*n] = sc_strdup(a, buf))) return sc_error_nomem(err);
    ++*n;
    return SC_OK;
}

sc_status calib_assume(calib_run *run, sc_arena *a, sc_err *err,
                       const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_status s =
        append(run->assumptions, &run->n_assumptions, a, err, fmt, args);
    va_end(args);
    return s;
}

sc_status calib_warn(calib_run *run, sc_arena *a, sc_err *err, const char *fmt,
                     ...)
{
    va_list args;
    va_start(args, fmt);
    sc_status s = append(run->warnings, &run->n_warnings, a, err, fmt, args);
    va_end(args);
    return s;
}

/* A cell whose text is not known leaves its value open. */
static sc_status not_known(const char *what, const char *text, sc_arena *a,
                           calib_run *run, sc_err *err)
{
    return calib_warn(run, a, err, "%s \"%.80s\" is not known and is inferred",
                      what, text);
}

/* ---- strategy ---------------------------------------------------------------- */

/* "HSDP: 8 ranks shard" states the size of its groups. */
static sc_status read_groups(const calib_cells *c, sc_arena *a, sc_job *job,
                             sc_err *err)
{
    const char *text = c->text[C_SHARD], *end = strstr(text, " ranks shard");
    const char *at = end;
    if (!end) return SC_OK;
    while (at > text && at[-1] >= '0' && at[-1] <= '9') at--;
    if (at == end || end - at > 6) return SC_OK;
    char *set = sc_sprintf(a, "hsdp=%.*s", (int)(end - at), at);
    if (!set) return sc_error_nomem(err);
    return calib_set_option(set, c->pos, a, job, err);
}

/* Reads the ZeRO stage of the `shard` cell; false if its words are unknown. */
static bool read_shard(const char *text, sc_job *job)
{
    static const struct {
        const char *word;
        int zero;
    } words[] = {{"ZeRO-1", 0x1},        {"ZeRO-2", 0x2},
                 {"SHARD_GRAD_OP", 0x2}, {"ZeRO-3", 0x3},
                 {"FULL_SHARD", 0x13},   {"FSDP", 0x13},
                 {"DistOpt", 0x1},       {"distributed optimizer", 0x1}};

    if (text[0] == '\0') return true;
    if (starts(text, "DDP") || starts(text, "none")) {
        job->zero = 0;
        return true;
    }
    for (size_t i = 0; i < SC_COUNT(words); i++) {
        if (!has_word(text, words[i].word)) continue;
        job->zero = words[i].zero & 0xf;
        job->fsdp = words[i].zero > 0xf;
        return true;
    }
    return false;
}

/* Index of the first of `names` that `text` has as a word; SC_INFER if it is
 * empty, -2 if it has none. */
static int find_name(const char *text, const char *const *names)
{
    size_t best = strlen(text);
    int found = -2;
    if (text[0] == '\0') return SC_INFER;
    for (int i = 0; names[i]; i++)
        if (strcasecmp(text, names[i]) == 0) return i;
    for (int i = 0; names[i]; i++)
        for (size_t at = 0; at < best; at++)
            if (starts(text + at, names[i])) {
                best = at;
                found = i;
            }
    return found;
}

/* Recipes as sources spell them; the first word that a cell has counts.
 * "FP8-MX" of Megatron-Bridge on Hopper is block-scaled, because Hopper has no
 * MX units. */
static int find_recipe(const char *text)
{
    static const struct {
        const char *word;
        sc_recipe recipe;
    } words[] = {{"FP8-MX/block", SC_RECIPE_FP8_BLOCK},
                 {"NVFP4", SC_RECIPE_NVFP4},
                 {"FP4", SC_RECIPE_NVFP4},
                 {"MXFP8", SC_RECIPE_MXFP8},
                 {"FP8-MX", SC_RECIPE_MXFP8},
                 {"FP8-block", SC_RECIPE_FP8_BLOCK},
                 {"FP8-sub", SC_RECIPE_FP8_BLOCK},
                 {"FP8-row", SC_RECIPE_FP8_ROW},
                 {"FP8", SC_RECIPE_FP8},
                 {"INT8", SC_RECIPE_INT8},
                 {"BF16", SC_RECIPE_BF16},
                 {"bfloat16", SC_RECIPE_BF16},
                 {"FP16", SC_RECIPE_FP16},
                 {"float16", SC_RECIPE_FP16},
                 {"half", SC_RECIPE_FP16},
                 {"TF32", SC_RECIPE_TF32},
                 {"FP32", SC_RECIPE_FP32},
                 {"float32", SC_RECIPE_FP32}};

    char buf[80];
    int name = SC_INFER;
    if (text[0] == '\0') return SC_INFER;
    text = dashed(text, buf, sizeof buf);
    for (int i = 0; sc_recipe_names[i] && name == SC_INFER; i++)
        if (strcasecmp(text, sc_recipe_names[i]) == 0) name = i;
    if (name != SC_INFER) return name;
    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (has_word(text, words[i].word)) return (int)words[i].recipe;
    return -2;
}

/* Recomputation as sources spell it. */
static int find_recompute(const char *text)
{
    static const struct {
        const char *word;
        sc_recompute rc;
    } words[] = {{"selective(op)", SC_RC_OPS},
                 {"op-sac", SC_RC_OPS},
                 {"sac", SC_RC_OPS},
                 {"no", SC_RC_NONE},
                 {"off", SC_RC_NONE},
                 {"false", SC_RC_NONE},
                 {"0", SC_RC_NONE},
                 {"disabled", SC_RC_NONE},
                 {"yes", SC_RC_FULL},
                 {"on", SC_RC_FULL},
                 {"true", SC_RC_FULL},
                 {"1", SC_RC_FULL},
                 {"enabled", SC_RC_FULL},
                 {"uniform", SC_RC_FULL}};

    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (strcasecmp(text, words[i].word) == 0) return (int)words[i].rc;
    return find_name(text, sc_recompute_names);
}

static sc_status read_strategy(const calib_cells *c, sc_arena *a,
                               calib_run *run, sc_err *err)
{
    static const char *const no_yes[] = {"no", "yes", NULL};
    sc_job *job = &run->job;
    const char *const *text = c->text;
    job->precision = find_recipe(text[C_PRECISION]);
    job->recompute = find_recompute(text[C_RECOMPUTE]);
    job->sp = find_name(text[C_SP], no_yes);

    const struct {
        const char *what;
        calib_column col;
        int *value;
    } read[] = {{"precision", C_PRECISION, &job->precision},
                {"recompute", C_RECOMPUTE, &job->recompute},
                {"sequence parallelism", C_SP, &job->sp}};

    for (size_t i = 0; i < SC_COUNT(read); i++) {
        if (*read[i].value >= SC_INFER) continue;
        *read[i].value = SC_INFER;
        SC_TRY(not_known(read[i].what, text[read[i].col], a, run, err));
    }
    if (!read_shard(text[C_SHARD], job))
        return not_known("sharding", text[C_SHARD], a, run, err);
    return read_groups(c, a, job, err);
}

/* There can't be more replicas than samples, so the other ranks split the
 * sequence. */
static sc_status fewer_replicas(calib_run *run, int64_t gpus, sc_arena *a,
                                sc_err *err)
{
    sc_job *job = &run->job;
    int64_t ranks = gpus / (job->tp * job->pp);
    if (job->gbs <= 0 || job->dp <= job->gbs || ranks % job->gbs != 0)
        return SC_OK;
    SC_TRY(calib_assume(run, a, err,
                        "cp %lld, dp %lld: %lld samples are less than dp %lld",
                        (long long)(ranks / job->gbs), (long long)job->gbs,
                        (long long)job->gbs, (long long)job->dp));
    job->dp = job->gbs;
    job->cp = ranks / job->gbs;
    return SC_OK;
}

bool calib_of_batch(const sc_key *key)
{
    return key->offset == offsetof(sc_job, gbs);
}

bool calib_leave_degrees(sc_job *job)
{
    bool any = job->tp || job->pp || job->vpp || job->cp || job->ep ||
               job->dp || job->mbs || job->accumulation || job->sp != SC_INFER;
    job->tp = job->pp = job->vpp = job->cp = job->ep = job->dp = job->mbs = 0;
    job->accumulation = 0;
    job->sp = SC_INFER;
    return any;
}

bool calib_round_batch(const sc_hw *hw, sc_job *job)
{
    int64_t n = (int64_t)hw->n_devices;
    if (job->gbs <= 0 || n <= 0 || job->gbs % n == 0) return false;
    job->gbs = (job->gbs + n - 1) / n * n;
    return true;
}

/* The samples of a step by its time and its rate; 0: the row lacks one. */
static int64_t measured_batch(const calib_cells *c)
{
    const double *v = c->number;
    double samples = v[C_ITER] * v[C_SAMPLES];
    if (!(samples > 0))
        samples = v[C_ITER] * v[C_TOKENS] * v[C_GPUS] / v[C_SEQ];
    samples = floor(samples + 0.5);
    return samples >= 1 && samples < 1e9 ? (int64_t)samples : 0;
}

/* A global batch that is not stated is that of the micro-batches.  Their number
 * remains known if the degrees or the micro-batch are not. */
static sc_status read_batch(const calib_cells *c, sc_arena *a, calib_run *run,
                            sc_err *err)
{
    sc_job *job = &run->job;
    int64_t ga = whole(c, C_GA);
    if (job->gbs > 0 && ga > 0 && job->dp > 0 && job->mbs > 0 &&
        (job->gbs % ga != 0 || job->gbs / ga != job->dp * job->mbs)) {
        (void)calib_leave_degrees(job);
        if (job->gbs % ga == 0) job->accumulation = ga;
        return calib_warn(run, a, err,
                          "the global batch %lld is not dp mbs ga: the degrees "
                          "are inferred",
                          (long long)job->gbs);
    }
    if (job->gbs > 0 && ga > 0 && job->gbs % ga == 0 &&
        (job->dp == 0 || job->mbs == 0))
        job->accumulation = ga;
    if (job->gbs > 0) return SC_OK;
    if (ga > 0 && job->dp > 0 && job->mbs > 0 && ga <= 1000000 / job->mbs) {
        job->gbs = ga * job->mbs * job->dp;
        return calib_assume(run, a, err, "global batch %lld = dp mbs ga",
                            (long long)job->gbs);
    }
    job->gbs = measured_batch(c);
    if (job->gbs > 0)
        return calib_assume(run, a, err,
                            "global batch %lld: the step time times the rate",
                            (long long)job->gbs);
    return calib_warn(run, a, err, "the global batch is not stated");
}

/* Reads the degrees. dp follows from the number of devices, whatever the cell
 * contains. */
static sc_status read_degrees(const calib_cells *c, sc_arena *a, calib_run *run,
                              sc_err *err)
{
    sc_job *job = &run->job;
    job->tp = whole(c, C_TP);
    job->pp = whole(c, C_PP);
    job->vpp = whole(c, C_VPP);
    job->cp = whole(c, C_CP);
    job->ep = whole(c, C_EP);
    job->dp = whole(c, C_DP);
    job->gbs = whole(c, C_GBS);
    job->mbs = whole(c, C_MBS);
    job->seq = whole(c, C_SEQ);
    SC_TRY(read_batch(c, a, run, err));
    if (run->reason) return SC_OK;
    int64_t gpus = whole(c, C_GPUS), cp = job->cp ? job->cp : 1;
    if (job->dp == 0 || job->tp == 0 || job->pp == 0 || gpus == 0) return SC_OK;
    int64_t rest = job->tp * job->pp * cp; /* each at most 1e6 */
    if (gpus % rest == 0 && gpus / rest == job->dp)
        return fewer_replicas(run, gpus, a, err);
    if (gpus % rest != 0) {
        job->tp = job->pp = job->vpp = job->cp = job->dp = 0;
        return calib_warn(run, a, err,
                          "tp, pp and cp do not divide %lld devices and are "
                          "inferred",
                          (long long)gpus);
    }
    SC_TRY(calib_assume(run, a, err,
                        "dp %lld = gpus/(tp pp cp): the table says %lld",
                        (long long)(gpus / rest), (long long)job->dp));
    job->dp = gpus / rest;
    return fewer_replicas(run, gpus, a, err);
}

/* ---- options ------------------------------------------------------------------ */

/* Sets the options that the table has as columns. */
static sc_status read_options(const calib_cells *c, sc_arena *a, sc_job *job,
                              sc_err *err)
{
    for (uint32_t i = 0; i < c->n_extra; i++) {
        const calib_extra *x = &c->extra[i];
        if (!x->of_model && x->text[0] != '\0')
            SC_TRY(sc_schema_set(x->key, x->text, x->pos, job, a, err));
    }
    return SC_OK;
}

static sc_status name_program(const calib_cells *c, const calib_facts *f,
                              sc_arena *a, const char **software, sc_err *err)
{
    const char *name = c->text[C_SOFTWARE];
    *software = name[0] ? name : NULL;
    if (!f->variant || !*software) return SC_OK;
    *software = sc_sprintf(a, "%s %s", name, f->variant);
    return *software ? SC_OK : sc_error_nomem(err);
}

sc_status calib_run_expand(const calib_cells *c, const calib_facts *f,
                           sc_arena *a, calib_run *run, const char **software,
                           sc_err *err)
{
    SC_TRY(calib_run_model(c, f, a, run, err));
    if (run->reason) return SC_OK;
    SC_TRY(read_degrees(c, a, run, err));
    if (run->reason) return SC_OK;
    SC_TRY(read_strategy(c, a, run, err));
    SC_TRY(read_options(c, a, &run->job, err));
    SC_TRY(name_program(c, f, a, software, err));
    run->job.model = run->model_name;
    run->job.cluster = run->device;
    run->job.software = *software;
    return SC_OK;
}
