/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedded.h - the tables that cmake/embed.c writes while stepcast is built.
 */
#ifndef BASE_EMBEDDED_H
#define BASE_EMBEDDED_H

#include "base/util.h"

/* A node of the tree that sc_doc_parse() made of the file. */
struct sc_embedded_row {
    uint32_t key, text; /* offsets in the file's texts; 0: NULL */
    uint32_t n;         /* children; the first is the next row */
    uint32_t next;      /* the next sibling is so many rows on; 0: none */
    uint16_t line, col, key_line, key_col;
    uint8_t kind; /* sc_node_kind */
    bool quoted;
};

extern const sc_embedded sc_embedded_table[]; /* sorted by path (strcmp) */
extern const uint32_t sc_embedded_count;

#endif
