/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_hf.c - config.json of the types that are read: parameters equal
 * the published ones within 0.1 %, and what changes the network is never
 * ignored.  Files have the keys that say something, from the published
 * configurations; counts are those that the source beside them gives.
 */
#include "fixture.h"
#include "model/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
    const char *name, *text;
    double params;
    const char *source; /* of the count */
} files[] = {
    {"gemma-7b", "{\"model_type\": \"gemma\", \"hidden_act\": \"gelu\", \"hidden_activation\": null, \"head_dim\": 256, \"hidden_size\": 3072, \"intermediate_size\": 24576, \"max_position_embeddings\": 8192, \"num_attention_heads\": 16, \"num_hidden_layers\": 28, \"num_key_value_heads\": 16, \"vocab_size\": 256000, \"attention_bias\": false}",
     8537680896, "safetensors of google/gemma-7b; 7,751M and 786M in the report, table 2"},
    {"gemma-2-9b", "{\"model_type\": \"gemma2\", \"hidden_activation\": \"gelu_pytorch_tanh\", \"head_dim\": 256, \"hidden_size\": 3584, \"intermediate_size\": 14336, \"max_position_embeddings\": 8192, \"num_attention_heads\": 16, \"num_hidden_layers\": 42, \"num_key_value_heads\": 8, \"sliding_window\": 4096, \"attn_logit_softcapping\": 50.0, \"final_logit_softcapping\": 30.0, \"query_pre_attn_scalar\": 256, \"vocab_size\": 256000}",
     9241705984, "safetensors of google/gemma-2-9b; 8,324M and 918M in the report, table 2"},
    {"gemma-2-27b", "{\"model_type\": \"gemma2\", \"hidden_activation\": \"gelu_pytorch_tanh\", \"head_dim\": 128, \"hidden_size\": 4608, \"intermediate_size\": 36864, \"num_attention_heads\": 32, \"num_hidden_layers\": 46, \"num_key_value_heads\": 16, \"sliding_window\": 4096, \"vocab_size\": 256000}",
     27227128320, "safetensors of google/gemma-2-27b; 26,047M and 1,180M in the report, table 2"},
    {"gemma-3-1b", "{\"model_type\": \"gemma3_text\", \"hidden_activation\": \"gelu_pytorch_tanh\", \"head_dim\": 256, \"hidden_size\": 1152, \"intermediate_size\": 6912, \"num_attention_heads\": 4, \"num_hidden_layers\": 26, \"num_key_value_heads\": 1, \"sliding_window\": 512, \"sliding_window_pattern\": 6, \"rope_local_base_freq\": 10000, \"vocab_size\": 262144}",
     999885952, "safetensors of google/gemma-3-1b-pt; 698M and 302M in the report, table 1"},
    {"gemma-3-4b", "{\"model_type\": \"gemma3\", \"image_token_index\": 262144, \"vision_config\": {\"hidden_size\": 1152}, \"text_config\": {\"model_type\": \"gemma3_text\", \"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_hidden_layers\": 34, \"rope_scaling\": {\"factor\": 8.0}, \"sliding_window\": 1024}}",
     3209e6 + 262208.0 * 2560, "report, table 1 (3,209M without embeddings), and the table's rows"},
    {"phi-3-mini", "{\"model_type\": \"phi3\", \"attention_bias\": false, \"hidden_act\": \"silu\", \"hidden_size\": 3072, \"intermediate_size\": 8192, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 32, \"sliding_window\": 2047, \"tie_word_embeddings\": false, \"vocab_size\": 32064, \"embd_pdrop\": 0.0, \"resid_pdrop\": 0.0, \"original_max_position_embeddings\": 4096, \"max_position_embeddings\": 4096}",
     3821079552, "safetensors of microsoft/Phi-3-mini-4k-instruct"},
    {"phi-4", "{\"model_type\": \"phi3\", \"attention_bias\": false, \"hidden_act\": \"silu\", \"hidden_size\": 5120, \"intermediate_size\": 17920, \"num_attention_heads\": 40, \"num_hidden_layers\": 40, \"num_key_value_heads\": 10, \"sliding_window\": null, \"tie_word_embeddings\": false, \"vocab_size\": 100352, \"rope_theta\": 250000}",
     14659507200, "safetensors of microsoft/phi-4"},
    {"phi-4-mini", "{\"model_type\": \"phi3\", \"hidden_act\": \"silu\", \"hidden_size\": 3072, \"intermediate_size\": 8192, \"num_attention_heads\": 24, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"partial_rotary_factor\": 0.75, \"sliding_window\": 262144, \"tie_word_embeddings\": true, \"vocab_size\": 200064, \"full_attn_mod\": 1, \"interpolate_factor\": 1, \"lm_head_bias\": false, \"mlp_bias\": false}",
     3836021760, "safetensors of microsoft/Phi-4-mini-instruct"},
    {"phi-3.5-moe", "{\"model_type\": \"phimoe\", \"attention_bias\": true, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 6400, \"lm_head_bias\": true, \"num_attention_heads\": 32, \"num_experts_per_tok\": 2, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"num_local_experts\": 16, \"router_jitter_noise\": 0.01, \"input_jitter_noise\": 0.01, \"sliding_window\": 131072, \"tie_word_embeddings\": false, \"vocab_size\": 32064}",
     41873153344, "its matrices by hand; named 16 x 3.8B, 41.9B in all"},
    {"phi-2", "{\"model_type\": \"phi\", \"hidden_act\": \"gelu_new\", \"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": null, \"partial_rotary_factor\": 0.4, \"qk_layernorm\": false, \"resid_pdrop\": 0.1, \"vocab_size\": 51200}",
     2779683840, "safetensors of microsoft/phi-2"},
    {"falcon-7b", "{\"model_type\": \"falcon\", \"alibi\": false, \"bias\": false, \"hidden_size\": 4544, \"multi_query\": true, \"new_decoder_architecture\": false, \"num_attention_heads\": 71, \"num_hidden_layers\": 32, \"parallel_attn\": true, \"vocab_size\": 65024}",
     6921720704, "its matrices by hand; named 7B"},
    {"falcon-40b", "{\"model_type\": \"falcon\", \"alibi\": false, \"bias\": false, \"hidden_size\": 8192, \"multi_query\": true, \"new_decoder_architecture\": true, \"num_attention_heads\": 128, \"num_hidden_layers\": 60, \"num_kv_heads\": 8, \"parallel_attn\": true, \"vocab_size\": 65024}",
     41303293952, "its matrices by hand; named 40B"},
    {"glm-4.5-air", "{\"model_type\": \"glm4_moe\", \"attention_bias\": true, \"first_k_dense_replace\": 1, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 10944, \"moe_intermediate_size\": 1408, \"n_group\": 1, \"n_routed_experts\": 128, \"n_shared_experts\": 1, \"norm_topk_prob\": true, \"num_attention_heads\": 96, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 46, \"num_key_value_heads\": 8, \"num_nextn_predict_layers\": 1, \"partial_rotary_factor\": 0.5, \"routed_scaling_factor\": 1.0, \"topk_group\": 1, \"use_qk_norm\": false, \"vocab_size\": 151552}",
     110468824832 - 2 * 151552.0 * 4096, "safetensors of zai-org/GLM-4.5-Air, less the MTP block's copies of table and head"},
    {"glm-4.5", "{\"model_type\": \"glm4_moe\", \"attention_bias\": true, \"first_k_dense_replace\": 3, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 5120, \"intermediate_size\": 12288, \"moe_intermediate_size\": 1536, \"n_group\": 1, \"n_routed_experts\": 160, \"n_shared_experts\": 1, \"num_attention_heads\": 96, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 92, \"num_key_value_heads\": 8, \"num_nextn_predict_layers\": 1, \"topk_group\": 1, \"use_qk_norm\": true, \"vocab_size\": 151552}",
     358337791296 - 2 * 151552.0 * 5120, "safetensors of zai-org/GLM-4.5, less the MTP block's copies of table and head"},
    {"glm-4-9b-0414", "{\"model_type\": \"glm4\", \"attention_bias\": true, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 13696, \"num_attention_heads\": 32, \"num_hidden_layers\": 40, \"num_key_value_heads\": 2, \"partial_rotary_factor\": 0.5, \"vocab_size\": 151552}",
     9400279040, "safetensors of zai-org/GLM-4-9B-0414"},
    {"qwen1.5-moe", "{\"model_type\": \"qwen2_moe\", \"decoder_sparse_step\": 1, \"hidden_act\": \"silu\", \"hidden_size\": 2048, \"intermediate_size\": 5632, \"max_window_layers\": 21, \"moe_intermediate_size\": 1408, \"norm_topk_prob\": false, \"num_attention_heads\": 16, \"num_experts\": 60, \"num_experts_per_tok\": 4, \"num_hidden_layers\": 24, \"num_key_value_heads\": 16, \"shared_expert_intermediate_size\": 5632, \"sliding_window\": 32768, \"use_sliding_window\": false, \"vocab_size\": 151936}",
     14315784192, "safetensors of Qwen/Qwen1.5-MoE-A2.7B"},
    {"llama-4-maverick", "{\"model_type\": \"llama4\", \"boi_token_index\": 200080, \"vision_config\": {\"hidden_size\": 1408}, \"text_config\": {\"model_type\": \"llama4_text\", \"attention_bias\": false, \"attention_chunk_size\": 8192, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 5120, \"interleave_moe_layer_step\": 2, \"intermediate_size\": 8192, \"intermediate_size_mlp\": 16384, \"no_rope_layers\": [], \"num_attention_heads\": 40, \"num_experts_per_tok\": 1, \"num_hidden_layers\": 48, \"num_key_value_heads\": 8, \"num_local_experts\": 128, \"output_router_logits\": false, \"router_aux_loss_coef\": 0.001, \"use_qk_norm\": false, \"vocab_size\": 202048}}",
     401583781376 - 871932416, "safetensors of meta-llama/Llama-4-Maverick-17B-128E, less the vision tower's"},
    {"llama-4-scout", "{\"model_type\": \"llama4_text\", \"attention_chunk_size\": 8192, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 5120, \"interleave_moe_layer_step\": 1, \"intermediate_size\": 8192, \"intermediate_size_mlp\": 16384, \"num_attention_heads\": 40, \"num_experts_per_tok\": 1, \"num_hidden_layers\": 48, \"num_key_value_heads\": 8, \"num_local_experts\": 16, \"use_qk_norm\": true, \"vocab_size\": 202048}",
     108641793536 - 871932416, "safetensors of meta-llama/Llama-4-Scout-17B-16E, less the vision tower's"},
    {"mistral-small-3.1", "{\"model_type\": \"mistral3\", \"multimodal_projector_bias\": false, \"vision_config\": {\"model_type\": \"pixtral\"}, \"text_config\": {\"model_type\": \"mistral\", \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 5120, \"intermediate_size\": 32768, \"num_attention_heads\": 32, \"num_hidden_layers\": 40, \"num_key_value_heads\": 8, \"sliding_window\": null, \"vocab_size\": 131072}}",
     23572403200, "safetensors of mistralai/Mistral-Small-24B-Base-2501, the same language model"},
    {"olmo-2-7b", "{\"model_type\": \"olmo2\", \"attention_bias\": false, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 32, \"vocab_size\": 100352}",
     7298617344, "safetensors of allenai/OLMo-2-1124-7B"},
    {"olmo-3-7b", "{\"model_type\": \"olmo3\", \"attention_bias\": false, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_attention_heads\": 32, \"num_hidden_layers\": 4, \"num_key_value_heads\": 32, \"sliding_window\": 4096, \"layer_types\": [\"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\"], \"vocab_size\": 100278}",
     7298011136 - 28.0 * 202391552, "safetensors of allenai/Olmo-3-1025-7B, less 28 of its equal layers"},
    {"olmoe-1b-7b", "{\"model_type\": \"olmoe\", \"attention_bias\": false, \"clip_qkv\": null, \"hidden_act\": \"silu\", \"hidden_size\": 2048, \"intermediate_size\": 1024, \"num_attention_heads\": 16, \"num_experts\": 64, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 16, \"num_key_value_heads\": 16, \"vocab_size\": 50304}",
     6919161856, "safetensors of allenai/OLMoE-1B-7B-0924"},
    {"starcoder2-3b", "{\"model_type\": \"starcoder2\", \"hidden_act\": \"gelu_pytorch_tanh\", \"hidden_size\": 3072, \"intermediate_size\": 12288, \"mlp_type\": \"default\", \"norm_type\": \"layer_norm\", \"num_attention_heads\": 24, \"num_hidden_layers\": 30, \"num_key_value_heads\": 2, \"residual_dropout\": 0.1, \"sliding_window\": 4096, \"use_bias\": true, \"vocab_size\": 49152}",
     3030371328, "safetensors of bigcode/starcoder2-3b"},
    {"starcoder", "{\"model_type\": \"gpt_bigcode\", \"activation_function\": \"gelu\", \"multi_query\": true, \"n_embd\": 6144, \"n_head\": 48, \"n_inner\": 24576, \"n_layer\": 40, \"n_positions\": 8192, \"vocab_size\": 49152}",
     15517456384, "safetensors of bigcode/starcoder"},
    {"command-r", "{\"model_type\": \"cohere\", \"hidden_act\": \"silu\", \"hidden_size\": 8192, \"intermediate_size\": 22528, \"logit_scale\": 0.0625, \"num_attention_heads\": 64, \"num_hidden_layers\": 40, \"num_key_value_heads\": 64, \"use_qk_norm\": false, \"vocab_size\": 256000}",
     34980831232, "its matrices by hand; 35B on the model card"},
    {"command-r-plus", "{\"model_type\": \"cohere\", \"hidden_act\": \"silu\", \"hidden_size\": 12288, \"intermediate_size\": 33792, \"logit_scale\": 0.8333333, \"num_attention_heads\": 96, \"num_hidden_layers\": 64, \"num_key_value_heads\": 8, \"use_qk_norm\": true, \"vocab_size\": 256000}",
     103810674688, "its matrices by hand; 104B on the model card"},
    {"command-r7b", "{\"model_type\": \"cohere2\", \"hidden_act\": \"silu\", \"head_dim\": 128, \"hidden_size\": 4096, \"intermediate_size\": 14336, \"logit_scale\": 0.25, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"order_of_interleaved_layers\": \"local_attn_first\", \"position_embedding_type\": \"rope_gptj\", \"rotary_pct\": 1.0, \"sliding_window\": 4096, \"sliding_window_pattern\": 4, \"use_embedding_sharing\": true, \"use_gated_activation\": true, \"use_parallel_block\": true, \"use_parallel_embedding\": true, \"vocab_size\": 256000}",
     8028033024, "safetensors of CohereLabs/c4ai-command-r7b-12-2024"},
    {"dbrx", "{\"model_type\": \"dbrx\", \"attn_config\": {\"clip_qkv\": 8, \"kv_n_heads\": 8, \"model_type\": \"\", \"rope_theta\": 500000}, \"d_model\": 6144, \"emb_pdrop\": 0.0, \"ffn_config\": {\"ffn_hidden_size\": 10752, \"model_type\": \"\", \"moe_jitter_eps\": 0, \"moe_loss_weight\": 0.05, \"moe_num_experts\": 16, \"moe_top_k\": 4}, \"max_seq_len\": 32768, \"n_heads\": 48, \"n_layers\": 40, \"tie_word_embeddings\": false, \"vocab_size\": 100352}",
     131596523520, "its matrices by hand; 132B on the model card"},
    {"gpt-j-6b", "{\"model_type\": \"gptj\", \"activation_function\": \"gelu_new\", \"n_embd\": 4096, \"n_head\": 16, \"n_inner\": null, \"n_layer\": 28, \"n_positions\": 2048, \"rotary\": true, \"rotary_dim\": 64, \"tie_word_embeddings\": false, \"vocab_size\": 50400}",
     6053381344, "model card of EleutherAI/gpt-j-6b"},
    {"granite-3.3-8b", "{\"model_type\": \"granite\", \"attention_bias\": false, \"attention_multiplier\": 0.0078125, \"embedding_multiplier\": 12.0, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 12800, \"logits_scaling\": 16.0, \"mlp_bias\": false, \"num_attention_heads\": 32, \"num_hidden_layers\": 40, \"num_key_value_heads\": 8, \"residual_multiplier\": 0.22, \"tie_word_embeddings\": true, \"vocab_size\": 49159}",
     8170864640, "safetensors of ibm-granite/granite-3.3-8b-instruct"},
    {"smollm3-3b", "{\"model_type\": \"smollm3\", \"attention_bias\": false, \"hidden_act\": \"silu\", \"hidden_size\": 2048, \"intermediate_size\": 11008, \"max_window_layers\": 28, \"mlp_bias\": false, \"no_rope_layer_interval\": 4, \"num_attention_heads\": 16, \"num_hidden_layers\": 36, \"num_key_value_heads\": 4, \"sliding_window\": null, \"use_sliding_window\": false, \"vocab_size\": 128256}",
     3075098624, "safetensors of HuggingFaceTB/SmolLM3-3B"},
    {"minimax-m2", "{\"model_type\": \"minimax_m2\", \"attn_type_list\": [1, 1, 1], \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 3072, \"intermediate_size\": 1536, \"mtp_transformer_layers\": 1, \"num_attention_heads\": 48, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 62, \"num_key_value_heads\": 8, \"num_local_experts\": 256, \"num_mtp_modules\": 3, \"qk_norm_type\": \"per_layer\", \"rotary_dim\": 64, \"scoring_func\": \"sigmoid\", \"shared_intermediate_size\": 0, \"tie_word_embeddings\": false, \"use_mtp\": true, \"use_qk_norm\": true, \"use_routing_bias\": true, \"vocab_size\": 200064}",
     228689764864, "safetensors of MiniMaxAI/MiniMax-M2.7, of the same sizes; no MTP blocks in it"},
    {"grok-1", "{\"model_type\": \"grok-1\", \"attn_output_multiplier\": 0.08838834764831845, \"embedding_multiplier_scale\": 78.38367176906169, \"hidden_size\": 6144, \"intermediate_size\": 32768, \"max_attn_value\": 30.0, \"max_position_embeddings\": 8192, \"num_attention_heads\": 48, \"num_experts\": 8, \"num_experts_per_tok\": 2, \"num_hidden_layers\": 64, \"num_key_value_heads\": 8, \"output_multiplier_scale\": 0.5773502691896257, \"vocab_size\": 131072}",
     315.7e9, "matrices of xai-org/grok-1's released code (model.py, run.py); named 314B"},
    {"mamba2-780m", "{\"model_type\": \"mamba2\", \"chunk_size\": 256, \"conv_kernel\": 4, \"expand\": 2, \"head_dim\": 64, \"hidden_act\": \"silu\", \"hidden_size\": 1536, \"n_groups\": 1, \"num_heads\": 48, \"num_hidden_layers\": 48, \"residual_in_fp32\": true, \"rms_norm\": true, \"state_size\": 128, \"tie_word_embeddings\": true, \"time_step_limit\": [0.0, 1000.0], \"time_step_rank\": 96, \"use_bias\": false, \"use_conv_bias\": true, \"vocab_size\": 50288}",
     780e6, "Dao and Gu, Transformers are SSMs, table 1 (780M)"},
    {"codestral-mamba", "{\"model_type\": \"mamba2\", \"chunk_size\": 256, \"conv_kernel\": 4, \"expand\": 2, \"head_dim\": 64, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"n_groups\": 8, \"norm_before_gate\": true, \"num_heads\": 128, \"num_hidden_layers\": 64, \"rms_norm\": true, \"state_size\": 128, \"tie_word_embeddings\": false, \"use_bias\": false, \"use_conv_bias\": true, \"vocab_size\": 32768}",
     7285403648, "model card of mistralai/Mamba-Codestral-7B-v0.1"},
    {"mamba-2.8b", "{\"model_type\": \"mamba\", \"conv_kernel\": 4, \"expand\": 2, \"hidden_act\": \"silu\", \"hidden_size\": 2560, \"intermediate_size\": 5120, \"num_hidden_layers\": 64, \"rescale_prenorm_residual\": false, \"residual_in_fp32\": true, \"state_size\": 16, \"time_step_rank\": 160, \"use_bias\": false, \"use_conv_bias\": true, \"vocab_size\": 50280}",
     2768345600, "safetensors of state-spaces/mamba-2.8b-hf"},
    {"falcon-mamba-7b", "{\"model_type\": \"falcon_mamba\", \"conv_kernel\": 4, \"expand\": 2, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 8192, \"num_hidden_layers\": 64, \"state_size\": 16, \"tie_word_embeddings\": false, \"time_step_rank\": 256, \"use_bias\": false, \"use_conv_bias\": true, \"vocab_size\": 65024}",
     7272665088, "safetensors of tiiuae/falcon-mamba-7b"},
    {"jamba-v0.1", "{\"model_type\": \"jamba\", \"attn_layer_offset\": 4, \"attn_layer_period\": 8, \"expert_layer_offset\": 1, \"expert_layer_period\": 2, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"mamba_conv_bias\": true, \"mamba_d_conv\": 4, \"mamba_d_state\": 16, \"mamba_dt_rank\": 256, \"mamba_expand\": 2, \"mamba_proj_bias\": false, \"num_attention_heads\": 32, \"num_experts\": 16, \"num_experts_per_tok\": 2, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"tie_word_embeddings\": false, \"use_mamba_kernels\": true, \"vocab_size\": 65536}",
     51570323328, "safetensors of ai21labs/Jamba-v0.1"},
    {"bamba-9b", "{\"model_type\": \"bamba\", \"attention_bias\": false, \"attn_layer_indices\": [9, 18, 27], \"attn_rotary_emb\": 64, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"mamba_chunk_size\": 256, \"mamba_conv_bias\": true, \"mamba_d_conv\": 4, \"mamba_d_head\": 64, \"mamba_d_state\": 128, \"mamba_expand\": 2, \"mamba_n_groups\": 1, \"mamba_n_heads\": 128, \"mamba_proj_bias\": false, \"mlp_bias\": false, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"tie_word_embeddings\": false, \"vocab_size\": 128256}",
     9.78e9, "safetensors of ibm-ai-platform/Bamba-9B-v2, as shown (9.78B)"},
    {"granite-4.0-h-small", "{\"model_type\": \"granitemoehybrid\", \"attention_bias\": false, \"attention_multiplier\": 0.0078125, \"embedding_multiplier\": 12, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"init_method\": \"mup\", \"intermediate_size\": 768, \"layer_types\": [\"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"attention\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"attention\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"attention\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"mamba\", \"attention\", \"mamba\", \"mamba\", \"mamba\", \"mamba\"], \"logits_scaling\": 16, \"mamba_conv_bias\": true, \"mamba_d_conv\": 4, \"mamba_d_head\": 64, \"mamba_d_state\": 128, \"mamba_expand\": 2, \"mamba_n_groups\": 1, \"mamba_n_heads\": 128, \"mamba_proj_bias\": false, \"normalization_function\": \"rmsnorm\", \"num_attention_heads\": 32, \"num_experts_per_tok\": 10, \"num_hidden_layers\": 40, \"num_key_value_heads\": 8, \"num_local_experts\": 72, \"position_embedding_type\": \"nope\", \"residual_multiplier\": 0.22, \"shared_intermediate_size\": 1536, \"tie_word_embeddings\": true, \"vocab_size\": 100352}",
     32.2e9, "its matrices by hand; named 32B"},
    {"granite-4.0-micro", "{\"model_type\": \"granitemoehybrid\", \"attention_bias\": false, \"hidden_act\": \"silu\", \"hidden_size\": 2560, \"intermediate_size\": 8192, \"layer_types\": [\"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\", \"attention\"], \"normalization_function\": \"rmsnorm\", \"num_attention_heads\": 40, \"num_experts_per_tok\": 0, \"num_hidden_layers\": 40, \"num_key_value_heads\": 8, \"num_local_experts\": 0, \"position_embedding_type\": \"rope\", \"shared_intermediate_size\": 8192, \"tie_word_embeddings\": true, \"vocab_size\": 100352}",
     3402836480, "safetensors of ibm-granite/granite-4.0-micro"},
    {"granite-3.0-3b-a800m", "{\"model_type\": \"granitemoe\", \"attention_bias\": false, \"attention_multiplier\": 0.015625, \"hidden_act\": \"silu\", \"hidden_size\": 1536, \"intermediate_size\": 512, \"num_attention_heads\": 24, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"num_local_experts\": 40, \"tie_word_embeddings\": true, \"vocab_size\": 49155}",
     3298793472, "safetensors of ibm-granite/granite-3.1-3b-a800m-instruct"},
    {"glm-4-9b-chat", "{\"model_type\": \"glm\", \"attention_bias\": true, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 13696, \"num_attention_heads\": 32, \"num_hidden_layers\": 40, \"num_key_value_heads\": 2, \"partial_rotary_factor\": 0.5, \"tie_word_embeddings\": false, \"vocab_size\": 151552}",
     9399951360, "elements of zai-org/glm-4-9b-chat that learn"},
    {"exaone-4.0-32b", "{\"model_type\": \"exaone4\", \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 5120, \"intermediate_size\": 27392, \"layer_types\": [\"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\"], \"num_attention_heads\": 40, \"num_hidden_layers\": 64, \"num_key_value_heads\": 8, \"sliding_window\": 4096, \"sliding_window_pattern\": \"LLLG\", \"tie_word_embeddings\": false, \"vocab_size\": 102400}",
     32.0e9, "its matrices by hand; named 32B"},
    {"stablelm-2-1.6b", "{\"model_type\": \"stablelm\", \"hidden_act\": \"silu\", \"hidden_size\": 2048, \"intermediate_size\": 5632, \"layer_norm_eps\": 1e-05, \"num_attention_heads\": 32, \"num_hidden_layers\": 24, \"num_key_value_heads\": 32, \"partial_rotary_factor\": 0.25, \"qk_layernorm\": false, \"tie_word_embeddings\": false, \"use_parallel_residual\": false, \"use_qkv_bias\": true, \"vocab_size\": 100352}",
     1644515328, "model card of stabilityai/stablelm-2-1_6b"},
    {"nemotron-4-340b", "{\"model_type\": \"nemotron\", \"attention_bias\": false, \"head_dim\": 192, \"hidden_act\": \"relu2\", \"hidden_size\": 18432, \"intermediate_size\": 73728, \"mlp_bias\": false, \"norm_eps\": 1e-05, \"num_attention_heads\": 96, \"num_hidden_layers\": 96, \"num_key_value_heads\": 8, \"partial_rotary_factor\": 0.5, \"vocab_size\": 256000}",
     331.6e9 + 9.4e9, "Nemotron-4 340B Technical Report, table 1"},
    {"codegen-350m", "{\"model_type\": \"codegen\", \"activation_function\": \"gelu_new\", \"n_ctx\": 2048, \"n_embd\": 1024, \"n_head\": 16, \"n_inner\": null, \"n_layer\": 20, \"n_positions\": 2048, \"rotary_dim\": 32, \"tie_word_embeddings\": false, \"vocab_size\": 51200}",
     356712448, "elements of the checkpoint of Salesforce/codegen-350M-mono"},
    {"ernie-4.5-0.3b", "{\"model_type\": \"ernie4_5\", \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 1024, \"intermediate_size\": 3072, \"num_attention_heads\": 16, \"num_hidden_layers\": 18, \"num_key_value_heads\": 2, \"tie_word_embeddings\": true, \"use_bias\": false, \"vocab_size\": 103424}",
     360748032, "safetensors of baidu/ERNIE-4.5-0.3B-PT"},
    {"ernie-4.5-21b-a3b", "{\"model_type\": \"ernie4_5_moe\", \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 2560, \"intermediate_size\": 12288, \"moe_intermediate_size\": 1536, \"moe_k\": 6, \"moe_layer_end_index\": 27, \"moe_layer_interval\": 1, \"moe_layer_start_index\": 1, \"moe_num_experts\": 64, \"moe_num_shared_experts\": 2, \"num_attention_heads\": 20, \"num_hidden_layers\": 28, \"num_key_value_heads\": 4, \"tie_word_embeddings\": true, \"use_bias\": false, \"vocab_size\": 103424}",
     21.83e9, "its matrices by hand; 21.8B as shown of baidu/ERNIE-4.5-21B-A3B-PT"},
    {"dots.llm1", "{\"model_type\": \"dots1\", \"attention_bias\": false, \"first_k_dense_replace\": 1, \"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 10944, \"moe_intermediate_size\": 1408, \"n_routed_experts\": 128, \"n_shared_experts\": 2, \"norm_topk_prob\": true, \"num_attention_heads\": 32, \"num_experts_per_tok\": 6, \"num_hidden_layers\": 62, \"num_key_value_heads\": 32, \"routed_scaling_factor\": 2.5, \"scoring_func\": \"sigmoid\", \"tie_word_embeddings\": false, \"vocab_size\": 152064}",
     142.77e9, "its matrices by hand; named 142B"},
    {"roberta-base", "{\"model_type\": \"roberta\", \"attention_probs_dropout_prob\": 0.1, \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"hidden_size\": 768, \"intermediate_size\": 3072, \"max_position_embeddings\": 514, \"num_attention_heads\": 12, \"num_hidden_layers\": 12, \"type_vocab_size\": 1, \"vocab_size\": 50265}",
     124697433, "elements of RobertaForMaskedLM, FacebookAI/roberta-base"},
    {"distilbert-base", "{\"model_type\": \"distilbert\", \"activation\": \"gelu\", \"attention_dropout\": 0.1, \"dim\": 768, \"dropout\": 0.1, \"hidden_dim\": 3072, \"max_position_embeddings\": 512, \"n_heads\": 12, \"n_layers\": 6, \"qa_dropout\": 0.1, \"sinusoidal_pos_embds\": false, \"tie_weights_\": true, \"vocab_size\": 30522}",
     66985530, "elements of DistilBertForMaskedLM, distilbert-base-uncased"},
    {"seed-oss-36b", "{\"model_type\": \"seed_oss\", \"attention_bias\": true, \"attention_out_bias\": false, \"attention_dropout\": 0.1, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 5120, \"intermediate_size\": 27648, \"mlp_bias\": false, \"num_attention_heads\": 80, \"num_hidden_layers\": 64, \"num_key_value_heads\": 8, \"residual_dropout\": 0.1, \"vocab_size\": 155136}",
     36151104512, "safetensors of ByteDance-Seed/Seed-OSS-36B-Base"},
    {"mt5-small", "{\"model_type\": \"mt5\", \"d_ff\": 1024, \"d_kv\": 64, \"d_model\": 512, \"dropout_rate\": 0.1, \"feed_forward_proj\": \"gated-gelu\", \"is_encoder_decoder\": true, \"num_decoder_layers\": 8, \"num_heads\": 6, \"num_layers\": 8, \"relative_attention_num_buckets\": 32, \"tie_word_embeddings\": false, \"vocab_size\": 250112}",
     300176768, "checkpoint of google/mt5-small"},
};

