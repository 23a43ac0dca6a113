/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_keys.c - keys that do not affect the network.
 *
 * A key that is neither read nor listed here is an error, because it may switch
 * on something that is not modelled.  Values that switch something off are
 * accepted.
 */
#include "model/hf.h"

#include <stdio.h>
#include <string.h>

#define GRANITE " granite granitemoe granitemoeshared granitemoehybrid "
#define BARTS   " bart mbart pegasus marian m2m_100 "
#define HUNYUAN " hunyuan_v1_dense hunyuan_v1_moe "
#define SCANS \
    " mamba mamba2 falcon_mamba nemotron_h bamba granitemoehybrid falcon_h1 "

static const char *const exact[] = {
    /* about the file and the software */
    "transformers_version",
    "torch_dtype",
    "dtype",
    "architectures",
    "auto_map",
    "model_type",
    "_name_or_path",
    "use_cache",
    "gradient_checkpointing",
    "tokenizer_class",
    "pretraining_tp",
    "quantization_config",
    "compression_config",
    "torchscript",
    "return_dict",
    "use_bfloat16",
    "chunk_size_feed_forward",
    "cache_implementation",
    "unsloth_version",
    "unsloth_fixed",
    "for_llm_compressor",
    "language",
    "is_decoder",
    "model_max_length",
    "attn_implementation",
    "use_flash_attn",
    "use_mrope",
    "id2label",
    "label2id",
    "problem_type",
    "task_specific_params",
    "finetuning_task",

    "use_mamba_kernels",
    "mamba_ssm_cache_dtype",
    "num_logits_to_keep",
    "logits_to_keep",
    "chunk_size",
    "mamba_chunk_size",
    "residual_in_fp32",
    "use_kernels",
    "layernorm_fp32",
    "tf_legacy_loss",
    "revision",
    "gradient_accumulation",
    "num_key_value_groups",
    "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn",
    "scale_attn_weights",
    "scale_attention_softmax_in_fp32",
    "attention_softmax_in_fp32",
    "init_device",
    "logit_scale",
    "verbose",
    "embedding_fraction",
    "use_qkv_bias_fused",
    "slow_but_exact",
    "masked_softmax_fusion",
    "apply_residual_connection_post_layernorm",
    "offset_alibi",
    "attn_rotary_emb",
    "init_method",
    "tie_weights_",
    "z_loss_coefficient",
    "alibi_bias_max",
    "attn_impl",
    "attn_uses_sequence_id",
    "prefix_lm",
    "init_config",
    "loss_fn",
    "bias_dropout_fusion",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "prefix",
    "is_composition",
    /* numbers that scale or bound values */
    "initializer_range",
    "initializer_factor",
    "initializer_cutoff_factor",
    "clip_qkv",
    "swiglu_limit",
    "routed_scaling_factor",
    "mscale",
    "scale_emb",
    "scale_depth",
    "layer_norm_epsilon",
    "layernorm_epsilon",
    "norm_epsilon",
    "norm_eps",
    "scale_embedding",
    "hidden_act_param",
    "softmax_scale",
    /* positions: frequencies of the rotation */
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "rope_local_base_freq",
    "rope_interleave",
    "rotary_emb_base",
    "rotary_pct",
    "rotary",
    "rotary_percent",
    "rotary_base",
    "partial_rotary_factor",
    "rope_pct",
    "original_max_position_embeddings",
    "initial_context_length",
    "global_rope_theta",
    "local_rope_theta",
    "max_window_layers",
    "n_ctx",
    "rotary_emb_fraction",
    "position_embedding_type",
    "rope_type",
    /* routing: selects experts, but not their number */
    "norm_topk_prob",
    "scoring_func",
    "topk_method",
    "ep_size",
    "seq_aux",
    "aux_loss_alpha",
    "router_jitter_noise",
    "input_jitter_noise",
    "use_routing_bias",
    "moe_router_enable_expert_bias",
    "moe_normalize_expert_weights",
    "output_router_logits",
    "num_shards",
    "expert_parallel",
    /* training and generation */

    "layerdrop",
    "max_length",
    "min_length",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "num_beams",
    "repetition_penalty",
    "length_penalty",
    "bad_words_ids",
    "no_repeat_ngram_size",
    "early_stopping",
    "num_beam_groups",
    "num_return_sequences",
    "diversity_penalty",
    "typical_p",
    "max_new_tokens",
};

