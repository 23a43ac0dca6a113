/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_args.c - reads options of Megatron-LM by name. */
#include "base/number.h"
#include "base/utf8.h"
#include "import/keys.h"
#include "import/megatron.h"

#include <stdio.h>
#include <string.h>

#define ROW(id, name, kind, lo, hi) {name, M_##kind, lo, hi},

const megatron_row megatron_rows[M_N] = {MEGATRON_OPTIONS(ROW)};

/* Other spellings, of earlier versions and of argument tables. */
static const struct {
    const char *name;
    megatron_id id;
} aliases[] = {
    {"batch-size", M_MBS},
    {"encoder-seq-length", M_SEQ},
    {"encoder-num-layers", M_LAYERS},
    {"fp8", M_FP8},
    {"model-parallel-size", M_TP},
    {"virtual-pipeline-model-parallel-size", M_VPP},
    {"activations-checkpoint-granularity", M_RC},
    {"activations-checkpoint-method", M_RC_METHOD},
    {"deepspeed-config-file", M_DS_CONFIG},
    {"topk", M_TOPK},
    {"use-fsdp2", M_FSDP2},
};

/* Options that do not change the time of a step, or that the software profile
 * decides: data, logging, checkpoints, optimization, inference, kernels. */
static const char *const ignored[] = {"*-path",
                                      "*-paths",
                                      "*-file",
                                      "*-files",
                                      "*-dir",
                                      "*-prefix",
                                      "*-seed",
                                      "ac-*",
                                      "accumulate-*",
                                      "adam-*",
                                      "adlr-*",
                                      "align-*",
                                      "apply-*",
                                      "async-*",
                                      "attention-backend",
                                      "attention-softmax-in-fp32",
                                      "auto-*",
                                      "barrier-*",
                                      "bert-*",
                                      "bias-*",
                                      "blendable-*",
                                      "calculate-*",
                                      "check-*",
                                      "ckpt-*",
                                      "clip-grad",
                                      "config-logger-*",
                                      "cross-entropy-*",
                                      "cuda-*",
                                      "data-*",
                                      "dataloader-*",
                                      "ddp-*",
                                      "DDP-impl",
                                      "decoupled-*",
                                      "decrease-batch-size-if-needed",
                                      "deterministic-mode",
                                      "deepspeed-activation-checkpointing",
                                      "dist-ckpt-*",
                                      "dist-url",
                                      "distributed-*",
                                      "embedding-init-*",
                                      "empty-unused-*",
                                      "enable-*",
                                      "end-*",
                                      "eod-*",
                                      "error-*",
                                      "eval-*",
                                      "exit-*",
                                      "exp-avg*",
                                      "finetune",
                                      "force-*",
                                      "fp16-lm-cross-entropy",
                                      "fp32-residual-connection",
                                      "fp8-amax-*",
                                      "fp4-recipe",
                                      "fp8-interval",
                                      "fp8-margin",
                                      "fp8-param*",
                                      "ft-*",
                                      "full-validation",
                                      "get-*",
                                      "gradient-accumulation-*",
                                      "head-lr-mult",
                                      "hysteresis",
                                      "ict-*",
                                      "inference-*",
                                      "init-method*",
                                      "init-model-with-meta-device",
                                      "initial-loss-scale",
                                      "inprocess-*",
                                      "keep-*",
                                      "lazy-*",
                                      "load*",
                                      "local-rank",
                                      "log-*",
                                      "logging-level",
                                      "loss-scale*",
                                      "lr*",
                                      "make-*-deterministic",
                                      "manual-gc*",
                                      "mask-prob",
                                      "masked-softmax-fusion",
                                      "max-tokens-to-oom",
                                      "memory-*",
                                      "merge-file",
                                      "min-loss-scale",
                                      "min-lr",
                                      "mmap-*",
                                      "mock-data",
                                      "moe-aux-loss-coeff",
                                      "moe-grouped-gemm",
                                      "moe-input-jitter-eps",
                                      "moe-pad-*",
                                      "moe-per-layer-logging",
                                      "moe-permute-fusion",
                                      "moe-router-*",
                                      "moe-shared-expert-overlap",
                                      "moe-token-dispatcher-type",
                                      "moe-use-*",
                                      "moe-z-loss-coeff",
                                      "mtp-loss-scaling-factor",
                                      "nccl-*",
                                      "no-async-*",
                                      "no-bias-*-fusion",
                                      "no-check-*",
                                      "no-create-*",
                                      "no-data-*",
                                      "no-gradient-accumulation-fusion",
                                      "no-initialization",
                                      "no-load-*",
                                      "no-log-*",
                                      "no-masked-softmax-fusion",
                                      "no-mmap-*",
                                      "no-one-logger",
                                      "no-persist-layer-norm",
                                      "no-query-key-layer-scaling",
                                      "no-rope-fusion",
                                      "glu-linear-offset",
                                      "activation-func-clamp-value",
                                      "no-save-*",
                                      "no-scatter-gather-tensors-in-pipeline",
                                      "node-rank",
                                      "non-persistent-*",
                                      "norm-epsilon",
                                      "layernorm-epsilon",
                                      "num-dataset-*",
                                      "num-workers",
                                      "nvtx-*",
                                      "one-logger-*",
                                      "onnx-safe",
                                      "openai-gelu",
                                      "optimizer",
                                      "output-bert-*",
                                      "override-*",
                                      "overlap-param-gather*",
                                      "partition-activations",
                                      "contigious-checkpointing",
                                      "checkpoint-in-cpu",
                                      "checkpoint-num-layers",
                                      "synchronize-each-layer",
                                      "perform-*",
                                      "pin-memory",
                                      "profile*",
                                      "pytorch-profiler-*",
                                      "rank",
                                      "record-*",
                                      "recompute-*-norm",
                                      "replication*",
                                      "rerun-*",
                                      "reset-*",
                                      "result-*",
                                      "retro-*",
                                      "rl-*",
                                      "rope-*",
                                      "rotary-*",
                                      "run-*",
                                      "sample-*",
                                      "save*",
                                      "seed",
                                      "sft*",
                                      "sgd-*",
                                      "short-seq-prob",
                                      "skip-*",
                                      "split",
                                      "start-weight-decay",
                                      "straggler-*",
                                      "strict-*",
                                      "swin-*",
                                      "te-*",
                                      "tensorboard-*",
                                      "test-*",
                                      "tiktoken-*",
                                      "timing-*",
                                      "titles-*",
                                      "tokenizer-*",
                                      "train-*",
                                      "trust-remote-code",
                                      "use-checkpoint-*",
                                      "use-cpu-initialization",
                                      "use-dist-ckpt",
                                      "use-flash-attn*",
                                      "use-legacy-models",
                                      "use-mcore-models",
                                      "use-mp-args-*",
                                      "use-one-sent-*",
                                      "use-persistent-ckpt-worker",
                                      "use-precision-aware-optimizer",
                                      "use-pytorch-profiler",
                                      "use-rope-scaling",
                                      "transformer-impl",
                                      "valid-*",
                                      "verbosity",
                                      "vocab-extra-ids",
                                      "wandb-*",
                                      "warmup",
                                      "weight-decay*",
                                      "world-size",
                                      NULL};

