/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.h - composes the step from segments by the schedule's recurrence.
 *
 * fast.c: the end of the step, and the whole result
 * fast_order.c: the passes of a schedule in an order that respects waits
 * fast_period.c: where that order repeats, and what then need not be run
 * fast_sweep.c: the clocks of all devices along that order
 * fast_chunk.c: quantities that all passes of a chunk of layers share
 * fast_queue.c: exchanges that share links
 * fast_pass.c: a slot, which is a pass of a chunk's layers overlapped with
 * exchanges of weights and gradients
 * fast_seen.c: passes that are already computed
 */
#ifndef PREDICT_FAST_H
#define PREDICT_FAST_H

#include "predict/internal.h"

/* ---- order ---------------------------------------------------------------- */

/* Places without a pass: the start of the step, and ends that no pass waits
 * for. */
enum { FAST_START, FAST_NOWHERE, FAST_PLACES };

/* The first forward pass of a chunk, the last pass that computes its gradients,
 * and a pass whose result is sent to another device. */
enum { FAST_FIRST = 1, FAST_LAST = 2, FAST_SENDS = 4 };

typedef struct fast_slot {
    uint32_t in, out;  /* places of the end that it waits for, and of its own */
    uint32_t chunk;    /* over all devices */
    uint8_t pass, how; /* sc_pass; FAST_FIRST ... */
} fast_slot;

/* The passes of all devices, each after the one that it waits for. */
typedef struct fast_order {
    uint32_t n, n_places, n_stages;
    fast_slot *slot;  /* [n] */
    uint32_t *stage;  /* [chunks] virtual stage */
    uint32_t *device; /* [chunks] */
    /* The slots [from, to) repeat with this period, in slots; 0: they do not
     * (fast_period.c). */
    uint32_t period, from, to;
    /* slots after the beginning of a period that wait for passes before it; all
     * are less than `ahead` */
    uint32_t n_live, ahead;
    uint32_t *live; /* [n_live] */
} fast_order;

/* Equal for runs with the same order. */
uint64_t fast_order_key(const sc_run *r);
/* The order of a run's schedule.  It lives in `kept` until the next call; with
 * NULL, in `a`. */
sc_status fast_order_of(const sc_run *r, predict_orders *kept, sc_arena *a,
                        const fast_order **out, sc_err *err);

/* ---- the engine ------------------------------------------------------------ */

/* A queue of exchanges of one kind, which run one after another. */
typedef struct fast_queue {
    double end;
    double use[2]; /* by sc_scope: fraction of links that it uses when alone */
    double rate;   /* bytes/s when alone */
} fast_queue;

/* A time in which exchanges share links: for those of a queue, the first `both`
 * seconds of transfer after `from` take `longer` times as long. */
typedef struct fast_stretch {
    double from, both, longer;
} fast_stretch;

/* Whether an exchange with this use and a queue together need more than links
 * have. */
static inline bool fast_conflict(const double use[2], const fast_queue *queue)
{
    return use[0] + queue->use[0] > 1 || use[1] + queue->use[1] > 1;
}

/* The end of an exchange in a queue that would end at `t`. */
double fast_stretched(const fast_stretch *s, double t);
/* Seconds that an exchange which begins at `at` loses to a queue.  Sets how
 * those in the queue are stretched. */
double fast_loses(const sc_contender *own, const fast_queue *other, double at,
                  fast_stretch *out);
/* The same, and those in the queue end later. */
double fast_beside(fast_queue *queue, const sc_contender *own, double at);
/* Appends an exchange to a queue; it starts at `from` at the earliest.  It
 * shares links with the other queue, whose stretch is returned. */
fast_stretch fast_adds(fast_queue *own, fast_queue *other, double from,
                       const sc_contender *load);

/* The state of a device. */
typedef struct fast_device {
    fast_queue gathers, grads;
    uint64_t n; /* layers whose weights have been gathered */
    double end[SC_PREFETCH_MAX + 2];
    double left[2];   /* when each gradient buffer is free */
    bool next_buffer; /* the next buffer to fill */
} fast_device;

