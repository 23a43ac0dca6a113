/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - predicts the step of a network: chooses the open parts of mesh and
 * batch, then infers, lowers, runs and adds up memory.
 */
#include "predict/net.h"

#include <math.h>
#include <string.h>

bool predict_by_net(const sc_job *job, const sc_model *model)
{
    const char *why;
    sc_pos at;
    if (model->net || job->compat) return true;
    return job->tree && !sc_strategy_searchable(job->tree, &why, &at);
}

/* ---- mesh ---------------------------------------------------------------- */

static void add_axis(sc_strategy *s, sc_axis axis, uint64_t size)
{
    if (size > 1) sc_strategy_add_axis(s, axis, (uint32_t)size);
}

/* ---- embedding tables ---------------------------------------------------- */

/* Fraction of a device's memory: tables that take more, in fp32, are not
 * replicated. This is an assumption; optimizer states need as much again. */
#define TABLE_SHARE 0.25
#define TABLE_BYTES 4

/* The common prefix of the paths of all tables, up to a dot: "emb.". Returns
 * its length; 0 if there is none. */
static size_t common_prefix(const sc_net *g, const char **path, double *params)
{
    size_t n = 0;
    *path = NULL;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const sc_net_op *op = &g->op[i];
        if (op->type != SC_NET_EMBED || op->n_weight == 0) continue;
        *params += sc_tensor_elements(&g->tensor[op->weight[0].tensor], 1);
        if (!*path) {
            *path = op->path;
            n = strlen(op->path);
        }
        size_t same = 0;
        while (same < n && (*path)[same] == op->path[same]) same++;
        n = same;
    }
    while (n > 0 && (*path)[n - 1] != '.') n--;
    return n;
}

/* Spreads tables that do not fit on each device, so that every rank has the
 * same number of lookups, as recommendation programs do. A table is whole on
 * one rank; a large one is split by rows and columns over several. */
static sc_status place_tables(net_prediction *x, sc_err *err)
{
    sc_strategy *s = &x->tree;
    const sc_net *g = x->net_run.net;
    const char *path;
    double params = 0;
    size_t n = common_prefix(g, &path, &params);
    int dp = sc_strategy_axis(s, SC_AX_DP);
    if (n == 0 || dp < 0 || s->axis[dp].size < 2) return SC_OK;
    if (TABLE_BYTES * params < TABLE_SHARE * (double)x->hw->device->mem_bytes)
        return SC_OK;
    sc_strategy_rule *r = SC_NEW(x->a, sc_strategy_rule);
    const char *match = sc_sprintf(x->a, "%.*s*", (int)n, path);
    if (!r || !match) return sc_error_nomem(err);
    *r = (sc_strategy_rule){.match = match,
                            .origin = "tables too large for one device",
                            .recompute = -1,
                            .tier = -1,
                            .round_robin = true,
                            .balanced = true,
                            .assign = sc_axes_add(0, (uint32_t)dp)};
    s->rule = r;
    s->n_rules = 1;
    predict_note(&x->assume,
                 "tables %s are sharded evenly over all ranks: together they "
                 "have %.1f GiB",
                 match, TABLE_BYTES * params / SC_GIB);
    return SC_OK;
}

/* The largest number of devices in a node over which one sample is split: a
 * power of two. It is more than 1 only if the program can split positions
 * and samples leave devices idle. */
static uint32_t most_spatial(const net_prediction *x, uint64_t used)
{
    uint32_t n = 1, nodes = x->hw->n_nodes ? x->hw->n_nodes : 1;
    uint32_t node = x->hw->n_devices / nodes;
    bool windows = false;
    for (uint32_t i = 0; i < x->net_run.net->n_ops; i++)
        for (uint32_t k = 0; k < x->net_run.net->op[i].n_iter; k++)
            windows |= x->net_run.net->op[i].iter[k].halo > 0;
    if (!x->sw->spatial || !windows) return 1;
    while (2 * n <= node && (uint64_t)2 * n * used <= x->hw->n_devices) n *= 2;
    return n;
}

/* Uses pipeline and data parallelism over as many devices as there are
 * samples. */