/* Keys that are ignored for these types only; with another type they show that
 * the type of the file is wrong. */
static const struct {
    const char *key, *types; /* type names, each between blanks */
} of_types[] = {
    {"attn_logit_softcapping", " gemma2 gemma3 gemma3_text vaultgemma grok-1 "},
    {"final_logit_softcapping",
     " gemma2 gemma3 gemma3_text vaultgemma grok-1 "},
    {"query_pre_attn_scalar", " gemma2 gemma3 gemma3_text vaultgemma "},
    {"attention_multiplier", GRANITE},
    {"residual_multiplier", GRANITE},
    {"embedding_multiplier", GRANITE},
    {"logits_scaling", GRANITE},
    {"rotary_dim", " gptj codegen minimax_m2 "},
    {"no_rope_layers", " smollm3 llama4 llama4_text "},
    {"no_rope_layer_interval", " smollm3 "},
    {"moe_layers", " llama4 llama4_text "},
    {"floor_scale", " llama4 llama4_text "},
    {"attn_scale", " llama4 llama4_text "},
    {"attn_temperature_tuning", " llama4 llama4_text "},
    {"interpolate_factor", " phi3 "},
    {"max_attn_value", " grok-1 "},
    {"attn_output_multiplier", " grok-1 "},
    {"output_multiplier_scale", " grok-1 "},
    {"embedding_multiplier_scale", " grok-1 "},
    {"time_step_limit", SCANS},
    {"time_step_min", SCANS},
    {"time_step_max", SCANS},
    {"time_step_floor", SCANS},
    {"time_step_rank", SCANS},
    {"time_step_init_scheme", SCANS},
    {"time_step_scale", SCANS},
    {"rms_norm", " mamba2 "},
    {"norm_before_gate", " mamba2 "},
    {"expand", SCANS},
    {"rescale_prenorm_residual", SCANS},
    {"relative_attention_num_buckets", " t5 mt5 umt5 "},
    {"relative_attention_max_distance", " t5 mt5 umt5 "},
    {"generator_size", " electra "},
    {"classifier_pooling", " modernbert "},
    {"deterministic_flash_attn", " modernbert "},
    {"sparse_pred_ignore_index", " modernbert "},
    {"sparse_prediction", " modernbert "},
    {"reference_compile", " modernbert "},
    {"embedding_multiplier", " falcon_h1 "},
    {"lm_head_multiplier", " falcon_h1 "},
    {"mlp_multipliers", " falcon_h1 "},
    {"key_multiplier", " falcon_h1 "},
    {"attention_in_multiplier", " falcon_h1 "},
    {"attention_out_multiplier", " falcon_h1 "},
    {"ssm_multipliers", " falcon_h1 "},
    {"ssm_in_multiplier", " falcon_h1 "},
    {"ssm_out_multiplier", " falcon_h1 "},
    {"mamba_norm_before_gate", " falcon_h1 "},
    {"mlp_expansion_factor", " falcon_h1 "},
    {"scalable_attention", " umt5 "},
    {"init_std", BARTS},
    {"extra_pos_embeddings", BARTS},
    {"force_bos_token_to_be_generated", BARTS},
    {"mup_enabled", " afmoe "},
    {"route_norm", " afmoe "},
    {"route_scale", " afmoe "},
    {"score_func", " afmoe "},
    {"load_balance_coeff", " afmoe "},
    {"num_expert_groups", " afmoe "},
    {"num_limited_groups", " afmoe "},
    {"cla_share_factor", HUNYUAN}, /* used with use_cla only */
    {"org_vocab_size", HUNYUAN},
    {"moe_drop_tokens", HUNYUAN},
    {"moe_random_routing_dropped_token", HUNYUAN},
    {"num_media_embeds", HUNYUAN},
    {"dense_list", HUNYUAN}, /* of a classifier */
    {"pool_type", HUNYUAN},
    {"mask_init_id", HUNYUAN},
    {"im_start_id", HUNYUAN},
    {"im_end_id", HUNYUAN},
    {"im_newline_id", HUNYUAN},
    {"text_start_id", HUNYUAN},
    {"text_end_id", HUNYUAN},
    {"video_start_id", HUNYUAN},
    {"video_end_id", HUNYUAN},
    {"mamba_ssm_dtype", " qwen3_5_text qwen3_5_moe_text "},
    {"mtp_use_dedicated_embeddings", " qwen3_5_text qwen3_5_moe_text "},
};

