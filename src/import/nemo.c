/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nemo.c - reads YAML of NeMo (1 and 2) and of Megatron-Bridge. Both configure
 * Megatron-Core, so most keys are options of Megatron-LM with other names.
 */
#include "import/keys.h"
#include "import/megatron.h"
#include "import/nemo_refs.h"
#include "import/readers.h"

#include <string.h>
#include <strings.h>

/* Values that are no option of Megatron-LM, numbered after M_N. */
typedef enum nemo_id {
    N_ACTIVATION = M_N,
    N_ACT_FUNC,
    N_GATED,
    N_BIAS,
    N_SHARE,
    N_GRAD_FP32,
    N_PRECISION,
    N_FP8,
    N_FP8_HYBRID,
    N_OPTIMIZER,
    N_DEVICES,
    N_NODES,
    N_TOK_LIBRARY,
    N_TOK_TYPE,
    N_TOK_MODEL,
    N_PEFT,
    N_N
} nemo_id;

typedef struct nemo_row {
    const char *path;
    uint8_t use, kind, id;
} nemo_row;

#define USE(path, id)                      \
    {                                      \
        path, IMPORT_USED, IMPORT_NODE, id \
    }
#define YES(path, id)                      \
    {                                      \
        path, IMPORT_USED, IMPORT_BOOL, id \
    }
#define WORD(path, id)                     \
    {                                      \
        path, IMPORT_USED, IMPORT_WORD, id \
    }
#define HARMLESS(path)              \
    {                               \
        path, IMPORT_HARMLESS, 0, 0 \
    }
#define REPORTED(path)              \
    {                               \
        path, IMPORT_REPORTED, 0, 0 \
    }