static sc_status usual_mesh(net_prediction *x, sc_err *err)
{
    sc_strategy *s = &x->tree;
    uint64_t n = x->hw->n_devices, pp = x->job->pp ? (uint64_t)x->job->pp : 1;
    if (n % pp != 0)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, sc_pos_file("--pp"), NULL,
                        "%llu does not divide %llu devices",
                        (unsigned long long)pp, (unsigned long long)n);
    uint64_t dp = n / pp, gbs = (uint64_t)x->job->gbs;
    if (x->job->dp && (uint64_t)x->job->dp > dp)
        return sc_error(
            err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file("--dp"), NULL,
            "%lld replicas of %llu stages do not fit on %llu devices",
            (long long)x->job->dp, (unsigned long long)pp,
            (unsigned long long)n);
    if (x->job->dp) dp = (uint64_t)x->job->dp;
    if (gbs && gbs < dp) dp = gbs;
    if (gbs)
        while (gbs % dp != 0) dp--;
    x->spatial = most_spatial(x, dp * pp);
    add_axis(s, SC_AX_PP, pp);
    add_axis(s, SC_AX_DP, dp);
    if (s->n_axes == 0) sc_strategy_add_axis(s, SC_AX_DP, 1);
    add_axis(s, SC_AX_SPATIAL, x->spatial);
    return place_tables(x, err);
}

/* Notes the open choices of a transformer that are not searched because of
 * its strategy. */
static void note_fixed(net_prediction *x)
{
    const sc_strategy *s = &x->tree;
    bool pipeline = sc_strategy_degree(s, SC_AX_PP) > 1;
    const char *why, *open = "";
    sc_pos at;
    if (!x->job->tree || x->model->net || x->job->compat ||
        sc_strategy_searchable(x->job->tree, &why, &at))
        return;

    const struct {
        bool fixed;
        const char *what;
    } rows[] = {
        {s->recompute < 0, "recompute none"},
        {s->zero < 0 && sc_strategy_axis(s, SC_AX_FSDP) < 0, "ZeRO stage 0"},
        {pipeline && s->schedule < 0, "schedule 1f1b"},
        {pipeline && !s->virtual_stages, "virtual stages 1"}};

    for (size_t i = 0; i < SC_COUNT(rows); i++)
        if (rows[i].fixed && open)
            open = sc_sprintf(x->a, "%s%s%s", open, *open ? ", " : "",
                              rows[i].what);
    if (open && *open)
        predict_note(&x->assume, "%s: not searched for, since %s (%s:%u:%u)",
                     open, why, at.file, at.line, at.col);
}

static sc_status mesh(net_prediction *x, sc_err *err)
{
    sc_strategy *s = &x->tree;
    if (x->job->tree) {
        *s = *x->job->tree;
    } else {
        sc_strategy_init(s);
    }
    sc_job_to_strategy(x->job, s);
    note_fixed(x);
    if (s->n_axes == 0) return usual_mesh(x, err);
    uint64_t n = sc_strategy_ranks(s);
    if (n != x->hw->n_devices)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, s->mesh_pos,
                        "change the mesh or the machine",
                        "the mesh has %llu ranks, the machine %u devices",
                        (unsigned long long)n, x->hw->n_devices);
    return SC_OK;
}

/* ---- batch --------------------------------------------------------------- */

static double each_sample(const sc_net_step *s)
{
    return (double)s->run.makespan / ((double)s->job->micro * s->job->ga);
}

/* Whether a step fits where the other does not, or is faster per sample of a
 * replica. */
static bool is_better(const sc_net_step *s, const sc_net_step *than)
{
    bool fits = predict_net_fits(s);
    if (fits != predict_net_fits(than)) return fits;
    return each_sample(s) < each_sample(than);
}

/* Tries a micro-batch and keeps it if it is better. */
static sc_status offer(net_prediction *x, uint64_t micro, uint32_t ga,
                       sc_net_step *best, bool *any, sc_err *err)
{
    sc_net_step s;
    SC_TRY(predict_net_run(x, micro, ga, x->a, &s, err));
    x->tried++;
    if (!*any || is_better(&s, best)) *best = s;
    *any = true;
    return SC_OK;
}

/* Largest number of micro-batches to try: a pipeline of a hundred stages is
 * then full nearly all of the time. */
#define MAX_TRIED 4096

/* Tries divisors of the replica's batch from the largest down, until one
 * fits and no smaller one can be faster. */
static sc_status infer_micro(net_prediction *x, uint64_t batch,
                             sc_net_step *best, sc_err *err)
{
    bool any = false;
    uint32_t tries = 0,
             stages = (uint32_t)sc_strategy_degree(&x->tree, SC_AX_PP);
    for (uint64_t ga = 1; ga <= batch && ga <= MAX_TRIED && tries < 12; ga++) {
        if (batch % ga != 0) continue;
        tries++;
        SC_TRY(offer(x, batch / ga, (uint32_t)ga, best, &any, err));
        if (predict_net_fits(best) && ga >= 2 * (uint64_t)stages) break;
        if (predict_net_fits(best) && stages == 1) break;
    }
    sc_assert(any); /* 1 divides the batch */
    predict_note(&x->assume, "micro-batch %llu: %s",
                 (unsigned long long)best->job->micro,
                 !predict_net_fits(best)
                     ? "the fastest; none of the values tried fits"
                 : stages > 1 ? "the fastest that fits"
                              : "the largest that fits");
    return SC_OK;
}

