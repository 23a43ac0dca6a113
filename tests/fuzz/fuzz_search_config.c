/* SPDX-License-Identifier: Apache-2.0 */
/* The space of a search in a file, and any text: an error with its place, or
 * axes with values and conditions that can be evaluated. */
#include "search/search.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(sc_status s, const sc_err *err)
{
    bool placed = err->n > 0 && err->d[0].file[0] && err->d[0].line > 0;
    if (s == SC_OK ? err->n != 0 : s != SC_ENOMEM && !placed) abort();
}

static void axes(const sc_search_config *c, sc_arena *a)
{
    sc_err err;
    for (uint32_t i = 0; i < c->n; i++) {
        sc_search_option o;
        sc_err_init(&err);
        if (sc_search_is_strategy(c->axis[i].key)) continue; /* reads files */
        sc_status s = sc_search_option_read_node(c->axis[i].key,
                                                 c->axis[i].value, a, &o, &err);
        check(s, &err);
        if (s == SC_OK && o.axis.n == 0) abort();
    }
}

static void conditions(const sc_node *list, sc_arena *a)
{
    bool seq = list && list->kind == SC_N_SEQ;
    sc_err err;
    for (const sc_node *n = seq ? list->child : list; n;
         n = seq ? n->next : NULL) {
        const sc_search_where *w;
        sc_err_init(&err);
        check(sc_search_where_read(n->text, n->pos, n->quoted, a, &w, &err),
              &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_node *root;
    sc_search_config c;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    if (sc_doc_parse((const char *)data, size, SC_FMT_AUTO, "search.yml", &a,
                     &root, &err) == SC_OK) {
        sc_status s = sc_search_config_take(root, &c, &err);
        check(s, &err);
        if (s == SC_OK) {
            axes(&c, &a);
            conditions(c.where, &a);
        }
    }
    sc_arena_free(&a);
    return 0;
}
