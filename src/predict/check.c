/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - finds every contradiction between a job, its model and its cluster
 * in one pass, and reports each at its option.
 */
#include "predict/internal.h"
#include "predict/predict_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

void predict_needs(const sc_hw *hw, uint64_t devices, char *buf, size_t size)
{
    size_t n = strcspn(hw->name, ":@/.;, ");
    uint64_t units = 1;
    bool catalogue = hw->name[n] == '\0';
    if (hw->name[n] == ':') {
        char *end;
        units = strtoull(hw->name + n + 1, &end, 10);
        catalogue = units > 0 && (*end == '\0' || *end == ';');
    }
    uint64_t unit = catalogue ? hw->n_devices / units : 0;
    int at =
        snprintf(buf, size, "needs %llu devices", (unsigned long long)devices);
    if (unit > 0 && devices % unit == 0 && at > 0)
        snprintf(buf + at, size - (size_t)at, ": --cluster %.*s:%llu", (int)n,
                 hw->name, (unsigned long long)(devices / unit));
}

/* "--tp 7: error: 7 does not divide 96 attention heads" */
static bool divides(check *c, const char *flag, int64_t part, uint64_t whole,
                    const char *of)
{
    char option[48], hint[120], what[160];
    if (part <= 0 || whole % (uint64_t)part == 0) return true;
    snprintf(option, sizeof option, "%s %lld", flag, (long long)part);
    snprintf(what, sizeof what, "%lld does not divide %llu %s", (long long)part,
             (unsigned long long)whole, of);
    divisors(whole, hint, sizeof hint);
    fail(c, SC_C_DIVIDE, option, hint, what);
    return false;
}

/* Writes an option as the user would: "--cp 2". */
static void fail_at(check *c, sc_code code, const char *flag, int64_t value,
                    const char *hint, const char *what)
{
    char option[48];
    snprintf(option, sizeof option, "%s %lld", flag, (long long)value);
    fail(c, code, option, hint, what);
}

/* The same for an option with a word: "--schedule zb-v". */
static void fail_word(check *c, sc_code code, const char *flag,
                      const char *word, const char *hint, const char *what)
{
    char option[64];
    snprintf(option, sizeof option, "%s %.40s", flag, word);
    fail(c, code, option, hint, what);
}

/* The product of the degrees that the user gave. */
static double ranks_given(const sc_job *j)
{
    double ranks = 1;
    const int64_t size[] = {j->tp, j->pp, j->dp, j->cp};
    for (uint32_t i = 0; i < SC_COUNT(size); i++)
        if (size[i]) ranks *= (double)size[i];
    return ranks;
}

/* Finds degrees that each divide the number of devices, but whose product
 * does not. */
static void product(check *c, const sc_job *j, const sc_hw *hw)
{
    char option[96] = "", what[160], hint[160];
    const int64_t size[] = {j->tp, j->pp, j->dp, j->cp > 1 ? j->cp : 0};
    static const char *const flag[] = {"--tp", "--pp", "--dp", "--cp"};
    double ranks = ranks_given(j), devices = (double)hw->n_devices;
    size_t at = 0;
    bool all = j->tp && j->pp && j->dp;
    if (all ? ranks == devices : fmod(devices, ranks) == 0) return;
    for (uint32_t i = 0; i < SC_COUNT(size); i++) {
        if (!size[i]) continue;
        at += (size_t)snprintf(option + at, sizeof option - at, "%s%s %lld",
                               at ? " " : "", flag[i], (long long)size[i]);
    }
    snprintf(what, sizeof what, "%.0f ranks do not match %u devices", ranks,
             hw->n_devices);
    snprintf(hint, sizeof hint,
             "tp x pp x dp x cp must be the number of devices");
    if (ranks > devices && ranks < 1e9)
        predict_needs(hw, (uint64_t)ranks, hint, sizeof hint);
    fail(c, SC_C_CONFLICT, option, hint, what);
}

