/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memoryfit.c - refits the numbers of profiles that measured memory has set.
 *
 * They are refitted on the rows that are not left out: stage_reserve on a grid,
 * to which predicted memory is linear, for each ahead_tp, by the mean error;
 * and idle_stages as the part of its runs that did not fail.
 */
#include "calib/memoryfit.h"

#include "calib/heldout.h"
#include "calib/row.h"
#include "plan/plan_schedule.h"

#include <math.h>
#include <string.h>

/* Sizes of tensor parallelism for ahead_tp, and steps of stage_reserve. */
static const int64_t ahead[] = {0, 8, 16, 1 << 20};

enum { N_AHEAD = SC_COUNT(ahead), STEPS = 31 };

static const double step = 0.01;

typedef struct memory_study {
    const calib_run *run;
    const sc_valid_row *rows;
    uint32_t n;
    calib_label label;
    const char *name;
    const sc_validate_opts *o;
    sc_cost cost;
    sc_arena *a, scratch;
} memory_study;

static bool left_out(const memory_study *s, uint32_t i)
{
    return strcmp(s->label(&s->rows[i]), s->name) == 0;
}

/* A run with a copy of its program's profile. */
static sc_status own_profile(const memory_study *s, uint32_t i, calib_run *run,
                             sc_software *sw, sc_err *err)
{
    const sc_software *of = s->run[i].sw;
    if (s->run[i].job.zero == 1 && of->zero1)
        SC_TRY(
            sc_software_find(of->zero1, NULL, s->run[i].pos, s->a, &of, err));
    *run = s->run[i];
    *sw = *of;
    sw->zero1 = NULL;
    run->sw = sw;
    return SC_OK;
}

static bool has_numbers(const calib_run *run)
{
    return !run->reason && run->sw && run->sw->stage_reserve > 0;
}

static sc_status memory_of(memory_study *s, calib_run *run, double *out,
                           sc_run *choice, sc_err *err)
{
    sc_valid_row row;
    sc_arena_reset(&s->scratch);
    SC_TRY(calib_row_predict(run, &s->cost, s->o->engine, s->a, &s->scratch,
                             &row, (calib_row_also){.choice = choice}, err));
    *out = row.reason ? NAN : row.mem_predicted;
    return SC_OK;
}

/* Adds a row's error for each value of stage_reserve. */
static sc_status add_row(memory_study *s, uint32_t i, int64_t ahead_tp,
                         double sum[STEPS], sc_err *err)
{
    calib_run run;
    sc_software sw;
    double none, all;
    SC_TRY(own_profile(s, i, &run, &sw, err));
    sw.ahead_tp = ahead_tp;
    sw.stage_reserve = 0;
    SC_TRY(memory_of(s, &run, &none, NULL, err));
    sw.stage_reserve = 1;
    SC_TRY(memory_of(s, &run, &all, NULL, err));
    for (int k = 0; k < STEPS && isfinite(none + all); k++) {
        double m = none + k * step * (all - none);
        sum[k] += fabs(m / s->rows[i].mem_measured - 1);
    }
    return SC_OK;
}

/* The part of the rows with stages behind the loss that ran; 1: no rows. */
static sc_status idle_of(memory_study *s, double *out, sc_err *err)
{
    double ran = 0, all = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        sc_run choice = {0};
        calib_run run = s->run[i];
        double mem;
        if (left_out(s, i) || !s->rows[i].outcome || !has_numbers(&run))
            continue;
        SC_TRY(memory_of(s, &run, &mem, &choice, err));
        if (!choice.sw || sc_run_idle_stages(&choice) == 0) continue;
        ran += s->rows[i].outcome == CALIB_RAN;
        all++;
    }
    *out = all > 0 ? ran / all : 1;
    return SC_OK;
}

/* Fits the numbers to the rows that are not left out, into `best`. Sets
 * `*found` if there are any. */
