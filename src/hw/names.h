/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - names in the catalogue and their aliases. */
#ifndef HW_NAMES_H
#define HW_NAMES_H

#include "hw/hw.h"

typedef enum hw_kind { HW_DEVICE, HW_NODE } hw_kind;

typedef struct hw_name {
    hw_kind kind;
    const sc_embedded *file;
} hw_name;

/* Resolves a name, directly or through the aliases. `kinds` has a bit (1 <<
 * HW_DEVICE ...) for each kind to search. Errors: the name is unknown (the hint
 * is the nearest), or it is known but not in the catalogue yet. */
sc_status hw_name_find(const char *name, unsigned kinds, sc_pos pos,
                       sc_arena *a, hw_name *out, sc_err *err);

/* What messages call a name of these kinds: "device", or "cluster" if it may also
 * be a node's. */
const char *hw_kinds_word(unsigned kinds);

/* All names of the kinds, and their aliases; NULL ends. */
sc_status hw_name_list(unsigned kinds, sc_arena *a, const char ***names,
                       uint32_t *n, sc_err *err);

#endif
