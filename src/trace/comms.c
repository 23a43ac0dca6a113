/* SPDX-License-Identifier: Apache-2.0 */
/* comms.c - communicators by name. */
#include "trace/comms.h"

#include "base/util.h"

#include <inttypes.h>
#include <string.h>

static bool rises(const uint32_t *v, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (v[i] <= v[i - 1]) return false;
    return true;
}

/* Members in ascending order: the array itself, or a copy. */
static const uint32_t *sorted(const uint32_t *v, uint32_t n, sc_arena *a)
{
    static const uint32_t nobody = 0;
    if (n == 0) return &nobody;
    if (rises(v, n)) return v;
    uint32_t *copy = SC_NEW_N(a, uint32_t, n);
    if (copy == NULL) return NULL;
    memcpy(copy, v, n * sizeof *copy);
    sc_sort_numbers(copy, n);
    return copy;
}

static bool same_members(const comms *c, uint32_t i, const uint32_t *v,
                         uint32_t n)
{
    const sc_rank_group *g = &c->group[i];
    if (g->n != n) return false;
    sc_arena_mark mark = sc_arena_save(c->keep);
    const uint32_t *have = sorted(g->rank, n, c->keep);
    bool same = have != NULL && (n == 0 || !memcmp(have, v, n * sizeof *v));
    sc_arena_restore(c->keep, mark);
    return same;
}

static sc_status add_group(comms *c, raw_text name, const uint32_t *rank,
                           uint32_t n, uint64_t hash, sc_err *err)
{
    uint32_t i = c->n;
    sc_rank_group *g = sc_grow(c->a, c->group, i, &c->cap, 16, sizeof *g);
    bool *up = sc_grow(c->keep, c->ascending, i, &c->cap_flags, 16, sizeof *up);
    uint32_t *copy = SC_NEW_N(c->a, uint32_t, n);
    if (g == NULL || up == NULL || copy == NULL) return sc_error_nomem(err);
    c->group = g;
    c->ascending = up;
    if (n > 0) memcpy(copy, rank, n * sizeof *copy);
    up[i] = rises(rank, n);
    g[i].name = sc_strndup(c->a, name.p, name.n);
    g[i].n = n;
    g[i].rank = copy;
    if (g[i].name == NULL || !sc_map_add(&c->index, c->keep, hash, i))
        return sc_error_nomem(err);
    c->n++;
    return SC_OK;
}

/* One group for one name and set of members, whoever defines it: the order of
 * members is that of the first definition. */
static sc_status put_group(comms *c, raw_text name, const uint32_t *rank,
                           uint32_t n, uint32_t *number, sc_err *err)
{
    const uint32_t *up = sorted(rank, n, c->keep);
    if (up == NULL) return sc_error_nomem(err);
    uint64_t hash = sc_hash(up, n * sizeof *up, sc_hash(name.p, name.n, 1));
    uint32_t at = 0, i;
    while ((i = sc_map_next(&c->index, hash, &at)) != SC_MAP_END) {
        *number = i;
        if (strlen(c->group[i].name) == name.n &&
            memcmp(c->group[i].name, name.p, name.n) == 0 &&
            same_members(c, i, up, n))
            return SC_OK;
    }
    *number = c->n;
    return add_group(c, name, rank, n, hash, err);
}

static sc_status set_of_file(comms *c, uint32_t name, uint32_t group,
                             sc_err *err)
{
    while (c->n_of_file <= name) {
        uint32_t *v = sc_grow(c->keep, c->of_file, c->n_of_file, &c->cap_file,
                              64, sizeof *v);
        if (v == NULL) return sc_error_nomem(err);
        c->of_file = v;
        v[c->n_of_file++] = 0;
    }
    c->of_file[name] = group + 1;
    return SC_OK;
}

static sc_status in_range(const comms *c, const sc_rank_group *g, sc_err *err)
{
    for (uint32_t i = 0; c->n_ranks > 0 && i < g->n; i++)
        if (g->rank[i] >= c->n_ranks)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "communicator group \"%s\" has rank %u, but there "
                            "are ranks 0..%u",
                            g->name, g->rank[i], c->n_ranks - 1);
    return SC_OK;
}

sc_status comms_init(comms *c, const sc_rank_group *g, uint32_t n, sc_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        raw_text text = {g[i].name, strlen(g[i].name)};
        uint32_t name, group;
        SC_TRY(in_range(c, &g[i], err));
        SC_TRY(names_put(c->names, text, &name, err));
        SC_TRY(put_group(c, text, g[i].rank, g[i].n, &group, err));
        SC_TRY(set_of_file(c, name, group, err));
    }
    return SC_OK;
}

