/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - defines the fields of a job: one table for options, files and
 * help. */
#include "cost/cost_optimizer.h"
#include "predict/internal.h"

#include <stdio.h>
#include <string.h>

const char *const sc_access_order_names[] = {"at-once", "in-turn", NULL};
static const char *const engine_names[] = {"event", "fast", NULL};
const char *const sc_fidelity_names[] = {"analytic", "chunk", "flow", NULL};

/* Groups of --help, in the order of cli/help_page.c. */
#define THE_JOB     "the job"
#define PARALLELISM "parallelism"
#define MEMORY      "memory"
#define TRAINING    "training"
#define ANSWER      "the answer"
#define WHOLE_RUN   "the whole run"
#define COMPUTING   "how it is computed"

#define OFF(f) offsetof(sc_job, f)
#define INT(key, field, group_, lo, hi, text)                         \
    {                                                                 \
        .name = key, .type = SC_T_INT, .unit = SC_U_COUNT,            \
        .offset = OFF(field), .min = lo, .max = hi, .flag = "--" key, \
        .group = group_, .meta = "N", .help = text                    \
    }
#define BOOL(key, field, group_, text)                        \
    {                                                         \
        .name = key, .type = SC_T_BOOL, .offset = OFF(field), \
        .flag = "--" key, .group = group_, .help = text       \
    }
#define TRISTATE(key, field, group_, text)                        \
    {                                                             \
        .name = key, .type = SC_T_TRISTATE, .offset = OFF(field), \
        .flag = "--" key, .group = group_, .help = text           \
    }
#define ENUM(key, field, names_, group_, text)                                 \
    {                                                                          \
        .name = key, .type = SC_T_ENUM, .offset = OFF(field), .names = names_, \
        .flag = "--" key, .group = group_, .help = text                        \
    }
#define WORD(key, field, group_, meta_, text)                          \
    {                                                                  \
        .name = key, .type = SC_T_STRING, .offset = OFF(field),        \
        .flag = "--" key, .group = group_, .meta = meta_, .help = text \
    }

/* A number with a unit. */
#define NUMBER(key, field, group_, unit_, lo, hi, meta_, text)        \
    {                                                                 \
        .name = key, .type = SC_T_QUANTITY, .unit = unit_,            \
        .offset = OFF(field), .min = lo, .max = hi, .flag = "--" key, \
        .group = group_, .meta = meta_, .help = text                  \
    }

#define RATE(key, field, group_, text) \
    NUMBER(key, field, group_, SC_U_RATE, 1e6, 1e15, "RATE", text)
#define DURATION(key, field, text) \
    NUMBER(key, field, WHOLE_RUN, SC_U_TIME, 1e-3, 1e9, "TIME", text)

