/* SPDX-License-Identifier: Apache-2.0 */
/* mix.c - the best machine for several jobs. */
#include "search/search_mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ------------------------------------------------------------- */

typedef struct extra {
    double weight;
} extra;

static const sc_key extra_keys[] = {{.name = "weight",
                                     .type = SC_T_QUANTITY,
                                     .offset = offsetof(extra, weight),
                                     .min = 1e-6,
                                     .max = 1e6,
                                     .def = "1",
                                     .help = "how much the job counts"},
                                    {.name = NULL}};

/* Takes an entry out of a map; NULL: there is none. */
static sc_node *take(sc_node *map, const char *key)
{
    for (sc_node **at = &map->child; *at; at = &(*at)->next) {
        sc_node *n = *at;
        if (strcmp(n->key, key) != 0) continue;
        *at = n->next;
        n->next = NULL;
        map->n--;
        return n;
    }
    return NULL;
}

static sc_status read_job(sc_node *n, const sc_job *base, sc_arena *a,
                          sc_mix_job *out, sc_err *err)
{
    extra x = {1};
    *out = (sc_mix_job){.name = n->key, .job = *base};
    if (n->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, n->pos,
                        "write NAME: {model: llama3-8b, global-batch: 512}",
                        "job %.40s is no map of options", n->key);
    const sc_node *weight = take(n, extra_keys[0].name);
    if (weight && weight->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, weight->pos,
                        "for example weight: 2", "the weight is no number");
    if (weight)
        SC_TRY(sc_schema_set(&extra_keys[0], weight->text, weight->pos, &x, a,
                             err));
    out->weight = x.weight;
    SC_TRY(sc_schema_read(sc_job_keys, n, &out->job, NULL, a, err));
    if (out->job.cluster == base->cluster && out->job.nic_bw == base->nic_bw)
        return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, n->pos,
                    "give it on the command line, for all jobs",
                    "job %.40s has a machine of its own", n->key);
}

sc_status sc_search_mix_read(const char *text, size_t len, const char *file,
                             const sc_job *base, sc_arena *a, sc_mix_job **out,
                             uint32_t *n, sc_err *err)
{
    sc_node *root;
    uint32_t at = 0;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    if (root->kind != SC_N_MAP || root->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos,
                        "write NAME: {model: llama3-8b, global-batch: 512}",
                        "the file has no jobs");
    sc_mix_job *all = SC_NEW_N(a, sc_mix_job, root->n);
    if (!all) return sc_error_nomem(err);
    sc_status first = SC_OK;
    for (sc_node *c = root->child; c; c = c->next) {
        sc_status s = read_job(c, base, a, &all[at++], err);
        if (first == SC_OK) first = s;
    }
    SC_TRY(first);
    *out = all;
    *n = at;
    return SC_OK;
}

/* ---- machines ------------------------------------------------------------- */

static const sc_machine_row *same_machine(const sc_search_machines *m,
                                          const sc_machine_row *row)
{
    for (uint32_t i = 0; i < m->n_best; i++)
        if (memcmp(m->best[i].digit, row->digit,
                   m->n_axes * sizeof *row->digit) == 0)
            return &m->best[i];
    return NULL;
}

static int by_mean(const void *a, const void *b)
{
    const sc_mix_row *x = a, *y = b;
    if (x->mean != y->mean) return x->mean < y->mean ? -1 : 1;
    return memcmp(x->of[0]->digit, y->of[0]->digit, sizeof x->of[0]->digit);
}

static bool join(const sc_mix_job *job, uint32_t n_jobs,
                 const sc_machine_row *first, sc_mix_row *out)
{
    double sum = 0, weights = 0;
    for (uint32_t i = 0; i < n_jobs; i++) {
        out->of[i] = same_machine(&job[i].found, first);
        if (!out->of[i]) return false;
        sum += job[i].weight * out->of[i]->score / job[i].found.best[0].score;
        weights += job[i].weight;
    }
    out->mean = sum / weights;
    return true;
}

sc_status sc_search_mix_run(const sc_search_question *q, sc_mix_job *job,
                            uint32_t n_jobs, const sc_machine_axis *axis,
                            uint32_t n_axes, sc_arena *a, sc_search_mix *out,
                            sc_err *err)
{
    sc_search_options o = *q->o;
    *out = (sc_search_mix){
        .n_jobs = n_jobs, .job = job, .machines = 1, .proved = true};
    for (uint32_t i = 0; i < n_axes; i++) out->machines *= axis[i].n;
    if (out->machines > SC_MIX_MACHINES)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file("--mix"),
                        "give fewer values of the machine",
                        "every one of %.0f machines would be searched",
                        out->machines);
    o.top = (uint32_t)out->machines;
    for (uint32_t i = 0; i < n_jobs; i++) {
        sc_search_question own = *q;
        own.o = &o;
        own.job = &job[i].job;
        own.in = &job[i].in;
        SC_TRY(
            sc_search_machines_run(&own, axis, n_axes, a, &job[i].found, err));
        out->proved = out->proved && !(job[i].found.left > 0);
    }
    out->row = SC_NEW_N(a, sc_mix_row, (size_t)job[0].found.n_best + 1);
    if (!out->row) return sc_error_nomem(err);
    for (uint32_t i = 0; i < job[0].found.n_best; i++) {
        sc_mix_row *r = &out->row[out->n_rows];
        r->of = SC_NEW_N(a, const sc_machine_row *, n_jobs);
        if (!r->of) return sc_error_nomem(err);
        if (join(job, n_jobs, &job[0].found.best[i], r)) out->n_rows++;
    }
    qsort(out->row, out->n_rows, sizeof *out->row, by_mean);
    return SC_OK;
}