/* A key with the id of an option has the kind and range of that option. */
static const nemo_row rows[] = {
    USE("*.tensor_model_parallel_size", M_TP),
    USE("*.pipeline_model_parallel_size", M_PP),
    USE("*.virtual_pipeline_model_parallel_size", M_VPP),
    USE("*.context_parallel_size", M_CP),
    USE("*.expert_model_parallel_size", M_EP),
    USE("*.expert_tensor_parallel_size", M_ETP),
    USE("*.tp_comm_overlap", M_TP_OVERLAP),
    USE("*.ub_tp_comm_overlap", M_TP_OVERLAP),
    USE("*.overlap_moe_expert_parallel_comm", M_EP_OVERLAP),
    USE("*.optimizer_cpu_offload", M_OPT_OFFLOAD),
    USE("*.sequence_parallel", M_SP),
    USE("*.cp_comm_type", M_CP_COMM),
    USE("*.use_distributed_optimizer", M_DIST_OPT),
    USE("*.num_distributed_optimizer_instances", M_DIST_OPT_N),
    USE("*.overlap_grad_reduce", M_OVERLAP),
    USE("*.overlap_grad_sync", M_OVERLAP),
    USE("*.use_megatron_fsdp", M_MFSDP),
    USE("*.use_custom_fsdp", M_CFSDP),
    USE("*.use_torch_fsdp2", M_FSDP2),
    USE("*.data_parallel_sharding_strategy", M_SHARDING),
    USE("*.micro_batch_size", M_MBS),
    USE("*.global_batch_size", M_GBS),
    USE("*.encoder_seq_length", M_SEQ),
    USE("*.seq_length", M_SEQ),
    USE("*.sequence_length", M_SEQ),
    USE("*.max_position_embeddings", M_MAX_POS),
    USE("*.num_layers", M_LAYERS),
    USE("*.hidden_size", M_HIDDEN),
    USE("*.ffn_hidden_size", M_FFN),
    USE("*.num_attention_heads", M_HEADS),
    USE("*.num_query_groups", M_GROUPS),
    USE("*.kv_channels", M_KV_CHANNELS),
    USE("*.hidden_dropout", M_HID_DROPOUT),
    USE("*.attention_dropout", M_ATT_DROPOUT),
    USE("*.normalization", M_NORM),
    USE("*.position_embedding_type", M_POSITION),
    USE("*.add_qkv_bias", M_QKV_BIAS),
    USE("*.qkv_bias", M_QKV_BIAS),
    USE("*.qk_layernorm", M_QK_NORM),
    USE("*.window_attn_skip_freq", M_WINDOW_FREQ),
    USE("*.window_size", M_WINDOW),
    USE("*.softmax_type", M_SOFTMAX),
    USE("*.make_vocab_size_divisible_by", M_VOCAB_STEP),
    USE("*.vocab_size", M_VOCAB),
    USE("*.padded_vocab_size", M_PADDED_VOCAB),
    USE("*.num_moe_experts", M_EXPERTS),
    USE("*.moe_router_topk", M_TOPK),
    USE("*.moe_ffn_hidden_size", M_MOE_FFN),
    USE("*.moe_shared_expert_intermediate_size", M_SHARED_FFN),
    USE("*.moe_layer_freq", M_MOE_FREQ),
    USE("*.moe_router_num_groups", M_ROUTE_GROUPS),
    USE("*.moe_router_enable_expert_bias", M_ROUTER_BIAS),
    USE("*.moe_router_group_topk", M_ROUTE_TOPK),
    USE("*.moe_expert_capacity_factor", M_CAPACITY),
    USE("*.moe_pad_expert_input_to_capacity", M_PAD_CAPACITY),
    USE("*.multi_latent_attention", M_MLA),
    USE("*.q_lora_rank", M_Q_RANK),
    USE("*.kv_lora_rank", M_KV_RANK),
    USE("*.qk_head_dim", M_QK_NOPE),
    USE("*.qk_pos_emb_head_dim", M_QK_ROPE),
    USE("*.v_head_dim", M_V_DIM),
    USE("*.mtp_num_layers", M_MTP),
    USE("*.activations_checkpoint_granularity", M_RC),
    USE("*.recompute_granularity", M_RC),
    USE("*.activations_checkpoint_method", M_RC_METHOD),
    USE("*.recompute_method", M_RC_METHOD),
    USE("*.activations_checkpoint_num_layers", M_RC_LAYERS),
    USE("*.recompute_num_layers", M_RC_LAYERS),
    USE("*.recompute_modules", M_RC_MODULES),
    USE("*.first_last_layers_bf16", M_WIDE_ENDS),
    USE("*.num_layers_at_start_in_bf16", M_WIDE_START),
    USE("*.num_layers_at_end_in_bf16", M_WIDE_END),
    USE("*.num_layers_in_first_pipeline_stage", M_FIRST_STAGE),
    USE("*.num_layers_in_last_pipeline_stage", M_LAST_STAGE),
    USE("*.account_for_embedding_in_pipeline_split", M_WITH_EMBEDDING),
    USE("*.account_for_loss_in_pipeline_split", M_WITH_LOSS),
    USE("*.fp8_recipe", M_FP8_RECIPE),
    USE("*.rampup_batch_size", M_RAMPUP),
    WORD("*.activation", N_ACTIVATION),
    WORD("*.activation_func._target_", N_ACT_FUNC),
    WORD("*.activation_func", N_ACT_FUNC),
    YES("*.gated_linear_unit", N_GATED),
    YES("*.bias", N_BIAS),
    YES("*.add_bias_linear", N_BIAS),
    YES("*.share_embeddings_and_output_weights", N_SHARE),
    YES("*.grad_reduce_in_fp32", N_GRAD_FP32),
    WORD("trainer.precision", N_PRECISION),
    WORD("trainer.plugins.precision", N_PRECISION),
    WORD("mixed_precision", N_PRECISION),
    USE("mixed_precision.bf16", M_BF16),
    USE("mixed_precision.fp16", M_FP16),
    WORD("*.fp8", N_FP8),
    YES("*.fp8_hybrid", N_FP8_HYBRID),
    WORD("*.optim.name", N_OPTIMIZER),
    WORD("trainer.devices", N_DEVICES),
    WORD("trainer.num_nodes", N_NODES),
    WORD("*.tokenizer.library", N_TOK_LIBRARY),
    WORD("*.tokenizer.type", N_TOK_TYPE),
    WORD("*.tokenizer.model", N_TOK_MODEL),
    USE("tokenizer.tokenizer_type", M_TOKENIZER),
    USE("tokenizer.tokenizer_model", M_TOKENIZER_MODEL),
    WORD("*.peft.peft_scheme", N_PEFT),
    REPORTED("peft"),
    REPORTED("*.cpu_offloading"),
    REPORTED("*.enable_cuda_graph"),
    REPORTED("*.activations_checkpoint_layers_per_pipeline"),
    REPORTED("*.precision_aware_optimizer"),
    HARMLESS("*._target_"),
    HARMLESS("*._call_"),
    HARMLESS("*._partial_"),
    HARMLESS("_target_"),
    HARMLESS("checkpoint"),
    HARMLESS("comm_overlap.*"),
    HARMLESS("dataset.*"),
    HARMLESS("data.*"),
    HARMLESS("ddp.*"),
    HARMLESS("defaults"),
    HARMLESS("dist"),
    HARMLESS("exp_manager"),
    HARMLESS("ft"),
    HARMLESS("hydra"),
    HARMLESS("inprocess_restart"),
    HARMLESS("log"),
    HARMLESS("logger"),
    HARMLESS("mixed_precision.*"),
    HARMLESS("name"),
    HARMLESS("nvrx*"),
    HARMLESS("optim"),
    HARMLESS("optimizer"),
    HARMLESS("profiling"),
    HARMLESS("rerun_state_machine"),
    HARMLESS("restore_from_path"),
    HARMLESS("resume"),
    HARMLESS("rng"),
    HARMLESS("run"),
    HARMLESS("scheduler"),
    HARMLESS("straggler"),
    HARMLESS("tensor_inspect"),
    HARMLESS("tokenizer.*"),
    HARMLESS("train.*"),
    HARMLESS("validation"),
    HARMLESS("trainer.*"),
    HARMLESS("model.data.*"),
    HARMLESS("model.optim.*"),
    HARMLESS("model.peft.*"),
    HARMLESS("model.tokenizer.*"),
    HARMLESS("model.nsys_profile*"),
    HARMLESS("*.*_fusion"),
    HARMLESS("*.*_func"),
    HARMLESS("*.*_dtype"),
    HARMLESS("*.*_path"),
    HARMLESS("*.apply_*"),
    HARMLESS("*.async_*"),
    HARMLESS("*.attention_backend"),
    HARMLESS("*.attention_softmax*"),
    HARMLESS("*.autocast*"),
    HARMLESS("*.batch_p2p*"),
    HARMLESS("*.cross_entropy*"),
    HARMLESS("*.deallocate*"),
    HARMLESS("*.defer_*"),
    HARMLESS("*.deterministic*"),
    HARMLESS("*.do_layer_norm*"),
    HARMLESS("*.enable_autocast"),
    HARMLESS("*.fp16_*"),
    HARMLESS("*.fp32_*"),
    HARMLESS("*.fp8_*"),
    HARMLESS("*.gc_*"),
    HARMLESS("*.get_*"),
    HARMLESS("*.grad_allreduce_chunk_size_mb"),
    HARMLESS("*.grad_div*"),
    HARMLESS("*.gradient_*"),
    HARMLESS("*.headscale"),
    HARMLESS("*.hysteresis"),
    HARMLESS("*.init_*"),
    HARMLESS("*.layernorm_*"),
    HARMLESS("*.masked_softmax*"),
    HARMLESS("*.mcore_gpt"),
    HARMLESS("*.megatron_*"),
    HARMLESS("*.memory_efficient_layer_norm"),
    HARMLESS("*.moe_aux*"),
    HARMLESS("*.moe_grouped_gemm"),
    HARMLESS("*.moe_permute*"),
    HARMLESS("*.moe_router_*"),
    HARMLESS("*.moe_token*"),
    HARMLESS("*.moe_z*"),
    HARMLESS("*.native_amp*"),
    HARMLESS("*.nccl*"),
    HARMLESS("*.onnx_safe"),
    HARMLESS("*.openai_gelu"),
    HARMLESS("*.output_layer_init*"),
    HARMLESS("*.overlap_p2p*"),
    HARMLESS("*.overlap_param*"),
    HARMLESS("*.perform_initialization"),
    HARMLESS("*.persist_layer*"),
    HARMLESS("*.pre_process"),
    HARMLESS("*.post_process"),
    HARMLESS("*.reduce_amax"),
    HARMLESS("*.resume_from*"),
    HARMLESS("*.rope_*"),
    HARMLESS("*.rotary_*"),
    HARMLESS("*.seed"),
    HARMLESS("*.seq_len_interpolation_factor"),
    HARMLESS("*.sharp"),
    HARMLESS("*.sync_batch_comm"),
    HARMLESS("*.test_mode"),
    HARMLESS("*.timers"),
    HARMLESS("*.transformer_block_type"),
    HARMLESS("*.transformer_engine"),
    HARMLESS("*.transformer_impl"),
    HARMLESS("*.use_cpu_initialization"),
    HARMLESS("*.use_emha"),
    HARMLESS("*.use_flash_attention"),
    HARMLESS("*.use_te_rng_tracker"),
    HARMLESS("*.use_tp_pp_dp_mapping"),
    HARMLESS("*.variable_seq*"),
    HARMLESS("*.virtual_pipeline_*"),
    HARMLESS("*.hf_*"),
    REPORTED("*"),
};