const sc_key sc_job_keys[] = {
    WORD("model", model, THE_JOB, "NAME|FILE",
         "catalogue name, HuggingFace config.json or model.yml"),
    WORD("cluster", cluster, THE_JOB, "SPEC|FILE",
         "catalogue name with nodes (dgx-h100:16), cluster.yml, or a one-line "
         "description"),
    RATE("nic-bw", nic_bw, THE_JOB,
         "bandwidth of one network adapter in one direction, instead of the "
         "cluster's"),
    NUMBER("power-cap", power_cap, THE_JOB, SC_U_WATT, 1, 1e5, "WATT",
           "limit of a device's power, if it is below the usual one"),
    WORD("software", software, THE_JOB, "NAME|FILE",
         "training program and generation (stepcast list software), or a "
         "profile of one's own (.yml)"),
    INT("tp", tp, PARALLELISM, 1, 1 << 20, "tensor parallel degree"),
    INT("pp", pp, PARALLELISM, 1, 1 << 20, "pipeline parallel degree"),
    INT("dp", dp, PARALLELISM, 1, 1 << 30, "data parallel degree"),
    INT("cp", cp, PARALLELISM, 1, 1 << 20, "context parallel degree"),
    INT("ep", ep, PARALLELISM, 1, 1 << 20, "expert parallel degree"),
    INT("etp", etp, PARALLELISM, 0, 1 << 20,
        "ranks of tp over which an expert is split: 1, or tp (0)"),
    INT("vp", vpp, PARALLELISM, 1, 1 << 16,
        "virtual stages per pipeline device"),
    INT("global-batch", gbs, THE_JOB, 1, 1LL << 40,
        "samples per optimizer step"),
    INT("micro-batch", mbs, THE_JOB, 1, 1LL << 30, "samples per micro-batch"),
    INT("accumulation", accumulation, THE_JOB, 1, 1LL << 30,
        "micro-batches of a replica per optimizer step, if --micro-batch or "
        "--dp is left out"),
    INT("seq", seq, THE_JOB, 1, 1LL << 30, "tokens per sample"),
    INT("mean-tokens", mean_tokens, THE_JOB, 1, 1LL << 30,
        "tokens of a mean sample, if padding is not computed"),
    BOOL("fine-tune", fine_tune, THE_JOB,
         "fine-tuning: without --document-tokens, samples are packed from "
         "documents of the program's usual length; models with adapters are "
         "always fine-tuned"),
    INT("document-tokens", document_tokens, THE_JOB, 1, 1LL << 30,
        "tokens of a mean document, if samples are packed from several: tokens "
        "attend only to their own document"),
    INT("vocab-size", vocab, THE_JOB, 1, 1 << 24,
        "tokens of the vocabulary, instead of the model's"),
    INT("zero", zero, PARALLELISM, 0, 3, "ZeRO stage over dp"),
    BOOL("fsdp", fsdp, PARALLELISM, "fully sharded data parallel (ZeRO-3)"),
    INT("hsdp", hsdp, PARALLELISM, 1, 1 << 30,
        "data-parallel ranks that shard states together; groups are replicas"),
    INT("prefetch", prefetch, PARALLELISM, 0, SC_PREFETCH_MAX,
        "number of layers whose weights ZeRO-3 gathers ahead of the running "
        "layer [1]"),
    ENUM("cp-comm", cp_comm, sc_cp_comm_names, PARALLELISM,
         "how context-parallel attention exchanges keys and values: around a "
         "ring while it runs, before it, or as tokens for heads"),
    NUMBER("capacity-factor", capacity, TRAINING, SC_U_NONE, 0.01, 1024, "F",
           "capacity of an expert over the balanced number of tokens; "
           "further tokens are dropped"),
    NUMBER("expert-imbalance", imbalance, TRAINING, SC_U_NONE, 1, 1024, "F",
           "number of tokens at the experts of the busiest rank, relative to "
           "the mean"),
    WORD("grad-compress", compress, TRAINING, "FORMAT",
         "format in which gradients are sent: none, fp16, bf16, fp8, int8, "
         "topk:FRACTION, powersgd:RANK"),
    WORD("freeze", freeze, TRAINING, "PATTERNS",
         "weights that do not learn: layers.0-15.*,embedding"),
    TRISTATE("sp", sp, PARALLELISM,
             "sequence parallelism over tp; --no-sp: without"),
    ENUM("recompute", recompute, sc_recompute_names, MEMORY,
         "what the backward pass computes again; selective: attention"),
    ENUM("recompute-method", rc_method, sc_rc_method_names, MEMORY,
         "with --recompute full: uniform groups of layers, or the first ones "
         "(block) of a stage"),
    INT("recompute-num-layers", rc_blocks, MEMORY, 1, 1 << 20,
        "layers of such a group, or the number of first layers"),
    NUMBER("offload", offload, MEMORY, SC_U_NONE, 0, 1, "F",
           "fraction of saved activations that another memory keeps"),
    NUMBER("offload-weights", offload_weights, MEMORY, SC_U_NONE, 0, 1, "F",
           "fraction of weights that another memory keeps, from where they "
           "are copied for each pass"),
    ENUM("offload-to", offload_to, sc_offload_to_names, MEMORY,
         "the memory of such weights and activations: cpu (the host's) unless "
         "given"),
    ENUM("offload-optimizer", optimizer_tier, sc_tier_names, MEMORY,
         "where optimizer states are kept and updated"),
    NUMBER("expanded-fraction", expanded_fraction, MEMORY, SC_U_NONE, 0, 1, "F",
           "fraction of every tensor that is in the machine's expanded "
           "memory, as pages that alternate"),
    ENUM("expanded-access", expanded_access, sc_access_order_names, MEMORY,
         "whether kernels read both memories at once (the default) or in turn"),
    RATE("host-mem-bw", host_mem_bw, MEMORY,
         "bandwidth of one host's memory, for updates there"),
    RATE("nvme-bw", nvme_bw, MEMORY, "bandwidth of one host's NVMe drives"),
    INT("checkpoint-every", checkpoint_every, TRAINING, 1, 1 << 30,
        "steps from one checkpoint to the next"),
    BOOL("checkpoint-async", checkpoint_async, TRAINING,
         "write checkpoints while training goes on"),
    RATE("storage-bw", storage_bw, TRAINING,
         "bandwidth of all storage that checkpoints are written to"),
    ENUM("schedule", schedule, sc_schedule_names, PARALLELISM,
         "pipeline schedule"),
    WORD("schedule-file", schedule_file, PARALLELISM, "FILE",
         "passes of each pipeline device in order"),
    WORD("keep-bf16", keep_bf16, TRAINING, "PATTERNS",
         "products that low-precision recipes leave in 16 bits: layers.0-1"),
    ENUM("precision", precision, sc_recipe_names, THE_JOB,
         "precision of matrix products"),
    TRISTATE("overlap-grad-reduce", grad_overlap, TRAINING,
             "reduce gradients during the backward pass; --no-...: after it"),
    TRISTATE("tp-overlap", tp_overlap, TRAINING,
             "exchanges over tp overlap the products beside them; --no-...: "
             "they do not"),
    TRISTATE("ep-overlap", ep_overlap, TRAINING,
             "exchanges of tokens with experts overlap other micro-batches; "
             "--no-...: they do not"),
    ENUM("cuda-graphs", capture, sc_capture_names, TRAINING,
         "what runs as CUDA graphs: none, layers without their experts, or the "
         "step"),
    TRISTATE("fused-accumulation", fused_accumulate, TRAINING,
             "products add weight gradients to the sum themselves; --no-...: "
             "another kernel does"),
    TRISTATE("fused-experts", fused_experts, TRAINING,
             "grouped products of experts include biases and activations; "
             "--no-...: other kernels compute them"),
    TRISTATE("fp8-attention", low_attention, TRAINING,
             "attention in FP8 beside products in FP8; --no-...: in 16 bits"),
    TRISTATE("low-params", low_params, TRAINING,
             "weights are kept and gathered in the precision of products; "
             "--no-...: in 16 bits"),
    NUMBER("grad-bytes", grad_bytes, MEMORY, SC_U_BYTES, 0, 8, "BYTES",
           "bytes per gradient element that are kept and reduced"),
    NUMBER("optimizer-bytes", optim_bytes, MEMORY, SC_U_BYTES, 0, 64, "BYTES",
           "bytes of optimizer states and master weights per parameter"),
    BOOL("forward-only", forward_only, THE_JOB, "only the forward pass"),
    BOOL("launch-blocking", launch_blocking, COMPUTING,
         "the job sets CUDA_LAUNCH_BLOCKING=1"),
    BOOL("numa-unbound", numa_unbound, COMPUTING,
         "processes are not bound to their device's NUMA node"),
    ENUM(
        "engine", engine, engine_names, COMPUTING,
        "event runs every operation of the step; fast composes layers [event]"),
    ENUM("fidelity", fidelity, sc_fidelity_names, COMPUTING,
         "analytic: a closed-form price per exchange; chunk: messages queue "
         "on links; flow: they share links"),
    BOOL("no-symmetry", no_symmetry, COMPUTING,
         "treat every rank by itself (slow; same result)"),
    NUMBER("price", price, ANSWER, SC_U_PRICE, 0, 1e6, "USD/h",
           "price of one device, to give the cost of a step"),
    WORD("purchase", purchase, ANSWER, "NAME|FILE",
         "instead of --price: list of prices of a machine that is bought, "
         "and of electricity (list-2024, or a file)"),
    NUMBER("electricity", electricity, ANSWER, SC_U_TARIFF, 0, 1, "USD/kWh",
           "price of energy, instead of that of --purchase"),
    NUMBER("grid-intensity", grid_intensity, ANSWER, SC_U_CARBON, 0, 1,
           "kg/kWh", "CO2e of the grid per energy, to give that of a step"),
    INT("tokens", tokens, WHOLE_RUN, 1, 1LL << 53,
        "of the whole run (15T): days, device-hours, energy and cost of it"),
    WORD("failures", failure_table, WHOLE_RUN, "NAME|FILE",
         "how often components fail (stepcast list failures), or a file; adds "
         "lost work, restarts and repairs"),
    DURATION("restart", restart_s,
             "from a failure until training goes on: detection, replacement, "
             "start, loading [the table's]"),
    DURATION("repair", repair_s,
             "until a failed node is back in service [the table's]"),
    INT("spares", spares, WHOLE_RUN, 0, 1 << 20,
        "spare nodes, which replace failed ones [as --availability needs]"),
    NUMBER("availability", availability, WHOLE_RUN, SC_U_NONE, 0.01, 0.999999,
           "F",
           "fraction of the time without waits for repairs, which decides "
           "the number of spare nodes [99.9%]"),
    WORD("strategy", strategy, PARALLELISM, "FILE",
         "how the model is divided (docs/strategy-file.md)"),
    WORD("optimizer", optimizer, TRAINING, "NAME",
         "sgd, adam, lamb, adagrad or rowwise-adagrad, for networks of "
         "operators"),
    WORD("compat", compat, COMPUTING, "MODE",
         "compute as another simulator does (docs/dev/execution.md)"),
    NUMBER("gamma", gamma, COMPUTING, SC_U_NONE, 0, 10, "F",
           "kernels and gradient exchanges that overlap take 1 + F times "
           "as long"),
    WORD("op-times", op_times, COMPUTING, "FILE",
         "measured times of operators by shape, instead of predicted ones"),
    {0},
};

