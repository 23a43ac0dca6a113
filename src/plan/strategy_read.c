/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_read.c - strategy.yml: the mesh and the sections of single keys.
 *
 * Every section is read even if others have errors, so that one pass finds all
 * of them.
 */
#include "cost/cost_optimizer.h"
#include "plan/strategy.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_SIZE  (1 << 24) /* of an axis */
#define MAX_RANKS ((uint64_t)1 << 32)

void strategy_keep(strategy_reader *r, sc_status s)
{
    if (r->first == SC_OK) r->first = s;
}

void strategy_wrong(strategy_reader *r, sc_code code, sc_pos pos,
                    const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(r->err, &r->first, SC_EINPUT, code, pos, hint, fmt, args);
    va_end(args);
}

/* ---- tables of keys -------------------------------------------------- */

/* The values of keys while a strategy is read; `zero_axis` is still a name. */
typedef struct words {
    sc_strategy s;
    const char *zero_axis;
    int optimizer;
    const sc_node *section, *cuts, *in_flight;
} words;

#define OFF(f) offsetof(words, f)
#define WORD(key, field, text)                                               \
    {                                                                        \
        .name = key, .type = SC_T_STRING, .offset = OFF(field), .help = text \
    }
#define INT(key, field, lo, hi, text)                            \
    {                                                            \
        .name = key, .type = SC_T_INT, .unit = SC_U_COUNT,       \
        .offset = OFF(field), .min = lo, .max = hi, .help = text \
    }
#define REAL(key, kind, field, lo, hi, text)                     \
    {                                                            \
        .name = key, .type = SC_T_QUANTITY, .unit = kind,        \
        .offset = OFF(field), .min = lo, .max = hi, .help = text \
    }
#define ENUM(key, field, values, text)                                         \
    {                                                                          \
        .name = key, .type = SC_T_ENUM, .offset = OFF(field), .names = values, \
        .help = text                                                           \
    }
#define BOOL(key, field, text)                                             \
    {                                                                      \
        .name = key, .type = SC_T_BOOL, .offset = OFF(field), .help = text \
    }
#define TRISTATE(key, field, text)                                             \
    {                                                                          \
        .name = key, .type = SC_T_TRISTATE, .offset = OFF(field), .help = text \
    }
#define NODE(key, field, text)                                             \
    {                                                                      \
        .name = key, .type = SC_T_NODE, .offset = OFF(field), .help = text \
    }

static const char *const tp_names[] = {"none", "megatron", "megatron-sp", NULL};

static const sc_key top_keys[] = {
    WORD("model", s.model, "as --model"),
    WORD("cluster", s.cluster, "as --cluster"),
    WORD("software", s.software, "as --software"),
    ENUM("precision", s.precision, sc_recipe_names, "of matrix products"),
    ENUM("optimizer", optimizer, sc_optimizer_names,
         "optimizer that updates the weights"),
    NODE("mesh", section, "axes with their sizes, outer to inner"),
    NODE("batch", section, "samples and tokens"),
    NODE("preset", section, "sets of rules that have a name"),
    NODE("pipeline", section, "stages and their order"),
    NODE("overlap", section, "which exchanges overlap computation"),
    NODE("offload", section, "states that are kept outside of devices"),
    NODE("checkpoint", section, "checkpoints: how often states are saved"),
    NODE("pools", section, "devices of several kinds"),
    NODE("rules", section, "patterns on module paths"),
    {0}};

static const sc_key batch_keys[] = {
    INT("global", s.global, 1, 0x1p40, "samples of a step"),
    INT("micro", s.micro, 1, 1 << 30, "samples of a replica's micro-batch"),
    INT("seq", s.seq, 1, 1 << 30, "tokens of a sample"),
    {0}};

