/* SPDX-License-Identifier: Apache-2.0 */
/* job_text.c - writes a job as options, and its traits, field by field of its
 * table. */
#include "plan/plan_schedule.h"
#include "predict/internal.h"

#include <math.h>
#include <string.h>

bool sc_job_has(const sc_job *job, const sc_key *k)
{
    sc_job empty;
    sc_job_init(&empty);
    return !sc_schema_same(k, job, &empty);
}

/* Words that need no quoting in a shell stay unquoted. */
static void add_word(sc_text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./:,+=@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        sc_text_add(t, " %s", word);
        return;
    }
    sc_text_add(t, " '");
    for (; *word; word++) sc_text_add(t, *word == '\'' ? "'\\''" : "%c", *word);
    sc_text_add(t, "'");
}

static void add_option(sc_text *t, const sc_key *k, const sc_job *job)
{
    char value[200];
    const char *blank = t->len ? " " : "";
    if (sc_key_is_flag(k)) {
        sc_schema_print(k, job, value, sizeof value);
        bool on = strcmp(value, "true") == 0;
        sc_text_add(t, "%s--%s%s", blank, on ? "" : "no-", k->flag + 2);
        return;
    }
    sc_text_add(t, "%s%s", blank, k->flag);
    if (k->type == SC_T_STRING) {
        const void *field = (const char *)job + k->offset;
        add_word(t, *(const char *const *)field);
        return;
    }
    sc_schema_print(k, job, value, sizeof value);
    add_word(t, value);
}

const char *sc_job_options(const sc_job *from, const sc_job *to, sc_arena *a)
{
    sc_text t;
    sc_text_init(&t);
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (!sc_schema_same(k, from, to) && sc_job_has(to, k))
            add_option(&t, k, to);
    /* Removed yes/no options become their negation: "--no-fsdp". */
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (sc_key_is_flag(k) && !sc_schema_same(k, from, to) &&
            !sc_job_has(to, k))
            add_option(&t, k, to);
    const char *out = t.failed ? NULL : sc_strdup(a, t.buf);
    sc_text_free(&t);
    return out;
}

void sc_job_resolve(const sc_job *job, const sc_run *run, sc_job *out)
{
    sc_job j = *job;
    if (!j.model) j.model = run->model->name;
    if (!j.cluster) j.cluster = run->hw->name;
    j.tp = run->size[SC_AX_TP];
    j.pp = run->size[SC_AX_PP];
    j.dp = sc_run_dp(run);
    j.cp = run->size[SC_AX_CP];
    j.ep = sc_run_ep(run);
    j.vpp = run->vpp;
    j.gbs = (int64_t)run->gbs;
    j.mbs = (int64_t)run->mbs;
    j.accumulation = 0;
    /* Operator networks define their own sequence length. */
    if (!run->model->net) j.seq = (int64_t)run->seq;
    j.zero = run->zero;
    j.sp = run->sp;
    j.recompute = (int)run->recompute;
    bool none = run->schedule == SC_SCH_INTERLEAVED && j.pp == 1;
    j.schedule = (int)(none ? SC_SCH_1F1B : run->schedule);
    j.schedule_file = run->order ? run->order->file : NULL;
    j.precision = (int)run->recipe;
    j.offload = run->offload;
    j.offload_weights = run->offload_weights;
    if (run->offload_to > 0) j.offload_to = run->offload_to;
    if (run->optim_tier) j.optimizer_tier = run->optim_tier;
    if (run->size[SC_AX_REP] > 1)
        j.hsdp = sc_run_dp(run) / run->size[SC_AX_REP];
    predict_resolve_program(run, &j);
    /* Naming the program would require it to have every option of the job:
     * without a name it is that of the devices again. */
    bool outside = run->sw->open && sc_job_outside(&j, run->sw);
    bool named = j.software && strncmp(j.software, "default", 7) != 0;
    if (!j.software && outside && run->model->net)
        j.software = "default for operator networks";
    else if (!named && !outside)
        j.software = run->sw->name;
    *out = j;
}

