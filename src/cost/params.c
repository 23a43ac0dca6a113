/* SPDX-License-Identifier: Apache-2.0 */
/* params.c - the table of parameters, and the reader of files that override
 * it. */
#include "cost/anchor.h"

#include <stdio.h>
#include <string.h>

#define INFO(id, name, unit, centre, sd, lo, hi, text) \
    {name, unit, text, centre, sd, lo, hi, SET},

const sc_param_info sc_params[SC_N_PARAMS] = {
#define SET SC_SET_KERNEL
    SC_PARAMS_KERNEL(INFO)
#undef SET
#define SET SC_SET_NETWORK
        SC_PARAMS_NETWORK(INFO)
#undef SET
#define SET SC_SET_STEP
            SC_PARAMS_STEP(INFO)
#undef SET
#define SET SC_SET_PROGRAM
                SC_PARAMS_PROGRAM(INFO)
#undef SET
#define SET SC_SET_GRAPH
                    SC_PARAMS_OP(INFO)
#undef SET
};

const char *const sc_param_origin_names[] = {"fitted", "fitted elsewhere",
                                             "assumed", "source", NULL};

sc_param_origin sc_param_origin_of(const sc_param_info *p)
{
    if (p->sd > 0) return SC_PARAM_FITTED;
    if (strstr(p->text, "fitted elsewhere on these rows"))
        return SC_PARAM_ELSEWHERE;
    return strstr(p->text, "assumed") ? SC_PARAM_ASSUMED : SC_PARAM_SOURCED;
}

int sc_param_find(const char *name)
{
    for (int i = 0; i < (int)SC_N_PARAMS; i++)
        if (strcmp(sc_params[i].name, name) == 0) return i;
    return -1;
}

void sc_cost_centres(sc_cost *out)
{
    for (int i = 0; i < (int)SC_N_PARAMS; i++) out->p[i] = sc_params[i].centre;
    out->hash = 0;
    out->forms = NULL;
    out->alone = NULL;
    out->burst = false;
    out->n_levels = 0;
    out->n_calibrated = 0;
    out->cov = NULL;
    out->anchors = NULL;
    sc_held_out_none(&out->held);
    out->run_level = (sc_run_level){.factor = 1};
}

static sc_status read_one(const sc_node *n, sc_cost *c, sc_err *err)
{
    int i = sc_param_find(n->key);
    if (i < 0) {
        const char *names[SC_N_PARAMS + 1];
        for (int k = 0; k < (int)SC_N_PARAMS; k++) names[k] = sc_params[k].name;
        names[SC_N_PARAMS] = NULL;
        const char *near = sc_nearest(n->key, names);
        char hint[96] = "`stepcast show parameters` lists them";
        if (near) snprintf(hint, sizeof hint, "did you mean '%s'?", near);
        return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, n->key_pos, hint,
                        "unknown parameter '%s'", n->key);
    }
    const sc_node *v = n->kind == SC_N_MAP ? sc_node_get(n, "value") : n;
    if (!v || v->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, n->pos,
                        "write {value: 0.79}", "parameter '%s' has no value",
                        n->key);
    double x = 0;
    SC_TRY(sc_unit_parse(v->text, SC_U_NONE, v->pos, &x, err));
    if (!(x >= sc_params[i].lo && x <= sc_params[i].hi))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, v->pos, NULL,
                        "parameter '%s' is %g, outside [%g, %g]", n->key, x,
                        sc_params[i].lo, sc_params[i].hi);
    c->p[i] = x;
    return SC_OK;
}

typedef struct network {
    const char *device;
    int64_t nodes;
    double nic_bw;
} network;

#define OFF(f) offsetof(network, f)
static const sc_key network_keys[] = {
    {.name = "device",
     .type = SC_T_STRING,
     .offset = OFF(device),
     .required = true,
     .help = "device of the catalogue"},
    {.name = "nodes",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(nodes),
     .min = 2,
     .max = 0x1p31,
     .required = true,
     .help = "most nodes that were measured"},
    {.name = "nic_bw",
     .type = SC_T_QUANTITY,
     .unit = SC_U_RATE,
     .offset = OFF(nic_bw),
     .min = 1,
     .max = 1e15,
     .required = true,
     .help = "all adapters of a node"},
    {0},
};

static sc_status read_network(const sc_node *item, sc_arena *a, sc_cost *c,
                              sc_err *err)
{
    network n = {0};
    if (c->n_calibrated == SC_CALIBRATED)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, item->pos, NULL,
                        "there are more than %d calibrated networks",
                        SC_CALIBRATED);
    SC_TRY(sc_schema_read(network_keys, item, &n, NULL, a, err));
    sc_calibrated *out = &c->calibrated[c->n_calibrated++];
    *out = (sc_calibrated){.nic_bw = n.nic_bw, .nodes = (uint32_t)n.nodes};
    snprintf(out->device, sizeof out->device, "%s", n.device);
    return SC_OK;
}

static sc_status read_networks(const sc_node *root, sc_arena *a, sc_cost *c,
                               sc_err *err)
{
    const sc_node *list = sc_node_get(root, "calibrated");
    if (list == NULL) return SC_OK;
    if (list->kind != SC_N_SEQ)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, list->pos,
                        "write [{device: h100-sxm, nodes: 2, nic_bw: 400GB/s}]",
                        "`calibrated` must be a list of networks");
    for (const sc_node *n = list->child; n != NULL; n = n->next)
        SC_TRY(read_network(n, a, c, err));
    return SC_OK;
}

typedef struct level {
    const char *device;
    int kind;
    double factor;
} level;

