/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_hf_more.c - more config.json files with their published counts;
 * with those of test_model_hf.c at least the 46 that people have tried.  What
 * changes the network of one type is refused in a file of another.
 */
#include "fixture.h"
#include "model/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
    const char *name, *text;
    double params; /* of the published definition, without MTP */
    const char *source;
} files[] = {
    {"llama-3.1-8b", "{\"model_type\": \"llama\", \"attention_bias\": false, \"hidden_size\": 4096, \"intermediate_size\": 14336, \"max_position_embeddings\": 131072, \"mlp_bias\": false, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"llama3\"}, \"rope_theta\": 500000.0, \"vocab_size\": 128256, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     8030261248, "safetensors of meta-llama/Llama-3.1-8B"},
    {"llama-3.1-8b-v5", "{\"architectures\": [\"LlamaForCausalLM\"], \"dtype\": \"bfloat16\", \"hidden_act\": \"silu\", \"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"llama3\", \"factor\": 8.0}, \"tie_word_embeddings\": false, \"transformers_version\": \"5.0.0\", \"vocab_size\": 128256}",
     8030261248, "the same in the form of transformers 5"},
    {"llama-3.2-1b", "{\"model_type\": \"llama\", \"head_dim\": 64, \"hidden_act\": \"silu\", \"hidden_size\": 2048, \"intermediate_size\": 8192, \"num_attention_heads\": 32, \"num_hidden_layers\": 16, \"num_key_value_heads\": 8, \"tie_word_embeddings\": true, \"vocab_size\": 128256}",
     1235814400, "safetensors of meta-llama/Llama-3.2-1B"},
    {"qwen2.5-72b", "{\"model_type\": \"qwen2\", \"hidden_size\": 8192, \"intermediate_size\": 29568, \"max_window_layers\": 80, \"num_attention_heads\": 64, \"num_hidden_layers\": 80, \"num_key_value_heads\": 8, \"sliding_window\": 131072, \"use_sliding_window\": false, \"vocab_size\": 152064, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     72706203648, "safetensors of Qwen/Qwen2.5-72B"},
    {"qwen2.5-0.5b", "{\"model_type\": \"qwen2\", \"hidden_act\": \"silu\", \"hidden_size\": 896, \"intermediate_size\": 4864, \"max_window_layers\": 24, \"num_attention_heads\": 14, \"num_hidden_layers\": 24, \"num_key_value_heads\": 2, \"sliding_window\": 32768, \"tie_word_embeddings\": true, \"use_mrope\": false, \"use_sliding_window\": false, \"vocab_size\": 151936}",
     494032768, "safetensors of Qwen/Qwen2.5-0.5B"},
    {"mixtral-8x7b", "{\"model_type\": \"mixtral\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_attention_heads\": 32, \"num_experts_per_tok\": 2, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"num_local_experts\": 8, \"output_router_logits\": false, \"router_aux_loss_coef\": 0.02, \"sliding_window\": null, \"vocab_size\": 32000, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     46702792704, "safetensors of mistralai/Mixtral-8x7B-v0.1"},
    {"deepseek-v2-lite", "{\"model_type\": \"deepseek_v2\", \"aux_loss_alpha\": 0.001, \"first_k_dense_replace\": 1, \"hidden_size\": 2048, \"intermediate_size\": 10944, \"kv_lora_rank\": 512, \"moe_intermediate_size\": 1408, \"moe_layer_freq\": 1, \"n_group\": 1, \"n_routed_experts\": 64, \"n_shared_experts\": 2, \"norm_topk_prob\": false, \"num_attention_heads\": 16, \"num_experts_per_tok\": 6, \"num_hidden_layers\": 27, \"num_key_value_heads\": 16, \"q_lora_rank\": null, \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"routed_scaling_factor\": 1.0, \"scoring_func\": \"softmax\", \"seq_aux\": true, \"topk_group\": 1, \"topk_method\": \"greedy\", \"v_head_dim\": 128, \"vocab_size\": 102400, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     15706484224, "safetensors of deepseek-ai/DeepSeek-V2-Lite"},
    {"deepseek-v3", "{\"model_type\": \"deepseek_v3\", \"ep_size\": 1, \"first_k_dense_replace\": 3, \"hidden_size\": 7168, \"intermediate_size\": 18432, \"kv_lora_rank\": 512, \"moe_intermediate_size\": 2048, \"moe_layer_freq\": 1, \"n_group\": 8, \"n_routed_experts\": 256, \"n_shared_experts\": 1, \"norm_topk_prob\": true, \"num_attention_heads\": 128, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 61, \"num_key_value_heads\": 128, \"num_nextn_predict_layers\": 1, \"q_lora_rank\": 1536, \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"routed_scaling_factor\": 2.5, \"scoring_func\": \"sigmoid\", \"topk_group\": 4, \"topk_method\": \"noaux_tc\", \"v_head_dim\": 128, \"vocab_size\": 129280, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     671e9, "DeepSeek-V3 Technical Report: 671B, 14B more of the MTP module"},
    {"kimi-k2", "{\"model_type\": \"kimi_k2\", \"first_k_dense_replace\": 1, \"hidden_size\": 7168, \"intermediate_size\": 18432, \"kv_lora_rank\": 512, \"moe_intermediate_size\": 2048, \"moe_layer_freq\": 1, \"n_group\": 1, \"n_routed_experts\": 384, \"n_shared_experts\": 1, \"num_attention_heads\": 64, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 61, \"num_key_value_heads\": 64, \"num_nextn_predict_layers\": 0, \"q_lora_rank\": 1536, \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"topk_group\": 1, \"topk_method\": \"noaux_tc\", \"v_head_dim\": 128, \"vocab_size\": 163840, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     1026.4e9, "its matrices by hand; 1T on the model card"},
    {"gpt-neox-20b", "{\"model_type\": \"gpt_neox\", \"attention_probs_dropout_prob\": 0, \"hidden_act\": \"gelu_fast\", \"hidden_dropout_prob\": 0, \"hidden_size\": 6144, \"intermediate_size\": 24576, \"max_position_embeddings\": 2048, \"num_attention_heads\": 64, \"num_hidden_layers\": 44, \"rotary_emb_base\": 10000, \"rotary_pct\": 0.25, \"tie_word_embeddings\": false, \"vocab_size\": 50432}",
     20554567680, "elements of EleutherAI/gpt-neox-20b"},
    {"pythia-6.9b", "{\"model_type\": \"gpt_neox\", \"hidden_act\": \"gelu\", \"hidden_size\": 4096, \"intermediate_size\": 16384, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"rotary_pct\": 0.25, \"tie_word_embeddings\": false, \"use_parallel_residual\": true, \"vocab_size\": 50432}",
     6857302016, "elements of EleutherAI/pythia-6.9b"},
    {"gpt-oss-120b", "{\"model_type\": \"gpt_oss\", \"attention_bias\": true, \"experts_per_token\": 4, \"head_dim\": 64, \"hidden_size\": 2880, \"intermediate_size\": 2880, \"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\"], \"num_attention_heads\": 64, \"num_experts_per_tok\": 4, \"num_hidden_layers\": 36, \"num_key_value_heads\": 8, \"num_local_experts\": 128, \"sliding_window\": 128, \"swiglu_limit\": 7.0, \"vocab_size\": 201088, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     116.83e9, "gpt-oss model card, table 1"},
    {"mistral-7b", "{\"model_type\": \"mistral\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"sliding_window\": 4096, \"vocab_size\": 32000, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     7241732096, "safetensors of mistralai/Mistral-7B-v0.1"},
    {"mistral-small-24b-2501", "{\"model_type\": \"mistral\", \"head_dim\": 128, \"hidden_size\": 5120, \"intermediate_size\": 32768, \"num_attention_heads\": 32, \"num_hidden_layers\": 40, \"num_key_value_heads\": 8, \"sliding_window\": null, \"vocab_size\": 131072, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     23572403200, "safetensors of mistralai/Mistral-Small-24B-Base-2501"},
    {"qwen3-8b", "{\"model_type\": \"qwen3\", \"attention_bias\": false, \"head_dim\": 128, \"hidden_size\": 4096, \"intermediate_size\": 12288, \"max_window_layers\": 36, \"num_attention_heads\": 32, \"num_hidden_layers\": 36, \"num_key_value_heads\": 8, \"sliding_window\": null, \"use_sliding_window\": false, \"vocab_size\": 151936, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     8190735360, "safetensors of Qwen/Qwen3-8B"},
    {"qwen3-235b-a22b", "{\"model_type\": \"qwen3_moe\", \"decoder_sparse_step\": 1, \"head_dim\": 128, \"hidden_size\": 4096, \"intermediate_size\": 12288, \"max_window_layers\": 94, \"mlp_only_layers\": [], \"moe_intermediate_size\": 1536, \"num_attention_heads\": 64, \"num_experts\": 128, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 94, \"num_key_value_heads\": 4, \"use_sliding_window\": false, \"vocab_size\": 151936, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     235093634560, "safetensors of Qwen/Qwen3-235B-A22B"},
    {"gpt2-xl", "{\"model_type\": \"gpt2\", \"activation_function\": \"gelu_new\", \"attn_pdrop\": 0.1, \"n_ctx\": 1024, \"n_embd\": 1600, \"n_head\": 25, \"n_layer\": 48, \"n_positions\": 1024, \"resid_pdrop\": 0.1, \"summary_type\": \"cls_index\", \"vocab_size\": 50257}",
     1557611200, "safetensors of openai-community/gpt2-xl"},
    {"bloom-7b1", "{\"model_type\": \"bloom\", \"apply_residual_connection_post_layernorm\": false, \"hidden_dropout\": 0.0, \"n_embed\": 4096, \"n_layer\": 30, \"num_attention_heads\": 32, \"offset_alibi\": 100, \"vocab_size\": 250880}",
     7069016064, "safetensors of bigscience/bloom-7b1"},
    {"opt-6.7b", "{\"model_type\": \"opt\", \"_remove_final_layer_norm\": false, \"activation_function\": \"relu\", \"do_layer_norm_before\": true, \"dropout\": 0.1, \"ffn_dim\": 16384, \"hidden_size\": 4096, \"layerdrop\": 0.0, \"max_position_embeddings\": 2048, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"vocab_size\": 50272, \"word_embed_proj_dim\": 4096}",
     6658473984, "elements of facebook/opt-6.7b"},
    {"mpt-7b", "{\"model_type\": \"mpt\", \"attn_config\": {\"alibi\": true, \"alibi_bias_max\": 8, \"attn_impl\": \"torch\", \"attn_pdrop\": 0, \"attn_type\": \"multihead_attention\", \"qk_ln\": false}, \"d_model\": 4096, \"expansion_ratio\": 4, \"learned_pos_emb\": true, \"max_seq_len\": 2048, \"n_heads\": 32, \"n_layers\": 32, \"no_bias\": true, \"norm_type\": \"low_precision_layernorm\", \"vocab_size\": 50432}",
     6649286656, "elements of mosaicml/mpt-7b"},
    {"bert-large", "{\"model_type\": \"bert\", \"attention_probs_dropout_prob\": 0.1, \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"hidden_size\": 1024, \"intermediate_size\": 4096, \"max_position_embeddings\": 512, \"num_attention_heads\": 16, \"num_hidden_layers\": 24, \"type_vocab_size\": 2, \"vocab_size\": 30522}",
     335174458, "elements of BertForMaskedLM, bert-large-uncased"},
    {"t5-large", "{\"model_type\": \"t5\", \"d_ff\": 4096, \"d_kv\": 64, \"d_model\": 1024, \"decoder_start_token_id\": 0, \"dropout_rate\": 0.1, \"is_encoder_decoder\": true, \"n_positions\": 512, \"num_heads\": 16, \"num_layers\": 24, \"relative_attention_num_buckets\": 32, \"vocab_size\": 32128}",
     737668096, "checkpoint of google-t5/t5-large"},
    {"qwen2-57b-a14b", "{\"model_type\": \"qwen2_moe\", \"decoder_sparse_step\": 1, \"hidden_size\": 3584, \"intermediate_size\": 18944, \"max_window_layers\": 28, \"moe_intermediate_size\": 2560, \"norm_topk_prob\": false, \"num_attention_heads\": 28, \"num_experts\": 64, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 28, \"num_key_value_heads\": 4, \"shared_expert_intermediate_size\": 20480, \"sliding_window\": 65536, \"use_sliding_window\": false, \"vocab_size\": 151936, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     57409119744, "safetensors of Qwen/Qwen2-57B-A14B"},
    {"gemma-3-27b", "{\"model_type\": \"gemma3\", \"vision_config\": {\"hidden_size\": 1152}, \"text_config\": {\"model_type\": \"gemma3_text\", \"head_dim\": 128, \"hidden_size\": 5376, \"intermediate_size\": 21504, \"num_attention_heads\": 32, \"num_hidden_layers\": 62, \"num_key_value_heads\": 16, \"query_pre_attn_scalar\": 168, \"sliding_window\": 1024}}",
     25600e6 + 1416e6, "Gemma 3 report, table 1"},
    {"qwen3-next-80b-a3b", "{\"model_type\": \"qwen3_next\", \"decoder_sparse_step\": 1, \"full_attention_interval\": 4, \"head_dim\": 256, \"hidden_size\": 2048, \"intermediate_size\": 5120, \"linear_conv_kernel_dim\": 4, \"linear_key_head_dim\": 128, \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 32, \"linear_value_head_dim\": 128, \"mlp_only_layers\": [], \"moe_intermediate_size\": 512, \"norm_topk_prob\": true, \"num_attention_heads\": 16, \"num_experts\": 512, \"num_experts_per_tok\": 10, \"num_hidden_layers\": 48, \"num_key_value_heads\": 2, \"partial_rotary_factor\": 0.25, \"shared_expert_intermediate_size\": 512, \"vocab_size\": 151936, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     2 * 151936.0 * 2048 + 48 * (512 + 1) * 3.0 * 2048 * 512 + 48 * 512.0 * 2048 + 12 * 2048.0 * 256 * (2 * 16 + 2 * 2 + 16) + 36 * 2048.0 * (4 * 2048 + 2 * 4096 / 2 + 64 + 4096), "its matrices by hand; named 80B"},
    {"qwen3.5-9b", "{\"model_type\": \"qwen3_5\", \"vision_config\": {\"depth\": 27}, \"text_config\": {\"model_type\": \"qwen3_5_text\", \"attn_output_gate\": true, \"full_attention_interval\": 4, \"head_dim\": 256, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 12288, \"layer_types\": [\"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\", \"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\", \"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\", \"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\", \"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\", \"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\", \"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\", \"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\"], \"linear_conv_kernel_dim\": 4, \"linear_key_head_dim\": 128, \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 32, \"linear_value_head_dim\": 128, \"mamba_ssm_dtype\": \"float32\", \"mtp_num_hidden_layers\": 1, \"mtp_use_dedicated_embeddings\": false, \"num_attention_heads\": 16, \"num_hidden_layers\": 32, \"num_key_value_heads\": 4, \"tie_word_embeddings\": false, \"vocab_size\": 248320}}",
     2 * 248320.0 * 4096 + 32 * 3.0 * 4096 * 12288 + 8 * 4096.0 * 256 * (2 * 16 + 2 * 4 + 16) + 24 * 4096.0 * (2 * 2048 + 2 * 4096 + 64 + 4096), "its matrices by hand; named 9B"},
    {"olmo-7b", "{\"model_type\": \"olmo\", \"attention_bias\": false, \"clip_qkv\": null, \"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 32, \"vocab_size\": 50304, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     6888095744, "safetensors of allenai/OLMo-7B-hf"},
    {"gpt-neo-2.7b", "{\"model_type\": \"gpt_neo\", \"activation_function\": \"gelu_new\", \"attention_layers\": [\"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\", \"global\", \"local\"], \"attention_types\": [[[\"global\", \"local\"], 16]], \"hidden_size\": 2560, \"intermediate_size\": null, \"max_position_embeddings\": 2048, \"num_heads\": 20, \"num_layers\": 32, \"resid_dropout\": 0, \"vocab_size\": 50257, \"window_size\": 256}",
     2651307520, "elements of EleutherAI/gpt-neo-2.7B"},
    {"xglm-564m", "{\"model_type\": \"xglm\", \"activation_function\": \"gelu\", \"attention_heads\": 16, \"d_model\": 1024, \"dropout\": 0.1, \"ffn_dim\": 4096, \"layerdrop\": 0.0, \"max_position_embeddings\": 2048, \"num_layers\": 24, \"scale_embedding\": true, \"vocab_size\": 256008}",
     564463616, "elements of facebook/xglm-564M"},
    {"biogpt", "{\"model_type\": \"biogpt\", \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"hidden_size\": 1024, \"intermediate_size\": 4096, \"layerdrop\": 0.0, \"max_position_embeddings\": 1024, \"num_attention_heads\": 16, \"num_hidden_layers\": 24, \"scale_embedding\": true, \"vocab_size\": 42384}",
     346763264, "elements of microsoft/biogpt"},
    {"jais-2-8b", "{\"model_type\": \"jais2\", \"attention_bias\": true, \"head_dim\": 128, \"hidden_act\": \"relu2\", \"hidden_size\": 3328, \"intermediate_size\": 26624, \"mlp_bias\": true, \"num_attention_heads\": 26, \"num_hidden_layers\": 32, \"num_key_value_heads\": 26, \"tie_word_embeddings\": false, \"vocab_size\": 150272}",
     2 * 150272.0 * 3328 + 32 * (4.0 * 3328 * 3328 + 2.0 * 3328 * 26624), "its matrices by hand; named 8B"},
    {"cwm-32b", "{\"model_type\": \"cwm\", \"head_dim\": 128, \"hidden_size\": 6144, \"intermediate_size\": 21504, \"mlp_bias\": false, \"num_attention_heads\": 48, \"num_hidden_layers\": 64, \"num_key_value_heads\": 8, \"sliding_window\": 8192, \"vocab_size\": 128256, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     2 * 128256.0 * 6144 + 64 * (6144.0 * 128 * (2 * 48 + 2 * 8) + 3.0 * 6144 * 21504), "its matrices by hand; named 32B"},
    {"apertus-8b", "{\"model_type\": \"apertus\", \"attention_bias\": false, \"hidden_act\": \"xielu\", \"hidden_size\": 4096, \"intermediate_size\": 21504, \"mlp_bias\": false, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"post_norm\": false, \"qk_norm\": true, \"tie_word_embeddings\": false, \"vocab_size\": 131072}",
     2 * 131072.0 * 4096 + 32 * (4096.0 * 128 * (2 * 32 + 2 * 8) + 2.0 * 4096 * 21504), "its matrices by hand; named 8B"},
    {"afm-4.5b", "{\"model_type\": \"arcee\", \"attention_bias\": false, \"head_dim\": 128, \"hidden_act\": \"relu2\", \"hidden_size\": 2560, \"intermediate_size\": 18432, \"mlp_bias\": false, \"num_attention_heads\": 20, \"num_hidden_layers\": 36, \"num_key_value_heads\": 4, \"tie_word_embeddings\": false, \"vocab_size\": 128004}",
     2 * 128004.0 * 2560 + 36 * (2560.0 * 128 * (2 * 20 + 2 * 4) + 2.0 * 2560 * 18432), "its matrices by hand; named 4.5B"},
    {"trinity-mini", "{\"model_type\": \"afmoe\", \"global_attn_every_n_layers\": 4, \"head_dim\": 128, \"hidden_size\": 2048, \"intermediate_size\": 6144, \"moe_intermediate_size\": 1024, \"mup_enabled\": true, \"num_attention_heads\": 32, \"num_dense_layers\": 2, \"num_experts\": 128, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 32, \"num_key_value_heads\": 4, \"num_shared_experts\": 1, \"route_norm\": true, \"route_scale\": 2.826, \"score_func\": \"sigmoid\", \"sliding_window\": 2048, \"vocab_size\": 200192, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     2 * 200192.0 * 2048 + 30 * (129 * 3.0 * 2048 * 1024 + 128 * 2048.0) + 2 * 3.0 * 2048 * 6144 + 32 * 2048.0 * 128 * (3 * 32 + 2 * 4), "its matrices by hand; named 26B"},
    {"flex-olmo-7x7b", "{\"model_type\": \"flex_olmo\", \"attention_bias\": false, \"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_attention_heads\": 32, \"num_experts\": 7, \"num_experts_per_tok\": 5, \"num_hidden_layers\": 32, \"num_key_value_heads\": 32, \"vocab_size\": 100352, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     2 * 100352.0 * 4096 + 32 * (4.0 * 4096 * 4096 + 7 * 3.0 * 4096 * 11008), "its matrices by hand; 33B on the model card"},
    {"solar-open-100b", "{\"model_type\": \"solar_open\", \"attention_bias\": false, \"head_dim\": 128, \"hidden_size\": 4096, \"moe_intermediate_size\": 1280, \"n_group\": 1, \"n_routed_experts\": 128, \"n_shared_experts\": 1, \"num_attention_heads\": 64, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 48, \"num_key_value_heads\": 8, \"topk_group\": 1, \"vocab_size\": 196608, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     2 * 196608.0 * 4096 + 48 * (4096.0 * 128 * (2 * 64 + 2 * 8) + 129 * 3.0 * 4096 * 1280 + 128 * 4096.0), "its matrices by hand; 102.6B on the model card"},
    {"glm-4.7-flash", "{\"model_type\": \"glm4_moe_lite\", \"attention_bias\": false, \"first_k_dense_replace\": 1, \"hidden_size\": 2048, \"intermediate_size\": 10240, \"kv_lora_rank\": 512, \"moe_intermediate_size\": 1536, \"n_group\": 1, \"n_routed_experts\": 64, \"n_shared_experts\": 1, \"norm_topk_prob\": true, \"num_attention_heads\": 20, \"num_experts_per_tok\": 4, \"num_hidden_layers\": 47, \"num_key_value_heads\": 20, \"num_nextn_predict_layers\": 1, \"partial_rotary_factor\": 1.0, \"q_lora_rank\": 768, \"qk_nope_head_dim\": 192, \"qk_rope_head_dim\": 64, \"routed_scaling_factor\": 1.8, \"topk_group\": 1, \"topk_method\": \"noaux_tc\", \"v_head_dim\": 256, \"vocab_size\": 154880, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
     29.94e9, "its matrices by hand; named 30B-A3B"},
    {"vaultgemma-1b", "{\"model_type\": \"vaultgemma\", \"attn_logit_softcapping\": null, \"final_logit_softcapping\": null, \"head_dim\": 256, \"hidden_activation\": \"gelu_pytorch_tanh\", \"hidden_size\": 1152, \"intermediate_size\": 6912, \"num_attention_heads\": 4, \"num_hidden_layers\": 26, \"num_key_value_heads\": 4, \"query_pre_attn_scalar\": 256, \"sliding_window\": 512, \"vocab_size\": 256000}",
     256000.0 * 1152 + 26 * (4.0 * 1152 * 1024 + 3.0 * 1152 * 6912), "its matrices by hand; named 1B"},
    {"ministral-3-8b", "{\"model_type\": \"mistral3\", \"vision_config\": {\"model_type\": \"pixtral\"}, \"text_config\": {\"model_type\": \"ministral3\", \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_attention_heads\": 32, \"num_hidden_layers\": 34, \"num_key_value_heads\": 8, \"sliding_window\": null, \"vocab_size\": 131072}}",
     2 * 131072.0 * 4096 + 34 * (4096.0 * 128 * (2 * 32 + 2 * 8) + 3.0 * 4096 * 14336), "its matrices by hand; named 8B"},
    {"persimmon-8b", "{\"model_type\": \"persimmon\", \"hidden_size\": 4096, \"intermediate_size\": 16384, \"num_hidden_layers\": 36, \"num_attention_heads\": 64, \"num_key_value_heads\": 64, \"hidden_act\": \"relu2\", \"hidden_dropout\": 0.6, \"layer_norm_eps\": 1e-05, \"max_position_embeddings\": 16384, \"qk_layernorm\": true, \"rope_theta\": 25000.0, \"rope_scaling\": null, \"tie_word_embeddings\": false, \"vocab_size\": 262144}",
     9397175296, "sizes of adept/persimmon-8b-base; its matrices by hand, named 9.3B"},
    {"hunyuan-7b", "{\"model_type\": \"hunyuan_v1_dense\", \"attention_bias\": false, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"mlp_bias\": false, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"tie_word_embeddings\": true, \"use_cla\": false, \"use_qk_norm\": true, \"vocab_size\": 128167, \"cla_share_factor\": 2, \"norm_type\": \"hf_rms\", \"org_vocab_size\": 128167, \"pool_type\": \"last\", \"use_rotary_pos_emb\": true, \"im_end_id\": 5}",
     128167.0 * 4096 + 32 * (4096.0 * 128 * (2 * 32 + 2 * 8) + 3.0 * 4096 * 14336), "its matrices by hand; 7.5B as shown of tencent/Hunyuan-7B-Instruct"},
    {"hunyuan-a13b", "{\"model_type\": \"hunyuan_v1_moe\", \"attention_bias\": false, \"attention_head_dim\": 128, \"cla_share_factor\": 2, \"class_num\": 0, \"dense_list\": [4096, 0], \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 3072, \"kv_lora_rank\": null, \"mlp_bias\": false, \"moe_drop_tokens\": false, \"moe_intermediate_size\": [3072, 3072], \"moe_layer_num_skipped\": 0, \"moe_topk\": [8, 8], \"norm_type\": \"rms\", \"num_attention_heads\": 32, \"num_experts\": 64, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"num_shared_expert\": [1, 1], \"tie_word_embeddings\": true, \"use_cla\": false, \"use_mixed_mlp_moe\": true, \"use_qk_norm\": true, \"use_rotary_pos_emb\": true, \"vocab_size\": 128167}",
     128167.0 * 4096 + 32 * (4096.0 * 128 * (2 * 32 + 2 * 8) + 65 * 3.0 * 4096 * 3072 + 64 * 4096.0), "its matrices by hand; 80.4B as shown of tencent/Hunyuan-A13B-Instruct"},
    {"bart-large", "{\"activation_function\": \"gelu\", \"add_bias_logits\": false, \"add_final_layer_norm\": false, \"d_model\": 1024, \"decoder_attention_heads\": 16, \"decoder_ffn_dim\": 4096, \"decoder_layerdrop\": 0.0, \"decoder_layers\": 12, \"dropout\": 0.1, \"encoder_attention_heads\": 16, \"encoder_ffn_dim\": 4096, \"encoder_layerdrop\": 0.0, \"encoder_layers\": 12, \"init_std\": 0.02, \"is_encoder_decoder\": true, \"max_position_embeddings\": 1024, \"model_type\": \"bart\", \"normalize_before\": false, \"num_hidden_layers\": 12, \"scale_embedding\": false, \"vocab_size\": 50265}",
     406291456, "elements of facebook/bart-large that learn"},
    {"bart-base", "{\"activation_function\": \"gelu\", \"add_bias_logits\": false, \"add_final_layer_norm\": false, \"d_model\": 768, \"decoder_attention_heads\": 12, \"decoder_ffn_dim\": 3072, \"decoder_layerdrop\": 0.0, \"decoder_layers\": 6, \"dropout\": 0.1, \"encoder_attention_heads\": 12, \"encoder_ffn_dim\": 3072, \"encoder_layerdrop\": 0.0, \"encoder_layers\": 6, \"init_std\": 0.02, \"is_encoder_decoder\": true, \"max_position_embeddings\": 1024, \"model_type\": \"bart\", \"normalize_before\": false, \"num_hidden_layers\": 6, \"scale_embedding\": false, \"vocab_size\": 50265}",
     139420416, "elements of facebook/bart-base that learn"},
    {"mbart-large-cc25", "{\"activation_function\": \"gelu\", \"add_bias_logits\": false, \"add_final_layer_norm\": true, \"d_model\": 1024, \"decoder_attention_heads\": 16, \"decoder_ffn_dim\": 4096, \"decoder_layerdrop\": 0.0, \"decoder_layers\": 12, \"dropout\": 0.1, \"encoder_attention_heads\": 16, \"encoder_ffn_dim\": 4096, \"encoder_layerdrop\": 0.0, \"encoder_layers\": 12, \"init_std\": 0.02, \"is_encoder_decoder\": true, \"max_position_embeddings\": 1024, \"model_type\": \"mbart\", \"normalize_before\": true, \"num_hidden_layers\": 12, \"scale_embedding\": true, \"vocab_size\": 250027, \"normalize_embedding\": true, \"static_position_embeddings\": false}",
     610851840, "elements of facebook/mbart-large-cc25 that learn"},
    {"pegasus-large", "{\"activation_function\": \"relu\", \"add_bias_logits\": false, \"add_final_layer_norm\": true, \"d_model\": 1024, \"decoder_attention_heads\": 16, \"decoder_ffn_dim\": 4096, \"decoder_layerdrop\": 0.0, \"decoder_layers\": 16, \"dropout\": 0.1, \"encoder_attention_heads\": 16, \"encoder_ffn_dim\": 4096, \"encoder_layerdrop\": 0.0, \"encoder_layers\": 16, \"init_std\": 0.02, \"is_encoder_decoder\": true, \"max_position_embeddings\": 1024, \"model_type\": \"pegasus\", \"normalize_before\": true, \"num_hidden_layers\": 16, \"scale_embedding\": true, \"vocab_size\": 96103, \"normalize_embedding\": false, \"static_position_embeddings\": true, \"extra_pos_embeddings\": 1}",
     568699904, "elements of google/pegasus-large that learn; sines do not"},
    {"opus-mt", "{\"activation_function\": \"swish\", \"add_bias_logits\": false, \"add_final_layer_norm\": false, \"d_model\": 512, \"decoder_attention_heads\": 8, \"decoder_ffn_dim\": 2048, \"decoder_layerdrop\": 0.0, \"decoder_layers\": 6, \"dropout\": 0.1, \"encoder_attention_heads\": 8, \"encoder_ffn_dim\": 2048, \"encoder_layerdrop\": 0.0, \"encoder_layers\": 6, \"init_std\": 0.02, \"is_encoder_decoder\": true, \"max_position_embeddings\": 512, \"model_type\": \"marian\", \"normalize_before\": false, \"num_hidden_layers\": 6, \"scale_embedding\": true, \"vocab_size\": 53685, \"decoder_vocab_size\": 53685, \"normalize_embedding\": false, \"static_position_embeddings\": true, \"extra_pos_embeddings\": 53685, \"share_encoder_decoder_embeddings\": true}",
     154609664 - 3 * 27486720 - 2 * 262144, "a summary of a MarianMTModel of these sizes, less three more views of one table and the sines"},
    {"umt5-base", "{\"model_type\": \"umt5\", \"d_ff\": 2048, \"d_kv\": 64, \"d_model\": 768, \"dense_act_fn\": \"gelu_new\", \"dropout_rate\": 0.1, \"initializer_factor\": 1.0, \"is_encoder_decoder\": true, \"is_gated_act\": true, \"num_decoder_layers\": 12, \"num_heads\": 12, \"num_layers\": 12, \"relative_attention_max_distance\": 128, \"relative_attention_num_buckets\": 32, \"scalable_attention\": true, \"tie_word_embeddings\": false, \"vocab_size\": 256384}",
     582401280 + 2 * 6272.0 * 768 + 22 * 32 * 12, "google/mt5-base, with a vocabulary of 6,272 more and a table of distances in each block"},
    {"modernbert-base", "{\"model_type\": \"modernbert\", \"attention_bias\": false, \"classifier_activation\": \"gelu\", \"classifier_bias\": false, \"classifier_pooling\": \"mean\", \"decoder_bias\": true, \"deterministic_flash_attn\": false, \"global_attn_every_n_layers\": 3, \"global_rope_theta\": 160000.0, \"hidden_activation\": \"gelu\", \"hidden_size\": 768, \"initializer_cutoff_factor\": 2.0, \"intermediate_size\": 1152, \"local_attention\": 128, \"local_rope_theta\": 10000.0, \"max_position_embeddings\": 8192, \"mlp_bias\": false, \"mlp_dropout\": 0.0, \"norm_bias\": false, \"num_attention_heads\": 12, \"num_hidden_layers\": 22, \"position_embedding_type\": \"absolute\", \"sparse_pred_ignore_index\": -100, \"reference_compile\": false, \"tie_word_embeddings\": true, \"vocab_size\": 50368}",
     149655232, "elements of ModernBertForMaskedLM, answerdotai/ModernBERT-base"},
    {"modernbert-large", "{\"model_type\": \"modernbert\", \"attention_bias\": false, \"classifier_activation\": \"gelu\", \"classifier_bias\": false, \"classifier_pooling\": \"mean\", \"decoder_bias\": true, \"deterministic_flash_attn\": false, \"global_attn_every_n_layers\": 3, \"global_rope_theta\": 160000.0, \"hidden_activation\": \"gelu\", \"hidden_size\": 1024, \"initializer_cutoff_factor\": 2.0, \"intermediate_size\": 2624, \"local_attention\": 128, \"local_rope_theta\": 10000.0, \"max_position_embeddings\": 8192, \"mlp_bias\": false, \"mlp_dropout\": 0.0, \"norm_bias\": false, \"num_attention_heads\": 16, \"num_hidden_layers\": 28, \"position_embedding_type\": \"absolute\", \"sparse_pred_ignore_index\": -100, \"reference_compile\": false, \"tie_word_embeddings\": true, \"vocab_size\": 50368}",
     395881664, "elements of ModernBertForMaskedLM, answerdotai/ModernBERT-large"},
    {"falcon-h1-7b", "{\"model_type\": \"falcon_h1\", \"attention_bias\": false, \"attention_in_multiplier\": 1.0, \"attention_out_multiplier\": 0.21, \"attn_layer_indices\": null, \"embedding_multiplier\": 5.6, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 3072, \"intermediate_size\": 12288, \"key_multiplier\": 0.5, \"lm_head_multiplier\": 0.01, \"mamba_chunk_size\": 256, \"mamba_conv_bias\": true, \"mamba_d_conv\": 4, \"mamba_d_head\": 128, \"mamba_d_ssm\": 3072, \"mamba_d_state\": 256, \"mamba_expand\": 2, \"mamba_n_groups\": 1, \"mamba_n_heads\": 24, \"mamba_norm_before_gate\": false, \"mamba_proj_bias\": false, \"mamba_rms_norm\": false, \"mamba_use_mlp\": true, \"max_position_embeddings\": 262144, \"mlp_bias\": false, \"mlp_expansion_factor\": 8, \"mlp_multipliers\": [0.88, 0.2], \"num_attention_heads\": 12, \"num_hidden_layers\": 44, \"num_key_value_heads\": 2, \"num_logits_to_keep\": 1, \"projectors_bias\": false, \"ssm_in_multiplier\": 1.2, \"ssm_multipliers\": [0.3, 0.2, 0.1, 0.5, 0.3], \"ssm_out_multiplier\": 0.2, \"tie_word_embeddings\": false, \"vocab_size\": 130048}",
     7585513568, "its matrices by hand; 7.59B in the Falcon-H1 report"},
    {"falcon-h1-0.5b", "{\"model_type\": \"falcon_h1\", \"attention_bias\": false, \"attention_in_multiplier\": 1.0, \"attention_out_multiplier\": 0.21, \"attn_layer_indices\": null, \"embedding_multiplier\": 5.6, \"head_dim\": 64, \"hidden_act\": \"silu\", \"hidden_size\": 1024, \"intermediate_size\": 2048, \"key_multiplier\": 0.5, \"lm_head_multiplier\": 0.01, \"mamba_chunk_size\": 256, \"mamba_conv_bias\": true, \"mamba_d_conv\": 4, \"mamba_d_head\": 64, \"mamba_d_ssm\": 1536, \"mamba_d_state\": 128, \"mamba_expand\": 2, \"mamba_n_groups\": 1, \"mamba_n_heads\": 24, \"mamba_norm_before_gate\": false, \"mamba_proj_bias\": false, \"mamba_rms_norm\": false, \"mamba_use_mlp\": true, \"max_position_embeddings\": 262144, \"mlp_bias\": false, \"mlp_expansion_factor\": 8, \"mlp_multipliers\": [0.88, 0.2], \"num_attention_heads\": 8, \"num_hidden_layers\": 36, \"num_key_value_heads\": 2, \"num_logits_to_keep\": 1, \"projectors_bias\": false, \"ssm_in_multiplier\": 1.2, \"ssm_multipliers\": [0.3, 0.2, 0.1, 0.5, 0.3], \"ssm_out_multiplier\": 0.2, \"tie_word_embeddings\": false, \"vocab_size\": 32784}",
     521411104, "safetensors of tiiuae/Falcon-H1-0.5B-Base"},
    {"electra-small", "{\"architectures\": [\"ElectraForPreTraining\"], \"model_type\": \"electra\", \"embedding_size\": 128, \"generator_size\": \"0.25\", \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"hidden_size\": 256, \"intermediate_size\": 1024, \"max_position_embeddings\": 512, \"num_attention_heads\": 4, \"num_hidden_layers\": 12, \"position_embedding_type\": \"absolute\", \"summary_type\": \"first\", \"summary_use_proj\": true, \"type_vocab_size\": 2, \"vocab_size\": 30522}",
     13483008 + 256 * 257 + 257, "elements of ElectraModel, google/electra-small-discriminator, and its head"},
    {"electra-base", "{\"architectures\": [\"ElectraForPreTraining\"], \"model_type\": \"electra\", \"embedding_size\": 768, \"generator_size\": \"0.25\", \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"hidden_size\": 768, \"intermediate_size\": 3072, \"max_position_embeddings\": 512, \"num_attention_heads\": 12, \"num_hidden_layers\": 12, \"position_embedding_type\": \"absolute\", \"summary_type\": \"first\", \"summary_use_proj\": true, \"type_vocab_size\": 2, \"vocab_size\": 30522}",
     108891648 + 768 * 769 + 769, "elements of ElectraModel, google/electra-base-discriminator, and its head"},
    {"electra-small-generator", "{\"architectures\": [\"ElectraForMaskedLM\"], \"model_type\": \"electra\", \"embedding_size\": 128, \"generator_size\": \"0.25\", \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"hidden_size\": 256, \"intermediate_size\": 1024, \"max_position_embeddings\": 512, \"num_attention_heads\": 4, \"num_hidden_layers\": 12, \"position_embedding_type\": \"absolute\", \"summary_type\": \"first\", \"summary_use_proj\": true, \"type_vocab_size\": 2, \"vocab_size\": 30522}",
     13483008 + 128 * 257 + 2 * 128 + 30522, "the same sizes with the head of a generator"},
    {"llava-7b", "{\"model_type\": \"llava\", \"vision_config\": {\"model_type\": \"clip_vision_model\"}, \"text_config\": {\"model_type\": \"llama\", \"add_cross_attention\": false, \"bad_words_ids\": null, \"begin_suppress_tokens\": null, \"bos_token_id\": 1, \"chunk_size_feed_forward\": 0, \"cross_attention_hidden_size\": null, \"decoder_start_token_id\": null, \"diversity_penalty\": 0.0, \"do_sample\": false, \"early_stopping\": false, \"encoder_no_repeat_ngram_size\": 0, \"eos_token_id\": 2, \"exponential_decay_length_penalty\": null, \"finetuning_task\": null, \"forced_bos_token_id\": null, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"id2label\": {\"0\": \"LABEL_0\", \"1\": \"LABEL_1\"}, \"intermediate_size\": 11008, \"is_decoder\": false, \"is_encoder_decoder\": false, \"label2id\": {\"LABEL_0\": 0}, \"length_penalty\": 1.0, \"max_length\": 20, \"max_position_embeddings\": 4096, \"min_length\": 0, \"no_repeat_ngram_size\": 0, \"num_attention_heads\": 32, \"num_beam_groups\": 1, \"num_beams\": 1, \"num_hidden_layers\": 32, \"num_key_value_heads\": 32, \"num_return_sequences\": 1, \"output_attentions\": false, \"output_scores\": false, \"pretraining_tp\": 1, \"pruned_heads\": {}, \"remove_invalid_values\": false, \"repetition_penalty\": 1.0, \"return_dict\": true, \"return_dict_in_generate\": false, \"rms_norm_eps\": 1e-05, \"sep_token_id\": null, \"suppress_tokens\": null, \"temperature\": 1.0, \"tf_legacy_loss\": false, \"tie_encoder_decoder\": false, \"tie_word_embeddings\": false, \"top_k\": 50, \"top_p\": 1.0, \"torchscript\": false, \"typical_p\": 1.0, \"use_bfloat16\": false, \"vocab_size\": 32064}}",
     6738415616 + 2 * 64 * 4096, "safetensors of Llama-2-7b with 64 more tokens; every key that the library writes"},
    {"nllb-200-600m", "{\"model_type\": \"m2m_100\", \"activation_function\": \"relu\", \"d_model\": 1024, \"decoder_attention_heads\": 16, \"decoder_ffn_dim\": 4096, \"decoder_layerdrop\": 0, \"decoder_layers\": 12, \"dropout\": 0.1, \"encoder_attention_heads\": 16, \"encoder_ffn_dim\": 4096, \"encoder_layerdrop\": 0, \"encoder_layers\": 12, \"init_std\": 0.02, \"is_encoder_decoder\": true, \"max_length\": 200, \"max_position_embeddings\": 1024, \"num_hidden_layers\": 12, \"scale_embedding\": true, \"tokenizer_class\": \"NllbTokenizer\", \"vocab_size\": 256206}",
     615073792, "elements of facebook/nllb-200-distilled-600M that learn"},
};

/* clang-format on */

static sc_status read_text(const char *text, const sc_model **m)
{
    sc_err_init(&err);
    return model_read_hf(text, strlen(text), "c.json", &arena, m, &err);
}

static const char *file(const char *name)
{
    for (size_t i = 0; i < SC_COUNT(files); i++)
        if (strcmp(files[i].name, name) == 0) return files[i].text;
    fail_msg("no file %s", name);
    return NULL;
}

static const sc_model *read_file(const char *name)
{
    const sc_model *m = NULL;
    assert_int_equal(read_text(file(name), &m), SC_OK);
    return m;
}

static void test_counts(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const sc_model *m = NULL;
        if (read_text(files[i].text, &m) != SC_OK)
            fail_msg("%s: %u: %s", files[i].name, err.d[0].col, err.d[0].msg);
        double apart = (double)m->params / files[i].params - 1;
        wrong += fabs(apart) > 1e-3;
        if (fabs(apart) > 1e-3)
            printf("%s: %llu parameters, not %.0f (%s)\n", files[i].name,
                   (unsigned long long)m->params, files[i].params,
                   files[i].source);
    }
    assert_int_equal(wrong, 0);
}

static void refused(const char *text, const char *what)
{
    const sc_model *m = NULL;
    if (read_text(text, &m) == SC_OK) fail_msg("%s is read", what);
    for (uint32_t i = 0; i < err.n; i++) {
        char line[400];
        sc_diag_format(&err.d[i], line, sizeof line);
        if (strstr(line, "did you mean")) fail_msg("%s: %s", what, line);
    }
}

/* Keys of other types, and misspelt ones: nothing is ignored that may change
 * the network. */
static void test_keys(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "\"num_key_value_head\": 8",
        "\"num_hidden_layer\": 16",
        "\"linear_num_key_heads\": 16",
        "\"linear_conv_kernel_dim\": 4",
        "\"full_attention_interval\": 4",
        "\"shared_expert_intermediate_size\": 5632",
        "\"no_rope_layers\": [1, 1, 1, 0]",
        "\"no_rope_layer_interval\": 4",
        "\"attention_chunk_size\": 8192",
        "\"interleave_moe_layer_step\": 2",
        "\"intermediate_size_mlp\": 16384",
        "\"cross_attention_layers\": [3, 8]",
        "\"attn_logit_softcapping\": 50.0",
        "\"query_pre_attn_scalar\": 256",
        "\"rotary_dim\": 64",
        "\"shared_intermediate_size\": 1024",
        "\"parallel_attn\": true",
        "\"multi_query\": true",
        "\"new_decoder_architecture\": true",
        "\"hidden_activation\": \"gelu\"",
        "\"sliding_window_pattern\": 6",
        "\"attn_output_gate\": true",
        "\"first_k_dense_replace\": 3",
        "\"n_shared_experts\": 1",
        "\"qk_layernorm\": true",
        "\"use_qk_norm\": true",
        "\"num_nextn_predict_layers\": 1",
        "\"embedding_multiplier\": 12.0",
        "\"global_attn_every_n_layers\": 4",
        "\"time_step_rank\": 160",
        "\"alibi\": true",
        "\"layer_types\": [\"linear_attention\"]",
    };
    static const char *const names[] = {
        "llama-3.1-8b", "qwen2.5-72b", "mixtral-8x7b", "gpt-neox-20b",
        "mistral-7b",   "gpt2-xl",     "opt-6.7b",     "olmo-7b",
    };
    for (size_t i = 0; i < SC_COUNT(names); i++)
        for (size_t k = 0; k < SC_COUNT(keys); k++) {
            const char *what =
                sc_sprintf(&arena, "%s with %s", names[i], keys[k]);
            refused(sc_sprintf(&arena, "{%s, %s", keys[k], file(names[i]) + 1),
                    what);
        }
}

/* A file under the name of another type, as hints once advised. */
static void test_other_type(void **state)
{
    (void)state;

    static const struct {
        const char *name, *as;
    } all[] = {
        {"qwen3-next-80b-a3b", "qwen3_moe"},
        {"qwen2-57b-a14b", "qwen3_moe"},
        {"qwen2-57b-a14b", "mixtral"},
        {"deepseek-v2-lite", "llama"},
        {"trinity-mini", "qwen3_moe"},
        {"vaultgemma-1b", "llama"},
        {"gpt-oss-120b", "mixtral"},
        {"gpt-neo-2.7b", "gpt2"},
        {"glm-4.7-flash", "glm4_moe"},
        {"apertus-8b", "llama"},
        {"cwm-32b", "llama"},
        {"olmo-7b", "gpt_neox"},
    };

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        const char *text = file(all[i].name), *key = "\"model_type\": \"";
        const char *at = strstr(text, key) + strlen(key);
        const char *what =
            sc_sprintf(&arena, "%s as %s", all[i].name, all[i].as);
        refused(sc_sprintf(&arena, "%.*s%s%s", (int)(at - text), text,
                           all[i].as, strchr(at, '"')),
                what);
    }
}

/* Values that make another network of it. */
static void test_values(void **state)
{
    (void)state;

    static const struct {
        const char *name, *was, *is;
    } all[] = {
        {"hunyuan-7b", "\"use_cla\": false", "\"use_cla\": true"},
        {"hunyuan-7b", "hf_rms", "layer"},
        {"hunyuan-7b", "\"use_cla\": false", "\"num_experts\": 8"},
        {"hunyuan-a13b", "\"moe_topk\": [8, 8]", "\"moe_topk\": [8, 4]"},
        {"hunyuan-a13b", "[3072, 3072]", "[3072, 1536]"},
        {"hunyuan-a13b", "[1, 1]", "[[1], [1]]"},
        {"hunyuan-a13b", "\"num_experts\": 64", "\"num_experts\": 1"},
        {"hunyuan-a13b", "\"kv_lora_rank\": null", "\"kv_lora_rank\": 512"},
        {"persimmon-8b", "\"relu2\"", "\"tanh\""},
        {"bart-large", "\"normalize_before\": false",
         "\"normalize_before\": true"},
        {"bart-large", "\"decoder_ffn_dim\": 4096",
         "\"decoder_ffn_dim\": 2048"},
        {"bart-large", "\"decoder_attention_heads\": 16",
         "\"decoder_attention_heads\": 8"},
        {"bart-large", "\"num_hidden_layers\": 12", "\"num_hidden_layers\": 6"},
        {"bart-large", "\"decoder_layers\": 12", "\"layers_of_decoder\": 12"},
        {"bart-large", "\"gelu\"", "\"tanh\""},
        {"mbart-large-cc25", "\"add_final_layer_norm\": true",
         "\"add_final_layer_norm\": false"},
        {"mbart-large-cc25", "\"static_position_embeddings\": false",
         "\"static_position_embeddings\": true"},
        {"pegasus-large", "\"normalize_embedding\": false",
         "\"normalize_embedding\": true"},
        {"opus-mt", "\"decoder_vocab_size\": 53685",
         "\"decoder_vocab_size\": 60000"},
        {"opus-mt", "\"share_encoder_decoder_embeddings\": true",
         "\"share_encoder_decoder_embeddings\": false"},
        {"umt5-base", "\"is_gated_act\": true",
         "\"feed_forward_proj\": \"relu\", \"is_gated_act\": true"},
        {"umt5-base", "\"gelu_new\"", "\"tanh\""},
        {"electra-small", "\"embedding_size\": 128",
         "\"embedding_width\": 128"},
        {"electra-small", "\"type_vocab_size\": 2", "\"type_vocab_size\": 4"},
        {"electra-small", "\"absolute\"", "\"relative_key\""},
        {"electra-small", "\"summary_use_proj\": true", "\"is_decoder\": true"},
        {"modernbert-base", "\"classifier_bias\": false",
         "\"classifier_bias\": true"},
        {"modernbert-base", "\"classifier_activation\": \"gelu\"",
         "\"classifier_activation\": \"silu\""},
        {"modernbert-base", "\"hidden_activation\": \"gelu\"",
         "\"hidden_activation\": \"relu\""},
        {"modernbert-base", "\"local_attention\": 128",
         "\"sliding_window_pattern\": 6"},
        {"falcon-h1-7b", "\"mamba_d_head\": 128", "\"mamba_d_head\": 64"},
        {"falcon-h1-7b", "\"mamba_d_ssm\": 3072", "\"mamba_d_ssm\": 3000"},
        {"falcon-h1-7b", "\"projectors_bias\": false",
         "\"projectors_bias\": true"},
        {"falcon-h1-7b", "\"mamba_conv_bias\": true",
         "\"mamba_conv_bias\": false"},
        {"falcon-h1-7b", "\"mamba_use_mlp\": true", "\"mamba_use_mlp\": false"},
        {"falcon-h1-7b", "\"attn_layer_indices\": null",
         "\"attn_layer_indices\": [3]"},
        {"falcon-h1-7b", "\"mamba_expand\": 2",
         "\"layers_block_type\": [\"hybrid\", \"mamba\"]"},
        {"persimmon-8b", "\"qk_layernorm\": true", "\"qk_norm\": true"},
    };

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        const char *text = file(all[i].name), *at = strstr(text, all[i].was);
        assert_non_null(at);
        refused(sc_sprintf(&arena, "%.*s%s%s", (int)(at - text), text,
                           all[i].is, at + strlen(all[i].was)),
                all[i].is);
    }
}

/* Types and files without what is needed. */
static void test_reasons(void **state)
{
    (void)state;

    static const struct {
        const char *text, *message;
    } all[] = {
        {"{\"model_type\": \"mllama\", \"text_config\": {\"model_type\": "
         "\"mllama_text_model\", \"cross_attention_layers\": [3, 8]}}",
         "not modelled: layers that attend to an image "
         "(\"mllama_text_model\")"},
        {"{\"model_type\": \"vit\", \"hidden_size\": 768, "
         "\"num_hidden_layers\": 12, \"num_attention_heads\": 12, "
         "\"intermediate_size\": 3072, \"image_size\": 224, "
         "\"patch_size\": 16}",
         "missing key \"id2label\""},
        {"{\"model_type\": \"kimi_linear\", \"hidden_size\": 2304}",
         "not modelled: a delta rule with a gate for each channel"},
    };

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        const sc_model *m = NULL;
        assert_int_equal(read_text(all[i].text, &m), SC_EINPUT);
        if (strncmp(err.d[0].msg, all[i].message, strlen(all[i].message)) != 0)
            fail_msg("%s", err.d[0].msg);
    }
}

static void test_mtp(void **state)
{
    (void)state;
    const sc_model *m = read_file("deepseek-v3");
    /* one layer with its experts, the product that joins two inputs, and four
     * norms: DeepSeek-V3, section 4.2 */
    double attention = 7168.0 * 1536 + 1536 * 128.0 * 192 + 7168.0 * 576 +
                       512 * 128.0 * 256 + 128.0 * 128 * 7168;
    double experts = 257 * 3.0 * 7168 * 2048 + 257 * 7168.0;
    double mtp = attention + experts + 2 * 7168.0 * 7168;
    assert_true(fabs((double)m->mtp_params / mtp - 1) < 1e-3);
    assert_non_null(strstr(m->note, "1 block of multi-token prediction"));
    assert_int_equal(m->trained_params, m->params + m->mtp_params);
    assert_int_equal(read_file("kimi-k2")->mtp_params, 0);
}

static void test_facts(void **state)
{
    (void)state;
    const sc_model *m = read_file("qwen3-next-80b-a3b");
    assert_int_equal(m->t.layers, 96);
    assert_memory_equal(m->t.pattern, "DEDEDE*EDEDEDE*E", 16);
    assert_true(m->t.attn_gate && m->t.qk_norm);
    assert_non_null(strstr(m->note, "price of a mixer of Mamba-2"));
    m = read_file("qwen3.5-9b");
    assert_memory_equal(m->t.pattern, "D-D-D-*-", 8);
    assert_int_equal(m->t.mtp, 1);
    m = read_file("gpt-neo-2.7b");
    assert_string_equal(m->t.window_pattern, "FW");
    assert_int_equal(m->t.window, 256);
    assert_true(m->t.proj_bias && m->t.mlp_bias && !m->t.qkv_bias);
    m = read_file("cwm-32b");
    assert_string_equal(m->t.window_pattern, "FWWW");
    m = read_file("olmo-7b");
    assert_true(m->t.plain_norm);
    m = read_file("trinity-mini");
    assert_int_equal(m->t.full_every, 4);
    assert_int_equal(m->t.first_dense, 2);
    assert_int_equal(m->t.norms, SC_NORMS_BOTH);
    m = read_file("persimmon-8b");
    assert_true(m->t.qk_norm && m->t.norm_bias && m->t.bias);
    m = read_file("hunyuan-a13b");
    assert_true(m->t.qk_norm && m->t.experts == 64 && m->t.topk == 8);
    assert_int_equal(m->t.shared_ffn, 3072);
    m = read_file("bart-large");
    assert_int_equal(m->params, 406291456);
    assert_int_equal(m->t.norms, SC_NORMS_SUMS);
    assert_int_equal(m->t.positions, 1026);
    m = read_file("mbart-large-cc25");
    assert_int_equal(m->params, 610851840);
    assert_int_equal(m->t.norms, SC_NORMS_DEFAULT);
    m = read_file("pegasus-large");
    assert_int_equal(m->params, 568699904);
    assert_false(m->t.embed_norm);
    assert_int_equal(read_file("opus-mt")->params, 71625216);
    assert_int_equal(read_file("nllb-200-600m")->params, 615073792);
    m = read_file("umt5-base");
    assert_int_equal(m->params, 592043520);
    assert_true(m->t.relative_each && m->t.act == SC_ACT_GEGLU);
    m = read_file("modernbert-base");
    assert_int_equal(m->params, 149655232 + 768); /* one norm more */
    assert_int_equal(m->t.norms, SC_NORMS_BEFORE);
    assert_true(m->t.encoder && m->t.head_bias && !m->t.norm_bias);
    assert_string_equal(m->t.window_pattern, "FWW");
    assert_int_equal(m->t.window, 128);
    m = read_file("falcon-h1-0.5b");
    assert_int_equal(m->params, 521411104 + 36 * 1536); /* norms of scans */
    assert_int_equal(m->t.layers, 72);
    assert_memory_equal(m->t.pattern, "B-B-B-B-", 8);
    assert_int_equal(read_file("electra-small")->params, 13549057);
    m = read_file("electra-small-generator");
    assert_int_equal(m->params, 13546682);
    assert_true(m->t.tied && m->t.embed_width == 128 && !m->t.replaced);
    m = read_file("biogpt");
    assert_int_equal(m->t.positions, 1026);
}

/* Files of newer releases list the kind of every MLP. */
static void test_mlp_types(void **state)
{
    (void)state;

    static const struct {
        const char *list;
        int64_t dense; /* -1: refused */
    } all[] = {
        {"[\"dense\", \"dense\", \"sparse\", \"sparse\"]", 2},
        {"[\"sparse\", \"sparse\", \"sparse\", \"sparse\"]", 0},
        {"[\"sparse\", \"dense\", \"sparse\", \"sparse\"]", -1},
        {"[\"dense\", \"sparse\", \"sparse\"]", -1},
        {"[\"dense\", \"sparse\", \"sparse\", \"hash_moe\"]", -1},
        {"{\"dense\": 2}", -1},
    };

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        const sc_model *m = NULL;
        const char *text = sc_sprintf(
            &arena,
            "{\"model_type\": \"glm4_moe\", \"hidden_size\": 64, "
            "\"num_hidden_layers\": 4, \"num_attention_heads\": 4, "
            "\"num_key_value_heads\": 4, \"intermediate_size\": 128, "
            "\"vocab_size\": 100, \"n_routed_experts\": 8, "
            "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, "
            "\"mlp_layer_types\": %s}",
            all[i].list);
        assert_int_equal(read_text(text, &m) == SC_OK, all[i].dense >= 0);
        if (all[i].dense >= 0) assert_int_equal(m->t.first_dense, all[i].dense);
    }
}

/* Lists in any order become letters, of which the period is kept. */
static void test_any_order(void **state)
{
    (void)state;
#define S "\"sliding_attention\""
#define F "\"full_attention\""

    static const struct {
        const char *list, *letters;
    } all[] = {
        {"[" F ", " S ", " S ", " F ", " S ", " S "]", "FWW"},
        {"[" S ", " F ", " F ", " S ", " S ", " F "]", "WFFW"},
        {"[" F ", " F ", " F ", " F ", " S ", " S "]", "FFFFWW"},
        {"[" F ", " F ", " F ", " F ", " F ", " F "]", NULL},
    };

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        const sc_model *m = NULL;
        const char *text =
            sc_sprintf(&arena,
                       "{\"model_type\": \"olmo3\", \"hidden_size\": 64, "
                       "\"num_hidden_layers\": 6, \"num_attention_heads\": 4, "
                       "\"intermediate_size\": 128, \"vocab_size\": 100, "
                       "\"sliding_window\": 16, \"layer_types\": %s}",
                       all[i].list);
        assert_int_equal(read_text(text, &m), SC_OK);
        if (all[i].letters)
            assert_string_equal(m->t.window_pattern, all[i].letters);
        else
            assert_int_equal(m->t.window, 0);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_counts), T(test_keys),      T(test_other_type),
        T(test_values), T(test_reasons),   T(test_mtp),
        T(test_facts),  T(test_any_order), T(test_mlp_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
