/* SPDX-License-Identifier: Apache-2.0 */
/* nccltests_json.c - reads the file that nccl-tests writes with -J. */
#include "coll/nccltests.h"

#include <math.h>
#include <string.h>

/* Finds member `key`. Reports an error if it has not the kind `kind`, or if it
 * is missing and `need` is set. */
static const sc_node *member(nccl_reader *r, const sc_node *map,
                             const char *key, sc_node_kind kind, bool need)
{
    static const char *const kinds[] = {"null", "a value", "a list",
                                        "an object"};
    const sc_node *n = sc_node_get(map, key);
    if (n && n->kind == kind) return n;
    if (n && n->kind != SC_N_NULL)
        nccl_error(r, SC_C_TYPE, n->pos, NULL, "'%s' is not %s", key,
                   kinds[kind]);
    else if (need)
        nccl_error(r, SC_C_MISSING, n ? n->pos : map->pos, NULL, "no '%s'",
                   key);
    return NULL;
}

/* The number; NaN if the member is missing or is no number ("nan" is a string
 * there). */
static double number(nccl_reader *r, const sc_node *map, const char *key,
                     bool need)
{
    const sc_node *n = member(r, map, key, SC_N_SCALAR, need);
    if (!n || strcmp(n->text, "nan") == 0) return NAN;
    double v = log_number((log_word){n->text, strlen(n->text)});
    if (isnan(v))
        nccl_error(r, SC_C_TYPE, n->pos, NULL, "'%s' is not a number: '%.40s'",
                   key, n->text);
    else if (v < 0)
        nccl_error(r, SC_C_RANGE, n->pos, NULL, "'%s' is negative", key);
    else
        return v;
    return NAN;
}

static const char *text(nccl_reader *r, const sc_node *map, const char *key,
                        bool need)
{
    const sc_node *n = member(r, map, key, SC_N_SCALAR, need);
    return n ? n->text : "";
}

static sc_status devices(nccl_reader *r, const sc_node *root)
{
    const sc_node *config = member(r, root, "config", SC_N_MAP, false);
    const sc_node *list = config ? sc_node_get(config, "devices") : NULL;
    if (!list) list = sc_node_get(root, "devices");
    if (!list || list->kind != SC_N_SEQ) {
        nccl_error(r, list ? SC_C_TYPE : SC_C_MISSING,
                   list ? list->pos : root->pos, NULL,
                   "the list 'devices' of the ranks is missing");
        return SC_OK;
    }
    for (const sc_node *d = list->child; d; d = d->next) {
        if (d->kind != SC_N_MAP) {
            nccl_error(r, SC_C_TYPE, d->pos, NULL,
                       "a device must be an object");
            continue;
        }
        double rank = number(r, d, "rank", true);
        const char *host = text(r, d, "hostname", true);
        const char *name = text(r, d, "device_info", true);
        if (rank > 1e7)
            nccl_error(r, SC_C_RANGE, d->pos, NULL, "rank %g", rank);
        else if (!isnan(rank) && *host && *name)
            SC_TRY(nccl_device(r, (uint32_t)rank, host, name, d->pos));
    }
    return SC_OK;
}

static void half(nccl_reader *r, const sc_node *row, const char *key,
                 nccl_result *v, int k)
{
    const sc_node *h = member(r, row, key, SC_N_MAP, false);
    v->time[k] = v->algbw[k] = v->busbw[k] = NAN;
    if (!h) return;
    bool cpu = sc_node_get(h, "cpu_time") != NULL;
    v->cpu[k] = cpu;
    v->time[k] = number(r, h, cpu ? "cpu_time" : "time", true);
    v->algbw[k] = number(r, h, "alg_bw", true);
    v->busbw[k] = number(r, h, "bus_bw", true);
    double wrong = number(r, h, "nwrong", false);
    if (wrong > v->wrong) v->wrong = wrong;
}

static sc_status result(nccl_reader *r, const sc_node *row)
{
    nccl_result v = {.pos = row->pos, .reduces = -1, .rooted = -1};
    if (row->kind != SC_N_MAP) {
        nccl_error(r, SC_C_TYPE, row->pos, NULL, "a result must be an object");
        return SC_OK;
    }
    uint32_t before = r->err ? r->err->n + r->err->n_more : 0;
    v.bytes = number(r, row, "size", true);
    v.type = text(r, row, "type", false);
    const char *op = text(r, row, "redop", false);
    const char *root = text(r, row, "root", false);
    if (*op) v.reduces = strcmp(op, "none") != 0;
    if (*root) v.rooted = strstr(root, "-1") == NULL;
    half(r, row, "out_of_place", &v, 0);
    half(r, row, "in_place", &v, 1);
    if (r->err && r->err->n + r->err->n_more != before) return SC_OK;
    return nccl_add(r, &v);
}

sc_status nccl_read_json(nccl_reader *r)
{
    sc_node *root;
    SC_TRY(sc_doc_parse(r->text, r->len, SC_FMT_JSON, r->file, r->a, &root,
                        r->err));
    if (root->kind != SC_N_MAP || !sc_node_get(root, "results")) {
        nccl_error(r, SC_C_MISSING, root->pos,
                   "this reads the file of nccl-tests -J",
                   "the list 'results' is missing");
        return SC_OK;
    }
    const sc_node *args = member(r, root, "args", SC_N_SEQ, false);
    if (args && args->child && args->child->kind == SC_N_SCALAR)
        nccl_name_test(
            r, nccl_program(args->child->text, strlen(args->child->text)));
    SC_TRY(devices(r, root));
    const sc_node *list = member(r, root, "results", SC_N_SEQ, true);
    for (const sc_node *n = list ? list->child : NULL; n; n = n->next)
        SC_TRY(result(r, n));
    return SC_OK;
}