static void degrees(check *c, const sc_job *j, const sc_hw *hw,
                    const sc_transformer *t, const sc_software *sw)
{
    uint64_t n = hw->n_devices;
    char what[160];
    bool good =
        divides(c, "--tp", j->tp, (uint64_t)t->heads, "attention heads") &&
        divides(c, "--tp", j->tp, (uint64_t)t->ffn, "columns of the ffn");
    bool few = ranks_given(j) > (double)n;
    if (!few) {
        good &= divides(c, "--tp", j->tp, n, "devices");
        good &= divides(c, "--pp", j->pp, n, "devices");
        good &= divides(c, "--dp", j->dp, n, "devices");
    }
    if (good || few) product(c, j, hw);
    int64_t stages = (j->pp ? j->pp : 1) * (j->vpp ? j->vpp : 1);
    bool with_ends = stages > t->layers && (t->layers + 2) % stages == 0;
    bool empty = sw->stage_split == SC_SPLIT_COST; /* stages without blocks */
    if (stages > t->layers && !with_ends && !empty) {
        bool own = j->pp > t->layers || !j->vpp;
        snprintf(what, sizeof what,
                 "%lld pipeline stages are too many for %lld layers",
                 (long long)stages, (long long)t->layers);
        fail_at(c, SC_C_RANGE, own ? "--pp" : "--vp", own ? j->pp : j->vpp,
                NULL, what);
    }
}

/* This is more than any training step needs, and too slow to simulate. */
#define MAX_SAMPLES 65536

static void batches(check *c, const sc_job *j, uint64_t n)
{
    char what[160];
    uint64_t gbs = (uint64_t)j->gbs;
    if (!j->gbs) return;
    if (gbs / MAX_SAMPLES >= n) {
        snprintf(what, sizeof what,
                 "there are more than %d samples per device and step",
                 MAX_SAMPLES);
        fail_at(c, SC_C_TOO_BIG, "--global-batch", j->gbs, NULL, what);
        return;
    }
    bool good =
        divides(c, "--micro-batch", j->mbs, gbs, "samples of the global batch");
    good &= divides(c, "--dp", j->dp, gbs, "samples of the global batch");
    if (!good || !j->mbs || !j->dp ||
        gbs / (uint64_t)j->dp % (uint64_t)j->mbs == 0)
        return;
    snprintf(what, sizeof what,
             "%lld is not a multiple of micro-batch %lld x dp %lld",
             (long long)j->gbs, (long long)j->mbs, (long long)j->dp);
    fail_at(c, SC_C_DIVIDE, "--global-batch", j->gbs,
            "global batch = micro-batch x dp x micro-batches", what);
}

/* The number of micro-batches of a step, or a multiple of it; 0: unknown. */
static uint64_t micro_batches(const sc_job *j, uint64_t n)
{
    uint64_t inner = (uint64_t)(j->tp * j->pp);
    uint64_t dp = j->dp ? (uint64_t)j->dp : inner ? n / inner : 0;
    if (!j->gbs || !dp || (uint64_t)j->gbs % dp != 0) return 0;
    return (uint64_t)j->gbs / dp / (uint64_t)(j->mbs ? j->mbs : 1);
}

static bool one_stage(const sc_job *j, uint64_t n)
{
    bool rest = !j->pp && j->tp && j->dp && (uint64_t)(j->tp * j->dp) == n;
    return j->pp == 1 || rest;
}

/* Checks schedules that fix their number of chunks. */
static void own_chunks(check *c, const sc_job *j, uint64_t n)
{
    char what[120];
    const char *name = sc_schedule_names[j->schedule];
    if (j->schedule == SC_SCH_FILE && !j->schedule_file)
        fail_word(c, SC_C_MISSING, "--schedule", name,
                  "add --schedule-file FILE", "no file is given");
    if (one_stage(j, n) && j->schedule != SC_SCH_FILE)
        fail_word(c, SC_C_CONFLICT, "--schedule", name, "use --pp 2 or more",
                  "a pipeline schedule needs a pipeline");
    if (j->schedule == SC_SCH_DUALPIPE && j->pp % 2 != 0 && j->pp > 1)
        fail_at(c, SC_C_DIVIDE, "--pp", j->pp, "use an even number of devices",
                "dualpipe holds two stages on every device, d and pp - 1 - d");
    int64_t chunks = j->schedule == SC_SCH_ZB_V ? 2 : 1;
    if (j->schedule == SC_SCH_FILE || !j->vpp || j->vpp == chunks) return;
    snprintf(what, sizeof what, "the %s schedule has %s", name,
             chunks == 2 ? "two chunks per device" : "no virtual stages");
    fail_at(c, SC_C_CONFLICT, "--vp", j->vpp,
            chunks == 2 ? "leave it out, or --vp 2" : "use --schedule zb-v",
            what);
}