void sc_job_init(sc_job *job)
{
    *job = (sc_job){.zero = SC_INFER,
                    .sp = SC_INFER,
                    .recompute = SC_INFER,
                    .rc_method = SC_INFER,
                    .offload = SC_INFER,
                    .offload_to = SC_INFER,
                    .expanded_access = SC_INFER,
                    .optimizer_tier = SC_INFER,
                    .schedule = SC_INFER,
                    .precision = SC_INFER,
                    .program = sc_program_options_none,
                    .price = SC_INFER,
                    .electricity = SC_INFER,
                    .grid_intensity = SC_INFER,
                    .spares = SC_INFER,
                    .gamma = SC_INFER};
}

/* They change states, exchanges of gradients and updates, but no pass. */
static const char *const ends[] = {"zero",
                                   "optimizer-bytes",
                                   "offload-optimizer",
                                   "overlap-grad-reduce",
                                   "host-mem-bw",
                                   "nvme-bw",
                                   "storage-bw",
                                   "checkpoint-every",
                                   NULL};

static const struct {
    const char *key;
    sc_job_away is;
} away[] = {{"offload-optimizer", SC_AWAY_LEARNS}, {"offload", SC_AWAY_LEARNS},
            {"offload-weights", SC_AWAY_KIND},     {"offload-to", SC_AWAY_TO},
            {"expanded-fraction", SC_AWAY_SAID},   {"strategy", SC_AWAY_SAID}};

