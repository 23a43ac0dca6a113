/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - reads execution traces of PyTorch node by node. */
#include "et/et.h"
#include "et/root.h"

#include <string.h>

typedef struct reader {
    scan s;
    sc_et_fn fn;
    void *ctx;
    sc_err *err;
    sc_status status; /* first error behind which reading goes on */
    bool found;       /* the list of nodes */
} reader;

/* ---- values -------------------------------------------------------------- */

bool sc_et_whole(const scan_token *t, uint64_t *out)
{
    if (t->type != SCAN_NUMBER || t->len == 0 || t->len > 16) return false;
    for (uint32_t i = 0; i < t->len; i++)
        if (t->at[i] < '0' || t->at[i] > '9') return false;
    return scan_uint(t, out) && *out < (uint64_t)1 << 53;
}

bool sc_et_is_tensor(const scan_token *type)
{
    return type->type == SCAN_STRING && scan_starts(type, "Tensor");
}

bool sc_et_is_tensor_list(const scan_token *type)
{
    return type->type == SCAN_STRING && scan_starts(type, "GenericList[Tensor");
}

bool sc_et_tensor_read(const scan_token *value, sc_et_tensor *out)
{
    uint64_t *const part[] = {&out->id, &out->storage, &out->offset,
                              &out->elements, &out->bytes};
    if (value->type != SCAN_ARRAY) return false;
    const char *p = value->at + 1, *end = value->at + value->len;
    scan_token e;
    for (size_t i = 0; i < SC_COUNT(part); i++)
        if (!scan_element(&p, end, &e) || !sc_et_whole(&e, part[i]))
            return false;
    return true;
}

void sc_et_args_init(sc_et_args *it, const sc_et_side *s)
{
    const scan_token *const list[] = {&s->values, &s->shapes, &s->types};
    *it = (sc_et_args){.unequal = false};
    if (s->values.type == SCAN_NONE || SCAN_IS(&s->values, "null")) return;
    for (int i = 0; i < 3; i++) it->unequal |= list[i]->type != SCAN_ARRAY;
    for (int i = 0; i < 3 && !it->unequal; i++) {
        it->at[i] = list[i]->at + 1;
        it->end[i] = list[i]->at + list[i]->len;
    }
}

bool sc_et_args_next(sc_et_args *it, scan_token *value, scan_token *shape,
                     scan_token *type)
{
    scan_token *const out[] = {value, shape, type};
    uint32_t n = 0;
    if (!it->at[0]) return false;
    for (int i = 0; i < 3; i++)
        n += scan_element(&it->at[i], it->end[i], out[i]);
    it->unequal |= n > 0 && n < 3;
    return n == 3;
}

/* ---- nodes --------------------------------------------------------------- */

/* A node whose numbers are not read yet. */
typedef struct raw_node {
    sc_et_node n;
    scan_token id, parent, record, thread, scope, attrs;
} raw_node;

typedef struct field {
    const char *name;
    size_t offset;
} field;

#define OFF(f) offsetof(raw_node, f)

/* Members of nodes, of both kinds of schemas. */
static const field members[] = {
    {"id", OFF(id)},
    {"name", OFF(n.name)},
    {"ctrl_deps", OFF(parent)},
    {"parent", OFF(parent)},
    {"inputs", OFF(n.in.values)},
    {"input_shapes", OFF(n.in.shapes)},
    {"input_types", OFF(n.in.types)},
    {"outputs", OFF(n.out.values)},
    {"output_shapes", OFF(n.out.shapes)},
    {"output_types", OFF(n.out.types)},
    {"attrs", OFF(attrs)},
    {NULL, 0},
};

/* Members of old nodes, and attributes of newer ones. */
static const field attributes[] = {
    {"rf_id", OFF(record)},
    {"tid", OFF(thread)},
    {"scope", OFF(scope)},
    {"op_schema", OFF(n.schema)},
    {"collective_name", OFF(n.coll)},
    {"dtype", OFF(n.dtype)},
    {"in_msg_nelems", OFF(n.in_elems)},
    {"out_msg_nelems", OFF(n.out_elems)},
    {"pg_name", OFF(n.group)},
    {"pg_size", OFF(n.group_size)},
    {"global_rank_start", OFF(n.first_rank)},
    {"global_rank_stride", OFF(n.rank_stride)},
    {NULL, 0},
};

static scan_token *slot(const field *f, const scan_token *key, raw_node *n)
{
    for (; f->name; f++)
        if (scan_is(key, f->name, strlen(f->name)))
            return (scan_token *)(void *)((char *)n + f->offset);
    return NULL;
}

/* The member of an object that is in the window as a whole. */
static scan_token member(const scan_token *object, const char *name)
{
    const char *p = object->at + 1, *end = object->at + object->len;
    scan_token key, value;
    bool last = false;
    while (scan_member(&p, end, &key, &value, &last) == SCAN_OK && !last)
        if (scan_is(&key, name, strlen(name))) return value;
    return (scan_token){SCAN_NONE, "", 0};
}