/* What has operators that there are none of, or is of a kind that is not
 * known: the error begins so. */
static const struct {
    const char *text, *message;
} others[] = {
    {"{\"model_type\": \"rwkv\", \"hidden_size\": 2048}", "c.json:1:16: error: not modelled: the recurrence of RWKV (\"rwkv\"); describe the model"},
    {"{\"model_type\": \"zamba2\", \"hidden_size\": 4096}", "c.json:1:16: error: not modelled: blocks that share their weights"},
    {"{\"model_type\": \"minimax\", \"hidden_size\": 4096}", "c.json:1:16: error: not modelled: lightning attention"},
    {"{\"model_type\": \"deepseek_v32\", \"hidden_size\": 4096}", "c.json:1:16: error: not modelled: attention that an indexer"},
    {"{\"model_type\": \"albert\", \"hidden_size\": 4096}", "c.json:1:16: error: not modelled: blocks that share their weights"},
    {"{\"model_type\": \"lama\", \"hidden_size\": 4096}", "c.json:1:16: error: unknown model_type \"lama\"; describe the model"},
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

static void test_counts(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const sc_model *m = NULL;
        if (read_text(files[i].text, &m) != SC_OK)
            fail_msg("%s: %u: %s", files[i].name, err.d[0].col, err.d[0].msg);
        /* checkpoints hold what predicts more than the next token */
        uint64_t n = m->params + m->mtp_params;
        double apart = (double)n / files[i].params - 1;
        wrong += fabs(apart) > 1e-3;
        if (fabs(apart) > 1e-3)
            printf("%s: %llu parameters, not %.0f (%s)\n", files[i].name,
                   (unsigned long long)n, files[i].params, files[i].source);
    }
    assert_int_equal(wrong, 0);
}

