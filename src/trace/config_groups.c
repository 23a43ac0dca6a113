/* SPDX-License-Identifier: Apache-2.0 */
/* config_groups.c - communicator groups: {"1": [0, 1], "2": [2, 3]}. */
#include "trace/config.h"
#include "trace/raw.h"

#include <stdlib.h>
#include <string.h>

typedef struct member {
    uint32_t rank, at; /* at: position in the list */
    sc_pos pos;
} member;

static int by_rank(const void *x, const void *y)
{
    const member *a = x, *b = y;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static sc_status find_twice(member *m, uint32_t n, const sc_node *list,
                            sc_err *err)
{
    sc_status first = SC_OK;
    qsort(m, n, sizeof *m, by_rank);
    for (uint32_t i = 1; i < n; i++)
        if (m[i].rank == m[i - 1].rank)
            trace_config_keep(
                &first, sc_error(err, SC_EINPUT, SC_C_DUPLICATE, m[i].pos, NULL,
                                 "rank %u occurs twice in group \"%.60s\"",
                                 m[i].rank, list->key));
    return first;
}

static sc_status read_members(const sc_node *list, uint32_t n_ranks,
                              uint32_t *rank, member *m, sc_arena *a,
                              sc_err *err)
{
    const sc_key row = {.name = "a rank",
                        .type = SC_T_INT,
                        .unit = SC_U_COUNT,
                        .min = 0,
                        .max = n_ranks > 0 ? n_ranks - 1 : 0,
                        .help = "write [0, 1]"};
    sc_status first = SC_OK;
    uint32_t n = 0;
    for (const sc_node *c = list->child; c != NULL; c = c->next, n++) {
        int64_t v = 0;
        sc_status s = trace_config_entry(&row, c, &v, a, err);
        /* A row whose limits are both 0 has none. */
        if (s == SC_OK && (v < 0 || v >= n_ranks))
            s = sc_error(err, SC_EINPUT, SC_C_RANGE, c->pos, NULL,
                         "a rank is out of range: %.60s", c->text);
        trace_config_keep(&first, s);
        rank[n] = (uint32_t)v;
        m[n] = (member){(uint32_t)v, n, c->pos};
    }
    return first != SC_OK ? first : find_twice(m, n, list, err);
}

static sc_status read_group(const sc_node *list, uint32_t n_ranks,
                            sc_rank_group *out, sc_arena *a, sc_err *err)
{
    if (*list->key == '\0')
        return sc_error(err, SC_EINPUT, SC_C_MISSING, list->key_pos,
                        "nodes without the name of a group use all ranks",
                        "a group has no name");
    SC_TRY(trace_config_list(list, UINT32_MAX, err));
    if (list->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, list->pos,
                        "write its ranks: [0, 1]",
                        "group \"%.60s\" has no members", list->key);
    uint32_t *rank = SC_NEW_N(a, uint32_t, list->n);
    if (rank == NULL) return sc_error_nomem(err);
    sc_arena_mark mark = sc_arena_save(a);
    member *m = SC_NEW_N(a, member, list->n);
    if (m == NULL) return sc_error_nomem(err);
    sc_status s = read_members(list, n_ranks, rank, m, a, err);
    sc_arena_restore(a, mark);
    if (s != SC_OK) return s;
    raw_text name = raw_group_name((raw_text){list->key, strlen(list->key)});
    out->name = sc_strndup(a, name.p, name.n);
    out->n = list->n;
    out->rank = rank;
    return out->name ? SC_OK : sc_error_nomem(err);
}

/* "01" is the group "1"; no key but such a one can name a group twice. */
static sc_status twice(const sc_node *key, const sc_rank_group *groups,
                       uint32_t i, uint32_t n, sc_err *err)
{
    if (strcmp(key->key, groups[i].name) == 0) return SC_OK;
    for (uint32_t k = 0; k < n; k++)
        if (k != i && strcmp(groups[k].name, groups[i].name) == 0)
            return sc_error(
                err, SC_EINPUT, SC_C_DUPLICATE, key->key_pos,
                "names that are numbers are compared as whole numbers",
                "group \"%.60s\" is group %.60s, which is there "
                "twice",
                key->key, groups[i].name);
    return SC_OK;
}

sc_status trace_groups_text(const char *text, size_t len, const char *file,
                            uint32_t n_ranks, sc_arena *a, sc_rank_group **out,
                            uint32_t *n, sc_err *err)
{
    const sc_node *root;
    SC_TRY(trace_config_parse(text, len, file, a, &root, err));
    sc_rank_group *groups = SC_NEW_N(a, sc_rank_group, root->n);
    if (groups == NULL) return sc_error_nomem(err);
    sc_status first = SC_OK;
    uint32_t i = 0;
    for (const sc_node *c = root->child; c != NULL; c = c->next)
        trace_config_keep(&first, read_group(c, n_ranks, &groups[i++], a, err));
    if (first != SC_OK) return first;
    i = 0;
    for (const sc_node *c = root->child; c != NULL; c = c->next, i++)
        SC_TRY(twice(c, groups, i, root->n, err));
    *out = groups;
    *n = i;
    return SC_OK;
}

sc_status sc_groups_read(const char *path, uint32_t n_ranks, sc_arena *a,
                         sc_rank_group **out, uint32_t *n, sc_err *err)
{
    const char *file;
    char *text;
    size_t len;
    SC_TRY(trace_config_load(path, a, &file, &text, &len, err));
    return trace_groups_text(text, len, file, n_ranks, a, out, n, err);
}
