/* SPDX-License-Identifier: Apache-2.0 */
/* fitfile.h - writes fitted parameters as the text of data/fit/<set>.yml. */
#ifndef CALIB_FITFILE_H
#define CALIB_FITFILE_H

#include "calib/calib.h"

/* Appends the lines of `text` as comments. */
void calib_fit_comment(const char *text, sc_text *out);

/* Appends the parameters of `set` that a fit determines, with unit, centre,
 * prior, standard error (all of the logarithm), effective rows and bounds. The
 * lines of `from` state the data of the fit, without comment marks. */
void calib_fit_write(sc_param_set set, const sc_fit_result *fit,
                     const char *from, sc_text *out);

/* Appends the covariance of a fit as rows of data/fit/covariance.yml, which
 * sc_covariance_read() reads; an empty text gets the start of the file. */
void calib_covariance_write(const sc_fit_result *fit, sc_text *out);

/* Appends the same as lines of a report. */
void calib_fit_report(sc_param_set set, const sc_fit_result *fit, sc_text *out);

#endif
