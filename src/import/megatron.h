/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron.h - options of Megatron-LM by name, and their meaning.
 */
#ifndef IMPORT_MEGATRON_H
#define IMPORT_MEGATRON_H

#include "import/sink.h"

/* Options that change a step.  X(enumerator, name, kind, lowest, highest) */
#define MEGATRON_OPTIONS(X)                                                    \
    X(M_TP, "tensor-model-parallel-size", INT, 1, 1 << 20)                     \
    X(M_PP, "pipeline-model-parallel-size", INT, 1, 1 << 20)                   \
    X(M_VPP_LAYERS, "num-layers-per-virtual-pipeline-stage", INT, 1, 1 << 16)  \
    X(M_VPP, "num-virtual-stages-per-pipeline-rank", INT, 1, 1 << 16)          \
    X(M_FIRST_STAGE, "decoder-first-pipeline-num-layers", INT, 0, 1 << 16)     \
    X(M_LAST_STAGE, "decoder-last-pipeline-num-layers", INT, 0, 1 << 16)       \
    X(M_LAYOUT, "pipeline-model-parallel-layout", WORD, 0, 0)                  \
    X(M_WITH_EMBEDDING, "account-for-embedding-in-pipeline-split", FLAG, 0, 0) \
    X(M_WITH_LOSS, "account-for-loss-in-pipeline-split", FLAG, 0, 0)           \
    X(M_CP, "context-parallel-size", INT, 1, 1 << 20)                          \
    X(M_EP, "expert-model-parallel-size", INT, 1, 1 << 20)                     \
    X(M_ETP, "expert-tensor-parallel-size", INT, 1, 1 << 20)                   \
    X(M_TP_OVERLAP, "tp-comm-overlap", FLAG, 0, 0)                             \
    X(M_EP_OVERLAP, "overlap-moe-expert-parallel-comm", FLAG, 0, 0)            \
    X(M_OPT_OFFLOAD, "optimizer-cpu-offload", FLAG, 0, 0)                      \
    X(M_CP_COMM, "cp-comm-type", MANY, 0, 0)                                   \
    X(M_CAPACITY, "moe-expert-capacity-factor", REAL, -1, 1024)                \
    X(M_PAD_CAPACITY, "moe-pad-expert-input-to-capacity", FLAG, 0, 0)          \
    X(M_DIST_OPT_N, "num-distributed-optimizer-instances", INT, 1, 1 << 20)    \
    X(M_SP, "sequence-parallel", FLAG, 0, 0)                                   \
    X(M_DIST_OPT, "use-distributed-optimizer", FLAG, 0, 0)                     \
    X(M_OVERLAP, "overlap-grad-reduce", FLAG, 0, 0)                            \
    X(M_FSDP2, "use-torch-fsdp2", FLAG, 0, 0)                                  \
    X(M_MFSDP, "use-megatron-fsdp", FLAG, 0, 0)                                \
    X(M_CFSDP, "use-custom-fsdp", FLAG, 0, 0)                                  \
    X(M_SHARDING, "data-parallel-sharding-strategy", WORD, 0, 0)               \
    X(M_DEEPSPEED, "deepspeed", FLAG, 0, 0)                                    \
    X(M_ZERO, "zero-stage", INT, 0, 3)                                         \
    X(M_DS_CONFIG, "deepspeed-config", WORD, 0, 0)                             \
    X(M_GRAD_BF16, "grad-reduce-in-bf16", FLAG, 0, 0)                          \
    X(M_GRAD_FP32, "accumulate-allreduce-grads-in-fp32", FLAG, 0, 0)           \
    X(M_LAYERS, "num-layers", INT, 1, 100000)                                  \
    X(M_HIDDEN, "hidden-size", INT, 1, 1 << 20)                                \
    X(M_FFN, "ffn-hidden-size", INT, 1, 1 << 24)                               \
    X(M_HEADS, "num-attention-heads", INT, 1, 1 << 16)                         \
    X(M_GQA, "group-query-attention", FLAG, 0, 0)                              \
    X(M_GROUPS, "num-query-groups", INT, 1, 1 << 16)                           \
    X(M_KV_CHANNELS, "kv-channels", INT, 1, 1 << 16)                           \
    X(M_SEQ, "seq-length", INT, 1, 1 << 30)                                    \
    X(M_MAX_POS, "max-position-embeddings", INT, 1, 1 << 30)                   \
    X(M_MBS, "micro-batch-size", INT, 1, 1 << 30)                              \
    X(M_GBS, "global-batch-size", INT, 1, 1LL << 40)                           \
    X(M_RAMPUP, "rampup-batch-size", MANY, 0, 0)                               \
    X(M_BF16, "bf16", FLAG, 0, 0)                                              \
    X(M_FP16, "fp16", FLAG, 0, 0)                                              \
    X(M_FP8, "fp8-format", WORD, 0, 0)                                         \
    X(M_FP8_RECIPE, "fp8-recipe", WORD, 0, 0)                                  \
    X(M_FP4, "fp4-format", WORD, 0, 0)                                         \
    X(M_WIDE_ENDS, "first-last-layers-bf16", FLAG, 0, 0)                       \
    X(M_WIDE_START, "num-layers-at-start-in-bf16", INT, 0, 100000)             \
    X(M_WIDE_END, "num-layers-at-end-in-bf16", INT, 0, 100000)                 \
    X(M_RC, "recompute-granularity", WORD, 0, 0)                               \
    X(M_RC_METHOD, "recompute-method", WORD, 0, 0)                             \
    X(M_RC_LAYERS, "recompute-num-layers", INT, 1, 100000)                     \
    X(M_RC_MODULES, "recompute-modules", MANY, 0, 0)                           \
    X(M_RC_ACT, "recompute-activations", FLAG, 0, 0)                           \
    X(M_CHECKPOINT, "checkpoint-activations", FLAG, 0, 0)                      \
    X(M_SWIGLU, "swiglu", FLAG, 0, 0)                                          \
    X(M_GEGLU, "quick-geglu", FLAG, 0, 0)                                      \
    X(M_SQ_RELU, "squared-relu", FLAG, 0, 0)                                   \
    X(M_NORM, "normalization", WORD, 0, 0)                                     \
    X(M_UNTIE, "untie-embeddings-and-output-weights", FLAG, 0, 0)              \
    X(M_POSITION, "position-embedding-type", WORD, 0, 0)                       \
    X(M_ROTARY, "use-rotary-position-embeddings", FLAG, 0, 0)                  \
    X(M_NO_POSITION, "no-position-embedding", FLAG, 0, 0)                      \
    X(M_NO_BIAS, "disable-bias-linear", FLAG, 0, 0)                            \
    X(M_QKV_BIAS, "add-qkv-bias", FLAG, 0, 0)                                  \
    X(M_EMBED_NORM, "embed-layernorm", FLAG, 0, 0)                             \
    X(M_ATT_DROPOUT, "attention-dropout", REAL, 0, 1)                          \
    X(M_HID_DROPOUT, "hidden-dropout", REAL, 0, 1)                             \
    X(M_WINDOW, "window-size", WORD, 0, 0)                                     \
    X(M_WINDOW_FREQ, "window-attn-skip-freq", WORD, 0, 0)                      \
    X(M_SOFTMAX, "softmax-type", WORD, 0, 0)                                   \
    X(M_QK_NORM, "qk-layernorm", FLAG, 0, 0)                                   \
    X(M_VOCAB, "vocab-size", INT, 1, 1 << 24)                                  \
    X(M_PADDED_VOCAB, "padded-vocab-size", INT, 1, 1 << 24)                    \
    X(M_VOCAB_STEP, "make-vocab-size-divisible-by", INT, 1, 1 << 20)           \
    X(M_TOKENIZER, "tokenizer-type", WORD, 0, 0)                               \
    X(M_PATCH_TOKENIZER, "patch-tokenizer-type", WORD, 0, 0)                   \
    X(M_EXTRA_VOCAB, "extra-vocab-size", INT, 0, 1 << 24)                      \
    X(M_TOKENIZER_MODEL, "tokenizer-model", WORD, 0, 0)                        \
    X(M_EXPERTS, "num-experts", MANY, 0, 0)                                    \
    X(M_TOPK, "moe-router-topk", INT, 1, 1 << 16)                              \
    X(M_MOE_FFN, "moe-ffn-hidden-size", INT, 1, 1 << 24)                       \
    X(M_SHARED_FFN, "moe-shared-expert-intermediate-size", INT, 1, 1 << 24)    \
    X(M_MOE_FREQ, "moe-layer-freq", WORD, 0, 0)                                \
    X(M_ROUTE_GROUPS, "moe-router-num-groups", INT, 1, 1 << 16)                \
    X(M_ROUTER_BIAS, "moe-router-enable-expert-bias", FLAG, 0, 0)              \
    X(M_ROUTE_TOPK, "moe-router-group-topk", INT, 1, 1 << 16)                  \
    X(M_MLA, "multi-latent-attention", FLAG, 0, 0)                             \
    X(M_Q_RANK, "q-lora-rank", INT, 1, 1 << 20)                                \
    X(M_KV_RANK, "kv-lora-rank", INT, 1, 1 << 20)                              \
    X(M_QK_NOPE, "qk-head-dim", INT, 1, 1 << 16)                               \
    X(M_QK_ROPE, "qk-pos-emb-head-dim", INT, 1, 1 << 16)                       \
    X(M_V_DIM, "v-head-dim", INT, 1, 1 << 16)                                  \
    X(M_MTP, "mtp-num-layers", INT, 1, 1000)                                   \
    X(M_WORLD, "world-size", INT, 1, 1 << 30)

