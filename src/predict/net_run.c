/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_run.c - computes one step of a network with all choices made: compiles
 * it, runs it by one of the engines, and computes its memory.
 */
#include "plan/plan_host.h"
#include "predict/net.h"

#include <math.h>
#include <string.h>

/* ---- one candidate ------------------------------------------------------- */

/* Fraction of a device's compute units that exchanges of gradients use.
 * Overlapped kernels and exchanges are slowed by it. */
static double overlap(const sc_net_plan *p)
{
    sc_units mean = {0};
    for (uint32_t i = 0; i < p->n_exchanges; i++) {
        const sc_net_exchange *e = &p->exchange[i];
        if (!e->p2p && e->grad) sc_units_add(&mean, e->seconds, e->channels);
    }
    return sc_units_mean(&mean, p->job->hw->device);
}

void predict_net_opts(const sc_job *job, const sc_net_plan *p, sc_sim_opts *o)
{
    sc_sim_opts_init(o);
    double rate = 1 / (1 + overlap(p)), gamma = job->gamma;
    o->hw = p->job->hw;
    o->rules = p->job->rules;
    if (job->tree && !isnan(job->tree->gamma)) gamma = job->tree->gamma;
    if (gamma >= 0) o->gamma = gamma;
    o->rate[SC_OP_COMPUTE][SC_OP_COLL] = rate;
    o->rate[SC_OP_COLL][SC_OP_COMPUTE] = rate;
}

/* The same for the fast engine. */
static void slow_of(const sc_sim_opts *o, double slow[2])
{
    slow[0] = 1 / o->rate[SC_OP_COMPUTE][SC_OP_COLL] - 1;
    slow[1] = o->gamma >= 0 ? o->gamma : slow[0];
}

/* The fast engine needs streams that run in order, and classes that
 * represent ranks. */
static bool has_clock(const net_prediction *x)
{
    return !x->rules->ready_order && !x->net_run.unfold;
}

sc_status predict_net_layers(const net_layers *x, uint32_t ga, sc_arena *a,
                             sc_net_clock *out, sc_net_save *save, sc_err *err)
{
    sc_run r = *x->run;
    predict_shape layers;
    r.ga = ga;
    r.gbs = r.mbs * ga * sc_run_dp(&r);
    SC_TRY(predict_layers(&r, x->memo, &layers, err));
    if (save) sc_plan_save(&layers.plan, layers.segments, save);
    return predict_clock(&layers, a, out, err);
}

static sc_status by_clock(const net_prediction *x, bool memory, sc_arena *a,
                          sc_net_step *s, sc_err *err)
{
    sc_net_save *save = s->plan.save.bytes > 0 ? NULL : &s->plan.save;
    if (x->layers)
        SC_TRY(predict_net_layers(x->layers, s->plan.job->ga, a, &s->clock,
                                  save, err));
    else
        SC_TRY(sc_net_plan_clock(&s->plan, s->slow, memory, a, &s->clock, err));
    if (!s->plan.expanded && s->plan.job->hw->expanded.bytes > 0)
        s->plan.expanded = s->clock.expanded;
    s->clock_s = sc_time_to_s(s->clock.makespan);
    return SC_OK;
}

/* The largest predicted peak with which a device counts as fitting. */
static double room_of(const sc_net_step *s, uint32_t device)
{
    return (double)predict_net_capacity(s, device) *
           predict_most_full(s->plan.job->cost);
}

/* Makes a step from the fast engine's result alone. */
static sc_status fast_only(const net_prediction *x, sc_arena *a, sc_net_step *s,
                           sc_err *err)
{
    const sc_strategy *tree = s->plan.job->strategy;
    int pp = sc_strategy_axis(tree, SC_AX_PP);
    uint32_t n = s->clock.n_devices, stride = sc_strategy_stride(tree, pp);
    s->fast = true;
    memcpy(s->cat, s->clock.cat, sizeof s->cat);
    s->run.makespan = s->clock.makespan;
    s->plan.step.n_classes = n;
    s->plan.step.classes = SC_NEW_N(a, sc_class, n);
    s->memory = SC_NEW_N(a, sc_mem_device, n);
    if (!s->plan.step.classes || !s->memory) return sc_error_nomem(err);
    for (uint32_t d = 0; d < n; d++) {
        const sc_net_memory *m = &s->clock.memory[d];
        s->plan.step.classes[d] =
            (sc_class){.name = sc_sprintf(a, "stage%u", d),
                       .rank = pp < 0 ? 0 : d * stride,
                       .multiplicity = s->plan.n_ranks / n};
        s->memory[d].peak_live = s->memory[d].peak_reserved = (uint64_t)m->live;
        for (uint32_t k = 0; k < SC_N_MEM_KINDS; k++)
            s->memory[d].by_kind[k] = (uint64_t)m->by_kind[k];
        s->memory[d].fits = m->live + x->sw->memory_overhead <= room_of(s, d);
    }
    return SC_OK;
}