static import_key *table(sc_arena *a)
{
    static const uint8_t kinds[] = {[M_FLAG] = IMPORT_BOOL,
                                    [M_INT] = IMPORT_INT,
                                    [M_REAL] = IMPORT_REAL,
                                    [M_WORD] = IMPORT_NODE,
                                    [M_MANY] = IMPORT_NODE};
    import_key *k = SC_NEW_N(a, import_key, SC_COUNT(rows) + 1);
    for (size_t i = 0; k && i < SC_COUNT(rows); i++) {
        const nemo_row *r = &rows[i];
        k[i] = (import_key){r->path, r->use, r->kind, r->id, 0, 0, NULL};
        if (r->use != IMPORT_USED || r->id >= M_N) continue;
        const megatron_row *o = &megatron_rows[r->id];
        k[i].kind = kinds[o->kind];
        /* with no layers nothing is recomputed */
        k[i].lo = r->id == M_RC_LAYERS ? 0 : o->lo;
        k[i].hi = o->hi;
    }
    return k;
}

/* ---- texts of options ------------------------------------------------------------ */

/* A list in the form of Megatron-LM's options: "[1,0]". */
static const char *list_text(sc_arena *a, const sc_node *n)
{
    sc_text t;
    sc_text_init(&t);
    for (const sc_node *c = n->child; c; c = c->next)
        sc_text_add(&t, "%s%s", c == n->child ? "" : ",",
                    c->kind == SC_N_SCALAR ? c->text : "?");
    const char *text = t.failed ? NULL : sc_sprintf(a, "[%s]", t.buf);
    sc_text_free(&t);
    return text;
}