typedef enum megatron_kind {
    M_FLAG,
    M_INT,
    M_REAL,
    M_WORD,
    M_MANY
} megatron_kind;

#define MEGATRON_ENUM(id, name, kind, lo, hi) id,

typedef enum megatron_id { MEGATRON_OPTIONS(MEGATRON_ENUM) M_N } megatron_id;

#undef MEGATRON_ENUM

typedef struct megatron_row {
    const char *name;
    megatron_kind kind;
    double lo, hi;
} megatron_row;

extern const megatron_row megatron_rows[M_N];

/* One word after the launched program. */
typedef struct megatron_word {
    const char *text; /* unknown parts as "$NAME" */
    uint32_t at;      /* byte offset of its first character */
    bool open;        /* has unknown parts */
} megatron_word;

typedef struct megatron {
    import_sink *to;
    const char *text; /* terminated; NULL: read from a tree */
    size_t len;
    import_value v[M_N];
    bool tree;       /* options are keys of a tree: "seq_length" */
    bool of_trainer; /* its options are those of HuggingFace's Trainer */
} megatron;

/* Options from words, or from the lines of an argument table. */
sc_status megatron_options(megatron *m, const megatron_word *w, uint32_t n);
bool megatron_is_table(const char *text);
sc_status megatron_table(megatron *m);

/* Job and model from the options. */
sc_status megatron_job(megatron *m);
sc_status megatron_model(megatron *m);

/* An option as the file would write it: "--seq-length", "seq_length"; in `buf`. */
const char *megatron_name(const megatron *m, megatron_id id, char buf[64]);
/* "default: no --bf16 in train.sh"; NULL: out of memory. */
const char *megatron_default(megatron *m, megatron_id id);
/* Records the option as the origin of a field, or its default. */
sc_status megatron_origin_of(megatron *m, bool of_model, const char *key,
                             megatron_id id);

/* Whether an option has a valid value; its number if so, else `other`. */
bool megatron_good(const megatron *m, megatron_id id);
int64_t megatron_number(const megatron *m, megatron_id id, int64_t other);

#endif
