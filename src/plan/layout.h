/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - layouts of tensors on a mesh, and the collectives that convert one
 * layout to another.
 */
#ifndef PLAN_LAYOUT_H
#define PLAN_LAYOUT_H

#include "coll/coll.h"
#include "plan/plan_strategy.h"

#define LAYOUT_DIMS 10

typedef struct layout {
    sc_axes shard[LAYOUT_DIMS]; /* axes of each dim, outermost first */
    uint32_t partial;           /* bit per axis: values are partial sums */
    uint32_t at; /* the rank, if one rank of some axes holds it unsplit; 0:
                    operators are on different ranks */
} layout;

typedef struct layout_mesh {
    uint32_t n_axes;                   /* at most SC_MESH_AXES */
    uint32_t size[SC_MESH_AXES];       /* per axis; 1 or less: not an axis */
    uint8_t inner_first[SC_MESH_AXES]; /* axes from neighbours outwards */
} layout_mesh;

/* One collective. */
typedef struct layout_move {
    sc_coll coll;
    uint32_t axes;   /* bit per axis of the communicator */
    uint32_t dim;    /* scattered or gathered; else LAYOUT_DIMS */
    uint32_t moved;  /* of an all-to-all: dim that was sharded */
    double fraction; /* of the whole tensor: local bytes V of the collective */
} layout_move;

/* Writes the moves from one layout to another to `out`, at most SC_MESH_AXES,
 * and returns their number. */
uint32_t layout_moves(const layout *from, const layout *to,
                      const layout_mesh *mesh, layout_move *out);

/* The same in an order in which they can run: reductions first, the largest of
 * them first, and gathers last.  V of each follows from the moves before it. */
uint32_t layout_sequence(const layout *from, const layout *to,
                         const layout_mesh *mesh, layout_move *out);

/* Changes a layout by one move on the way to `to`. */
void layout_move_on(layout *l, const layout *to, const layout_move *m);

/* Fraction of the elements on one rank; `dims` has a bit for each dim. */
double layout_fraction(const layout *l, uint32_t dims, const layout_mesh *mesh);

/* Dim that axis `ax` shards; LAYOUT_DIMS if none. */
uint32_t layout_dim_of(const layout *l, uint32_t ax);

bool layout_equal(const layout *a, const layout *b);

#endif