static sc_status texts(megatron *m)
{
    static const megatron_id lists[] = {M_MOE_FREQ,   M_WINDOW,  M_WINDOW_FREQ,
                                        M_RC_MODULES, M_CP_COMM, M_RAMPUP};
    for (int i = 0; i < (int)M_N; i++) {
        import_value *v = &m->v[i];
        if (!v->given || megatron_rows[i].kind == M_FLAG) continue;
        bool list = false;
        for (size_t k = 0; k < SC_COUNT(lists); k++)
            list = list || (int)lists[k] == i;
        if (v->node->kind == SC_N_SCALAR) continue;
        if (!list || v->node->kind != SC_N_SEQ) {
            v->bad = true;
            import_error(m->to, SC_C_TYPE, v->at, NULL, "%s needs one value",
                         v->name);
            continue;
        }
        const char *text = list_text(m->to->a, v->node);
        if (!text) return sc_error_nomem(m->to->err);
        /* options have windows and modules without brackets */
        size_t n = strlen(text);
        bool bare = i == M_WINDOW || i == M_RC_MODULES || i == M_CP_COMM;
        v->text = bare ? sc_strndup(m->to->a, text + 1, n - 2) : text;
        if (!v->text) return sc_error_nomem(m->to->err);
    }
    return SC_OK;
}

