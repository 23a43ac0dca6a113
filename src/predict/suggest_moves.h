/* SPDX-License-Identifier: Apache-2.0 */
/* suggest_moves.h - changes of one choice of a run; used by suggestions. */
#ifndef PREDICT_SUGGEST_MOVES_H
#define PREDICT_SUGGEST_MOVES_H

#include "predict/internal.h"

typedef enum suggest_choice {
    M_TP,
    M_PP,
    M_CP,
    M_BATCH,
    M_RECOMPUTE,
    M_ZERO,
    M_CHUNKS,
    M_SP,
    M_SCHEDULE
} suggest_choice;

typedef struct suggest_move {
    suggest_choice what;
    int to; /* degrees and the micro-batch: -1 halves, 1 doubles, 2
             * quadruples */
} suggest_move;

enum { SUGGEST_MOVES = 26 };

extern const suggest_move suggest_moves[SUGGEST_MOVES];

/* Whether the user set what a move changes. */
bool suggest_said(const sc_job *j, suggest_choice what);
/* Whether a job gives what the search of `predict` chooses first; whether it
 * leaves any choice open. */
bool suggest_divided(const sc_job *j);
bool suggest_open(const sc_job *j);
/* False: the run has that choice already, or can't have it. */
bool suggest_change(sc_run *r, suggest_move m);
/* Adjusts the choices that depend on a changed one; false: the run is not
 * legal. */
bool suggest_resolve(sc_run *r, bool chunks);
/* The job with the changed choices, and without options that no longer
 * apply. */
sc_job suggest_job(const sc_job *job, const sc_run *from, const sc_run *to,
                   bool chunks, bool schedule);

#endif
