/* SPDX-License-Identifier: Apache-2.0 */
/* runjob.c - turns a row of a table of runs into a model and a job. */
#include "calib/runs.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* The number of a cell; 0 if the cell is empty. */
static int64_t whole(const calib_cells *c, calib_column col)
{
    return isnan(c->number[col]) ? 0 : (int64_t)c->number[col];
}

static bool starts(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

static bool has_word(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

static void assume(calib_run *run, const char *text)
{
    if (run->n_assumptions < CALIB_ASSUMPTIONS)
        run->assumptions[run->n_assumptions++] = text;
}

static sc_status not_modelled(const char *what, const char *text, sc_arena *a,
                              calib_run *run, sc_err *err)
{
    run->reason = sc_sprintf(a, "%s \"%.80s\" is not modelled", what, text);
    return run->reason ? SC_OK : sc_error_nomem(err);
}

/* ---- model ------------------------------------------------------------------ */

/* Chooses heads of 128 elements if possible. Otherwise it takes the largest
 * power of two of heads that are not smaller, because the Megatron programs
 * need heads that divide by hidden size and by tensor parallelism. */
static int64_t usual_heads(int64_t hidden, int64_t tp)
{
    if (tp == 0) tp = 1;
    if (hidden % 128 == 0 && hidden / 128 % tp == 0) return hidden / 128;
    int64_t heads = 1;
    while (heads * 2 <= hidden / 128) heads *= 2;
    while (heads > 1 && (hidden % heads != 0 || heads % tp != 0)) heads /= 2;
    return heads;
}

static sc_status fill_sizes(const calib_cells *c, sc_arena *a, calib_run *run,
                            sc_transformer *t, sc_err *err)
{
    t->layers = whole(c, C_LAYERS);
    t->hidden = whole(c, C_HIDDEN);
    t->heads = whole(c, C_HEADS);
    t->kv_heads = whole(c, C_KV_HEADS);
    t->ffn = whole(c, C_FFN);
    t->vocab = whole(c, C_VOCAB);
    t->max_seq = whole(c, C_SEQ);
    if (t->heads == 0) {
        t->heads = usual_heads(t->hidden, whole(c, C_TP));
        const char *text = sc_sprintf(
            a,
            "heads %lld: the table does not state them; hidden/128, or the "
            "power of two below it that divides hidden and tp",
            (long long)t->heads);
        if (!text) return sc_error_nomem(err);
        assume(run, text);
    }
    if (t->vocab == 0) {
        t->vocab = 51200;
        assume(run, "vocabulary 51200: the table does not state it; the "
                    "padded GPT-2 vocabulary of Megatron programs");
    }
    return SC_OK;
}

/* The classes of dense decoders that occur in the tables. */
static bool fill_kind(const calib_cells *c, sc_transformer *t)
{
    const char *class = c->text[C_CLASS], *name = c->text[C_MODEL];
    if (strcmp(class, "dense-gqa") == 0 ||
        strcmp(class, "dense-mha-swiglu") == 0) {
        t->position = SC_POS_ROTARY;
        t->act = SC_ACT_SWIGLU;
        t->norm = SC_NORM_RMS;
        return true;
    }
    if (strcmp(class, "encoder") == 0) {
        t->position = SC_POS_LEARNED;
        t->act = SC_ACT_GELU;
        t->norm = SC_NORM_LAYER;
        t->tied = t->bias = t->norm_bias = t->dropout = true;
        t->encoder = true;
        return true;
    }
    if (strcmp(class, "dense-gpt") != 0) return false;
    t->position = SC_POS_LEARNED;
    t->act = SC_ACT_GELU;
    t->norm = SC_NORM_LAYER;
    t->tied = t->bias = t->norm_bias = t->dropout = true;
    if (starts(name, "BLOOM") || t->vocab == 250880) {
        t->position = SC_POS_ALIBI;
        t->embed_norm = true;
    } else if (starts(name, "MPT")) {
        t->position = SC_POS_ALIBI;
        t->bias = t->norm_bias = t->dropout = false;
    }
    return true;
}

/* "Qwen3_30B_a3B" as the catalogue spells it: "qwen3-30b-a3b". */
static void catalogue_name(const char *name, char *out, size_t size)
{
    size_t n = 0;
    for (; *name && n + 2 < size; name++) {
        char c = *name;
        if (c == '_' || c == ' ') c = '-';
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        out[n++] = c;
    }
    out[n] = '\0';
}

/* Mixtures of experts have more sizes than the tables state (ranks of latent
 * attention, shared experts, windows). These are taken from the published
 * model. */
static sc_status known_model(const calib_cells *c, sc_arena *a, calib_run *run,
                             sc_err *err)
{
    char name[64];
    sc_err why;
    catalogue_name(run->model_name, name, sizeof name);
    sc_err_init(&why);
    sc_status s = sc_model_load(name, c->pos, a, &run->model, &why);
    SC_TRY(calib_row_reason(s, &why, a, &run->reason, err));
    if (run->reason) return SC_OK;
    const sc_transformer *t = &run->model->t;
    if (t->layers != whole(c, C_LAYERS) || t->hidden != whole(c, C_HIDDEN) ||
        t->experts != whole(c, C_EXPERTS))
        run->reason = "the row's sizes are not those of the published model";
    return SC_OK;
}

/* Models that are not transformers are operator networks of the catalogue. */
static bool is_graph(const calib_cells *c)
{
    static const char *const classes[] = {"cnn", "recsys", "diffusion"};
    for (size_t i = 0; i < SC_COUNT(classes); i++)
        if (strcmp(c->text[C_CLASS], classes[i]) == 0) return true;
    return false;
}

static sc_status known_graph(const calib_cells *c, sc_arena *a, calib_run *run,
                             sc_err *err)
{
    sc_err why;
    sc_err_init(&why);
    sc_status s = sc_model_load(run->model_name, c->pos, a, &run->model, &why);
    return calib_row_reason(s, &why, a, &run->reason, err);
}

static sc_status make_model(const calib_cells *c, sc_arena *a, calib_run *run,
                            sc_err *err)
{
    sc_transformer t = {.name = run->model_name};
    if (is_graph(c)) return known_graph(c, a, run, err);
    if (whole(c, C_LAYERS) == 0 || whole(c, C_HIDDEN) == 0 ||
        whole(c, C_SEQ) == 0) {
        run->reason = "layers, hidden or seq_len are not stated";
        return SC_OK;
    }
    if (whole(c, C_EXPERTS) > 1) return known_model(c, a, run, err);
    SC_TRY(fill_sizes(c, a, run, &t, err));
    if (!fill_kind(c, &t))
        return not_modelled("model class", c->text[C_CLASS], a, run, err);
    if (has_word(run->model_name, "LoRA") ||
        has_word(run->model_name, "lora")) {
        t.lora = 16;
        assume(run, "adapters of rank 16 beside attention's products");
    }
    sc_err why;
    sc_err_init(&why);
    sc_status s = sc_model_from_transformer(&t, c->pos, a, &run->model, &why);
    return calib_row_reason(s, &why, a, &run->reason, err);
}

/* ---- strategy ---------------------------------------------------------------- */

/* Reads the ZeRO stage of the `shard` cell; false if its words are unknown. */
static bool read_shard(const char *text, sc_job *job)
{
    static const struct {
        const char *word;
        int zero;
    } words[] = {{"ZeRO-1", 0x1}, {"ZeRO-2", 0x2},      {"SHARD_GRAD_OP", 0x2},
                 {"ZeRO-3", 0x3}, {"FULL_SHARD", 0x13}, {"FSDP", 0x13}};

    if (text[0] == '\0') return true;
    if (starts(text, "DDP") || starts(text, "none")) {
        job->zero = 0;
        return true;
    }
    for (size_t i = 0; i < SC_COUNT(words); i++) {
        if (!has_word(text, words[i].word)) continue;
        job->zero = words[i].zero & 0xf;
        job->fsdp = words[i].zero > 0xf;
        return true;
    }
    return false;
}

/* Index of `text` in `names`, ignoring case; SC_INFER if it is empty, -2 if it
 * is not in the list. */
static int find_name(const char *text, const char *const *names)
{
    if (text[0] == '\0') return SC_INFER;
    for (int i = 0; names[i]; i++)
        if (strcasecmp(text, names[i]) == 0) return i;
    return -2;
}

/* Recipes as the sources of the tables spell them. "FP8-MX" of Megatron-Bridge
 * on Hopper is block-scaled, because Hopper has no MX units. */
static int find_recipe(const char *text)
{
    static const struct {
        const char *word;
        sc_recipe recipe;
    } words[] = {{"FP8-CS", SC_RECIPE_FP8},
                 {"FP8-tensorwise", SC_RECIPE_FP8},
                 {"FP8-rowwise", SC_RECIPE_FP8_ROW},
                 {"FP8-MX", SC_RECIPE_MXFP8},
                 {"FP8-MX/block", SC_RECIPE_FP8_BLOCK}};

    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (strcasecmp(text, words[i].word) == 0) return (int)words[i].recipe;
    return find_name(text, sc_recipe_names);
}

/* Reads from the notes what a user switched on. */
static void read_notes(const calib_cells *c, sc_job *job, bool *eager)
{
    const char *notes = c->text[C_NOTES];
    *eager = starts(notes, "eager");
    if (has_word(notes, "AsyncTP") || has_word(notes, "async TP"))
        job->tp_overlap = 1;
    if (has_word(notes, "vanilla TP") || strcmp(notes, "2D") == 0)
        job->tp_overlap = 0;
}

static sc_status read_strategy(const calib_cells *c, sc_arena *a,
                               calib_run *run, sc_err *err)
{
    static const char *const no_yes[] = {"no", "yes", NULL};
    sc_job *job = &run->job;
    const char *const *text = c->text;
    job->precision = find_recipe(text[C_PRECISION]);
    if (job->precision < SC_INFER)
        return not_modelled("precision", text[C_PRECISION], a, run, err);
    job->recompute = strcmp(text[C_RECOMPUTE], "selective(op)") == 0
                         ? SC_RC_OPS
                         : find_name(text[C_RECOMPUTE], sc_recompute_names);
    if (job->recompute < SC_INFER)
        return not_modelled("recompute", text[C_RECOMPUTE], a, run, err);
    job->sp = find_name(text[C_SP], no_yes);
    if (job->sp < SC_INFER)
        return not_modelled("sequence parallelism", text[C_SP], a, run, err);
    if (!read_shard(text[C_SHARD], job))
        return not_modelled("sharding", text[C_SHARD], a, run, err);
    return SC_OK;
}

/* There can't be more replicas than samples, so the other ranks split the
 * sequence. */
static sc_status fewer_replicas(calib_run *run, int64_t gpus, sc_arena *a,
                                sc_err *err)
{
    sc_job *job = &run->job;
    int64_t ranks = gpus / (job->tp * job->pp);
    if (job->gbs <= 0 || job->dp <= job->gbs || ranks % job->gbs != 0)
        return SC_OK;
    const char *text =
        sc_sprintf(a, "cp %lld, dp %lld: %lld samples are less than dp %lld",
                   (long long)(ranks / job->gbs), (long long)job->gbs,
                   (long long)job->gbs, (long long)job->dp);
    if (!text) return sc_error_nomem(err);
    job->dp = job->gbs;
    job->cp = ranks / job->gbs;
    assume(run, text);
    return SC_OK;
}

/* Reads the degrees. dp follows from the number of devices, whatever the cell
 * contains. */
static sc_status read_degrees(const calib_cells *c, sc_arena *a, calib_run *run,
                              sc_err *err)
{
    sc_job *job = &run->job;
    job->tp = whole(c, C_TP);
    job->pp = whole(c, C_PP);
    job->vpp = whole(c, C_VPP);
    job->cp = whole(c, C_CP);
    job->ep = whole(c, C_EP);
    job->dp = whole(c, C_DP);
    job->gbs = whole(c, C_GBS);
    job->mbs = whole(c, C_MBS);
    job->seq = whole(c, C_SEQ);
    if (strcmp(c->text[C_CLASS], "encoder") == 0 &&
        starts(c->text[C_SOFTWARE], "mlperf")) {
        job->seq /= 2;
        assume(run, "half of the tokens of a sample: MLPerf BERT submissions "
                    "drop padding");
    }
    if (job->gbs == 0) run->reason = "the global batch is not stated";
    if (starts(c->text[C_NOTES], "WARN dp*mbs*ga")) {
        job->tp = job->pp = job->vpp = job->cp = job->dp = job->mbs = 0;
        job->sp = SC_INFER;
        assume(run, "degrees: those of the table contradict each other");
    }
    int64_t gpus = whole(c, C_GPUS), cp = job->cp ? job->cp : 1;
    if (job->dp == 0 || job->tp == 0 || job->pp == 0) return SC_OK;
    int64_t rest = job->tp * job->pp * cp; /* each at most 1e6 */
    if (gpus % rest == 0 && gpus / rest == job->dp)
        return fewer_replicas(run, gpus, a, err);
    if (gpus % rest != 0) return SC_OK;
    const char *text =
        sc_sprintf(a, "dp %lld = gpus/(tp pp cp): the table says %lld",
                   (long long)(gpus / rest), (long long)job->dp);
    if (!text) return sc_error_nomem(err);
    assume(run, text);
    job->dp = gpus / rest;
    return fewer_replicas(run, gpus, a, err);
}

/* ---- conditions --------------------------------------------------------------- */

/* Reads one condition of the list; false if it is unknown. */
static bool read_condition(const char *text, size_t len, sc_job *job,
                           bool *pure)
{
#define IS(word) (len == sizeof(word) - 1 && memcmp(text, word, len) == 0)
    if (IS("CUDA_LAUNCH_BLOCKING=1"))
        job->launch_blocking = true;
    else if (IS("before the PCIe/NUMA affinity fix"))
        job->numa_unbound = true;
    else if (IS("fp32 gradient accumulation"))
        job->grad_bytes = 4;
    else if (IS("mixed_precision=PURE"))
        *pure = true;
    else
        return IS("mixed_precision=DEFAULT");
#undef IS
    return true;
}

static sc_status read_conditions(const calib_cells *c, sc_arena *a,
                                 calib_run *run, bool *pure, sc_err *err)
{
    for (const char *p = c->text[C_CONDITIONS]; *p != '\0';) {
        size_t len = strcspn(p, ";");
        if (!read_condition(p, len, &run->job, pure))
            return not_modelled("condition", p, a, run, err);
        p += len;
        p += strspn(p, "; ");
    }
    return SC_OK;
}

sc_status calib_run_expand(const calib_cells *c, sc_arena *a, calib_run *run,
                           const char **software, sc_err *err)
{
    bool pure = false, eager = false;
    sc_job_init(&run->job);
    read_notes(c, &run->job, &eager);
    SC_TRY(make_model(c, a, run, err));
    if (run->reason) return SC_OK;
    SC_TRY(read_degrees(c, a, run, err));
    if (run->reason) return SC_OK;
    SC_TRY(read_strategy(c, a, run, err));
    if (run->reason) return SC_OK;
    SC_TRY(read_conditions(c, a, run, &pure, err));
    *software = c->text[C_SOFTWARE][0] ? c->text[C_SOFTWARE] : NULL;
    if ((pure || eager) && *software) {
        *software = sc_sprintf(a, "%s %s", *software, pure ? "pure" : "eager");
        if (!*software) return sc_error_nomem(err);
    }
    run->job.model = run->model_name;
    run->job.cluster = run->device;
    run->job.software = *software;
    return SC_OK;
}