static void fail_interleaved(check *c, sc_code code, const sc_job *j,
                             const char *hint, const char *what)
{
    if (j->vpp > 1)
        fail_at(c, code, "--vp", j->vpp, hint, what);
    else
        fail(c, code, "--schedule interleaved", hint, what);
}

static void pipeline(check *c, const sc_job *j, const sc_software *sw,
                     uint64_t n)
{
    char what[120];
    if (j->schedule_file && j->schedule >= 0 && j->schedule != SC_SCH_FILE)
        fail(c, SC_C_CONFLICT, "--schedule-file", "give one of them",
             "--schedule names another schedule");
    if (j->schedule_file) return;
    if (j->schedule > SC_SCH_INTERLEAVED) {
        own_chunks(c, j, n);
        return;
    }
    bool vp = j->vpp > 1;
    if (!vp && j->schedule != SC_SCH_INTERLEAVED) return;
    if (one_stage(j, n))
        fail_interleaved(c, SC_C_CONFLICT, j, "use --pp 2 or more",
                         "virtual stages need a pipeline");
    if (vp && j->schedule >= 0 && j->schedule != SC_SCH_INTERLEAVED) {
        snprintf(what, sizeof what, "the %s schedule has no virtual stages",
                 sc_schedule_names[j->schedule]);
        fail_interleaved(c, SC_C_CONFLICT, j, "use --schedule interleaved",
                         what);
    }
    uint64_t ga = micro_batches(j, n);
    if (j->pp <= 1 || ga == 0 || sc_schedule_rounds(sw, (uint64_t)j->pp, ga))
        return;
    snprintf(what, sizeof what, "%llu micro-batches are no multiple of pp %lld",
             (unsigned long long)ga, (long long)j->pp);
    fail_interleaved(
        c, SC_C_DIVIDE, j,
        "the interleaved schedule runs micro-batches in rounds of pp", what);
}

static double peak_of(const sc_device *d, int recipe)
{
    sc_precision precision = sc_recipe_precision((sc_recipe)recipe);
    if (precision == SC_FP32 && d->peak[SC_FP32] <= 0) return d->vector_flops;
    return d->peak[precision];
}

static void device(check *c, const sc_job *j, const sc_device *d)
{
    char what[160], hint[120] = "it has";
    size_t at = strlen(hint);
    if (!d) {
        fail(c, SC_C_MISSING, "--cluster", "add '; device=h100-sxm'",
             "the cluster has no device");
        return;
    }
    if (j->precision == SC_RECIPE_MXFP8 && peak_of(d, j->precision) > 0 &&
        peak_of(d, SC_RECIPE_NVFP4) <= 0) {
        snprintf(what, sizeof what, "%s has no units for scales of 32 elements",
                 d->name);
        fail(c, SC_C_CONFLICT, "--precision mxfp8",
             "--precision fp8-block is the recipe of its generation", what);
        return;
    }
    if (j->precision < 0 || peak_of(d, j->precision) > 0) return;
    for (int p = 0; p < (int)SC_N_PRECISIONS && at < sizeof hint; p++)
        if (peak_of(d, p) > 0)
            at += (size_t)snprintf(hint + at, sizeof hint - at, " %s",
                                   sc_precision_names[p]);
    const char *name = sc_recipe_names[j->precision];
    snprintf(what, sizeof what, "%s does not compute in %s", d->name, name);
    fail_word(c, SC_C_CONFLICT, "--precision", name, hint, what);
}