static sc_status refit(memory_study *s, sc_software *best, bool *found,
                       sc_err *err)
{
    double least = INFINITY;
    *found = false;
    for (int t = 0; t < N_AHEAD; t++) {
        double sum[STEPS] = {0};
        for (uint32_t i = 0; i < s->n; i++) {
            const sc_valid_row *r = &s->rows[i];
            if (left_out(s, i) || !r->counted || !isfinite(r->mem_measured) ||
                !has_numbers(&s->run[i]))
                continue;
            *found = true;
            SC_TRY(add_row(s, i, ahead[t], sum, err));
        }
        for (int k = 0; k < STEPS && *found; k++) {
            if (sum[k] >= least) continue;
            least = sum[k];
            best->stage_reserve = k * step;
            best->ahead_tp = ahead[t];
        }
    }
    return *found ? idle_of(s, &best->idle_stages, err) : SC_OK;
}

/* The profile of a row that is left out: with the numbers of other rows, or
 * without any that its rows have set. */
static sc_status held_profile(const memory_study *s, uint32_t i,
                              const sc_software *best, calib_run *run,
                              sc_software *sw, sc_err *err)
{
    *run = s->run[i];
    if (!best || !has_numbers(run))
        return sc_software_unread(run->sw, s->a, &run->sw, err);
    SC_TRY(own_profile(s, i, run, sw, err));
    sw->stage_reserve = best->stage_reserve;
    sw->ahead_tp = best->ahead_tp;
    sw->idle_stages = best->idle_stages;
    return SC_OK;
}

static sc_status predict_again(memory_study *s, const sc_software *best,
                               sc_valid_row *rows, sc_err *err)
{
    for (uint32_t i = 0; i < s->n; i++) {
        sc_valid_row *r = &rows[i], held;
        calib_run run;
        sc_software sw;
        if (s->run[i].reason || !left_out(s, i)) continue;
        if (!isfinite(r->mem_measured) && !r->outcome) continue;
        SC_TRY(held_profile(s, i, best, &run, &sw, err));
        sc_arena_reset(&s->scratch);
        SC_TRY(calib_row_predict(&run, &s->cost, s->o->engine, s->a,
                                 &s->scratch, &held, (calib_row_also){0}, err));
        r->mem_predicted = held.mem_predicted;
        r->fits = held.fits;
        r->fits_probability = held.fits_probability;
    }
    return SC_OK;
}

/* The interval of the rows that are not left out. */
static sc_status others_interval(memory_study *s, sc_err *err)
{
    sc_valid_row *kept = SC_NEW_N(s->a, sc_valid_row, (size_t)s->n + 1);
    uint32_t m = 0;
    if (!kept) return sc_error_nomem(err);
    for (uint32_t i = 0; i < s->n; i++)
        if (!left_out(s, i)) kept[m++] = s->rows[i];
    return calib_memory_interval(kept, m, s->a, &s->cost.held.memory, err);
}

sc_status calib_memory_without(const calib_run *run, uint32_t n,
                               calib_label label, const char *name,
                               const sc_validate_opts *o, const sc_cost *cost,
                               sc_arena *a, sc_valid_row *rows, sc_err *err)
{
    memory_study s = {run, rows, n, label, name, o, *cost, a, {0}};
    sc_software best = {0};
    bool mine = false, found = false;
    sc_valid_row *old = SC_NEW_N(a, sc_valid_row, (size_t)n + 1);
    if (!old) return sc_error_nomem(err);
    memcpy(old, rows, n * sizeof *old);
    s.rows = old;
    sc_arena_init(&s.scratch, a->limit);
    for (uint32_t i = 0; i < n; i++)
        mine = mine || (left_out(&s, i) && has_numbers(&run[i]));
    sc_status st = others_interval(&s, err);
    if (st == SC_OK && mine) st = refit(&s, &best, &found, err);
    if (st == SC_OK) st = predict_again(&s, found ? &best : NULL, rows, err);
    sc_arena_free(&s.scratch);
    return st;
}