/* ---- values by name ----------------------------------------------------------------- */

/* Keys of trees whose name differs from the option. */
static const struct {
    megatron_id id;
    const char *key;
} key_names[] = {
    {M_VPP, "virtual_pipeline_model_parallel_size"},
    {M_GQA, "num_query_groups"},
    {M_EXPERTS, "num_moe_experts"},
    {M_NO_BIAS, "add_bias_linear"},
    {M_UNTIE, "share_embeddings_and_output_weights"},
    {M_SWIGLU, "gated_linear_unit"},
    {M_BF16, "precision"},
};

const char *megatron_name(const megatron *m, megatron_id id, char buf[64])
{
    for (size_t i = 0; m->tree && i < SC_COUNT(key_names); i++)
        if (key_names[i].id == id) return key_names[i].key;
    snprintf(buf, 64, "%s%s", m->tree ? "" : "--", megatron_rows[id].name);
    for (char *c = buf; m->tree && *c; c++)
        if (*c == '-') *c = '_';
    return buf;
}

const char *megatron_default(megatron *m, megatron_id id)
{
    char name[64];
    return sc_sprintf(m->to->a, "default: no %s in %s",
                      megatron_name(m, id, name), m->to->file);
}

sc_status megatron_origin_of(megatron *m, bool of_model, const char *key,
                             megatron_id id)
{
    const import_value *v = &m->v[id];
    if (v->given) return import_origin(m->to, of_model, key, v, NULL);
    const char *text = megatron_default(m, id);
    return text ? import_origin(m->to, of_model, key, NULL, text)
                : sc_error_nomem(m->to->err);
}