static void test_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(others); i++) {
        const sc_model *m = NULL;
        char text[700];
        assert_int_equal(read_text(others[i].text, &m), SC_EINPUT);
        sc_diag_format(&err.d[0], text, sizeof text);
        if (strncmp(text, others[i].message, strlen(others[i].message)) != 0)
            fail_msg("%s", text);
    }
}

/* The same file with another key in front. */
static const char *with(const char *name, const char *key)
{
    const char *text = file(name), *in = strstr(text, "\"text_config\": {");
    size_t at = in ? (size_t)(in - text) + strlen("\"text_config\": {") : 1;
    return sc_sprintf(&arena, "%.*s%s, %s", (int)at, text, key, text + at);
}

/* Nothing that may change the network is ignored. */
static void test_keys(void **state)
{
    (void)state;
    static const char *const more[] = {
        "\"some_new_gate\": true",   "\"ffn_multiplier_list\": [1, 2]",
        "\"attention_type\": \"x\"", "\"mixture\": {\"n\": 4}",
        "\"kv_lora_rank\": 512",     "\"n_extra_layers\": 3",
        "\"q_lora_rank\": 1536",     "\"add_cross_attention\": true",
        "\"is_encoder_decoder\": 1",
    };
    static const char *const off[] = {
        "\"some_new_gate\": false", "\"n_extra_layers\": 0",
        "\"mixture\": null",        "\"rms_norm_eps\": 1e-06",
        "\"bos_token_id\": 1",      "\"transformers_version\": \"5.0.0\"",
    };
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        const sc_model *m = NULL;
        if (strstr(files[i].text, "\"mt5\"")) continue;
        for (size_t k = 0; k < SC_COUNT(more); k++)
            if (read_text(with(files[i].name, more[k]), &m) == SC_OK)
                fail_msg("%s with %s is read", files[i].name, more[k]);
        for (size_t k = 0; k < SC_COUNT(off); k++)
            if (read_text(with(files[i].name, off[k]), &m) != SC_OK)
                fail_msg("%s with %s: %s", files[i].name, off[k], err.d[0].msg);
    }
}

