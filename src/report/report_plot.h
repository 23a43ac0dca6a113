/* SPDX-License-Identifier: Apache-2.0 */
/* report_plot.h - points as a plot of characters. */
#ifndef SC_REPORT_PLOT_H
#define SC_REPORT_PLOT_H

#include "base/base.h"

/* Numbers above 0 on a logarithmic scale; the texts are of its ends. */
typedef struct report_scale {
    const double *v; /* [n] */
    const char *low, *high;
} report_scale;

typedef struct report_line_plot {
    const char *title;
    uint32_t n;
    report_scale x, left, right; /* right.v NULL: one kind of point */
    char mark[2];                /* of points of `left` and of `right` */
} report_line_plot;

/* Prints at most 12 lines of 80 columns; nothing if all points are at one
 * place of `x`. */
void sc_report_plot(const report_line_plot *p, sc_text *out);

#endif
