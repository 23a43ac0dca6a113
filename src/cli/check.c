/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - options that contradict the model, the machine or each other: all
 * of them in one pass, each with the option as it was written.  What can only
 * be judged when everything is inferred is left to sc_predict().
 */
#include "cli/predict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct checker {
    const cli *c;
    const sc_job *job;
    const sc_hw *hw;
    const sc_model *model;
    sc_status first;
} checker;

/* Of a value of the command line the option ("--tp 7"), of one of --config
 * its place in the file. */
static sc_pos where(const checker *x, const char *key)
{
    char buf[64] = "";
    const sc_key *k = sc_job_keys;
    const sc_node *n = x->c->file ? sc_node_get(x->c->file, key) : NULL;
    while (k->name && strcmp(k->name, key) != 0) k++;
    if (!k->name) return sc_pos_none();
    if (k->type != SC_T_BOOL) sc_schema_print(k, x->job, buf, sizeof buf);
    if (n && (k->type == SC_T_BOOL || strcmp(n->text, buf) == 0)) return n->pos;
    const char *text =
        sc_sprintf(x->c->arena, "%s%s%s", k->flag, buf[0] ? " " : "", buf);
    return sc_pos_file(text ? text : k->flag);
}

#define COMPLAIN(x, code, key, hint, ...)                               \
    note(x, sc_error((x)->c->err, SC_EINPUT, code, where(x, key), hint, \
                     __VA_ARGS__))

static void note(checker *x, sc_status s)
{
    if (x->first == SC_OK) x->first = s;
}

static const char *divisors(const checker *x, int64_t whole)
{
    char text[160] = "divisors:";
    size_t at = strlen(text);
    for (int64_t d = 1; d <= whole && d <= 65536 && at < sizeof text - 24; d++)
        if (whole % d == 0)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s %" PRId64,
                                   d > 1 ? "," : "", d);
    return sc_strdup(x->c->arena, text);
}

static bool divides(checker *x, int64_t part, int64_t whole, const char *key,
                    const char *what)
{
    if (part <= 1 || whole % part == 0) return true;
    COMPLAIN(x, SC_C_DIVIDE, key, divisors(x, whole),
             "%" PRId64 " does not divide %s %" PRId64, part, what, whole);
    return false;
}

static void mesh(checker *x)
{
    const sc_job *j = x->job;
    int64_t n = x->hw->n_devices, layers = x->model->t.layers;
    bool good = divides(x, j->tp, x->model->t.heads, "tp", "attention heads");
    good &= divides(x, j->tp, x->model->t.ffn, "tp", "ffn width");
    good &= divides(x, j->tp, n, "tp", "the number of devices,");
    good &= divides(x, j->pp, n, "pp", "the number of devices,");
    good &= divides(x, j->dp, n, "dp", "the number of devices,");
    int64_t vp = j->vpp ? j->vpp : 1;
    if (j->pp && j->pp * vp > layers)
        COMPLAIN(x, SC_C_RANGE, j->pp > layers ? "pp" : "vp", NULL,
                 "%" PRId64 " pipeline stages for %" PRId64 " layers",
                 j->pp * vp, layers);
    double ranks = (double)(j->tp ? j->tp : 1) * (double)(j->pp ? j->pp : 1) *
                   (double)(j->dp ? j->dp : 1) * (double)(j->cp ? j->cp : 1);
    bool closed = j->tp && j->pp && j->dp;
    bool whole = ranks <= (double)n && n % (int64_t)ranks == 0;
    if (good && (closed ? ranks != (double)n : !whole))
        COMPLAIN(x, SC_C_CONFLICT,
                 j->dp   ? "dp"
                 : j->pp ? "pp"
                         : "tp",
                 "tp x cp x dp x pp is the number of devices",
                 "tp, pp, dp make %.0f ranks; the cluster has %" PRId64
                 " devices",
                 ranks, n);
}