/* Tries powers of two of samples per device until the next one no longer
 * helps. */
static sc_status infer_batch(net_prediction *x, sc_net_step *best, sc_err *err)
{
    bool any = false;
    double last = INFINITY;
    for (uint64_t micro = 1; micro <= 1024; micro *= 2) {
        SC_TRY(offer(x, micro, 1, best, &any, err));
        double each = (double)best->run.makespan / (double)best->job->micro;
        if (best->job->micro != micro || each > 0.98 * last) break;
        last = each;
    }
    unsigned long long each = best->job->micro;
    predict_note(
        &x->assume,
        "global batch %llu: %llu samples per replica; a larger one would be "
        "less than 2 %% faster",
        each * sc_strategy_replicas(&x->tree), each);
    return SC_OK;
}

/* Each micro-batch is run separately, kernel by kernel. */
#define MAX_GA 65536

static sc_status batch(net_prediction *x, sc_net_step *best, sc_err *err)
{
    const sc_job *j = x->job;
    uint64_t dp = sc_strategy_replicas(&x->tree), gbs = (uint64_t)j->gbs;
    uint64_t mbs = (uint64_t)j->mbs;
    if (x->net_run.net->fixed && mbs > 1)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT,
                        sc_pos_file("--micro-batch"), NULL,
                        "the trace has one batch: it is one sample");
    uint64_t parts = j->accumulation ? (uint64_t)j->accumulation : 1;
    if (!gbs && !mbs) return infer_batch(x, best, err);
    if (!gbs) gbs = mbs * dp * parts;
    if (mbs && predict_net_mixed(x))
        return predict_net_replicas(x, gbs, mbs, best, err);
    if (gbs % dp != 0)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE,
                        sc_pos_file("--global-batch"), NULL,
                        "%llu replicas do not divide %llu samples",
                        (unsigned long long)dp, (unsigned long long)gbs);
    uint64_t each = gbs / dp;
    if (!mbs && j->accumulation && each % parts == 0) mbs = each / parts;
    if (!mbs) return infer_micro(x, each, best, err);
    if (j->accumulation && mbs * parts != each)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT,
                        sc_pos_file("--accumulation"), NULL,
                        "%llu samples of a replica are not %llu micro-batches",
                        (unsigned long long)each, (unsigned long long)parts);
    if (each % mbs != 0)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE,
                        sc_pos_file("--micro-batch"), NULL,
                        "%llu does not divide the %llu samples of a replica",
                        (unsigned long long)mbs, (unsigned long long)each);
    if (each / mbs > MAX_GA)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG,
                        sc_pos_file("--global-batch"),
                        "use larger micro-batches, or fewer samples",
                        "a replica has more than %d micro-batches", MAX_GA);
    return predict_net_run(x, mbs, (uint32_t)(each / mbs), x->a, best, err);
}

static void note_idle(net_prediction *x)
{
    unsigned long long gbs = (unsigned long long)x->job->gbs;
    x->idle = x->hw->n_devices - (uint32_t)sc_strategy_ranks(&x->tree);
    if (!x->idle) return;
    const char *why =
        gbs ? sc_sprintf(x->a,
                         "%llu samples are too few or cannot be divided evenly",
                         gbs)
            : "the number of replicas is given";
    predict_note(&x->assume, "%u of %u devices are idle: %s", x->idle,
                 x->hw->n_devices, why ? why : "");
}

/* Finds the best number of parts to split a sample into. */
static sc_status spread(net_prediction *x, sc_net_step *best, sc_err *err)
{
    uint32_t parts = 0, n_axes = x->tree.n_axes;
    const predict_notes before = x->assume;
    predict_notes notes = before;
    if (!x->spatial) return batch(x, best, err);
    for (uint32_t n = x->spatial; n >= 1; n /= 2) {
        sc_net_step s;
        x->assume = before;
        if (n > 1) x->tree.axis[n_axes - 1].size = n;
        if (n == 1 && x->spatial > 1) x->tree.n_axes--;
        SC_TRY(batch(x, &s, err));
        if (parts && !is_better(&s, best)) continue;
        *best = s;
        notes = x->assume;
        parts = n;
    }
    x->assume = notes;
    if (parts > 1) {
        x->tree.n_axes = n_axes;
        x->tree.axis[n_axes - 1].size = parts;
        predict_note(&x->assume,
                     "positions of a sample are split over %u ranks: there are "
                     "more devices than replicas",
                     parts);
    }
    note_idle(x);
    return SC_OK;
}

