/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_check.c - strategy.yml: reads pools and finds contradictions between
 * keys. */
#include "plan/strategy.h"

#include <stdio.h>
#include <string.h>

/* ---- pools ----------------------------------------------------------- */

typedef struct pool_words {
    const char *name, *device;
    int64_t stages, replicas, micro_batches;
} pool_words;

#define OFF(f) offsetof(pool_words, f)
#define INT(key, text)                                             \
    {                                                              \
        .name = #key, .type = SC_T_INT, .unit = SC_U_COUNT,        \
        .offset = OFF(key), .min = 1, .max = 1 << 20, .help = text \
    }

static const sc_key pool_keys[] = {
    {.name = "name",
     .type = SC_T_STRING,
     .offset = OFF(name),
     .help = "name of the pool; rules use pool.NAME",
     .required = true},
    {.name = "device",
     .type = SC_T_STRING,
     .offset = OFF(device),
     .help = "of the catalogue, such as h100-sxm",
     .required = true},
    INT(stages, "pipeline stages on it"),
    INT(replicas, "data-parallel replicas on it"),
    INT(micro_batches, "micro-batches of each of its replicas per step"),
    {0}};

static void read_pool(strategy_reader *r, const sc_node *n,
                      sc_strategy_pool *pool)
{
    pool_words w = {0};
    strategy_keep(r, sc_schema_read(pool_keys, n, &w, NULL, r->a, r->err));
    *pool = (sc_strategy_pool){w.name,
                               w.device,
                               (uint32_t)w.stages,
                               (uint32_t)w.replicas,
                               (uint32_t)w.micro_batches,
                               n->pos};
    if (!w.name) return;
    if (!w.stages == !w.replicas)
        strategy_wrong(r, SC_C_CONFLICT, n->pos,
                       "pools are ranges of stages or of replicas",
                       "pool %s has %s", w.name,
                       w.stages ? "both stages and replicas"
                                : "neither stages nor replicas");
    if (w.stages && w.micro_batches)
        strategy_wrong(r, SC_C_CONFLICT, n->pos,
                       "micro_batches applies to pools of replicas",
                       "every stage runs all micro-batches");
    for (uint32_t i = 0; i + 1 < r->s->n_pools; i++) {
        const sc_strategy_pool *p = &r->s->pool[i];
        if (p->name && strcmp(p->name, w.name) == 0)
            strategy_wrong(r, SC_C_DUPLICATE, n->pos, NULL,
                           "pool %s is defined twice, first at %s:%u:%u",
                           w.name, r->s->file, p->pos.line, p->pos.col);
    }
}

void strategy_read_pools(strategy_reader *r, const sc_node *list)
{
    sc_strategy *s = r->s;
    if (!list || list->kind == SC_N_NULL) return;
    if (list->kind != SC_N_SEQ) {
        strategy_wrong(r, SC_C_TYPE, list->pos,
                       "- {name: a, device: h100-sxm, stages: 2}",
                       "pools must be a list");
        return;
    }
    s->pool = SC_NEW_N(r->a, sc_strategy_pool, list->n);
    if (!s->pool) {
        strategy_keep(r, sc_error_nomem(r->err));
        return;
    }
    for (const sc_node *n = list->child; n; n = n->next)
        read_pool(r, n, &s->pool[s->n_pools++]);
}

