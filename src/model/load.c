/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - loads a model by its name or file. */
#include "model/et.h"
#include "model/model_net.h"
#include "model/read.h"

#include <string.h>

#define FILE_MAX_BYTES  ((size_t)4 << 20)
#define TRACE_MAX_BYTES ((size_t)256 << 20)

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Hash of the operators: kinds, shapes and connections. */
static uint64_t hash_of(const sc_net *g)
{
    uint64_t h = sc_hash(&g->n_ops, sizeof g->n_ops, 0);
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        const sc_tensor *t = &g->tensor[i];
        for (unsigned k = 0; k < t->n_dim; k++) {
            const sc_tensor_dim *d = &t->dim[k];
            h = sc_hash(&d->extent, sizeof d->extent, h + d->batch);
        }
        h = sc_hash(&t->op, sizeof t->op, h + t->kind);
    }
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const sc_net_op *op = &g->op[i];
        h = sc_hash(&op->flops, sizeof op->flops, h + op->type);
        for (unsigned k = 0; k < op->n_in; k++)
            h = sc_hash(&op->in[k].tensor, sizeof op->in[k].tensor, h);
    }
    return h;
}

sc_status model_of_net(const sc_net *g, sc_source source, sc_arena *a,
                       const sc_model **out, sc_err *err)
{
    sc_model *m = SC_NEW(a, sc_model);
    if (!m) return sc_error_nomem(err);
    m->name = g->name;
    m->net = g;
    m->source = source;
    m->params = m->active_params = (uint64_t)g->params;
    m->trained_params = (uint64_t)g->learned;
    m->hash = hash_of(g);
    *out = m;
    return SC_OK;
}

static sc_status load_zoo(const sc_zoo_entry *z, sc_arena *a,
                          const sc_model **out, sc_err *err)
{
    const sc_net *g;
    SC_TRY(sc_zoo_build(z, a, &g, err));
    return model_of_net(g, z->source, a, out, err);
}

/* Reads a config.json of HuggingFace, an execution trace or a profiler's trace. */
static sc_status load_json(const char *path, sc_arena *a, const sc_model **out,
                           sc_err *err)
{
    char *text;
    size_t len;
    const sc_net *g;
    SC_TRY(sc_file_read(path, TRACE_MAX_BYTES, a, &text, &len, err));
    SC_TRY(sc_unpack(text, len, TRACE_MAX_BYTES, path, a, &text, &len, err));
    if (et_kind_of(text, len) == SC_ET_OTHER) {
        if (len <= FILE_MAX_BYTES)
            return model_read_hf(text, len, path, a, out, err);
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(path),
                        "an execution trace needs a list of nodes",
                        "the file is larger than any config of a model");
    }
    SC_TRY(sc_net_read_trace(text, len, path, a, &g, err));
    return model_of_net(g, (sc_source){0}, a, out, err);
}

sc_status sc_model_load(const char *spec, sc_pos pos, sc_arena *a,
                        const sc_model **out, sc_err *err)
{
    if (ends_with(spec, ".json") || ends_with(spec, ".json.gz"))
        return load_json(spec, a, out, err);
    if (!ends_with(spec, ".yml") && !ends_with(spec, ".yaml")) {
        const sc_zoo_entry *z = sc_zoo_find(spec);
        if (z) return load_zoo(z, a, out, err);
        return model_find(spec, pos, a, out, err);
    }
    char *text;
    size_t len;
    SC_TRY(sc_file_read(spec, FILE_MAX_BYTES, a, &text, &len, err));
    return model_read_yaml(text, len, spec, a, out, err);
}
