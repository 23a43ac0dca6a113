/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - the text form of a graph (docs/graph-text.md), read. */
#include "graph/builder.h"
#include "graph/map.h"
#include "graph/text.h"

#include <string.h>

typedef enum ref_kind { REF_AFTER, REF_FROM, REF_UNTIL } ref_kind;

typedef struct label_ref {
    uint32_t of; /* op, tensor, or place in .end */
    text_token label;
    uint32_t line;
    ref_kind kind;
} label_ref;

typedef struct reader {
    text_line l; /* current line */
    const char *file;
    sc_arena *a, *tmp; /* of the graph; of the reader */
    sc_err *err;
    sc_graph_builder *b;
    graph_map classes, groups, axes, traffics, labels;
    uint32_t *line; /* [n_ops] */
    label_ref *refs;
    uint32_t n_refs, cap_refs, n_ops;
    uint32_t *dev; /* of the op at hand */
    uint32_t n_dev, cap_dev;
    sc_lifetime *tensor;
    sc_op *end; /* [n_ends] last ops of all tensors */
    uint32_t n_tensors, cap_tensors, n_ends;
    bool started, failed;
} reader;

/* ---- small parts --------------------------------------------------------- */

static bool syntax(reader *r, const text_token *t, const char *want)
{
    if (t->kind != TEXT_BAD)
        sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, text_pos(&r->l, t), NULL,
                 "expected %s", want);
    return false;
}

static bool word(reader *r, text_token *t, const char *what)
{
    *t = text_next(&r->l);
    return t->kind == TEXT_WORD || syntax(r, t, what);
}

static bool line_end(reader *r)
{
    text_token t = text_next(&r->l);
    return t.kind == TEXT_END || syntax(r, &t, "the end of the line");
}

static bool nomem(reader *r)
{
    sc_error_nomem(r->err);
    return false;
}

static const char *keep(reader *r, const text_token *t)
{
    const char *s = sc_strndup(r->a, t->s, t->len);
    if (!s) nomem(r);
    return s;
}

static bool add_name(reader *r, graph_map *m, const text_token *t,
                     const char *what, uint32_t value)
{
    if (!graph_map_add(m, t->s, t->len, value)) return true;
    sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, text_pos(&r->l, t), NULL,
             "%s \"%.*s\" is there already", what,
             t->len < 80 ? (int)t->len : 80, t->s);
    return false;
}

static bool get_name(reader *r, const graph_map *m, const text_token *t,
                     const char *what, uint32_t *out)
{
    const graph_map_slot *s = graph_map_find(m, t->s, t->len);
    if (s->key) {
        *out = s->value;
        return true;
    }
    sc_error(r->err, SC_EINPUT, SC_C_REFERENCE, text_pos(&r->l, t),
             "names are declared above the lines that use them",
             "no %s is named \"%.*s\"", what, t->len < 80 ? (int)t->len : 80,
             t->s);
    return false;
}

/* ---- lines --------------------------------------------------------------- */

static bool read_axis(reader *r)
{
    text_token name, size;
    uint64_t n;
    if (!word(r, &name, "the name of an axis") ||
        !word(r, &size, "the size of the axis") ||
        !text_count(&r->l, &size, UINT32_MAX, &n) || !line_end(r))
        return false;
    if (r->b->g.n_axes == SC_AXES || n == 0) {
        sc_error(r->err, SC_EINPUT, n ? SC_C_TOO_BIG : SC_C_RANGE,
                 text_pos(&r->l, &name), NULL,
                 n ? "more than 8 axes" : "an axis has at least one rank");
        return false;
    }
    if (!add_name(r, &r->axes, &name, "axis", r->b->g.n_axes)) return false;
    const char *s = keep(r, &name);
    if (s) sc_graph_add_axis(r->b, s, (uint32_t)n);
    return s != NULL;
}

static bool read_coord(reader *r, const text_token *axis, uint32_t *fixed,
                       uint32_t coord[SC_AXES])
{
    uint32_t ax;
    text_token t = text_next(&r->l);
    uint64_t at;
    if (!get_name(r, &r->axes, axis, "axis", &ax)) return false;
    if (t.kind != TEXT_EQUALS) return syntax(r, &t, "= after the axis");
    if (!word(r, &t, "a coordinate") ||
        !text_count(&r->l, &t, r->b->g.axis_size[ax] - 1, &at))
        return false;
    if (*fixed >> ax & 1) {
        sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, text_pos(&r->l, axis), NULL,
                 "the axis is fixed twice");
        return false;
    }
    *fixed |= 1u << ax;
    coord[ax] = (uint32_t)at;
    return true;
}