bool megatron_good(const megatron *m, megatron_id id)
{
    return m->v[id].given && !m->v[id].bad;
}

int64_t megatron_number(const megatron *m, megatron_id id, int64_t other)
{
    return megatron_good(m, id) ? (int64_t)m->v[id].number : other;
}

/* ---- names ------------------------------------------------------------------------- */

static int find(const char *name)
{
    for (int i = 0; i < (int)M_N; i++)
        if (strcmp(megatron_rows[i].name, name) == 0) return i;
    for (size_t i = 0; i < SC_COUNT(aliases); i++)
        if (strcmp(aliases[i].name, name) == 0) return (int)aliases[i].id;
    return -1;
}

static bool is_ignored(const char *name)
{
    for (const char *const *p = ignored; *p; p++)
        if (sc_glob(*p, name)) return true;
    return false;
}

/* The option that `name` misspells; NULL: none. Other unknown options are only
 * warnings, since Megatron-LM has more options than are listed here. */
static const char *misspelt(const char *name)
{
    for (int i = 0; i < (int)M_N; i++)
        if (import_is_slip(name, megatron_rows[i].name))
            return megatron_rows[i].name;
    return NULL;
}

/* ---- values ------------------------------------------------------------------------ */

static sc_pos position(const megatron *m, uint32_t at)
{
    return utf8_position(m->text, m->len, at, m->to->file);
}

/* Whole decimal digits, as Python's int() takes them. */
static bool digits(const char *s)
{
    s += *s == '+' || *s == '-';
    if (!*s) return false;
    while (*s >= '0' && *s <= '9') s++;
    return *s == '\0';
}

static void read_number(megatron *m, const megatron_row *row, import_value *v)
{
    const char *s = v->text;
    size_t n = strlen(s);
    v->bad = true;
    if (row->kind == M_INT ? !digits(s) : n == 0 || number_span(s) != n) {
        import_error(m->to, SC_C_TYPE, v->at, NULL,
                     "%s needs a %snumber, not '%.60s'", v->name,
                     row->kind == M_INT ? "whole " : "", s);
        return;
    }
    v->number = number_scaled(s, n, 0);
    if (!(v->number >= row->lo && v->number <= row->hi)) {
        import_error(m->to, SC_C_RANGE, v->at, NULL,
                     "%s %.40s is outside [%.0f, %.0f]", v->name, s, row->lo,
                     row->hi);
        return;
    }
    v->bad = false;
}

/* A hint for giving an open value. */
static const char *how_to_set(const char *open)
{
    if (open[0] != '$' || open[1] == '(')
        return "nothing is executed; write the number";
    if (open[1] >= '0' && open[1] <= '9')
        return "the script is read as if launched without arguments; write "
               "them in a line `set -- ARGUMENTS` at the top of the file";
    return "write a line NAME=value at the top of the file";
}

