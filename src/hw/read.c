/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - separates values from their sources before the schema reads them. */
#include "hw/read.h"

#include <string.h>

bool hw_is_document(const char *name)
{
    return hw_ends_with(name, ".yml") || hw_ends_with(name, ".yaml") ||
           hw_ends_with(name, ".json");
}

bool hw_ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

sc_node *hw_entry(const sc_node *map, const char *key)
{
    sc_node *c = map->kind == SC_N_MAP ? map->child : NULL;
    while (c != NULL && strcmp(c->key, key) != 0) c = c->next;
    return c;
}

static sc_status read_source(const sc_node *sources, const sc_node *id,
                             sc_source *out, sc_err *err)
{
    const sc_node *row = NULL;
    if (id->kind == SC_N_SCALAR && sources != NULL && sources->kind == SC_N_MAP)
        row = sc_node_get(sources, id->text);
    if (row == NULL)
        return sc_error(err, SC_EINPUT, SC_C_REFERENCE, id->pos,
                        "write [value, source] and describe it in sources:",
                        "this file has no source \"%.60s\"",
                        id->kind == SC_N_SCALAR ? id->text : "");
    const sc_node *text = NULL, *date = NULL;
    if (row->kind == SC_N_MAP) {
        text = sc_node_get(row, "text");
        date = sc_node_get(row, "date");
    }
    if (text == NULL || text->kind != SC_N_SCALAR || date == NULL ||
        date->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, row->pos,
                        "write {text: \"...\", date: 2021-06}",
                        "source \"%.60s\" needs a text and a date", id->text);
    *out = (sc_source){text->text, date->text};
    return SC_OK;
}

sc_status hw_take_sources_of(sc_node *map, const sc_node *sources,
                             hw_values *out, sc_arena *a, sc_err *err)
{
    *out = (hw_values){0, NULL};
    if (map->kind != SC_N_MAP) return SC_OK;
    sc_value *v = SC_NEW_N(a, sc_value, map->n);
    if (v == NULL) return sc_error_nomem(err);
    sc_status first = SC_OK;
    uint32_t n = 0;
    for (sc_node *c = map->child; c != NULL; c = c->next) {
        if (c->kind != SC_N_SEQ || c->n != 2) continue;
        const sc_node *value = c->child, *id = value->next;
        if (value->kind != SC_N_SCALAR) continue;
        sc_status s = read_source(sources, id, &v[n].source, err);
        if (first == SC_OK) first = s;
        v[n].key = c->key;
        v[n].text = value->text;
        n++;
        c->kind = SC_N_SCALAR;
        c->quoted = value->quoted;
        c->text = value->text;
        c->pos = value->pos;
        c->n = 0;
        c->child = NULL;
    }
    *out = (hw_values){n, v};
    return first;
}

sc_status hw_take_sources(sc_node *map, hw_values *out, sc_arena *a,
                          sc_err *err)
{
    const sc_node *sources =
        map->kind == SC_N_MAP ? sc_node_get(map, "sources") : NULL;
    return hw_take_sources_of(map, sources, out, a, err);
}

const sc_source *hw_source_of(const hw_values *values, const char *key)
{
    for (uint32_t i = 0; i < values->n; i++)
        if (strcmp(values->v[i].key, key) == 0) return &values->v[i].source;
    return NULL;
}

sc_status hw_names(const sc_node *map, sc_arena *a, const char ***names,
                   uint32_t *n, sc_err *err)
{
    *names = SC_NEW_N(a, const char *, map->n + 1);
    if (*names == NULL) return sc_error_nomem(err);
    *n = 0;
    for (const sc_node *c = map->child; c != NULL; c = c->next)
        (*names)[(*n)++] = c->key;
    return SC_OK;
}

sc_status hw_embedded(const sc_embedded *file, const sc_node **map,
                      hw_values *values, sc_arena *a, sc_err *err)
{
    sc_node *root;
    SC_TRY(sc_embedded_read(file, a, &root, err));
    SC_TRY(hw_take_sources(root, values, a, err));
    *map = root;
    return SC_OK;
}
