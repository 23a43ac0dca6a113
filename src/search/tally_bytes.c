/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally_bytes.c - a tally as bytes: what a checkpoint has, what a part of a
 * search writes, and what ranks send.
 *
 *   counts    evaluated, excluded; reasons: name, points; steps of each bucket
 *   rows      the best; the front; of each value of each axis one or none
 *   row       0 and the row, or the number (from 1) of a row before it that is
 *             the same
 */
#include "search/tally.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- writing -------------------------------------------------------------- */

typedef struct writing {
    const search_tally *t;
    sc_bytes *out;
    sc_arena a; /* of `known` and `row` */
    sc_map known;
    uint32_t n, cap;
    const sc_search_row **row; /* [n] that were written */
    bool failed;
} writing;

static void write_new(const writing *w, const sc_search_row *row)
{
    for (uint32_t i = 0; i < w->t->jobs->n; i++)
        sc_bytes_uint(w->out, row->digit[i]);
    sc_bytes_double(w->out, row->score);
    sc_bytes_double(w->out, row->point.step_s);
    sc_bytes_double(w->out, row->point.peak);
    sc_bytes_double(w->out, row->point.full);
}

static void write_row(writing *w, const sc_search_row *row)
{
    size_t size = w->t->jobs->n * sizeof *row->digit;
    uint64_t hash = sc_hash(row->digit, size, 0);
    uint32_t at = 0, i;
    do i = sc_map_next(&w->known, hash, &at);
    while (i != SC_MAP_END && memcmp(w->row[i]->digit, row->digit, size) != 0);
    sc_bytes_uint(w->out, i == SC_MAP_END ? 0 : i + 1);
    if (i != SC_MAP_END) return;
    write_new(w, row);
    const sc_search_row **all =
        sc_grow(&w->a, w->row, w->n, &w->cap, 64, sizeof(sc_search_row *));
    if (all) w->row = all;
    w->failed = w->failed || !all || !sc_map_add(&w->known, &w->a, hash, w->n);
    if (all) all[w->n++] = row;
}

static void write_counts(const search_tally *t, sc_bytes *out)
{
    sc_bytes_uint(out, t->evaluated);
    sc_bytes_uint(out, t->pruned);
    sc_bytes_uint(out, t->n_reasons);
    for (uint32_t i = 0; i < t->n_reasons; i++) {
        sc_bytes_text(out, t->reason[i].name);
        sc_bytes_uint(out, t->reason[i].n);
    }
    for (uint32_t i = 0; i < SC_SEARCH_BUCKETS; i++)
        sc_bytes_uint(out, t->steps[i]);
}

void search_tally_write(const search_tally *t, sc_bytes *out)
{
    writing w = {.t = t, .out = out};
    sc_arena_init(&w.a, t->a->limit);
    write_counts(t, out);
    sc_bytes_uint(out, t->n_best);
    for (uint32_t i = 0; i < t->n_best; i++) write_row(&w, &t->best[i]);
    sc_bytes_uint(out, t->n_front);
    for (uint32_t i = 0; i < t->n_front; i++) write_row(&w, &t->front[i]);
    for (uint32_t i = 0; i < t->jobs->n; i++)
        for (uint32_t k = 0; k < t->jobs->option[i].axis.n; k++) {
            const sc_search_row *row = &t->per_axis[i][k];
            bool is = row->score < INFINITY;
            sc_bytes_uint(out, is);
            if (is) write_row(&w, row);
        }
    out->failed = out->failed || w.failed;
    sc_arena_free(&w.a);
}

/* ---- reading -------------------------------------------------------------- */

typedef struct reading {
    search_tally *t;
    sc_bytes_in *in;
    sc_arena a; /* of `row` */
    uint32_t n, cap;
    sc_search_row *row; /* [n] that were read */
} reading;

static double read_number(sc_bytes_in *in)
{
    size_t at = in->at;
    double v = sc_bytes_get_double(in);
    if (!(v >= 0 && v < INFINITY)) sc_bytes_reject(in, at);
    return v;
}

static bool read_row(reading *r, sc_search_row *out)
{
    const sc_search_jobs *jobs = r->t->jobs;
    sc_bytes_in *in = r->in;
    uint64_t known = sc_bytes_get_most(in, r->n);
    if (known > 0) {
        *out = r->row[known - 1];
        return true;
    }
    *out = (sc_search_row){.point.fits = true};
    for (uint32_t i = 0; i < jobs->n; i++)
        out->digit[i] =
            (uint32_t)sc_bytes_get_most(in, jobs->option[i].axis.n - 1);
    out->score = read_number(in);
    out->point.step_s = read_number(in);
    out->point.peak = read_number(in);
    out->point.full = read_number(in);
    if (in->bad) return false;
    sc_search_row *all = sc_grow(&r->a, r->row, r->n, &r->cap, 64, sizeof *all);
    if (!all) {
        r->t->failed = true;
        return false;
    }
    r->row = all;
    all[r->n++] = *out;
    return true;
}

static void read_counts(search_tally *t, sc_bytes_in *in, sc_arena *a)
{
    t->evaluated = sc_bytes_get_uint(in);
    t->pruned = sc_bytes_get_uint(in);
    uint64_t n = sc_bytes_get_most(in, SC_SEARCH_REASONS);
    for (uint64_t i = 0; i < n && !in->bad; i++) {
        const char *name = sc_bytes_get_text(in, a);
        search_tally_refuse(t, name, sc_bytes_get_uint(in));
    }
    for (uint32_t i = 0; i < SC_SEARCH_BUCKETS; i++)
        t->steps[i] = sc_bytes_get_uint(in);
}

static bool read_rows(reading *r)
{
    search_tally *t = r->t;
    sc_search_row row;
    uint64_t n = sc_bytes_get_most(r->in, t->top);
    for (uint64_t i = 0; i < n; i++) {
        if (!read_row(r, &row)) return false;
        search_tally_add_best(t, &row);
    }
    n = sc_bytes_get_most(r->in, r->in->n);
    for (uint64_t i = 0; i < n; i++) {
        if (!read_row(r, &row)) return false;
        search_tally_add_front(t, &row);
    }
    for (uint32_t i = 0; i < t->jobs->n; i++)
        for (uint32_t k = 0; k < t->jobs->option[i].axis.n; k++) {
            size_t at = r->in->at;
            if (sc_bytes_get_most(r->in, 1) == 0) continue;
            if (!read_row(r, &row)) return false;
            if (row.digit[i] != k) sc_bytes_reject(r->in, at);
            t->per_axis[i][k] = row;
        }
    return true;
}

bool search_tally_read(search_tally *t, sc_bytes_in *in)
{
    reading r = {.t = t, .in = in};
    search_tally_clear(t);
    sc_arena_init(&r.a, t->a->limit);
    read_counts(t, in, &r.a);
    bool fine = !in->bad && read_rows(&r) && !in->bad && !t->failed;
    sc_arena_free(&r.a);
    return fine;
}
