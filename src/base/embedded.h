/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedded.h - the table that cmake/embed.cmake writes into embedded.c.
 */
#ifndef BASE_EMBEDDED_H
#define BASE_EMBEDDED_H

#include <stepcast/base/util.h>

extern const sc_embedded sc_embedded_table[]; /* sorted by path (strcmp) */
extern const uint32_t sc_embedded_count;

#endif