static void read_attributes(raw_node *n)
{
    if (n->attrs.type != SCAN_ARRAY) return;
    const char *p = n->attrs.at + 1, *end = n->attrs.at + n->attrs.len;
    scan_token attr;
    while (scan_element(&p, end, &attr)) {
        if (attr.type != SCAN_OBJECT) continue;
        scan_token name = member(&attr, "name");
        scan_token *to = slot(attributes, &name, n);
        if (to) *to = member(&attr, "value");
    }
}

static void read_side(sc_et_side *s)
{
    scan_token all = s->values;
    if (all.type != SCAN_OBJECT) return;
    s->values = member(&all, "values");
    s->shapes = member(&all, "shapes");
    s->types = member(&all, "types");
}

/* Reads the node whose brace is at `*p`, which moves behind it. */
static scan_status read_node(const char **p, const char *end, raw_node *n)
{
    scan_token key, rest;
    bool last = false;
    *n = (raw_node){.n.id = 0};
    (*p)++;
    for (;;) {
        scan_status s = scan_key(p, end, &key, &last);
        if (s != SCAN_OK || last) return s;
        scan_token *to = slot(members, &key, n);
        if (!to) to = slot(attributes, &key, n);
        s = scan_value(p, end, to ? to : &rest);
        if (s != SCAN_OK) return s;
    }
}

static void wrong(reader *r, sc_pos pos, sc_code code, const char *what)
{
    sc_status s = sc_error(r->err, SC_EINPUT, code, pos, NULL, "%s", what);
    if (r->status == SC_OK) r->status = s;
}

static sc_status pass_node(reader *r, raw_node *n)
{
    n->n.pos = scan_here(&r->s);
    read_attributes(n);
    read_side(&n->n.in);
    read_side(&n->n.out);
    (void)sc_et_whole(&n->record, &n->n.record);
    (void)sc_et_whole(&n->thread, &n->n.thread);
    (void)sc_et_whole(&n->scope, &n->n.scope);
    if (!sc_et_whole(&n->id, &n->n.id) ||
        !sc_et_whole(&n->parent, &n->n.parent) ||
        n->n.name.type != SCAN_STRING) {
        wrong(r, n->n.pos, SC_C_MISSING,
              "a node needs a name, an id and a ctrl_deps or parent");
        return SC_OK;
    }
    sc_status s = r->fn(r->ctx, &n->n);
    if (s == SC_EINPUT && r->status == SC_OK) r->status = s;
    return s == SC_EINPUT ? SC_OK : s;
}

static sc_status not_json(reader *r)
{
    return sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, scan_pos(&r->s, r->s.at),
                    NULL, "this is not JSON");
}

/* The list whose bracket is at s->at; SC_NO: the file ends inside. */
static sc_status nodes(reader *r)
{
    r->s.at++;
    for (;;) {
        raw_node n;
        scan_token other;
        const char *p = r->s.at;
        scan_status s = scan_blanks(&p, r->s.end);
        if (s == SCAN_OK && (*p == ',' || *p == ']')) {
            r->s.at = p + 1;
            if (*p == ']') return SC_OK;
            continue;
        }
        if (s == SCAN_OK) {
            r->s.at = p;
            bool map = *p == '{';
            s = map ? read_node(&p, r->s.end, &n)
                    : scan_value(&p, r->s.end, &other);
            if (s == SCAN_OK && map) SC_TRY(pass_node(r, &n));
            if (s == SCAN_OK && !map)
                wrong(r, scan_here(&r->s), SC_C_TYPE,
                      "a node must be a mapping");
        }
        if (s == SCAN_MORE) SC_TRY(scan_more(&r->s));
        if (s == SCAN_BROKEN) return not_json(r);
        if (s == SCAN_OK) r->s.at = p;
    }
}

/* ---- the root ------------------------------------------------------------ */

/* SC_NO: the file ends too early. What is behind the nodes is of no use. */
static sc_status root(reader *r)
{
    root_part part;
    scan_token key, value;
    SC_TRY(root_begin(&r->s, &part, &value));
    if (part != ROOT_OBJECT) return not_json(r);
    while (part == ROOT_OBJECT || part == ROOT_MEMBER)
        SC_TRY(root_next(&r->s, &part, &key, &value));
    if (part == ROOT_BROKEN) return not_json(r);
    if (part != ROOT_NODES) return SC_OK;
    r->found = true;
    r->s.at = value.at;
    return nodes(r);
}

sc_status sc_et_read(sc_stream *in, const char *file, sc_et_fn fn, void *ctx,
                     sc_err *err)
{
    reader r = {.fn = fn, .ctx = ctx, .err = err};
    SC_TRY(scan_open(&r.s, in, file, err));
    sc_status s = root(&r);
    sc_pos end = scan_pos(&r.s, r.s.at);
    scan_close(&r.s);
    if (s != SC_OK && s != SC_NO) return s;
    if (!r.found)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, end, NULL,
                        "the file has no list of nodes");
    if (s == SC_NO)
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, end, NULL,
                        "the file ends inside its list of nodes");
    return r.status;
}