/* ---- the job ------------------------------------------------------------- */

/* Default: Adam for sequences, SGD for images and clicks. */
static const char *usual_optimizer(const sc_net *g)
{
    if (g->optimizer) return g->optimizer;
    return strcmp(g->sample, "sequence") == 0 ? "adam" : "sgd";
}

static void note_optimizer(net_prediction *x)
{
    const sc_net_run *g = &x->net_run;
    if (g->net->optimizer)
        predict_note(&x->assume, "optimizer %s: that of %s", g->optimizer,
                     g->net->name);
    else
        predict_note(&x->assume, "optimizer %s: usual for models of %ss",
                     g->optimizer, g->net->sample);
}

static void note_tables(net_prediction *x)
{
    const sc_net *g = x->net_run.net;
    bool rows = false;
    for (uint32_t i = 0; i < g->n_ops; i++) rows |= g->op[i].sparse;
    if (!rows || x->rules->tables_dense || x->job->forward_only) return;
    predict_note(&x->assume,
                 "tables: a fused optimizer updates the rows that were looked "
                 "up, so only these have gradients; tables that replicas sum "
                 "have whole ones");
}

/* Programs with tensor parallelism pad the vocabulary. */
static sc_status pad_vocabulary(net_prediction *x, sc_err *err)
{
    const sc_strategy *s = x->job->tree;
    int tp = s && s->tensor_parallel > 0 ? sc_strategy_axis(s, SC_AX_TP) : -1;
    uint32_t parts = tp >= 0 ? s->axis[tp].size : 1;
    int64_t vocab = x->model->t.vocab;
    SC_TRY(sc_model_pad(x->model, parts, x->a, &x->model, err));
    if (x->model->t.vocab != vocab)
        predict_note(&x->assume,
                     "vocabulary %lld: %lld padded to a multiple for tp %u",
                     (long long)x->model->t.vocab, (long long)vocab, parts);
    return SC_OK;
}

static sc_status graph_of(net_prediction *x, sc_run *r, sc_err *err)
{
    if (x->model->note) predict_note(&x->warn, "%s", x->model->note);
    if (x->model->net) {
        x->net_run.net = x->model->net;
        if (x->model->net->note)
            predict_note(&x->assume, "%s", x->model->net->note);
        return SC_OK;
    }
    r->seq = x->job->seq ? (uint64_t)x->job->seq : 0;
    if (!r->seq) {
        int64_t most = x->model->t.max_seq;
        r->seq = most > 0 && most < 8192 ? (uint64_t)most : 8192;
        predict_note(&x->assume,
                     "sequence %llu: the model's maximum, but at most 8192",
                     (unsigned long long)r->seq);
    }
    SC_TRY(pad_vocabulary(x, err));
    return sc_net_from_model(x->model, r->seq, x->rules->attention_unfused,
                             x->a, &x->net_run.net, err);
}

/* Bytes per gradient on the wire; 0: as for weights. */
static double gradient_bytes(const net_prediction *x)
{
    return x->rules->gradients_as_weights ? 0 : x->sw->reduce_bytes;
}

/* The fixed time of a step was measured on transformers, and not in modes
 * that model other programs. */
static bool measured(const net_prediction *x)
{
    return !x->model->net && !x->rules->nothing_fixed;
}

static sc_status unknown_mode(const net_prediction *x, sc_err *err)
{
    const char *names[8] = {NULL};
    uint32_t n = 0;
    const sc_rules *rows = sc_rules_all(&n);
    for (uint32_t i = 0, at = 0; i < n && at + 1 < SC_COUNT(names); i++)
        if (rows[i].of_steps) names[at++] = rows[i].name;
    const char *near = sc_nearest(x->job->compat, names);
    const char *hint = near ? sc_sprintf(x->a, "did you mean %s?", near) : NULL;
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME,
                    sc_pos_option(x->a, "--compat", x->job->compat), hint,
                    "there is no mode \"%.40s\"", x->job->compat);
}

