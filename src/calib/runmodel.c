/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runmodel.c - the model of a row: the published one of its name with the sizes
 * that the row states, else one with the details on which all published models
 * of its first word agree, else one of its class.
 */
#include "calib/runs.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* The number of a cell; 0 if the cell is empty. */
static int64_t whole(const calib_cells *c, calib_column col)
{
    return isnan(c->number[col]) ? 0 : (int64_t)c->number[col];
}

/* ---- names ----------------------------------------------------------------- */

void calib_catalogue_name(const char *name, char *out, size_t size)
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

static sc_status find_published(const calib_cells *c, const char *name,
                                sc_arena *a, const sc_model **out, sc_err *err)
{
    sc_err quiet;
    sc_err_init(&quiet);
    *out = NULL;
    sc_status s = sc_model_load(name, c->pos, a, out, &quiet);
    return s == SC_ENOMEM ? sc_error_nomem(err) : SC_OK;
}

/* Length of the first word: letters and the digits after them, "llama2". */
static size_t first_word(const char *name)
{
    size_t n = 0;
    while (isalpha((unsigned char)name[n])) n++;
    while (n > 0 && isdigit((unsigned char)name[n])) n++;
    return n;
}

/* Whether blocks of two models have the same operators. */
static bool agree(const sc_transformer *x, const sc_transformer *y)
{
    return x->position == y->position && x->act == y->act &&
           x->norm == y->norm && x->norms == y->norms && x->bias == y->bias &&
           x->qkv_bias == y->qkv_bias && x->norm_bias == y->norm_bias &&
           x->embed_norm == y->embed_norm && x->parallel == y->parallel &&
           x->qk_norm == y->qk_norm && (x->experts > 0) == (y->experts > 0) &&
           x->encoder == y->encoder && !x->pattern == !y->pattern &&
           (x->kv_rank > 0) == (y->kv_rank > 0) && x->window == y->window;
}

/* Of the published models with the first word of `name`, the one whose width is
 * nearest, if all agree; else NULL. */
