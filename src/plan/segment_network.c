/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_network.c - reduces a model to at most three layers of each kind, as
 * a network: the middle one has the same neighbours as most layers of the
 * model.
 *
 * Layers of several kinds stay in the order of the model, and so do stacks (an
 * encoder, a decoder, predictions of later tokens), which share no kind.
 */
#include "plan/plan_segment.h"

enum { SHOWN = 3 };

/* Keeps only the first blocks of each kind. */
static sc_status shorten(const sc_model *from, sc_arena *a, sc_model *out,
                         sc_err *err)
{
    uint32_t seen[SC_LAYERS] = {0};
    *out = *from;
    out->order = SC_NEW_N(a, uint8_t, from->n_blocks);
    if (!out->order) return sc_error_nomem(err);
    out->n_blocks = 0;
    for (uint32_t i = 0; i < from->n_blocks; i++)
        if (seen[from->order[i]]++ < SHOWN)
            out->order[out->n_blocks++] = from->order[i];
    return SC_OK;
}

static sc_status parts_of(const sc_net *g, sc_arena *a, segment_network *out,
                          sc_err *err)
{
    uint32_t *part = SC_NEW_N(a, uint32_t, g->n_ops);
    if (!part) return sc_error_nomem(err);
    for (uint32_t i = 0; i < g->n_instances; i++)
        for (uint32_t k = 0; k < g->instance[i].n_ops; k++)
            part[g->instance[i].first + k] = i;
    out->n_parts = g->n_instances;
    out->part = part;
    return SC_OK;
}

/* Chooses the layer that represents its kind: the second of two or three. */
static sc_status choose_layers(const sc_model *m, sc_arena *a,
                               segment_network *x, sc_err *err)
{
    const sc_net_instance *part = x->net->instance;
    uint32_t *of = SC_NEW_N(a, uint32_t, m->n_layers);
    if (!of) return sc_error_nomem(err);
    for (uint32_t l = 0; l < m->n_layers; l++) {
        uint32_t n = 0, k = 0;
        for (uint32_t i = 0; i < x->n_parts; i++) n += part[i].kind == l;
        for (uint32_t i = 0; i < x->n_parts; i++)
            if (part[i].kind == l && k++ == (l == 0 ? 0 : n / 2)) of[l] = i;
    }
    x->chosen = of;
    return SC_OK;
}

static uint64_t pad_parts(const sc_run *run)
{
    return plan_divides_products(run) ? run->size[SC_AX_TP] : 1;
}

static sc_status make(const sc_run *run, bool whole, sc_arena *a,
                      segment_network *out, sc_err *err)
{
    segment_network x = {.model = run->model, .seq = run->seq, .whole = whole};
    sc_model few;
    const sc_model *m = run->model;
    SC_TRY(sc_model_pad(m, pad_parts(run), a, &m, err));
    x.vocab = m->t.vocab;
    if (!whole) {
        SC_TRY(shorten(m, a, &few, err));
        m = &few;
    }
    SC_TRY(sc_net_from_model(m, run->seq, false, a, &x.net, err));
    SC_TRY(parts_of(x.net, a, &x, err));
    SC_TRY(choose_layers(m, a, &x, err));
    *out = x;
    return SC_OK;
}

sc_status segment_network_of(const sc_run *run, bool whole,
                             sc_segment_memo *memo, sc_arena *a,
                             segment_network *out, sc_err *err)
{
    int64_t vocab = sc_model_padded(run->model, pad_parts(run));
    for (uint32_t i = 0; memo && i < memo->n; i++) {
        const segment_network *x = &memo->network[i];
        if (x->model != run->model || x->seq != run->seq || x->vocab != vocab ||
            x->whole != whole)
            continue;
        *out = *x;
        return SC_OK;
    }
    SC_TRY(make(run, whole, a, out, err));
    if (!memo) return SC_OK;
    out->prices = memo->prices;
    segment_network *all =
        sc_grow(a, memo->network, memo->n, &memo->cap, 4, sizeof *all);
    if (!all) return sc_error_nomem(err);
    memo->network = all;
    all[memo->n++] = *out;
    return SC_OK;
}
