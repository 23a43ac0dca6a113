/* SPDX-License-Identifier: Apache-2.0 */
/* emit_megatron.c - a job as a launch script of Megatron-LM, and as YAML of
 * NeMo 2, whose keys are the same options. */
#include "import/emit.h"

#include <stdio.h>
#include <string.h>

static uint32_t nodes_of(const emitter *e)
{
    const sc_hw *hw = e->run->hw;
    return hw->host_size > 0 ? hw->n_devices / hw->host_size : 1;
}

/* ---- Megatron-LM ------------------------------------------------------------------- */

/* Options that the written ones need, and that change no step. */
static void companions(const emitter *e, sc_text *t)
{
    bool sharded = e->job->zero >= 1;
    if (sharded && e->run->sw->param_overlap && e->job->grad_overlap == 1)
        sc_text_add(t, " \\\n    --overlap-param-gather");
    if (e->value[M_MFSDP])
        sc_text_add(t, " \\\n    --ckpt-format fsdp_dtensor"
                       " \\\n    --init-model-with-meta-device");
    if (e->value[M_OPT_OFFLOAD])
        sc_text_add(t, " \\\n    --use-precision-aware-optimizer");
    if (e->run->model->t.experts > 0)
        sc_text_add(t, " \\\n    --moe-grouped-gemm"
                       " \\\n    --moe-token-dispatcher-type alltoall");
}

sc_status emit_megatron(emitter *e)
{
    sc_text t;
    sc_text_init(&t);
    SC_TRY(emit_options(e));
    sc_text_add(&t, "#!/bin/bash\n");
    emit_comment(e, &t);
    sc_text_add(&t,
                "# Append data, checkpoints, learning rates.\n"
                "torchrun --nnodes %u --nproc-per-node %u pretrain_gpt.py",
                nodes_of(e), e->run->hw->n_devices / nodes_of(e));
    for (int i = 0; i < (int)M_N; i++) {
        const char *v = e->value[i];
        if (!v) continue;
        bool quoted = v[strcspn(v, "([*")] != '\0';
        sc_text_add(&t, " \\\n    --%s%s%s%s%s", megatron_rows[i].name,
                    *v ? " " : "", quoted ? "'" : "", v, quoted ? "'" : "");
    }
    companions(e, &t);
    sc_text_add(&t, "\n");
    return emit_file(e, "megatron.sh", &t);
}

/* ---- NeMo 2 ------------------------------------------------------------------------ */

typedef enum section {
    IN_STRATEGY, /* trainer.strategy */
    IN_DDP,
    IN_PLUGINS,
    IN_DATA,
    IN_MODEL,
    NOWHERE /* another key implies it, or NeMo lacks it */
} section;

/* Options that are not keys of model.config by their own name. */
static const struct {
    megatron_id id;
    section in;
    const char *key, *value; /* NULL: those of the option */
} places[] = {
    {M_TP, IN_STRATEGY, NULL, NULL},
    {M_PP, IN_STRATEGY, NULL, NULL},
    {M_VPP, IN_STRATEGY, "virtual_pipeline_model_parallel_size", NULL},
    {M_CP, IN_STRATEGY, NULL, NULL},
    {M_EP, IN_STRATEGY, NULL, NULL},
    {M_ETP, IN_STRATEGY, NULL, NULL},
    {M_SP, IN_STRATEGY, NULL, NULL},
    {M_DIST_OPT, IN_DDP, NULL, NULL},
    {M_DIST_OPT_N, IN_DDP, NULL, NULL},
    {M_OVERLAP, IN_DDP, NULL, NULL},
    {M_MFSDP, IN_DDP, NULL, NULL},
    {M_SHARDING, IN_DDP, NULL, NULL},
    {M_BF16, IN_PLUGINS, "precision", "bf16-mixed"},
    {M_FP16, IN_PLUGINS, "precision", "16-mixed"},
    {M_FP8, IN_PLUGINS, "fp8", NULL},
    {M_FP8_RECIPE, IN_PLUGINS, NULL, NULL},
    {M_WIDE_ENDS, IN_PLUGINS, NULL, NULL},
    {M_WIDE_START, IN_PLUGINS, NULL, NULL},
    {M_WIDE_END, IN_PLUGINS, NULL, NULL},
    {M_GRAD_FP32, IN_PLUGINS, "grad_reduce_in_fp32", "true"},
    {M_GRAD_BF16, IN_PLUGINS, "grad_reduce_in_fp32", "false"},
    {M_SEQ, IN_DATA, NULL, NULL},
    {M_MBS, IN_DATA, NULL, NULL},
    {M_GBS, IN_DATA, NULL, NULL},
    {M_GROUPS, IN_MODEL, "num_query_groups", NULL},
    {M_EXPERTS, IN_MODEL, "num_moe_experts", NULL},
    {M_NO_BIAS, IN_MODEL, "add_bias_linear", "false"},
    {M_UNTIE, IN_MODEL, "share_embeddings_and_output_weights", "false"},
    {M_SWIGLU, IN_MODEL, "gated_linear_unit", "true"},
    {M_GEGLU, IN_MODEL, "gated_linear_unit", "true"},
    {M_GQA, NOWHERE, NULL, NULL},
    {M_SQ_RELU, NOWHERE, NULL, NULL},
    {M_FP4, NOWHERE, NULL, NULL},
    {M_OPT_OFFLOAD, NOWHERE, NULL, NULL},
};

