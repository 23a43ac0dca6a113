/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - reads model.yml: the keys of sc_transformer_keys as one mapping, or
 * a network of operators.  JSON with the same keys is valid YAML too. */
#include "model/net_read.h"
#include "model/read.h"

#include <string.h>

static void find_where(const sc_node *map, model_where *w)
{
    model_where_all(w, map->pos);
    for (const sc_node *n = map->child; n; n = n->next) {
        for (int i = 0; i < MODEL_N_FIELDS; i++) {
            if (strcmp(n->key, sc_transformer_keys[i].name) != 0) continue;
            w->at[i] = n->pos;
        }
    }
}

/* After errors in single keys, contradictions between the others are reported
 * in the same pass, but none that a refused value may have caused. */
static void check_rest(const sc_node *map, const model_where *w, sc_arena *a,
                       sc_err *err)
{
    sc_transformer t = {0};
    if (sc_schema_defaults(sc_transformer_keys, &t, a, NULL) != SC_OK) return;
    for (const sc_node *n = map->child; n; n = n->next) {
        for (const sc_key *k = sc_transformer_keys; k->name; k++) {
            if (n->kind != SC_N_SCALAR || strcmp(n->key, k->name) != 0)
                continue;
            (void)sc_schema_set(k, n->text, n->pos, &t, a, NULL);
        }
    }
    if (!t.layers || !t.hidden || !t.heads || !t.vocab) return;
    if (!t.kv_heads && sc_node_get(map, "kv_heads")) t.kv_heads = t.heads;
    if (!t.head_dim && sc_node_get(map, "head_dim")) t.head_dim = 1;
    if ((!t.max_seq && sc_node_get(map, "max_seq")) ||
        (!t.positions && sc_node_get(map, "positions"))) {
        t.position = SC_POS_NONE;
    }
    if (t.kv_rank == 0 && sc_node_get(map, "kv_rank")) t.head_dim = 1;
    model_dense_only(&t);
    (void)model_complete(&t, w, err);
}

sc_status model_read_map(const sc_node *map, const char *fallback,
                         sc_source source, sc_arena *a, const sc_model **out,
                         sc_err *err)
{
    sc_transformer t = {0};
    model_where w;

    if (map->kind != SC_N_MAP) {
        return sc_error(err, SC_EINPUT, SC_C_TYPE, map->pos,
                        "write keys such as layers: 24",
                        "a model must be a mapping of keys");
    }
    find_where(map, &w);
    SC_TRY(sc_schema_defaults(sc_transformer_keys, &t, a, err));
    sc_status s = sc_schema_read(sc_transformer_keys, map, &t, NULL, a, err);
    if (s != SC_OK) {
        check_rest(map, &w, a, err);
        return s;
    }
    if (!t.name || !*t.name) t.name = fallback;
    return model_make(&t, &w, source, a, out, err);
}

const char *model_stem(const char *path, sc_arena *a)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return sc_strndup(a, base, dot ? (size_t)(dot - base) : strlen(base));
}

sc_status model_read_yaml(const char *text, size_t len, const char *file,
                          sc_arena *a, const sc_model **out, sc_err *err)
{
    sc_node *root;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_YAML, file, a, &root, err));
    const char *name = model_stem(file, a);
    if (!name) return sc_error_nomem(err);
    if (root->kind == SC_N_MAP && sc_node_get(root, "operators")) {
        const sc_net *g;
        SC_TRY(net_read_map(root, name, a, &g, err));
        return model_of_net(g, (sc_source){0}, a, out, err);
    }
    return model_read_map(root, name, (sc_source){0}, a, out, err);
}
