/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_saved.h - how far a search is, as a file: a checkpoint from which it
 * goes on, or what one of several parts has found.
 *
 *   file   magic, version, identity (text), part, parts, bytes and rows of the
 *          log of rows, searches; seal
 *   search hash of its space, tasks that are done, tasks, bytes of the tally,
 *          the tally
 *
 * Numbers are those of base/bytes.h.
 */
#ifndef SEARCH_SAVED_H
#define SEARCH_SAVED_H

#include "search/search.h"

/* One sc_search_run(). */
typedef struct sc_search_saved_run {
    uint64_t space; /* hash of axes and options */
    uint32_t done, tasks;
    sc_bytes tally;
} sc_search_saved_run;

typedef struct sc_search_saved {
    const char *file;         /* it was read from; NULL: a new search */
    const char *identity;     /* lines: all that the result depends on */
    uint32_t shard, shards;   /* part 1 .. `shards` */
    uint64_t kept, kept_rows; /* bytes and rows of its log */
    uint32_t n, cap;
    uint32_t next; /* the run that begins next */
    sc_arena *a;
    sc_search_saved_run *run; /* [n] in their order */
} sc_search_saved;

void sc_search_saved_init(sc_search_saved *s, const char *identity,
                          sc_arena *a);
void sc_search_saved_free(sc_search_saved *s);

/* Whether all that it began is done. */
bool sc_search_saved_done(const sc_search_saved *s);

void sc_search_saved_write(const sc_search_saved *s, sc_bytes *out);
/* SC_EINPUT at the byte. Texts are in `a`; `out` needs sc_search_saved_free()
 * if it is read. */
sc_status sc_search_saved_read(const void *data, size_t len, const char *file,
                               sc_arena *a, sc_search_saved *out, sc_err *err);
/* SC_EINPUT: it is of a search with another identity, and the first line that
 * differs. */
sc_status sc_search_saved_check(const sc_search_saved *s, const char *identity,
                                sc_err *err);

/* Joins parts 1 .. n of a search, in any order, to what the whole search would
 * have saved.  SC_EINPUT: one is missing, not done, or there twice. */
sc_status sc_search_saved_join(const sc_search_jobs *jobs,
                               const sc_search_options *o,
                               const sc_search_saved *part, uint32_t n,
                               sc_arena *a, sc_search_saved *out, sc_err *err);

#endif
