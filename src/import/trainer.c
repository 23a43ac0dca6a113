/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.c - reads arguments of HuggingFace's Trainer and of scripts around
 * it: JSON, YAML, or options of a command.
 */
#include "import/trainer.h"

#include "import/fsdp.h"
#include "import/models.h"
#include "import/readers.h"

#include <string.h>
#include <strings.h>

typedef enum trainer_id {
    R_MODEL,
    R_MBS,
    R_GA,
    R_SEQ,
    R_BF16,
    R_FP16,
    R_TF32,
    R_RECOMPUTE,
    R_FSDP,
    R_FSDP_CONFIG,
    R_DEEPSPEED,
    R_COMPILE,
    R_OPTIMIZER,
    R_FINETUNING,
    R_ZERO,
    R_DTYPE,
    R_N
} trainer_id;

#define ADAPTERS                                            \
    "adapters are a key of the model: `lora` in model.yml " \
    "(docs/model-file.md)"

static const import_key keys[] = {
    IMPORT_K_WORD("model_name_or_path", R_MODEL),
    IMPORT_K_WORD("model_name", R_MODEL),
    IMPORT_K_INT("per_device_train_batch_size", R_MBS, 1, 1 << 24),
    IMPORT_K_INT("per_gpu_train_batch_size", R_MBS, 1, 1 << 24),
    IMPORT_K_INT("gradient_accumulation_steps", R_GA, 1, 1 << 24),
    IMPORT_K_INT("max_seq_length", R_SEQ, 1, 1 << 30),
    IMPORT_K_INT("max_seq_len", R_SEQ, 1, 1 << 30),
    IMPORT_K_INT("max_length", R_SEQ, 1, 1 << 30),
    IMPORT_K_INT("model_max_length", R_SEQ, 1, 1 << 30),
    IMPORT_K_INT("block_size", R_SEQ, 1, 1 << 30),
    IMPORT_K_INT("cutoff_len", R_SEQ, 1, 1 << 30),
    IMPORT_K_BOOL("bf16", R_BF16),
    IMPORT_K_BOOL("fp16", R_FP16),
    IMPORT_K_BOOL("tf32", R_TF32),
    IMPORT_K_BOOL("gradient_checkpointing", R_RECOMPUTE),
    IMPORT_K_NODE("fsdp", R_FSDP),
    IMPORT_K_NODE("fsdp_config", R_FSDP_CONFIG),
    IMPORT_K_NODE("deepspeed", R_DEEPSPEED),
    IMPORT_K_BOOL("torch_compile", R_COMPILE),
    IMPORT_K_WORD("optim", R_OPTIMIZER),
    IMPORT_K_WORD("finetuning_type", R_FINETUNING),
    IMPORT_K_INT("zero_stage", R_ZERO, 0, 3), /* of DeepSpeed's examples */
    IMPORT_K_WORD("dtype", R_DTYPE),
    IMPORT_K_REFUSED("use_peft", ADAPTERS),
    IMPORT_K_REFUSED("lora_dim", ADAPTERS),
    IMPORT_K_REFUSED("use_lora", ADAPTERS),
    IMPORT_K_REFUSED("lora_r", ADAPTERS),
    IMPORT_K_REFUSED("lora_rank", ADAPTERS),
    IMPORT_K_REFUSED("load_in_4bit", "quantized weights are not modelled"),
    IMPORT_K_REFUSED("load_in_8bit", "quantized weights are not modelled"),
    IMPORT_K_REFUSED("quantization_bit", "quantized weights are not modelled"),
    IMPORT_K_REPORTED("auto_find_batch_size"),
    IMPORT_K_REPORTED("attn_implementation"),
    IMPORT_K_REPORTED("flash_attn"),
    IMPORT_K_REPORTED("group_by_length"),
    IMPORT_K_REPORTED("use_liger_kernel"),
    IMPORT_K_REPORTED("packing"),
    IMPORT_K_REPORTED("torch_dtype"),
    IMPORT_K_REPORTED("torch_empty_cache_steps"),
    IMPORT_K_REPORTED("half_precision_backend"),
    IMPORT_K_REPORTED("sharded_ddp"),
    IMPORT_K_REPORTED("parallelism_config"),
    IMPORT_K_REPORTED("ddp_bucket_cap_mb"),
    IMPORT_K_REPORTED("galore*"),
    IMPORT_K_REPORTED("neftune*"),
    IMPORT_K_REPORTED("tp_size"),
    IMPORT_K_HARMLESS("_*"),
    IMPORT_K_HARMLESS("accelerator_config"),
    IMPORT_K_HARMLESS("adam_*"),
    IMPORT_K_HARMLESS("*_dir"),
    IMPORT_K_HARMLESS("*_file"),
    IMPORT_K_HARMLESS("*_path"),
    IMPORT_K_HARMLESS("*_split"),
    IMPORT_K_HARMLESS("*_seed"),
    IMPORT_K_HARMLESS("*_token"),
    IMPORT_K_HARMLESS("*_fp16_full_eval"),
    IMPORT_K_HARMLESS("batch_eval_metrics"),
    IMPORT_K_HARMLESS("bf16_full_eval"),
    IMPORT_K_HARMLESS("chat_template*"),
    IMPORT_K_HARMLESS("data*"),
    IMPORT_K_HARMLESS("ddp_*"),
    IMPORT_K_HARMLESS("disable_tqdm"),
    IMPORT_K_HARMLESS("do_*"),
    IMPORT_K_HARMLESS("eval*"),
    IMPORT_K_HARMLESS("fp16_*"),
    IMPORT_K_HARMLESS("full_determinism"),
    IMPORT_K_HARMLESS("gradient_checkpointing_kwargs"),
    IMPORT_K_HARMLESS("greater_is_better"),
    IMPORT_K_HARMLESS("hub_*"),
    IMPORT_K_HARMLESS("ignore_data_skip"),
    IMPORT_K_HARMLESS("include_*"),
    IMPORT_K_HARMLESS("jit_mode_eval"),
    IMPORT_K_HARMLESS("label*"),
    IMPORT_K_HARMLESS("learning_rate"),
    IMPORT_K_HARMLESS("length_column_name"),
    IMPORT_K_HARMLESS("load_best_model_at_end"),
    IMPORT_K_HARMLESS("local_rank"),
    IMPORT_K_HARMLESS("log*"),
    IMPORT_K_HARMLESS("low_cpu_mem_usage"),
    IMPORT_K_HARMLESS("lr_*"),
    IMPORT_K_HARMLESS("max_eval_samples"),
    IMPORT_K_HARMLESS("max_grad_norm"),
    IMPORT_K_HARMLESS("max_samples"),
    IMPORT_K_HARMLESS("max_steps"),
    IMPORT_K_HARMLESS("max_train_samples"),
    IMPORT_K_HARMLESS("metric*"),
    IMPORT_K_HARMLESS("model_revision"),
    IMPORT_K_HARMLESS("num_train_epochs"),
    IMPORT_K_HARMLESS("optim_args"),
    IMPORT_K_HARMLESS("overwrite_*"),
    IMPORT_K_HARMLESS("past_index"),
    IMPORT_K_HARMLESS("per_*_eval_batch_size"),
    IMPORT_K_HARMLESS("plot_loss"),
    IMPORT_K_HARMLESS("prediction_loss_only"),
    IMPORT_K_HARMLESS("preprocessing_*"),
    IMPORT_K_HARMLESS("project"),
    IMPORT_K_HARMLESS("push_to_hub*"),
    IMPORT_K_HARMLESS("ray_scope"),
    IMPORT_K_HARMLESS("remove_unused_columns"),
    IMPORT_K_HARMLESS("report_to"),
    IMPORT_K_HARMLESS("restore_callback*"),
    IMPORT_K_HARMLESS("resume_from_checkpoint"),
    IMPORT_K_HARMLESS("run_name"),
    IMPORT_K_HARMLESS("save*"),
    IMPORT_K_HARMLESS("seed"),
    IMPORT_K_HARMLESS("skip_memory_metrics"),
    IMPORT_K_HARMLESS("stage"),
    IMPORT_K_HARMLESS("streaming"),
    IMPORT_K_HARMLESS("template"),
    IMPORT_K_HARMLESS("tokenizer*"),
    IMPORT_K_HARMLESS("torch_compile_*"),
    IMPORT_K_HARMLESS("torchdynamo"),
    IMPORT_K_HARMLESS("tpu_*"),
    IMPORT_K_HARMLESS("trackio*"),
    IMPORT_K_HARMLESS("trust_remote_code"),
    IMPORT_K_HARMLESS("use_auth_token"),
    IMPORT_K_HARMLESS("use_cache"),
    IMPORT_K_HARMLESS("use_cpu"),
    IMPORT_K_HARMLESS("use_fast*"),
    IMPORT_K_HARMLESS("use_legacy*"),
    IMPORT_K_HARMLESS("validation_*"),
    IMPORT_K_HARMLESS("warmup_*"),
    IMPORT_K_HARMLESS("weight_decay"),
    IMPORT_K_REPORTED("*"), /* scripts have further options */
    {NULL, 0, 0, 0, 0, 0, NULL},
};

