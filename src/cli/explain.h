/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - what `stepcast explain` knows of fields. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

typedef struct cli_word {
    const char *name, *unit, *text;
} cli_word;

extern const cli_word cli_words[]; /* name NULL ends */

#endif
