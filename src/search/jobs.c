/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - the axes of a job that are left open, and the rules between them. */
#include "plan/plan_strategy.h"
#include "search/jobs_axes.h"

#include <string.h>

const char *const search_open_names[N_OPEN] = {
    "tp",       "cp",          "ep",   "pp", "dp",       "vp",
    "schedule", "micro-batch", "zero", "sp", "recompute"};

bool search_is_open(const char *name)
{
    for (uint32_t i = 0; i < N_OPEN; i++)
        if (strcmp(search_open_names[i], name) == 0) return true;
    return false;
}

#define RULES 400

typedef search_builder builder;

static const sc_key *key_of(const char *name)
{
    const sc_key *k = sc_job_keys;
    while (k->name && strcmp(k->name, name) != 0) k++;
    return k;
}

/* ---- values -------------------------------------------------------------- */

static void value(builder *b, uint32_t which, int64_t v)
{
    sc_search_option *o = &b->own[which];
    uint32_t cap = o->axis.n; /* grown by one: lists are short */
    int64_t *all = SC_NEW_N(b->a, int64_t, cap + 1);
    if (!all) {
        b->failed = true;
        return;
    }
    if (o->axis.n) memcpy(all, o->axis.value, o->axis.n * sizeof *all);
    for (uint32_t i = 0; i < o->axis.n; i++)
        if (all[i] == v) return;
    all[o->axis.n++] = v;
    o->axis.value = all;
}

static void divisors(builder *b, uint32_t which, uint64_t of, uint64_t most)
{
    for (uint64_t v = 1; v <= of && v <= most; v++)
        if (of % v == 0) value(b, which, (int64_t)v);
}

static void bits(builder *b, uint32_t which, uint32_t of)
{
    for (uint32_t i = 0; i < 32; i++)
        if (of >> i & 1) value(b, which, i);
}

static bool may(const builder *b, sc_axis ax)
{
    return b->law->axes >> ax & 1;
}

/* Least tokens of a rank of an open cp: the tile of queries of attention kernels
 * (Dao 2023, FlashAttention-2, section 3.3; FlashAttention-3 has 128 too). */
#define CP_TOKENS 128

/* Degrees: all divisors of the machine that the program can use. */
static void degrees(builder *b)
{
    const sc_transformer *t = &b->run->model->t;
    uint64_t n = b->run->hw->n_devices, layers = (uint64_t)t->layers;
    uint64_t parts = b->run->seq / CP_TOKENS;
    divisors(b, TP, may(b, SC_AX_TP) ? n : 1, (uint64_t)t->heads);
    divisors(b, CP, may(b, SC_AX_CP) ? n : 1, parts ? parts : 1);
    divisors(b, PP, may(b, SC_AX_PP) ? n : 1, layers);
    divisors(b, DP, n, n);
    divisors(b, EP, t->experts && may(b, SC_AX_EP) ? (uint64_t)t->experts : 1,
             n);
    bool rounds = b->law->schedules >> SC_SCH_INTERLEAVED & 1;
    value(b, VP, 1);
    if (rounds && may(b, SC_AX_PP)) {
        divisors(b, VP, layers, layers);
        divisors(b, VP, layers + 2, layers);
    }
}

static void others(builder *b)
{
    uint32_t schedules = b->law->schedules & ~(1u << SC_SCH_FILE);
    if (b->run->order) schedules = 1u << SC_SCH_FILE;
    bits(b, SCHEDULE, schedules ? schedules : 1u << SC_SCH_1F1B);
    divisors(b, BATCH, b->run->gbs, b->run->gbs);
    bits(b, ZERO, b->law->zero_stages);
    bits(b, RECOMPUTE,
         b->run->forward_only ? 1u << SC_RC_NONE : b->law->recomputes);
    value(b, SP, 0);
    if (b->law->sp) value(b, SP, 1);
}

static void only(builder *b, uint32_t which, int64_t v)
{
    b->own[which].axis.n = 0;
    value(b, which, v);
}

/* Networks of operators are divided by pipelines and replicas alone. Programs
 * that the user did not name shard and recompute as `predict` suggests. */
