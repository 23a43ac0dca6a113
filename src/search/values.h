/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - inside search/: the words of an axis. */
#ifndef SEARCH_VALUES_H
#define SEARCH_VALUES_H

#include "search/search.h"

/* Most values of one axis. */
#define SEARCH_VALUES 4096

/* Takes the next value off "1,2,4": values are separated by commas and blanks
 * outside braces.  `*out` is NULL behind the last one. */
sc_status search_next_value(const char **text, sc_arena *a, char **out,
                            sc_err *err);

/* Whether a value is a range "1..8" of a key; then its ends are whole numbers.
 * SC_EINPUT or SC_EUSAGE: the key has none, or it is too long. */
sc_status search_range(const sc_key *key, char *value, sc_pos pos, sc_arena *a,
                       bool *range, int64_t *from, int64_t *to, sc_err *err);

/* Errors in files are errors of input, others of usage. */
sc_status search_status_at(sc_pos pos);

#endif
