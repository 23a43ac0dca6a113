/* SPDX-License-Identifier: Apache-2.0 */
/* wiring.c - reads networks that are given link by link, and finds routes in
 * them. */
#include "hw/hw_wiring.h"

#include <stdio.h>
#include <string.h>

#define MAX_VERTICES 65535u /* so that links fit 16 bits */
#define MAX_PAIRS    ((uint64_t)1 << 24)
#define NO_WAY       UINT32_MAX

typedef struct wiring_file {
    const sc_node *devices, *switches, *links;
} wiring_file;

static const sc_key file_keys[] = {
    {.name = "devices",
     .type = SC_T_NODE,
     .offset = offsetof(wiring_file, devices),
     .help = "names by rank, or how many: d0, d1, ...",
     .required = true},
    {.name = "switches",
     .type = SC_T_NODE,
     .offset = offsetof(wiring_file, switches),
     .help = "names, or how many: s0, s1, ..."},
    {.name = "links",
     .type = SC_T_NODE,
     .offset = offsetof(wiring_file, links),
     .help = "list of links",
     .required = true},
    {.name = NULL}};

typedef struct link_row {
    const char *from, *to;
    double bw, latency;
    bool both;
} link_row;

static const sc_key link_keys[] = {{.name = "from",
                                    .type = SC_T_STRING,
                                    .offset = offsetof(link_row, from),
                                    .help = "device or switch",
                                    .required = true},
                                   {.name = "to",
                                    .type = SC_T_STRING,
                                    .offset = offsetof(link_row, to),
                                    .help = "device or switch",
                                    .required = true},
                                   {.name = "bandwidth",
                                    .type = SC_T_QUANTITY,
                                    .unit = SC_U_RATE,
                                    .offset = offsetof(link_row, bw),
                                    .min = 1,
                                    .max = 1e17,
                                    .help = "one direction",
                                    .required = true},
                                   {.name = "latency",
                                    .type = SC_T_QUANTITY,
                                    .unit = SC_U_TIME,
                                    .offset = offsetof(link_row, latency),
                                    .max = 1,
                                    .help = "from one end to the other",
                                    .required = true},
                                   {.name = "both",
                                    .type = SC_T_BOOL,
                                    .offset = offsetof(link_row, both),
                                    .def = "true",
                                    .help = "the link has both directions"},
                                   {.name = NULL}};

typedef struct reader {
    sc_wiring *w;
    sc_wiring_link *link;
    sc_map vertex; /* by name */
    sc_pos links_at;
    sc_arena *a;
    sc_err *err;
} reader;

/* ---- names ---- */

static uint32_t find(const reader *r, const char *name)
{
    return sc_map_name(&r->vertex, r->w->name, name);
}

static sc_status add_name(reader *r, const char *name, sc_pos pos)
{
    uint32_t n = r->w->n_vertices;
    if (find(r, name) != SC_MAP_END)
        return sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, pos, NULL,
                        "another device or switch has the name \"%.60s\"",
                        name);
    if (!sc_map_add_name(&r->vertex, r->a, name, n))
        return sc_error_nomem(r->err);
    r->w->name[r->w->n_vertices++] = name;
    return SC_OK;
}

/* The number of vertices that a list or number denotes. */
static sc_status count(const reader *r, const sc_node *n, const char *what,
                       uint32_t *out)
{
    double number = 0;
    *out = 0;
    if (n == NULL) return SC_OK;
    if (n->kind == SC_N_SEQ)
        number = n->n;
    else if (n->kind == SC_N_SCALAR && !n->quoted)
        SC_TRY(sc_unit_parse(n->text, SC_U_COUNT, n->pos, &number, r->err));
    else
        return sc_error(r->err, SC_EINPUT, SC_C_TYPE, n->pos,
                        "write a list of names, or how many",
                        "%s must be a list", what);
    if (!(number >= 0 && number <= MAX_VERTICES))
        return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, n->pos,
                        "devices and switches are at most 65535", "%g %s",
                        number, what);
    *out = (uint32_t)number;
    return SC_OK;
}

static sc_status add_names(reader *r, const sc_node *n, uint32_t some,
                           char letter)
{
    if (n == NULL || n->kind != SC_N_SEQ) {
        for (uint32_t i = 0; i < some; i++) {
            const char *name = sc_sprintf(r->a, "%c%u", letter, i);
            if (name == NULL) return sc_error_nomem(r->err);
            SC_TRY(add_name(r, name, n ? n->pos : sc_pos_none()));
        }
        return SC_OK;
    }
    for (const sc_node *c = n->child; c != NULL; c = c->next) {
        if (c->kind != SC_N_SCALAR)
            return sc_error(r->err, SC_EINPUT, SC_C_TYPE, c->pos,
                            "write [gpu0, gpu1]", "a name must be text");
        SC_TRY(add_name(r, c->text, c->pos));
    }
    return SC_OK;
}

