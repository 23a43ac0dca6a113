/* SPDX-License-Identifier: Apache-2.0 */
/* fast_scene.h - a pass that runs layer by layer, and what is kept of it. */
#ifndef PREDICT_FAST_SCENE_H
#define PREDICT_FAST_SCENE_H

#include "predict/fast.h"

/* The state while a layer runs. */
typedef struct fast_scene {
    fast_engine *x;
    fast_device *d;
    const fast_chunk *l;
    double t;                          /* the compute stream's clock */
    double lost;                       /* seconds by which kernels were
                                        * slowed */
    uint32_t n_ready;                  /* layers that can be prefetched at a
                                        * time */
    double ready[SC_PREFETCH_MAX + 1]; /* [n_ready] arrival of their weights */
    bool last;                         /* this is the last micro-batch */
    double done;                       /* seconds of the layer that have run,
                                        * without what others cost it */
    uint32_t n_contenders;             /* exchanges of the layer that follow */
    const sc_contender *contender;     /* [n_contenders] */
    const double *most_use;            /* by sc_scope, of all of the layer */
} fast_scene;

/* Rates are compared as seconds are. */
#define FAST_RATE 1e-12

/* A pass in progress. */
typedef struct fast_walk {
    bool bwd, gets, sends;
    uint32_t n, next; /* number of layers; the first one not prefetched yet */
    bool known;       /* `was` is the state after the previous layer, at `t` */
    double lost;      /* seconds lost up to `t` */
    double t, was[FAST_VIEW + 2 * (SC_PREFETCH_MAX + 1)];
} fast_walk;

/* The end of the layer after which the weights of the layer `ahead` layers
 * later are gathered. */
static inline double fast_gate(const fast_device *d, uint32_t depth,
                               uint32_t ahead)
{
    uint64_t back = 1 + depth - ahead;
    return back > d->n ? 0 : d->end[(d->n - back) % SC_COUNT(d->end)];
}

/* Seconds by which equal states may differ: half a picosecond. */
#define FAST_SAME 5e-13

/* Numbers of a queue in a state relative to the time `t`: its end, and what
 * matters while it is in use.  Ends before `past`, relative to `t`, are alike. */
enum { FAST_QUEUE_VIEW = 4 };

double *fast_queue_view(const fast_queue *q, double t, double past, double *v);

/* Whether two states are equal. */
bool fast_same_view(const double *a, const double *b, uint32_t n);

/* What the rest of a pass depends on, relative to its start [FAST_VIEW + 2 *
 * fast_gates()].  What ended before does not matter, unless a gather can still
 * start before. */
uint32_t fast_rest(const fast_scene *s, const fast_walk *w, double *v);
/* Keeps what a pass has changed since `was`, and the last `n_ends` ends of
 * layers; times are relative to its start. */
void fast_keep_changes(const fast_device *was, fast_device *d, double start,
                       uint32_t n_ends, fast_seen *to);
void fast_repeat_changes(const fast_seen *of, double start, uint32_t n_ends,
                         fast_device *d);

#endif
