/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - shared by both reports of a search. */
#ifndef REPORT_SEARCH_H
#define REPORT_SEARCH_H

#include "report/report_search.h"

/* The options that turn the job as it was given into that of a row; NULL: out
 * of memory. */
const char *report_search_options(const sc_report_search *r,
                                  const sc_search_row *row, sc_arena *a);
/* What makes prediction `p` faster than `q`: the categories that differ most;
 * NULL: out of memory. */
const char *report_search_why(const sc_prediction *p, const sc_prediction *q,
                              sc_arena *a);
/* "proved", or the gap as a fraction: NaN if no bound is known. */
double report_search_gap(const sc_search_result *r);

#endif
