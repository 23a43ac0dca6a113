/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_places.c - operators that run only on some ranks of a stage (`devices:`
 * with coordinates on axes other than pp).
 *
 * One class represents all ranks of a stage; its kernels run one after the
 * other.  Operators on different ranks (places) run in parallel: each place has
 * its own clock until an exchange over its axes joins it with the others.  So
 * the time of an operator for the class is the time by which it delays the
 * busiest place.
 */
#include "plan/infer.h"
#include "plan/plan_schedule.h"

#include <math.h>
#include <string.h>

/* ---- places ---------------------------------------------------------- */

static bool same_place(const infer_spot *a, const infer_spot *b)
{
    return a->axes == b->axes &&
           memcmp(a->coord, b->coord, sizeof a->coord) == 0;
}

sc_status infer_place_of(inference *f, const sc_strategy_rule *r, uint32_t *out)
{
    infer_spot own = {0};
    for (uint32_t i = 0; i < r->n_at; i++) {
        uint32_t ax = r->at[i].axis;
        if ((int)ax == f->pp) continue;
        own.axes |= 1u << ax;
        own.coord[ax] = r->at[i].coord;
    }
    *out = 0;
    if (!own.axes) return SC_OK;
    for (uint32_t i = 0; i < f->n_places; i++)
        if (same_place(&f->place[i], &own)) *out = i + 1;
    if (*out) return SC_OK;
    infer_spot *all =
        sc_grow(f->a, f->place, f->n_places, &f->cap_places, 8, sizeof *all);
    if (!all) return sc_error_nomem(f->err);
    f->place = all;
    all[f->n_places++] = own;
    *out = f->n_places;
    return SC_OK;
}

/* Whether two places have no rank in common. */
static bool apart(const inference *f, const infer_spot *a, const infer_spot *b)
{
    uint32_t both = a->axes & b->axes;
    for (uint32_t ax = 0; ax < f->mesh.n_axes; ax++)
        if (both >> ax & 1 && a->coord[ax] != b->coord[ax]) return true;
    return false;
}

/* ---- parallel places ------------------------------------------------- */

typedef struct times {
    double *of; /* [n_places + 1] time until which each place is busy; the last
                   is for ranks of no place */
    double end; /* the latest of these times */
} times;

/* Makes all ranks wait for each other. */
static void join(const inference *f, times *t)
{
    for (uint32_t i = 0; i <= f->n_places; i++) t->of[i] = t->end;
}

/* Adds work of `s` seconds to place `place` - 1, or to all ranks if it is 0.
 * Returns how much later the last rank ends. */
static double delayed(const inference *f, times *t, uint32_t place, double s)
{
    double was = t->end, from = 0;
    for (uint32_t i = 0; i < f->n_places && place; i++)
        if (!apart(f, &f->place[i], &f->place[place - 1]))
            from = fmax(from, t->of[i]);
    for (uint32_t i = 0; i <= f->n_places; i++) {
        if (!place)
            t->of[i] += s;
        else if (i == place - 1)
            t->of[i] = from + s;
        t->end = fmax(t->end, t->of[i]);
    }
    return t->end - was;
}

static uint32_t placed_axes(const inference *f)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < f->n_places; i++) all |= f->place[i].axes;
    return all;
}

/* Streams that run their items in order: kernels with the exchanges that block
 * them, separate passes for weights, and two for overlapped exchanges. */
enum { BLOCKING, WEIGHTS, GRADIENTS, GATHERS, STREAMS };

static uint32_t stream_of(const inference *f, const program_item *it,
                          bool splits)
{
    if (it->exchange != SC_NONE && f->p->exchange[it->exchange].grad)
        return GRADIENTS;
    if (it->exchange != SC_NONE && it->out != SC_NONE &&
        f->prog->value[it->out].what == VALUE_WEIGHT_USED)
        return GATHERS;
    return splits && it->pass == SC_PASS_WGRAD ? WEIGHTS : BLOCKING;
}

static void visit(inference *f, times *t, program_item *it)
{
    uint32_t place = f->node[it->op].place;
    if (it->exchange == SC_NONE) {
        it->price.seconds = delayed(f, t, place, it->price.seconds);
        return;
    }
    const sc_net_exchange *x = &f->p->exchange[it->exchange];
    if (x->p2p || x->bucketed || x->axes & placed_axes(f)) {
        join(f, t);
        place = 0;
    }
    it->seconds = delayed(f, t, place, it->seconds);
    it->latency = fmin(it->latency, it->seconds);
}

/* ---- memory ---------------------------------------------------------- */

/* The place that holds a value, + 1; 0: all ranks hold it. */
static uint32_t value_at(const inference *f, const program_value *v)
{
    const sc_tensor *t = &f->g->tensor[v->tensor];
    const program_item *it =
        v->made == SC_NONE ? NULL : &f->prog->item[v->made];
    if (v->what == VALUE_INPUT) return 0;
    if (t->kind == SC_TENSOR_WEIGHT) return f->node[t->op].place;
    if (!it) return 0;
    bool moved = it->exchange != SC_NONE &&
                 f->p->exchange[it->exchange].axes & placed_axes(f);
    return moved ? 0 : f->node[it->op].place;
}

/* Gives the class of a stage the memory of its fullest place. */
static sc_status fullest(inference *f)
{
    uint32_t n = f->n_places + 1;
    double *held = SC_NEW_N(f->a, double, (size_t)n * f->n_stages);
    if (!held) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < f->prog->n_values; i++) {
        const program_value *v = &f->prog->value[i];
        held[v->stage * n + value_at(f, v)] += v->bytes;
    }
    for (uint32_t i = 0; i < f->prog->n_values; i++) {
        program_value *v = &f->prog->value[i];
        uint32_t at = value_at(f, v), most = 1;
        const double *of = &held[(size_t)v->stage * n];
        for (uint32_t k = 2; k < n; k++)
            if (of[k] > of[most]) most = k;
        if (at && apart(f, &f->place[at - 1], &f->place[most - 1]))
            v->bytes = 0;
    }
    return SC_OK;
}

sc_status infer_side_by_side(inference *f)
{
    bool splits = sc_schedule_splits(f->schedule) ||
                  (f->job->order && f->job->order->splits);
    times t[STREAMS];
    if (!f->n_places || f->rules->exchanges_overlap) return SC_OK;
    for (size_t k = 0; k < SC_COUNT(t); k++) {
        t[k] = (times){SC_NEW_N(f->a, double, (size_t)f->n_places + 1), 0};
        if (!t[k].of) return sc_error_nomem(f->err);
    }
    for (uint32_t i = 0; i < f->prog->n_items; i++) {
        const infer_order *o = &f->order[i], *was = i ? o - 1 : o;
        program_item *it = &f->prog->item[i];
        bool begins = o->stage != was->stage || o->phase != was->phase;
        for (size_t k = 0; begins && k < SC_COUNT(t); k++) join(f, &t[k]);
        visit(f, &t[stream_of(f, it, splits)], it);
    }
    return fullest(f);
}
