/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_activations.c - the activations that a layer of each kind saves and
 * works with, from the lifetimes of tensors in both passes.
 */
#include "plan/segment.h"

#include <math.h>
#include <string.h>

bool segment_scales(const sc_run *of)
{
    return sc_run_offload_tier(of) == SC_TIER_EXPANDED;
}

/* Bytes of activations in both passes, and those saved in between. */
typedef struct lives {
    double *live;  /* [n_at + 1] change of bytes at each item */
    double *kept;  /* [n_parts] saved by each layer */
    double *below; /* [n_parts] saved by the layer and all before it */
} lives;

static sc_status places(segment_reading *x)
{
    const lower_list *of[PASSES] = {&x->g.stage[0].fwd, &x->g.stage[0].bwd};
    x->at = SC_NEW_N(x->a, uint32_t, x->prog.n_items);
    if (!x->at) return sc_error_nomem(x->err);
    memset(x->at, 0xff, x->prog.n_items * sizeof *x->at);
    for (int which = 0; which < PASSES; which++) {
        for (uint32_t k = 0; k < of[which]->n; k++)
            x->at[of[which]->item[k]] = x->n_at++;
        if (which == FORWARD) x->n_fwd = x->n_at;
    }
    return SC_OK;
}

/* The last item that reads a tensor. */
static uint32_t last_reader(const segment_reading *x, const sc_lifetime *l)
{
    uint32_t last = l->first;
    for (uint32_t k = 0; k < l->n_last; k++) {
        uint32_t i = l->last[k];
        if (x->at[i] != SC_NONE && x->at[i] > x->at[last]) last = i;
    }
    return last;
}

/* Whether a tensor is kept until a separate pass for weights. */
static bool waits(const segment_reading *x, const sc_lifetime *l)
{
    for (uint32_t k = 0; k < l->n_last; k++)
        if (x->g.item[l->last[k]].part == LOWER_W) return true;
    return false;
}

/* Counts a saved tensor for the layer that reads it last, because a stage keeps
 * the activation that it receives, not the one that it sends. */
static void live(segment_reading *x, const sc_lifetime *l, lives *s)
{
    if (l->first == SC_NONE || x->at[l->first] == SC_NONE) return;
    if (l->kind != SC_MEM_ACTIVATION) return;
    uint32_t reader = last_reader(x, l), kind = segment_kind_of(x, l->first);
    uint32_t from = x->at[l->first], to = x->at[reader];
    uint32_t op = x->prog.item[reader].op;
    double bytes = (double)l->bytes;
    s->live[from] += bytes;
    s->live[to + 1] -= bytes;
    if (from < x->n_fwd && to >= x->n_fwd && op != SC_NONE)
        s->kept[x->net.part[op]] += bytes;
    if (kind != SC_NONE && waits(x, l)) x->b[kind].wgrad_held += bytes;
}

/* Finds the peak of each kind's passes, without the activations that this layer
 * and those before it save. */
static void working(segment_reading *x, const lives *s)
{
    const lower_list *of[PASSES] = {&x->g.stage[0].fwd, &x->g.stage[0].bwd};
    bool grads[SC_LAYERS] = {false};
    double now = 0;
    for (uint32_t p = 0; p < x->net.n_parts; p++)
        s->below[p] = (p ? s->below[p - 1] : 0) + s->kept[p];
    for (int which = 0; which < PASSES; which++)
        for (uint32_t k = 0; k < of[which]->n; k++) {
            uint32_t i = of[which]->item[k], kind = segment_kind_of(x, i);
            now += s->live[x->at[i]];
            if (kind == SC_NONE) continue;
            double held = now - s->below[x->net.chosen[kind]];
            x->b[kind].working = fmax(x->b[kind].working, held);
            bool grad = x->prog.item[i].pass == SC_PASS_WGRAD;
            if (grads[kind])
                x->b[kind].grads_held = fmax(x->b[kind].grads_held, held);
            else if (grad)
                x->b[kind].grads_held = held;
            grads[kind] = grads[kind] || grad;
        }
    for (uint32_t l = 0; l < x->run->model->n_layers; l++)
        x->b[l].saved = s->kept[x->net.chosen[l]];
}

/* Bytes of the input of the loss. */
static void logits(segment_reading *x)
{
    for (uint32_t i = 0; i < x->prog.n_items; i++) {
        const program_item *it = &x->prog.item[i];
        uint32_t kind = segment_kind_of(x, i);
        if (kind == SC_NONE || it->pass != SC_PASS_FWD || it->recomputed ||
            it->exchange != SC_NONE || it->copy ||
            x->net.net->op[it->op].type != SC_NET_LOSS)
            continue;
        for (uint32_t k = 0; k < it->n_in; k++)
            x->b[kind].logits =
                fmax(x->b[kind].logits, x->prog.value[it->in[k]].bytes);
    }
}

/* Counts exchanges of the forward pass that scatter their input. */
static void scatters(segment_reading *x)
{
    for (uint32_t i = 0; i < x->prog.n_items; i++) {
        uint32_t kind = segment_kind_of(x, i);
        double bytes = lower_scattered(&x->prog, &x->prog.item[i]);
        if (kind == SC_NONE || bytes <= 0) continue;
        x->b[kind].scatters++;
        x->b[kind].scattered = fmax(x->b[kind].scattered, bytes);
    }
}

/* Leaves activations beyond the fraction that is offloaded on the device. */
static void part_offloaded(segment_reading *x)
{
    double part = segment_scales(x->run) ? x->run->offload : 0;
    for (uint32_t l = 0; l < x->run->model->n_layers && part > 0; l++) {
        sc_segment *b = &x->b[l];
        double stays = (1 - part) * b->offloaded;
        b->saved += stays;
        /* its own, and those that are copied back for the layer before it */
        b->working = fmax(0, b->working - 2 * stays);
        b->offloaded *= part;
        b->out_s *= part;
        b->in_s *= part;
    }
}

sc_status segment_activations(segment_reading *x)
{
    lives s;
    SC_TRY(places(x));
    s.live = SC_NEW_N(x->a, double, (size_t)x->n_at + 1);
    s.kept = SC_NEW_N(x->a, double, x->net.n_parts);
    s.below = SC_NEW_N(x->a, double, x->net.n_parts);
    if (!s.live || !s.kept || !s.below) return sc_error_nomem(x->err);
    for (uint32_t k = 0; k < x->clock.n_lives; k++)
        live(x, &x->clock.life[k], &s);
    working(x, &s);
    logits(x);
    scatters(x);
    part_offloaded(x);
    return SC_OK;
}