/* Money and failures change no step. */
static bool of_whole_run(const sc_key *k)
{
    return k->offset >= offsetof(sc_job, purchase) &&
           k->offset <= offsetof(sc_job, availability) &&
           k->offset != offsetof(sc_job, tokens);
}

/* Keys of files of anchors are older than these options. */
static bool came_later(const sc_key *k)
{
    static const size_t later[] = {
        offsetof(sc_job, offload_weights), offsetof(sc_job, offload_to),
        offsetof(sc_job, expanded_fraction), offsetof(sc_job, expanded_access)};
    for (size_t i = 0; i < SC_COUNT(later); i++)
        if (k->offset == later[i]) return true;
    return false;
}

/* Equal for predictions of the same job on equal machines. */
static uint64_t key_of(const sc_run *r, const sc_traits *t)
{
    uint64_t key = r->hw->hash;
    sc_job empty, job;
    sc_job_init(&empty);
    /* Keys are older than options of the program that act on copies. */
    sc_run still = *r;
    still.offload = still.offload_weights = 0;
    sc_job_resolve(&empty, &still, &job);
    job.offload = r->offload;
    job.offload_weights = r->offload_weights;
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        char value[200];
        if (k->type == SC_T_STRING || k->type == SC_T_LIST ||
            k->type == SC_T_NODE || of_whole_run(k) ||
            (came_later(k) && !sc_job_has(&job, k)))
            continue;
        if (k->type == SC_T_ENUM) { /* SC_INFER has no name */
            int which;
            memcpy(&which, (const char *)&job + k->offset, sizeof which);
            key = sc_hash(&which, sizeof which, key);
            continue;
        }
        sc_schema_print(k, &job, value, sizeof value);
        key = sc_hash(value, strlen(value) + 1, key);
    }
    for (int k = 0; k < (int)SC_N_TRAIT_NAMES; k++)
        key = sc_hash(t->name[k], strlen(t->name[k]) + 1, key);
    return sc_hash(t->size, sizeof t->size, key);
}

static double at_least_1(double v)
{
    return v >= 1 ? v : 1;
}

void predict_traits(sc_prediction *p)
{
    const sc_run *r = &p->run;
    const sc_model *m = r->model;
    double devices = r->hw->n_devices, seq = at_least_1((double)r->seq);
    double weights = m->net ? m->net->params : (double)m->params;
    sc_traits t = {
        .name = {[SC_TRAIT_RELEASE] = r->sw->name,
                 [SC_TRAIT_DEVICE] = r->hw->device->name,
                 [SC_TRAIT_PRECISION] = sc_recipe_names[r->recipe],
                 [SC_TRAIT_MODEL] = m->name ? m->name : ""},
        .size = {[SC_SIZE_DEVICES] = devices,
                 [SC_SIZE_MODEL] = at_least_1(weights),
                 [SC_SIZE_SEQ] = seq,
                 [SC_SIZE_TOKENS] = fmax(1e-3, (double)r->gbs * seq / devices),
                 [SC_SIZE_MBS] = at_least_1((double)r->mbs),
                 [SC_SIZE_TP] = at_least_1(r->size[SC_AX_TP]),
                 [SC_SIZE_PP] = at_least_1(r->size[SC_AX_PP]),
                 [SC_SIZE_CP] = at_least_1(r->size[SC_AX_CP]),
                 [SC_SIZE_EP] = at_least_1(r->size[SC_AX_EP]),
                 [SC_SIZE_ZERO] = 1 + r->zero,
                 [SC_SIZE_RECOMPUTE] = 1 + (int)r->recompute}};
    t.unseen = !predict_seen(r);
    t.key = key_of(r, &t);
    p->traits = t;
    p->narrow = 1;
}
