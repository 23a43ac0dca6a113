/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - declarations shared by the files of the fast sink (clock.c). */
#ifndef PLAN_CLOCK_H
#define PLAN_CLOCK_H

#include "plan/lower.h"

#define CLOCK_RECENT 4 /* operations of a stream that later ones may slow */

typedef struct clock_op {
    sc_time start, end;
    uint32_t dev; /* its first device */
    uint8_t kind, stream, cat;
} clock_op;

/* A stream of a device: the last period in which it is busy without a break. */
typedef struct clock_stream {
    sc_time from, to;
    sc_time kernels;            /* kernel time in that period */
    sc_op recent[CLOCK_RECENT]; /* the last operations, the latest first */
} clock_stream;

typedef struct lower_clock {
    sc_arena *a;
    double slow[2]; /* extra time for each second during which kernels overlap
                       exchanges: [1] of gradients, [0] of other values */
    uint32_t n, cap;
    clock_op *op;              /* [n] */
    clock_stream *stream;      /* [pp][SC_N_STREAMS] */
    sc_time (*cat)[SC_N_CATS]; /* [pp] */
    sc_time last;              /* end of the last operation */
    bool failed;               /* out of memory */

    bool open; /* waits may still be added to the last operation, which has
                  the following devices and work */
    uint32_t n_dev;
    uint32_t *dev; /* [n_dev] */
    sc_time work;
    const sc_parts *parts; /* NULL: it has one part */
    sc_op cause;

    uint32_t *left; /* [rows] number of slots of a micro-batch that are not
                       done; SC_NONE: the row is never reused */
    bool *issued;   /* [rows] some slot of the micro-batch was issued */
    uint32_t n_spare;
    sc_op **spare; /* [n_spare] rows that can be used again */

    uint32_t n_lives;
    const sc_lifetime *life; /* [n_lives] of one micro-batch; its operations are
                                numbers of items */

    /* clock_slots.c */
    uint32_t n_issued;        /* slots that were issued and not looked up */
    struct clock_kind *kinds; /* [n_inst][4] by the passes of a slot */
    struct clock_kind *now; /* kind of the slot being issued; NULL: the slot is
                               not kept */
    uint32_t n_key, cap_key;
    sc_time *key;
    bool overlapped; /* an exchange overlapped kernels since the slot began */
    sc_time begun, before[SC_N_CATS], was[SC_N_STREAMS];
    bool *read;      /* [n_items] another slot reads the item's result */
    uint32_t *named; /* [n_items] `stamp` of the last kind that listed it */
    uint32_t *at;    /* [n_items] the item's place in that list */
    uint32_t stamp;
} lower_clock;

static inline clock_stream *clock_stream_of(const lower_clock *c, uint32_t dev,
                                            uint32_t stream)
{
    return &c->stream[dev * SC_N_STREAMS + stream];
}

sc_op clock_new(lower_clock *c, const clock_op *op);
/* Adds an operation of item `t`; `d` has its devices and category. */
sc_op clock_add(lower_clock *c, const lower_item *t, const sc_op_desc *d);
void clock_after(lower_clock *c, sc_op before, sc_op after);
void clock_close(lower_clock *c);
/* Whether no exchange that slows kernels is running on a device when its last
 * kernel ends. */
bool clock_is_quiet(const lower_clock *c, uint32_t dev);

/* Allocates a row for a micro-batch before its first slot, and frees it after
 * its last one. */
sc_status clock_row(lowering *g, uint32_t mb);
void clock_row_done(lowering *g, uint32_t mb);

/* Fills g->clock->life with the lifetimes of one micro-batch. */
sc_status clock_lifetimes(lowering *g);
sc_status clock_memory(lowering *g, sc_net_clock *out);

/* Known slots come from earlier walks of the same program and are kept for
 * later ones. */
sc_status clock_slots_new(const lowering *g, lower_clock *c);
void clock_slots_share(const lowering *g, const lower_clock *c);
/* If the slot is known, it is applied and `*known` is set.  Else the caller
 * issues its operations and calls clock_slot_end(). */
sc_status clock_slot_begin(lowering *g, const lower_slot *s, bool *known);
sc_status clock_slot_end(lowering *g, const lower_slot *s);
/* Empties a row whose slots were all looked up. */
void clock_slots_clear(const lowering *g, sc_op *row);

#endif