static void of_network(builder *b)
{
    static const uint32_t unused[] = {TP, CP, EP, SP};
    for (size_t i = 0; i < SC_COUNT(unused); i++)
        only(b, unused[i], SC_SEARCH_AS_GIVEN);
    only(b, PP, 1);
    only(b, VP, 1);
    if (may(b, SC_AX_PP)) divisors(b, PP, b->run->hw->n_devices, 64);
    if (!b->job->software) bits(b, ZERO, 15);
    only(b, RECOMPUTE, SC_RC_NONE);
    if (!b->run->forward_only && b->law->recomputes >> SC_RC_FULL & 1)
        value(b, RECOMPUTE, SC_RC_FULL);
}

/* A single value that the job gives. */
static bool single(builder *b, uint32_t which)
{
    const sc_job *j = b->job;
    const int64_t degree[] = {j->tp, j->cp, j->ep, j->pp, j->dp, j->vpp};
    int64_t v = -1;
    if (which <= VP) v = degree[which] > 0 ? degree[which] : -1;
    if (which == BATCH && j->mbs > 0) v = j->mbs;
    if (which == SCHEDULE) v = j->schedule;
    if (which == ZERO) v = j->fsdp ? 3 : j->zero;
    if (which == SP) v = j->sp;
    if (which == RECOMPUTE) v = j->recompute;
    if (v < 0) return false;
    only(b, which, v);
    return true;
}

static void values(builder *b)
{
    degrees(b);
    others(b);
    if (b->net) of_network(b);
    for (uint32_t i = 0; i < N_OPEN; i++) {
        b->own[i].found = !single(b, i);
        if (b->closed) only(b, i, SC_SEARCH_AS_GIVEN);
    }
}

/* ---- strategies ---------------------------------------------------------- */

static bool leaves_nothing(const builder *b, const sc_strategy *s)
{
    return s && (b->net || !sc_strategy_searchable(s, NULL, NULL));
}

/* What the file of a job says about an option that is an open axis. */
static bool says(const builder *b, const sc_job *file, uint32_t which,
                 int64_t *v)
{
    builder own = {.job = file, .a = b->a};
    const sc_key *k = b->own[which].key;
    own.own[which] = b->own[which];
    bool zero = which == ZERO && file->fsdp != b->job->fsdp;
    if (sc_schema_same(k, file, b->job) && !zero) return false;
    if (!single(&own, which)) return false;
    *v = own.own[which].axis.value[0];
    return true;
}

/* Open axes have the values that any file gives. */
static void values_of_files(builder *b)
{
    for (uint32_t f = 0; b->files && f < b->files->axis.n; f++) {
        const sc_job *job = &b->files->job[f];
        for (uint32_t i = 0; i < N_OPEN; i++) {
            int64_t v = SC_SEARCH_AS_GIVEN;
            if (leaves_nothing(b, job->tree) || says(b, job, i, &v))
                value(b, i, v);
        }
    }
}

/* ---- axes ---------------------------------------------------------------- */

/* The axis of strategy files; NULL: there is none. */
static const sc_search_option *files_of(const sc_search_option *given,
                                        uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (given[i].job) return &given[i];
    return NULL;
}

/* Whether points with different values differ in kind (search.h). Options that
 * divide a job do, but those that only tune it do not. */
static bool structural(const builder *b, const char *name)
{
    static const uint32_t tune[] = {VP, SCHEDULE, BATCH, SP};
    for (uint32_t i = 0; i < SC_COUNT(tune); i++)
        if (strcmp(name, search_open_names[tune[i]]) == 0) return false;
    return search_is_open(name) || sc_points_shares(b->run->sw, name) ||
           strcmp(name, "precision") == 0 || strcmp(name, "strategy") == 0;
}

static uint64_t kind_of(const builder *b)
{
    uint64_t kind = 0;
    for (uint32_t i = 0; i < b->n; i++)
        if (structural(b, b->option[i].key->name)) kind |= (uint64_t)1 << i;
    return kind;
}

/* ---- rules --------------------------------------------------------------- */

static sc_search_rule *rule(builder *b, sc_search_rule_kind kind,
                            const char *why)
{
    sc_assert(b->n_rules < b->cap_rules);
    sc_search_rule *r = &b->rule[b->n_rules++];
    *r = (sc_search_rule){
        .kind = kind, .left.times = 1, .right.times = 1, .why = why};
    return r;
}

static void when(const builder *b, sc_search_rule *r, uint32_t which,
                 bool is_not, int64_t v)
{
    r->when[r->n_when++] = (sc_search_when){b->at[which], is_not, v};
}

