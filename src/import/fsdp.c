/* SPDX-License-Identifier: Apache-2.0 */
/* fsdp.c - reads settings of FSDP as HuggingFace's programs name them. */
#include "import/fsdp.h"

#include "plan/plan_strategy.h"

#include <string.h>
#include <strings.h>

typedef enum fsdp_id {
    F_STRATEGY,
    F_RESHARD,
    F_OFFLOAD,
    F_RECOMPUTE,
    F_PREFETCH,
    F_N
} fsdp_id;

static const import_key keys[] = {
    IMPORT_K_WORD("*sharding_strategy", F_STRATEGY),
    IMPORT_K_WORD("*reshard_after_forward", F_RESHARD),
    IMPORT_K_BOOL("*offload_params", F_OFFLOAD),
    IMPORT_K_BOOL("*cpu_offload", F_OFFLOAD),
    IMPORT_K_BOOL("*activation_checkpointing", F_RECOMPUTE),
    IMPORT_K_WORD("*backward_prefetch", F_PREFETCH),
    IMPORT_K_WORD("*backward_prefetch_policy", F_PREFETCH),
    IMPORT_K_REPORTED("*forward_prefetch"),
    IMPORT_K_REPORTED("*min_num_params"),
    IMPORT_K_REPORTED("*mixed_precision_policy"),
    IMPORT_K_REPORTED("xla*"),
    IMPORT_K_HARMLESS("*version"),
    IMPORT_K_HARMLESS("*auto_wrap_policy"),
    IMPORT_K_HARMLESS("*transformer_layer_cls_to_wrap"),
    IMPORT_K_HARMLESS("*state_dict_type"),
    IMPORT_K_HARMLESS("*sync_module_states"),
    IMPORT_K_HARMLESS("*use_orig_params"),
    IMPORT_K_HARMLESS("*cpu_ram_efficient_loading"),
    IMPORT_K_HARMLESS("*limit_all_gathers"),
    IMPORT_K_HARMLESS("*ignored_modules"),
    {NULL, 0, 0, 0, 0, 0, NULL},
};

static sc_status shard(import_sink *to, const import_value *v, int zero)
{
    if (zero == 3 && !import_has(to, "zero"))
        SC_TRY(import_put(to, "fsdp", 1, v, "default of FSDP"));
    return import_put(to, "zero", zero, v, "default of FSDP");
}

/* HYBRID_SHARD shards inside of each node and replicates across nodes. */
static sc_status hybrid(import_sink *to, const import_value *v)
{
    SC_TRY(shard(to, v, 3));
    if (to->out->nodes > 0) to->copies = to->out->nodes;
    if (to->copies > 0 || import_has(to, "hsdp")) return SC_OK;
    return import_warn(to, v->at,
                       "the number of nodes is not known: give --hsdp, the "
                       "number of devices of a node");
}

sc_status import_fsdp(import_sink *to, const import_value *v, const char *name)
{
    static const char *const names[] = {"FULL_SHARD", "SHARD_GRAD_OP",
                                        "NO_SHARD", "HYBRID_SHARD",
                                        "HYBRID_SHARD_ZERO2"};
    size_t i = 0;
    if (!v->given) return shard(to, v, 3);
    if (name[0] >= '1' && name[0] <= '5' && name[1] == '\0')
        i = (size_t)(name[0] - '1');
    else
        while (i < SC_COUNT(names) && strcasecmp(names[i], name) != 0) i++;
    switch (i) {
    case 0: return shard(to, v, 3);
    case 1: return shard(to, v, 2);
    case 2: return shard(to, v, 0);
    case 3: return hybrid(to, v);
    default: break;
    }
    import_error(to, i == 4 ? SC_C_UNSUPPORTED : SC_C_UNKNOWN_NAME, v->at,
                 "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD or HYBRID_SHARD",
                 "%s %.60s%s", v->name, name,
                 i == 4 ? " is not modelled" : " is not known");
    return SC_OK;
}

/* FSDP2 has true or false here; accelerate also accepts names of FSDP1. */
static sc_status reshard(import_sink *to, const import_value *v)
{
    if (strcasecmp(v->text, "true") == 0) return shard(to, v, 3);
    if (strcasecmp(v->text, "false") == 0) return shard(to, v, 2);
    return import_fsdp(to, v, v->text);
}

sc_status import_fsdp_away(import_sink *to, const import_value *v)
{
    SC_TRY(import_put(to, "offload-optimizer", SC_TIER_CPU, v, NULL));
    return import_weights_away(to, SC_OFFLOAD_CPU, v);
}

sc_status import_fsdp_map(import_sink *to, const sc_node *map)
{
    import_value v[F_N] = {{0}};
    SC_TRY(import_keys_read(to, keys, map, v));
    if (import_yes(&v[F_OFFLOAD])) SC_TRY(import_fsdp_away(to, &v[F_OFFLOAD]));
    if (import_yes(&v[F_RECOMPUTE]))
        SC_TRY(import_put(to, "recompute", SC_RC_FULL, &v[F_RECOMPUTE], NULL));
    if (import_good(&v[F_PREFETCH]) &&
        strcasecmp(v[F_PREFETCH].text, "NO_PREFETCH") == 0)
        SC_TRY(import_put(to, "prefetch", 0, &v[F_PREFETCH], NULL));
    if (v[F_STRATEGY].given)
        return import_fsdp(to, &v[F_STRATEGY], v[F_STRATEGY].text);
    if (v[F_RESHARD].given) return reshard(to, &v[F_RESHARD]);
    return SC_OK;
}

sc_status import_pytorch(import_sink *to, bool compiled, const char *program)
{
    const char *name = compiled ? "torchtitan-2025" : "torchtitan-eager-2024";
    const sc_job *j = to->job;
    if (import_has(to, "software") || j->tp != 1 || j->pp != 1 || j->cp != 1)
        return SC_OK;
    if (j->zero != 3 && j->zero != 0) return SC_OK;
    if (j->zero == 0) name = "pytorch-ddp";
    SC_TRY(import_assume(to, "software %s: the nearest measured program to %s",
                         name, program));
    return import_put_text(to, "software", name, NULL, "the nearest profile");
}