static void experts_given(check *c, const sc_job *j, const sc_model *m)
{
    char option[64];
    bool both = j->capacity > 0 && j->imbalance > 1;
    const char *flag =
        j->capacity > 0 ? "--capacity-factor" : "--expert-imbalance";
    double value = j->capacity > 0 ? j->capacity : j->imbalance;
    if (value <= 0) return;
    snprintf(option, sizeof option, "%s %g", flag, value);
    if (m->t.experts == 0)
        fail(c, SC_C_CONFLICT, option, NULL, "the model has no experts");
    snprintf(option, sizeof option, "--expert-imbalance %g", j->imbalance);
    if (both && m->t.experts)
        fail(
            c, SC_C_CONFLICT, option, "give one of them",
            "experts that are padded to a capacity have equal numbers of rows");
}

/* Sharding options need a sharded group. Gradient formats that differ by
 * rank need unsharded gradients. */
static void groups(check *c, const sc_job *j)
{
    char option[64];
    sc_compress f = {0};
    sc_err quiet;
    sc_err_init(&quiet);
    if (j->hsdp && j->zero == 0)
        fail_at(c, SC_C_CONFLICT, "--hsdp", j->hsdp, "use --zero 1, 2 or 3",
                "nothing is sharded");
    if (!j->compress ||
        sc_compress_read(j->compress, sc_pos_none(), &f, &quiet) != SC_OK ||
        f.kind < SC_GRAD_TOPK || (j->zero <= 0 && !j->fsdp && !j->hsdp))
        return;
    snprintf(option, sizeof option, "--grad-compress %.40s", j->compress);
    fail(c, SC_C_CONFLICT, option, "add --zero 0",
         "it needs gradients that are all-reduced, not sharded");
}

static void expanded_given(check *c, const sc_job *j, const sc_hw *hw)
{
    const char *where = "give expanded_memory and expanded_bw behind the "
                        "machine's name",
               *none = "the machine has no expanded memory";
    bool has = hw->expanded.bytes > 0 && !hw->expanded.spread;
    if (j->expanded_fraction > 0)
        none = "all of it is used by --expanded-fraction";
    if (j->optimizer_tier == SC_TIER_EXPANDED && !has)
        fail_word(c, SC_C_CONFLICT, "--offload-optimizer", "expanded", where,
                  none);
    bool away = j->offload > 0 || j->offload_weights > 0;
    if (away && j->offload_to == SC_OFFLOAD_EXPANDED && !has)
        fail_word(c, SC_C_CONFLICT, "--offload-to", "expanded", where, none);
}

static void optimizer_given(check *c, const sc_job *j)
{
    sc_status s = predict_optimizer(j, c->err);
    if (c->first == SC_OK) c->first = s;
}

/* Checks what is offloaded to the host or to storage. */
static void host_given(check *c, const sc_job *j, const sc_hw *hw)
{
    bool away = j->offload > 0 || j->offload_weights > 0, host;
    host = away && j->offload_to != SC_OFFLOAD_EXPANDED;
    if (host && hw->device && hw->device->host_bw <= 0)
        fail(c, SC_C_CONFLICT,
             j->offload > 0 ? "--offload" : "--offload-weights",
             "give host_bw in the device's file",
             "the rate between device and host is not known");
    if (j->optimizer_tier >= SC_TIER_CPU && hw->device &&
        hw->device->host_bw <= 0)
        fail_word(c, SC_C_CONFLICT, "--offload-optimizer",
                  sc_tier_names[j->optimizer_tier],
                  "give host_bw in the device's file",
                  "the rate between device and host is not known");
    if (j->optimizer_tier > 0 && j->forward_only)
        fail_word(c, SC_C_CONFLICT, "--offload-optimizer",
                  sc_tier_names[j->optimizer_tier], "leave out --forward-only",
                  "nothing is updated");
    if (j->checkpoint_every && j->forward_only)
        fail_at(c, SC_C_CONFLICT, "--checkpoint-every", j->checkpoint_every,
                "leave out --forward-only",
                "without a backward pass nothing is learned");
    if (j->failure_table && j->forward_only)
        fail_word(c, SC_C_CONFLICT, "--failures", j->failure_table,
                  "leave out --forward-only",
                  "a forward pass has no states to lose");
    if (!j->checkpoint_every && !j->failure_table &&
        (j->checkpoint_async || j->storage_bw > 0))
        fail(c, SC_C_MISSING,
             j->checkpoint_async ? "--checkpoint-async" : "--storage-bw",
             "add --checkpoint-every N", "no checkpoints are written");
}