static void check_pools(strategy_reader *r)
{
    const sc_strategy *s = r->s;
    uint64_t stages = 0, replicas = 0;
    if (s->n_pools == 0) return;
    sc_pos pos = sc_strategy_pos(s, NULL, "pools");
    for (uint32_t i = 0; i < s->n_pools; i++) {
        /* A pool that could not be read makes the sum meaningless. */
        if (!s->pool[i].stages == !s->pool[i].replicas) return;
        stages += s->pool[i].stages;
        replicas += s->pool[i].replicas;
    }
    if (stages && replicas) {
        strategy_wrong(r, SC_C_CONFLICT, pos,
                       "give stages for all pools, or replicas for all",
                       "some pools are by stages, some by replicas");
        return;
    }
    sc_axis axis = stages ? SC_AX_PP : SC_AX_DP;
    const char *of = stages ? "stages" : "replicas";
    uint64_t sum = stages ? stages : replicas,
             size = sc_strategy_degree(s, axis);
    if (s->n_axes && sum != size)
        strategy_wrong(r, SC_C_CONFLICT, pos, NULL,
                       "the pools have %llu %s, the mesh has %s: %llu",
                       (unsigned long long)sum, of, sc_axis_names[axis],
                       (unsigned long long)size);
}

/* ---- axes that keys need --------------------------------------------- */

static void needs_axis(strategy_reader *r, sc_axis axis, const char *key,
                       const char *value)
{
    char hint[80];
    const char *name = sc_axis_names[axis];
    if (sc_strategy_axis(r->s, axis) >= 0) return;
    snprintf(hint, sizeof hint, "add %s: 2 to the mesh", name);
    strategy_wrong(r, SC_C_CONFLICT, sc_strategy_pos(r->s, "preset", key), hint,
                   "%s %s needs an axis %s", key, value, name);
}

static void check_presets(strategy_reader *r)
{
    sc_strategy *s = r->s;
    if (r->zero_axis)
        s->zero_axis = strategy_axis_of(
            r, r->zero_axis, sc_strategy_pos(s, "preset", "zero_axis"));
    if (r->zero_axis && s->zero == 0)
        strategy_wrong(
            r, SC_C_CONFLICT, sc_strategy_pos(s, "preset", "zero_axis"),
            "zero: 1, 2 or 3", "zero_axis is given, but nothing is sharded");
    if (s->n_axes == 0) return;
    if (s->tensor_parallel > 0)
        needs_axis(r, SC_AX_TP, "tensor_parallel",
                   s->tensor_parallel == 1 ? "megatron" : "megatron-sp");
    if (s->context_parallel >= 0)
        needs_axis(r, SC_AX_CP, "context_parallel",
                   sc_cp_comm_names[s->context_parallel]);
    if (s->zero > 0 && !r->zero_axis && sc_strategy_axis(s, SC_AX_DP) < 0 &&
        sc_strategy_axis(s, SC_AX_FSDP) < 0)
        strategy_wrong(r, SC_C_CONFLICT, sc_strategy_pos(s, "preset", "zero"),
                       "add dp to the mesh, or zero_axis",
                       "zero %lld needs an axis to shard over",
                       (long long)s->zero);
}

/* Checks the length of cuts: a list of counts has an entry for each stage, a
 * list of paths one for each boundary. */
static void check_cuts(strategy_reader *r)
{
    const sc_strategy *s = r->s;
    uint32_t chunks = sc_strategy_chunks(s);
    sc_schedule schedule =
        s->schedule < 0 ? SC_SCH_1F1B : (sc_schedule)s->schedule;
    if (s->n_cuts == 0 || s->schedule_file || schedule == SC_SCH_FILE) return;
    uint64_t stages =
        sc_schedule_stages(schedule, (uint32_t)sc_strategy_degree(s, SC_AX_PP),
                           chunks ? chunks : 1);
    bool paths = s->cut[0].path != NULL;
    uint64_t given = (uint64_t)s->n_cuts + paths;
    if (given != stages)
        strategy_wrong(r, SC_C_CONFLICT, sc_strategy_pos(s, "pipeline", "cuts"),
                       paths ? "write a path for every stage except the first"
                             : "write a number for every stage",
                       "cuts make %llu stages, the pipeline has %llu",
                       (unsigned long long)given, (unsigned long long)stages);
    for (uint32_t i = 0; paths && i < s->n_cuts; i++)
        for (uint32_t k = 0; k < i; k++)
            if (s->cut[i].path && s->cut[k].path &&
                strcmp(s->cut[i].path, s->cut[k].path) == 0)
                strategy_wrong(r, SC_C_DUPLICATE, s->cut[i].pos, NULL,
                               "two stages begin at %.60s", s->cut[i].path);
}