/* rank=R or ranks=N, of a class in a graph without axes. */
static bool read_ranks(reader *r, const text_token *key, uint32_t *rank,
                       uint32_t *ranks)
{
    bool all = text_is(key, "ranks");
    text_token t = text_next(&r->l);
    uint64_t n;
    if (t.kind != TEXT_EQUALS) return syntax(r, &t, "= after the key");
    if (!word(r, &t, "a number of ranks") ||
        !text_count(&r->l, &t, SC_NONE - 1, &n))
        return false;
    if (all && n == 0) {
        sc_error(r->err, SC_EINPUT, SC_C_RANGE, text_pos(&r->l, &t), NULL,
                 "a class has at least one rank");
        return false;
    }
    *(all ? ranks : rank) = (uint32_t)n;
    return true;
}

static bool read_class(reader *r)
{
    text_token name, t;
    uint32_t fixed = 0, coord[SC_AXES] = {0}, rank = SC_NONE, ranks = 0;
    if (!word(r, &name, "the name of a class") ||
        !add_name(r, &r->classes, &name, "class", r->b->g.n_classes))
        return false;
    if (name.len == 0) return syntax(r, &name, "the name of a class");
    while ((t = text_next(&r->l)).kind == TEXT_WORD) {
        bool count = r->b->g.n_axes == 0 &&
                     (text_is(&t, "rank") || text_is(&t, "ranks"));
        if (!(count ? read_ranks(r, &t, &rank, &ranks)
                    : read_coord(r, &t, &fixed, coord)))
            return false;
    }
    if (t.kind != TEXT_END) return syntax(r, &t, "AXIS=COORDINATE");
    const char *s = keep(r, &name);
    if (!s) return false;
    if (rank != SC_NONE || ranks)
        sc_graph_add_device(r->b, s, rank == SC_NONE ? 0 : rank,
                            ranks ? ranks : 1);
    else
        sc_graph_add_class(r->b, s, fixed, coord);
    return true;
}

static bool read_share(reader *r, const text_token *t, uint64_t *link,
                       double *share)
{
    text_token v = text_next(&r->l);
    if (!text_count(&r->l, t, UINT64_MAX, link)) return false;
    if (v.kind != TEXT_EQUALS) return syntax(r, &v, "= after the link");
    return word(r, &v, "a share") && text_number(&r->l, &v, share);
}

static bool read_traffic(reader *r)
{
    text_token name, t;
    sc_traffic of = {0};
    uint64_t *link = NULL;
    double *share = NULL;
    uint32_t cap_link = 0, cap_share = 0;
    if (!word(r, &name, "the name of a traffic") ||
        !add_name(r, &r->traffics, &name, "traffic", r->b->g.n_traffic))
        return false;
    while ((t = text_next(&r->l)).kind == TEXT_WORD) {
        link = sc_grow(r->a, link, of.n, &cap_link, 8, sizeof *link);
        share = sc_grow(r->a, share, of.n, &cap_share, 8, sizeof *share);
        if (!link || !share) return nomem(r);
        if (!read_share(r, &t, &link[of.n], &share[of.n])) return false;
        of.n++;
    }
    if (t.kind != TEXT_END) return syntax(r, &t, "LINK=SHARE");
    of.link = link;
    of.share = share;
    sc_graph_add_traffic(r->b, &of);
    return true;
}

static bool read_group(reader *r)
{
    text_token name, t;
    uint32_t span = 0, ax;
    if (!word(r, &name, "the name of a group") ||
        !add_name(r, &r->groups, &name, "group", r->b->g.n_groups))
        return false;
    if (name.len == 0) return syntax(r, &name, "the name of a group");
    t = text_next(&r->l);
    if (t.kind == TEXT_WORD && text_is(&t, "span")) {
        do {
            if (!word(r, &t, "an axis") ||
                !get_name(r, &r->axes, &t, "axis", &ax))
                return false;
            span |= 1u << ax;
            t = text_next(&r->l);
        } while (t.kind == TEXT_COMMA);
    }
    if (t.kind != TEXT_END) return syntax(r, &t, "span AXIS,AXIS");
    const char *s = keep(r, &name);
    if (s) sc_graph_add_group(r->b, s, span);
    return s != NULL;
}

/* ---- ops ----------------------------------------------------------------- */

enum {
    A_CLASS,
    A_STREAM,
    A_WORK,
    A_LATENCY,
    A_BYTES,
    A_FLOPS,
    A_CAT,
    A_GROUP,
    A_PEER,
    A_TRAFFIC,
    A_NAME,
    A_AFTER
};

