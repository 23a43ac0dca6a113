/* SPDX-License-Identifier: Apache-2.0 */
/* emit_deepspeed.c - a job as a configuration of DeepSpeed (JSON) and the
 * command that starts it, with arguments of HuggingFace's Trainer. */
#include "import/emit.h"
#include "plan/plan_strategy.h"

#define JSON_NAME   "ds_config.json"
#define SCRIPT_NAME "deepspeed.sh"

static void put_int(sc_json *j, const char *key, int64_t v)
{
    sc_json_key(j, key);
    sc_json_int(j, v);
}

static void put_bool(sc_json *j, const char *key, bool v)
{
    sc_json_key(j, key);
    sc_json_bool(j, v);
}

static int64_t micro_batches(const sc_job *j)
{
    return j->gbs / (j->mbs * j->dp);
}

static bool on_drives(const sc_job *j)
{
    return j->offload_to == SC_OFFLOAD_NVME;
}

/* Of weights on drives nothing stays in host memory. */
static void weights_away(const sc_job *j, sc_json *out)
{
    if (j->offload_to == SC_OFFLOAD_EXPANDED) return;
    if (on_drives(j) && j->offload > 0) return;
    sc_json_key(out, "offload_param");
    sc_json_begin(out, '{');
    sc_json_put_string(out, "device", on_drives(j) ? "nvme" : "cpu");
    if (on_drives(j)) put_int(out, "max_in_cpu", 0);
    sc_json_end(out, '}');
}

static void zero(const emitter *e, sc_json *out)
{
    const sc_job *j = e->job;
    sc_json_key(out, "zero_optimization");
    sc_json_begin(out, '{');
    put_int(out, "stage", j->zero);
    put_bool(out, "overlap_comm", j->grad_overlap == 1);
    if (j->zero == 3 && j->hsdp > 0 && j->hsdp < j->dp)
        put_int(out, "mics_shard_size", j->hsdp);
    if (j->zero == 3 && j->prefetch == 0)
        put_int(out, "stage3_prefetch_bucket_size", 0);
    if (j->optimizer_tier >= SC_TIER_CPU) {
        sc_json_key(out, "offload_optimizer");
        sc_json_begin(out, '{');
        sc_json_put_string(out, "device", sc_tier_names[j->optimizer_tier]);
        sc_json_end(out, '}');
    }
    if (j->offload_weights == 1 && j->zero == 3) weights_away(j, out);
    sc_json_end(out, '}');
}

static void enabled(sc_json *out, const char *key)
{
    sc_json_key(out, key);
    sc_json_begin(out, '{');
    put_bool(out, "enabled", true);
    sc_json_end(out, '}');
}

static void parallel(const emitter *e, sc_json *out)
{
    const sc_job *j = e->job;
    if (j->tp > 1) {
        sc_json_key(out, "tensor_parallel");
        sc_json_begin(out, '{');
        put_int(out, "autotp_size", j->tp);
        sc_json_end(out, '}');
    }
    if (j->cp > 1) put_int(out, "sequence_parallel_size", j->cp);
    if (j->pp < 2) return;
    bool full = j->recompute == SC_RC_FULL;
    int64_t group = j->rc_blocks > 0 ? j->rc_blocks : 1;
    sc_json_key(out, "pipeline");
    sc_json_begin(out, '{');
    put_int(out, "stages", j->pp);
    put_int(out, "activation_checkpoint_interval", full ? group : 0);
    sc_json_end(out, '}');
}

static sc_status config(emitter *e)
{
    const sc_job *j = e->job;
    sc_json out;
    sc_text t;
    double bytes = emit_grad_bytes(j, e->run);
    sc_json_init(&out, true);
    sc_json_begin(&out, '{');
    put_int(&out, "train_batch_size", j->gbs);
    put_int(&out, "train_micro_batch_size_per_gpu", j->mbs);
    put_int(&out, "gradient_accumulation_steps", micro_batches(j));
    zero(e, &out);
    if (j->precision == SC_RECIPE_BF16) enabled(&out, "bf16");
    if (j->precision == SC_RECIPE_FP16) enabled(&out, "fp16");
    sc_json_key(&out, "data_types");
    sc_json_begin(&out, '{');
    sc_json_put_string(&out, "grad_accum_dtype",
                       bytes == 4                       ? "fp32"
                       : j->precision == SC_RECIPE_FP16 ? "fp16"
                                                        : "bf16");
    sc_json_end(&out, '}');
    parallel(e, &out);
    if (j->offload == 1 && j->offload_to <= SC_OFFLOAD_CPU) {
        sc_json_key(&out, "activation_checkpointing");
        sc_json_begin(&out, '{');
        put_bool(&out, "cpu_checkpointing", true);
        sc_json_end(&out, '}');
    }
    sc_json_end(&out, '}');
    sc_text_init(&t);
    sc_text_add(&t, "%s\n", out.buf);
    t.failed = t.failed || out.failed;
    sc_json_free(&out);
    return emit_file(e, JSON_NAME, &t);
}

static sc_status script(emitter *e)
{
    const sc_job *j = e->job;
    sc_text t;
    const sc_hw *hw = e->run->hw;
    uint32_t per_node = hw->host_size > 0 ? hw->host_size : hw->n_devices;
    sc_text_init(&t);
    sc_text_add(&t, "#!/bin/bash\n");
    emit_comment(e, &t);
    sc_text_add(&t,
                "# train.py is a script with arguments of HuggingFace's "
                "Trainer: append model,\n# data, learning rates.\n"
                "deepspeed --num_nodes %u --num_gpus %u train.py \\\n"
                "    --deepspeed " JSON_NAME " \\\n"
                "    --per_device_train_batch_size %lld \\\n"
                "    --gradient_accumulation_steps %lld \\\n"
                "    --max_seq_length %lld",
                hw->n_devices / per_node, per_node, (long long)j->mbs,
                (long long)micro_batches(j), (long long)j->seq);
    if (j->precision == SC_RECIPE_BF16) sc_text_add(&t, " \\\n    --bf16 true");
    if (j->precision == SC_RECIPE_FP16) sc_text_add(&t, " \\\n    --fp16 true");
    if (j->recompute == SC_RC_FULL && j->pp < 2)
        sc_text_add(&t, " \\\n    --gradient_checkpointing true");
    sc_text_add(&t, "\n");
    return emit_file(e, SCRIPT_NAME, &t);
}

sc_status emit_deepspeed(emitter *e)
{
    e->with_model = false;
    SC_TRY(config(e));
    return script(e);
}
