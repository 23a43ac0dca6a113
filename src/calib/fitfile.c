/* SPDX-License-Identifier: Apache-2.0 */
/* fitfile.c - writes fitted parameters as the text of data/fit/<set>.yml. */
#include "calib/fitfile.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

/* `v` with `digits` significant digits. The text is the same on every machine,
 * although the last bits of a fit may differ. */
static void put_number(sc_text *t, const char *key, double v, int digits)
{
    char buf[40];
    number_print(v, digits, buf, sizeof buf);
    sc_text_add(t, "    %s: %s\n", key, isfinite(v) ? buf : "null");
}

static bool listed(sc_param_set set, int i)
{
    return sc_params[i].set == set && sc_params[i].sd > 0;
}

void calib_fit_comment(const char *text, sc_text *out)
{
    for (const char *line = text; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        sc_text_add(out, "# %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

void calib_fit_write(sc_param_set set, const sc_fit_result *fit,
                     const char *from, sc_text *out)
{
    sc_text_add(out, "# Written by `stepcast calibrate --truth DIR`, and by "
                     "nothing else.\n");
    calib_fit_comment(from, out);
    sc_text_add(out, "# prior_sd and standard_error are of the logarithm of "
                     "the value.\nparameters:\n");
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        const sc_param_info *p = &sc_params[i];
        if (!listed(set, i)) continue;
        sc_text_add(out, "  %s:\n", p->name);
        put_number(out, "value", fit->value[i], 6);
        sc_text_add(out, "    unit: \"%s\"\n", p->unit);
        put_number(out, "centre", p->centre, 6);
        put_number(out, "prior_sd", p->sd, 6);
        put_number(out, "standard_error", fit->se_log[i], 2);
        sc_text_add(out, "    effective_rows: %.0f\n", fit->rows[i]);
        put_number(out, "low", p->lo, 6);
        put_number(out, "high", p->hi, 6);
    }
}

/* Correlations below this are left out. */
static const double least = 0.02;

void calib_covariance_write(const sc_fit_result *fit, sc_text *out)
{
    if (out->len == 0)
        sc_text_add(out,
                    "# Written by `stepcast calibrate --truth DIR`, and by "
                    "nothing else.\n"
                    "# Of the logarithms of fitted parameters: standard "
                    "errors, and correlations with\n"
                    "# parameters of the same fit that are listed before; "
                    "those below %g are left out.\ncovariance:\n",
                    least);
    for (uint32_t i = 0; i < fit->n_free; i++) {
        const double *row = fit->covariance + (size_t)i * fit->n_free;
        char buf[40];
        number_print(sqrt(row[i]), 2, buf, sizeof buf);
        if (!isfinite(row[i])) continue;
        sc_text_add(out, "  %s:\n    standard_error: %s\n",
                    sc_params[fit->free[i]].name, buf);
        for (uint32_t k = 0; k < i; k++) {
            double c = row[k] / sqrt(row[i]) /
                       sqrt(fit->covariance[(size_t)k * fit->n_free + k]);
            if (fabs(c) >= least)
                sc_text_add(out, "    %s: %.2f\n", sc_params[fit->free[k]].name,
                            c);
        }
    }
}

void calib_fit_report(sc_param_set set, const sc_fit_result *fit, sc_text *out)
{
    sc_text_add(out, "%-24s%12s %-10s%12s%8s%8s%8s\n", "parameter", "value",
                "unit", "centre", "prior %", "se %", "rows");
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        const sc_param_info *p = &sc_params[i];
        if (!listed(set, i)) continue;
        char value[40], centre[40];
        number_print(fit->value[i], 4, value, sizeof value);
        number_print(p->centre, 4, centre, sizeof centre);
        sc_text_add(out, "%-24s%12s %-10s%12s%8.1f%8.1f%8.1f\n", p->name, value,
                    p->unit, centre, 100 * p->sd, 100 * fit->se_log[i],
                    fit->rows[i]);
    }
    sc_text_add(out, "cost %.3f at the centres, %.3f fitted\n\n",
                fit->cost_before, fit->cost_after);
}
