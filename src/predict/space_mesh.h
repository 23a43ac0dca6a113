/* SPDX-License-Identifier: Apache-2.0 */
/* space_mesh.h - how machine and batch can be divided; used inside the
 * search. */
#ifndef PREDICT_SPACE_MESH_H
#define PREDICT_SPACE_MESH_H

#include "predict/space.h"

/* Limits of usual choices: samples of a micro-batch, stages, chunks of a
 * device, tokens of a sequence on one rank, and the shortest sequence that is
 * divided. */
enum {
    BATCH_USUAL = 64,
    PIPELINE_USUAL = 64,
    CHUNKS_USUAL = 64,
    CONTEXT_USUAL = 4096,
    CONTEXT_LONG = 8192
};

/* Seconds of all layers with the least possible recomputation, shared by
 * meshes with equal kernels. */
typedef struct kernels {
    uint64_t key;
    double seconds; /* 0: unknown */
} kernels;

/* A run without sharding, schedule and recomputation. */
typedef struct mesh {
    sc_run run;
    double bound; /* a lower bound of the step */
    uint32_t at;  /* order of generation, which breaks ties */
} mesh;

typedef struct search_space {
    const sc_job *job;
    sc_law law;
    sc_run base;
    sc_arena *a;
    predict_choice *out;
    bool unusual; /* unusual choices are searched, too */
    bool small;   /* no usual choice fits */
    bool habit;   /* only as many micro-batches as stages */
    predict_memo *memo;
    double beat_s; /* choices that are not faster are useless */
    mesh *mesh;
    uint32_t n, cap;
    kernels *seen;
    uint32_t n_seen, cap_seen;
    sc_err *err, refused; /* error of the first illegal choice */
} search_space;

static inline bool space_has(uint32_t bits, int one)
{
    return bits >> one & 1;
}

/* Lists all open choices in x->mesh, without their bounds; x->refused
 * explains the first illegal one. */
sc_status space_meshes(search_space *x);

/* The run of a job that leaves nothing open, as the search would list it. */
sc_status predict_given(search_space *x, sc_run *out);

#endif
