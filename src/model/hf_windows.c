/* SPDX-License-Identifier: Apache-2.0 */
/* hf_windows.c - reads layers of several kinds in a config.json: windows in
 * some layers, MLPs without experts in some. */
#include "model/hf.h"

#include <stdio.h>
#include <string.h>

/* The layers of a list that have a window. */
typedef struct kinds {
    int64_t n, sliding, second, first_full; /* second, first_full: -1: none */
} kinds;

/* Whether layer `c` of the list has a window; *ok becomes false if it has no
 * known kind of attention. */
static bool is_sliding(const sc_node *c, bool *ok)
{
    static const char *const words[] = {"sliding_attention",
                                        "chunked_attention"};
    const char *text = c->kind == SC_N_SCALAR ? c->text : "";
    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (strcmp(text, words[i]) == 0) return true;
    if (strcmp(text, "full_attention") != 0) *ok = false;
    return false;
}

static kinds kinds_of(const sc_node *list, bool *ok)
{
    kinds k = {0, 0, -1, -1};
    for (const sc_node *c = list->child; c; c = c->next, k.n++) {
        bool sliding = is_sliding(c, ok);
        if (!sliding && k.first_full < 0) k.first_full = k.n;
        if (sliding && k.sliding++ == 1) k.second = k.n;
    }
    return k;
}

/* Whether layers 0, `every`, ... have a window or, with `full`, all layers but
 * `full` - 1, 2 `full` - 1, ... */
static bool fits(const sc_node *list, int64_t every, int64_t full)
{
    int64_t i = 0;
    bool ok = true;
    for (const sc_node *c = list->child; c && ok; c = c->next, i++) {
        bool window = full ? (i + 1) % full != 0 : i % every == 0;
        if (is_sliding(c, &ok) != window) ok = false;
    }
    return ok;
}

void hf_window_letters(hf_reader *r, char *s)
{
    size_t n = strlen(s), period = 1;
    while (period < n && strncmp(s, s + period, n - period) != 0) period++;
    s[period] = '\0';
    r->t.window_every = r->t.full_every = 0;
    if (!strchr(s, 'W'))
        r->t.window = 0;
    else if (strchr(s, 'F'))
        r->t.window_pattern = s;
}

/* Accepts window and full layers in any order. */
static void any_order(hf_reader *r, const sc_node *list, int64_t n)
{
    char *s =
        n > 0 && n <= 100000 ? SC_NEW_N(r->arena, char, (uint64_t)n + 1) : NULL;
    bool ok = true;
    int64_t i = 0;
    for (const sc_node *c = list->child; s && c && i < n; c = c->next)
        s[i++] = is_sliding(c, &ok) ? 'W' : 'F';
    if (s && ok)
        hf_window_letters(r, s);
    else
        hf_unsupported(r, list, "layers of such kinds");
}

static void window_list(hf_reader *r, const sc_node *list)
{
    bool ok = list->kind == SC_N_SEQ;
    kinds k = {0, 0, -1, -1};
    if (ok) k = kinds_of(list, &ok);
    if (ok && r->t.layers && k.n != r->t.layers) {
        hf_fail(r, SC_C_CONFLICT, list->pos, "one kind for each layer",
                "there are %lld layer_types for %lld layers", (long long)k.n,
                (long long)r->t.layers);
        return;
    }
    int64_t every = k.sliding == k.n ? 1 : k.second > 0 ? k.second : k.n;
    r->t.window_every = r->t.full_every = 0;
    r->where.at[MODEL_WINDOW_EVERY] = r->where.at[MODEL_FULL_EVERY] = list->pos;
    r->where.at[MODEL_WINDOW_PATTERN] = list->pos;
    if (ok && k.sliding == 0)
        r->t.window = 0;
    else if (ok && fits(list, every, 0))
        r->t.window_every = every;
    else if (ok && k.first_full > 0 && fits(list, 0, k.first_full + 1))
        r->t.full_every = k.first_full + 1;
    else if (ok)
        any_order(r, list, k.n);
    else
        hf_unsupported(r, list, "layers of such kinds");
}

void hf_windows(hf_reader *r, int64_t every, int64_t full)
{
    static const hf_spelling width[] = {
        {MODEL_WINDOW, {"sliding_window", "attention_chunk_size"}}};
    static const hf_spelling pattern[] = {
        {MODEL_FULL_EVERY, {"sliding_window_pattern"}}};
    const sc_node *list = hf_get(r, r->root, "layer_types");
    const sc_node *given = hf_get(r, r->root, "sliding_window_pattern");
    hf_numbers(r, width, 1, false);
    r->t.window_every = every;
    r->t.full_every = full;
    if (full && given && !list) hf_numbers(r, pattern, 1, false);
    if (list) {
        window_list(r, list);
    } else if (!every && !full) {
        r->t.window = 0; /* the file has the key, but use_sliding_window is
                            off */
    }
    bool some =
        r->t.window_every || r->t.full_every || r->t.window_pattern != NULL;
    if (some && !r->t.window && r->status == SC_OK) {
        hf_fail(r, SC_C_MISSING, list ? list->pos : r->root->pos, NULL,
                "missing key \"sliding_window\"");
    }
}

const sc_node *hf_same(hf_reader *r, const char *key)
{
    const sc_node *n = hf_get(r, r->root, key);
    if (!n || n->kind != SC_N_SEQ) return n;
    const sc_node *first = n->child;
    for (const sc_node *c = first; c; c = c->next) {
        if (c->kind == SC_N_SCALAR && first->kind == SC_N_SCALAR &&
            strcmp(c->text, first->text) == 0)
            continue;
        hf_unsupported(r, n, "layers of several sizes");
        return NULL;
    }
    return first;
}

void hf_mlp_types(hf_reader *r)
{
    const sc_node *list = hf_get(r, r->root, "mlp_layer_types");
    int64_t n = 0, dense = 0;
    const sc_node *c = list && list->kind == SC_N_SEQ ? list->child : NULL;
    for (; c; c = c->next, n++) {
        bool is = hf_is_word(c, "dense");
        if (is && dense == n) {
            dense++;
        } else if (is || !hf_is_word(c, "sparse")) {
            hf_unsupported(r, list, "dense layers behind the first");
            return;
        }
    }
    if (!list) return;
    if (n != r->t.layers) {
        hf_fail(r, SC_C_CONFLICT, list->pos, "one kind for each layer",
                "%s does not name %lld layers", list->key,
                (long long)r->t.layers);
        return;
    }
    r->t.first_dense = dense;
    r->where.at[MODEL_FIRST_DENSE] = list->pos;
}

void hf_dense_list(hf_reader *r, const char *key)
{
    const sc_node *list = hf_get(r, r->root, key);
    int64_t first = 0;
    bool leading = !list || list->kind == SC_N_SEQ;
    const sc_node *c = list && leading ? list->child : NULL;
    for (; c && leading; c = c->next, first++) {
        char want[24];
        snprintf(want, sizeof want, "%lld", (long long)first);
        leading = c->kind == SC_N_SCALAR && strcmp(c->text, want) == 0;
    }
    if (!leading) {
        hf_unsupported(r, list, "dense layers behind the first");
        return;
    }
    r->t.first_dense = first;
    if (first) r->where.at[MODEL_FIRST_DENSE] = list->pos;
}
