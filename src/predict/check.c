/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - what is given must be possible at all: every contradiction of a
 * job with its model and cluster, in one pass, located at the option.
 */
#include "predict/internal.h"

#include <stdio.h>
#include <string.h>

typedef struct check {
    sc_err *err;
    sc_status first;
} check;

static void fail(check *c, sc_code code, const char *option, const char *hint,
                 const char *what)
{
    sc_status s = sc_error(c->err, SC_EINPUT, code, sc_pos_file(option), hint,
                           "%s", what);
    if (c->first == SC_OK) c->first = s;
}

static void divisors(uint64_t whole, char *buf, size_t size)
{
    size_t at = (size_t)snprintf(buf, size, "divisors:");
    for (uint64_t d = 1; d <= whole && d <= 65536 && at + 8 < size; d++)
        if (whole % d == 0)
            at += (size_t)snprintf(buf + at, size - at, " %llu",
                                   (unsigned long long)d);
}

/* "--tp 7: error: 7 does not divide 96 attention heads" */
static void divides(check *c, const char *flag, int64_t part, uint64_t whole,
                    const char *of)
{
    char option[48], hint[120], what[160];
    if (part <= 0 || whole % (uint64_t)part == 0) return;
    snprintf(option, sizeof option, "%s %lld", flag, (long long)part);
    snprintf(what, sizeof what, "%lld does not divide %llu %s", (long long)part,
             (unsigned long long)whole, of);
    divisors(whole, hint, sizeof hint);
    fail(c, SC_C_DIVIDE, option, hint, what);
}

static void degrees(check *c, const sc_job *j, const sc_hw *hw,
                    const sc_transformer *t)
{
    uint64_t n = hw->n_devices;
    char option[48], what[160];
    divides(c, "--tp", j->tp, (uint64_t)t->heads, "attention heads");
    divides(c, "--tp", j->tp, (uint64_t)t->ffn, "columns of the ffn");
    divides(c, "--tp", j->tp, n, "devices");
    divides(c, "--pp", j->pp, n, "devices");
    divides(c, "--dp", j->dp, n, "devices");
    int64_t given = (j->tp ? j->tp : 1) * (j->pp ? j->pp : 1);
    if (j->tp && j->pp && c->first == SC_OK)
        divides(c, "--tp x --pp", given, n, "devices");
    int64_t stages = (j->pp ? j->pp : 1) * (j->vpp ? j->vpp : 1);
    if (stages > t->layers) {
        snprintf(option, sizeof option, "--pp %lld", (long long)j->pp);
        snprintf(what, sizeof what, "%lld pipeline stages for %lld layers",
                 (long long)stages, (long long)t->layers);
        fail(c, SC_C_RANGE, option, NULL, what);
    }
}

static void batches(check *c, const sc_job *j)
{
    if (!j->gbs) return;
    divides(c, "--micro-batch", j->mbs, (uint64_t)j->gbs,
            "samples of the global batch");
    divides(c, "--dp", j->dp, (uint64_t)j->gbs, "samples of the global batch");
}

static void combinations(check *c, const sc_job *j, const sc_hw *hw,
                         const sc_model *m)
{
    char what[200];
    if (j->ep > 1)
        fail(c, SC_C_CONFLICT, "--ep", "use --ep 1",
             "the model has no experts");
    if (j->cp > 1)
        fail(c, SC_C_UNSUPPORTED, "--cp", "use --cp 1",
             "context parallelism is not modelled yet");
    if (j->fsdp && j->zero >= 0 && j->zero != 3)
        fail(c, SC_C_CONFLICT, "--zero", "give one of them",
             "--fsdp is ZeRO stage 3");
    if (j->vpp > 1 && j->pp == 1)
        fail(c, SC_C_CONFLICT, "--vp", "use --pp 2 or more",
             "virtual stages without a pipeline");
    if (j->vpp > 1 && j->schedule >= 0 && j->schedule != SC_SCH_INTERLEAVED)
        fail(c, SC_C_CONFLICT, "--schedule", "use --schedule interleaved",
             "virtual stages need the interleaved schedule");
    if (m->t.position == SC_POS_LEARNED && m->t.max_seq > 0 &&
        j->seq > m->t.max_seq) {
        snprintf(what, sizeof what,
                 "%lld tokens, but %s has %lld learned positions",
                 (long long)j->seq, m->name, (long long)m->t.max_seq);
        fail(c, SC_C_RANGE, "--seq", NULL, what);
    }
    if (!hw->device)
        fail(c, SC_C_MISSING, "--cluster", "add '; device=h100-sxm'",
             "the machine names no device");
}

sc_status predict_check(const sc_job *job, const sc_hw *hw,
                        const sc_model *model, sc_err *err)
{
    check c = {.err = err};
    combinations(&c, job, hw, model);
    degrees(&c, job, hw, &model->t);
    batches(&c, job);
    return c.first;
}