static const char *const attributes[] = {
    "class", "stream", "work",    "latency", "bytes", "flops", "cat",
    "group", "peer",   "traffic", "name",    "after", NULL};

/* Labels, to be found when all ops are known. */
static bool read_labels(reader *r, text_token t, ref_kind kind, uint32_t of,
                        uint32_t *n)
{
    for (;;) {
        label_ref *v =
            sc_grow(r->tmp, r->refs, r->n_refs, &r->cap_refs, 256, sizeof *v);
        if (!v) return nomem(r);
        r->refs = v;
        if (kind == REF_UNTIL) of = r->n_ends++;
        r->refs[r->n_refs++] = (label_ref){of, t, r->l.line, kind};
        (*n)++;
        text_line ahead = r->l;
        if (text_next(&ahead).kind != TEXT_COMMA) return true;
        r->l = ahead;
        if (!word(r, &t, "a label")) return false;
    }
}

/* A class, several, or "": none. */
static bool read_classes(reader *r, text_token t, sc_op_desc *d)
{
    for (r->n_dev = 0; t.len > 0;) {
        uint32_t *v =
            sc_grow(r->tmp, r->dev, r->n_dev, &r->cap_dev, 8, sizeof *v);
        if (!v) return nomem(r);
        r->dev = v;
        if (!get_name(r, &r->classes, &t, "class", &v[r->n_dev])) return false;
        r->n_dev++;
        text_line ahead = r->l;
        if (text_next(&ahead).kind != TEXT_COMMA) break;
        r->l = ahead;
        if (!word(r, &t, "a class")) return false;
    }
    d->cls = r->n_dev ? r->dev[0] : SC_NONE;
    if (r->n_dev < 2) return true;
    d->dev = r->dev;
    d->n_dev = r->n_dev;
    return true;
}

static bool read_enum8(reader *r, const text_token *t, const char *what,
                       const char *const *names, uint8_t *out)
{
    uint32_t v;
    if (!text_enum(&r->l, t, what, names, &v)) return false;
    *out = (uint8_t)v;
    return true;
}

static bool read_attribute(reader *r, uint32_t key, const text_token *t,
                           sc_op_desc *d)
{
    const text_line *l = &r->l;
    uint32_t n = 0;
    switch (key) {
    case A_CLASS: return read_classes(r, *t, d);
    case A_TRAFFIC: return get_name(r, &r->traffics, t, "traffic", &d->traffic);
    case A_PEER: return get_name(r, &r->classes, t, "class", &d->peer);
    case A_GROUP: return get_name(r, &r->groups, t, "group", &d->group);
    case A_STREAM:
        return read_enum8(r, t, "stream", sc_stream_names, &d->stream);
    case A_CAT:
        if (!read_enum8(r, t, "category", sc_cat_names, &d->cat)) return false;
        if (d->cat != SC_CAT_BUBBLE) return true;
        sc_error(r->err, SC_EINPUT, SC_C_RANGE, text_pos(l, t), NULL,
                 "bubble is idle time, never an op's category");
        return false;
    case A_WORK: return text_time(l, t, &d->work);
    case A_LATENCY: return text_time(l, t, &d->latency);
    case A_BYTES: return text_bytes(l, t, &d->bytes);
    case A_FLOPS: return text_flops(l, t, &d->flops);
    case A_NAME: return (d->name = keep(r, t)) != NULL;
    default: return read_labels(r, *t, REF_AFTER, r->n_ops, &n);
    }
}

static bool read_attributes(reader *r, sc_op_desc *d, uint32_t *given)
{
    for (;;) {
        text_token t = text_next(&r->l), v;
        uint32_t key;
        if (t.kind == TEXT_END) return true;
        if (t.kind != TEXT_WORD) return syntax(r, &t, "an attribute");
        if (!text_enum(&r->l, &t, "attribute of an op", attributes, &key) ||
            !word(r, &v, "a value"))
            return false;
        if (*given >> key & 1) {
            sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, text_pos(&r->l, &t),
                     NULL, "%s is given twice", attributes[key]);
            return false;
        }
        *given |= 1u << key;
        if (!read_attribute(r, key, &v, d)) return false;
    }
}

