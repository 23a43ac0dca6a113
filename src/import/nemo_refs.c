/* SPDX-License-Identifier: Apache-2.0 */
/* nemo_refs.c - resolves interpolations of OmegaConf. */
#include "import/nemo_refs.h"

#include "base/util.h"

#include <stdio.h>
#include <string.h>

enum { CHAIN = 16 };

/* The node at path "a.b"; NULL: there is none. */
static const sc_node *at(const sc_node *root, const char *path)
{
    const sc_node *n = root;
    while (n && *path) {
        size_t k = strcspn(path, ".");
        const sc_node *c = n->kind == SC_N_MAP ? n->child : NULL;
        while (c && (strncmp(c->key, path, k) != 0 || c->key[k])) c = c->next;
        n = c;
        path += k + (path[k] == '.');
    }
    return n;
}

/* Files of NeMo's launcher refer to their own name:
 * ${training.model.hidden_size}. */
static const sc_node *find(const sc_node *root, const sc_node *map,
                           const char *path)
{
    if (path[0] == '.') return at(map, path + 1);
    const sc_node *n = at(root, path);
    const char *dot = strchr(path, '.');
    return n || !dot ? n : at(root, dot + 1);
}

/* Evaluates "multiply:4, 16", a resolver of NeMo for two whole numbers; NULL:
 * another text. */
static const char *computed(const char *text, sc_arena *a)
{
    static const char *const names[] = {
        "multiply:", "divide_ceil:", "divide_floor:"};
    long x, y;
    char rest;
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        size_t k = strlen(names[i]);
        if (strncmp(text, names[i], k) != 0) continue;
        /* NOLINTNEXTLINE(cert-err34-c): nine digits cannot overflow */
        if (sscanf(text + k, "%9ld ,%9ld %c", &x, &y, &rest) != 2) continue;
        if (i > 0 && y == 0) return NULL;
        long v = i == 0 ? x * y : i == 1 ? (x + y - 1) / y : x / y;
        return sc_sprintf(a, "%ld", v);
    }
    return NULL;
}

/* Replaces the innermost interpolation of a value of `map`; *more: it replaced
 * one. */
static sc_status replace(const sc_node *root, const sc_node *map, sc_node *n,
                         sc_arena *a, sc_err *err, bool *more)
{
    const char *open = NULL, *value = NULL;
    *more = false;
    if (n->kind != SC_N_SCALAR) return SC_OK;
    for (const char *s = n->text; (s = strstr(s, "${")); s += 2) open = s;
    const char *close = open ? strchr(open, '}') : NULL;
    if (!close) return SC_OK;
    char *text = sc_strndup(a, open + 2, (size_t)(close - open) - 2);
    if (!text) return sc_error_nomem(err);
    const char *comma = strchr(text, ',');
    const sc_node *to = NULL;
    if (strncmp(text, "oc.env:", 7) == 0) {
        if (!comma) return SC_OK;
        value = comma + 1 + strspn(comma + 1, " ");
    } else if (!(value = computed(text, a))) {
        to = find(root, map, text);
        if (!to || to->kind == SC_N_MAP) return SC_OK;
        value = to->text;
    }
    bool whole = open == n->text && !close[1];
    if (to && to->kind != SC_N_SCALAR && !whole) return SC_OK;
    *more = true;
    if (to && whole) {
        n->kind = to->kind;
        n->child = to->child; /* the list is shared, because it never changes */
        n->n = to->n;
    }
    n->text = whole ? value
                    : sc_sprintf(a, "%.*s%s%s", (int)(open - n->text), n->text,
                                 value, close + 1);
    return n->text ? SC_OK : sc_error_nomem(err);
}

/* Follows a chain of references from one value of `map`. */
static sc_status follow(const sc_node *root, const sc_node *map, sc_node *n,
                        sc_arena *a, sc_err *err)
{
    bool more = true;
    for (int i = 0; i < CHAIN && more; i++)
        SC_TRY(replace(root, map, n, a, err, &more));
    return SC_OK;
}

static sc_status walk(const sc_node *root, sc_node *n, sc_arena *a, sc_err *err)
{
    for (sc_node *c = n->kind == SC_N_MAP ? n->child : NULL; c; c = c->next) {
        SC_TRY(follow(root, n, c, a, err));
        SC_TRY(walk(root, c, a, err));
    }
    return SC_OK;
}

sc_status nemo_refs(sc_node *root, sc_arena *a, sc_err *err)
{
    return walk(root, root, a, err);
}
