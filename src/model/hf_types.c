/* SPDX-License-Identifier: Apache-2.0 */
/* hf_types.c - the facts that the code behind each model_type fixes, and the
 * types with operators that are not modelled. */
#include "model/hf.h"

#include <string.h>

const char hf_other_ways[] =
    "describe the model in a model.yml (docs/model.md), or give an execution "
    "trace of it (docs/model-file.md)";

#define ROTARY     .position = SC_POS_ROTARY
#define RMS_SWIGLU ROTARY, .act = SC_ACT_SWIGLU, .norm = SC_NORM_RMS
#define RMS_GEGLU  ROTARY, .act = SC_ACT_GEGLU, .norm = SC_NORM_RMS
#define LAYER_GELU .act = SC_ACT_GELU, .norm = SC_NORM_LAYER
#define LEARNED    .position = SC_POS_LEARNED
#define EXPERT_MLA HF_MOE | HF_MLA | HF_MTP

/* clang-format off */
static const hf_type types[] = {
    {"gpt2", "GPT2LMHeadModel", HF_GPT2, LEARNED, LAYER_GELU, .tied = true, .bias = true, .dropout = true, .ffn_4h = true},
    {"gpt_bigcode", "GPTBigCodeForCausalLM", HF_GPT2, LEARNED, LAYER_GELU, .tied = true, .bias = true, .dropout = true, .ffn_4h = true},
    {"gpt_neox", "GPTNeoXForCausalLM", HF_GPT_NEOX, ROTARY, LAYER_GELU, .bias = true},
    {"gptj", "GPTJForCausalLM", HF_GPTJ, ROTARY, LAYER_GELU, .has = HF_HAS_PARALLEL | HF_HAS_ONE_NORM | HF_HAS_MLP_BIAS | HF_HAS_HEAD_BIAS, .ffn_4h = true},
    {"opt", "OPTForCausalLM", HF_OPT, LEARNED, .act = SC_ACT_RELU, .norm = SC_NORM_LAYER, .tied = true, .bias = true, .dropout = true},
    {"bloom", "BloomForCausalLM", HF_BLOOM, .position = SC_POS_ALIBI, LAYER_GELU, .tied = true, .bias = true, .ffn_4h = true},
    {"mpt", "MPTForCausalLM", HF_MPT, LEARNED, LAYER_GELU, .tied = true, .bias = true, .ffn_4h = true},
    {"falcon", "FalconForCausalLM", HF_FALCON, ROTARY, LAYER_GELU, .tied = true, .ffn_4h = true},
    {"RefinedWebModel", "RWForCausalLM", HF_FALCON, ROTARY, LAYER_GELU, .tied = true, .ffn_4h = true},
    {"RefinedWeb", "", HF_FALCON, ROTARY, LAYER_GELU, .tied = true, .ffn_4h = true},
    {"codegen", "CodeGenForCausalLM", HF_GPTJ, ROTARY, LAYER_GELU, .has = HF_HAS_PARALLEL | HF_HAS_ONE_NORM | HF_HAS_MLP_BIAS | HF_HAS_HEAD_BIAS, .ffn_4h = true},
    {"nemotron", "NemotronForCausalLM", HF_PLAIN, .has = HF_HAS_OUT_BIAS, ROTARY, .act = SC_ACT_RELU2, .norm = SC_NORM_LAYER, .need_kv = true},
    {"stablelm", "StableLmForCausalLM", HF_STABLELM, ROTARY, .act = SC_ACT_SWIGLU, .norm = SC_NORM_LAYER},
    {"phi", "PhiForCausalLM", HF_PHI, ROTARY, LAYER_GELU, .has = HF_HAS_PARALLEL | HF_HAS_ONE_NORM | HF_HAS_HEAD_BIAS, .bias = true},
    {"starcoder2", "Starcoder2ForCausalLM", HF_STARCODER2, .may = HF_WINDOWS, ROTARY, LAYER_GELU, .tied = true, .bias = true, .need_kv = true},
    {"gpt_neo", "GPTNeoForCausalLM", HF_GPT_NEO, LEARNED, LAYER_GELU, .tied = true, .has = HF_HAS_PROJ_BIAS | HF_HAS_MLP_BIAS, .may = HF_WINDOWS, .ffn_4h = true},
    {"xglm", "XGLMForCausalLM", HF_XGLM, .position = SC_POS_NONE, LAYER_GELU, .tied = true, .bias = true, .dropout = true},
    {"persimmon", "PersimmonForCausalLM", HF_PERSIMMON, ROTARY, .act = SC_ACT_RELU2, .norm = SC_NORM_LAYER, .bias = true},
    {"biogpt", "BioGptForCausalLM", HF_OPT, LEARNED, LAYER_GELU, .tied = true, .bias = true, .dropout = true},
    {"jais2", "Jais2ForCausalLM", HF_PLAIN, .has = HF_HAS_OUT_BIAS | HF_HAS_MLP_BIAS, ROTARY, .act = SC_ACT_RELU2, .norm = SC_NORM_LAYER, .qkv_bias = true},
    {"olmo", "OlmoForCausalLM", HF_PLAIN, .has = HF_HAS_OUT_BIAS | HF_HAS_PLAIN_NORM | HF_HAS_BARE_NORM, ROTARY, .act = SC_ACT_SWIGLU, .norm = SC_NORM_LAYER},
    {"llama", "LlamaForCausalLM", HF_LLAMA, RMS_SWIGLU},
    {"arcee", "ArceeForCausalLM", HF_LLAMA, ROTARY, .act = SC_ACT_RELU2, .norm = SC_NORM_RMS},
    {"helium", "HeliumForCausalLM", HF_LLAMA, RMS_SWIGLU},
    {"cwm", "CwmForCausalLM", HF_PLAIN, .may = HF_WINDOWS, RMS_SWIGLU, .need_kv = true},
    {"apertus", "ApertusForCausalLM", HF_PLAIN, .has = HF_HAS_QK_NORM | HF_HAS_OUT_BIAS, ROTARY, .act = SC_ACT_GELU, .norm = SC_NORM_RMS, .need_kv = true},
    {"ministral3", "Ministral3ForCausalLM", HF_MISTRAL, RMS_SWIGLU, .need_kv = true},
    {"granite", "GraniteForCausalLM", HF_LLAMA, RMS_SWIGLU},
    {"mistral", "MistralForCausalLM", HF_MISTRAL, RMS_SWIGLU, .need_kv = true},
    {"mistral3", "Mistral3ForConditionalGeneration", HF_MISTRAL, RMS_SWIGLU, .need_kv = true},
    {"ernie4_5", "Ernie4_5ForCausalLM", HF_PLAIN, RMS_SWIGLU, .tied = true, .need_kv = true},
    {"smollm3", "SmolLM3ForCausalLM", HF_SMOLLM3, .may = HF_WINDOWS, RMS_SWIGLU, .tied = true, .need_kv = true},
    {"phi3", "Phi3ForCausalLM", HF_MISTRAL, RMS_SWIGLU},
    {"gemma", "GemmaForCausalLM", HF_PLAIN, RMS_GEGLU, .tied = true},
    {"gemma2", "Gemma2ForCausalLM", HF_PLAIN, .may = HF_WINDOWS, .has = HF_HAS_NORMS_BOTH, RMS_GEGLU, .tied = true},
    {"vaultgemma", "VaultGemmaForCausalLM", HF_PLAIN, .may = HF_WINDOWS, RMS_GEGLU, .tied = true},
    {"gemma3_text", "Gemma3ForCausalLM", HF_GEMMA3, .may = HF_WINDOWS | HF_DEFAULTS, .has = HF_HAS_NORMS_BOTH | HF_HAS_QK_NORM, RMS_GEGLU, .tied = true},
    {"gemma3", "Gemma3ForConditionalGeneration", HF_GEMMA3, .may = HF_WINDOWS | HF_DEFAULTS, .has = HF_HAS_NORMS_BOTH | HF_HAS_QK_NORM, RMS_GEGLU, .tied = true},
    {"olmo2", "Olmo2ForCausalLM", HF_PLAIN, .has = HF_HAS_NORMS_AFTER | HF_HAS_QK_ALL | HF_HAS_OUT_BIAS, RMS_SWIGLU},
    {"olmo3", "Olmo3ForCausalLM", HF_PLAIN, .may = HF_WINDOWS, .has = HF_HAS_NORMS_AFTER | HF_HAS_QK_ALL | HF_HAS_OUT_BIAS, RMS_SWIGLU},
    {"cohere", "CohereForCausalLM", HF_COHERE, .has = HF_HAS_PARALLEL | HF_HAS_ONE_NORM | HF_HAS_PLAIN_NORM | HF_HAS_OUT_BIAS, ROTARY, .act = SC_ACT_SWIGLU, .norm = SC_NORM_LAYER, .tied = true},
    {"cohere2", "Cohere2ForCausalLM", HF_COHERE, .may = HF_WINDOWS, .has = HF_HAS_PARALLEL | HF_HAS_ONE_NORM | HF_HAS_PLAIN_NORM | HF_HAS_OUT_BIAS, ROTARY, .act = SC_ACT_SWIGLU, .norm = SC_NORM_LAYER, .tied = true},
    {"glm", "GlmForCausalLM", HF_PLAIN, RMS_SWIGLU, .qkv_bias = true, .need_kv = true},
    {"glm4", "Glm4ForCausalLM", HF_PLAIN, .has = HF_HAS_NORMS_BOTH, RMS_SWIGLU, .qkv_bias = true, .need_kv = true},
    {"exaone4", "Exaone4ForCausalLM", HF_PLAIN, .may = HF_WINDOWS, .has = HF_HAS_NORMS_AFTER | HF_HAS_QK_NORM, RMS_SWIGLU, .need_kv = true},
    {"seed_oss", "SeedOssForCausalLM", HF_PLAIN, RMS_SWIGLU, .qkv_bias = true, .need_kv = true},
    {"qwen2", "Qwen2ForCausalLM", HF_QWEN2, RMS_SWIGLU, .qkv_bias = true, .need_kv = true},
    {"qwen2_vl_text", "", HF_QWEN2, RMS_SWIGLU, .qkv_bias = true, .need_kv = true},
    {"qwen2_5_vl_text", "", HF_QWEN2, RMS_SWIGLU, .qkv_bias = true, .need_kv = true},
    {"qwen3_vl_text", "", HF_QWEN3, .may = HF_WINDOWS, RMS_SWIGLU, .need_kv = true},
    {"qwen3_vl_moe_text", "", HF_QWEN3_MOE, .may = HF_MOE | HF_WINDOWS, RMS_SWIGLU, .need_kv = true},
    {"qwen2_moe", "Qwen2MoeForCausalLM", HF_QWEN2_MOE, .may = HF_MOE, RMS_SWIGLU, .qkv_bias = true, .need_kv = true},
    {"qwen3", "Qwen3ForCausalLM", HF_QWEN3, .may = HF_WINDOWS, RMS_SWIGLU, .need_kv = true},
    {"qwen3_moe", "Qwen3MoeForCausalLM", HF_QWEN3_MOE, .may = HF_MOE | HF_WINDOWS, RMS_SWIGLU, .need_kv = true},
    {"mixtral", "MixtralForCausalLM", HF_MIXTRAL, .may = HF_MOE, RMS_SWIGLU, .need_kv = true},
    {"phimoe", "PhimoeForCausalLM", HF_PHI_MOE, .may = HF_MOE, .has = HF_HAS_OUT_BIAS, ROTARY, .act = SC_ACT_SWIGLU, .norm = SC_NORM_LAYER, .need_kv = true},
    {"olmoe", "OlmoeForCausalLM", HF_EXPERTS, .may = HF_MOE, .has = HF_HAS_QK_ALL | HF_HAS_OUT_BIAS, RMS_SWIGLU},
    {"flex_olmo", "FlexOlmoForCausalLM", HF_EXPERTS, .may = HF_MOE, .has = HF_HAS_NORMS_AFTER | HF_HAS_QK_ALL | HF_HAS_OUT_BIAS, RMS_SWIGLU},
    {"granitemoeshared", "GraniteMoeSharedForCausalLM", HF_EXPERTS, .may = HF_MOE, .has = HF_HAS_OUT_BIAS, RMS_SWIGLU},
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", HF_HUNYUAN, .has = HF_HAS_QK_NORM | HF_HAS_OUT_BIAS, RMS_SWIGLU},
    {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", HF_HUNYUAN, .may = HF_MOE, .has = HF_HAS_QK_NORM | HF_HAS_OUT_BIAS, RMS_SWIGLU},
    {"afmoe", "AfmoeForCausalLM", HF_AFMOE, .may = HF_MOE | HF_WINDOWS, .has = HF_HAS_NORMS_BOTH | HF_HAS_QK_NORM, RMS_SWIGLU, .need_kv = true},
    {"solar_open", "SolarOpenForCausalLM", HF_GLM_MOE, .may = HF_MOE, RMS_SWIGLU, .need_kv = true, .ffn_4h = true},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", HF_DEEPSEEK, .may = EXPERT_MLA, RMS_SWIGLU},
    {"youtu", "YoutuForCausalLM", HF_DEEPSEEK, .may = HF_MLA, RMS_SWIGLU, .tied = true},
    {"qwen3_next", "Qwen3NextForCausalLM", HF_DELTA, .may = HF_MOE | HF_WINDOWS, .has = HF_HAS_QK_NORM | HF_HAS_OUT_BIAS, RMS_SWIGLU, .need_kv = true},
    {"qwen3_5_text", "Qwen3_5ForCausalLM", HF_DELTA, .may = HF_WINDOWS, .has = HF_HAS_QK_NORM | HF_HAS_OUT_BIAS, RMS_SWIGLU, .need_kv = true},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", HF_DELTA, .may = HF_MOE | HF_WINDOWS, .has = HF_HAS_QK_NORM | HF_HAS_OUT_BIAS, RMS_SWIGLU, .need_kv = true, .ffn_4h = true},
    {"granitemoe", "GraniteMoeForCausalLM", HF_EXPERTS, .may = HF_MOE, .has = HF_HAS_OUT_BIAS, RMS_SWIGLU},
    {"dbrx", "DbrxForCausalLM", HF_DBRX, .may = HF_MOE, .has = HF_HAS_PLAIN_NORM, ROTARY, .act = SC_ACT_SWIGLU, .norm = SC_NORM_LAYER, .ffn_4h = true},
    {"glm4_moe", "Glm4MoeForCausalLM", HF_GLM_MOE, .may = HF_MOE | HF_MTP, RMS_SWIGLU, .need_kv = true},
    {"dots1", "Dots1ForCausalLM", HF_GLM_MOE, .may = HF_MOE, .has = HF_HAS_QK_NORM, RMS_SWIGLU, .need_kv = true},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", HF_ERNIE_MOE, .may = HF_MOE, RMS_SWIGLU, .tied = true, .need_kv = true},
    {"llama4_text", "Llama4ForCausalLM", HF_LLAMA4, .may = HF_MOE | HF_WINDOWS, RMS_SWIGLU, .need_kv = true},
    {"llama4", "Llama4ForConditionalGeneration", HF_LLAMA4, .may = HF_MOE | HF_WINDOWS, RMS_SWIGLU, .need_kv = true},
    {"minimax_m2", "MiniMaxM2ForCausalLM", HF_MINIMAX_M2, .may = HF_MOE, RMS_SWIGLU, .need_kv = true},
    {"grok-1", "Grok1ModelForCausalLM", HF_GROK, .may = HF_MOE, .has = HF_HAS_NORMS_BOTH, RMS_GEGLU, .tied = true, .need_kv = true},
    {"gpt_oss", "GptOssForCausalLM", HF_GPT_OSS, .may = HF_MOE | HF_WINDOWS, RMS_SWIGLU, .bias = true, .qkv_bias = true, .need_kv = true},
    {"deepseek_v2", "DeepseekV2ForCausalLM", HF_DEEPSEEK, .may = EXPERT_MLA, RMS_SWIGLU},
    {"deepseek_v3", "DeepseekV3ForCausalLM", HF_DEEPSEEK, .may = EXPERT_MLA, RMS_SWIGLU},
    {"kimi_k2", "KimiK2ForCausalLM", HF_DEEPSEEK, .may = EXPERT_MLA, RMS_SWIGLU},
    {"nemotron_h", "NemotronHForCausalLM", HF_NEMOTRON_H, .may = HF_MOE | HF_MTP, .position = SC_POS_NONE, .act = SC_ACT_RELU2, .norm = SC_NORM_RMS, .need_kv = true},
    {"mamba", "MambaForCausalLM", HF_MAMBA, .may = HF_DEFAULTS, .position = SC_POS_NONE, .act = SC_ACT_SWIGLU, .norm = SC_NORM_RMS, .tied = true, .ffn_4h = true},
    {"falcon_mamba", "FalconMambaForCausalLM", HF_MAMBA, .may = HF_DEFAULTS, .position = SC_POS_NONE, .act = SC_ACT_SWIGLU, .norm = SC_NORM_RMS, .tied = true, .ffn_4h = true},
    {"jamba", "JambaForCausalLM", HF_JAMBA, .may = HF_MOE, .position = SC_POS_NONE, .act = SC_ACT_SWIGLU, .norm = SC_NORM_RMS, .need_kv = true},
    {"bamba", "BambaForCausalLM", HF_HYBRID, RMS_SWIGLU, .need_kv = true},
    {"granitemoehybrid", "GraniteMoeHybridForCausalLM", HF_HYBRID, .may = HF_MOE | HF_WINDOWS, RMS_SWIGLU, .need_kv = true},
    {"falcon_h1", "FalconH1ForCausalLM", HF_FALCON_H1, RMS_SWIGLU},
    {"mamba2", "Mamba2ForCausalLM", HF_MAMBA2, .position = SC_POS_NONE, .act = SC_ACT_SWIGLU, .norm = SC_NORM_RMS, .tied = true, .ffn_4h = true},
    {"bert", "BertForMaskedLM", HF_BERT, LEARNED, LAYER_GELU, .tied = true, .bias = true, .qkv_bias = true, .dropout = true},
    {"roberta", "RobertaForMaskedLM", HF_BERT, LEARNED, LAYER_GELU, .tied = true, .bias = true, .qkv_bias = true, .dropout = true},
    {"xlm-roberta", "XLMRobertaForMaskedLM", HF_BERT, LEARNED, LAYER_GELU, .tied = true, .bias = true, .qkv_bias = true, .dropout = true},
    {"camembert", "CamembertForMaskedLM", HF_BERT, LEARNED, LAYER_GELU, .tied = true, .bias = true, .qkv_bias = true, .dropout = true},
    {"electra", "ElectraForPreTraining", HF_BERT, LEARNED, LAYER_GELU, .tied = true, .bias = true, .qkv_bias = true, .dropout = true},
    {"modernbert", "ModernBertForMaskedLM", HF_MODERNBERT, .may = HF_WINDOWS, .has = HF_HAS_OUT_BIAS | HF_HAS_PLAIN_NORM, ROTARY, .act = SC_ACT_GEGLU, .norm = SC_NORM_LAYER, .tied = true},
    {"distilbert", "DistilBertForMaskedLM", HF_BERT, LEARNED, LAYER_GELU, .tied = true, .bias = true, .qkv_bias = true, .dropout = true},
    {"t5", "T5ForConditionalGeneration", HF_T5, .may = HF_STACKS, .position = SC_POS_RELATIVE, .act = SC_ACT_RELU, .norm = SC_NORM_RMS, .tied = true, .dropout = true},
    {"mt5", "MT5ForConditionalGeneration", HF_T5, .may = HF_STACKS, .position = SC_POS_RELATIVE, .act = SC_ACT_GEGLU, .norm = SC_NORM_RMS, .dropout = true},
    {"umt5", "UMT5ForConditionalGeneration", HF_T5, .may = HF_STACKS, .position = SC_POS_RELATIVE, .act = SC_ACT_GEGLU, .norm = SC_NORM_RMS, .dropout = true},
    {"bart", "BartForConditionalGeneration", HF_BART, .may = HF_STACKS, .has = HF_HAS_NORMS_SUMS, LEARNED, LAYER_GELU, .tied = true, .bias = true, .dropout = true},
    {"mbart", "MBartForConditionalGeneration", HF_BART, .may = HF_STACKS, LEARNED, LAYER_GELU, .tied = true, .bias = true, .dropout = true},
    {"pegasus", "PegasusForConditionalGeneration", HF_BART, .may = HF_STACKS, .position = SC_POS_NONE, LAYER_GELU, .tied = true, .bias = true, .dropout = true},
    {"m2m_100", "M2M100ForConditionalGeneration", HF_BART, .may = HF_STACKS, .position = SC_POS_NONE, .act = SC_ACT_RELU, .norm = SC_NORM_LAYER, .tied = true, .bias = true, .dropout = true},
    {"marian", "MarianMTModel", HF_BART, .may = HF_STACKS, .has = HF_HAS_NORMS_SUMS, .position = SC_POS_NONE, LAYER_GELU, .tied = true, .bias = true, .dropout = true},
    {"vit", "ViTForImageClassification", HF_VIT, LEARNED, LAYER_GELU, .bias = true, .qkv_bias = true},
};

/* clang-format on */

/* Known types with operators that are not modelled. */
static const struct {
    const char *name, *what;
} others[] = {
    {"kimi_linear", "a delta rule with a gate for each channel"},
    {"mllama", "layers that attend to an image"},
    {"mllama_text_model", "layers that attend to an image"},
    {"longcat_flash", "experts beside two attentions"},
    {"glm_moe_dsa", "attention that an indexer chooses positions for"},
    {"minimax", "lightning attention, which is linear"},
    {"recurrent_gemma", "gated linear recurrences"},
    {"rwkv", "the recurrence of RWKV"},
    {"lfm2", "gated short convolutions in place of attention"},
    {"zamba", "blocks that share their weights"},
    {"zamba2", "blocks that share their weights"},
    {"albert", "blocks that share their weights"},
    {"deepseek_v32", "attention that an indexer chooses positions for"},
    {"gemma3n", "per-layer embeddings and alternating updates"},
    {"deberta", "disentangled attention"},
    {"deberta-v2", "disentangled attention"},
    {"switch_transformers", "an encoder-decoder with experts"},
};

static const hf_type *by_name(const char *name)
{
    for (size_t i = 0; i < SC_COUNT(types); i++)
        if (strcmp(name, types[i].name) == 0) return &types[i];
    return NULL;
}

/* A file without model_type may name its class in `architectures`. */
static const hf_type *by_architecture(hf_reader *r)
{
    const sc_node *n = hf_get(r, r->root, "architectures");
    const sc_node *c = n && n->kind == SC_N_SEQ ? n->child : NULL;
    if (!c || c->kind != SC_N_SCALAR || !*c->text) return NULL;
    for (size_t i = 0; i < SC_COUNT(types); i++)
        if (strcmp(c->text, types[i].arch) == 0) return &types[i];
    return NULL;
}

/* A text_config without a type has the type of the file. */
static const sc_node *type_node(hf_reader *r)
{
    const sc_node *n = hf_get(r, r->root, "model_type");
    return n || !r->outer ? n : hf_get(r, r->outer, "model_type");
}

static const char *supported(hf_reader *r)
{
    const char *all = "supported are ";
    for (size_t i = 0; all && i < SC_COUNT(types); i++)
        all = sc_sprintf(r->arena, "%s%s%s", all, i ? ", " : "", types[i].name);
    return all;
}

const hf_type *hf_find_type(hf_reader *r)
{
    const sc_node *n = type_node(r);
    if (!n) {
        const hf_type *type = by_architecture(r);
        if (!type)
            hf_fail(r, SC_C_MISSING, r->root->pos, supported(r),
                    "missing key \"model_type\"");
        return type;
    }
    if (n->kind != SC_N_SCALAR || !n->quoted) {
        hf_fail(r, SC_C_TYPE, n->pos, NULL, "model_type must be a string");
        return NULL;
    }
    const hf_type *type = by_name(n->text);
    if (type) return type;
    for (size_t i = 0; i < SC_COUNT(others); i++) {
        if (strcmp(n->text, others[i].name) != 0) continue;
        hf_fail(r, SC_C_UNSUPPORTED, n->pos, hf_other_ways,
                "not modelled: %s (\"%s\")", others[i].what, n->text);
        return NULL;
    }
    hf_fail(r, SC_C_UNKNOWN_NAME, n->pos, hf_other_ways,
            "unknown model_type \"%.60s\"", n->text);
    return NULL;
}

/* ---- files of several towers */

void hf_language_model(hf_reader *r)
{
    static const char *const names[] = {"text_config", "llm_config",
                                        "language_config"};
    static const char *const towers[] = {"vision_config", "audio_config"};
    const sc_node *tower = NULL, *text = NULL;
    for (size_t i = 0; i < SC_COUNT(towers) && !tower; i++)
        tower = hf_get(r, r->root, towers[i]);
    for (size_t i = 0; i < SC_COUNT(names) && !text; i++)
        text = hf_get(r, r->root, names[i]);
    if (text && text->kind != SC_N_MAP) {
        hf_fail(r, SC_C_TYPE, text->pos, NULL, "%s must be an object",
                text->key);
    } else if (text) {
        r->outer = r->root;
        r->root = text;
        if (tower)
            hf_note(r,
                    "only the language model is predicted: %s of the file is "
                    "left out",
                    tower->key);
    } else if (tower) {
        hf_unsupported(r, tower, "a tower beside the text");
    }
}
