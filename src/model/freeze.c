/* SPDX-License-Identifier: Apache-2.0 */
/* freeze.c - a model of which some operators do not learn, or keep their
 * products in the wide format of a low-precision recipe. */
#include "model/graph_build.h"

#include <stdio.h>
#include <string.h>

/* ---- patterns ---------------------------------------------------------------- */

void sc_layer_path(const sc_layer *l, uint32_t block, const sc_operator *op,
                   char *buf, size_t size)
{
    if (l->kind == SC_LAYER_BLOCK)
        snprintf(buf, size, "layers.%u.%s", block, op->name);
    else
        snprintf(buf, size, "%s.%s", l->path, op->name);
}

typedef struct marking {
    const sc_model *from;
    sc_model *m;
    const char *patterns;
    bool freeze;  /* else: products stay wide */
    uint64_t hit; /* bit per pattern that met a weight */
    sc_arena *a;
} marking;

static bool marked(marking *f, const char *path)
{
    bool any = false;
    uint32_t i = 0;
    for (const char *p = f->patterns; *p; i++) {
        size_t n = strcspn(p, ",");
        if (sc_path_match(p, n, path)) {
            any = true;
            if (i < 64) f->hit |= UINT64_C(1) << i;
        }
        p += n + (p[n] == ',');
    }
    return any;
}

/* ---- layers ------------------------------------------------------------------- */

/* The weight is the embedding's own. */
static bool shared(const sc_model *m, const sc_operator *op)
{
    return m->t.tied && op->w && strstr(op->name, "lm_head") != NULL;
}

/* Whether the patterns say something of the operator. */
static bool meant(marking *f, const sc_layer *l, const sc_operator *op,
                  uint32_t block)
{
    char path[128];
    bool product = op->type == SC_LINEAR || op->type == SC_EXPERT;
    if (!op->w || !(f->freeze || product)) return false;
    sc_layer_path(l, block, op, path, sizeof path);
    bool tied = f->freeze && shared(f->from, op);
    return marked(f, path) || (tied && marked(f, "embedding.embed"));
}

/* Marks one layer; says if anything of it learns. */
static bool mark_layer(marking *f, sc_layer *l, uint32_t block)
{
    bool learns = false;
    for (uint32_t k = 0; k < l->n_ops; k++) {
        sc_operator *op = &l->op[k];
        bool hit = meant(f, l, op, block);
        op->frozen = op->frozen || (hit && f->freeze);
        op->wide = op->wide || (hit && !f->freeze);
        learns = learns || (op->w && !op->frozen);
    }
    return learns;
}

static bool same(const sc_layer *a, const sc_layer *b)
{
    bool equal = a->n_ops == b->n_ops && a->still == b->still;
    for (uint32_t k = 0; equal && k < a->n_ops; k++)
        equal = strcmp(a->op[k].name, b->op[k].name) == 0 &&
                a->op[k].frozen == b->op[k].frozen &&
                a->op[k].wide == b->op[k].wide;
    return equal;
}

/* "layers.moe.*" as "layers.moe.still.*": rules for the one hold for all. */
static const char *kind_path(marking *f, const sc_layer *from,
                             const sc_layer *l, bool learns)
{
    size_t n = strlen(from->path);
    if (same(from, l)) return from->path;
    return sc_sprintf(f->a, "%.*s%s.*", (int)(n - 2), from->path,
                      !f->freeze ? ".wide"
                      : l->still ? ".still"
                      : learns   ? ".partly"
                                 : ".frozen");
}

/* Entry of a kind, a new one if there is none yet; SC_LAYERS: no room. */
static uint32_t entry(marking *f, const sc_layer *l, uint8_t from, bool learns,
                      uint8_t *source)
{
    sc_model *m = f->m;
    uint32_t at = 1;
    while (at < m->n_layers && (source[at] != from || !same(&m->layer[at], l)))
        at++;
    if (at == SC_LAYERS - 1) return SC_LAYERS;
    if (at == m->n_layers) {
        m->layer[at] = *l;
        m->layer[at].repeat = 0;
        m->layer[at].path = kind_path(f, &f->from->layer[from], l, learns);
        if (!m->layer[at].path) return SC_LAYERS;
        source[at] = from;
        m->n_layers++;
    }
    m->layer[at].repeat++;
    return at;
}

static uint64_t trained(const sc_model *m)
{
    uint64_t sum = 0;
    for (uint32_t l = 0; l < m->n_layers; l++)
        for (uint32_t k = 0; k < m->layer[l].n_ops; k++)
            if (!m->layer[l].op[k].frozen)
                sum += m->layer[l].op[k].params * m->layer[l].repeat;
    return sum;
}