static sc_status read_names(reader *r, const wiring_file *f)
{
    uint32_t devices, switches;
    SC_TRY(count(r, f->devices, "devices", &devices));
    SC_TRY(count(r, f->switches, "switches", &switches));
    if (devices == 0)
        return sc_error(r->err, SC_EINPUT, SC_C_RANGE, f->devices->pos, NULL,
                        "the network has no devices");
    uint32_t all = devices + switches;
    if (all > MAX_VERTICES || (uint64_t)all * devices > MAX_PAIRS)
        return sc_error(
            r->err, SC_EINPUT, SC_C_TOO_BIG, f->devices->pos,
            "larger networks are described by rule, see "
            "docs/cluster.md",
            "%u devices and %u nodes of the network need too many routes",
            devices, all);
    r->w->name = SC_NEW_N(r->a, const char *, all);
    if (r->w->name == NULL) return sc_error_nomem(r->err);
    r->w->n_devices = devices;
    SC_TRY(add_names(r, f->devices, devices, 'd'));
    return add_names(r, f->switches, switches, 's');
}

/* ---- links ---- */

static sc_status find_end(const reader *r, const sc_node *row, const char *key,
                          const char *name, uint32_t *out)
{
    *out = find(r, name);
    if (*out == SC_MAP_END)
        return sc_error(r->err, SC_EINPUT, SC_C_REFERENCE,
                        sc_node_get(row, key)->pos,
                        "list it in devices: or switches:",
                        "there is no device or switch \"%.60s\"", name);
    return SC_OK;
}

static sc_status read_link(reader *r, const sc_node *n)
{
    link_row row = {.both = true};
    sc_wiring_link wire;
    SC_TRY(sc_schema_read(link_keys, n, &row, NULL, r->a, r->err));
    sc_status from = find_end(r, n, "from", row.from, &wire.from);
    SC_TRY(find_end(r, n, "to", row.to, &wire.to));
    SC_TRY(from);
    if (wire.from == wire.to)
        return sc_error(r->err, SC_EINPUT, SC_C_CONFLICT, n->pos, NULL,
                        "a link leads from \"%.60s\" to itself", row.from);
    wire.bw = row.bw;
    wire.latency_s = row.latency;
    r->link[r->w->n_links++] = wire;
    if (!row.both) return SC_OK;
    wire.to = wire.from;
    wire.from = r->link[r->w->n_links - 1].to;
    r->link[r->w->n_links++] = wire;
    return SC_OK;
}

static sc_status read_links(reader *r, const sc_node *list)
{
    if (list->kind != SC_N_SEQ)
        return sc_error(r->err, SC_EINPUT, SC_C_TYPE, list->pos,
                        "write links: [{from: d0, to: s0, ...}, ...]",
                        "links must be a list");
    sc_status first = SC_OK;
    r->links_at = list->pos;
    r->link = SC_NEW_N(r->a, sc_wiring_link, 2 * (size_t)list->n);
    if (r->link == NULL) return sc_error_nomem(r->err);
    for (const sc_node *c = list->child; c != NULL; c = c->next) {
        sc_status s = read_link(r, c);
        if (first == SC_OK) first = s;
    }
    r->w->link = r->link;
    return first;
}

/* Lists links by one of their ends: of[first[v] .. first[v + 1]). */
static bool by_end(const reader *r, bool start, const uint32_t **first,
                   const uint32_t **of)
{
    uint32_t n = r->w->n_vertices, sum = 0;
    uint32_t *at = SC_NEW_N(r->a, uint32_t, (size_t)n + 2);
    uint32_t *id = SC_NEW_N(r->a, uint32_t, r->w->n_links);
    if (at == NULL || id == NULL) return false;
    for (uint32_t l = 0; l < r->w->n_links; l++)
        at[(start ? r->link[l].from : r->link[l].to) + 2]++;
    for (uint32_t v = 0; v < n; v++) at[v + 2] = sum += at[v + 2];
    for (uint32_t l = 0; l < r->w->n_links; l++)
        id[at[(start ? r->link[l].from : r->link[l].to) + 1]++] = l;
    *first = at;
    *of = id;
    return true;
}

/* ---- routes ---- */

/* A breadth-first search backwards from a device, in rounds: vertices that are
 * one device further are in the next round. Devices of the last round and
 * switches of this one are both in ascending order of distance, so the nearer
 * of the two first entries is next. */
typedef struct search {
    const uint32_t *first, *in; /* links by their second end */
    uint32_t *way;
    uint32_t *near, *device, *later; /* [n_vertices] each: queues */
    uint32_t n_near, n_later;
} search;

