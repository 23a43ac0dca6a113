/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - inside model/: the places where the numbers of a transformer are
 * written, and the readers.
 */
#ifndef MODEL_READ_H
#define MODEL_READ_H

#include "model/model.h"

/* Rows of sc_transformer_keys, in their order. */
typedef enum model_field {
    MODEL_NAME,
    MODEL_LAYERS,
    MODEL_HIDDEN,
    MODEL_HEADS,
    MODEL_KV_HEADS,
    MODEL_HEAD_DIM,
    MODEL_FFN,
    MODEL_VOCAB,
    MODEL_MAX_SEQ,
    MODEL_POSITIONS,
    MODEL_WINDOW,
    MODEL_POSITION,
    MODEL_ACT,
    MODEL_NORM,
    MODEL_TIED,
    MODEL_BIAS,
    MODEL_QKV_BIAS,
    MODEL_NORM_BIAS,
    MODEL_EMBED_NORM,
    MODEL_DROPOUT,
    MODEL_PARALLEL,
    MODEL_QK_NORM,
    MODEL_NORMS,
    MODEL_ONE_NORM,
    MODEL_QK_NORM_ALL,
    MODEL_PROJ_BIAS,
    MODEL_MLP_BIAS,
    MODEL_HEAD_BIAS,
    MODEL_ATTN_GATE,
    MODEL_PLAIN_NORM,
    MODEL_RELATIVE_EACH,
    MODEL_EMBED_WIDTH,
    MODEL_REPLACED,
    MODEL_SINKS,
    MODEL_EXPERTS,
    MODEL_TOPK,
    MODEL_MOE_FFN,
    MODEL_SHARED_FFN,
    MODEL_FIRST_DENSE,
    MODEL_MOE_EVERY,
    MODEL_LATENT,
    MODEL_ROUTE_GROUPS,
    MODEL_ROUTE_TOPK,
    MODEL_ROUTER_BIAS,
    MODEL_WINDOW_EVERY,
    MODEL_FULL_EVERY,
    MODEL_WINDOW_PATTERN,
    MODEL_Q_RANK,
    MODEL_KV_RANK,
    MODEL_QK_NOPE,
    MODEL_QK_ROPE,
    MODEL_V_DIM,
    MODEL_MTP,
    MODEL_PATTERN,
    MODEL_SSM_STATE,
    MODEL_SSM_HEADS,
    MODEL_SSM_HEAD_DIM,
    MODEL_SSM_GROUPS,
    MODEL_SSM_CONV,
    MODEL_SSM_RANK,
    MODEL_FROZEN,
    MODEL_LORA,
    MODEL_LORA_MLP,
    MODEL_ENCODER,
    MODEL_DECODER_LAYERS,
    MODEL_IMAGE,
    MODEL_PATCH,
    MODEL_CLASSES,
    MODEL_N_FIELDS
} model_field;

/* Position of each field; fields that are not written have the position of the
 * whole option or map. */
typedef struct model_where {
    sc_pos at[MODEL_N_FIELDS];
} model_where;

void model_where_all(model_where *w, sc_pos pos);

static inline bool model_gated(const sc_transformer *t)
{
    return t->act == SC_ACT_SWIGLU || t->act == SC_ACT_GEGLU;
}

/* Whether blocks have their norms after the sums. */
static inline bool model_post_norm(const sc_transformer *t)
{
    return t->norms == SC_NORMS_SUMS ||
           (t->norms == SC_NORMS_DEFAULT && t->encoder && !t->image);
}

/* Fills the zero fields of `t` that have an obvious value and checks all
 * fields.  Reports all errors in one pass. */
sc_status model_complete(sc_transformer *t, const model_where *w, sc_err *err);

/* Resets `t` to a dense decoder.  After errors this avoids follow-up errors
 * about parts that lack only the refused values. */
void model_dense_only(sc_transformer *t);

/* Completes a model and generates its layers. */
sc_status model_make(const sc_transformer *t, const model_where *w,
                     sc_source source, sc_arena *a, const sc_model **out,
                     sc_err *err);

/* Reads the keys of model.yml in `map`; `fallback` is the name if it has
 * none. */
sc_status model_read_map(const sc_node *map, const char *fallback,
                         sc_source source, sc_arena *a, const sc_model **out,
                         sc_err *err);

/* Name from a path: "dir/my-model.yml" gives "my-model"; NULL: out of
 * memory. */
const char *model_stem(const char *path, sc_arena *a);

/* Read the text of a model.yml, and of a HuggingFace config.json. */
sc_status model_read_yaml(const char *text, size_t len, const char *file,
                          sc_arena *a, const sc_model **out, sc_err *err);
sc_status model_read_hf(const char *text, size_t len, const char *file,
                        sc_arena *a, const sc_model **out, sc_err *err);

/* Makes a model from a network of operators. */
sc_status model_of_net(const struct sc_net *g, sc_source source, sc_arena *a,
                       const sc_model **out, sc_err *err);

sc_status model_find(const char *name, sc_pos pos, sc_arena *a,
                     const sc_model **out, sc_err *err);

#endif
