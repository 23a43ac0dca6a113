/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_shared.c - keeps results that several walks of one program share.  A
 * step is walked with and without a graph, and with all or a few of its
 * micro-batches.  Its items, their order in a pass and the waits between stages
 * are the same in all these walks.
 */
#include "plan/clock.h"

struct sc_net_walks *sc_net_plan_share(sc_arena *a)
{
    return SC_NEW(a, struct sc_net_walks);
}

struct sc_net_walks *lower_shared(const lowering *g)
{
    /* Items have other names if operations or ranks are listed one by one. */
    bool alike = !g->notes && g->job->joined && !g->job->unfold;
    return alike && g->job->ga > 1 ? g->p->shared : NULL;
}

void lower_share(const lowering *g, struct sc_net_walks *x)
{
    x->made = true;
    x->whole = *g->prog;
    x->item = g->item;
    x->root = g->root;
    x->use_head = g->use_head;
    x->use = g->use;
    x->new_weight = g->new_weight;
    x->stage = g->stage;
    x->ahead = g->ahead;
    x->eager = g->eager;
}

void lower_use_shared(lowering *g, const struct sc_net_walks *x)
{
    g->item = x->item;
    g->root = x->root;
    g->use_head = x->use_head;
    g->use = x->use;
    g->new_weight = x->new_weight;
    g->stage = x->stage;
    g->ahead = x->ahead;
    g->eager = x->eager;
    g->p2p_overlaps = g->p2p_overlaps || x->eager;
}
