/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - the names of things and the keys of model.yml. */
#include "model/read.h"

#include <stddef.h>

const char *const sc_dimname_names[] = {"batch", "seq",   "hidden", "head",
                                        "ffn",   "vocab", "expert", NULL};
const char *const sc_op_type_names[] = {
    "embed",     "position", "norm",        "linear", "rope",
    "attention", "act",      "dropout_add", "loss",   NULL};
const char *const sc_position_names[] = {"learned", "rotary", "alibi", "none",
                                         NULL};
const char *const sc_act_names[] = {"gelu", "relu", "swiglu", "geglu", NULL};
const char *const sc_norm_names[] = {"layer", "rms", NULL};

_Static_assert(SC_COUNT(sc_dimname_names) == SC_N_DIMNAMES + 1, "names");
_Static_assert(SC_COUNT(sc_op_type_names) == SC_N_OP_TYPES + 1, "names");

#define INT(key, lo, hi, text)                                     \
    .name = #key, .type = SC_T_INT, .unit = SC_U_COUNT,            \
    .offset = offsetof(sc_transformer, key), .min = lo, .max = hi, \
    .meta = "N", .help = text
#define ENUM(key, values, first, text)                                        \
    .name = #key, .type = SC_T_ENUM, .offset = offsetof(sc_transformer, key), \
    .names = values, .def = first, .help = text
#define BOOL(key, value, text)                                                \
    .name = #key, .type = SC_T_BOOL, .offset = offsetof(sc_transformer, key), \
    .def = value, .help = text

/* Limits: far beyond any model, small enough that no product of an operator's
 * extents overflows 64 bits. */
const sc_key sc_transformer_keys[] = {
    {.name = "name",
     .type = SC_T_STRING,
     .offset = offsetof(sc_transformer, name),
     .meta = "NAME",
     .help = "name in reports; default: the file's name"},
    {INT(layers, 1, 100000, "transformer blocks"), .required = true},
    {INT(hidden, 1, 1 << 20, "width of the residual stream"), .required = true},
    {INT(heads, 1, 1 << 16, "attention (query) heads"), .required = true},
    {INT(kv_heads, 1, 1 << 16,
         "key and value heads (GQA, MQA); default: heads")},
    {INT(head_dim, 1, 1 << 16, "elements of a head; default: hidden / heads")},
    {INT(ffn, 1, 1 << 24,
         "width of the MLP; default: 4 hidden, or 8/3 hidden rounded up to "
         "256 if gated")},
    {INT(vocab, 1, 1 << 24, "tokens of the vocabulary"), .required = true},
    {INT(max_seq, 1, 1 << 30,
         "longest sequence; needed where position is "
         "learned")},
    {INT(positions, 1, 1 << 30,
         "rows of a learned position table; default: max_seq")},
    {INT(window, 1, 1 << 30,
         "positions that sliding-window attention sees; default: all")},
    {ENUM(position, sc_position_names, "learned", "position information")},
    {ENUM(act, sc_act_names, "gelu",
          "activation of the MLP; swiglu and geglu are gated")},
    {ENUM(norm, sc_norm_names, "layer", "layer norm or RMS norm")},
    {BOOL(tied, "yes", "the head shares the embedding's weight")},
    {BOOL(bias, "yes", "linear layers have biases")},
    {BOOL(qkv_bias, "no", "qkv has a bias even without `bias`")},
    {BOOL(norm_bias, "yes", "layer norms have biases; RMS norms never do")},
    {BOOL(embed_norm, "no", "a norm after the embedding")},
    {BOOL(dropout, "no", "trained with dropout")},
    {BOOL(parallel, "no", "attention and MLP both read the block's input")},
    {0}};

_Static_assert(SC_COUNT(sc_transformer_keys) == MODEL_N_FIELDS + 1,
               "one field per key");