/* A virtual stage on one of its devices. */
typedef struct fast_chunk {
    const sc_segment **layer; /* [n] */
    uint8_t *kind;            /* [n] sc_layer_kind */
    bool *root;               /* [n] exchanged together as the root unit */
    sc_exchange *update;      /* for the parameters of all layers */
    /* [n] by direction, in the order of a pass: gathers of weights; NULL: none
     * are sharded */
    sc_contender *gathers[2];
    uint32_t like;     /* the first chunk with the same layers */
    uint32_t seen;     /* number of chunks before that one that are like
                               * no other before them */
    uint8_t receives;  /* bits: its forward and its backward pass wait
                               * for a transfer of another device */
    uint32_t n, n_bwd; /* layers; the last of them that have a
                               * backward pass */
    /* by direction, seconds beyond the layers: gathers of a transfer that
     * arrives in parts, and waits for links that transfers use */
    double join[2], shared[2];
    double f, b; /* seconds of a pass without any overlap */
    double w;    /* part of b that computes weight gradients */
    double fwd_host, x_host, w_host; /* host time after each kind of pass */
    double copies, fwd_copies; /* parts of x_host and fwd_host: waits for copies
                                * from another memory */
    bool alike_f, alike_b; /* all layers gather weights for that pass, or none
                            * does */
} fast_chunk;

/* A gradient exchange with its price. */
typedef struct fast_price {
    sc_gradient of;
    sc_contender load;
} fast_price;

enum { FAST_PRICES = 64 };

/* Numbers in a device's state, besides one for each layer that can let
 * weights be prefetched. */
enum { FAST_VIEW = 10 };

/* A pass that has been computed, with what it depends on and what it changes
 * in its device. */
typedef struct fast_seen {
    bool known, next_buffer;
    uint32_t next;    /* the entry that is replaced next */
    uint32_t changed; /* bits of the numbers in `after` that change */
    uint64_t n_ends;  /* ends that it appends */
    double seconds, lost;
    double *before; /* [FAST_VIEW + 2 * fast_gates()] */
    double *after;  /* [FAST_VIEW + fast_gates()] */
} fast_seen;

/* Number of computed passes that are kept per pass of a chunk. */
enum { FAST_SEEN = 16 };

typedef struct fast_engine {
    const sc_plan *p;
    const sc_segment *segments;
    double sigma;        /* extra time per overlapped time */
    uint32_t chunks;     /* per device */
    fast_chunk *chunk;   /* [pp * chunks] */
    sc_step_costs *c;    /* [pp] */
    fast_device *device; /* [pp] */
    bool stays_gathered; /* sc_run_stays_gathered() */
    bool shards;         /* weights are gathered and gradients reduced in
                          * each pass */
    bool each;           /* gradients are exchanged after each micro-batch */
    bool overlaps;       /* overlapped with kernels */
    bool units;          /* each layer separately */
    double full;         /* else in buckets of this many bytes; 0: no buckets */
    double gathered;     /* bytes of a bucket of updated weights */
    bool gathers;        /* gathering weights overlaps the first forward pass */
    double long_ago;     /* an end this many seconds ago has no effect */
    fast_seen
        *seen; /* [different chunks * SC_N_PASSES * 2 * FAST_SEEN], by chunk,
                          * pass, and whether it is the last; NULL: none */
    uint32_t n_prices;
    fast_price *price; /* [FAST_PRICES], of which n_prices are known */
    double lost; /* seconds by which exchanges slowed the kernels of the last
                  * pass, with casts and compression */
    double (*cat)[SC_N_CATS]; /* [pp] seconds; NULL: not needed */
    double *at;               /* [pp] clock of each device */
    double limit_s; /* passes are not run on once a device can't end earlier */
    double late_s;  /* its least end in that case; else 0 */
    sc_status status; /* of the prices */
    sc_err *err;      /* the reason for `status` */
} fast_engine;

/* The engine of a run; it lives in `a`, and reads `of`. */
sc_status fast_engine_of(const predict_shape *of, sc_arena *a,
                         fast_engine **out, sc_err *err);
/* The same for what its passes need.  `like`: that of the same run with another
 * end of the step; NULL: there is none. */
sc_status fast_engine_passes(const predict_shape *of, const fast_engine *like,
                             sc_arena *a, fast_engine **out, sc_err *err);

