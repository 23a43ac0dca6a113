/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recognise.c - recognises the format of a file by its content: the keys of the
 * two outer levels of a tree, or the form of its lines.
 */
#include "import/import.h"
#include "model/model.h"

#include <string.h>

enum { NAMES = 16384, OUTER = 128, DEPTH = 2 };

/* Keys in one text: ";zero_optimization;zero_optimization.stage;". */
typedef struct names {
    char text[NAMES];
    size_t len;
    char outer[OUTER];
    int depth; /* of open maps and lists */
    int lists; /* of these, lists */
} names;

static void add(names *n, const char *head, const char *key, size_t len)
{
    size_t h = strlen(head);
    if (n->len + h + len + 3 > NAMES) return;
    memcpy(n->text + n->len, head, h);
    n->len += h;
    if (h) n->text[n->len++] = '.';
    memcpy(n->text + n->len, key, len);
    n->len += len;
    n->text[n->len++] = ';';
    n->text[n->len] = '\0';
}

static sc_status event(void *ctx, const sc_event *ev, sc_err *err)
{
    names *n = ctx;
    (void)err;
    switch (ev->kind) {
    case SC_EV_MAP_BEGIN: n->depth++; break;
    case SC_EV_SEQ_BEGIN: n->depth++, n->lists++; break;
    case SC_EV_MAP_END: n->depth--; break;
    case SC_EV_SEQ_END: n->depth--, n->lists--; break;
    case SC_EV_KEY:
        if (n->lists || n->depth > DEPTH) break;
        if (n->depth == 1) {
            size_t k = ev->len < OUTER ? ev->len : OUTER - 1;
            memcpy(n->outer, ev->text, k);
            n->outer[k] = '\0';
            add(n, "", ev->text, ev->len);
        } else {
            add(n, n->outer, ev->text, ev->len);
        }
        break;
    case SC_EV_SCALAR: break;
    }
    return SC_OK;
}

static bool has(const names *n, const char *key)
{
    size_t k = strlen(key);
    for (const char *s = n->text; (s = strstr(s, key)); s++)
        if (s[-1] == ';' && s[k] == ';') return true;
    return false;
}

static uint32_t count(const names *n, const char *const *keys)
{
    uint32_t found = 0;
    for (; *keys; keys++) found += has(n, *keys);
    return found;
}

/* A file has a format if it contains at least so many of these keys. */
static const struct {
    sc_import_format format;
    uint32_t least;
    const char *keys[12];
} marks[] = {
    {SC_IMPORT_KINETO, 1, {"traceEvents"}},
    {SC_IMPORT_KINETO, 2, {"schemaVersion", "deviceProperties", "traceName"}},
    {SC_IMPORT_EXECUTION_TRACE, 2, {"schema", "nodes", "finish_ts"}},
    {SC_IMPORT_DEEPSPEED,
     1,
     {"zero_optimization", "train_micro_batch_size_per_gpu",
      "zero_allow_untested_optimizer"}},
    {SC_IMPORT_DEEPSPEED,
     2,
     {"train_batch_size", "fp16.enabled", "bf16.enabled", "optimizer.type",
      "gradient_accumulation_steps", "steps_per_print",
      "activation_checkpointing.partition_activations",
      "activation_checkpointing.cpu_checkpointing"}},
    {SC_IMPORT_NEMO,
     1,
     {"exp_manager", "trainer.num_nodes", "trainer.strategy", "model.mcore_gpt",
      "model.megatron_amp_O2", "trainer.devices"}},
    {SC_IMPORT_BRIDGE,
     1,
     {"train.global_batch_size", "train.micro_batch_size", "train.train_iters",
      "ddp.use_distributed_optimizer", "ddp.overlap_grad_reduce",
      "comm_overlap.tp_comm_overlap"}},
    {SC_IMPORT_ACCELERATE, 1, {"distributed_type", "compute_environment"}},
    {SC_IMPORT_ACCELERATE,
     2,
     {"num_machines", "num_processes", "mixed_precision", "machine_rank",
      "fsdp_config.fsdp_sharding_strategy"}},
    {SC_IMPORT_TRAINER,
     1,
     {"per_device_train_batch_size", "per_gpu_train_batch_size"}},
    {SC_IMPORT_TRAINER,
     2,
     {"model_name_or_path", "output_dir", "learning_rate", "num_train_epochs",
      "gradient_accumulation_steps", "gradient_checkpointing", "max_grad_norm",
      "lr_scheduler_type"}},
    {SC_IMPORT_HF_CONFIG,
     2,
     {"model_type", "architectures", "vocab_size", "n_layer", "text_config"}},
    {SC_IMPORT_STRATEGY, 1, {"mesh", "preset", "rules"}},
    {SC_IMPORT_CLUSTER, 1, {"nodes", "node", "fabric", "device"}},
    {SC_IMPORT_JOB,
     1,
     {"model", "cluster", "schema", "tp", "pp", "dp", "global-batch", "words",
      "strategy", "software"}},
    {SC_IMPORT_MODEL, 1, {"operators"}},
    {SC_IMPORT_MODEL, 2, {"layers", "hidden", "heads", "vocab"}},
};

