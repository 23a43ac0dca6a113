/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - reads the files of the catalogue and of clusters.
 *
 * A value may have a source, `mem_bw: [2039GB/s, ds]`, where `ds` is a row of
 * the file's own `sources: {ds: {text: ..., date: ...}}`.
 */
#ifndef HW_READ_H
#define HW_READ_H

#include "hw/hw.h"

/* Whether `s` is longer than `end` and ends with it. */
bool hw_ends_with(const char *s, const char *end);
/* Whether a name is that of a YAML or JSON file, by its end. */
bool hw_is_document(const char *name);

typedef struct hw_values {
    uint32_t n;
    const sc_value *v; /* [n] in the arena */
} hw_values;

/* Entry of a map, to be changed; NULL: it has none, or is no map. */
sc_node *hw_entry(const sc_node *map, const char *key);

/* Replaces every [value, source] in a tree by the value, which the schema
 * reader expects, and lists the sources. */
sc_status hw_take_sources(sc_node *root, hw_values *out, sc_arena *a,
                          sc_err *err);

/* The same for a map whose sources are in another one. */
sc_status hw_take_sources_of(sc_node *map, const sc_node *sources,
                             hw_values *out, sc_arena *a, sc_err *err);

/* The source of a key's value; NULL: it has none. */
const sc_source *hw_source_of(const hw_values *values, const char *key);

/* The keys of a map; ends with NULL. */
sc_status hw_names(const sc_node *map, sc_arena *a, const char ***names,
                   uint32_t *n, sc_err *err);

/* The tree of a file of the catalogue, without its sources. */
sc_status hw_embedded(const sc_embedded *file, const sc_node **map,
                      hw_values *values, sc_arena *a, sc_err *err);

#endif