/* Ends the passes of an engine once its step can't be shorter than this. */
void fast_engine_limit(fast_engine *x, double beat_s);

/* Runs that are composed together. */
enum { FAST_LANES = 8 };

/* ---- the end of the step -------------------------------------------------- */

/* Of a group of equal devices (predict_like_next()): when the last of them has
 * run its passes, and when the last exchange of gradients beside them ends. */
typedef struct fast_reach {
    double passes, grads;
} fast_reach;

/* What each device of a group does after its passes, seconds. */
typedef struct fast_last {
    double sums;     /* exchanges of gradients that no kernel overlaps */
    double out;      /* copies of gradients to the host */
    double after;    /* what follows the exchanges of all devices */
    double tied;     /* exchange between the first and the last device */
    double dualpipe; /* exchange between two copies of a stage */
} fast_last;

/* Runs the passes of `n` runs with the same order, at most FAST_LANES. Of an
 * engine that is late nothing else is known. */
sc_status fast_passes(fast_engine *const *x, uint32_t n, predict_orders *orders,
                      sc_arena *a, sc_err *err);
/* The groups of a run after its passes; returns their number.  `out` has room
 * for all devices. */
uint32_t fast_reaches(const fast_engine *x, fast_reach *out);
fast_last fast_last_of(const sc_step_costs *c);
/* The end of exchanges of all devices, and the seconds that follow it. */
void fast_finish(const fast_reach *g, const fast_last *last, uint32_t n,
                 double *exchanged, double *after);
/* The step of a run, in whole picoseconds but for its fixed part. */
double fast_step(const sc_run *r, double exchanged, double after,
                 double fixed_s);

/* Sets the clocks `at` of `n` runs with the same order, at most FAST_LANES. */
sc_status fast_sweep(fast_engine *const *x, uint32_t n, const fast_order *o,
                     sc_arena *a, sc_err *err);

/* Prepares the chunks and what all passes share. */
sc_status fast_open(fast_engine *x, sc_arena *a, sc_err *err);

/* Seconds of a pass of chunk `c` (numbered over all devices) that begins at
 * `start`. `first` and `last` mark the first and last of its kind. Sets
 * x->lost. */
double fast_pass(fast_engine *x, uint32_t dev, uint32_t c, sc_pass pass,
                 bool first, bool last, double start);
/* Seconds of a transfer to another stage that begins at `at`, together with
 * the device's exchanges. */
double fast_send(fast_engine *x, uint32_t dev, double at);
/* Adds a pass of `seconds` to the device's categories. */
void fast_charge(fast_engine *x, uint32_t dev, uint32_t c, sc_pass pass,
                 double seconds);

static inline sc_contender fast_load_of(const sc_exchange *x)
{
    return sc_contender_of(x->seconds, x->latency, x->link_s, x->bytes);
}

/* The index in a chunk of the k-th layer that a pass runs. */
static inline uint32_t fast_place(const fast_chunk *l, bool bwd, uint32_t k)
{
    return bwd ? l->n - 1 - k : k;
}

static inline const sc_segment *fast_layer(const fast_chunk *l, bool bwd,
                                           uint32_t k)
{
    return l->layer[fast_place(l, bwd, k)];
}

/* Number of layer ends that a pass needs: prefetches wait for them. */
static inline uint32_t fast_gates(const fast_engine *x)
{
    return x->shards ? 1 + (uint32_t)x->p->run.sw->prefetch : 0;
}

static inline bool fast_makes_gradients(sc_pass pass)
{
    return pass == SC_BWD || pass == SC_BWD_W;
}

/* Seconds that the host and copies to it add to a pass. */
static inline double fast_host(const fast_chunk *l, sc_pass pass)
{
    return pass == SC_FWD     ? l->fwd_host
           : pass == SC_BWD   ? l->x_host + l->w_host
           : pass == SC_BWD_X ? l->x_host
                              : l->w_host;
}

/* The direction of a pass that receives a transfer. */
static inline double fast_of(const double by[2], sc_pass pass)
{
    return pass == SC_BWD_W ? 0 : by[pass != SC_FWD];
}

static inline double fast_larger(double x, double y)
{
    return x > y ? x : y;
}

#endif
