/* SPDX-License-Identifier: Apache-2.0 */
/* emit_strategy.c - a job as a strategy file, and as a file for --config. */
#include "import/emit.h"
#include "plan/plan_schedule.h"
#include "plan/plan_strategy.h"

static void mesh(const sc_strategy *s, sc_text *t)
{
    sc_text_add(t, "mesh: {");
    for (uint32_t i = 0; i < s->n_axes; i++)
        sc_text_add(t, "%s%s: %u", i ? ", " : "", s->axis[i].name,
                    s->axis[i].size);
    sc_text_add(t, "} # outer to inner\n");
}

static void preset(const sc_strategy *s, sc_text *t)
{
    static const char *const products[] = {"none", "megatron", "megatron-sp"};
    sc_text_add(t, "preset:\n  zero: %lld\n  recompute: %s\n",
                (long long)s->zero, sc_recompute_names[s->recompute]);
    if (sc_strategy_degree(s, SC_AX_TP) > 1)
        sc_text_add(t, "  tensor_parallel: %s\n", products[s->tensor_parallel]);
    if (s->rc_method >= 0)
        sc_text_add(t, "  recompute_method: %s\n  recompute_num_layers: %lld\n",
                    sc_rc_method_names[s->rc_method], (long long)s->rc_blocks);
    if (sc_strategy_degree(s, SC_AX_CP) > 1)
        sc_text_add(t, "  context_parallel: %s\n",
                    sc_cp_comm_names[s->context_parallel]);
}

static void pipeline(const emitter *e, const sc_strategy *s, sc_text *t)
{
    if (sc_strategy_degree(s, SC_AX_PP) < 2 && s->schedule == SC_SCH_1F1B)
        return;
    sc_text_add(t, "pipeline:\n");
    if (e->job->schedule_file)
        sc_text_add(t, "  order: %s\n", e->job->schedule_file);
    else
        sc_text_add(t, "  schedule: %s\n", sc_schedule_names[s->schedule]);
    sc_text_add(t, "  virtual: %lld\n", (long long)s->virtual_stages);
}

static void others(const emitter *e, const sc_strategy *s, sc_text *t)
{
    const sc_job *j = e->job;
    sc_text_add(t, "overlap: {grad: %s}\n",
                j->grad_overlap == 1 ? "yes" : "no");
    if (s->offload_activations > 0 || s->offload_weights > 0 ||
        s->optimizer_tier > SC_TIER_DEVICE) {
        char saved[40], weights[40];
        sc_double_print(s->offload_activations, saved, sizeof saved);
        sc_double_print(s->offload_weights, weights, sizeof weights);
        sc_text_add(t, "offload: {activations: %s, ", saved);
        if (s->offload_weights > 0) sc_text_add(t, "weights: %s, ", weights);
        if (s->offload_to > 0)
            sc_text_add(t, "to: %s, ", sc_offload_to_names[s->offload_to]);
        sc_text_add(t, "optimizer: %s}\n", sc_tier_names[s->optimizer_tier]);
    }
    if (s->checkpoint_every > 0)
        sc_text_add(t, "checkpoint: {every: %lld, async: %s}\n",
                    (long long)s->checkpoint_every,
                    s->checkpoint_async ? "yes" : "no");
}

sc_status emit_strategy(emitter *e)
{
    sc_strategy s;
    sc_text t;
    SC_TRY(sc_strategy_of_run(e->run, e->a, &s, e->err));
    /* a stage of ZeRO needs an axis, even of one rank */
    if (s.zero > 0 && sc_strategy_axis(&s, SC_AX_DP) < 0)
        sc_strategy_add_axis(&s, SC_AX_DP, 1);
    sc_text_init(&t);
    e->with_model = false;
    emit_comment(e, &t);
    mesh(&s, &t);
    sc_text_add(&t, "batch: {global: %lld, micro: %lld, seq: %lld}\n",
                (long long)s.global, (long long)s.micro, (long long)s.seq);
    sc_text_add(&t, "precision: %s\n", sc_recipe_names[s.precision]);
    preset(&s, &t);
    pipeline(e, &s, &t);
    others(e, &s, &t);
    return emit_file(e, "strategy.yml", &t);
}

/* A model without a name, of another program's file, gets a file of its own. */
static sc_status model_file(emitter *e)
{
    sc_text t;
    sc_text_init(&t);
    sc_transformer_yaml(&e->run->model->t, &t);
    return emit_file(e, "model.yml", &t);
}

sc_status emit_job(emitter *e)
{
    sc_text t;
    bool named = e->job->model != NULL;
    const char *model = sc_sprintf(e->a, "%s/model.yml", e->dir);
    if (!model) return sc_error_nomem(e->err);
    sc_text_init(&t);
    emit_comment(e, &t);
    sc_job_yaml(e->job, NULL, named ? NULL : model, &t);
    SC_TRY(emit_file(e, "job.yml", &t));
    return named ? SC_OK : model_file(e);
}