/* Only scripts with --zero_stage use --dtype for training; others use it for
 * loading. */
static sc_status dtype(import_sink *to, import_value *v)
{
    static const char *const names[] = {"fp16", "bf16", NULL};
    int i = import_choose(to, &v[R_DTYPE], names, "fp16 or bf16");
    return import_put(to, "precision", i == 1 ? SC_RECIPE_BF16 : SC_RECIPE_FP16,
                      &v[R_DTYPE], "default of scripts with --zero_stage");
}

static sc_status precision(import_sink *to, import_value *v)
{
    if (import_yes(&v[R_BF16]) && import_yes(&v[R_FP16]))
        import_error(to, SC_C_CONFLICT, v[R_FP16].at, "keep one of them",
                     "fp16 and bf16 are both enabled");
    if (import_yes(&v[R_BF16]))
        return import_put(to, "precision", SC_RECIPE_BF16, &v[R_BF16], NULL);
    if (import_yes(&v[R_FP16]))
        return import_put(to, "precision", SC_RECIPE_FP16, &v[R_FP16], NULL);
    if (import_yes(&v[R_TF32]))
        return import_put(to, "precision", SC_RECIPE_TF32, &v[R_TF32], NULL);
    if (v[R_ZERO].given) return dtype(to, v);
    if (v[R_DTYPE].given)
        SC_TRY(import_warn(to, v[R_DTYPE].at, "%s is not modelled",
                           v[R_DTYPE].name));
    return import_put(to, "precision", SC_RECIPE_FP32, NULL,
                      "default of Trainer: neither bf16 nor fp16");
}