static void batch(checker *x)
{
    const sc_job *j = x->job;
    int64_t dp = j->dp ? j->dp : 1, mbs = j->mbs ? j->mbs : 1;
    const char *hint = "global batch = micro-batch x dp x micro-batches";
    if (!j->gbs || mbs > j->gbs / dp + 1) {
        if (j->gbs)
            COMPLAIN(x, SC_C_DIVIDE, j->mbs ? "micro-batch" : "dp", hint,
                     "a global batch of %" PRId64 " is too small", j->gbs);
        return;
    }
    if (j->gbs % (mbs * dp) == 0) return;
    if (j->mbs && j->dp)
        COMPLAIN(x, SC_C_DIVIDE, "global-batch", hint,
                 "%" PRId64 " is no multiple of micro-batch %" PRId64
                 " x dp %" PRId64,
                 j->gbs, mbs, dp);
    else
        COMPLAIN(x, SC_C_DIVIDE, "global-batch", hint,
                 "%" PRId64 " is no multiple of %s %" PRId64, j->gbs,
                 j->mbs ? "micro-batch" : "dp", mbs * dp);
}

/* Micro-batches of a step, as far as they are known: a multiple of them. */
static int64_t known_micro_batches(const checker *x)
{
    const sc_job *j = x->job;
    int64_t inner = j->tp * j->pp * (j->cp ? j->cp : 1);
    int64_t dp = j->dp ? j->dp : inner ? x->hw->n_devices / inner : 0;
    if (!j->gbs || !dp || j->gbs % dp != 0) return 0;
    return j->gbs / dp / (j->mbs ? j->mbs : 1);
}

static void pipeline(checker *x)
{
    const sc_job *j = x->job;
    bool rounds = j->schedule == SC_SCH_INTERLEAVED || j->vpp > 1;
    const char *key = j->vpp > 1 ? "vp" : "schedule";
    if (!rounds) return;
    if (j->pp == 1)
        COMPLAIN(x, SC_C_CONFLICT, key, "give --pp 2 or more",
                 "a pipeline of one device has no virtual stages");
    if (j->vpp > 1 && j->schedule >= 0 && j->schedule != SC_SCH_INTERLEAVED)
        COMPLAIN(x, SC_C_CONFLICT, "vp", "use --schedule interleaved",
                 "the %s schedule has no virtual stages",
                 sc_schedule_names[j->schedule]);
    int64_t ga = known_micro_batches(x);
    if (j->pp > 1 && ga > 0 && ga % j->pp != 0)
        COMPLAIN(x, SC_C_DIVIDE, key,
                 "the interleaved schedule runs micro-batches in rounds of pp",
                 "%" PRId64 " micro-batches are no multiple of pp %" PRId64, ga,
                 j->pp);
}

static double peak_of(const sc_device *d, int precision)
{
    if (precision == SC_FP32 && d->peak[SC_FP32] <= 0) return d->vector_flops;
    return d->peak[precision];
}

static void device(checker *x)
{
    const sc_device *d = x->hw->device;
    int precision = x->job->precision;
    char text[120] = "it has";
    size_t at = strlen(text);
    if (!d) {
        COMPLAIN(x, SC_C_MISSING, "cluster", "add \"; device=h100-sxm\"",
                 "the machine names no device");
        return;
    }
    if (precision < 0 || peak_of(d, precision) > 0) return;
    for (int p = 0; p < (int)SC_N_PRECISIONS; p++)
        if (peak_of(d, p) > 0)
            at += (size_t)snprintf(text + at, sizeof text - at, " %s",
                                   sc_precision_names[p]);
    COMPLAIN(x, SC_C_CONFLICT, "precision", text, "a %s does not compute in %s",
             d->name, sc_precision_names[precision]);
}

static void combinations(checker *x)
{
    const sc_job *j = x->job;
    if (j->fsdp && j->zero >= 0 && j->zero != 3)
        COMPLAIN(x, SC_C_CONFLICT, "zero", "give one of them",
                 "--fsdp is ZeRO stage 3");
    if (j->ep > 1)
        COMPLAIN(x, SC_C_CONFLICT, "ep", "use --ep 1",
                 "the model has no experts");
    if (j->cp > 1)
        COMPLAIN(x, SC_C_UNSUPPORTED, "cp", "use --cp 1",
                 "context parallelism is not modelled yet");
}

sc_status cli_check_job(const cli *c, const sc_job *job, const sc_inputs *in)
{
    checker x = {c, job, in->hw, in->model, SC_OK};
    device(&x);
    mesh(&x);
    batch(&x);
    pipeline(&x);
    combinations(&x);
    return x.first;
}