static void check_pipeline(strategy_reader *r)
{
    const sc_strategy *s = r->s;
    uint64_t pp = sc_strategy_degree(s, SC_AX_PP);
    if (s->n_axes == 0) return;
    check_cuts(r);
    if (s->n_in_flight && s->n_in_flight != pp)
        strategy_wrong(r, SC_C_CONFLICT,
                       sc_strategy_pos(s, "pipeline", "max_in_flight"),
                       "write a number for every stage, or auto",
                       "max_in_flight has %u numbers for %llu stages",
                       s->n_in_flight, (unsigned long long)pp);
    if (s->virtual_stages > 1 && pp == 1)
        strategy_wrong(
            r, SC_C_CONFLICT, sc_strategy_pos(s, "pipeline", "virtual"),
            "add pp: 2 to the mesh", "virtual stages need a pipeline");
}

static void check_order(strategy_reader *r)
{
    const sc_strategy *s = r->s;
    sc_pos at = sc_strategy_pos(s, "pipeline", "schedule");
    if (s->schedule == SC_SCH_FILE && !s->schedule_file)
        strategy_wrong(r, SC_C_MISSING, at, "add order: FILE",
                       "schedule `file` needs a file");
    if (s->schedule_file && s->schedule >= 0 && s->schedule != SC_SCH_FILE)
        strategy_wrong(r, SC_C_CONFLICT, at, "remove one of them",
                       "schedule %s contradicts the order from %.60s",
                       sc_schedule_names[s->schedule], s->schedule_file);
}

static void check_batch(strategy_reader *r)
{
    const sc_strategy *s = r->s;
    if (s->global && s->micro && s->global % s->micro != 0)
        strategy_wrong(
            r, SC_C_DIVIDE, sc_strategy_pos(s, "batch", "global"),
            "global batch = micro-batch x replicas x micro-batches",
            "global batch %lld is not a multiple of micro-batch %lld",
            (long long)s->global, (long long)s->micro);
}

static void check_recompute(strategy_reader *r)
{
    const sc_strategy *s = r->s;
    sc_pos at = sc_strategy_pos(s, "preset", "recompute_method");
    if (s->rc_method >= 0 && s->recompute >= 0 && s->recompute != SC_RC_FULL)
        strategy_wrong(r, SC_C_CONFLICT, at, "recompute: full",
                       "recompute_method does not apply to recompute: %s",
                       sc_recompute_names[s->recompute]);
    if (s->rc_blocks && s->rc_method < 0)
        strategy_wrong(r, SC_C_MISSING,
                       sc_strategy_pos(s, "preset", "recompute_num_layers"),
                       "add recompute_method: uniform, or block",
                       "recompute_num_layers needs a method");
}

static void check_checkpoint(strategy_reader *r)
{
    const sc_node *c = sc_node_get(r->s->doc, "checkpoint");
    const sc_node *to = c && c->kind == SC_N_MAP ? sc_node_get(c, "to") : NULL;
    if (to && to->text &&
        (strcmp(to->text, sc_tier_names[SC_TIER_DEVICE]) == 0 ||
         strcmp(to->text, sc_tier_names[SC_TIER_EXPANDED]) == 0))
        strategy_wrong(r, SC_C_UNSUPPORTED, to->pos,
                       "write cpu or nvme; without `to` it goes to storage",
                       "a checkpoint can't be kept on the device");
}

void strategy_check(strategy_reader *r)
{
    check_checkpoint(r);
    check_recompute(r);
    check_batch(r);
    check_order(r);
    if (r->no_mesh) return;
    check_presets(r);
    if (r->no_sizes) return;
    check_pipeline(r);
    check_pools(r);
}
