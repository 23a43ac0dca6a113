/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - which ranks of the world a communicator joins.
 *
 * A program says how many there are and which of them it is, no more; the
 * others, who would say who they are, are absent.  Programs cut their world
 * along the axes of a mesh, so that members are first + i * stride, where
 * n * stride divides the world and its blocks are aligned.  Often only one
 * stride puts this rank at its place.  Where several do, those that share no
 * other rank with an earlier communicator come first (axes of a mesh are
 * orthogonal), then the smallest, and the program's user is told.
 */
#ifndef NCCL_MEMBER_H
#define NCCL_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct member_run {
    uint32_t first, stride, n;
} member_run;

#define MEMBER_CHOICES 64

/* Strides that put world rank r at place p of n members, smallest first. */
uint32_t member_strides(uint32_t world, uint32_t r, uint32_t n, uint32_t p,
                        uint32_t out[MEMBER_CHOICES]);

typedef struct member_at {
    uint32_t place, rank;
} member_at;

typedef struct member_facts {
    uint32_t world, rank; /* of this process */
    uint32_t n, place;
    const member_run *known; /* earlier communicators */
    uint32_t n_known;
    const char *wish; /* the user's list "SIZE:STRIDE,...", of which the `nth`
                         entry of this size counts (the last one for all that
                         follow); NULL: none */
    uint32_t nth;
    const member_at *at; /* other real ranks that are known to be in it */
    uint32_t n_at;
    const uint32_t *real; /* all real ranks; NULL: not asked */
    uint32_t n_real;
    bool all_came; /* a real rank that is not in `at` is not in it */
} member_facts;

/* The choice among them: *sure where there is only one.  Stride 0: none fits;
 * then members are rank - place + i, modulo the world. */
member_run member_choose(const member_facts *f, bool *sure);

/* PyTorch's colour for a split is a hash of the list of ranks (`rank` [n]: that
 * of a place in the parent; NULL: the same): the run with place p that has it.
 * False: none. */
bool member_of_color(uint32_t n, uint32_t p, const uint32_t *rank, int color,
                     member_run *out);
bool member_has_color(const member_run *m, const uint32_t *rank, int color);

/* A split of n ranks by place / k or place % k: the one that gives colour c to
 * place p, *sure where it is the only one.  Places in the parent. */
bool member_of_split(uint32_t n, uint32_t p, int color, member_run *out,
                     bool *sure);

#endif