static uint64_t bit(const builder *b, uint32_t which)
{
    return (uint64_t)1 << b->at[which];
}

static sc_search_rule *divides(builder *b, uint64_t left, uint64_t of,
                               const char *why)
{
    sc_search_rule *r = rule(b, SC_SEARCH_DIVIDES, why);
    r->left.axes = left;
    r->right.times = of;
    return r;
}

static bool has(const builder *b, uint32_t which, int64_t v)
{
    const sc_search_axis *x = &b->option[b->at[which]].axis;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->value[i] == v) return true;
    return false;
}

/* If `which` has (not) value `v`, axis `then` is `to`, if it can be. */
static sc_search_rule *implies(builder *b, uint32_t which, int64_t v,
                               uint32_t then, int64_t to, const char *why)
{
    if (!has(b, then, to)) return NULL;
    sc_search_rule *r = rule(b, SC_SEARCH_IS, why);
    when(b, r, which, false, v);
    r->axis = b->at[then];
    r->value = to;
    return r;
}

static void mesh_rules(builder *b)
{
    const sc_transformer *t = &b->run->model->t;
    uint64_t n = b->run->hw->n_devices;
    uint64_t all = bit(b, TP) | bit(b, CP) | bit(b, PP) | bit(b, DP);
    divides(b, all, n, "tp x cp x pp x dp must be the number of devices");
    sc_search_rule *r =
        rule(b, SC_SEARCH_DIVIDES, "tp x cp x pp x dp must use all devices");
    r->left.times = n;
    r->right.axes = all;
    divides(b, bit(b, TP) | bit(b, CP), n, "tp x cp must divide the devices");
    divides(b, bit(b, TP) | bit(b, CP) | bit(b, PP), n,
            "tp x cp x pp must divide the devices");
    divides(b, bit(b, TP), (uint64_t)t->heads, "tp must divide the heads");
    divides(b, bit(b, TP), (uint64_t)t->ffn, "tp must divide the ffn width");
    divides(b, bit(b, CP), b->run->seq, "cp must divide the sequence");
    r = divides(b, bit(b, EP), 1, "ep must divide dp x tp");
    r->right.axes = bit(b, DP) | bit(b, TP);
    divides(b, bit(b, BATCH) | bit(b, DP), b->run->gbs,
            "micro-batch x dp must divide the global batch");
}

/* The layers, or the layers and both ends, divide evenly over chunks. */
static void chunk_rules(builder *b)
{
    const sc_search_axis *pp = &b->option[b->at[PP]].axis;
    uint64_t layers = (uint64_t)b->run->model->t.layers;
    for (uint32_t i = 0; i < pp->n && i < RULES / 2; i++) {
        uint64_t v = (uint64_t)pp->value[i];
        sc_search_rule *r =
            divides(b, bit(b, VP), (layers % v == 0 ? layers : layers + 2) / v,
                    "pp x vp must divide the layers");
        r->kind = SC_SEARCH_DIVIDES;
        if (v && (layers % v == 0 ? layers : layers + 2) % v != 0)
            r->right.times = 1;
        when(b, r, PP, false, (int64_t)v);
        when(b, r, VP, true, 1);
    }
    implies(b, PP, 1, VP, 1, "virtual stages need a pipeline");
    if (b->run->sw->long_rounds) return;
    sc_search_rule *r =
        divides(b, bit(b, PP) | bit(b, DP) | bit(b, BATCH), b->run->gbs,
                "the interleaved schedule runs micro-batches "
                "in rounds of pp");
    when(b, r, VP, true, 1);
}

static void schedule_rules(builder *b)
{
    const sc_search_axis *s = &b->option[b->at[SCHEDULE]].axis;
    if (s->n < 2) return;
    sc_search_rule *r = implies(b, VP, 1, SCHEDULE, SC_SCH_INTERLEAVED,
                                "virtual stages need the interleaved schedule");
    if (r) r->when[0].is_not = true;
    r = implies(b, VP, 1, SCHEDULE, SC_SCH_INTERLEAVED,
                "the interleaved schedule needs virtual stages");
    if (r) r->kind = SC_SEARCH_IS_NOT;
    int64_t plain =
        s->value[0] == SC_SCH_INTERLEAVED ? s->value[1] : s->value[0];
    implies(b, PP, 1, SCHEDULE, plain,
            "without a pipeline, there is one order");
}

