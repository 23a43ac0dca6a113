/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - definitions for `stepcast explain`. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

typedef struct cli_word {
    const char *name, *unit, *text;
} cli_word;

/* Fields; name NULL ends. */
extern const cli_word cli_words[], cli_words_of_runs[];
extern const cli_word cli_glossary[]; /* terms of reports; name NULL ends */

/* Effects that users look for and stepcast does not model; NULL ends. */
extern const char *const cli_not_modelled[];

#endif