static const char *const endings[] = {"_token_id", "_token_index", "_eps",
                                      "_coef",     "_loss_weight", "_epsilon"};
static const char *const beginnings[] = {"summary_", "_", "output_", "forced_",
                                         "transformers."};

static bool is_of_type(const char *key, const hf_type *type)
{
    char name[40];
    snprintf(name, sizeof name, " %.30s ", type->name);
    for (size_t i = 0; i < SC_COUNT(of_types); i++)
        if (strcmp(key, of_types[i].key) == 0 &&
            strstr(of_types[i].types, name))
            return true;
    return false;
}

static bool changes_nothing(const char *key, const hf_type *type)
{
    size_t n = strlen(key);
    if (is_of_type(key, type)) return true;
    for (size_t i = 0; i < SC_COUNT(exact); i++)
        if (strcmp(key, exact[i]) == 0) return true;
    for (size_t i = 0; i < SC_COUNT(endings); i++) {
        size_t k = strlen(endings[i]);
        if (n > k && strcmp(key + n - k, endings[i]) == 0) return true;
    }
    if (strstr(key, "dropout") || strstr(key, "pdrop")) return true;
    for (size_t i = 0; i < SC_COUNT(beginnings); i++)
        if (strncmp(key, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* null, false, 0, "" and empty lists switch nothing on. */
static bool is_off(const sc_node *n)
{
    if (n->kind == SC_N_NULL) return true;
    if (n->kind != SC_N_SCALAR) return n->child == NULL;
    if (n->quoted) return *n->text == '\0';
    return strcmp(n->text, "false") == 0 ||
           strspn(n->text, "0.") == strlen(n->text);
}

static bool asked_for(const hf_reader *r, const sc_node *n)
{
    for (uint32_t i = 0; i < r->n_known; i++)
        if (r->known[i] == n) return true;
    return false;
}

static void check(hf_reader *r, const sc_node *map, const hf_type *type)
{
    for (const sc_node *c = map->child; c; c = c->next) {
        if (asked_for(r, c) || changes_nothing(c->key, type) || is_off(c))
            continue;
        hf_fail(r, SC_C_UNKNOWN_KEY, c->key_pos, hf_other_ways,
                "key \"%.60s\" of a %s is not understood and may change the "
                "network",
                c->key, type->name);
    }
}

void hf_other_keys(hf_reader *r, const hf_type *type)
{
    static const char *const groups[] = {"attn_config", "ffn_config"};
    if (r->status != SC_OK) return; /* their reader may have stopped early */
    check(r, r->root, type);
    for (size_t i = 0; i < SC_COUNT(groups); i++) {
        const sc_node *n = sc_node_get(r->root, groups[i]);
        if (n && n->kind == SC_N_MAP && asked_for(r, n)) check(r, n, type);
    }
}
