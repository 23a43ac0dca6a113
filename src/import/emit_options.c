/* SPDX-License-Identifier: Apache-2.0 */
/* emit_options.c - a job as options of Megatron-LM. */
#include "import/emit.h"
#include "plan/plan_strategy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

sc_status emit_number(emitter *e, megatron_id id, int64_t v)
{
    e->value[id] = sc_sprintf(e->a, "%lld", (long long)v);
    return e->value[id] ? SC_OK : sc_error_nomem(e->err);
}

void emit_flag(emitter *e, megatron_id id, bool on)
{
    if (on) e->value[id] = "";
}

double emit_grad_bytes(const sc_job *job, const sc_run *run)
{
    return job->grad_bytes > 0 ? job->grad_bytes : run->sw->grad_bytes;
}

/* A degree is written if it divides anything. */
static sc_status degree(emitter *e, megatron_id id, int64_t n)
{
    return n > 1 ? emit_number(e, id, n) : SC_OK;
}

static sc_status parallel(emitter *e)
{
    const sc_job *j = e->job;
    SC_TRY(emit_number(e, M_TP, j->tp));
    SC_TRY(emit_number(e, M_PP, j->pp));
    SC_TRY(degree(e, M_VPP, j->vpp));
    SC_TRY(degree(e, M_CP, j->cp));
    SC_TRY(degree(e, M_EP, j->ep));
    emit_flag(e, M_SP, j->sp == 1 && j->tp > 1);
    emit_flag(e, M_TP_OVERLAP, j->tp_overlap == 1);
    emit_flag(e, M_EP_OVERLAP, j->ep_overlap == 1);
    if (j->tp > 1 && j->etp >= 0)
        SC_TRY(emit_number(e, M_ETP, j->etp == 0 ? j->tp : j->etp));
    if (j->cp > 1 && j->cp_comm >= 0) {
        static const char *const types[] = {[SC_CP_RING] = "p2p",
                                            [SC_CP_ALLGATHER] = "all_gather",
                                            [SC_CP_ULYSSES] = "a2a"};
        e->value[M_CP_COMM] = types[j->cp_comm];
    }
    return SC_OK;
}

/* ZeRO-2 and 3 are strategies of Megatron's FSDP. */
static sc_status sharding(emitter *e)
{
    static const char *const names[] = {"", "", "optim_grads",
                                        "optim_grads_params"};
    const sc_job *j = e->job;
    emit_flag(e, M_DIST_OPT, j->zero >= 1);
    emit_flag(e, M_MFSDP, j->zero >= 2);
    if (j->zero >= 2) e->value[M_SHARDING] = names[j->zero];
    emit_flag(e, M_OVERLAP, j->grad_overlap == 1);
    emit_flag(e, M_OPT_OFFLOAD, j->optimizer_tier == SC_TIER_CPU);
    if (j->hsdp > 0 && j->hsdp < j->dp)
        return emit_number(e, M_DIST_OPT_N, j->dp / j->hsdp);
    return SC_OK;
}

bool emit_ends(const char *patterns, int64_t layers, int64_t *first,
               int64_t *last)
{
    const char *s = patterns;
    *first = *last = 0;
    while (s && strncmp(s, "layers.", 7) == 0) {
        long long from = 0, to = 0;
        int used = 0;
        if (sscanf(s + 7, "%9lld-%9lld%n", &from, &to, &used) < 2) {
            if (sscanf(s + 7, "%9lld%n", &from, &used) < 1) return false;
            to = from;
        }
        s += 7 + used;
        if (from == 0 && *first == 0)
            *first = to + 1;
        else if (to == layers - 1 && *last == 0)
            *last = layers - from;
        else
            return false;
        if (*s == '\0') return true;
        s += *s == ',';
    }
    return false;
}

static sc_status keep_ends(emitter *e)
{
    int64_t first, last;
    const char *keep = e->job->keep_bf16;
    if (!keep || !emit_ends(keep, e->run->model->t.layers, &first, &last))
        return SC_OK;
    emit_flag(e, M_WIDE_ENDS, true);
    SC_TRY(emit_number(e, M_WIDE_START, first));
    return emit_number(e, M_WIDE_END, last);
}