/* Values that make another network of it are refused, each at its key. */
static void test_values(void **state)
{
    (void)state;

    static const struct {
        const char *name, *was, *is;
    } all[] = {
        {"gemma-2-9b", "gelu_pytorch_tanh", "relu"},
        {"smollm3-3b", "\"use_sliding_window\": false",
         "\"use_sliding_window\": true"},
        {"mamba2-780m", "\"use_bias\": false", "\"use_bias\": true"},
        {"mamba2-780m", "\"use_conv_bias\": true", "\"use_conv_bias\": false"},
        {"mamba2-780m", "\"rms_norm\": true", "\"rms_norm\": false"},
        {"mamba-2.8b", "silu", "gelu"},
        {"jamba-v0.1", "\"mamba_proj_bias\": false",
         "\"mamba_proj_bias\": true"},
        {"bamba-9b", "\"mamba_conv_bias\": true", "\"mamba_conv_bias\": false"},
        {"granite-4.0-h-small", "rmsnorm", "layernorm"},
        {"granite-4.0-micro", "[\"attention\", ", "["},
        {"granite-4.0-micro", "[\"attention\", ", "[\"mamba\", \"mamba\", "},
        {"jamba-v0.1", "\"num_hidden_layers\": 32",
         "\"num_hidden_layers\": 60000"},
        {"minimax-m2", "[1, 1, 1]", "[1, 0, 1]"},
        {"minimax-m2", "per_layer", "per_head"},
        {"command-r7b", "local_attn_first", "global_attn_first"},
        {"command-r7b", "\"use_gated_activation\": true",
         "\"use_gated_activation\": false"},
        {"starcoder2-3b", "\"layer_norm\"", "\"rms_norm\""},
        {"starcoder2-3b", "\"default\"", "\"gated\""},
        {"phi-4-mini", "\"full_attn_mod\": 1", "\"full_attn_mod\": 4"},
        {"stablelm-2-1.6b", "\"qk_layernorm\": false",
         "\"qk_layernorm\": true"},
        {"roberta-base", "\"type_vocab_size\": 1", "\"type_vocab_size\": 3"},
        {"distilbert-base", "\"sinusoidal_pos_embds\": false",
         "\"sinusoidal_pos_embds\": true"},
        {"dbrx", "\"clip_qkv\": 8", "\"qk_ln\": true"},
        {"olmo-3-7b",
         "\"sliding_attention\", \"sliding_attention\", "
         "\"sliding_attention\", \"full_attention\"",
         "\"full_attention\", \"sliding_attention\", "
         "\"sliding_attention\""},
        {"olmo-3-7b", "\"full_attention\"]", "\"linear_attention\"]"},
        {"qwen1.5-moe", "\"use_sliding_window\": false",
         "\"mlp_only_layers\": [3]"},
        {"ernie-4.5-21b-a3b", "\"moe_layer_interval\": 1",
         "\"moe_layer_interval\": 2"},
        {"ernie-4.5-21b-a3b", "\"moe_layer_end_index\": 27",
         "\"moe_layer_end_index\": 20"},
        {"mt5-small", "gated-gelu", "gated-tanh"},
        {"falcon-7b", "\"num_hidden_layers\": 32",
         "\"num_hidden_layers\": \"32\""},
    };

    for (size_t i = 0; i < SC_COUNT(all); i++) {
        const char *text = file(all[i].name), *at = strstr(text, all[i].was);
        const sc_model *m = NULL;
        if (!at) fail_msg("%s has no %s", all[i].name, all[i].was);
        size_t n = (size_t)(at - text);
        text = sc_sprintf(&arena, "%.*s%s%s", (int)n, text, all[i].is,
                          at + strlen(all[i].was));
        if (read_text(text, &m) == SC_OK)
            fail_msg("%s with %s is read", all[i].name, all[i].is);
        /* at the value, its key, or the list that it is in */
        if (err.d[0].col + 120 < n || err.d[0].col > n + 120)
            fail_msg("%s with %s: column %u", all[i].name, all[i].is,
                     err.d[0].col);
    }
}