/* A flag that is false counts as not given. */
static void flags(megatron *m)
{
    for (int i = 0; i < (int)M_N; i++)
        if (megatron_rows[i].kind == M_FLAG && m->v[i].given &&
            (m->v[i].bad || m->v[i].number == 0))
            m->v[i].given = false;
}

static void set_flag(megatron *m, megatron_id id, const import_value *from)
{
    m->v[id] = *from;
    m->v[id].number = 1;
}

static void set_text(megatron *m, megatron_id id, const import_value *from,
                     const char *text)
{
    m->v[id] = *from;
    m->v[id].text = text;
}

/* ---- keys that differ from options ------------------------------------------------------- */

static void activation(megatron *m, import_value *x)
{
    static const char *const names[] = {
        "gelu",       "swiglu",       "fast-swiglu", "geglu",
        "fast-geglu", "squared-relu", "openai-gelu", NULL};
    int i = import_choose(m->to, &x[N_ACTIVATION], names,
                          "gelu, swiglu, geglu or squared-relu");
    if (i == 1 || i == 2) set_flag(m, M_SWIGLU, &x[N_ACTIVATION]);
    if (i == 3 || i == 4) set_flag(m, M_GEGLU, &x[N_ACTIVATION]);
    if (i == 5) set_flag(m, M_SQ_RELU, &x[N_ACTIVATION]);
    const import_value *f = &x[N_ACT_FUNC];
    if (import_yes(&x[N_GATED])) {
        bool silu = !import_good(f) || strstr(f->text, "silu");
        set_flag(m, silu ? M_SWIGLU : M_GEGLU, &x[N_GATED]);
    } else if (import_good(f) && strstr(f->text, "squared_relu")) {
        set_flag(m, M_SQ_RELU, f);
    }
}

/* "layernorm1p" is a layer norm that stores its weight minus one. */
static void norms(megatron *m)
{
    import_value *v = &m->v[M_NORM];
    if (!v->given) return;
    if (strcasecmp(v->text, "rmsnorm") == 0) v->text = "RMSNorm";
    if (strcasecmp(v->text, "layernorm") == 0 ||
        strcasecmp(v->text, "layernorm1p") == 0 ||
        strcasecmp(v->text, "low_precision_layernorm") == 0)
        v->text = "LayerNorm";
}

static void positions(megatron *m)
{
    import_value *v = &m->v[M_POSITION];
    if (v->given && strcasecmp(v->text, "alibi") == 0) v->text = "alibi";
}

/* Precisions by name, such as "bf16_with_fp8_current_scaling_mixed". */
static void precision(megatron *m, import_value *x)
{
    const import_value *p = &x[N_PRECISION], *f = &x[N_FP8];
    const char *s = p->text;
    if (import_good(p) && s[0]) {
        if (strncmp(s, "bf16", 4) == 0)
            set_flag(m, M_BF16, p);
        else if (strncmp(s, "16", 2) == 0 || strncmp(s, "fp16", 4) == 0)
            set_flag(m, M_FP16, p);
        else if (strncmp(s, "32", 2) != 0)
            import_error(m->to, SC_C_UNKNOWN_NAME, p->at,
                         "bf16-mixed, 16-mixed or 32", "%s '%.60s'", p->name,
                         s);
        if (strstr(s, "fp8")) set_text(m, M_FP8, p, "hybrid");
        if (strstr(s, "mxfp8")) set_text(m, M_FP8_RECIPE, p, "mxfp8");
        if (strstr(s, "subchannel")) set_text(m, M_FP8_RECIPE, p, "blockwise");
        if (strstr(s, "current")) set_text(m, M_FP8_RECIPE, p, "tensorwise");
        if (strstr(s, "nvfp4")) set_text(m, M_FP4, p, "e2m1");
    }
    if (!import_good(f) || strcasecmp(f->text, "false") == 0) return;
    bool yes = strcasecmp(f->text, "true") == 0;
    set_text(m, M_FP8, f, yes ? "hybrid" : f->text);
}

