/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.h - `calibrate` from network measurements. */
#ifndef CLI_CALIBRATE_H
#define CLI_CALIBRATE_H

#include "calib/calib_nccltests.h"
#include "cli/cli.h"

/* Fits the network parameters of `cluster` to `n` logs. The profile is
 * written as the result; the fit goes to stderr or, with --json, into a
 * document on stdout. */
sc_status cli_calibrate_nccl(cli *c, const char *cluster, const sc_nccl_opts *o,
                             const char *const *file, uint32_t n);

/* Does the same for a table of collectives. */
sc_status cli_calibrate_table(cli *c, const char *file);

/* Moves parameters and levels by own training runs. The profile is written to
 * `into`, or as the result (NULL). */
sc_status cli_calibrate_runs(cli *c, const char *file, const char *into);

/* Fits forms to tables of kernels, written to INTO/kernels.yml. */
sc_status cli_calibrate_kernels(cli *c, const char *const *file, uint32_t n,
                                const char *into, bool alone);

/* Fits the level of published whole runs, written to INTO/whole-run.yml. */
sc_status cli_calibrate_whole(cli *c, const char *const *file, uint32_t n,
                              const char *into);

/* Fits levels of devices to tables of a few kernels, and prints a profile. */
sc_status cli_calibrate_levels(cli *c, const char *const *file, uint32_t n);

/* Writes `text` to DIR/NAME. */
sc_status cli_write_fit(const cli *c, const char *dir, const char *name,
                        const sc_text *text);

/* --measure-list: writes the program that measures the operators of these traces
 * which no model covers. */
sc_status cli_measure_list(cli *c, const char *program, const sc_words *traces);

#endif