static bool read_op(reader *r)
{
    text_token label, kind;
    sc_op_desc d = {.group = SC_NONE, .peer = SC_NONE, .traffic = SC_NONE};
    uint32_t given = 0;
    if (!word(r, &label, "the label of an op")) return false;
    bool unique = add_name(r, &r->labels, &label, "op", r->n_ops);
    r->line[r->n_ops] = r->l.line;
    bool ok = word(r, &kind, "the kind of the op") &&
              read_enum8(r, &kind, "kind of op", sc_op_kind_names, &d.kind) &&
              read_attributes(r, &d, &given);
    r->n_ops++; /* a wrong op counts: its label is known */
    if (!ok || !unique) return false;
    if (!(given >> A_STREAM & 1)) d.stream = graph_default_stream(d.kind);
    if (!(given >> A_CAT & 1)) d.cat = graph_default_cat(d.kind, d.stream);
    if (!(given >> A_NAME & 1) && !(d.name = keep(r, &label))) return false;
    if (d.work && d.kind == SC_OP_MARK) {
        sc_error(r->err, SC_EINPUT, SC_C_RANGE, text_pos(&r->l, &kind), NULL,
                 "a mark takes no time");
        return false;
    }
    if (r->b->g.n_classes == 0) {
        graph_map_add(&r->classes, "all", 3, 0);
        sc_graph_add_class(r->b, "all", 0, NULL);
    }
    const char *fault = graph_op_fault(&r->b->g, &d);
    if (fault) {
        sc_error(r->err, SC_EINPUT, SC_C_RANGE, text_pos(&r->l, &kind), NULL,
                 "the op %s", fault);
        return false;
    }
    sc_graph_add_op(r->b, &d);
    return true;
}

/* ---- tensors ------------------------------------------------------------- */

static bool read_tensor_key(reader *r, const text_token *key, sc_lifetime *l)
{
    static const char *const keys[] = {"class", "bytes", "from", "until", NULL};
    uint32_t which, n = 0;
    text_token t;
    if (!text_enum(&r->l, key, "attribute of a tensor", keys, &which) ||
        !word(r, &t, "a value"))
        return false;
    if (which > 1 && (which == 2 ? l->first != SC_NONE : l->n_last > 0)) {
        sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, text_pos(&r->l, key), NULL,
                 "%s is given twice", keys[which]);
        return false;
    }
    switch (which) {
    case 0: return get_name(r, &r->classes, &t, "class", &l->device);
    case 1: return text_bytes(&r->l, &t, &l->bytes);
    case 2:
        l->first = 0; /* found later */
        if (!read_labels(r, t, REF_FROM, r->n_tensors, &n)) return false;
        return n == 1 || syntax(r, &t, "one label");
    default: return read_labels(r, t, REF_UNTIL, r->n_tensors, &l->n_last);
    }
}

static bool read_tensor(reader *r)
{
    text_token name, t;
    sc_lifetime l = {.first = SC_NONE};
    if (!word(r, &name, "the name of a tensor") ||
        !word(r, &t, "the kind of the tensor") ||
        !read_enum8(r, &t, "kind of tensor", sc_mem_kind_names, &l.kind))
        return false;
    while ((t = text_next(&r->l)).kind == TEXT_WORD)
        if (!read_tensor_key(r, &t, &l)) return false;
    if (t.kind != TEXT_END) return syntax(r, &t, "an attribute");
    sc_lifetime *all = sc_grow(r->a, r->tensor, r->n_tensors, &r->cap_tensors,
                               16, sizeof *all);
    if (!all || !(l.name = keep(r, &name))) return nomem(r);
    r->tensor = all;
    all[r->n_tensors++] = l;
    return true;
}

static bool read_line(reader *r)
{
    text_token t = text_next(&r->l);
    if (t.kind == TEXT_END) return true;
    if (!r->started) {
        text_token version = text_next(&r->l);
        r->started = true;
        if (t.kind == TEXT_WORD && text_is(&t, "graph") &&
            version.kind == TEXT_WORD && text_is(&version, "1"))
            return line_end(r);
        return syntax(r, &t, "\"graph 1\" on the first line");
    }
    static const char *const lines[] = {"axis",    "class",  "group", "op",
                                        "traffic", "tensor", NULL};
    uint32_t what;
    if (t.kind != TEXT_WORD)
        return syntax(r, &t, "axis, class, group, traffic, op or tensor");
    if (!text_enum(&r->l, &t, "line of a graph", lines, &what)) return false;
    switch (what) {
    case 0: return read_axis(r);
    case 1: return read_class(r);
    case 2: return read_group(r);
    case 3: return read_op(r);
    case 4: return read_traffic(r);
    default: return read_tensor(r);
    }
}