static void positions(check *c, const sc_job *j, const sc_model *m)
{
    char what[160];
    if (m->net || m->t.position != SC_POS_LEARNED || m->t.max_seq <= 0 ||
        j->seq <= m->t.max_seq)
        return;
    snprintf(what, sizeof what,
             "%lld tokens, but %s has %lld learned positions",
             (long long)j->seq, m->name, (long long)m->t.max_seq);
    fail_at(c, SC_C_RANGE, "--seq", j->seq, NULL, what);
}

static void combinations(check *c, const sc_job *j, const sc_hw *hw,
                         const sc_model *m)
{
    host_given(c, j, hw);
    expanded_given(c, j, hw);
    if (j->ep > 1 && m->t.experts == 0)
        fail_at(c, SC_C_CONFLICT, "--ep", j->ep, "use --ep 1",
                "the model has no experts");
    if (j->fsdp && j->zero >= 0 && j->zero != 3)
        fail_at(c, SC_C_CONFLICT, "--zero", j->zero, "give one of them",
                "--fsdp is ZeRO stage 3");
    experts_given(c, j, m);
    groups(c, j);
    positions(c, j, m);
}

/* ---- features of the program --------------------------------------------- */

/* "it has dp, tp, pp" */
static void list_names(uint32_t bits, const char *const *names,
                       const char *first, char *buf, size_t size)
{
    size_t at = (size_t)snprintf(buf, size, "it has%s", first);
    for (uint32_t i = 0; names[i] && at + 16 < size; i++)
        if (bits >> i & 1)
            at += (size_t)snprintf(buf + at, size - at, " %s", names[i]);
    if (!bits && !*first) snprintf(buf, size, "it has none");
}

/* Checks the option that bit `bit` of `bits` represents.  `word` is its value;
 * NULL: it has none. */
static void within(check *c, const sc_software *sw, uint32_t bits, int bit,
                   const char *const *names, const char *first,
                   const char *flag, const char *word, const char *of)
{
    char hint[120], what[160];
    if (bit < 0 || bits >> bit & 1) return;
    list_names(bits, names, first, hint, sizeof hint);
    snprintf(what, sizeof what, "%s has no %s%s%s", sw->name, of,
             *of ? " " : "", names[bit]);
    if (word)
        fail_word(c, SC_C_UNSUPPORTED, flag, word, hint, what);
    else
        fail(c, SC_C_UNSUPPORTED, flag, hint, what);
}

static void axes_within(check *c, const sc_job *j, const sc_software *sw)
{
    const struct {
        sc_axis axis;
        const char *flag;
        int64_t degree;
    } given[] = {{SC_AX_TP, "--tp", j->tp},
                 {SC_AX_PP, "--pp", j->pp},
                 {SC_AX_CP, "--cp", j->cp},
                 {SC_AX_EP, "--ep", j->ep}};

    for (size_t i = 0; i < SC_COUNT(given); i++) {
        char degree[24];
        if (given[i].degree <= 1 || sw->axes >> given[i].axis & 1) continue;
        snprintf(degree, sizeof degree, "%lld", (long long)given[i].degree);
        within(c, sw, sw->axes, (int)given[i].axis, sc_axis_names, " dp",
               given[i].flag, degree, "");
    }
}