static sc_status prepare(net_prediction *x, sc_run *r, sc_err *err)
{
    sc_net_run *g = &x->net_run;
    x->rules = sc_rules_find(x->job->compat);
    if (!x->rules || !x->rules->of_steps) return unknown_mode(x, err);
    predict_precision(x->job, r, &x->assume);
    SC_TRY(predict_format(x->job, r, err));
    SC_TRY(predict_check_net(x->job, x->hw, x->model, x->sw, err));
    SC_TRY(predict_net_refuse(x, err));
    SC_TRY(graph_of(x, r, err));
    SC_TRY(mesh(x, err));
    if (x->job->schedule_file)
        SC_TRY(sc_schedule_load(x->job->schedule_file, x->a, &r->order, err));
    *g = (sc_net_run){.hw = x->hw,
                      .net = g->net,
                      .strategy = &x->tree,
                      .sw = x->sw,
                      .cost = x->cost,
                      .rules = x->rules,
                      .precision = r->precision,
                      .recipe = r->recipe,
                      .optimizer = x->job->optimizer,
                      .grad_bytes = gradient_bytes(x),
                      .compress = r->compress,
                      .reserve = measured(x) ? x->sw->fragmentation : 0,
                      .update_bytes = measured(x) ? x->sw->update_bytes : 0,
                      .opts = x->job->opts,
                      .unfold = x->job->no_symmetry,
                      .joined = !x->job->each,
                      .order = r->order};
    /* With pools, the arena is restored before the step runs, which would
     * free the links. */
    if (!x->tree.n_pools && !(g->links = sc_net_plan_links(x->a)))
        return sc_error_nomem(err);
    if (!g->optimizer) g->optimizer = x->tree.optimizer;
    if (!g->optimizer) {
        g->optimizer = usual_optimizer(g->net);
        if (!g->forward_only) note_optimizer(x);
    }
    note_tables(x);
    if (!x->job->op_times) return SC_OK;
    return sc_optable_load(x->job->op_times, x->a, &g->table, err);
}

sc_status predict_net_software(const sc_job *job, const sc_run *run,
                               sc_arena *a, const sc_software **out,
                               sc_err *err)
{
    const sc_software *sw = run->sw;
    if (run->model->net && !job->software)
        SC_TRY(sc_software_find("default for operator networks", NULL,
                                sc_pos_none(), a, &sw, err));
    sw = predict_software(job, sw, a);
    if (!sw) return sc_error_nomem(err);
    *out = sw;
    return job->tree ? sc_strategy_software(job->tree, a, out, err) : SC_OK;
}

/* The fastest step; with unequal replicas if devices differ. */
static sc_status fastest(net_prediction *x, sc_net_step *best, sc_err *err)
{
    SC_TRY(spread(x, best, err));
    if (!predict_net_mixed(x) || x->net_run.strategy != &x->tree) return SC_OK;
    return predict_net_replicas(x, (uint64_t)llround(best->plan.samples),
                                best->job->micro, best, err);
}

sc_status predict_net(const sc_job *job, const sc_run *run, predict_memo *memo,
                      const sc_net_step *known, sc_arena *a, sc_prediction *out,
                      sc_err *err)
{
    const net_layers layers = {run, memo};
    net_prediction *x = SC_NEW(a, net_prediction);
    sc_net_step *step = SC_NEW(a, sc_net_step);
    sc_prediction p = {.run = {.hw = run->hw,
                               .model = run->model,
                               .cost = run->cost,
                               .strategy = job->tree}};
    if (!x || !step) return sc_error_nomem(err);
    x->job = job;
    x->hw = run->hw;
    x->model = run->model;
    x->cost = run->cost;
    x->known = known;
    if (memo && !predict_walks(job)) x->layers = &layers;
    x->a = a;
    x->assume.arena = x->warn.arena = a;
    SC_TRY(predict_net_software(job, run, a, &x->sw, err));
    p.run.sw = x->sw;
    SC_TRY(prepare(x, &p.run, err));
    SC_TRY(fastest(x, step, err));
    p.analytic_s = NAN;
    if (job->fidelity) {
        p.analytic_s = sc_time_to_s(step->run.makespan);
        SC_TRY(predict_net_simulate(x, step, err));
    }
    p.net = step;
    p.by_mesh = true;
    p.n_candidates = x->tried;
    SC_TRY(predict_net_result(x, step, &p, err));
    p.analytic_s += p.step_time_s - sc_time_to_s(step->run.makespan);
    predict_net_idle(x, step);
    if (!job->brief) SC_TRY(predict_net_suggest(x, step, &p, err));
    SC_TRY(predict_keep_notes(&x->assume, &x->warn, a, &p, err));
    *out = p;
    return SC_OK;
}
