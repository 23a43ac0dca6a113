/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - commands of the program: they parse options, call the library and
 * print.  Everything a command prints goes through cli_emit(): to stdout, or to
 * the file of -o.
 */
#ifndef CLI_H
#define CLI_H

#include <stepcast/base.h>

typedef struct cli {
    sc_arena *arena;
    sc_err *err;
    bool json, quiet;
    bool dump_config;
    const char *output; /* -o FILE; NULL: stdout */
    const char *config; /* --config FILE.yml */
} cli;

/* Parses the common options and `sets` (at most 4 more). */
sc_status cli_parse(cli *c, int argc, char *const *argv, sc_opt_set *sets,
                    uint32_t n_sets, sc_words *positional);

/* Reads --config into `target` under the table; options given on the command
 * line win. */
sc_status cli_config(cli *c, const sc_key *keys, void *target, sc_given *given);

sc_status cli_emit(const cli *c, const char *text, size_t len);
sc_status cli_emit_text(cli *c, const sc_text *t);
sc_status cli_emit_json(cli *c, const sc_json *j); /* appends a newline */
void cli_note(const cli *c, const char *fmt, ...) SC_PRINTF(2, 3);

sc_status cli_predict(cli *c, int argc, char *const *argv);
sc_status cli_validate(cli *c, int argc, char *const *argv);
sc_status cli_calibrate(cli *c, int argc, char *const *argv);
sc_status cli_list(cli *c, int argc, char *const *argv);
sc_status cli_show(cli *c, int argc, char *const *argv);
sc_status cli_explain(cli *c, int argc, char *const *argv);
sc_status cli_coll(cli *c, int argc, char *const *argv);

/* Option table `i` (0..2, NULL past the last) and usage of a command. */
const sc_key *cli_help_keys(const char *command, uint32_t i);
const char *cli_help_usage(const char *command);

#endif
