/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.h - internals of net_flow.h: flows by slot, links with the flows that
 * cross them, and the state of one solve.
 *
 * A level is a rate per unit of weight, bytes/ps.  All flows that one link limits
 * have the level of that link.
 */
#ifndef NET_FLOW_H
#define NET_FLOW_H

#include "net/due.h"
#include "net/net_flow.h"

/* Values of `level` of flows that have no level. */
#define FLOW_OPEN (-1.0) /* part of the solve, not limited yet */
#define FLOW_GONE (-2.0) /* ended, but still listed by its links */
#define FLOW_NEW \
    1e300 /* has no rate yet: above every level.  Links: not full */

typedef struct net_share {
    double level, weight;
} net_share;

typedef struct net_left {
    double bytes; /* bytes that remain from `since` on */
    sc_time since;
} net_left;

typedef enum net_state {
    NET_FREE,
    NET_WAITS, /* for its latency */
    NET_MOVES,
    NET_EMPTY /* ends when its latency is over, as it has no bytes */
} net_state;

typedef struct net_path {
    const uint32_t *link;
    const double *share; /* NULL: 1 each */
    uint32_t n;
    net_state state;
} net_path;

typedef struct net_link {
    double bw;   /* bytes/ps */
    double fill; /* the level of the flows that it limits, or FLOW_NEW */
    /* Set by a solve for a link that it opens: */
    double was;    /* `fill` before it */
    double left;   /* bandwidth that is left for its open flows ... */
    double weight; /* ... the sum of their weights ... */
    uint32_t open; /* ... and number */
    uint32_t posted;
    uint32_t *flow; /* [n] moving flows; before a solve also some that have
                       ended */
    double *share;  /* [n] for each flow; NULL: all are 1 */
    uint32_t n, cap;
    bool seed;   /* it is in the list of links where something changed */
    bool grew;   /* a flow was added since the last solve */
    bool opened; /* in the solve */
} net_link;

/* An event at a level: a link is full, or a flow reaches its old level. A link
 * may become full at a later level, because flows that are limited elsewhere
 * leave it more. */
typedef struct net_step {
    double level;
    uint32_t id;
} net_step;

typedef struct net_heap {
    net_step *at;
    uint32_t n;
} net_heap;

struct sc_flows {
    sc_arena *a;
    sc_time now;
    net_share *share; /* [cap] flows by slot */
    net_left *left;
    net_path *path;
    uint64_t *tag; /* for a free slot: the next free slot */
    net_due due;
    uint32_t cap, used, free;

    net_link *link; /* [n_links] */
    uint32_t n_links, link_cap;

    /* Changes since the last solve: */
    uint32_t *seed; /* [n_seeds] links, room for all */
    uint32_t *gone; /* [n_gone] slots, room for `cap` */
    uint32_t n_seeds, n_gone;
    double cut; /* flows below this level are not affected by the changes */

    /* In a solve. */
    uint32_t *open;   /* [n_open] slots of flows that were opened */
    double *before;   /* [cap] their level before the solve, or FLOW_NEW */
    uint32_t *solve;  /* [cap] number of the solve that last opened a flow */
    uint32_t *opened; /* [n_opened] links */
    net_heap links;   /* opened links; has room for all */
    net_heap flows;   /* open flows on links that are not open; has room for
                         all */
    uint32_t n_open, n_opened, n_solves;
    uint32_t n_moving; /* flows */
    uint32_t at_once;  /* number of following solves that open all reachable
                          flows first */

    sc_flow_end *end; /* [n_ends], room for all */
    uint32_t *found;  /* [cap] */
    uint32_t n_ends;
    uint64_t rated;
    bool solve_all; /* for tests: every solve computes all rates */
    bool failed;    /* out of memory */
};

/* For assertions: no link of the last solve exceeds its capacity. */
bool flow_fits(const sc_flows *x);

/* Brings all rates and due times up to date. */
void flow_solve(sc_flows *x);

#endif
