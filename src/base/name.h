/* SPDX-License-Identifier: Apache-2.0 */
/* name.h - compares names as people spell them: "A100 SXM 80GB" equals
 * "a100-sxm-80gb". */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include <stdbool.h>

#define NAME_FOLDED 120 /* characters that are compared */

/* ASCII only, in every locale. */
char name_lower(char c);

/* Folds a name for comparison: letters in lower case, digits, and points
 * between digits. */
void name_fold(const char *name, char out[NAME_FOLDED + 1]);

/* Whether `name` folds to `folded`. */
bool name_is(const char *folded, const char *name);

/* Whether `word` is a beginning of `name`, or has its letters in another order.
 * A different letter may mean another chip, which hints must not suggest. */
bool name_slip(const char *word, const char *name);

#endif