/* A device of the execution may represent all ranks of a stage. */
uint64_t predict_net_capacity(const sc_net_step *s, uint32_t device)
{
    const sc_hw *hw = s->plan.job->hw;
    const sc_graph *x = &s->plan.step;
    const sc_strategy *tree = s->plan.job->strategy;
    int pp = sc_strategy_axis(tree, SC_AX_PP);
    uint32_t first = x->classes[device].rank;
    uint32_t at = sc_strategy_coordinate(tree, pp, first);
    if (hw->n_groups == 0) return hw->device->mem_bytes;
    uint64_t least = sc_hw_device_at(hw, first)->mem_bytes;
    for (uint32_t r = 0;
         x->classes[device].multiplicity > 1 && r < hw->n_devices; r++) {
        bool same = sc_strategy_coordinate(tree, pp, r) == at;
        uint64_t bytes = sc_hw_device_at(hw, r)->mem_bytes;
        if (same && bytes < least) least = bytes;
    }
    return least;
}

sc_status predict_net_memory(const net_prediction *x, sc_arena *a,
                             sc_net_step *step, sc_err *err)
{
    uint32_t n = step->plan.step.n_classes;
    uint64_t *capacity = SC_NEW_N(a, uint64_t, n);
    if (!capacity) return sc_error_nomem(err);
    for (uint32_t d = 0; d < n; d++) capacity[d] = (uint64_t)room_of(step, d);
    sc_mem_opts m = {.capacity_of = capacity,
                     .context = (uint64_t)x->sw->memory_overhead};
    SC_TRY(
        sc_memory_run(&step->plan.step, &step->run, &m, a, &step->memory, err));
    double late = sc_net_freed_late(step->plan.job);
    for (uint32_t d = 0; d < n; d++) {
        sc_mem_device *o = &step->memory[d];
        uint64_t *kept = &o->by_kind[SC_MEM_ACTIVATION];
        uint64_t more = (uint64_t)(late * (double)*kept);
        *kept += more;
        o->peak_live += more;
        o->peak_reserved += more;
        o->fits = o->fits && o->peak_reserved + m.context <= capacity[d];
    }
    return SC_OK;
}

/* Divides the step into categories on the device that waits least: the
 * slowest. */
void predict_net_parts(sc_net_step *s)
{
    sc_time least = -1, cat[SC_N_CATS];
    for (uint32_t d = 0; d < s->plan.step.n_classes; d++) {
        sc_result_breakdown(&s->plan.step, &s->run, d, s->run.makespan, cat);
        if (least >= 0 && cat[SC_CAT_BUBBLE] >= least) continue;
        least = cat[SC_CAT_BUBBLE];
        memcpy(s->cat, cat, sizeof s->cat);
    }
}

static sc_status by_events(const net_prediction *x, const sc_sim_opts *o,
                           sc_arena *a, sc_net_step *s, sc_err *err)
{
    SC_TRY(sc_net_plan_lower(&s->plan, a, err));
    SC_TRY(sc_sim_run(&s->plan.step, o, a, &s->run, err));
    if (!s->plan.job->timed) SC_TRY(predict_net_memory(x, a, s, err));
    predict_net_parts(s);
    return SC_OK;
}

/* ---- steps of many micro-batches ----------------------------------------- */

/* A step with at least this many passes of micro-batches is composed from
 * short ones. */
#define MANY_SLOTS 256

/* Whether every micro-batch keeps its memory until the step ends. */
static bool keeps_all(const net_prediction *x, const sc_net_plan *p)
{
    const sc_strategy *s = p->job->strategy;
    bool pipeline = sc_strategy_degree(s, SC_AX_PP) > 1;
    return pipeline && (s->schedule == SC_SCH_GPIPE || x->sw->batch_buffers);
}

/* Micro-batches after which a pipeline is steady, with the same remainder as
 * `ga`. It is `ga` itself if nothing would be saved, or if single operations
 * are to be shown. */