static const sc_key level_keys[] = {
    {.name = "device",
     .type = SC_T_STRING,
     .offset = offsetof(level, device),
     .required = true,
     .help = "device of the catalogue"},
    {.name = "kind",
     .type = SC_T_ENUM,
     .offset = offsetof(level, kind),
     .names = sc_form_names,
     .required = true,
     .help = "kind of kernel"},
    {.name = "factor",
     .type = SC_T_QUANTITY,
     .unit = SC_U_NONE,
     .offset = offsetof(level, factor),
     .min = 0.05,
     .max = 20,
     .required = true,
     .help = "measured time over the form's"},
    {0},
};

static sc_status read_levels(const sc_node *root, sc_arena *a, sc_cost *c,
                             sc_err *err)
{
    const sc_node *list = sc_node_get(root, "kernel_levels");
    if (list == NULL) return SC_OK;
    if (list->kind != SC_N_SEQ)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, list->pos,
                        "write [{device: l40s, kind: gemm, factor: 1.1}]",
                        "`kernel_levels` must be a list of levels");
    for (const sc_node *n = list->child; n != NULL; n = n->next) {
        level v = {0};
        if (c->n_levels == SC_KERNEL_LEVELS)
            return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, n->pos, NULL,
                            "there are more than %d levels", SC_KERNEL_LEVELS);
        SC_TRY(sc_schema_read(level_keys, n, &v, NULL, a, err));
        for (uint32_t i = 0; i < c->n_levels; i++)
            if (c->level[i].kind == v.kind &&
                strcmp(c->level[i].device, v.device) == 0)
                return sc_error(err, SC_EINPUT, SC_C_CONFLICT, n->pos,
                                "keep one of them",
                                "a second level of this device and kind");
        sc_kernel_level *out = &c->level[c->n_levels++];
        *out = (sc_kernel_level){.kind = v.kind, .factor = v.factor};
        snprintf(out->device, sizeof out->device, "%s", v.device);
    }
    return SC_OK;
}

uint64_t sc_cost_hash(const sc_cost *c)
{
    uint64_t h = sc_hash(c->p, sizeof c->p, c->forms ? c->forms->hash : 0);
    for (uint32_t i = 0; i < c->n_levels; i++) { /* not the padding */
        const sc_kernel_level *l = &c->level[i];
        h = sc_hash(l->device, strlen(l->device) + 1, h);
        h = sc_hash(&l->kind, sizeof l->kind, h);
        h = sc_hash(&l->factor, sizeof l->factor, h);
    }
    return h;
}

static sc_status read_tree(const sc_node *root, sc_arena *a, sc_cost *inout,
                           sc_err *err)
{
    const sc_node *list =
        root->kind == SC_N_MAP ? sc_node_get(root, "parameters") : NULL;
    if (!list || list->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, root->pos,
                        "a fit file needs the map 'parameters'",
                        "the file has no 'parameters'");
    sc_status first = SC_OK;
    sc_cost c = *inout;
    for (const sc_node *n = list->child; n; n = n->next) {
        sc_status s = read_one(n, &c, err);
        if (first == SC_OK) first = s;
    }
    sc_status networks = read_networks(root, a, &c, err);
    if (first == SC_OK) first = networks;
    sc_status levels = read_levels(root, a, &c, err);
    if (first == SC_OK) first = levels;
    if (first != SC_OK) return first;
    SC_TRY(anchor_read(root, inout, a, &c, err));
    c.hash = sc_cost_hash(&c);
    *inout = c;
    return SC_OK;
}

sc_status sc_cost_read(const char *text, size_t len, const char *file,
                       sc_arena *a, sc_cost *inout, sc_err *err)
{
    sc_node *root = NULL;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    return read_tree(root, a, inout, err);
}

sc_status sc_cost_profile(const char *file, sc_arena *a, sc_cost *inout,
                          sc_err *err)
{
    char *text = NULL;
    size_t len = 0;
    if (!file) return SC_OK;
    SC_TRY(sc_file_read(file, (size_t)16 << 20, a, &text, &len, err));
    return sc_cost_read(text, len, file, a, inout, err);
}

sc_status sc_cost_forms(sc_arena *a, sc_cost *inout, sc_err *err)
{
    sc_node *root = NULL;
    const sc_embedded *e = sc_embedded_find("fit/kernels.yml");
    if (!e) return SC_OK;
    SC_TRY(sc_embedded_read(e, a, &root, err));
    return sc_forms_tree(root, e->path, a, &inout->forms, err);
}

sc_status sc_cost_builtin(sc_arena *a, sc_cost *out, sc_err *err)
{
    sc_node *root = NULL;
    static const char *const files[] = {"fit/network.yml", "fit/step.yml",
                                        "fit/program.yml", "fit/graph.yml"};
    sc_cost c;
    sc_cost_centres(&c);
    SC_TRY(sc_cost_forms(a, &c, err));
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const sc_embedded *e = sc_embedded_find(files[i]);
        if (!e) continue;
        SC_TRY(sc_embedded_read(e, a, &root, err));
        SC_TRY(read_tree(root, a, &c, err));
    }
    SC_TRY(sc_held_out_builtin(a, &c.held, err));
    SC_TRY(sc_run_level_builtin(a, &c.run_level, err));
    sc_covariance *cov = SC_NEW(a, sc_covariance);
    if (!cov) return sc_error_nomem(err);
    SC_TRY(sc_covariance_builtin(a, cov, err));
    c.cov = cov;
    *out = c;
    return SC_OK;
}
