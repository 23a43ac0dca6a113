/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c - points as a plot of characters. */
#include "report/report_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 10, COLS = 48, LABEL = 12 };

typedef struct range {
    double low, high;
} range;

static range range_of(const report_scale *s, uint32_t n)
{
    range r = {INFINITY, 0};
    for (uint32_t i = 0; i < n; i++) {
        r.low = fmin(r.low, s->v[i]);
        r.high = fmax(r.high, s->v[i]);
    }
    return r;
}

/* The cell of a value, 0 to `cells` - 1. */
static int cell(range r, double v, int cells)
{
    if (!(r.high > r.low)) return 0;
    double at = log(v / r.low) / log(r.high / r.low);
    int c = (int)lround(at * (cells - 1));
    return c < 0 ? 0 : c >= cells ? cells - 1 : c;
}

/* A place with both kinds of points shows '#'. */
static void draw(const report_line_plot *p, const report_scale *y, char mark,
                 char grid[ROWS][COLS + 1])
{
    range rx = range_of(&p->x, p->n), ry = range_of(y, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        char *c = &grid[ROWS - 1 - cell(ry, y->v[i], ROWS)]
                       [cell(rx, p->x.v[i], COLS)];
        *c = *c == ' ' || *c == mark ? mark : '#';
    }
}

static const char *label(const report_scale *s, int row)
{
    if (!s->v || (row > 0 && row < ROWS - 1)) return "";
    return row == 0 ? s->high : s->low;
}

void sc_report_plot(const report_line_plot *p, sc_text *out)
{
    char grid[ROWS][COLS + 1];
    range rx = range_of(&p->x, p->n);
    if (!(rx.high > rx.low)) return;
    for (int row = 0; row < ROWS; row++) {
        memset(grid[row], ' ', COLS);
        grid[row][COLS] = '\0';
    }
    draw(p, &p->left, p->mark[0], grid);
    if (p->right.v) draw(p, &p->right, p->mark[1], grid);
    sc_text_add(out, "\n%s\n", p->title);
    for (int row = 0; row < ROWS; row++) {
        const char *right = label(&p->right, row);
        sc_text_add(out, "  %*s |%s|%s%s\n", LABEL, label(&p->left, row),
                    grid[row], *right ? " " : "", right);
    }
    int gap = COLS - (int)strlen(p->x.low) - (int)strlen(p->x.high);
    sc_text_add(out, "  %*s  %s%*s%s\n", LABEL, "", p->x.low, gap > 1 ? gap : 1,
                "", p->x.high);
}
