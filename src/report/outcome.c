/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.c - what a difference needs of a prediction, or of a document
 * stepcast.result/1.
 */
#include "base/number.h"
#include "report/report_difference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const sc_part_names[] = {
    "weights",       "gradients", "optimizer", "activations",
    "communication", "other",     "reserve",   NULL};

const char *const sc_figure_names[SC_N_FIGURES] = {
    [SC_FIG_TOKENS] = "tokens_per_s",
    [SC_FIG_TOKENS_DEVICE] = "tokens_per_s_per_device",
    [SC_FIG_SAMPLES] = "samples_per_s",
    [SC_FIG_MFU] = "mfu",
    [SC_FIG_FITS] = "fits_probability",
    [SC_FIG_ENERGY] = "energy_j_per_step",
    [SC_FIG_COST] = "cost_usd_per_step",
    [SC_FIG_DAYS] = "days",
    [SC_FIG_RUN_ENERGY] = "energy_j",
    [SC_FIG_RUN_COST] = "cost_usd",
};

void sc_stage_parts(const sc_stage_memory *m, double out[SC_N_PARTS])
{
    const double part[SC_N_PARTS] = {
        m->weights,       m->gradients, m->optimizer,          m->activations,
        m->communication, m->other,     m->peak - m->allocated};
    memcpy(out, part, sizeof part);
}

static sc_time picoseconds(double s)
{
    return (sc_time)llround(s * (double)SC_PS_PER_S);
}

/* Rounds the terms; `other` and `reserve` get what is missing from the whole. */
static void round_times(double step, const double time[SC_N_CATS],
                        sc_outcome *out)
{
    out->step = picoseconds(step);
    sc_time sum = 0;
    for (int c = 0; c < (int)SC_N_CATS; c++)
        sum += out->time[c] = picoseconds(time[c]);
    out->time[SC_CAT_OTHER] += out->step - sum;
}

static void round_memory(double peak, const double part[SC_N_PARTS],
                         sc_outcome *out)
{
    out->peak = llround(peak);
    out->memory[SC_PART_RESERVE] = out->peak;
    for (int i = 0; i < (int)SC_PART_RESERVE; i++) {
        out->memory[i] = llround(part[i]);
        out->memory[SC_PART_RESERVE] -= out->memory[i];
    }
}

void sc_outcome_of(const char *name, const sc_job *job, const sc_prediction *p,
                   sc_outcome *out)
{
    sc_outcome o = {.name = name,
                    .model = p->run.model->name,
                    .n_devices = p->run.hw->n_devices,
                    .capacity = p->memory_capacity_bytes,
                    .n_stages = p->n_stages,
                    .fits = p->fits};
    const double figure[SC_N_FIGURES] = {
        [SC_FIG_TOKENS] = p->tokens_per_s,
        [SC_FIG_TOKENS_DEVICE] = p->tokens_per_s_per_device,
        [SC_FIG_SAMPLES] = p->samples_per_s,
        [SC_FIG_MFU] = p->mfu,
        [SC_FIG_FITS] = p->fits_probability,
        [SC_FIG_ENERGY] = p->energy_j_per_step,
        [SC_FIG_COST] = p->cost_usd_per_step,
        [SC_FIG_DAYS] = p->whole_run.days,
        [SC_FIG_RUN_ENERGY] = p->whole_run.energy_j,
        [SC_FIG_RUN_COST] = p->whole_run.cost_usd,
    };
    memcpy(o.figure, figure, sizeof figure);
    sc_job_resolve(job, &p->run, &o.job);
    if (!o.job.model) o.job.model = o.model;
    for (uint32_t i = 1; i < p->n_stages; i++)
        if (p->memory[i].peak > p->memory[o.stage].peak) o.stage = i;
    const sc_stage_memory *m = &p->memory[o.stage];
    double part[SC_N_PARTS];
    sc_stage_parts(m, part);
    round_times(p->step_time_s, p->time_breakdown_s, &o);
    round_memory(m->peak, part, &o);
    *out = o;
}

/* ---- documents ------------------------------------------------------------------- */

typedef struct reading {
    sc_err *err;
    sc_status status; /* of the first error */
} reading;

