/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - finds the kinds of layers of a complete transformer. */
#include "model/network.h"

#include <stddef.h>
#include <string.h>

/* ---- kinds of blocks */

static sc_layer hybrid_kind(char letter, bool window)
{
    switch (letter) {
    case 'M': return (sc_layer){"layers.mamba.*", .mixer = SC_MIXER_MAMBA};
    case 'D': return (sc_layer){"layers.delta.*", .mixer = SC_MIXER_DELTA};
    case 'B':
        return (sc_layer){"layers.both.*", .mixer = SC_MIXER_BOTH,
                          .window = window, .causal = true};
    case '-': return (sc_layer){"layers.mlp.*", .mlp = SC_MLP_DENSE};
    case 'E': return (sc_layer){"layers.moe.*", .mlp = SC_MLP_EXPERTS};
    default:
        return (sc_layer){"layers.attention.*", .mixer = SC_MIXER_ATTENTION,
                          .window = window, .causal = true};
    }
}

/* Whether block `i` uses the model's window. */
static bool has_window(const sc_transformer *t, int64_t i)
{
    const char *p = t->window_pattern;
    int64_t every = t->window_every, full = t->full_every;
    if (p) return p[(size_t)i % strlen(p)] == 'W';
    return (every < 2 || i % every == 0) && (!full || (i + 1) % full != 0);
}

static sc_layer kind_of(const sc_transformer *t, int64_t i)
{
    bool moe = t->experts && i >= t->first_dense && (i + 1) % t->moe_every == 0;
    bool some = t->window &&
                (t->window_every > 1 || t->full_every > 1 || t->window_pattern);
    bool window = t->window && has_window(t, i);
    bool two_mlps = t->experts && (t->first_dense || t->moe_every > 1);
    sc_layer k = {moe ? "layers.moe.*" : "layers.dense.*",
                  .mixer = SC_MIXER_ATTENTION,
                  .mlp = moe ? SC_MLP_EXPERTS : SC_MLP_DENSE, .window = window,
                  .causal = !t->encoder && !t->image};
    if (i >= t->layers + t->decoder_layers) {
        k.path = "layers.mtp.*";
        k.mtp = true;
        k.window = t->window && !some;
        k.mlp = t->experts ? SC_MLP_EXPERTS : SC_MLP_DENSE;
    } else if (t->decoder_layers) {
        bool decoder = i >= t->layers;
        k.last_enc = i == t->layers - 1 && !model_post_norm(t);
        k.causal = k.cross = decoder;
        k.path = decoder      ? "layers.decoder.*"
                 : k.last_enc ? "layers.encoder_last.*"
                              : "layers.encoder.*";
    } else if (t->pattern) {
        k = hybrid_kind(t->pattern[i], window);
    } else if (some && window) {
        k.path = two_mlps && !moe ? "layers.window_dense.*" : "layers.window.*";
    }
    return k;
}

/* Finds the kind of each block among the entries, or adds a new one.  Kinds
 * differ in their paths. */
static sc_status blocks(sc_model *m, sc_arena *a, sc_err *err)
{
    const sc_transformer *t = &m->t;
    m->n_blocks = (uint32_t)(t->layers + t->decoder_layers + t->mtp);
    m->order = SC_NEW_N(a, uint8_t, m->n_blocks);
    if (!m->order) return sc_error_nomem(err);
    for (uint32_t i = 0; i < m->n_blocks; i++) {
        sc_layer k = kind_of(t, i);
        uint32_t at = 1;
        while (at < m->n_layers && strcmp(m->layer[at].path, k.path) != 0) at++;
        if (at == SC_LAYERS - 1) {
            return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "there are too many kinds of blocks");
        }
        if (at == m->n_layers) {
            k.kind = SC_LAYER_BLOCK;
            k.block = i;
            m->layer[m->n_layers++] = k;
        }
        m->layer[at].repeat++;
        m->order[i] = (uint8_t)at;
    }
    if (m->n_layers == 2) m->layer[1].path = "layers.*";
    return SC_OK;
}