/* Whether "full_shard offload auto_wrap", or a list of such words, has it. */
static bool offloads(const sc_node *n)
{
    bool has = n->kind == SC_N_SCALAR && strstr(n->text, "offload");
    for (const sc_node *c = n->child; c && n->kind == SC_N_SEQ; c = c->next)
        has = has || (c->kind == SC_N_SCALAR && strstr(c->text, "offload"));
    return has;
}

/* Finds the strategy in "full_shard auto_wrap". */
static sc_status fsdp_words(import_sink *to, import_value *v)
{
    static const char *const strategy[] = {"full_shard", "shard_grad_op",
                                           "no_shard", "hybrid_shard",
                                           "hybrid_shard_zero2"};
    const sc_node *n = v->node;
    const char *text = v->text;
    if (offloads(n)) SC_TRY(import_fsdp_away(to, v));
    for (const sc_node *c = n->kind == SC_N_SEQ ? n->child : n; c;
         c = n->kind == SC_N_SEQ ? c->next : NULL) {
        if (c->kind != SC_N_SCALAR) continue;
        text = c->text;
        for (size_t i = 0; i < SC_COUNT(strategy); i++) {
            size_t k = strlen(strategy[i]);
            if (strncmp(text, strategy[i], k) == 0 &&
                (text[k] == ' ' || text[k] == '\0'))
                return import_fsdp(to, v, strategy[i]);
        }
    }
    if (strcasecmp(text, "true") == 0) return import_fsdp(to, v, "full_shard");
    if (strcasecmp(text, "false") == 0 || text[0] == '\0') return SC_OK;
    import_error(to, SC_C_UNKNOWN_NAME, v->at,
                 "full_shard, shard_grad_op, no_shard or hybrid_shard",
                 "fsdp '%.60s'", text);
    return SC_OK;
}

static sc_status sharding(import_sink *to, import_value *v)
{
    import_value *d = &v[R_DEEPSPEED], *c = &v[R_FSDP_CONFIG];
    if (import_good(&v[R_ZERO]))
        return import_put(to, "zero", v[R_ZERO].number, &v[R_ZERO], NULL);
    if (d->given && d->node->kind == SC_N_MAP)
        return deepspeed_map(to, d->node);
    if (d->given && d->text[0]) {
        if (import_is_explicit(to, "zero")) return SC_OK;
        return import_warn(
            to, d->at,
            "the ZeRO stage is in %.100s: give this file with --from as well",
            d->text);
    }
    if (v[R_FSDP].given) SC_TRY(fsdp_words(to, &v[R_FSDP]));
    if (c->given && c->node->kind == SC_N_MAP)
        SC_TRY(import_fsdp_map(to, c->node));
    else if (c->given && c->text[0] && v[R_FSDP].given)
        SC_TRY(import_warn(to, c->at, "%.100s is another file, not read",
                           c->text));
    return import_put(to, "zero", 0, NULL, "default of Trainer");
}

static sc_status batch(import_sink *to, import_value *v)
{
    SC_TRY(import_put(to, "micro-batch", import_number(&v[R_MBS], 8), &v[R_MBS],
                      "default of Trainer"));
    if (import_good(&v[R_SEQ]))
        SC_TRY(import_put(to, "seq", v[R_SEQ].number, &v[R_SEQ], NULL));
    if (import_good(&v[R_GA]) && to->accumulation_v.given &&
        to->accumulation != (int64_t)v[R_GA].number)
        import_error(to, SC_C_CONFLICT, v[R_GA].at, NULL,
                     "%s %.0f, but another file has %lld", v[R_GA].name,
                     v[R_GA].number, (long long)to->accumulation);
    if (import_good(&v[R_GA])) to->accumulation_v = v[R_GA];
    if (import_good(&v[R_GA]) || to->accumulation == 0)
        to->accumulation = (int64_t)import_number(&v[R_GA], 1);
    return SC_OK;
}