/* Reads `n` words after option `id` as its value. */
static void set(megatron *m, int id, import_value v, const megatron_word *w,
                uint32_t n)
{
    const megatron_row *row = &megatron_rows[id];
    uint32_t most = row->kind == M_FLAG ? 0 : row->kind == M_MANY ? 99 : 1;
    v.given = true;
    v.text = "";
    v.at = v.pos;
    if (n > 0) {
        v.at = position(m, w[0].at);
        v.text = w[0].text;
    }
    if (n > most) {
        v.bad = true;
        import_error(m->to, SC_C_SYNTAX, position(m, w[most].at), NULL,
                     "%s takes %s value, so '%.60s' belongs to no option",
                     v.name, most ? "one" : "no", w[most].text);
    } else if (n == 0 && most > 0) {
        v.bad = true;
        import_error(m->to, SC_C_MISSING, v.pos, NULL, "%s without its value",
                     v.name);
    } else if (n > 0 && w[0].open && id != M_DS_CONFIG && id != M_TOKENIZER &&
               id != M_TOKENIZER_MODEL) {
        v.bad = true;
        import_error(m->to, SC_C_MISSING, v.at, how_to_set(w[0].text),
                     "%s needs %.80s, which this file does not set", v.name,
                     w[0].text);
    } else if (row->kind == M_INT || row->kind == M_REAL) {
        read_number(m, row, &v);
    }
    m->v[id] = v;
}

/* ---- words --------------------------------------------------------------------------- */