/* ---- process groups in metadata nodes */

/* The groups of a metadata node: a JSON list with two characters of Python on
 * each side. Empty if the node does not define groups. */
static raw_text group_text(const raw_node *n)
{
    static const char key[] = "\"pg_name\"";
    static const raw_text nothing = {"", 0};
    size_t len = sizeof key - 1;
    if (n->kind != SC_TASK_METADATA || n->values.n < len + 4) return nothing;
    raw_text s = {n->values.p + 2, n->values.n - 4};
    for (size_t i = 0; i + len <= s.n; i++)
        if (s.p[i] == '"' && memcmp(s.p + i, key, len) == 0) return s;
    return nothing;
}

static bool whole(const sc_node *n, uint64_t limit, uint32_t *out)
{
    uint64_t v = 0;
    if (n->kind != SC_N_SCALAR || *n->text == '\0') return false;
    for (const char *p = n->text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9') return false;
        v = 10 * v + (uint64_t)(*p - '0');
        if (v >= limit) return false;
    }
    *out = (uint32_t)v;
    return true;
}

static sc_status members(comms *c, raw_trace *t, const sc_node *list,
                         const raw_node *n, uint32_t **out, uint32_t *n_out)
{
    bool all = list->n == 0; /* an empty list means all ranks */
    uint32_t count = all ? c->n_ranks : list->n, i = 0;
    uint32_t *v = SC_NEW_N(t->tmp, uint32_t, count);
    if (v == NULL) return sc_error_nomem(t->err);
    for (; all && i < count; i++) v[i] = i;
    const sc_node *e = all ? NULL : list->child;
    uint64_t limit = c->n_ranks > 0 ? c->n_ranks : UINT32_MAX;
    for (; e != NULL; e = e->next)
        if (!whole(e, limit, &v[i++]))
            return raw_error(t, SC_C_RANGE, n->at, NULL,
                             "node %" PRIu64
                             ": \"%s\" is not one of the ranks 0..%" PRIu64,
                             n->id, e->text ? e->text : "null", limit - 1);
    const uint32_t *up = sorted(v, count, t->tmp);
    if (up == NULL) return sc_error_nomem(t->err);
    if (!rises(up, count))
        return raw_error(t, SC_C_DUPLICATE, n->at, NULL,
                         "node %" PRIu64 ": a rank occurs twice in a group",
                         n->id);
    *out = v;
    *n_out = count;
    return SC_OK;
}

static sc_status define(comms *c, raw_trace *t, const sc_node *e,
                        const raw_node *n)
{
    const sc_node *pg = e->kind == SC_N_MAP ? sc_node_get(e, "pg_name") : NULL;
    const sc_node *list = e->kind == SC_N_MAP ? sc_node_get(e, "ranks") : NULL;
    if (!pg || pg->kind != SC_N_SCALAR || !list || list->kind != SC_N_SEQ)
        return raw_error(t, SC_C_TYPE, n->at, NULL,
                         "node %" PRIu64
                         ": a process group needs pg_name and a list of ranks",
                         n->id);
    raw_text text = raw_group_name((raw_text){pg->text, strlen(pg->text)});
    uint32_t *rank = NULL, count = 0;
    comm_def d;
    SC_TRY(members(c, t, list, n, &rank, &count));
    if (c->n_ranks == 0) return SC_OK;
    SC_TRY(names_put(c->names, text, &d.name, t->err));
    SC_TRY(put_group(c, text, rank, count, &d.group, t->err));
    comm_def *v =
        sc_grow(c->keep, c->def, c->n_defs, &c->cap_defs, 16, sizeof *v);
    if (v == NULL) return sc_error_nomem(t->err);
    c->def = v;
    v[c->n_defs++] = d;
    return SC_OK;
}

static sc_status read_groups(comms *c, raw_trace *t, const raw_node *n,
                             raw_text s)
{
    sc_node *root = NULL;
    sc_err own;
    sc_err_init(&own);
    if (sc_doc_parse(s.p, s.n, SC_FMT_JSON, t->file, t->tmp, &root, &own) !=
            SC_OK ||
        root->kind != SC_N_SEQ)
        return raw_error(t, SC_C_SYNTAX, n->at, NULL,
                         "node %" PRIu64
                         ": its process groups are not a JSON list: %s",
                         n->id, own.n > 0 ? own.d[0].msg : "another value");
    for (const sc_node *e = root->child; e != NULL; e = e->next)
        SC_TRY(define(c, t, e, n));
    return SC_OK;
}