static uint32_t resolved(const net_prediction *x, const sc_net_plan *p,
                         uint32_t ga)
{
    const sc_strategy *s = p->job->strategy;
    uint32_t pp = (uint32_t)sc_strategy_degree(s, SC_AX_PP);
    /* A pipeline is full after pp micro-batches. It needs more if several
     * chunks are in flight, if gradients are exchanged after each
     * micro-batch, if messages share links, or if memory must be seen to
     * grow. */
    bool late =
        s->schedule == SC_SCH_INTERLEAVED || s->zero > 1 || x->job->fidelity;
    uint32_t full = late ? 4 : 2;
    uint32_t low = (keeps_all(x, p) ? 64 : full) * pp + ga % pp;
    if (!has_clock(x) || x->job->each || p->job->order) return ga;
    if (s->schedule > SC_SCH_INTERLEAVED || s->n_in_flight) return ga;
    /* messages take much longer to simulate, so the limit is lower */
    bool many = x->job->fidelity || (uint64_t)p->n_stages * ga >= MANY_SLOTS;
    return many && low + pp < ga ? low : ga;
}

/* Compiles the same program with fewer micro-batches; it only depends on
 * whether there are several. */
static sc_status short_step(const net_prediction *x, const sc_net_step *of,
                            uint32_t ga, bool timed, sc_arena *a,
                            sc_net_step *out, sc_err *err)
{
    sc_net_step s = {.plan = of->plan, .slow = {of->slow[0], of->slow[1]}};
    sc_net_run *job = SC_NEW(a, sc_net_run);
    if (!job) return sc_error_nomem(err);
    *job = *of->plan.job;
    job->ga = ga;
    job->timed = timed;
    s.plan.job = job;
    SC_TRY(by_clock(x, false, a, &s, err));
    *out = s;
    return SC_OK;
}

static uint64_t grown(uint64_t one, uint64_t two, double rounds)
{
    return (uint64_t)fmax(0,
                          (double)one + rounds * ((double)two - (double)one));
}

/* Memory after more rounds, each of which adds as much as the round between
 * the two short steps. The allocator's reserve grows by the same amount. */
static void grow(const net_prediction *x, const sc_net_step *one, double rounds,
                 sc_net_step *two)
{
    for (uint32_t d = 0; d < two->plan.step.n_classes; d++) {
        const sc_mem_device *m = &one->memory[d];
        sc_mem_device *n = &two->memory[d];
        double held = (double)n->peak_reserved / fmax(1, (double)n->peak_live);
        for (uint32_t k = 0; k < SC_N_MEM_KINDS; k++)
            n->by_kind[k] = grown(m->by_kind[k], n->by_kind[k], rounds);
        n->peak_t += (sc_time)((rounds - 1) * (double)(n->peak_t - m->peak_t));
        n->peak_live = grown(m->peak_live, n->peak_live, rounds);
        n->peak_reserved = (uint64_t)(held * (double)n->peak_live);
        n->fits = (double)n->peak_reserved + x->sw->memory_overhead <=
                  room_of(two, d);
    }
}

void predict_net_compose(const net_prediction *x, uint32_t low,
                         const sc_net_step *one, sc_net_step *two,
                         sc_net_step *inout)
{
    uint32_t pp = (uint32_t)sc_strategy_degree(inout->job->strategy, SC_AX_PP);
    sc_time rounds = (inout->job->ga - low) / pp;
    sc_time each = two->run.makespan - one->run.makespan;
    if (keeps_all(x, &inout->plan)) grow(x, one, (double)rounds, two);
    inout->plan.step = two->plan.step;
    inout->plan.expanded = two->plan.expanded;
    inout->memory = two->memory;
    inout->run = two->run;
    inout->run.makespan = one->run.makespan + rounds * each;
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        inout->cat[c] = one->cat[c] + rounds * (two->cat[c] - one->cat[c]);
    inout->low = low;
}

/* Composes a step from one of `low` micro-batches and one with a round more. */
static sc_status by_short(const net_prediction *x, const sc_sim_opts *o,
                          uint32_t low, sc_arena *a, sc_net_step *s, bool *done,
                          sc_err *err)
{
    uint32_t pp = (uint32_t)sc_strategy_degree(s->plan.job->strategy, SC_AX_PP);
    sc_net_step one, two;
    sc_time rounds = (s->job->ga - low) / pp;
    bool grows = keeps_all(x, &s->plan);
    SC_TRY(short_step(x, s, low, !grows, a, &one, err));
    SC_TRY(short_step(x, s, low + pp, false, a, &two, err));
    sc_time each = two.clock.makespan - one.clock.makespan;
    double off = (double)(one.clock.makespan + rounds * each) /
                 (double)s->clock.makespan;
    *done = fabs(off - 1) < 1e-4;
    if (!*done) return SC_OK;
    SC_TRY(by_events(x, o, a, &one, err));
    SC_TRY(by_events(x, o, a, &two, err));
    predict_net_compose(x, low, &one, &two, s);
    return SC_OK;
}