static sc_status others(import_sink *to, import_value *v)
{
    const import_value *o = &v[R_OPTIMIZER], *f = &v[R_FINETUNING];
    if (import_good(o) && strncmp(o->text, "adamw_torch", 11) != 0 &&
        strcmp(o->text, "adamw_hf") != 0 &&
        strcmp(o->text, "adamw_apex_fused") != 0)
        SC_TRY(import_warn(to, o->at, "optimizer %.60s is modelled as Adam",
                           o->text));
    if (import_good(f) && strcmp(f->text, "full") != 0)
        import_error(to, SC_C_UNSUPPORTED, f->at, ADAPTERS,
                     "%s %.40s is not modelled", f->name, f->text);
    return import_put(to, "recompute",
                      import_yes(&v[R_RECOMPUTE]) ? SC_RC_FULL : SC_RC_NONE,
                      &v[R_RECOMPUTE], "default of Trainer");
}

sc_status trainer_map(import_sink *to, const sc_node *root)
{
    import_value v[R_N] = {{0}};
    SC_TRY(import_keys_read(to, keys, root, v));
    if (import_good(&v[R_MODEL]))
        SC_TRY(import_model(to, v[R_MODEL].text, &v[R_MODEL]));
    SC_TRY(sharding(to, v));
    SC_TRY(batch(to, v));
    SC_TRY(precision(to, v));
    SC_TRY(others(to, v));
    SC_TRY(import_no_parallelism(to, "Trainer"));
    if (v[R_DEEPSPEED].given) return SC_OK;
    return import_pytorch(to, import_yes(&v[R_COMPILE]), "Trainer");
}

sc_status trainer_read(import_sink *to, const char *text, size_t len,
                       const char *const *define)
{
    sc_node *root;
    (void)define;
    SC_TRY(
        sc_doc_parse(text, len, SC_FMT_AUTO, to->file, to->a, &root, to->err));
    return trainer_map(to, root);
}

/* ---- options of a command ------------------------------------------------------------ */

/* "--per-device-train-batch-size=4" is the key per_device_train_batch_size. */
static char *key_of(import_sink *to, const char *word, size_t *end)
{
    *end = strcspn(word, "=");
    char *key = sc_strndup(to->a, word + 2, *end - 2);
    for (char *c = key; c && *c; c++)
        if (*c == '-') *c = '_';
    return key;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] == '-' && word[2];
}

bool trainer_is(const trainer_word *w, uint32_t n)
{
    static const char *const marks[] = {
        "per_device_train_batch_size", "per_gpu_train_batch_size",
        "model_name_or_path", "gradient_checkpointing"};
    for (uint32_t i = 0; i < n; i++) {
        if (!is_option(w[i].text)) continue;
        for (size_t k = 0; k < SC_COUNT(marks); k++) {
            const char *a = w[i].text + 2, *b = marks[k];
            while (*b && (*a == *b || (*a == '-' && *b == '_'))) a++, b++;
            if (!*b && (!*a || *a == '=')) return true;
        }
    }
    return false;
}

/* Options as a tree.  An option without a value is "true"; several values are
 * one text. */
sc_status trainer_words(import_sink *to, const trainer_word *w, uint32_t n)
{
    sc_node root = {.kind = SC_N_MAP, .text = ""}, **last = &root.child;
    for (uint32_t i = 0; i < n; i++) {
        size_t end;
        if (!is_option(w[i].text)) continue;
        sc_node *node = SC_NEW(to->a, sc_node);
        char *key = key_of(to, w[i].text, &end);
        if (!node || !key) return sc_error_nomem(to->err);
        *node = (sc_node){.kind = SC_N_SCALAR,
                          .key = key,
                          .key_pos = w[i].pos,
                          .pos = w[i].pos,
                          .text = "true"};
        if (w[i].text[end] == '=') {
            node->text = w[i].text + end + 1;
        } else {
            const char *text = NULL;
            for (; i + 1 < n && !is_option(w[i + 1].text); i++) {
                if (!text) node->pos = w[i + 1].pos;
                text = sc_sprintf(to->a, "%s%s%s", text ? text : "",
                                  text ? " " : "", w[i + 1].text);
                if (!text) return sc_error_nomem(to->err);
            }
            if (text) node->text = text;
        }
        *last = node;
        last = &node->next;
        root.n++;
    }
    return trainer_map(to, &root);
}