static const sc_key preset_keys[] = {
    ENUM("tensor_parallel", s.tensor_parallel, tp_names, "products over tp"),
    INT("zero", s.zero, 0, 3, "ZeRO stage"),
    WORD("zero_axis", zero_axis, "axis that ZeRO shards over"),
    ENUM("recompute", s.recompute, sc_recompute_names, "as --recompute"),
    ENUM("recompute_method", s.rc_method, sc_rc_method_names,
         "as --recompute-method"),
    INT("recompute_num_layers", s.rc_blocks, 1, 1 << 20,
        "as --recompute-num-layers"),
    ENUM("context_parallel", s.context_parallel, sc_cp_comm_names,
         "how attention over cp gets all keys"),
    BOOL("data_parallel", s.data_parallel, "samples over dp, fsdp, ep and rep"),
    {0}};

static const sc_key pipeline_keys[] = {
    ENUM("schedule", s.schedule, sc_schedule_names, "order of passes"),
    INT("virtual", s.virtual_stages, 1, 1 << 16, "stages per device"),
    WORD("order", s.schedule_file, "file with the order of passes"),
    NODE("cuts", cuts, "where stages begin"),
    NODE("max_in_flight", in_flight, "micro-batches per stage"),
    {0}};

static const sc_key overlap_keys[] = {
    REAL("grad_bucket", SC_U_BYTES, s.grad_bucket, 1, 1e15,
         "size of the bucket of gradients that are exchanged together"),
    TRISTATE("grad", s.grad_overlap,
             "gradient exchanges overlap the backward pass"),
    TRISTATE("p2p", s.p2p_overlap,
             "transfers between stages overlap computation"),
    TRISTATE("tp", s.tp_overlap, "exchanges over tp overlap products"),
    REAL("gamma", SC_U_NONE, s.gamma, 0, 100,
         "slow-down of kernels and exchanges that overlap"),
    {0}};

static const sc_key offload_keys[] = {
    REAL("activations", SC_U_NONE, s.offload_activations, 0, 1,
         "fraction of saved activations"),
    REAL("weights", SC_U_NONE, s.offload_weights, 0, 1, "fraction of weights"),
    ENUM("to", s.offload_to, sc_offload_to_names,
         "where activations and weights are kept"),
    ENUM("optimizer", s.optimizer_tier, sc_tier_names,
         "where optimizer states are kept"),
    {0}};

static const sc_key checkpoint_keys[] = {
    {.name = "every",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(s.checkpoint_every),
     .min = 1,
     .max = 1 << 30,
     .help = "steps between checkpoints",
     .required = true},
    BOOL("async", s.checkpoint_async,
         "checkpoints are written while training goes on"),
    ENUM("to", s.checkpoint_tier, sc_tier_names,
         "where a checkpoint is copied first"),
    {0}};

/* ---- sections -------------------------------------------------------- */

static void section(strategy_reader *r, const sc_node *root, const char *name,
                    const sc_key *keys, words *w)
{
    const sc_node *n = sc_node_get(root, name);
    if (n) strategy_keep(r, sc_schema_read(keys, n, w, NULL, r->a, r->err));
}