static void tokenizer(megatron *m, const import_value *x)
{
    const import_value *l = &x[N_TOK_LIBRARY], *t = &x[N_TOK_TYPE];
    const import_value *f = &x[N_TOK_MODEL];
    if (!import_good(l)) return;
    if (strcmp(l->text, "megatron") == 0 && import_good(t)) {
        m->v[M_TOKENIZER] = *t;
        return;
    }
    set_text(m, M_TOKENIZER, l, "HuggingFaceTokenizer");
    if (import_good(t)) m->v[M_TOKENIZER_MODEL] = *t;
    if (import_good(f) && !import_good(t)) m->v[M_TOKENIZER_MODEL] = *f;
}

static int64_t whole(const import_value *v)
{
    int64_t n = 0;
    if (!import_good(v) || !v->text[0]) return 0;
    for (const char *s = v->text; *s; s++) {
        if (*s < '0' || *s > '9' || n > (1 << 24)) return 0;
        n = 10 * n + (*s - '0');
    }
    return n;
}

static void processes(import_sink *to, const import_value *x)
{
    int64_t devices = whole(&x[N_DEVICES]), nodes = whole(&x[N_NODES]);
    if (nodes == 0 && devices > 0) nodes = 1;
    if (nodes > 0) to->out->nodes = nodes;
    if (devices > 0) to->out->per_node = devices;
    if (devices > 0) to->out->world = devices * nodes;
    if (nodes > 0) to->out->starter = to->file;
}

static void others(megatron *m, const import_value *x)
{
    const import_value *o = &x[N_OPTIMIZER], *p = &x[N_PEFT];
    if (import_good(&m->v[M_GROUPS])) set_flag(m, M_GQA, &m->v[M_GROUPS]);
    if (import_good(&x[N_BIAS]) && x[N_BIAS].number == 0)
        set_flag(m, M_NO_BIAS, &x[N_BIAS]);
    if (import_good(&x[N_SHARE]) && x[N_SHARE].number == 0)
        set_flag(m, M_UNTIE, &x[N_SHARE]);
    if (import_good(&x[N_GRAD_FP32]))
        set_flag(m, x[N_GRAD_FP32].number != 0 ? M_GRAD_FP32 : M_GRAD_BF16,
                 &x[N_GRAD_FP32]);
    if (import_good(o) && strstr(o->text, "distributed"))
        set_flag(m, M_DIST_OPT, o);
    if (import_good(p) && strcmp(p->text, "none") != 0)
        import_error(m->to, SC_C_UNSUPPORTED, p->at,
                     "give adapters in the model: key `lora` of model.yml "
                     "(docs/model-file.md)",
                     "%s %.40s is not modelled", p->name, p->text);
}

/* ---- files -------------------------------------------------------------------------- */

static sc_status read_tree(import_sink *to, const char *text, size_t len,
                           const char *software, const char *program)
{
    sc_node *root;
    import_value *v = SC_NEW_N(to->a, import_value, N_N);
    import_key *keys = table(to->a);
    megatron *m = SC_NEW(to->a, megatron);
    if (!v || !keys || !m) return sc_error_nomem(to->err);
    SC_TRY(
        sc_doc_parse(text, len, SC_FMT_AUTO, to->file, to->a, &root, to->err));
    SC_TRY(nemo_refs(root, to->a, to->err));
    SC_TRY(import_keys_read(to, keys, root, v));
    *m = (megatron){.to = to, .tree = true};
    memcpy(m->v, v, sizeof m->v);
    SC_TRY(texts(m));
    flags(m);
    activation(m, v);
    norms(m);
    positions(m);
    precision(m, v);
    tokenizer(m, v);
    others(m, v);
    processes(to, v);
    SC_TRY(megatron_job(m));
    SC_TRY(megatron_model(m));
    if (import_has(to, "software")) return SC_OK;
    SC_TRY(
        import_assume(to, "software %s: the profile of %s", software, program));
    return import_put_text(to, "software", software, NULL,
                           "the program's profile");
}

sc_status nemo_read(import_sink *to, const char *text, size_t len,
                    const char *const *define)
{
    (void)define;
    return read_tree(to, text, len, "nemo-2024", "NeMo");
}

sc_status bridge_read(import_sink *to, const char *text, size_t len,
                      const char *const *define)
{
    (void)define;
    return read_tree(to, text, len, "megatron-bridge-2026", "Megatron-Bridge");
}
