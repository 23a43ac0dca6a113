/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - shared by the files that run a search. */
#ifndef SEARCH_RUN_H
#define SEARCH_RUN_H

#include "search/search_saved.h"
#include "search/worker.h"

#include <pthread.h>

/* Tasks of the first rounds and of the last ones. */
enum { ROUND = 64, ROUND_MOST = 512 };

typedef struct search {
    const sc_search_jobs *jobs;
    const sc_search_options *o; /* as they were given */
    sc_search_options own;      /* with a stop of its own, for workers */
    sc_arena *a;
    uint32_t n_tasks, cap_tasks;
    uint32_t *digits; /* [n_tasks * n_mesh] */
    uint32_t from;    /* tasks that were done at the start */
    double bound;
    search_tally all;
    search_tally *tally; /* [ROUND_MOST] of the tasks of a round */
    uint32_t n_tally;    /* that have memory */
    uint32_t first, n;   /* tasks of the round */
    atomic_uint next;
    atomic_bool stopped, interrupted;
    sc_search_saved_run *saved; /* NULL: nothing is saved */
    pthread_mutex_t talks;      /* of a rank: who sends and receives */
    bool over;                  /* of a rank: no more tasks in the round */
} search;

typedef struct search_thread {
    search *x;
    bool tells; /* how far the search is */
    search_worker w;
    search_tally remote; /* of a task of another rank */
} search_thread;

/* Lists the tasks of the search, or of its part, the most promising first. */
sc_status search_tasks(search *x, sc_err *err);

/* What sc_search_saved has to agree on. */
uint64_t search_hash(const sc_search_jobs *jobs, const sc_search_options *o);

void search_tell(const search *x, uint32_t done);

/* ---- ranks ---------------------------------------------------------------- */

/* Whether tasks come from another rank. */
bool search_is_remote(const search *x);
/* Of such a rank: a thread that evaluates tasks until the round is over, and
 * what the rank does when all its threads have ended. */
void *search_remote_work(void *thread);
sc_status search_remote_leave(search *x, sc_err *err);
/* Of rank 0: hands out tasks and takes their results until all other ranks have
 * left the round. */
sc_status search_ranks_serve(search *x, sc_err *err);
/* Of all ranks: takes over state and status of rank 0. */
sc_status search_ranks_share(search *x, sc_status s, sc_err *err);

#endif