static void sharding_rules(builder *b)
{
    sc_search_rule *r = implies(b, DP, 1, ZERO, 0, "ZeRO needs replicas");
    if (r) when(b, r, CP, false, 1);
    implies(b, TP, 1, SP, 0, "sequence parallelism needs tp");
    r = divides(b, bit(b, TP) | bit(b, CP), b->run->seq,
                "tp x cp must divide the sequence");
    when(b, r, SP, false, 1);
}

static void network_rules(builder *b)
{
    divides(b, bit(b, PP) | bit(b, DP), b->run->hw->n_devices,
            "pp x dp must divide the devices");
    divides(b, bit(b, BATCH) | bit(b, DP), b->run->gbs,
            "micro-batch x dp must divide the global batch");
    implies(b, PP, 1, VP, 1, "virtual stages need a pipeline");
    schedule_rules(b);
    implies(b, DP, 1, ZERO, 0, "ZeRO needs replicas");
}

static void file_rule(builder *b, uint32_t file, uint32_t axis,
                      sc_search_rule_kind kind, int64_t v, const char *why)
{
    sc_search_rule *r = rule(b, kind, why);
    r->when[r->n_when++] = (sc_search_when){0, false, file};
    r->axis = axis;
    r->value = v;
}

/* A strategy file fixes what it says, and everything else if `predict` chooses
 * nothing beside it. */
static void file_rules(builder *b)
{
    static const char *const why = "strategy files fix what they say";
    for (uint32_t f = 0; b->files && f < b->files->axis.n; f++) {
        const sc_job *job = &b->files->job[f];
        bool nothing = leaves_nothing(b, job->tree);
        for (uint32_t i = 0; i < N_OPEN; i++) {
            const sc_search_axis *axis = &b->option[b->at[i]].axis;
            bool own = axis->value == b->own[i].axis.value;
            int64_t v = SC_SEARCH_AS_GIVEN;
            if ((nothing && own) || says(b, job, i, &v))
                file_rule(b, f, b->at[i], SC_SEARCH_IS, v, why);
            else if (own && has(b, i, v) && axis->n > 1)
                file_rule(b, f, b->at[i], SC_SEARCH_IS_NOT, v, why);
        }
    }
}

/* Ranks that shard together divide the replicas, and shard something. */
static void group_rules(builder *b)
{
    const sc_key *k = sc_job_keys;
    sc_search_product group = {0, 0};
    while (!sc_points_divides_dp(k)) k++;
    if (sc_job_has(b->job, k))
        group.times = *(const uint64_t *)((const char *)b->job + k->offset);
    for (uint32_t i = 0; i < b->n; i++)
        if (b->option[i].key == k)
            group = (sc_search_product){1, (uint64_t)1 << i};
    if (group.times == 0) return;
    sc_search_rule *r = divides(b, 0, 1, "groups that shard must divide dp");
    r->left = group;
    r->right.axes = bit(b, DP);
    r = rule(b, SC_SEARCH_IS_NOT, "groups that shard need ZeRO");
    r->axis = b->at[ZERO];
    r->value = 0;
}

static sc_status empty(const builder *b, const sc_search_space *s, sc_err *err)
{
    if (sc_search_space_points(s) > 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_none(),
                    "leave out an axis; --explain-space prints all rules",
                    "no point of the space is legal on %u devices with global "
                    "batch %llu",
                    b->run->hw->n_devices, (unsigned long long)b->run->gbs);
}

static void rules(builder *b)
{
    if (b->net) {
        network_rules(b);
    } else {
        mesh_rules(b);
        chunk_rules(b);
        schedule_rules(b);
        sharding_rules(b);
        group_rules(b);
    }
    file_rules(b);
}

static sc_status number(const builder *b, sc_arena *a, sc_search_jobs *out,
                        sc_err *err)
{
    sc_search_axis *axis = SC_NEW_N(a, sc_search_axis, b->n);
    if (!axis) return sc_error_nomem(err);
    for (uint32_t i = 0; i < b->n; i++) axis[i] = b->option[i].axis;
    out->n = b->n;
    out->option = b->option;
    out->rule = b->rule;
    out->n_rules = b->n_rules;
    SC_TRY(sc_search_space_new(axis, b->n, b->rule, b->n_rules, a, &out->space,
                               err));
    return empty(b, out->space, err);
}