static sc_status blocks(marking *f, bool learns, sc_pos pos, sc_err *err)
{
    uint8_t source[SC_LAYERS] = {0};
    sc_layer *one = SC_NEW(f->a, sc_layer);
    if (!one) return sc_error_nomem(err);
    for (uint32_t i = 0; i < f->m->n_blocks; i++) {
        uint8_t from = f->from->order[i];
        *one = f->from->layer[from];
        bool own = mark_layer(f, one, i);
        learns = learns || own;
        if (f->freeze) one->still = !learns;
        uint32_t at = entry(f, one, from, own, source);
        if (at == SC_LAYERS)
            return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, pos,
                            "name whole ranges of layers",
                            "more than %d kinds of layers", SC_LAYERS - 2);
        f->m->order[i] = (uint8_t)at;
    }
    return SC_OK;
}

static sc_status check(const marking *f, sc_pos pos, sc_err *err)
{
    uint32_t i = 0;
    const char *p = f->patterns;
    do {
        size_t n = strcspn(p, ",");
        if (i >= 64 || !(f->hit >> i & 1))
            return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos,
                            "paths such as layers.0-15.*, layers.*.qkv, "
                            "embedding; `stepcast show NAME --layers` lists "
                            "operators",
                            "\"%.*s\" matches no %s", (int)n, p,
                            f->freeze ? "weight" : "product");
        p += n + (p[n] == ',');
        i++;
    } while (*p);
    if (!f->freeze || f->m->trained_params > 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                    "use --forward-only for a model that does not learn",
                    "nothing is left to learn");
}

/* ---- graphs */

/* Weights of what matches do not learn; values learn where something that they
 * are made of does. */
static void freeze_graph(marking *f, sc_opgraph *g)
{
    g->learned = 0.0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const sc_gop *op = &g->op[i];
        bool hit = op->n_weight && marked(f, op->path), learns = false;
        for (unsigned k = 0; k < op->n_weight; k++) {
            sc_gtensor *w = &g->tensor[op->weight[k].tensor];
            w->learns = w->learns && !hit;
            learns = learns || w->learns;
            if (w->op == i && w->learns)
                g->learned += sc_gtensor_elements(w, 1);
        }
        for (unsigned k = 0; k < op->n_in; k++)
            learns = learns || g->tensor[op->in[k].tensor].learns;
        g->tensor[op->out.tensor].learns = learns;
    }
}

static sc_status mark_graph(marking *f, sc_pos pos, sc_err *err)
{
    gb_graph b = {.a = f->a, .g = *f->from->graph};
    sc_opgraph *g = SC_NEW(f->a, sc_opgraph);
    sc_gtensor *t = SC_NEW_N(f->a, sc_gtensor, b.g.n_tensors);
    if (!g || !t) return sc_error_nomem(err);
    memcpy(t, b.g.tensor, b.g.n_tensors * sizeof *t);
    b.g.tensor = t;
    freeze_graph(f, &b.g);
    gb_segments(&b); /* what learns is not equal to what does not */
    if (b.no_memory) return sc_error_nomem(err);
    *g = b.g;
    f->m->graph = g;
    f->m->trained_params = (uint64_t)g->learned;
    return check(f, pos, err);
}

/* ---- both */

static sc_status mark(const sc_model *from, const char *patterns, bool freeze,
                      sc_pos pos, sc_arena *a, const sc_model **out,
                      sc_err *err)
{
    sc_model *m = SC_NEW(a, sc_model);
    sc_layer *layer = SC_NEW_N(a, sc_layer, SC_LAYERS);
    if (!m || !layer) return sc_error_nomem(err);
    marking f = {
        .from = from, .m = m, .patterns = patterns, .freeze = freeze, .a = a};
    *m = *from;
    m->hash = sc_hash(patterns, strlen(patterns), from->hash + freeze);
    if (from->graph && freeze) {
        SC_TRY(mark_graph(&f, pos, err));
        *out = m;
        return SC_OK;
    }
    if (from->graph)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos, NULL,
                        "%.60s is a graph: all products have one format",
                        from->name);
    const sc_layer *head = &from->layer[from->n_layers - 1];
    m->layer = layer;
    m->order = SC_NEW_N(a, uint8_t, m->n_blocks);
    if (!m->order) return sc_error_nomem(err);
    m->layer[0] = from->layer[0];
    m->n_layers = 1;
    bool learns = mark_layer(&f, &m->layer[0], 0);
    if (freeze) m->layer[0].still = !learns;
    SC_TRY(blocks(&f, learns, pos, err));
    m->layer[m->n_layers] = *head;
    (void)mark_layer(&f, &m->layer[m->n_layers++], 0);
    m->trained_params = trained(m);
    SC_TRY(check(&f, pos, err));
    *out = m;
    return SC_OK;
}

sc_status sc_model_freeze(const sc_model *m, const char *patterns, sc_pos pos,
                          sc_arena *a, const sc_model **out, sc_err *err)
{
    return mark(m, patterns, true, pos, a, out, err);
}

sc_status sc_model_widen(const sc_model *m, const char *patterns, sc_pos pos,
                         sc_arena *a, const sc_model **out, sc_err *err)
{
    return mark(m, patterns, false, pos, a, out, err);
}