sc_status comms_define(comms *c, raw_trace *t)
{
    const raw_node *one = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (group_text(&t->node[i]).n > 0) {
            one = &t->node[i];
            n++;
        }
    raw_text s = n == 1 ? group_text(one) : (raw_text){NULL, 0};
    bool again = s.n > 0 && s.n == c->last.n && !memcmp(s.p, c->last.p, s.n);
    if (again) return SC_OK; /* usually all ranks have the same text */
    c->n_defs = 0;
    c->last = (raw_text){NULL, 0};
    for (uint32_t i = 0; n > 0 && i < t->n; i++) {
        raw_text text = group_text(&t->node[i]);
        if (text.n > 0) SC_TRY(read_groups(c, t, &t->node[i], text));
    }
    if (n != 1) return SC_OK;
    c->last.p = sc_strndup(c->keep, s.p, s.n);
    if (c->last.p == NULL) return sc_error_nomem(t->err);
    c->last.n = s.n;
    return SC_OK;
}

/* ---- use */

static uint32_t find(const comms *c, uint32_t name)
{
    for (uint32_t i = c->n_defs; i-- > 0;)
        if (c->def[i].name == name) return c->def[i].group;
    return name < c->n_of_file ? c->of_file[name] - 1 : SC_MAP_END;
}

static bool has_member(const comms *c, uint32_t group, uint32_t rank)
{
    const sc_rank_group *g = &c->group[group];
    if (c->ascending[group]) return sc_find_rising(g->rank, g->n, rank) < g->n;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->rank[i] == rank) return true;
    return false;
}

static sc_status unknown(comms *c, const canon *k, raw_trace *t, uint32_t slot,
                         const char *name)
{
    const char **names = SC_NEW_N(t->tmp, const char *, (size_t)c->n + 1);
    char *hint = NULL;
    for (uint32_t i = 0; names && i < c->n; i++) names[i] = c->group[i].name;
    const char *near = names ? sc_nearest(name, names) : NULL;
    if (near != NULL)
        hint = sc_sprintf(t->tmp, "the nearest is \"%s\"", near);
    else if (c->n == 0)
        hint = sc_strdup(t->tmp, "give the communicator-group file");
    return raw_error(t, SC_C_UNKNOWN_NAME, k->group_at[slot], hint,
                     "communicator group \"%s\" is not defined", name);
}

/* The root of every collective is a position in its group. */
static sc_status check_roots(const comms *c, const canon *k, raw_trace *t,
                             const uint32_t *groups)
{
    const sc_task_list *l = &k->list;
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (l->kind[i] != SC_TASK_COLL) continue;
        uint32_t n = l->group[i] == SC_TASK_WORLD
                         ? c->n_ranks
                         : c->group[groups[l->group[i]]].n;
        if (l->peer[i] >= n)
            raw_error(t, SC_C_RANGE, k->order[i]->at, NULL,
                      "node %" PRIu64
                      ": comm_root is %u in a group of %u members",
                      l->id[i], l->peer[i], n);
    }
    return t->first;
}

/* Without resolution each name is a group without members. */
static sc_status bare(comms *c, uint32_t name, uint32_t *out, sc_err *err)
{
    return put_group(c, c->names->text[name], NULL, 0, out, err);
}

sc_status comms_resolve(comms *c, const canon *k, raw_trace *t,
                        uint32_t *groups)
{
    for (uint32_t i = 0; i < k->groups.index.n; i++) {
        uint32_t name = k->groups.value[i];
        const char *s = c->names->text[name].p;
        if (c->n_ranks == 0) {
            SC_TRY(bare(c, name, &groups[i], t->err));
            continue;
        }
        groups[i] = find(c, name);
        if (groups[i] == SC_MAP_END)
            unknown(c, k, t, i, s);
        else if (!has_member(c, groups[i], k->rank))
            raw_error(t, SC_C_CONFLICT, k->group_at[i], NULL,
                      "rank %u uses communicator group \"%s\", which it is not "
                      "a member of",
                      k->rank, s);
    }
    SC_TRY(t->first);
    return k->rooted && c->n_ranks > 0 ? check_roots(c, k, t, groups) : SC_OK;
}
