/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - the names of things and the keys of model.yml. */
#include "model/read.h"

#include <stddef.h>

const char *const sc_position_names[] = {"learned", "rotary",   "alibi",
                                         "none",    "relative", NULL};
const char *const sc_act_names[] = {"gelu",   "relu",  "relu2",
                                    "swiglu", "geglu", NULL};
const char *const sc_norm_names[] = {"layer", "rms", NULL};
const char *const sc_norms_names[] = {"default", "after", "both",
                                      "before",  "sums",  NULL};

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

/* Limits are far beyond any model, but so small that no product of an
 * operator's extents overflows 64 bits. */
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
    {BOOL(qk_norm, "no", "norms of queries and keys, per head")},
    {ENUM(norms, sc_norms_names, "default",
          "norms of what parts of a block read (before), of what they made "
          "(after), both, or of the sums; default: sums of an encoder, else "
          "before")},
    {BOOL(one_norm, "no", "`parallel` parts share a norm")},
    {BOOL(qk_norm_all, "no", "`qk_norm` is over all heads together")},
    {BOOL(proj_bias, "no", "the product behind attention has a bias")},
    {BOOL(mlp_bias, "no", "MLPs have biases even without `bias`")},
    {BOOL(head_bias, "no", "the head has a bias")},
    {BOOL(attn_gate, "no",
          "a product of the block's input gates what attention made")},
    {BOOL(plain_norm, "no", "norms have no weights")},
    {BOOL(relative_each, "no",
          "each block has its own table of relative positions")},
    {INT(embed_width, 1, 1 << 20,
         "width of an encoder's embedding; default: hidden")},
    {BOOL(replaced, "no",
          "an encoder's head decides whether tokens were replaced (ELECTRA)")},
    {BOOL(sinks, "no", "a learned score per head beside the others")},
    {INT(experts, 1, 1 << 16, "routed experts of a block; default: dense")},
    {INT(topk, 1, 1 << 16, "experts that a token goes to")},
    {INT(moe_ffn, 1, 1 << 24, "width of an expert; default: ffn")},
    {INT(shared_ffn, 1, 1 << 24, "width of all shared experts together")},
    {INT(first_dense, 1, 100000, "leading blocks with a dense MLP")},
    {INT(moe_every, 1, 100000, "every n-th block has experts; default: 1")},
    {INT(latent, 1, 1 << 20, "experts work in this width; default: hidden")},
    {INT(route_groups, 1, 1 << 16,
         "groups of experts that a token's experts are chosen from")},
    {INT(route_topk, 1, 1 << 16, "of these, groups that one token reaches")},
    {BOOL(router_bias, "no", "the router has a bias even without `bias`")},
    {INT(window_every, 1, 100000,
         "blocks 0, n, 2n ... have the window; default: 1")},
    {INT(full_every, 1, 100000,
         "blocks n - 1, 2n - 1 ... see all positions; default: none")},
    {.name = "window_pattern",
     .type = SC_T_STRING,
     .offset = offsetof(sc_transformer, window_pattern),
     .meta = "LETTERS",
     .help = "a letter per block, repeated: W has the window, F sees all"},
    {INT(q_rank, 1, 1 << 20, "width that latent queries go through")},
    {INT(kv_rank, 1, 1 << 20,
         "width that keys and values go through (latent attention)")},
    {INT(qk_nope, 1, 1 << 16, "elements of a latent head without positions")},
    {INT(qk_rope, 1, 1 << 16, "elements of a latent head with positions")},
    {INT(v_dim, 1, 1 << 16, "elements of a latent head's values")},
    {INT(mtp, 1, 64, "blocks of multi-token prediction after the last")},
    {.name = "pattern",
     .type = SC_T_STRING,
     .offset = offsetof(sc_transformer, pattern),
     .meta = "LETTERS",
     .help = "a letter per block of a hybrid: M mamba, D gated DeltaNet, * "
             "attention, B both, - MLP, E experts"},
    {INT(ssm_state, 1, 1 << 16,
         "state elements of a Mamba-2 channel; width of a DeltaNet key")},
    {INT(ssm_heads, 1, 1 << 16,
         "heads of a Mamba-2 mixer; value heads of a DeltaNet")},
    {INT(ssm_head_dim, 1, 1 << 16, "elements of such a head")},
    {INT(ssm_groups, 1, 1 << 16,
         "groups of heads that share B and C, or a DeltaNet key; default: 1")},
    {INT(ssm_conv, 1, 1 << 10, "kernel size of its convolution; default: 4")},
    {INT(ssm_rank, 1, 1 << 16,
         "width that steps of Mamba-1 go through; without it Mamba-2")},
    {.name = "frozen",
     .type = SC_T_STRING,
     .offset = offsetof(sc_transformer, frozen),
     .meta = "PATTERNS",
     .help = "paths of weights that do not learn: layers.0-15.*,embedding"},
    {INT(lora, 1, 1 << 16, "rank of adapters; all other weights are frozen")},
    {BOOL(lora_mlp, "no", "adapters of the MLP too, not only of attention")},
    {BOOL(encoder, "no", "bidirectional, with a masked-language head (BERT)")},
    {INT(decoder_layers, 1, 100000,
         "blocks with cross attention behind `layers` of an encoder (T5)")},
    {INT(image, 1, 1 << 16, "pixels of an image's side (ViT)")},
    {INT(patch, 1, 1 << 12, "pixels of a patch's side")},
    {INT(classes, 1, 1 << 24, "outputs of the classifier; default: vocab")},
    {0}};

_Static_assert(SC_COUNT(sc_transformer_keys) == MODEL_N_FIELDS + 1,
               "one field per key");