static sc_status precision(emitter *e)
{
    bool current = e->run->sw->fp8_scaling == SC_FP8_CURRENT;

    static const struct {
        int recipe;
        const char *format, *name;
    } low[] = {{SC_RECIPE_FP8, "hybrid", NULL},
               {SC_RECIPE_FP8_BLOCK, "e4m3", "blockwise"},
               {SC_RECIPE_MXFP8, "e4m3", "mxfp8"}};

    int p = e->job->precision;
    for (size_t i = 0; i < SC_COUNT(low); i++) {
        if (low[i].recipe != p) continue;
        e->value[M_FP8] = low[i].format;
        e->value[M_FP8_RECIPE] = low[i].name ? low[i].name
                                 : current   ? "tensorwise"
                                             : "delayed";
    }
    if (p == SC_RECIPE_NVFP4) e->value[M_FP4] = "e2m1";
    emit_flag(e, M_FP16, p == SC_RECIPE_FP16);
    emit_flag(e, M_BF16,
              p == SC_RECIPE_BF16 || e->value[M_FP8] || e->value[M_FP4]);
    double bytes = emit_grad_bytes(e->job, e->run);
    emit_flag(e, M_GRAD_FP32, bytes == 4);
    emit_flag(e, M_GRAD_BF16, bytes == 2 && p != SC_RECIPE_FP16);
    return keep_ends(e);
}

static sc_status recompute(emitter *e)
{
    const sc_job *j = e->job;
    if (j->recompute == SC_RC_SELECTIVE) e->value[M_RC] = "selective";
    if (j->recompute != SC_RC_FULL) return SC_OK;
    e->value[M_RC] = "full";
    e->value[M_RC_METHOD] =
        sc_rc_method_names[j->rc_method < 0 ? SC_RCM_UNIFORM : j->rc_method];
    return emit_number(e, M_RC_LAYERS, j->rc_blocks > 0 ? j->rc_blocks : 1);
}

static sc_status batch(emitter *e)
{
    const sc_job *j = e->job;
    SC_TRY(emit_number(e, M_MBS, j->mbs));
    SC_TRY(emit_number(e, M_GBS, j->gbs));
    SC_TRY(emit_number(e, M_SEQ, j->seq));
    if (j->capacity <= 0) return SC_OK;
    char text[40];
    sc_double_print(j->capacity, text, sizeof text);
    e->value[M_CAPACITY] = sc_strdup(e->a, text);
    emit_flag(e, M_PAD_CAPACITY, true);
    return e->value[M_CAPACITY] ? SC_OK : sc_error_nomem(e->err);
}

sc_status emit_options(emitter *e)
{
    memset(e->value, 0, sizeof e->value);
    SC_TRY(parallel(e));
    SC_TRY(sharding(e));
    SC_TRY(precision(e));
    SC_TRY(recompute(e));
    SC_TRY(batch(e));
    return e->with_model ? emit_model_options(e) : SC_OK;
}

/* ---- model ------------------------------------------------------------------------ */

/* "[1,0]*12": the first of every two blocks has the window. */
static sc_status window_blocks(emitter *e, const sc_transformer *t)
{
    int64_t n = t->window_every;
    if (t->full_every > 1) return emit_number(e, M_WINDOW_FREQ, t->full_every);
    if (n < 2 || n > 8 || t->layers % n) return SC_OK;
    e->value[M_WINDOW_FREQ] =
        sc_sprintf(e->a, "[1%.*s]*%lld", (int)(2 * (n - 1)), ",0,0,0,0,0,0,0",
                   (long long)(t->layers / n));
    return e->value[M_WINDOW_FREQ] ? SC_OK : sc_error_nomem(e->err);
}

static sc_status attention(emitter *e, const sc_transformer *t)
{
    SC_TRY(emit_number(e, M_HEADS, t->heads));
    if (t->kv_rank > 0) {
        emit_flag(e, M_MLA, true);
        emit_flag(e, M_QK_NORM, true); /* norms of the latents */
        if (t->q_rank > 0) SC_TRY(emit_number(e, M_Q_RANK, t->q_rank));
        SC_TRY(emit_number(e, M_KV_RANK, t->kv_rank));
        SC_TRY(emit_number(e, M_QK_NOPE, t->qk_nope));
        SC_TRY(emit_number(e, M_QK_ROPE, t->qk_rope));
        SC_TRY(emit_number(e, M_V_DIM, t->v_dim));
    } else if (t->head_dim > 0) {
        SC_TRY(emit_number(e, M_KV_CHANNELS, t->head_dim));
    }
    if (t->kv_heads != t->heads) {
        emit_flag(e, M_GQA, true);
        SC_TRY(emit_number(e, M_GROUPS, t->kv_heads));
    }
    emit_flag(e, M_QK_NORM, t->qk_norm);
    emit_flag(e, M_QKV_BIAS, t->qkv_bias);
    if (t->sinks) e->value[M_SOFTMAX] = "learnable";
    if (t->window <= 0) return SC_OK;
    e->value[M_WINDOW] = sc_sprintf(e->a, "%lld,0", (long long)t->window - 1);
    if (!e->value[M_WINDOW]) return sc_error_nomem(e->err);
    return window_blocks(e, t);
}