static sc_status open_jobs(const sc_job *job, const sc_inputs *in,
                           const sc_search_option *given, uint32_t n_given,
                           sc_arena *a, sc_search_jobs *out, sc_err *err)
{
    builder *b = SC_NEW(a, builder);
    sc_points *points = NULL;
    SC_TRY(sc_points_new(job, in, a, NULL, &points, err));
    if (!b) return sc_error_nomem(err);
    *b = (builder){.job = job,
                   .run = sc_points_run(points),
                   .law = sc_points_law(points),
                   .files = files_of(given, n_given),
                   .net = in->model->net != NULL,
                   .cap_rules = RULES,
                   .a = a,
                   .err = err,
                   .option = SC_NEW_N(a, sc_search_option, n_given + N_OPEN)};
    if (b->files) b->cap_rules += N_OPEN * b->files->axis.n;
    b->rule = SC_NEW_N(a, sc_search_rule, b->cap_rules);
    if (!b->option || !b->rule) return sc_error_nomem(err);
    b->closed = leaves_nothing(b, job->tree);
    for (uint32_t i = 0; i < N_OPEN; i++) {
        b->own[i].key = key_of(search_open_names[i]);
        b->own[i].axis.name = search_open_names[i];
    }
    values(b);
    values_of_files(b);
    if (b->failed) return sc_error_nomem(err);
    *out = (sc_search_jobs){.job = *job, .in = in, .points = points};
    search_order_axes(b, given, n_given, out);
    out->backwards = bit(b, BATCH) | bit(b, SP) | bit(b, RECOMPUTE);
    rules(b);
    out->kind = kind_of(b);
    return number(b, a, out, err);
}

bool search_moves(const sc_job *job, const sc_key *k)
{
    sc_job_away is = sc_job_keeps_away(k);
    return is == SC_AWAY_KIND || (is == SC_AWAY_LEARNS && !job->forward_only);
}

sc_status sc_search_jobs_open(const sc_job *job, const sc_inputs *in,
                              const sc_search_option *given, uint32_t n_given,
                              sc_arena *a, sc_search_jobs *out, sc_err *err)
{
    sc_job own = *job;
    bool expands = search_expands(job, in, given, n_given);
    if (expands) {
        sc_search_option *all =
            SC_NEW_N(a, sc_search_option, n_given + EXPANDED_AXES);
        if (!all) return sc_error_nomem(err);
        if (n_given) memcpy(all, given, n_given * sizeof *all);
        n_given += search_expanded_axes(job, all + n_given);
        given = all;
        sc_job_move_to(&own, SC_OFFLOAD_EXPANDED);
    }
    SC_TRY(open_jobs(&own, in, given, n_given, a, out, err));
    out->expands = expands;
    return SC_OK;
}

bool sc_search_jobs_divide(const sc_search_jobs *jobs)
{
    const sc_software *sw = sc_points_run(jobs->points)->sw;
    for (uint32_t i = 0; i < jobs->n; i++) {
        const char *name = jobs->option[i].key->name;
        if (strcmp(name, search_open_names[ZERO]) != 0 &&
            !sc_points_shares(sw, name))
            return false;
    }
    return true;
}

double sc_search_tokens(const sc_run *run)
{
    return (double)run->gbs * (double)run->seq;
}

sc_status sc_search_batch(const sc_job *job, const sc_inputs *in, sc_arena *a,
                          sc_job *out, sc_err *err)
{
    sc_points *points;
    *out = *job;
    if (job->gbs > 0) return SC_OK;
    return sc_search_jobs_batch(job, in, a, out, &points, err);
}

sc_status sc_search_jobs_batch(const sc_job *job, const sc_inputs *in,
                               sc_arena *a, sc_job *out, sc_points **points,
                               sc_err *err)
{
    sc_job any = *job;
    any.tp = any.pp = any.dp = any.cp = any.ep = any.vpp = any.mbs = 0;
    SC_TRY(sc_points_new(&any, in, a, NULL, points, err));
    *out = *job;
    if (out->gbs == 0) out->gbs = (int64_t)sc_points_run(*points)->gbs;
    return SC_OK;
}
