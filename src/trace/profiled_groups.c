/* SPDX-License-Identifier: Apache-2.0 */
/* profiled_groups.c - process groups, which metadata of a profile and execution
 * traces state in one form. */
#include "trace/profiled.h"

#define MOST_RANKS (1u << 20) /* of a group that does not list them */

/* A group without ranks; false if out of memory. */
static bool first_ranks(profiled *p, const scan_token *size,
                        sc_profiled_group *out)
{
    uint64_t n;
    if (!scan_uint(size, &n) || n > MOST_RANKS) return true;
    uint32_t *rank = SC_NEW_N(p->a, uint32_t, n);
    if (!rank) return false;
    for (uint32_t i = 0; i < n; i++) rank[i] = i;
    out->rank = rank;
    out->n = (uint32_t)n;
    return true;
}

static bool listed_ranks(profiled *p, const scan_token *ranks,
                         sc_profiled_group *out)
{
    const char *end = ranks->at + ranks->len;
    uint64_t v;
    scan_token e;
    uint32_t n = 0;
    for (const char *at = ranks->at + 1; scan_element(&at, end, &e);) n++;
    uint32_t *rank = SC_NEW_N(p->a, uint32_t, n);
    if (!rank) return false;
    out->rank = rank;
    for (const char *at = ranks->at + 1; scan_element(&at, end, &e);)
        if (scan_uint(&e, &v) && v < UINT32_MAX) rank[out->n++] = (uint32_t)v;
    return true;
}

static void add_group(profiled *p, const scan_token *object)
{
    scan_token name = {0}, ranks = {0}, size = {0}, key, value;
    const char *at = object->at + 1, *end = object->at + object->len;
    bool last = false;
    if (object->type != SCAN_OBJECT) return;
    while (scan_member(&at, end, &key, &value, &last) == SCAN_OK && !last) {
        if (SCAN_IS(&key, "pg_name")) name = value;
        if (SCAN_IS(&key, "ranks")) ranks = value;
        if (SCAN_IS(&key, "group_size")) size = value;
    }
    if (ranks.type != SCAN_ARRAY) return;
    sc_profiled_group *g = &p->m.group[p->m.n_groups];
    uint32_t i = profiled_token(p, &name);
    *g = (sc_profiled_group){.name = p->m.name[i]};
    if (!listed_ranks(p, &ranks, g) || (!g->n && !first_ranks(p, &size, g)))
        p->out_of_memory = true;
    else
        p->m.n_groups++;
}

void profiled_groups(profiled *p, const scan_token *list)
{
    const char *end = list->at + list->len;
    scan_token e;
    uint32_t n = 0;
    if (list->type != SCAN_ARRAY) return;
    for (const char *at = list->at + 1; scan_element(&at, end, &e);) n++;
    p->m.n_groups = 0;
    p->m.group = SC_NEW_N(p->a, sc_profiled_group, n);
    if (!p->m.group) {
        p->out_of_memory = true;
        return;
    }
    for (const char *at = list->at + 1; scan_element(&at, end, &e);)
        add_group(p, &e);
}