static void words_within(check *c, const sc_job *j, const sc_software *sw)
{
    static const char *const stages[] = {"0", "1", "2", "3", NULL};
    char text[64];
    int zero = j->fsdp || (j->hsdp && j->zero < 0) ? 3 : (int)j->zero;
    bool own = !j->fsdp && j->zero == zero;
    within(c, sw, sw->zero_stages, zero, stages, " stages",
           j->fsdp ? "--fsdp"
           : own   ? "--zero"
                   : "--hsdp",
           own && zero >= 0 ? stages[zero] : NULL, "ZeRO stage");
    if (j->schedule >= 0 && j->pp != 1)
        within(c, sw, sw->schedules, j->schedule, sc_schedule_names, "",
               "--schedule", sc_schedule_names[j->schedule], "schedule");
    if (j->schedule_file)
        within(c, sw, sw->schedules, SC_SCH_FILE, sc_schedule_names, "",
               "--schedule-file", NULL, "schedule from a");
    if (j->vpp > 1 && j->schedule < SC_SCH_INTERLEAVED && !j->schedule_file &&
        !(sw->schedules >> SC_SCH_INTERLEAVED & 1)) {
        snprintf(text, sizeof text, "%lld", (long long)j->vpp);
        within(c, sw, sw->schedules, SC_SCH_INTERLEAVED, sc_schedule_names, "",
               "--vp", text, "schedule");
    }
    if (j->recompute >= 0)
        within(c, sw, sw->recomputes, j->recompute, sc_recompute_names, "",
               "--recompute", sc_recompute_names[j->recompute], "recompute");
    if (j->cp_comm >= 0)
        within(c, sw, sw->cp_kinds, j->cp_comm, sc_cp_comm_names, "",
               "--cp-comm", sc_cp_comm_names[j->cp_comm],
               "context parallelism by");
    if (j->sp == 1 && j->tp != 1 && !sw->sequence_parallel) {
        snprintf(text, sizeof text, "%s has no sequence parallelism", sw->name);
        fail(c, SC_C_UNSUPPORTED, "--sp", "--no-sp", text);
    }
}

/* If the user named a program, options must be among its features. */
static void inside(check *c, const sc_job *j, const sc_software *sw)
{
    if (sw->open) return;
    axes_within(c, j, sw);
    words_within(c, j, sw);
}

bool sc_job_outside(const sc_job *job, const sc_software *sw)
{
    sc_err quiet;
    check c = {.err = &quiet};
    sc_err_init(&quiet);
    axes_within(&c, job, sw);
    words_within(&c, job, sw);
    return c.first != SC_OK;
}

static void recompute_given(check *c, const sc_job *j)
{
    bool said = j->recompute >= 0 || (j->tree && j->tree->recompute >= 0);
    if (j->rc_method >= 0 && !said)
        fail(c, SC_C_MISSING, "--recompute-method", "add --recompute full",
             "the recomputation that it applies to is not given");
    if (j->rc_blocks && j->rc_method < 0)
        fail(c, SC_C_MISSING, "--recompute-num-layers",
             "add --recompute-method uniform, or block",
             "a number of layers needs a method");
}

sc_status predict_check_net(const sc_job *job, const sc_hw *hw,
                            const sc_model *model, const sc_software *sw,
                            sc_err *err)
{
    check c = {.err = err};
    positions(&c, job, model);
    inside(&c, job, sw);
    recompute_given(&c, job);
    device(&c, job, hw->device);
    host_given(&c, job, hw);
    expanded_given(&c, job, hw);
    optimizer_given(&c, job);
    if (!job->schedule_file && job->schedule > SC_SCH_INTERLEAVED)
        own_chunks(&c, job, hw->n_devices);
    return c.first;
}

sc_status predict_check(const sc_job *job, const sc_hw *hw,
                        const sc_model *model, const sc_software *sw,
                        sc_err *err)
{
    check c = {.err = err};
    inside(&c, job, sw);
    recompute_given(&c, job);
    optimizer_given(&c, job);
    device(&c, job, hw->device);
    combinations(&c, job, hw, model);
    degrees(&c, job, hw, &model->t, sw);
    batches(&c, job, hw->n_devices);
    pipeline(&c, job, sw, hw->n_devices);
    return c.first;
}

bool sc_points_have_ends(const sc_job *job, const sc_hw *hw)
{
    return !job->tree && !job->hsdp && !job->fsdp && !job->compress &&
           hw->n_groups == 0;
}