/* ---- the whole text ------------------------------------------------------ */

/* Bounds for the tables: lines that may be ops, and others. */
static bool prepare(reader *r, const char *text, size_t len)
{
    size_t ops = 0, others = 0;
    for (const char *p = text, *end = text + len; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
        bool quote = p < end && *p == '"'; /* the keyword may be quoted */
        if (p < end && (*p == 'o' || quote)) ops++;
        if (p < end && (*p == 'c' || *p == 'g' || *p == 't' || quote)) others++;
        if (!nl) break;
        p = nl + 1;
    }
    if (ops >= SC_NONE / 2 || others >= SC_NONE / 2) {
        sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(r->file), NULL,
                 "more than %u lines", SC_NONE / 2);
        return false;
    }
    if (!(r->b = sc_graph_builder_new(r->a)) ||
        !graph_map_init(&r->axes, r->tmp, SC_AXES) ||
        !graph_map_init(&r->classes, r->tmp, (uint32_t)others + 1) ||
        !graph_map_init(&r->groups, r->tmp, (uint32_t)others) ||
        !graph_map_init(&r->traffics, r->tmp, (uint32_t)others) ||
        !graph_map_init(&r->labels, r->tmp, (uint32_t)ops) ||
        !(r->line = SC_NEW_N(r->tmp, uint32_t, ops)))
        return nomem(r);
    sc_graph_reserve(r->b, (uint32_t)ops, 0);
    r->b->file = r->file;
    r->b->line = r->line;
    return true;
}

static void set_ref(reader *r, const label_ref *ref, sc_op op)
{
    if (ref->kind == REF_AFTER) sc_graph_add_dep(r->b, op, ref->of);
    if (ref->kind == REF_UNTIL) r->end[ref->of] = op;
    /* of a wrong line there is no tensor */
    if (ref->kind == REF_FROM && ref->of < r->n_tensors)
        r->tensor[ref->of].first = op;
}

static void resolve(reader *r)
{
    if (!(r->end = SC_NEW_N(r->a, sc_op, r->n_ends))) {
        r->failed = true;
        nomem(r);
        return;
    }
    for (uint32_t k = 0; k < r->n_refs; k++) {
        const label_ref *ref = &r->refs[k];
        const text_token *t = &ref->label;
        const graph_map_slot *s = graph_map_find(&r->labels, t->s, t->len);
        if (s->key) {
            set_ref(r, ref, s->value);
            continue;
        }
        r->failed = true;
        r->l.line = ref->line;
        sc_error(r->err, SC_EINPUT, SC_C_REFERENCE, text_pos(&r->l, t), NULL,
                 "no op is labelled \"%.*s\"", t->len < 80 ? (int)t->len : 80,
                 t->s);
    }
}

static sc_status read_all(reader *r, const char *text, size_t len,
                          sc_graph *out)
{
    if (!prepare(r, text, len)) return r->err->status;
    const char *p = text, *end = text + len;
    for (uint32_t line = 1; p < end && line < UINT32_MAX; line++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        r->l = (text_line){p, p, nl ? nl : end, r->file, line, r->a, r->err};
        if (!read_line(r)) r->failed = true;
        p = nl ? nl + 1 : end;
    }
    if (!r->started)
        return sc_error(r->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(r->file),
                        "the first line is \"graph 1\"", "the file is empty");
    resolve(r);
    if (r->failed) return r->err->status;
    for (uint32_t i = 0, at = 0; i < r->n_tensors; at += r->tensor[i++].n_last)
        r->tensor[i].last = r->end + at;
    sc_graph_set_lifetimes(r->b, r->n_tensors, r->tensor);
    return sc_graph_build(r->b, r->a, out, r->err);
}

sc_status sc_graph_read(const char *text, size_t len, const char *file,
                        sc_arena *a, sc_graph *out, sc_err *err)
{
    sc_err own;
    sc_err_init(&own); /* the status below is of this text alone */
    sc_arena tmp;
    sc_arena_init(&tmp, a->limit);
    reader r = {.file = file, .a = a, .tmp = &tmp, .err = &own};
    sc_status status = read_all(&r, text, len, out);
    sc_arena_free(&tmp);
    for (uint32_t i = 0; i < own.n; i++) {
        const sc_diag *d = &own.d[i];
        sc_pos pos = {d->file[0] ? d->file : NULL, d->line, d->col};
        sc_error(err, own.status, d->code, pos, d->hint[0] ? d->hint : NULL,
                 "%s", d->msg);
    }
    if (err) err->n_more += own.n_more;
    return status;
}
