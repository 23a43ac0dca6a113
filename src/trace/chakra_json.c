/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chakra_json.c - Chakra ET as JSON.
 *
 * Three habits are known: one object after the other, GlobalMetadata first (what
 * Chakra's jsonizer writes, by protobuf's mapping: "dataDeps", "int64Val");
 * a list of nodes, or an object that holds one ("nodes", "workload_graph"),
 * with attributes in a list or as keys of the node ("Id", "NodeType",
 * "comm_size").  Keys are told apart without case and underscores.
 */
#include "trace/raw.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    raw_trace *t;
    uint32_t line, col; /* number of the current value in the file, from 0 */
    bool metadata;      /* the next object may be GlobalMetadata */
    bool legacy;        /* a workload_graph, where only data_deps count */
    bool named;         /* the file says that it is a Chakra trace */
} reader;

static uint64_t place(const reader *r, sc_pos pos)
{
    uint32_t col = pos.col + (pos.line == 1 ? r->col : 0);
    return (uint64_t)(pos.line + r->line) << 32 | col;
}

static int fold(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* `key` without case and underscores is `name`, which has none. */
static bool is(const char *key, const char *name)
{
    for (; *key != '\0'; key++) {
        if (*key == '_') continue;
        if (fold(*key) != *name) return false;
        name++;
    }
    return *name == '\0';
}

static bool is_tail(const char *key, const char *name)
{
    size_t n = strlen(key), m = strlen(name);
    for (size_t i = n > m + 1 ? n - m - 1 : 0; i < n; i++)
        if (is(key + i, name)) return true;
    return false;
}

/* ---- values */

static bool whole(const char *s, raw_value *v)
{
    bool minus = *s == '-';
    uint64_t x = 0;
    const char *p = s + minus;
    if (*p == '\0') return false;
    for (; *p != '\0'; p++) {
        unsigned digit = (unsigned)(*p - '0');
        if (digit > 9 || x > (UINT64_MAX - digit) / 10) return false;
        x = 10 * x + digit;
    }
    if (minus && x > (uint64_t)INT64_MAX + 1) return false;
    v->kind = x > INT64_MAX && !minus ? RAW_V_UINT : RAW_V_INT;
    v->as.u = minus ? 0 - x : x;
    return true;
}

/* A scalar of the type that `key` names ("int64Val"), or else that its text
 * has. */
static void scalar(const sc_node *n, const char *key, raw_value *v)
{
    v->kind = RAW_V_NONE;
    if (n->kind != SC_N_SCALAR) return;
    bool text = key ? is_tail(key, "stringval") || is_tail(key, "bytesval") ||
                          is_tail(key, "stringlist")
                    : n->quoted;
    bool real = key && (is_tail(key, "doubleval") || is_tail(key, "floatval"));
    if (!text && !real && whole(n->text, v)) return;
    if (!n->quoted && (!strcmp(n->text, "true") || !strcmp(n->text, "false"))) {
        v->kind = RAW_V_INT;
        v->as.i = n->text[0] == 't';
    } else if (n->quoted && !real) {
        v->kind = RAW_V_TEXT;
        v->as.text = (raw_text){n->text, strlen(n->text)};
    } else {
        v->kind = RAW_V_FLOAT;
        v->as.f =
            0; /* no known attribute is a float; it is only named in errors */
    }
}

static sc_status value(reader *r, const sc_node *n, const char *key,
                       raw_value *v)
{
    const sc_node *list = n;
    if (n->kind == SC_N_MAP) list = sc_node_get(n, "values");
    bool empty = n->kind == SC_N_MAP && list == NULL;
    if (!empty && (list == NULL || list->kind != SC_N_SEQ)) {
        scalar(n, key, v);
        return SC_OK;
    }
    r->t->n_items = 0;
    for (const sc_node *e = empty ? NULL : list->child; e; e = e->next) {
        raw_value *item = raw_item(r->t);
        if (item == NULL) return SC_ENOMEM;
        scalar(e, key, item);
    }
    v->kind = RAW_V_LIST;
    v->as.list.v = r->t->item;
    v->as.list.n = r->t->n_items;
    return SC_OK;
}

static sc_status number(reader *r, const sc_node *n, uint64_t *out)
{
    raw_value v;
    scalar(n, "int64Val", &v);
    if ((v.kind != RAW_V_INT || v.as.i < 0) && v.kind != RAW_V_UINT)
        return raw_error(r->t, SC_C_TYPE, place(r, n->pos), NULL,
                         "%s needs a whole number from 0",
                         n->key ? n->key : "a dependency");
    *out = v.as.u;
    return SC_OK;
}

/* ---- nodes */

/* {"name": "comm_size", "int64Val": "5"} */
static sc_status attribute(reader *r, raw_node *n, const sc_node *map)
{
    const sc_node *name = NULL, *val = NULL;
    if (map->kind == SC_N_MAP)
        for (const sc_node *e = map->child; e; e = e->next) {
            if (is(e->key, "name"))
                name = e;
            else if (!is(e->key, "docstring"))
                val = e;
        }
    if (name == NULL || name->kind != SC_N_SCALAR)
        return raw_error(r->t, SC_C_TYPE, place(r, map->pos), NULL,
                         "an attribute needs a name");
    raw_attr attr = raw_attr_find(name->text, strlen(name->text));
    if (attr == RAW_NONE || val == NULL) return SC_OK;
    raw_value v;
    SC_TRY(value(r, val, val->key, &v));
    return raw_set(r->t, n, attr, &v, place(r, val->pos));
}

static sc_status kind(reader *r, raw_node *n, const sc_node *e)
{
    static const char *const names[] = {
        "invalidnode", "metadatanode", "memloadnode",   "memstorenode",
        "compnode",    "commsendnode", "commrecvnode",  "commcollnode",
        "storagenode", "batchnode",    "checkpointnode"};
    uint64_t v = 0;
    if (e->kind == SC_N_SCALAR)
        for (; v < SC_COUNT(names); v++)
            if (is(e->text, names[v])) break;
    if (v == SC_COUNT(names) || e->kind != SC_N_SCALAR)
        SC_TRY(number(r, e, &v));
    return raw_set_kind(r->t, n, v, place(r, e->pos));
}

static sc_status deps(reader *r, raw_node *n, const sc_node *list)
{
    if (list->kind == SC_N_NULL) return SC_OK;
    if (list->kind != SC_N_SEQ)
        return raw_error(r->t, SC_C_TYPE, place(r, list->pos), NULL,
                         "%s is no list", list->key);
    for (const sc_node *e = list->child; e; e = e->next) {
        uint64_t id = 0;
        SC_TRY(number(r, e, &id));
        SC_TRY(raw_add_dep(r->t, n, id));
    }
    return SC_OK;
}

static sc_status attributes(reader *r, raw_node *n, const sc_node *list)
{
    for (const sc_node *e = list->child; e; e = e->next) {
        sc_status s = list->kind == SC_N_SEQ ? attribute(r, n, e) : SC_OK;
        if (s == SC_ENOMEM) return s;
    }
    return SC_OK;
}

static raw_text text_of(const sc_node *n)
{
    bool ok = n != NULL && n->kind == SC_N_SCALAR;
    return ok ? (raw_text){n->text, strlen(n->text)} : (raw_text){NULL, 0};
}

static sc_status member(reader *r, raw_node *n, const sc_node *e)
{
    if (is(e->key, "id")) return number(r, e, &n->id);
    if (is(e->key, "type") || is(e->key, "nodetype")) return kind(r, n, e);
    if (is(e->key, "ctrldeps") && r->legacy) return SC_OK;
    if (is(e->key, "datadeps") || is(e->key, "ctrldeps")) return deps(r, n, e);
    if (is(e->key, "attr")) return attributes(r, n, e);
    if (is(e->key, "durationmicros") || is(e->key, "runtime"))
        return number(r, e, &n->micros);
    if (is(e->key, "name")) {
        n->name = text_of(e);
        return SC_OK;
    }
    if (is(e->key, "inputs") && e->kind == SC_N_MAP) {
        n->values = text_of(sc_node_get(e, "values"));
        return SC_OK;
    }
    raw_attr attr = raw_attr_find(e->key, strlen(e->key));
    if (attr == RAW_NONE) return SC_OK;
    raw_value v;
    SC_TRY(value(r, e, NULL, &v));
    return raw_set(r->t, n, attr, &v, place(r, e->pos));
}

static bool is_metadata(const sc_node *map)
{
    for (const sc_node *e = map->child; e; e = e->next)
        if (!is(e->key, "version") && !is(e->key, "attr") &&
            !is(e->key, "schema"))
            return false;
    return true;
}

/* Events of Chrome's timelines, which Kineto writes, have a phase. */
static bool is_timeline(const sc_node *root)
{
    if (root->kind == SC_N_MAP) return sc_node_get(root, "traceEvents") != NULL;
    const sc_node *first = root->kind == SC_N_SEQ ? root->child : NULL;
    return first && first->kind == SC_N_MAP && sc_node_get(first, "ph");
}

static const char formats[] =
    "a Chakra trace in JSON is a list of nodes, each with id and type";

/* The mapping of protocol buffers leaves out an id that is 0. */
static bool has_type(const sc_node *map)
{
    for (const sc_node *e = map->child; e; e = e->next)
        if (is(e->key, "type") || is(e->key, "nodetype")) return true;
    return false;
}

static sc_status node(reader *r, const sc_node *map)
{
    bool first = r->metadata;
    r->metadata = false;
    if (map->kind != SC_N_MAP)
        return raw_error(r->t, SC_C_TYPE, place(r, map->pos), NULL,
                         "a node has to be an object");
    if (first && is_metadata(map)) {
        r->named = map->child != NULL;
        return SC_OK;
    }
    if (!has_type(map))
        return raw_error(r->t, SC_C_MISSING, place(r, map->pos), formats,
                         "not a node of a Chakra trace: it has no type");
    raw_node *n = raw_add(r->t, place(r, map->pos));
    if (n == NULL) return r->t->first;
    for (const sc_node *e = map->child; e; e = e->next)
        if (member(r, n, e) == SC_ENOMEM) return SC_ENOMEM;
    return SC_OK;
}

static sc_status nodes(reader *r, const sc_node *list)
{
    for (const sc_node *e = list->child; e; e = e->next)
        if (node(r, e) == SC_ENOMEM) return SC_ENOMEM;
    return SC_OK;
}

/* One value of the top level. */
static sc_status top(reader *r, const sc_node *root)
{
    if (is_timeline(root))
        return raw_error(
            r->t, SC_C_TYPE, place(r, root->pos),
            "chakra_trace_link and chakra_converter convert it and the "
            "execution trace to a Chakra trace",
            "this is a timeline of Kineto or Chrome, not a Chakra trace");
    if (root->kind == SC_N_SEQ) return nodes(r, root);
    if (root->kind != SC_N_MAP) return node(r, root);
    const sc_node *schema = sc_node_get(root, "schema");
    for (const sc_node *e = root->child; e; e = e->next) {
        r->legacy = is(e->key, "workloadgraph");
        r->named = r->named || r->legacy;
        if (e->kind != SC_N_SEQ ||
            !(r->legacy || is(e->key, "nodes") || is(e->key, "node")))
            continue;
        if (!r->legacy && schema != NULL)
            return raw_error(
                r->t, SC_C_TYPE, place(r, schema->pos), NULL,
                "this is a PyTorch execution trace, not a Chakra trace");
        return nodes(r, e);
    }
    return node(r, root);
}

/* ---- values one after the other */

/* The closing bracket of the value that begins at `p`. The parser reports
 * errors inside it. */
static const char *value_end(const char *p, const char *end)
{
    size_t depth = 0;
    bool quoted = false;
    for (; p < end; p++) {
        if (quoted) {
            if (*p == '\\' && p + 1 < end)
                p++;
            else if (*p == '"')
                quoted = false;
        } else if (*p == '"') {
            quoted = true;
        } else if (*p == '{' || *p == '[') {
            depth++;
        } else if ((*p == '}' || *p == ']') && --depth == 0) {
            return p + 1;
        }
    }
    return end;
}

static void count_lines(reader *r, const char *from, const char *to)
{
    for (; from < to; from++) {
        if (*from == '\n') {
            r->line++;
            r->col = 0;
        } else if (((unsigned char)*from & 0xC0) != 0x80) {
            r->col++;
        }
    }
}

static sc_status parse(reader *r, const char *from, const char *to)
{
    sc_node *root = NULL;
    sc_err own;
    sc_err_init(&own);
    sc_status s = sc_doc_parse(from, (size_t)(to - from), SC_FMT_JSON,
                               r->t->file, r->t->tmp, &root, &own);
    if (s == SC_OK) return top(r, root);
    for (uint32_t i = 0; i < own.n; i++) {
        const sc_diag *d = &own.d[i];
        sc_pos pos = {r->t->file, d->line, d->col};
        raw_error(r->t, d->code, place(r, pos), d->hint[0] ? d->hint : NULL,
                  "%s", d->msg);
    }
    return s;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

sc_status chakra_json(const char *buf, size_t len, raw_trace *t)
{
    reader r = {.t = t, .metadata = true};
    const char *p = buf, *end = buf + len, *seen = buf;
    for (uint32_t n = 0;; n++) {
        while (p < end && blank(*p)) p++;
        if (p == end && n > 0) break;
        count_lines(&r, seen, p);
        seen = p;
        bool bracket = p < end && (*p == '{' || *p == '[');
        p = bracket ? value_end(p, end) : end;
        SC_TRY(parse(&r, seen, p));
    }
    if (t->n == 0 && t->first == SC_OK && !r.named)
        return raw_error(t, SC_C_MISSING, (uint64_t)1 << 32 | 1, formats,
                         "not a Chakra trace: there is no node");
    return t->first;
}
