/* SPDX-License-Identifier: Apache-2.0 */
/* doc.c - events of either format, and the tree built from them. */
#include "base/docread.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sc_status doc_emit(doc_sink *s, const sc_event *ev)
{
    if (ev->kind == SC_EV_MAP_BEGIN || ev->kind == SC_EV_SEQ_BEGIN) {
        if (s->depth == SC_DOC_MAX_DEPTH)
            return sc_error(s->err, SC_EINPUT, SC_C_TOO_BIG, ev->pos, NULL,
                            "nested deeper than %d levels", SC_DOC_MAX_DEPTH);
        s->depth++;
    } else if (ev->kind == SC_EV_MAP_END || ev->kind == SC_EV_SEQ_END) {
        s->depth--;
    } else if (ev->len > 0 && memchr(ev->text, '\0', ev->len) != NULL) {
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, ev->pos, NULL,
                        "a string contains a NUL character");
    }
    return s->fn(s->ctx, ev, s->err);
}

static bool looks_like_json(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r\n", text[i]) != NULL) i++;
    return i < len && (text[i] == '{' || text[i] == '[');
}

sc_status sc_doc_events(const char *text, size_t len, sc_format fmt,
                        const char *file, sc_event_fn fn, void *ctx,
                        sc_err *err)
{
    if (len > SC_DOC_MAX_BYTES)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(file), NULL,
                        "larger than the limit of %zu MiB",
                        SC_DOC_MAX_BYTES >> 20);
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { /* UTF-8 mark */
        text += 3;
        len -= 3;
    }
    SC_TRY(utf8_check(text, len, file, err));
    if (fmt == SC_FMT_AUTO)
        fmt = looks_like_json(text, len) ? SC_FMT_JSON : SC_FMT_YAML;
    doc_sink sink = {fn, ctx, err, file, 0};
    return fmt == SC_FMT_JSON ? json_events(text, len, &sink)
                              : yaml_events(text, len, &sink);
}

/* The open maps and sequences, outermost first. */
typedef struct builder {
    sc_arena *arena;
    const char *file; /* in the arena */
    sc_node *root;

    struct {
        sc_node *node, *last;
    } open[SC_DOC_MAX_DEPTH];

    uint32_t depth;
    const char *key; /* the key of the next value */
    sc_pos key_pos;
    bool duplicates;
} builder;

static sc_node *add_node(builder *b, const sc_event *ev)
{
    sc_node *n = SC_NEW(b->arena, sc_node);
    if (n == NULL) return NULL;
    n->pos = ev->pos;
    n->pos.file = b->file;
    n->quoted = ev->quoted;
    n->key = b->key;
    n->key_pos = b->key_pos;
    b->key = NULL;
    b->key_pos = sc_pos_none();
    if (b->depth == 0) {
        b->root = n;
        return n;
    }
    sc_node *parent = b->open[b->depth - 1].node;
    sc_node *last = b->open[b->depth - 1].last;
    if (last == NULL)
        parent->child = n;
    else
        last->next = n;
    b->open[b->depth - 1].last = n;
    parent->n++;
    return n;
}

static bool is_null(const sc_event *ev)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (ev->quoted) return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (ev->len == strlen(words[i]) &&
            memcmp(ev->text, words[i], ev->len) == 0)
            return true;
    return false;
}

static int by_key(const void *a, const void *b)
{
    const sc_node *x = *(const sc_node *const *)a;
    const sc_node *y = *(const sc_node *const *)b;
    int c = strcmp(x->key, y->key);
    if (c != 0) return c;
    if (x->key_pos.line != y->key_pos.line)
        return x->key_pos.line < y->key_pos.line ? -1 : 1;
    return x->key_pos.col < y->key_pos.col ? -1 : 1;
}

static sc_status check_keys(builder *b, const sc_node *map, sc_err *err)
{
    if (map->n < 2) return SC_OK;
    sc_arena_mark mark = sc_arena_save(b->arena);
    const sc_node **sorted = SC_NEW_N(b->arena, const sc_node *, map->n);
    if (sorted == NULL) return sc_error_nomem(err);
    uint32_t n = 0;
    for (const sc_node *c = map->child; c != NULL; c = c->next) sorted[n++] = c;
    qsort(sorted, n, sizeof(sorted[0]), by_key);
    for (uint32_t i = 1, first = 0; i < n; i++) {
        if (strcmp(sorted[i]->key, sorted[first]->key) != 0) {
            first = i;
            continue;
        }
        char hint[48];
        snprintf(hint, sizeof hint, "the first one is in line %u",
                 (unsigned)sorted[first]->key_pos.line);
        sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sorted[i]->key_pos, hint,
                 "key \"%s\" occurs twice in this mapping", sorted[i]->key);
        b->duplicates = true;
    }
    sc_arena_restore(b->arena, mark);
    return SC_OK;
}

static sc_status build(void *ctx, const sc_event *ev, sc_err *err)
{
    builder *b = ctx;
    if (ev->kind == SC_EV_MAP_END || ev->kind == SC_EV_SEQ_END) {
        const sc_node *done = b->open[--b->depth].node;
        return done->kind == SC_N_MAP ? check_keys(b, done, err) : SC_OK;
    }
    if (ev->kind == SC_EV_KEY) {
        b->key = sc_strndup(b->arena, ev->text, ev->len);
        b->key_pos = ev->pos;
        b->key_pos.file = b->file;
        return b->key == NULL ? sc_error_nomem(err) : SC_OK;
    }
    sc_node *n = add_node(b, ev);
    if (n == NULL) return sc_error_nomem(err);
    if (ev->kind == SC_EV_SCALAR) {
        n->kind = is_null(ev) ? SC_N_NULL : SC_N_SCALAR;
        n->text = sc_strndup(b->arena, ev->text, ev->len);
        return n->text == NULL ? sc_error_nomem(err) : SC_OK;
    }
    n->kind = ev->kind == SC_EV_MAP_BEGIN ? SC_N_MAP : SC_N_SEQ;
    b->open[b->depth].node = n;
    b->open[b->depth].last = NULL;
    b->depth++;
    return SC_OK;
}

sc_status sc_doc_parse(const char *text, size_t len, sc_format fmt,
                       const char *file, sc_arena *arena, sc_node **out,
                       sc_err *err)
{
    builder b = {.arena = arena};
    if (file != NULL && (b.file = sc_strdup(arena, file)) == NULL)
        return sc_error_nomem(err);
    SC_TRY(sc_doc_events(text, len, fmt, file, build, &b, err));
    if (b.duplicates) return SC_EINPUT;
    if (b.root == NULL) {
        sc_event empty = {.kind = SC_EV_SCALAR, .pos = {file, 1, 1}};
        sc_node *n = add_node(&b, &empty);
        if (n == NULL || (n->text = sc_strdup(arena, "")) == NULL)
            return sc_error_nomem(err);
    }
    *out = b.root;
    return SC_OK;
}

const sc_node *sc_node_get(const sc_node *map, const char *key)
{
    if (map == NULL || map->kind != SC_N_MAP) return NULL;
    for (const sc_node *c = map->child; c != NULL; c = c->next)
        if (strcmp(c->key, key) == 0) return c;
    return NULL;
}
