/* SPDX-License-Identifier: Apache-2.0 */
/* emit_torchtitan.c - a job as a configuration of torchtitan (TOML). */
#include "import/emit.h"
#include "plan/plan_strategy.h"

#include <string.h>

/* torchtitan's name and flavor of models of the catalogue. */
static const struct {
    const char *catalogue, *name, *flavor;
} models[] = {
    {"llama3-8b", "llama3", "8B"},
    {"llama3-70b", "llama3", "70B"},
    {"llama3.1-405b", "llama3", "405B"},
    {"llama4-scout", "llama4", "17bx16e"},
    {"llama4-maverick", "llama4", "17bx128e"},
    {"deepseek-v2-lite", "deepseek_v3", "16B"},
    {"deepseek-v3", "deepseek_v3", "671B"},
};

static void model(emitter *e, sc_text *t)
{
    const char *converter = NULL;
    int p = e->job->precision;
    if (p == SC_RECIPE_FP8 || p == SC_RECIPE_FP8_ROW)
        converter = "quantize.linear.float8";
    if (p == SC_RECIPE_MXFP8) converter = "quantize.linear.mx";
    size_t i = 0;
    while (i < SC_COUNT(models) &&
           strcmp(models[i].catalogue, e->run->model->name) != 0)
        i++;
    e->with_model = e->with_model && i < SC_COUNT(models);
    if (!e->with_model && !converter) return;
    sc_text_add(t, "\n[model]\n");
    if (e->with_model)
        sc_text_add(t, "name = \"%s\"\nflavor = \"%s\"\n", models[i].name,
                    models[i].flavor);
    if (converter) sc_text_add(t, "converters = [\"%s\"]\n", converter);
}

/* FSDP moves weights and optimizer states together. */
static bool cpu_offload(const sc_job *j)
{
    return j->zero == 3 && j->pp == 1 && j->offload_weights == 1 &&
           j->offload_to <= SC_OFFLOAD_CPU && j->optimizer_tier == SC_TIER_CPU;
}

/* Without a pipeline, local_batch_size is a micro-batch; with one, it is all
 * that passes through the pipeline in a step. */
static void training(const emitter *e, sc_text *t)
{
    const sc_job *j = e->job;
    const char *type = j->precision == SC_RECIPE_FP32   ? "float32"
                       : j->precision == SC_RECIPE_FP16 ? "float16"
                                                        : "bfloat16";
    int64_t local = j->pp > 1 ? j->gbs / j->dp : j->mbs;
    sc_text_add(t,
                "\n[training]\nlocal_batch_size = %lld\n"
                "global_batch_size = %lld\nseq_len = %lld\n"
                "mixed_precision_param = \"%s\"\n",
                (long long)local, (long long)j->gbs, (long long)j->seq, type);
    if (cpu_offload(j)) sc_text_add(t, "enable_cpu_offload = true\n");
}

static const char *schedule(const sc_job *j)
{
    switch (j->schedule) {
    case SC_SCH_1F1B: return "1F1B";
    case SC_SCH_GPIPE: return "GPipe";
    case SC_SCH_INTERLEAVED: return "Interleaved1F1B";
    case SC_SCH_ZB_V: return "ZBVZeroBubble";
    default: return NULL;
    }
}

static void parallelism(const emitter *e, sc_text *t)
{
    const sc_job *j = e->job;
    bool sharded = j->zero >= 2;
    int64_t copies = !sharded                         ? j->dp
                     : j->hsdp > 0 && j->hsdp < j->dp ? j->dp / j->hsdp
                                                      : 1;
    sc_text_add(t,
                "\n[parallelism]\ndata_parallel_replicate_degree = %lld\n"
                "data_parallel_shard_degree = %lld\n"
                "tensor_parallel_degree = %lld\n",
                (long long)copies, (long long)(j->dp / copies),
                (long long)j->tp);
    if (j->cp > 1)
        sc_text_add(t,
                    "context_parallel_degree = %lld\n"
                    "context_parallel_rotate_method = \"%s\"\n",
                    (long long)j->cp,
                    j->cp_comm == SC_CP_RING ? "alltoall" : "allgather");
    if (j->ep > 1)
        sc_text_add(t, "expert_parallel_degree = %lld\n", (long long)j->ep);
    if (j->pp < 2) return;
    sc_text_add(t, "pipeline_parallel_degree = %lld\n", (long long)j->pp);
    if (schedule(j))
        sc_text_add(t, "pipeline_parallel_schedule = \"%s\"\n", schedule(j));
    sc_text_add(t, "pipeline_parallel_microbatch_size = %lld\n",
                (long long)j->mbs);
}

static void others(const emitter *e, sc_text *t)
{
    const sc_job *j = e->job;
    const char *mode = j->recompute == SC_RC_FULL  ? "full"
                       : j->recompute == SC_RC_OPS ? "selective"
                                                   : "none";
    sc_text_add(t, "\n[activation_checkpoint]\nmode = \"%s\"\n", mode);
    if (j->recompute == SC_RC_OPS)
        sc_text_add(t, "selective_ac_option = \"op\"\n");
    sc_text_add(t, "\n[compile]\nenable = %s\n",
                strstr(e->run->sw->name, "eager") ? "false" : "true");
    if (j->precision == SC_RECIPE_FP8_ROW || j->precision == SC_RECIPE_FP8)
        sc_text_add(t, "\n[quantize.linear.float8]\nrecipe_name = \"%s\"\n",
                    j->precision == SC_RECIPE_FP8 ? "tensorwise" : "rowwise");
    if (j->precision == SC_RECIPE_MXFP8)
        sc_text_add(t, "\n[quantize.linear.mx]\n"
                       "recipe_name = \"mxfp8_cublas\"\n");
}

sc_status emit_torchtitan(emitter *e)
{
    sc_text t;
    sc_text_init(&t);
    emit_comment(e, &t);
    model(e, &t);
    training(e, &t);
    parallelism(e, &t);
    others(e, &t);
    return emit_file(e, "torchtitan.toml", &t);
}