static sc_status position(emitter *e, const sc_transformer *t)
{
    static const char *const names[] = {[SC_POS_LEARNED] = "learned_absolute",
                                        [SC_POS_ROTARY] = "rope",
                                        [SC_POS_ALIBI] = "alibi",
                                        [SC_POS_NONE] = "none"};
    if (t->position < (int)SC_COUNT(names))
        e->value[M_POSITION] = names[t->position];
    int64_t most = t->position == SC_POS_LEARNED || t->max_seq > e->job->seq
                       ? t->max_seq
                       : e->job->seq;
    return emit_number(e, M_MAX_POS, most);
}

/* The largest power of two up to 128 by which Megatron-LM may pad without
 * adding rows. If tp does not divide the rows, both pad to 128 for each rank. */
static sc_status vocabulary(emitter *e, const sc_transformer *t)
{
    int64_t step = 128;
    bool divides = t->vocab % e->job->tp == 0;
    while (divides && step > 1 && t->vocab % (step * e->job->tp)) step /= 2;
    SC_TRY(emit_number(e, M_VOCAB, t->vocab));
    return emit_number(e, M_VOCAB_STEP, step);
}

static sc_status experts(emitter *e, const sc_transformer *t)
{
    if (t->experts <= 0) return SC_OK;
    SC_TRY(emit_number(e, M_EXPERTS, t->experts));
    SC_TRY(emit_number(e, M_TOPK, t->topk));
    SC_TRY(emit_number(e, M_MOE_FFN, t->moe_ffn));
    if (t->shared_ffn > 0) SC_TRY(emit_number(e, M_SHARED_FFN, t->shared_ffn));
    emit_flag(e, M_ROUTER_BIAS, t->router_bias);
    if (t->route_groups > 1) {
        SC_TRY(emit_number(e, M_ROUTE_GROUPS, t->route_groups));
        SC_TRY(emit_number(e, M_ROUTE_TOPK, t->route_topk));
    }
    if (t->moe_every > 1) return emit_number(e, M_MOE_FREQ, t->moe_every);
    if (t->first_dense <= 0) return SC_OK;
    e->value[M_MOE_FREQ] =
        sc_sprintf(e->a, "([0]*%lld+[1]*%lld)", (long long)t->first_dense,
                   (long long)(t->layers - t->first_dense));
    return e->value[M_MOE_FREQ] ? SC_OK : sc_error_nomem(e->err);
}

sc_status emit_model_options(emitter *e)
{
    const sc_transformer *t = &e->run->model->t;
    SC_TRY(emit_number(e, M_LAYERS, t->layers));
    SC_TRY(emit_number(e, M_HIDDEN, t->hidden));
    SC_TRY(emit_number(e, M_FFN, t->ffn));
    SC_TRY(attention(e, t));
    SC_TRY(position(e, t));
    SC_TRY(vocabulary(e, t));
    SC_TRY(experts(e, t));
    if (t->mtp > 0) SC_TRY(emit_number(e, M_MTP, t->mtp));
    emit_flag(e, M_SWIGLU, t->act == SC_ACT_SWIGLU);
    emit_flag(e, M_GEGLU, t->act == SC_ACT_GEGLU);
    emit_flag(e, M_SQ_RELU, t->act == SC_ACT_RELU2);
    e->value[M_NORM] = t->norm == SC_NORM_RMS ? "RMSNorm" : "LayerNorm";
    emit_flag(e, M_UNTIE, !t->tied);
    emit_flag(e, M_NO_BIAS, !t->bias);
    emit_flag(e, M_EMBED_NORM, t->embed_norm);
    e->value[M_HID_DROPOUT] = t->dropout ? "0.1" : "0";
    e->value[M_ATT_DROPOUT] = e->value[M_HID_DROPOUT];
    return SC_OK;
}