/* torchtitan's sections of TOML.  Such lines do not occur in YAML or JSON. */
static bool is_torchtitan(const char *text, size_t len)
{
    static const char *const section[] = {
        "[model]",   "[training]",   "[parallelism]",  "[optimizer]",   "[job]",
        "[metrics]", "[checkpoint]", "[experimental]", "[lr_scheduler]"};
    uint32_t found = 0;
    for (size_t i = 0; i < len;) {
        const char *line = text + i, *nl = memchr(line, '\n', len - i);
        size_t n = nl ? (size_t)(nl - line) : len - i;
        for (size_t k = 0; k < SC_COUNT(section); k++) {
            size_t m = strlen(section[k]);
            found += n >= m && memcmp(line, section[k], m) == 0;
        }
        i += n + 1;
    }
    return found >= 2;
}

sc_import_format sc_import_recognise(const char *text, size_t len)
{
    if (len > 2 && memcmp(text, "#!", 2) == 0) return SC_IMPORT_MEGATRON;
    if (is_torchtitan(text, len)) return SC_IMPORT_TORCHTITAN;
    names n = {.text = ";", .len = 1};
    (void)sc_doc_events(text, len, SC_FMT_AUTO, "", event, &n, NULL);
    for (size_t i = 0; i < SC_COUNT(marks); i++)
        if (count(&n, marks[i].keys) >= marks[i].least) return marks[i].format;
    return SC_IMPORT_UNKNOWN;
}

static const struct {
    const char *name, *option;
} formats[] = {
    [SC_IMPORT_MEGATRON] = {"a launch script", "--from"},
    [SC_IMPORT_DEEPSPEED] = {"a DeepSpeed configuration", "--from"},
    [SC_IMPORT_TORCHTITAN] = {"a torchtitan configuration", "--from"},
    [SC_IMPORT_ACCELERATE] = {"a configuration of accelerate", "--from"},
    [SC_IMPORT_TRAINER] = {"a file of arguments for HuggingFace's Trainer",
                           "--from"},
    [SC_IMPORT_NEMO] = {"a configuration of NeMo", "--from"},
    [SC_IMPORT_BRIDGE] = {"a configuration of Megatron-Bridge", "--from"},
    [SC_IMPORT_JOB] = {"a job of stepcast", "--config"},
    [SC_IMPORT_MODEL] = {"a model of stepcast", "--model"},
    [SC_IMPORT_HF_CONFIG] = {"a HuggingFace config.json", "--model"},
    [SC_IMPORT_EXECUTION_TRACE] = {"a PyTorch execution trace", "--model"},
    [SC_IMPORT_STRATEGY] = {"a strategy", "--strategy"},
    [SC_IMPORT_CLUSTER] = {"a cluster", "--cluster"},
    [SC_IMPORT_KINETO] = {"a profiler trace (Kineto)", "--model"},
    [SC_IMPORT_UNKNOWN] = {NULL, NULL},
};

const char *sc_import_format_name(sc_import_format f)
{
    return formats[f].name;
}

const char *sc_import_format_option(sc_import_format f)
{
    return formats[f].option;
}