static bool is_option(const megatron_word *w)
{
    const char *s = w->text;
    if (s[0] != '-' || s[1] != '-') return false;
    char c = s[2];
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The name of an option: without dashes, '_' as '-', up to '='. */
static size_t option_name(const char *s, char *buf, size_t size)
{
    size_t n = 0;
    for (s += 2; *s && *s != '=' && n + 1 < size; s++) {
        buf[n] = *s;
        if (*s == '_') buf[n] = '-';
        n++;
    }
    buf[n] = '\0';
    return n + 2;
}

static sc_status unknown(megatron *m, const char *name, sc_pos pos)
{
    if (is_ignored(name)) return SC_OK;
    const char *known = misspelt(name);
    if (!known) return import_warn(m->to, pos, "--%.80s is not modelled", name);
    char hint[120];
    snprintf(hint, sizeof hint, "did you mean --%s?", known);
    import_error(m->to, SC_C_UNKNOWN_KEY, pos, hint, "unknown option --%.80s",
                 name);
    return SC_OK;
}

static sc_status stray(megatron *m, const megatron_word *w)
{
    if (w->open)
        return import_warn(m->to, position(m, w->at),
                           "%.80s is not set here and taken as empty", w->text);
    if (w->text[0] == '\0') return SC_OK;
    return import_warn(m->to, position(m, w->at), "'%.80s' is not an option",
                       w->text);
}

static sc_status option(megatron *m, const megatron_word *w, uint32_t n)
{
    char name[128];
    size_t end = option_name(w->text, name, sizeof name);
    import_value v = {.pos = position(m, w->at)};
    int id = find(name);
    if (id < 0) return unknown(m, name, v.pos);
    v.name = sc_sprintf(m->to->a, "--%s", name);
    if (!v.name) return sc_error_nomem(m->to->err);
    /* unset variables give no words after an option that has all its values */
    uint32_t most = megatron_rows[id].kind == M_FLAG   ? 0
                    : megatron_rows[id].kind == M_MANY ? 99
                                                       : 1;
    if (w->text[end] == '=') {
        megatron_word value = {w->text + end + 1, w->at + (uint32_t)end + 1,
                               w->open};
        set(m, id, v, &value, 1);
        most = 0;
    } else {
        uint32_t used = n;
        while (used > most && (w[used].open || w[used].text[0] == '\0')) used--;
        set(m, id, v, w + 1, used);
        most = used;
    }
    for (uint32_t i = most + 1; i <= n; i++) SC_TRY(stray(m, &w[i]));
    return SC_OK;
}

sc_status megatron_options(megatron *m, const megatron_word *w, uint32_t n)
{
    uint32_t i = 0;
    while (i < n) {
        uint32_t k = i + 1;
        if (!is_option(&w[i])) {
            SC_TRY(stray(m, &w[i++]));
            continue;
        }
        while (k < n && !is_option(&w[k])) k++;
        SC_TRY(option(m, &w[i], k - i - 1));
        i = k;
    }
    return SC_OK;
}

/* ---- tables -------------------------------------------------------------------------- */

/* Flags that tables of arguments show with the opposite meaning. */
static const struct {
    const char *name;
    megatron_id id;
} negated[] = {{"add-bias-linear", M_NO_BIAS},
               {"add-position-embedding", M_NO_POSITION}};

static bool is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

/* Finds name and value in "  num_layers ........... 32". */
static bool table_row(const char *line, size_t n, size_t place[4])
{
    size_t i = 0, dots = 0;
    while (i < n && line[i] == ' ') i++;
    place[0] = i;
    while (i < n && line[i] != ' ' && line[i] != '.') i++;
    place[1] = i;
    while (i < n && line[i] == ' ') i++;
    for (; i < n && line[i] == '.'; i++) dots++;
    while (i < n && line[i] == ' ') i++;
    place[2] = i;
    while (n > i && (line[n - 1] == ' ' || line[n - 1] == '\r')) n--;
    place[3] = n;
    return place[1] > place[0] && dots >= 3 && n > i;
}

bool megatron_is_table(const char *text)
{
    const char *head = strstr(text, "- arguments -");
    const char *row = head ? strstr(head, " ....") : NULL;
    return row != NULL;
}

static void table_value(megatron *m, const char *line, const size_t place[4])
{
    char name[128] = "--", value[128];
    size_t n = place[1] - place[0], k = place[3] - place[2];
    if (n + 3 > sizeof name || k >= sizeof value) return;
    memcpy(name + 2, line + place[0], n);
    name[n + 2] = '\0';
    memcpy(value, line + place[2], k);
    value[k] = '\0';
    char plain[128];
    option_name(name, plain, sizeof plain);
    bool off = is_word(value, k, "False"), on = is_word(value, k, "True");
    int id = find(plain);
    for (size_t i = 0; i < SC_COUNT(negated); i++)
        if (strcmp(plain, negated[i].name) == 0 && off) id = (int)negated[i].id;
    bool flag = id >= 0 && megatron_rows[id].kind == M_FLAG;
    bool said_off = off && strncmp(plain, "add-", 4) != 0;
    if (id < 0 || said_off || is_word(value, k, "None")) return;
    import_value v = {
        .pos = position(m, (uint32_t)((size_t)(line - m->text) + place[0])),
        .name = sc_strdup(m->to->a, plain)};
    megatron_word w = {sc_strdup(m->to->a, value),
                       (uint32_t)((size_t)(line - m->text) + place[2]), false};
    if (!v.name || !w.text) {
        m->to->status = sc_error_nomem(m->to->err);
        return;
    }
    if (flag && !on && !off)
        import_error(m->to, SC_C_TYPE, position(m, w.at), "True or False",
                     "%s is a yes/no option, not '%.60s'", plain, value);
    set(m, id, v, &w, flag ? 0 : 1);
}

sc_status megatron_table(megatron *m)
{
    const char *line = strstr(m->text, "- arguments -");
    while (line) {
        line = strchr(line, '\n');
        if (!line) break;
        line++;
        size_t n = strcspn(line, "\n"), place[4];
        if (table_row(line, n, place)) table_value(m, line, place);
        if (n > 20 && strstr(line, "end of arguments") &&
            strstr(line, "end of arguments") < line + n)
            break;
    }
    return SC_OK;
}
