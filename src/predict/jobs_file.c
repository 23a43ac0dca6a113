/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_file.c - reads several jobs from one file. */
#include "predict/predict_jobs.h"

#include <string.h>

static const char *const placement_names[] = {"packed", "scattered", NULL};

typedef struct extra {
    double weight, start;
    int placement;
    const sc_node *nodes;
} extra;

#define OFF(f) offsetof(extra, f)
const sc_key sc_jobs_keys[] = {
    {.name = "weight",
     .type = SC_T_QUANTITY,
     .offset = OFF(weight),
     .min = 1e-6,
     .max = 1e6,
     .def = "1",
     .help = "how much the job counts"},
    {.name = "nodes",
     .type = SC_T_NODE,
     .offset = OFF(nodes),
     .help = "how many nodes it has, or which: 0..7, 0..14/2, [0, 3, 8..11]"},
    {.name = "placement",
     .type = SC_T_ENUM,
     .offset = OFF(placement),
     .names = placement_names,
     .def = "packed",
     .help =
         "with a number of nodes: the first free ones, or one of every leaf "
         "in turn"},
    {.name = "start",
     .type = SC_T_QUANTITY,
     .unit = SC_U_TIME,
     .offset = OFF(start),
     .max = 1e6,
     .def = "0s",
     .help = "when its first step starts"},
    {.name = NULL}};

/* Takes an entry out of a map; NULL: there is none. */
static const sc_node *take(sc_node *map, const char *key)
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

static sc_status set(const sc_key *k, const sc_node *value, extra *x,
                     sc_arena *a, sc_err *err)
{
    bool weight = k->offset == OFF(weight);
    if (k->type == SC_T_NODE) {
        x->nodes = value;
        return SC_OK;
    }
    if (value->kind == SC_N_SCALAR)
        return sc_schema_set(k, value->text, value->pos, x, a, err);
    return sc_error(err, SC_EINPUT, SC_C_TYPE, value->pos,
                    weight ? "for example weight: 2" : NULL,
                    weight ? "the weight is no number"
                           : "the value of \"%s\" is no word",
                    k->name);
}

static sc_status take_extra(sc_node *n, sc_arena *a, sc_jobs_entry *out,
                            sc_err *err)
{
    extra x = {.weight = 1};
    sc_status first = SC_OK;
    for (const sc_key *k = sc_jobs_keys; k->name; k++) {
        const sc_node *value = take(n, k->name);
        if (!value) continue;
        if (k->offset != OFF(weight) && !out->side) out->side = value;
        sc_status s = set(k, value, &x, a, err);
        if (first == SC_OK) first = s;
    }
    out->weight = x.weight;
    out->start_s = x.start;
    out->placement = (sc_placement)x.placement;
    out->nodes = x.nodes;
    return first;
}

static sc_status read_job(sc_node *n, const sc_job *base, sc_arena *a,
                          sc_jobs_entry *out, sc_err *err)
{
    sc_node *own = SC_NEW(a, sc_node);
    if (!own) return sc_error_nomem(err);
    *own = *n; /* the copy keeps only its position and options */
    *out = (sc_jobs_entry){.name = n->key, .node = own, .job = *base};
    if (n->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, n->pos,
                        "write NAME: {model: llama3-8b, global-batch: 512}",
                        "job %.40s is no map of options", n->key);
    sc_status s = take_extra(own, a, out, err);
    sc_status of_job =
        sc_schema_read(sc_job_keys, own, &out->job, NULL, a, err);
    if (s == SC_OK) s = of_job;
    SC_TRY(s);
    if (out->job.cluster == base->cluster && out->job.nic_bw == base->nic_bw)
        return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, n->pos,
                    "give it on the command line, for all jobs",
                    "job %.40s has a machine of its own", n->key);
}

sc_status sc_jobs_read(const char *text, size_t len, const char *file,
                       const sc_job *base, sc_arena *a, sc_jobs_entry **out,
                       uint32_t *n, sc_err *err)
{
    sc_node *root;
    uint32_t at = 0;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    if (root->kind != SC_N_MAP || root->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos,
                        "write NAME: {model: llama3-8b, global-batch: 512}",
                        "the file has no jobs");
    sc_jobs_entry *all = SC_NEW_N(a, sc_jobs_entry, root->n);
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

sc_pos sc_jobs_pos(const sc_jobs_entry *job, const char *key)
{
    const sc_node *n =
        job->node->kind == SC_N_MAP && key ? sc_node_get(job->node, key) : NULL;
    return n ? n->pos : job->node->key_pos;
}