static void wrong(reading *r, sc_code code, sc_pos pos, const char *fmt, ...)
    SC_PRINTF(4, 5);

static void wrong(reading *r, sc_code code, sc_pos pos, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(r->err, &r->status, SC_EINPUT, code, pos,
               "give a result as `stepcast predict --json` writes it", fmt,
               args);
    va_end(args);
}

/* A member that has to be there, and of this kind. */
static const sc_node *member(reading *r, const sc_node *map, const char *key,
                             sc_node_kind kind)
{
    static const char *const kinds[] = {"null", "a value", "a list", "a map"};
    const sc_node *n = sc_node_get(map, key);
    if (!n)
        wrong(r, SC_C_MISSING, map->pos, "no \"%s\"", key);
    else if (n->kind != kind)
        wrong(r, SC_C_TYPE, n->pos, "\"%s\" is not %s", key, kinds[kind]);
    return n && n->kind == kind ? n : NULL;
}

/* Largest numbers of fields: 11 days, 1 EB. */
#define MOST_S     1e6
#define MOST_BYTES 1e18

/* The number of a member; NaN: an error was reported, or it is null and may
 * be. */
static double number(reading *r, const sc_node *map, const char *key,
                     double most, bool required)
{
    const sc_node *n = sc_node_get(map, key);
    if (!required && (!n || n->kind == SC_N_NULL)) return NAN;
    n = member(r, map, key, SC_N_SCALAR);
    if (!n) return NAN;
    size_t len = strlen(n->text);
    if (n->quoted || len == 0 || number_span(n->text) != len) {
        wrong(r, SC_C_TYPE, n->pos, "\"%s\" is not a number: %.40s", key,
              n->text);
        return NAN;
    }
    double v = number_scaled(n->text, len, 0);
    if (v >= 0 && v <= most) return v;
    wrong(r, SC_C_RANGE, n->pos, "\"%s\" %.40s is outside [0, %g]", key,
          n->text, most);
    return NAN;
}

static bool yes(reading *r, const sc_node *map, const char *key)
{
    const sc_node *n = member(r, map, key, SC_N_SCALAR);
    if (!n) return false;
    bool on = strcmp(n->text, "true") == 0;
    if (n->quoted || (!on && strcmp(n->text, "false") != 0))
        wrong(r, SC_C_TYPE, n->pos, "\"%s\" is not true or false", key);
    return on;
}

/* Reports terms that do not add up to the whole. */
static void check_sum(reading *r, const sc_node *at, const char *what,
                      double sum, double whole)
{
    if (r->status == SC_OK && fabs(sum - whole) > 1e-9 + 1e-9 * whole)
        wrong(r, SC_C_CONFLICT, at->pos,
              "its terms add up to %.12g, not to "
              "the %s of %.12g",
              sum, what, whole);
}

static void read_times(reading *r, const sc_node *root, sc_outcome *out)
{
    double step = number(r, root, "step_time_s", MOST_S, true), sum = 0;
    double time[SC_N_CATS] = {0};
    const sc_node *map = member(r, root, "time_breakdown_s", SC_N_MAP);
    for (int c = 0; map && c < (int)SC_N_CATS; c++)
        sum += time[c] = number(r, map, sc_cat_names[c], MOST_S, true);
    if (map) check_sum(r, map, "step_time_s", sum, step);
    if (r->status == SC_OK) round_times(step, time, out);
}

static void read_stage(reading *r, const sc_node *stage, uint32_t i,
                       sc_outcome *out)
{
    double part[SC_N_PARTS] = {0}, sum = 0;
    double peak = number(r, stage, "peak", MOST_BYTES, true);
    double all = number(r, stage, "allocated", MOST_BYTES, true);
    for (int k = 0; k < (int)SC_PART_RESERVE; k++)
        sum += part[k] = number(r, stage, sc_part_names[k], MOST_BYTES, true);
    check_sum(r, stage, "allocated bytes", sum, all);
    if (r->status != SC_OK || (i > 0 && llround(peak) <= out->peak)) return;
    out->stage = i;
    round_memory(peak, part, out);
}