sc_job_away sc_job_keeps_away(const sc_key *k)
{
    for (size_t i = 0; i < SC_COUNT(away); i++)
        if (strcmp(away[i].key, k->name) == 0) return away[i].is;
    return SC_AWAY_NOTHING;
}

void sc_job_move_to(sc_job *job, int to)
{
    job->offload_to = to;
}

bool sc_job_moves(const sc_job *job)
{
    return job->offload > 0 || job->offload_weights > 0;
}

bool sc_job_loads(const sc_key *k)
{
    static const size_t loads[] = {OFF(nic_bw),          OFF(power_cap),
                                   OFF(vocab),           OFF(expanded_fraction),
                                   OFF(expanded_access), OFF(price)};
    for (size_t i = 0; i < SC_COUNT(loads); i++)
        if (k->offset == loads[i]) return true;
    return false;
}

bool sc_job_ends(const sc_key *k)
{
    for (const char *const *end = ends; *end; end++)
        if (strcmp(*end, k->name) == 0) return true;
    return false;
}

sc_status predict_optimizer(const sc_job *job, sc_err *err)
{
    char option[64], hint[80];
    const char *name = job->optimizer;
    if (!name || sc_optimizer_of(name)->name) return SC_OK;
    const char *near = sc_nearest(name, sc_optimizer_names);
    snprintf(option, sizeof option, "--optimizer %.40s", name);
    snprintf(hint, sizeof hint, near ? "did you mean %s?" : "%s",
             near ? near : "adam, sgd, lamb, adagrad, rowwise-adagrad");
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, sc_pos_file(option),
                    hint, "unknown optimizer \"%.40s\"", name);
}

sc_status predict_refuse_site(const sc_job *job, bool pools, sc_err *err)
{
    const struct {
        bool is;
        const char *option, *what;
    } rows[] = {{job->compat != NULL, "--compat", "a compatible mode"},
                {job->fidelity != 0, "--fidelity", "simulated messages"},
                {pools, "--strategy", "pools of devices"},
                {job->no_symmetry, "--no-symmetry", "one device per rank"}};

    for (size_t i = 0; i < SC_COUNT(rows); i++)
        if (rows[i].is)
            return sc_error(
                err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(rows[i].option),
                "predict the job alone", "jobs do not run side by side with %s",
                rows[i].what);
    return SC_OK;
}