static sc_status find_relative(const calib_cells *c, const char *name,
                               sc_arena *a, const sc_model **out, sc_err *err)
{
    const char **names;
    uint32_t n;
    size_t len = first_word(name);
    double width = c->number[C_HIDDEN];
    *out = NULL;
    if (len == 0 || isnan(width)) return SC_OK;
    SC_TRY(sc_model_list(a, &names, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        const sc_model *m;
        if (first_word(names[i]) != len || strncmp(names[i], name, len) != 0)
            continue;
        SC_TRY(find_published(c, names[i], a, &m, err));
        if (!m || m->net) continue;
        if (*out && !agree(&m->t, &(*out)->t)) {
            *out = NULL;
            return SC_OK;
        }
        if (!*out || fabs(log((double)m->t.hidden / width)) <
                         fabs(log((double)(*out)->t.hidden / width)))
            *out = m;
    }
    return SC_OK;
}

/* ---- sizes ----------------------------------------------------------------- */

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

/* Replaces a size by that of the cell; true if the cell states another. */
static bool set_size(const calib_cells *c, calib_column col, int64_t *size)
{
    int64_t v = whole(c, col);
    if (v == 0 || v == *size) return false;
    *size = v;
    return true;
}

/* The sizes of the row over those of `t`; true if one differs. */
static bool state_sizes(const calib_cells *c, sc_transformer *t)
{
    int64_t seq = t->max_seq;
    bool wide = set_size(c, C_HIDDEN, &t->hidden);
    bool heads = set_size(c, C_HEADS, &t->heads);
    bool other = set_size(c, C_LAYERS, &t->layers);
    if (wide || heads) t->head_dim = 0;
    if (wide && whole(c, C_HEADS) == 0) t->heads = t->kv_heads = 0;
    if (heads && whole(c, C_KV_HEADS) == 0) t->kv_heads = 0;
    if (wide && whole(c, C_FFN) == 0) t->ffn = 0;
    other = set_size(c, C_KV_HEADS, &t->kv_heads) || other;
    other = set_size(c, C_FFN, &t->ffn) || other;
    other = set_size(c, C_VOCAB, &t->vocab) || other;
    if (whole(c, C_EXPERTS) > 1) {
        other = set_size(c, C_EXPERTS, &t->experts) || other;
        other = set_size(c, C_TOPK, &t->topk) || other;
        other = set_size(c, C_MOE_FFN, &t->moe_ffn) || other;
    }
    if (t->max_seq < whole(c, C_SEQ)) {
        t->max_seq = whole(c, C_SEQ);
        t->positions = 0;
    }
    return wide || heads || other || t->max_seq != seq;
}

static sc_status assume_sizes(const calib_cells *c, sc_arena *a, calib_run *run,
                              sc_transformer *t, sc_err *err)
{
    if (t->heads == 0) {
        t->heads = usual_heads(t->hidden, whole(c, C_TP));
        SC_TRY(calib_assume(run, a, err,
                            "heads %lld: the table does not state them; "
                            "hidden/128, or the power of two below it that "
                            "divides hidden and tp",
                            (long long)t->heads));
    }
    if (t->kv_heads > 0 && t->heads % t->kv_heads != 0) {
        SC_TRY(calib_warn(run, a, err,
                          "%lld heads can't share %lld kv_heads evenly: every "
                          "head has its own",
                          (long long)t->heads, (long long)t->kv_heads));
        t->kv_heads = t->heads;
    }
    if (t->position == SC_POS_LEARNED && t->max_seq == 0) {
        t->max_seq = 2048;
        SC_TRY(calib_assume(run, a, err,
                            "2048 positions: the table does not state the "
                            "length of sequences"));
    }
    if (t->vocab == 0) {
        t->vocab = 51200;
        SC_TRY(
            calib_assume(run, a, err,
                         "vocabulary 51200: the table does not state it; "
                         "the padded GPT-2 vocabulary of Megatron programs"));
    }
    if (t->experts > 1 && t->topk == 0) {
        t->topk = 2;
        SC_TRY(calib_assume(run, a, err,
                            "2 experts for each token: the table does not "
                            "state them"));
    }
    return SC_OK;
}

/* ---- classes ---------------------------------------------------------------- */

static bool class_has(const calib_cells *c, const char *word)
{
    return strstr(c->text[C_CLASS], word) != NULL;
}

/* What a class says of blocks that no published model describes. */
static sc_status state_class(const calib_cells *c, sc_arena *a, calib_run *run,
                             sc_transformer *t, sc_err *err)
{
    static const char *const absent[] = {"swa", "mla", "mamba", "hybrid"};
    bool encoder = class_has(c, "encoder"), gpt = class_has(c, "gpt");
    if (encoder || gpt) {
        t->position = SC_POS_LEARNED;
        t->act = SC_ACT_GELU;
        t->norm = SC_NORM_LAYER;
        t->tied = t->bias = t->norm_bias = t->dropout = true;
        t->encoder = encoder;
        return SC_OK;
    }
    t->position = SC_POS_ROTARY;
    t->act = SC_ACT_SWIGLU;
    t->norm = SC_NORM_RMS;
    if (!class_has(c, "dense") && !class_has(c, "moe"))
        SC_TRY(calib_warn(run, a, err,
                          "model class \"%.40s\" is not known: rotary "
                          "positions, SwiGLU and RMS norms as most decoders",
                          c->text[C_CLASS]));
    for (size_t i = 0; i < SC_COUNT(absent); i++)
        if (class_has(c, absent[i]))
            SC_TRY(calib_warn(run, a, err,
                              "model class \"%.40s\": attention over all "
                              "positions, because no published model is "
                              "called \"%.40s\"",
                              c->text[C_CLASS], run->model_name));
    return SC_OK;
}

/* ---- networks ---------------------------------------------------------------- */

/* Models that are not transformers are operator networks of the catalogue. */
static bool is_graph(const calib_cells *c)
{
    static const char *const classes[] = {"cnn", "recsys", "diffusion", "gnn"};
    for (size_t i = 0; i < SC_COUNT(classes); i++)
        if (strcmp(c->text[C_CLASS], classes[i]) == 0) return true;
    return false;
}

/* Whether a row without sizes has the name of such a network. */
static bool names_graph(const calib_cells *c, sc_arena *a, const calib_run *run)
{
    const sc_model *m;
    sc_err quiet;
    sc_err_init(&quiet);
    if (whole(c, C_LAYERS) > 0 || whole(c, C_HIDDEN) > 0) return false;
    return sc_model_load(run->model_name, c->pos, a, &m, &quiet) == SC_OK &&
           m->net;
}

static sc_status known_graph(const calib_cells *c, sc_arena *a, calib_run *run,
                             sc_err *err)
{
    sc_err why;
    sc_err_init(&why);
    sc_status s = sc_model_load(run->model_name, c->pos, a, &run->model, &why);
    return calib_row_reason(s, &why, a, &run->reason, err);
}

/* ---- details that the row states ----------------------------------------------- */

/* Whether the published number of parameters is that of a Llama model whose head
 * shares the table of embeddings, and not that of one with both. */
static bool tied_by_count(const calib_cells *c, const sc_transformer *t)
{
    double table = (double)t->vocab * (double)t->hidden;
    double h = (double)t->hidden, n = 1e9 * c->number[C_PARAMS];
    double kv = t->kv_heads ? (double)t->kv_heads / (double)t->heads : 1;
    double all = table + (double)t->layers *
                             (2 * (1 + kv) * h * h + 3 * h * (double)t->ffn);
    if (t->position != SC_POS_ROTARY || t->experts > 1) return t->tied;
    if (!(fabs(n / all - 1) < 0.01 && fabs(n / (all + table) - 1) > 0.02))
        return t->tied;
    return true;
}

/* Facts of columns model.KEY and of words; true if there are any. */
static sc_status state_details(const calib_cells *c, const calib_facts *f,
                               sc_arena *a, sc_transformer *t, bool *any,
                               sc_err *err)
{
    *any = false;
    if (f->lora > 0 && t->lora == 0) {
        t->lora = f->lora;
        *any = true;
    }
    bool tied = f->tied ? f->tied == CALIB_TIED : tied_by_count(c, t);
    if (t->tied != tied) {
        t->tied = tied;
        *any = true;
    }
    for (uint32_t i = 0; i < c->n_extra; i++) {
        const calib_extra *x = &c->extra[i];
        if (!x->of_model || x->text[0] == '\0') continue;
        SC_TRY(sc_schema_set(x->key, x->text, x->pos, t, a, err));
        *any = true;
    }
    return SC_OK;
}

/* ---- the model ------------------------------------------------------------------ */

/* The sizes of the nearest published model, with as many layers as make the
 * number of parameters that the row or the name states. */
static sc_status borrow_sizes(const calib_cells *c, const char *name,
                              sc_arena *a, calib_run *run, sc_transformer *t,
                              sc_err *err)
{
    const sc_model *near;
    double params = c->number[C_PARAMS];
    if (!(params > 0)) params = calib_name_params(name);
    SC_TRY(calib_nearest_model(name, params, whole(c, C_EXPERTS) > 1, a, &near,
                               err));
    if (!near) return SC_OK;
    double ratio = params * 1e9 / (double)near->params;
    if (!(fabs(log(ratio)) < log(3)) && params > 0) return SC_OK;
    *t = near->t;
    run->relaxed++;
    int64_t step = whole(c, C_PP) > 0 ? whole(c, C_PP) : 1;
    if (!t->pattern && fabs(ratio - 1) > 0.1)
        t->layers =
            (int64_t)fmax(1, round(ratio * (double)t->layers / (double)step)) *
            step;
    return calib_warn(run, a, err,
                      "layers or hidden are not stated, and no published model "
                      "is called \"%.60s\": those of %s, with %lld layers",
                      run->model_name, near->name, (long long)t->layers);
}

static sc_status start(const calib_cells *c, sc_arena *a, calib_run *run,
                       const sc_model **of, sc_transformer *t, sc_err *err)
{
    char name[64] = "";
    bool dense = whole(c, C_EXPERTS) <= 1;
    calib_catalogue_name(run->model_name, name, sizeof name);
    SC_TRY(find_published(c, name, a, of, err));
    if (*of && !(*of)->net) {
        *t = (*of)->t;
        return SC_OK;
    }
    SC_TRY(find_relative(c, name, a, of, err));
    if (*of && (*of)->t.pattern == NULL && dense == ((*of)->t.experts <= 1)) {
        *t = (*of)->t;
        SC_TRY(calib_assume(run, a, err, "blocks as those of %s", (*of)->name));
        *of = NULL;
        return SC_OK;
    }
    *of = NULL;
    if (whole(c, C_LAYERS) > 0 && whole(c, C_HIDDEN) > 0)
        return state_class(c, a, run, t, err);
    SC_TRY(borrow_sizes(c, name, a, run, t, err));
    return t->layers > 0 ? SC_OK : state_class(c, a, run, t, err);
}

/* Megatron's programs train a GPT with dropout (--hidden-dropout 0.1), whatever
 * configuration was published with the weights. */
static bool drops_out(const calib_cells *c)
{
    const char *s = c->text[C_SOFTWARE];
    bool megatron = false;
    for (; *s && !megatron; s++) megatron = strncasecmp(s, "megatron", 8) == 0;
    return megatron && class_has(c, "gpt");
}

/* A pattern of blocks is that of another number of layers if the row states
 * one: its letters are repeated or left out. */
static sc_status fit_pattern(sc_arena *a, calib_run *run, sc_transformer *t,
                             sc_err *err)
{
    size_t n = t->pattern ? strlen(t->pattern) : 0;
    if (n == 0 || (int64_t)n == t->layers) return SC_OK;
    char *own = SC_NEW_N(a, char, (size_t)t->layers + 1);
    if (!own) return sc_error_nomem(err);
    for (int64_t i = 0; i < t->layers; i++) own[i] = t->pattern[(size_t)i % n];
    t->pattern = own;
    return calib_warn(run, a, err,
                      "the blocks of %zu layers are repeated over %lld", n,
                      (long long)t->layers);
}

sc_status calib_run_model(const calib_cells *c, const calib_facts *f,
                          sc_arena *a, calib_run *run, sc_err *err)
{
    sc_transformer t = {0};
    const sc_model *of = NULL;
    bool details;
    if (is_graph(c) || names_graph(c, a, run))
        return known_graph(c, a, run, err);
    SC_TRY(start(c, a, run, &of, &t, err));
    bool other = state_sizes(c, &t);
    if (drops_out(c) && !t.dropout) other = t.dropout = true;
    SC_TRY(state_details(c, f, a, &t, &details, err));
    if (t.layers == 0 || t.hidden == 0) {
        run->reason = "layers or hidden are not stated, and no published "
                      "model has this name";
        return SC_OK;
    }
    SC_TRY(assume_sizes(c, a, run, &t, err));
    SC_TRY(fit_pattern(a, run, &t, err));
    if (of && !other && !details) {
        run->model = of;
        return SC_OK;
    }
    t.name = run->model_name;
    sc_err why;
    sc_err_init(&why);
    sc_status s = sc_model_from_transformer(&t, c->pos, a, &run->model, &why);
    return calib_row_reason(s, &why, a, &run->reason, err);
}
