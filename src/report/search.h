/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - shared by both reports of a search. */
#ifndef REPORT_SEARCH_H
#define REPORT_SEARCH_H

#include "report/report_row.h"
#include "report/report_search.h"

/* The options that turn the job as it was given, or on the best of several
 * machines, into that of a row; NULL: out of memory. */
const char *report_search_options(const sc_report_search *r,
                                  const sc_search_row *row, sc_arena *a);
/* What makes row `i` better than the next: the terms of the step that differ
 * most, as `stepcast compare` prints them; NULL: an error. */
const char *report_search_why(const sc_report_search *r, uint32_t i,
                              sc_arena *a, sc_err *err);
/* The options for a row of another search, with its own jobs. */
const char *report_search_options_of(const sc_report_search *r,
                                     const sc_search_jobs *jobs,
                                     const sc_search_row *row, sc_arena *a);

/* The rows of the front, of all sizes. */
sc_status report_search_front(const sc_report_search *r, sc_arena *a,
                              sc_search_member **m, uint32_t *n, sc_err *err);

/* Parts of the text: the front, and the curve over numbers of devices. */
sc_status report_search_front_text(const sc_report_search *r, sc_arena *a,
                                   sc_text *out, sc_err *err);
void report_search_sizes_text(const sc_report_search *r, sc_text *out);
/* The best machines, and what each value of their axes costs. */
void report_search_machines_text(const sc_report_search *r, sc_text *out);
/* What the budget of machines leaves out and allows, as lines and as a member of
 * `machines`. */
void report_search_budget_text(const sc_report_search *r, sc_text *out);
void report_search_budget_json(const sc_report_search *r, sc_json *j);
/* How much the step depends on the machine, and member `tornado`. */
void report_search_tornado_text(const sc_report_search *r, sc_text *out);
void report_search_tornado_json(const sc_report_search *r, sc_json *j);
/* "time, memory and money" */
void report_search_dims(uint32_t dims, sc_text *out);
/* Members of the document: machines, machine_axes, and counts of the space. */
sc_status report_search_machines_json(const sc_report_search *r, sc_arena *a,
                                      sc_json *j, sc_err *err);
/* A member of the document: devices[] and what meets the limits. */
sc_status report_search_sizes_json(const sc_report_search *r, sc_arena *a,
                                   sc_json *j, sc_err *err);
/* Members config and command of a row. */
sc_status report_search_row_json(const sc_report_search *r,
                                 const sc_search_jobs *jobs,
                                 const sc_search_row *row, sc_arena *a,
                                 sc_json *j, sc_err *err);

/* How sure a row is, and what to measure. */
void report_search_sure_row(const sc_report_search *r, uint32_t i,
                            sc_text *out);
sc_status report_search_learned(const sc_report_search *r, sc_arena *a,
                                sc_text *out, sc_err *err);
void report_search_settle(const sc_report_search *r, sc_text *out);
void report_search_sure_row_json(const sc_report_search *r, uint32_t i,
                                 sc_json *j);
sc_status report_search_settle_json(const sc_report_search *r, sc_arena *a,
                                    sc_json *j, sc_err *err);

/* Money of the whole run if there is one, else of a step; NaN: no price. */
double report_search_usd(const sc_prediction *p);
/* "21.3 days", "1.93M USD": short texts of a whole run. */
report_word report_days(double days);
report_word report_usd(double usd);

/* "proved", or the gap as a fraction: NaN if no bound is known. */
double report_search_gap(const sc_search_result *r);

#endif