static void reach(const reader *r, search *s, uint32_t v, uint32_t cost)
{
    for (uint32_t k = s->first[v]; k < s->first[v + 1]; k++) {
        uint32_t from = r->link[s->in[k]].from;
        if (s->way[from] != NO_WAY) continue;
        s->way[from] = cost + 1;
        if (from < r->w->n_devices)
            s->later[s->n_later++] = from;
        else
            s->near[s->n_near++] = from;
    }
}

static void measure(const reader *r, search *s, uint32_t to)
{
    uint32_t n = 1, pass = 0;
    for (uint32_t v = 0; v < r->w->n_vertices; v++) s->way[v] = NO_WAY;
    s->way[to] = 0;
    for (s->device[0] = to; n > 0; pass = SC_WIRING_DEVICE) {
        uint32_t i = 0, k = 0;
        s->n_near = s->n_later = 0;
        while (i < n || k < s->n_near) {
            uint32_t a = i < n ? s->way[s->device[i]] + pass : NO_WAY;
            uint32_t b = k < s->n_near ? s->way[s->near[k]] : NO_WAY;
            if (a <= b)
                reach(r, s, s->device[i++], a);
            else
                reach(r, s, s->near[k++], b);
        }
        uint32_t *queue = s->device;
        s->device = s->later;
        s->later = queue;
        n = s->n_later;
    }
}

static sc_status make_routes(reader *r)
{
    sc_wiring *w = r->w;
    uint32_t *way =
        SC_NEW_N(r->a, uint32_t, (size_t)w->n_devices * w->n_vertices);
    search s = {.near = SC_NEW_N(r->a, uint32_t, w->n_vertices),
                .device = SC_NEW_N(r->a, uint32_t, w->n_vertices),
                .later = SC_NEW_N(r->a, uint32_t, w->n_vertices)};
    if (way == NULL || s.near == NULL || s.device == NULL || s.later == NULL ||
        !by_end(r, false, &s.first, &s.in) ||
        !by_end(r, true, &w->first, &w->out))
        return sc_error_nomem(r->err);
    for (uint32_t d = 0; d < w->n_devices; d++) {
        s.way = way + (size_t)d * w->n_vertices;
        measure(r, &s, d);
        for (uint32_t v = 0; v < w->n_devices; v++)
            if (s.way[v] == NO_WAY)
                return sc_error(r->err, SC_EINPUT, SC_C_REFERENCE, r->links_at,
                                "links have both directions unless both: false",
                                "no links lead from \"%.60s\" to \"%.60s\"",
                                w->name[v], w->name[d]);
    }
    w->way = way;
    return SC_OK;
}

sc_status sc_wiring_read(const char *text, size_t len, const char *file,
                         sc_arena *a, const sc_wiring **out, sc_err *err)
{
    sc_node *root;
    wiring_file f = {NULL, NULL, NULL};
    reader r = {.w = SC_NEW(a, sc_wiring), .a = a, .err = err};
    if (r.w == NULL) return sc_error_nomem(err);
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    SC_TRY(sc_schema_read(file_keys, root, &f, NULL, a, err));
    SC_TRY(read_names(&r, &f));
    SC_TRY(read_links(&r, f.links));
    SC_TRY(make_routes(&r));
    r.w->hash = sc_hash(&r.w->n_devices, sizeof r.w->n_devices, 0);
    r.w->hash = sc_hash(r.link, r.w->n_links * sizeof *r.link, r.w->hash);
    *out = r.w;
    return SC_OK;
}

/* Whether a link is on a shortest path from its start to `dst`. */
static bool leads(const sc_wiring *w, uint32_t link, uint32_t dst)
{
    const uint32_t *way = w->way + (size_t)dst * w->n_vertices;
    const sc_wiring_link *l = &w->link[link];
    uint32_t pass = l->to < w->n_devices && l->to != dst ? SC_WIRING_DEVICE : 0;
    return way[l->to] != NO_WAY && way[l->from] == way[l->to] + 1 + pass;
}

uint32_t sc_wiring_route(const sc_wiring *w, uint32_t src, uint32_t dst,
                         uint64_t seed, uint64_t *links, uint32_t cap)
{
    uint64_t random = seed ^ ((uint64_t)src << 32 | dst);
    uint32_t n = 0;
    for (uint32_t v = src; v != dst; n++) {
        uint32_t ways = 0, next = 0;
        for (uint32_t k = w->first[v]; k < w->first[v + 1]; k++)
            ways += leads(w, w->out[k], dst);
        uint64_t take = sc_random_below(&random, ways);
        for (uint32_t k = w->first[v]; k < w->first[v + 1]; k++) {
            next = w->out[k];
            if (leads(w, next, dst) && take-- == 0) break;
        }
        if (n < cap) links[n] = next;
        v = w->link[next].to;
    }
    return n;
}
