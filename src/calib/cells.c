/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c - numbers in the cells of tables that `validate` reads. */
#include "calib/cells.h"

#include "base/number.h"
#include "base/units.h"

#include <math.h>

static sc_status read(const sc_csv *t, uint32_t row, const calib_cell *c,
                      sc_err *err)
{
    const char *text = sc_csv_get(t, row, c->col);
    sc_pos pos = sc_csv_pos(t, row, c->col);
    *c->to = NAN;
    if (c->rest) *c->rest = text;
    if (text[0] == '\0') return SC_OK;
    if (c->rest) {
        size_t n = number_span(text);
        if (n == 0)
            return sc_error(err, SC_EINPUT, SC_C_TYPE, pos, NULL,
                            "column %s: %.40s is no number", t->header[c->col],
                            text);
        *c->rest = text + n;
        *c->to = number_scaled(text, n, 0);
    } else {
        SC_TRY(sc_unit_parse(text, SC_U_NONE, pos, c->to, err));
    }
    if (*c->to >= 0 && *c->to <= c->high && !(c->positive && *c->to == 0))
        return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                    "column %s: %.40s is outside 0 to %g", t->header[c->col],
                    text, c->high);
}

sc_status calib_cells_read(const sc_csv *t, uint32_t row,
                           const calib_cell *cell, size_t n, sc_err *err)
{
    sc_status first = SC_OK;
    for (size_t i = 0; i < n; i++) {
        sc_status s = read(t, row, &cell[i], err);
        if (first == SC_OK) first = s;
    }
    return first;
}