static void test_tower(void **state)
{
    (void)state;
    const sc_model *m = NULL;
    assert_int_equal(read_text(file("mistral-small-3.1"), &m), SC_OK);
    assert_string_equal(m->note, "only the language model is predicted: "
                                 "vision_config of the file is left out");
    assert_int_equal(read_text(file("phi-4"), &m), SC_OK);
    assert_null(m->note);
}

/* What a file says of its blocks, beside the numbers. */
static void test_facts(void **state)
{
    (void)state;
    const sc_model *m = NULL;
    (void)read_text(file("gemma-2-9b"), &m);
    assert_int_equal(m->t.norms, SC_NORMS_BOTH);
    assert_int_equal(m->t.window_every, 2);
    assert_int_equal(m->t.act, SC_ACT_GEGLU);
    (void)read_text(file("gemma-3-4b"), &m);
    assert_int_equal(m->t.full_every, 6);
    assert_int_equal(m->t.window, 1024);
    assert_int_equal(m->t.kv_heads, 4);
    assert_true(m->t.qk_norm && !m->t.qk_norm_all);
    (void)read_text(file("olmo-2-7b"), &m);
    assert_int_equal(m->t.norms, SC_NORMS_AFTER);
    assert_true(m->t.qk_norm && m->t.qk_norm_all);
    (void)read_text(file("olmo-3-7b"), &m);
    assert_int_equal(m->t.full_every, 4);
    (void)read_text(file("falcon-7b"), &m);
    assert_true(m->t.parallel && m->t.one_norm && m->t.kv_heads == 1);
    (void)read_text(file("falcon-40b"), &m);
    assert_true(m->t.parallel && !m->t.one_norm && m->t.kv_heads == 8);
    (void)read_text(file("llama-4-maverick"), &m);
    assert_int_equal(m->t.moe_every, 2);
    assert_int_equal(m->t.window, 8192);
    assert_int_equal(m->t.full_every, 4);
    (void)read_text(file("command-r7b"), &m);
    assert_int_equal(m->t.full_every, 4);
    assert_false(m->t.norm_bias);
    (void)read_text(file("phi-3.5-moe"), &m);
    assert_true(m->t.qkv_bias && m->t.proj_bias && m->t.head_bias);
    assert_false(m->t.mlp_bias || m->t.bias);
    (void)read_text(file("glm-4.5"), &m);
    assert_int_equal(m->t.mtp, 1);
    (void)read_text(file("minimax-m2"), &m);
    assert_int_equal(m->t.mtp, 0);
    (void)read_text(file("mamba2-780m"), &m);
    assert_int_equal(strspn(m->t.pattern, "M"), 48);
    (void)read_text(file("mamba-2.8b"), &m);
    assert_int_equal(m->t.ssm_rank, 160);
    assert_int_equal(m->t.ssm_heads, 5120);
    assert_non_null(m->note);
    (void)read_text(file("jamba-v0.1"), &m);
    assert_int_equal(m->t.layers, 64);
    assert_memory_equal(m->t.pattern, "M-MEM-ME*-MEM-MEM-ME", 20);
    assert_int_equal(m->t.kv_heads, 8);
    (void)read_text(file("granite-4.0-h-small"), &m);
    assert_memory_equal(m->t.pattern, "MEMEMEMEME*EME", 14);
    assert_int_equal(m->t.position, SC_POS_NONE);
    (void)read_text(file("starcoder"), &m);
    assert_int_equal(m->t.kv_heads, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_counts), T(test_others),
                                       T(test_keys),   T(test_values),
                                       T(test_tower),  T(test_facts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
