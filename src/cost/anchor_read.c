/* SPDX-License-Identifier: Apache-2.0 */
/* anchor_read.c - reads own runs from a profile. */
#include "cost/anchor.h"

#include <stdlib.h>
#include <string.h>

sc_status anchor_number(const sc_node *n, double lo, double hi, double *out,
                        sc_err *err)
{
    if (n->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, n->pos, NULL,
                        "'%s' is not a number", n->key);
    SC_TRY(sc_unit_parse(n->text, SC_U_NONE, n->pos, out, err));
    if (*out >= lo && *out <= hi) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, n->pos, NULL,
                    "'%s' is %g, outside [%g, %g]", n->key, *out, lo, hi);
}

typedef struct fields {
    const char *id, *key, *name[SC_N_TRAIT_NAMES];
    double measured, predicted, moved, noise, network;
    bool unseen;
    const sc_node *sizes, *shares;
} fields;

#define OFF(f) offsetof(fields, f)
#define NUMBER(key, of, lo, hi)                                           \
    {                                                                     \
        .name = key, .type = SC_T_QUANTITY, .offset = OFF(of), .min = lo, \
        .max = hi, .required = true                                       \
    }
#define TIME(key, of)                                                \
    {                                                                \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_TIME,       \
        .offset = OFF(of), .min = 1e-9, .max = 1e9, .required = true \
    }
#define WORD(key, of)                                                         \
    {                                                                         \
        .name = key, .type = SC_T_STRING, .offset = OFF(of), .required = true \
    }

static const sc_key anchor_keys[] = {
    WORD("id", id),
    TIME("measured", measured),
    TIME("predicted", predicted),
    TIME("moved", moved),
    NUMBER("noise", noise, 1e-4, 1),
    NUMBER("network", network, 0, 2),
    {.name = "unseen", .type = SC_T_BOOL, .offset = OFF(unseen)},
    WORD("key", key),
    WORD("release", name[SC_TRAIT_RELEASE]),
    WORD("device", name[SC_TRAIT_DEVICE]),
    WORD("recipe", name[SC_TRAIT_PRECISION]),
    WORD("model_name", name[SC_TRAIT_MODEL]),
    {.name = "sizes",
     .type = SC_T_NODE,
     .offset = OFF(sizes),
     .required = true},
    {.name = "shares",
     .type = SC_T_NODE,
     .offset = OFF(shares),
     .required = true},
    {0},
};

static sc_status read_sizes(const sc_node *map, sc_traits *t, sc_err *err)
{
    for (int k = 0; k < (int)SC_N_TRAIT_SIZES; k++) {
        const sc_node *n = map->kind == SC_N_MAP
                               ? sc_node_get(map, sc_trait_size_names[k])
                               : NULL;
        if (!n)
            return sc_error(err, SC_EINPUT, SC_C_MISSING, map->pos,
                            "`stepcast calibrate --runs` writes them all",
                            "the sizes lack '%s'", sc_trait_size_names[k]);
        SC_TRY(anchor_number(n, 1e-3, 1e18, &t->size[k], err));
    }
    return SC_OK;
}

static sc_status read_shares(const sc_node *map, sc_arena *a, sc_traits *t,
                             sc_err *err)
{
    if (map->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, map->pos, NULL,
                        "'shares' is a map of parameters");
    sc_share *share = SC_NEW_N(a, sc_share, (size_t)map->n + 1);
    if (!share) return sc_error_nomem(err);
    for (const sc_node *n = map->child; n; n = n->next) {
        int p = sc_param_find(n->key);
        double v = 0;
        if (p < 0)
            return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, n->key_pos,
                            "`stepcast show parameters` lists them",
                            "unknown parameter '%s'", n->key);
        SC_TRY(anchor_number(n, -100, 100, &v, err));
        share[t->n_shares++] = (sc_share){(sc_param)p, v};
    }
    t->share = share;
    return SC_OK;
}

static sc_status read_hex(const char *text, sc_pos pos, uint64_t *out,
                          sc_err *err)
{
    char *end = NULL;
    *out = strtoull(text, &end, 16);
    if (strlen(text) == 16 && *end == '\0') return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TYPE, pos, NULL,
                    "\"%.20s\" is not 16 hexadecimal digits", text);
}

static sc_status read_one(const sc_node *n, sc_arena *a, sc_anchor *out,
                          sc_err *err)
{
    fields f = {0};
    SC_TRY(sc_schema_read(anchor_keys, n, &f, NULL, a, err));
    sc_anchor x = {.id = f.id,
                   .measured_s = f.measured,
                   .predicted_s = f.predicted,
                   .moved_s = f.moved,
                   .noise = f.noise};
    x.traits = (sc_traits){.unseen = f.unseen, .network = f.network};
    memcpy(x.traits.name, f.name, sizeof f.name);
    SC_TRY(read_hex(f.key, n->pos, &x.traits.key, err));
    SC_TRY(read_sizes(f.sizes, &x.traits, err));
    SC_TRY(read_shares(f.shares, a, &x.traits, err));
    *out = x;
    return SC_OK;
}

static sc_status same_base(const sc_node *root, const sc_cost *base,
                           sc_err *err)
{
    const sc_node *n = sc_node_get(root, "base");
    uint64_t hash = 0;
    if (!n || n->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, root->pos,
                        "`stepcast calibrate --runs` writes it",
                        "a profile with 'anchors' needs 'base'");
    SC_TRY(read_hex(n->text, n->pos, &hash, err));
    if (hash == base->hash) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, n->pos,
                    "run `stepcast calibrate --runs` again",
                    "the profile's runs were compared with another fit");
}

sc_status anchor_read(const sc_node *root, const sc_cost *base, sc_arena *a,
                      sc_cost *inout, sc_err *err)
{
    const sc_node *seq = sc_node_get(root, "anchors");
    if (!seq) return SC_OK;
    if (seq->kind != SC_N_SEQ || seq->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, seq->pos, NULL,
                        "'anchors' is a list of measured runs");
    SC_TRY(same_base(root, base, err));
    sc_anchor *list = SC_NEW_N(a, sc_anchor, seq->n);
    sc_anchors *s = SC_NEW(a, sc_anchors);
    uint32_t k = 0;
    sc_status first = SC_OK;
    if (!list || !s) return sc_error_nomem(err);
    for (const sc_node *n = seq->child; n; n = n->next) {
        sc_status st = read_one(n, a, &list[k++], err);
        if (first == SC_OK) first = st;
    }
    SC_TRY(first);
    SC_TRY(sc_anchors_fit(list, k, base, base->cov, a, s, err));
    SC_TRY(sc_anchors_level(s, a, err));
    inout->anchors = s;
    return SC_OK;
}
