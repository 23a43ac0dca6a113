/* SPDX-License-Identifier: Apache-2.0 */
/* hf.h - inside model/: shared by the files of the HuggingFace reader. */
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
    HF_QWEN2,
    HF_MIXTRAL,
    HF_QWEN3,
    HF_QWEN3_MOE,
    HF_GPT_OSS,
    HF_DEEPSEEK,
    HF_NEMOTRON_H,
    HF_BERT,
    HF_T5,
    HF_BART,
    HF_VIT,
    HF_PLAIN, /* the row states everything */
    HF_GEMMA3,
    HF_PHI_MOE,
    HF_PHI,
    HF_FALCON,
    HF_GLM_MOE,
    HF_QWEN2_MOE,
    HF_LLAMA4,
    HF_STARCODER2,
    HF_COHERE,
    HF_DBRX,
    HF_GPTJ,
    HF_SMOLLM3,
    HF_MINIMAX_M2,
    HF_EXPERTS, /* experts in every layer, as wide as the MLP */
    HF_GROK,
    HF_MAMBA2,
    HF_MAMBA,
    HF_JAMBA,
    HF_HYBRID, /* each layer has Mamba-2 or attention, then an MLP */
    HF_STABLELM,
    HF_ERNIE_MOE,
    HF_DELTA, /* each layer has gated DeltaNet or gated attention, then an MLP
                 or experts */
    HF_AFMOE,
    HF_GPT_NEO,
    HF_XGLM,
    HF_PERSIMMON,
    HF_MODERNBERT,
    HF_FALCON_H1, /* each layer has Mamba-2 beside attention, then an MLP */
    HF_HUNYUAN
} hf_kind;

/* Parts that models of a type may have; bits of `may`. */
enum {
    HF_MOE = 1,      /* experts */
    HF_MLA = 2,      /* latent attention */
    HF_MTP = 4,      /* multi-token prediction */
    HF_STACKS = 8,   /* an encoder and a decoder */
    HF_WINDOWS = 16, /* a list of kinds of attention */
    HF_DEFAULTS = 32 /* files may omit numbers for which the type has a
                        default */
};

/* Facts that the code of a type fixes, whatever the file states; bits of
 * `has`. */
enum {
    HF_HAS_PARALLEL = 1,
    HF_HAS_ONE_NORM = 2,
    HF_HAS_QK_NORM = 4,
    HF_HAS_QK_ALL = 8,
    HF_HAS_NORMS_AFTER = 16,
    HF_HAS_NORMS_BOTH = 32,
    HF_HAS_PROJ_BIAS = 64,
    HF_HAS_MLP_BIAS = 128,
    HF_HAS_HEAD_BIAS = 256,
    HF_HAS_PLAIN_NORM = 512, /* a layer norm without bias */
    HF_HAS_OUT_BIAS = 1024,  /* `attention_bias` applies to all four products */
    HF_HAS_BARE_NORM = 2048, /* norms without weights */
    HF_HAS_NORMS_SUMS = 4096
};

/* The facts that the code behind a model_type fixes or assumes by default. */
typedef struct hf_type {
    const char *name;
    const char *arch; /* name in `architectures`, used if model_type is
                         missing */
    hf_kind kind;
    unsigned may; /* HF_MOE ... */
    unsigned has; /* HF_HAS_PARALLEL ... */
    int position, act, norm;
    bool tied, bias, qkv_bias, dropout;
    bool ffn_4h;  /* the MLP's width may be omitted: 4 hidden */
    bool need_kv; /* kv heads are required: the type's default fits only one
                     size */
} hf_type;

typedef struct hf_reader {
    const sc_node *root;
    const sc_node *outer; /* the map that contains the root as text_config;
                             NULL: the root is the file */
    sc_arena *arena;
    sc_err *err;
    sc_status status; /* first error */
    sc_transformer t;
    model_where where;
    const char *note;      /* for people: what is left out or assumed; NULL:
                              nothing */
    const sc_node **known; /* [n_known] children that were read */
    uint32_t n_known, cap_known;
} hf_reader;

