/* SPDX-License-Identifier: Apache-2.0 */
/* embedded.c - the trees of the data files, which were parsed when stepcast was
 * built. */
#include "base/embedded.h"

#include <stdlib.h>
#include <string.h>

static int by_path(const void *path, const void *entry)
{
    return strcmp(path, ((const sc_embedded *)entry)->path);
}

const sc_embedded *sc_embedded_find(const char *path)
{
    return bsearch(path, sc_embedded_table, sc_embedded_count,
                   sizeof(sc_embedded), by_path);
}

const sc_embedded *sc_embedded_all(uint32_t *n)
{
    *n = sc_embedded_count;
    return sc_embedded_table;
}

bool sc_embedded_has_key(const sc_embedded *file, const char *key)
{
    for (uint32_t i = 0; i < file->n_rows; i++)
        if (file->row[i].key > 0 &&
            strcmp(file->texts + file->row[i].key, key) == 0)
            return true;
    return false;
}

sc_status sc_embedded_read(const sc_embedded *file, sc_arena *a, sc_node **out,
                           sc_err *err)
{
    sc_node *tree = SC_NEW_N(a, sc_node, file->n_rows);
    if (tree == NULL) return sc_error_nomem(err);
    for (uint32_t i = 0; i < file->n_rows; i++) {
        const struct sc_embedded_row *r = &file->row[i];
        sc_node *n = &tree[i];
        n->kind = (sc_node_kind)r->kind;
        n->quoted = r->quoted;
        n->pos = (sc_pos){file->path, r->line, r->col};
        if (r->key > 0) {
            n->key = file->texts + r->key;
            n->key_pos = (sc_pos){file->path, r->key_line, r->key_col};
        }
        if (r->text > 0) n->text = file->texts + r->text;
        n->n = r->n;
        if (r->n > 0) n->child = n + 1;
        if (r->next > 0) n->next = n + r->next;
    }
    *out = tree;
    return SC_OK;
}