/* "([0]*3+[1]*58)" or "[1,0]*12" as a list, which YAML needs. */
static void put_list(const emitter *e, int id, sc_text *t)
{
    const sc_transformer *m = &e->run->model->t;
    for (int64_t i = 0; i < m->layers; i++) {
        bool one = id == (int)M_MOE_FREQ ? i >= m->first_dense
                                         : i % m->window_every == 0;
        sc_text_add(t, "%s%d", i ? ", " : "[", one);
    }
    sc_text_add(t, "]\n");
}

static void put_key(const emitter *e, int id, int indent, const char *key,
                    const char *value, sc_text *t)
{
    char name[64];
    const char *v = value ? value : e->value[id];
    snprintf(name, sizeof name, "%s", megatron_rows[id].name);
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    sc_text_add(t, "%*s%s: ", indent, "", key ? key : name);
    if ((id == (int)M_MOE_FREQ || id == (int)M_WINDOW_FREQ) && strchr(v, '['))
        put_list(e, id, t);
    else if (id == (int)M_WINDOW)
        sc_text_add(t, "[%s]\n", v);
    else
        sc_text_add(t, "%s\n", *v ? v : "true");
}

static void put_section(const emitter *e, section in, int indent, sc_text *t)
{
    for (int id = 0; id < (int)M_N; id++) {
        size_t k = 0;
        if (!e->value[id]) continue;
        while (k < SC_COUNT(places) && (int)places[k].id != id) k++;
        bool listed = k < SC_COUNT(places);
        if ((listed ? places[k].in : IN_MODEL) != in) continue;
        put_key(e, id, indent, listed ? places[k].key : NULL,
                listed ? places[k].value : NULL, t);
    }
}

static void activation(const emitter *e, sc_text *t)
{
    const char *f = e->value[M_SWIGLU]    ? "torch.nn.functional.silu"
                    : e->value[M_GEGLU]   ? "torch.nn.functional.gelu"
                    : e->value[M_SQ_RELU] ? "megatron.core.activations."
                                            "squared_relu"
                                          : NULL;
    if (f)
        sc_text_add(t, "    activation_func: {_target_: %s, _call_: false}\n",
                    f);
}

sc_status emit_nemo(emitter *e)
{
    sc_text t;
    sc_text_init(&t);
    SC_TRY(emit_options(e));
    emit_comment(e, &t);
    sc_text_add(&t,
                "trainer:\n  num_nodes: %u\n  devices: %u\n  strategy:\n"
                "    _target_: nemo.lightning.MegatronStrategy\n",
                nodes_of(e), e->run->hw->n_devices / nodes_of(e));
    put_section(e, IN_STRATEGY, 4, &t);
    sc_text_add(&t, "    ddp:\n      _target_: megatron.core.distributed."
                    "DistributedDataParallelConfig\n");
    put_section(e, IN_DDP, 6, &t);
    sc_text_add(&t, "  plugins:\n"
                    "    _target_: nemo.lightning.MegatronMixedPrecision\n");
    put_section(e, IN_PLUGINS, 4, &t);
    if (!e->value[M_BF16] && !e->value[M_FP16])
        sc_text_add(&t, "    precision: '32'\n");
    sc_text_add(&t, "data:\n");
    put_section(e, IN_DATA, 2, &t);
    size_t before = t.len;
    sc_text_add(&t, "model:\n  config:\n");
    size_t empty = t.len;
    put_section(e, IN_MODEL, 4, &t);
    activation(e, &t);
    if (t.len == empty) t.buf[t.len = before] = '\0';
    return emit_file(e, "nemo.yml", &t);
}