static void read_memory(reading *r, const sc_node *root, sc_outcome *out)
{
    const sc_node *list = member(r, root, "memory_per_stage", SC_N_SEQ);
    if (!list) return;
    if (list->n == 0)
        wrong(r, SC_C_MISSING, list->pos, "\"memory_per_stage\" is empty");
    for (const sc_node *n = list->child; n; n = n->next) {
        if (n->kind == SC_N_MAP)
            read_stage(r, n, out->n_stages, out);
        else
            wrong(r, SC_C_TYPE, n->pos, "a stage is not a map");
        out->n_stages++;
    }
    out->capacity = number(r, root, "memory_capacity_bytes", MOST_BYTES, false);
}

/* What a result's config has beside the options of a job. */
static const char *const others[] = {"megatron", "from", "profile"};

static sc_status read_config(reading *r, sc_node *root, sc_arena *a,
                             sc_outcome *out)
{
    const sc_node *map = member(r, root, "config", SC_N_MAP);
    if (!map) return SC_OK;
    const sc_node *name = sc_node_get(map, "model_name");
    bool named = name && name->kind == SC_N_SCALAR;
    double n = number(r, map, "devices", 1e9, true);
    out->model = named ? sc_strdup(a, name->text) : "?";
    out->n_devices = n >= 1 ? (uint32_t)n : 1;
    sc_node *config = sc_result_config(root, a);
    if (!config || !out->model) return sc_error_nomem(r->err);
    for (sc_node **at = &config->child; *at;) {
        bool drop = false;
        for (size_t i = 0; i < SC_COUNT(others); i++)
            drop = drop || strcmp((*at)->key, others[i]) == 0;
        if (drop)
            *at = (*at)->next, config->n--;
        else
            at = &(*at)->next;
    }
    sc_job_init(&out->job);
    sc_status s =
        sc_schema_read(sc_job_keys, config, &out->job, NULL, a, r->err);
    if (s != SC_OK && r->status == SC_OK) r->status = s;
    if (!out->job.model) out->job.model = out->model;
    return SC_OK;
}

bool sc_outcome_is(const sc_node *root)
{
    const sc_node *schema =
        root->kind == SC_N_MAP ? sc_node_get(root, "schema") : NULL;
    return schema && schema->kind == SC_N_SCALAR &&
           strcmp(schema->text, "stepcast.result/1") == 0;
}

sc_status sc_outcome_read(sc_node *root, sc_arena *a, sc_outcome *out,
                          sc_err *err)
{
    reading r = {.err = err};
    sc_outcome o = {.name = root->pos.file};
    if (!sc_outcome_is(root))
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos,
                        "give a result as `stepcast predict --json` writes it",
                        "this is no document stepcast.result/1");
    read_times(&r, root, &o);
    read_memory(&r, root, &o);
    o.fits = yes(&r, root, "fits");
    for (int i = 0; i < (int)SC_N_FIGURES; i++)
        o.figure[i] = number(&r, root, sc_figure_names[i], 1e300, false);
    SC_TRY(read_config(&r, root, a, &o));
    SC_TRY(r.status);
    *out = o;
    return SC_OK;
}

sc_node *sc_result_config(sc_node *root, sc_arena *a)
{
    static const char *const derived[] = {"model_name", "device", "devices",
                                          "micro_batches", "trained_params"};
    const sc_node *schema =
        root->kind == SC_N_MAP ? sc_node_get(root, "schema") : NULL;
    sc_node *config = NULL, **at;
    if (!schema || schema->kind != SC_N_SCALAR ||
        (strcmp(schema->text, "stepcast.result/1") != 0 &&
         strcmp(schema->text, "stepcast.emulate/1") != 0))
        return root;
    for (sc_node *n = root->child; n; n = n->next)
        if (strcmp(n->key, "config") == 0) config = n;
    if (!config || config->kind != SC_N_MAP) return root;
    for (at = &config->child; *at;) {
        bool drop = false;
        for (size_t i = 0; i < SC_COUNT(derived); i++)
            drop = drop || strcmp((*at)->key, derived[i]) == 0;
        if (drop) {
            *at = (*at)->next;
            config->n--;
            continue;
        }
        char *key = sc_strdup(a, (*at)->key);
        if (!key) return NULL;
        for (char *s = key; *s; s++)
            if (*s == '_') *s = '-';
        (*at)->key = key;
        at = &(*at)->next;
    }
    return config;
}