/* Keys that were added after hashes had been stored change the hash only if
 * they are set. */
static bool is_later(ptrdiff_t key)
{
    return (key >= MODEL_NORMS && key <= MODEL_REPLACED) ||
           key == MODEL_FULL_EVERY || key == MODEL_WINDOW_PATTERN ||
           key == MODEL_SSM_RANK;
}

/* Hash of the numbers that determine the layers; the name has no effect. */
static uint64_t hash_of(const sc_transformer *t)
{
    const char *base = (const char *)t;
    uint64_t h = 0;
    for (const sc_key *k = sc_transformer_keys; k->name; k++) {
        const void *at = base + k->offset;
        int64_t v = 0;
        switch (k->type) {
        case SC_T_INT: v = *(const int64_t *)at; break;
        case SC_T_ENUM: v = *(const int *)at; break;
        case SC_T_BOOL: v = *(const bool *)at; break;
        default: break;
        }
        ptrdiff_t key = k - sc_transformer_keys;
        if (is_later(key)) {
            if (v == 0) continue;
            h = sc_hash(&key, sizeof key, h);
        }
        h = sc_hash(&v, sizeof v, h);
    }
    const char *p = t->window_pattern;
    if (p) h = sc_hash(p, strlen(p), h);
    return t->pattern ? sc_hash(t->pattern, strlen(t->pattern), h) : h;
}

/* Makes the layers of a complete transformer (m->layer), counts parameters and
 * sets m->hash.  SC_C_RANGE if the parameters exceed 2^53. */
static sc_status generate(sc_model *m, sc_pos pos, sc_arena *a, sc_err *err)
{
    m->layer = SC_NEW_N(a, sc_layer, SC_LAYERS);
    if (!m->layer) return sc_error_nomem(err);
    m->layer[0] = (sc_layer){"embedding", .kind = SC_LAYER_EMBED, .repeat = 1};
    m->n_layers = 1;
    SC_TRY(blocks(m, a, err));
    m->layer[m->n_layers++] =
        (sc_layer){"head", .kind = SC_LAYER_HEAD, .repeat = 1};
    m->hash = hash_of(&m->t);
    return model_kinds(m, pos, a, err);
}

/* A note for mixers that are priced like another mixer. */
static const char *note_of(const sc_transformer *t)
{
    if (!t->pattern) return NULL;
    if (strchr(t->pattern, 'D'))
        return "a gated DeltaNet has the price of a mixer of Mamba-2";
    return t->ssm_rank
               ? "the scan of Mamba-1 has the price of a scan of Mamba-2"
               : NULL;
}

sc_status model_make(const sc_transformer *t, const model_where *w,
                     sc_source source, sc_arena *a, const sc_model **out,
                     sc_err *err)
{
    sc_model *m = SC_NEW(a, sc_model);
    if (!m) return sc_error_nomem(err);

    m->t = *t;
    m->source = source;
    SC_TRY(model_complete(&m->t, w, err));
    m->t.name = m->name = sc_strdup(a, m->t.name);
    if (!m->name) return sc_error_nomem(err);
    const char **text[] = {&m->t.pattern, &m->t.window_pattern};
    for (size_t i = 0; i < SC_COUNT(text); i++) {
        if (!*text[i]) continue;
        *text[i] = sc_strdup(a, *text[i]);
        if (!*text[i]) return sc_error_nomem(err);
    }
    m->t.frozen = NULL;
    SC_TRY(generate(m, w->at[MODEL_LAYERS], a, err));
    m->note = note_of(&m->t);
    if (!t->frozen) {
        *out = m;
        return SC_OK;
    }
    return sc_model_freeze(m, t->frozen, w->at[MODEL_FROZEN], a, out, err);
}

sc_status sc_model_from_transformer(const sc_transformer *t, sc_pos pos,
                                    sc_arena *a, const sc_model **out,
                                    sc_err *err)
{
    model_where w;
    model_where_all(&w, pos);
    return model_make(t, &w, (sc_source){0}, a, out, err);
}