/* In a full pipeline every further pp micro-batches take the same time (1F1B
 * with constant transfers is affine in their number), so two short steps
 * give a long one. The fast engine, which computes the long one, confirms
 * it. If it does not, because overlapped work takes longer to settle,
 * `*done` is false. */
static sc_status composed(const net_prediction *x, const sc_sim_opts *o,
                          uint32_t low, sc_arena *a, sc_net_step *s, bool *done,
                          sc_err *err)
{
    uint32_t pp = (uint32_t)sc_strategy_degree(s->plan.job->strategy, SC_AX_PP);
    uint32_t ga = s->job->ga, over = ga % pp;
    do {
        SC_TRY(by_short(x, o, low, a, s, done, err));
        low = 4 * (low - over) + over;
    } while (!*done && low + pp < ga / 2);
    return SC_OK;
}

/* Compiles a step, and computes it by the fast engine if requested. */
static sc_status compiled(const net_prediction *x, const sc_net_run *job,
                          sc_arena *a, sc_net_step *s, sc_err *err)
{
    const sc_net_step *k = x->known;
    s->job = job;
    s->clock_s = NAN;
    if (!k || !k->fast || x->tree.n_pools || k->job->micro != job->micro ||
        k->job->ga != job->ga) {
        SC_TRY(sc_net_plan_compile(job, a, &s->plan, err));
        s->plan.shared = sc_net_plan_share(a);
        return s->plan.shared ? SC_OK : sc_error_nomem(err);
    }
    sc_net_run *own = SC_NEW(a, sc_net_run);
    if (!own) return sc_error_nomem(err);
    *own = *k->plan.job; /* as it was compiled */
    own->links = job->links;
    s->plan = k->plan;
    s->plan.job = own;
    s->plan.step = (sc_graph){0};
    if (x->layers) return SC_OK;
    s->clock = k->clock;
    s->clock_s = k->clock_s;
    return SC_OK;
}

/* Runs all stages for one micro-batch size. */
sc_status predict_net_run(net_prediction *x, uint64_t micro, uint32_t ga,
                          sc_arena *a, sc_net_step *out, sc_err *err)
{
    sc_sim_opts o;
    sc_net_step s = {.idle = x->idle, .layers = x->layers != NULL};
    sc_net_run *job = SC_NEW(a, sc_net_run);
    /* single operations are only available from an executed step */
    bool fast = x->job->engine == SC_ENGINE_FAST && !x->job->each;
    bool done = false;
    if (!job) return sc_error_nomem(err);
    *job = x->net_run;
    job->micro = micro;
    job->ga = ga;
    SC_TRY(compiled(x, job, a, &s, err));
    predict_net_opts(x->job, &s.plan, &o);
    slow_of(&o, s.slow);
    uint32_t low = fast ? ga : resolved(x, &s.plan, ga);
    if (has_clock(x) && isnan(s.clock_s) &&
        (!x->job->brief || fast || low < ga))
        SC_TRY(by_clock(x, fast, a, &s, err));
    if (has_clock(x) && fast) {
        SC_TRY(fast_only(x, a, &s, err));
        *out = s;
        return SC_OK;
    }
    if (low < ga) SC_TRY(composed(x, &o, low, a, &s, &done, err));
    if (!done) SC_TRY(by_events(x, &o, a, &s, err));
    *out = s;
    return SC_OK;
}

double predict_net_peak(const sc_net_step *s, uint32_t device)
{
    const sc_net_run *j = s->plan.job;
    const sc_mem_device *m = &s->memory[device];
    double held = (double)m->peak_live * (1 + j->reserve);
    return fmax((double)m->peak_reserved, held) + j->sw->memory_overhead;
}

bool predict_net_fits_on(const sc_net_step *s, uint32_t device)
{
    double room = room_of(s, device);
    return s->memory[device].fits && predict_net_peak(s, device) <= room;
}

bool predict_net_fits(const sc_net_step *s)
{
    for (uint32_t d = 0; d < s->plan.step.n_classes; d++)
        if (!predict_net_fits_on(s, d)) return false;
    return true;
}