/* A child of a map, or NULL if it is missing or null.  The key then counts as
 * understood. */
const sc_node *hf_get(hf_reader *r, const sc_node *map, const char *key);

/* These functions record an error in the reader and return. */
void hf_fail(hf_reader *r, sc_code code, sc_pos pos, const char *hint,
             const char *fmt, ...) SC_PRINTF(5, 6);
bool hf_int(hf_reader *r, const sc_node *n, model_field field);
bool hf_bool(hf_reader *r, const sc_node *map, const char *key, bool fallback);
double hf_number(hf_reader *r, const sc_node *map, const char *key,
                 double fallback);
const char *hf_string(hf_reader *r, const sc_node *map, const char *key);

/* Adds a note that predictions show as a warning. */
void hf_note(hf_reader *r, const char *fmt, ...) SC_PRINTF(2, 3);

/* Reads a count that may be 0; 0 if the file does not have it. */
int64_t hf_count(hf_reader *r, const char *key, model_field field);
bool hf_is(hf_reader *r, const char *key, const char *word);
bool hf_is_word(const sc_node *n, const char *word);

/* Number of spellings of one number; HuggingFace treats them as equal. */
#define HF_SPELLINGS 8

typedef struct hf_spelling {
    model_field field;
    const char *key[HF_SPELLINGS]; /* ends with NULL */
} hf_spelling;

/* Reads each number in the spelling of the file; two that disagree are an
 * error. */
void hf_numbers(hf_reader *r, const hf_spelling *s, size_t n, bool required);

void hf_unsupported(hf_reader *r, const sc_node *n, const char *what);
/* Reads the activation from string `key` of `map`, and whether it is gated. */
void hf_act(hf_reader *r, const sc_node *map, const char *key);

/* Makes the object that describes the language model the root. */
void hf_language_model(hf_reader *r);
/* Finds the type of the file; NULL: an error was recorded. */
const hf_type *hf_find_type(hf_reader *r);
/* Reports keys that were not read and that may change the network. */
void hf_other_keys(hf_reader *r, const hf_type *type);
/* A hint for models that can't be read. */
extern const char hf_other_ways[];

/* Reads the number of experts, of experts per token, and the experts'
 * widths. */
void hf_experts(hf_reader *r, bool width);
/* The value of a key, or the one value that all entries of its list have; NULL:
 * the file does not have the key, or an error was recorded. */
const sc_node *hf_same(hf_reader *r, const char *key);
/* Reads `layer_types`, `sliding_window` and similar keys.  `every` and `full`
 * are used if the file has no list (as in sc_transformer; 0: all or none). */
void hf_windows(hf_reader *r, int64_t every, int64_t full);
/* Sets the windows of blocks from letters W and F, one for each block. */
void hf_window_letters(hf_reader *r, char *letters);
/* Reads a list of MLP kinds, if the file has one: dense blocks lead. */
void hf_mlp_types(hf_reader *r);
/* Reads a list of dense blocks, which must be the leading ones. */
void hf_dense_list(hf_reader *r, const char *key);

/* Reports keys that would make it another kind of model. */
void hf_refuse(hf_reader *r, const hf_type *type);
/* Reads all but the plain numbers: activation, positions, biases, ... */
void hf_details(hf_reader *r, const hf_type *type);
/* The same for models with experts, latent attention, windows in some layers or
 * Mamba layers, and for encoders. */
void hf_details_sparse(hf_reader *r, const hf_type *type);
void hf_details_encoder(hf_reader *r, const hf_type *type);
void hf_details_family(hf_reader *r, const hf_type *type);
void hf_details_mamba(hf_reader *r, const hf_type *type);
/* Reads the width of shared experts; 0 means that there are none. */
void hf_shared(hf_reader *r, const char *key);

#endif