static const char *axis_name(strategy_reader *r, const sc_node *n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static const char more[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t len = strlen(n->key);
    bool reserved = strcmp(n->key, "all") == 0 || strcmp(n->key, "none") == 0;
    if (reserved)
        strategy_wrong(r, SC_C_CONFLICT, n->key_pos, "choose another name",
                       "\"%s\" is a word of rules and can't name an axis",
                       n->key);
    else if (len == 0 || len > 15 || strspn(n->key, letters) == 0 ||
             strspn(n->key, more) != len)
        strategy_wrong(r, SC_C_TYPE, n->key_pos,
                       "write a small letter, then small letters, digits and "
                       "_; at most 15",
                       "\"%.40s\" can't name an axis", n->key);
    return n->key;
}

static void read_axis(strategy_reader *r, const sc_node *n)
{
    int64_t size = 1;
    const sc_key key = {.name = n->key,
                        .type = SC_T_INT,
                        .unit = SC_U_COUNT,
                        .min = 1,
                        .max = MAX_SIZE};
    const sc_key rows[] = {key, {0}};
    sc_node one = *n;
    one.next = NULL;
    const sc_node map = {
        .kind = SC_N_MAP, .pos = n->pos, .n = 1, .child = &one};
    const char *name = axis_name(r, n);
    sc_status s = sc_schema_read(rows, &map, &size, NULL, r->a, r->err);
    strategy_keep(r, s);
    r->no_sizes = r->no_sizes || s != SC_OK;
    r->s->axis[r->s->n_axes++] = (sc_mesh_axis){.name = name,
                                                .size = (uint32_t)size,
                                                .pos = n->key_pos,
                                                .is = sc_axis_named(name)};
}

static void read_mesh(strategy_reader *r, const sc_node *mesh)
{
    sc_strategy *s = r->s;
    if (!mesh) return;
    s->mesh_pos = mesh->pos;
    if (mesh->kind != SC_N_MAP || mesh->n == 0) {
        r->no_mesh = true;
        strategy_wrong(r, SC_C_TYPE, mesh->pos,
                       "mesh: {pp: 2, dp: 4, tp: 4}, outer to inner",
                       "a mesh must be a mapping of axes to their sizes");
        return;
    }
    if (mesh->n > SC_MESH_AXES)
        strategy_wrong(r, SC_C_TOO_BIG, mesh->pos, NULL,
                       "the mesh has %u axes; at most %d are possible", mesh->n,
                       SC_MESH_AXES);
    for (const sc_node *n = mesh->child; n && s->n_axes < SC_MESH_AXES;
         n = n->next)
        read_axis(r, n);
    uint64_t ranks = 1;
    for (uint32_t i = 0; i < s->n_axes && ranks <= MAX_RANKS; i++)
        ranks *= s->axis[i].size;
    if (ranks > MAX_RANKS)
        strategy_wrong(r, SC_C_TOO_BIG, mesh->pos, NULL,
                       "the mesh has more than %llu ranks",
                       (unsigned long long)MAX_RANKS);
}

/* ---- pipeline -------------------------------------------------------- */

static bool whole(strategy_reader *r, const sc_node *n, const char *name,
                  uint32_t *out)
{
    int64_t v = 0;
    const sc_key key = {.name = name,
                        .type = SC_T_INT,
                        .unit = SC_U_COUNT,
                        .min = 1,
                        .max = 1 << 20};
    sc_status s = SC_EINPUT;
    if (n->kind == SC_N_SCALAR && !n->quoted)
        s = sc_schema_set(&key, n->text, n->pos, &v, r->a, r->err);
    else
        strategy_wrong(r, SC_C_TYPE, n->pos, NULL,
                       "%s must be a whole number here", name);
    strategy_keep(r, s);
    *out = (uint32_t)v;
    return s == SC_OK;
}

static void read_in_flight(strategy_reader *r, const sc_node *n)
{
    sc_strategy *s = r->s;
    if (!n || (n->kind == SC_N_SCALAR && strcmp(n->text, "auto") == 0)) return;
    if (n->kind != SC_N_SEQ || n->n == 0) {
        strategy_wrong(r, SC_C_TYPE, n->pos, "write auto or [4, 3, 2, 1]",
                       "max_in_flight must be a list with a number per stage");
        return;
    }
    uint32_t *list = SC_NEW_N(r->a, uint32_t, n->n), i = 0;
    if (!list) {
        strategy_keep(r, sc_error_nomem(r->err));
        return;
    }
    for (const sc_node *e = n->child; e; e = e->next)
        (void)whole(r, e, "max_in_flight", &list[i++]);
    s->in_flight = list;
    s->n_in_flight = n->n;
}

static bool is_number(const sc_node *n)
{
    return n->kind == SC_N_SCALAR && !n->quoted &&
           (n->text[0] == '-' || (n->text[0] >= '0' && n->text[0] <= '9'));
}

static void read_cut(strategy_reader *r, const sc_node *n, bool numbers,
                     sc_strategy_cut *out)
{
    out->pos = n->pos;
    if (is_number(n) != numbers || n->kind != SC_N_SCALAR)
        strategy_wrong(r, SC_C_TYPE, n->pos,
                       "[10, 14] or [layers.12, layers.24]",
                       "write the number of blocks of every stage, or the "
                       "paths at which the next ones begin");
    else if (numbers)
        (void)whole(r, n, "cuts", &out->blocks);
    else
        out->path = n->text;
}

static void read_cuts(strategy_reader *r, const sc_node *n)
{
    static const char *const kinds[] = {[SC_CUT_EVEN] = "even",
                                        [SC_CUT_LIST] = "",
                                        [SC_CUT_BALANCED] = "balanced"};
    sc_strategy *s = r->s;
    if (!n) return;
    for (unsigned i = 0; n->kind == SC_N_SCALAR && i < SC_COUNT(kinds); i++)
        if (kinds[i][0] && strcmp(kinds[i], n->text) == 0) {
            s->cuts = (sc_cut_kind)i;
            return;
        }
    if (n->kind != SC_N_SEQ || n->n == 0) {
        strategy_wrong(
            r, SC_C_TYPE, n->pos,
            "write even, balanced, [10, 14] or [layers.12, layers.24]",
            "cuts have an unknown form");
        return;
    }
    s->cut = SC_NEW_N(r->a, sc_strategy_cut, n->n);
    if (!s->cut) {
        strategy_keep(r, sc_error_nomem(r->err));
        return;
    }
    for (const sc_node *e = n->child; e; e = e->next)
        read_cut(r, e, is_number(n->child), &s->cut[s->n_cuts++]);
    s->cuts = SC_CUT_LIST;
}

/* ---- the file -------------------------------------------------------- */

/* Stores the given keys; the others keep their initial values. */
static void store_words(strategy_reader *r, const words *w)
{
    sc_strategy *s = r->s, own = *s;
    *s = w->s;
    s->file = own.file;
    s->doc = own.doc;
    r->zero_axis = w->zero_axis;
    s->optimizer = w->optimizer < 0 ? NULL : sc_optimizer_names[w->optimizer];
    s->model_pos = sc_strategy_pos(s, NULL, "model");
    s->cluster_pos = sc_strategy_pos(s, NULL, "cluster");
}

static void read_words(strategy_reader *r, const sc_node *root)
{
    words w = {.s = *r->s, .optimizer = -1};
    strategy_keep(r, sc_schema_read(top_keys, root, &w, NULL, r->a, r->err));
    section(r, root, "batch", batch_keys, &w);
    section(r, root, "preset", preset_keys, &w);
    section(r, root, "pipeline", pipeline_keys, &w);
    section(r, root, "offload", offload_keys, &w);
    section(r, root, "checkpoint", checkpoint_keys, &w);
    section(r, root, "overlap", overlap_keys, &w);
    store_words(r, &w);
    const sc_node *pipeline = sc_node_get(root, "pipeline");
    if (!pipeline || pipeline->kind != SC_N_MAP) return;
    read_cuts(r, sc_node_get(pipeline, "cuts"));
    read_in_flight(r, sc_node_get(pipeline, "max_in_flight"));
}

sc_status sc_strategy_read(const char *text, size_t len, const char *file,
                           sc_arena *a, sc_strategy *out, sc_err *err)
{
    sc_node *root = NULL;
    sc_strategy s;
    strategy_reader r = {.s = &s, .a = a, .err = err};
    sc_strategy_init(&s);
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    s.file = root->pos.file;
    static const char hint[] =
        "keys are mesh, batch, preset, pipeline, overlap, rules ...";
    if (root->kind == SC_N_NULL || (root->kind == SC_N_MAP && root->n == 0))
        return sc_error(err, SC_EINPUT, SC_C_MISSING, root->pos, hint,
                        "the strategy is empty");
    if (root->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos, hint,
                        "a strategy must be a mapping of keys");
    s.doc = root;
    read_words(&r, root);
    read_mesh(&r, sc_node_get(root, "mesh"));
    strategy_read_pools(&r, sc_node_get(root, "pools"));
    strategy_read_rules(&r, sc_node_get(root, "rules"));
    strategy_check(&r);
    if (r.first == SC_OK) *out = s;
    return r.first;
}
