/* SPDX-License-Identifier: Apache-2.0 */
/* hf.h - inside model/: the two halves of the HuggingFace reader. */
#ifndef MODEL_HF_H
#define MODEL_HF_H

#include "model/read.h"

typedef enum hf_kind {
    HF_GPT2,
    HF_GPT_NEOX,
    HF_OPT,
    HF_BLOOM,
    HF_MPT,
    HF_LLAMA,
    HF_MISTRAL,
    HF_QWEN2
} hf_kind;

/* What the code behind a model_type fixes, or assumes where the file says
 * nothing. */
typedef struct hf_type {
    const char *name;
    hf_kind kind;
    int position, act, norm;
    bool tied, bias, qkv_bias, dropout;
    bool ffn_4h;  /* the MLP's width may be left out: 4 hidden */
    bool need_kv; /* the type's own number of kv heads fits one size only */
} hf_type;

typedef struct hf_reader {
    const sc_node *root;
    sc_arena *arena;
    sc_err *err;
    sc_status status; /* of the first error */
    sc_transformer t;
    model_where where;
} hf_reader;

/* Child of a map that is not null, or NULL. */
const sc_node *hf_get(const sc_node *map, const char *key);

/* These record an error in the reader and go on. */
void hf_fail(hf_reader *r, sc_code code, sc_pos pos, const char *hint,
             const char *fmt, ...) SC_PRINTF(5, 6);
bool hf_value(hf_reader *r, const sc_node *n, sc_key key, void *target);
bool hf_int(hf_reader *r, const sc_node *n, model_field field);
bool hf_bool(hf_reader *r, const sc_node *map, const char *key, bool fallback);
double hf_number(hf_reader *r, const sc_node *map, const char *key,
                 double fallback);
const char *hf_string(hf_reader *r, const sc_node *map, const char *key);

/* Errors for keys that make another kind of model of it. */
void hf_refuse(hf_reader *r);
/* Everything but the plain numbers: activation, positions, biases, ... */
void hf_details(hf_reader *r, const hf_type *type);

#endif
