/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.c - searches the choices that a job leaves open, the most promising
 * first, until no remaining choice can be faster.
 *
 * A mesh divides the machine and the batch. Its lower bound prices its kernels
 * once for any pipeline, sharding and recomputation: all devices together
 * compute every micro-batch of every layer. Legal but unusual choices are tried
 * only if no usual one fits.
 */
#include "predict/space_mesh.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sc_law predict_law_of(const sc_job *job, const sc_software *sw)
{
    sc_law l = {sw->axes, sw->schedules, sw->zero_stages, sw->recomputes,
                sw->sequence_parallel};
    bool pipeline = space_has(sw->axes, SC_AX_PP) || job->pp > 1;
    if (pipeline && !l.schedules)
        l.schedules = 1u << SC_SCH_1F1B | 1u << SC_SCH_INTERLEAVED;
    if (job->hsdp) l.zero_stages = 1u << 3;
    if (!l.zero_stages) l.zero_stages = 1;
    if (!l.recomputes) l.recomputes = 1u << SC_RC_NONE;
    return l;
}

static bool fits(const search_space *x)
{
    return x->out->have_best || x->out->have_tight;
}

/* A choice must be faster than this. */
static double to_beat(const search_space *x)
{
    return x->out->have_best ? x->out->best.step_s : x->beat_s;
}

/* ---- one variant --------------------------------------------------------- */

static bool open_choice(const sc_job *j)
{
    return !j->tp || !j->pp || (!j->mbs && !j->accumulation) ||
           j->recompute < 0;
}

/* A run that does not fit with at least this peak is useless. */
static double smallest(const search_space *x)
{
    const predict_choice *c = x->out;
    if (fits(x) || x->beat_s < INFINITY) return 0;
    return c->have_least ? c->least.peak : INFINITY;
}

static void keep_least(search_space *x, const predict_eval *e)
{
    predict_choice *c = x->out;
    if (!c->have_least || e->peak < c->least.peak) c->least = *e;
    c->have_least = true;
}

/* Of equally fast runs, the one that shards and offloads less is chosen. */
static bool moves_less(const sc_run *r, const sc_run *than)
{
    double mine = r->offload + r->offload_weights,
           theirs = than->offload + than->offload_weights;
    return r->zero < than->zero || (r->zero == than->zero && mine < theirs);
}

/* `*done`: more recomputation would not improve it. */
static sc_status try_one(search_space *x, const sc_run *r, bool *done)
{
    predict_choice *c = x->out;
    predict_eval e;
    double beat = to_beat(x);
    double most = smallest(x);
    sc_err why;
    sc_err_init(&why);
    sc_status s = predict_evaluate(r, beat, most, x->memo, &e, &why);
    if (s == SC_EINPUT) { /* another choice may be legal */
        if (!x->refused.n) x->refused = why;
        *done = true;
        return SC_OK;
    }
    if (s != SC_OK) {
        *x->err = why;
        return s;
    }
    c->tried++;
    *done = e.slower || (e.fits && e.step_s >= x->beat_s);
    if (*done) return SC_OK;
    keep_least(x, &e);
    if (!e.fits) return SC_OK;
    /* Our own choices leave some memory free, because the formulas are not
     * exact. */
    if (open_choice(x->job) && e.full > 1 - PREDICT_FREE) {
        if (!c->have_tight || e.step_s < c->tight.step_s) c->tight = e;
        c->have_tight = true;
        return SC_OK;
    }
    bool less = e.step_s == c->best.step_s && moves_less(r, &c->best.run);
    if (!c->have_best || e.step_s < c->best.step_s || less) c->best = e;
    c->have_best = true;
    *done = true;
    return SC_OK;
}

/* Faster than PCIe (64 GB/s): NVLink-C2C and similar links. */
static const double coherent_link = 100e9;

static bool can_offload(const search_space *x, const sc_run *r)
{
    return x->job->offload < 0 && r->sw->offload && !r->forward_only &&
           r->size[SC_AX_PP] == 1 && r->recompute == SC_RC_NONE &&
           r->hw->device->host_bw >= coherent_link;
}

/* Whether expanded memory may keep what the job leaves open. */
static bool can_expand(const search_space *x, const sc_run *r)
{
    const sc_job *j = x->job;
    return r->hw->expanded.bytes > 0 && !r->hw->expanded.spread &&
           j->offload < 0 && j->offload_to <= 0 && j->offload_weights <= 0 &&
           !j->strategy;
}

/* Moves the i-th eighth of what expanded memory may keep there, those bytes
 * first that a step uses least often (docs/memory.md): states are read and
 * written once a step, activations once in each round of micro-batches in
 * flight, weights twice for each micro-batch. */
static bool expand(const search_space *x, int i, sc_run *r)
{
    bool states = !r->forward_only && predict_states_open(x->job);
    bool saved = !r->forward_only;
    if (sc_run_stays_gathered(r) && i > 16) return false;
    if (i > 0) r->offload_to = SC_OFFLOAD_EXPANDED;
    if (states) r->optim_tier = SC_TIER_EXPANDED;
    r->offload = saved ? fmin(1, i / 8.0) : 0;
    r->offload_weights = i > 8 ? (i - 8) / 8.0 : 0;
    return i == 0 ? states : i <= 8 ? saved : i <= 16;
}

/* Offloads the smallest fraction of activations that fits, if the program
 * can, nothing is recomputed, and the link is fast enough; to expanded memory
 * whatever does not fit. */
static sc_status try_offload(search_space *x, sc_run r)
{
    bool open = can_offload(x, &r), done = false;
    sc_run own = r;
    for (int i = 0; can_expand(x, &r) && i <= 16 && !done; i++)
        if (expand(x, i, &own)) SC_TRY(try_one(x, &own, &done));
    for (int i = 1; open && i <= 8 && !done; i++) {
        r.offload = i / 8.0;
        SC_TRY(try_one(x, &r, &done));
    }
    return SC_OK;
}

/* From the least recomputation to the most. */
static const sc_recompute recomputes[] = {SC_RC_NONE, SC_RC_SELECTIVE,
                                          SC_RC_OPS, SC_RC_FULL};

static bool recompute_open(const search_space *x, sc_recompute rc)
{
    if (x->job->recompute >= 0) return (int)rc == x->job->recompute;
    if (x->base.forward_only) return rc == SC_RC_NONE;
    return space_has(x->law.recomputes, (int)rc);
}

static sc_recompute least_recompute(const search_space *x)
{
    size_t i = 0;
    while (i + 1 < SC_COUNT(recomputes) && !recompute_open(x, recomputes[i]))
        i++;
    return recomputes[i];
}

/* Tries the least recomputation that fits, from `*from` on, and stores it
 * there. */
static sc_status try_recompute(search_space *x, sc_run r, size_t *from)
{
    bool done = false;
    for (size_t i = *from; i < SC_COUNT(recomputes) && !done; i++) {
        if (!recompute_open(x, recomputes[i])) continue;
        *from = i;
        r.recompute = recomputes[i];
        r.offload = fmax(0, x->job->offload);
        SC_TRY(try_one(x, &r, &done));
        if (!done) SC_TRY(try_offload(x, r));
    }
    return SC_OK;
}

/* ---- sharding ------------------------------------------------------------ */

static bool sharding_open(const search_space *x, const sc_run *r, int zero)
{
    const sc_job *j = x->job;
    uint64_t ranks =
        (uint64_t)r->size[SC_AX_DP] * r->size[SC_AX_EP] * r->size[SC_AX_CP];
    if (j->fsdp || j->zero >= 0) return zero == (j->fsdp ? 3 : (int)j->zero);
    /* formats that differ by rank sum unsharded gradients */
    if (ranks == 1 || r->compress.kind >= SC_GRAD_TOPK) return zero == 0;
    return space_has(x->law.zero_stages, zero);
}

/* Tries the most sharding first: less sharding needs more memory, and so at
 * least as much recomputation. */
static sc_status try_sharding(search_space *x, sc_run r)
{
    double least = 0, beat = to_beat(x);
    size_t from = 0;
    r.zero = 0;
    r.recompute = least_recompute(x);
    r.offload = 0;
    if (beat < INFINITY)
        SC_TRY(predict_least_time(&r, x->memo, &least, x->err));
    if (least >= beat) return SC_OK;
    for (r.zero = 3; r.zero >= 0; r.zero--)
        if (sharding_open(x, &r, r.zero)) SC_TRY(try_recompute(x, r, &from));
    return SC_OK;
}

/* ---- schedules ----------------------------------------------------------- */

static bool schedule_open(const search_space *x, sc_schedule s)
{
    if (x->job->schedule >= 0) return x->job->schedule == (int)s;
    return space_has(x->law.schedules, (int)s);
}

static bool chunks_legal(const search_space *x, const sc_run *r, uint32_t vpp)
{
    uint64_t pp = r->size[SC_AX_PP], layers = (uint64_t)r->model->t.layers;
    bool given = x->job->vpp > 0;
    sc_assert(vpp > 0);
    if (given && (uint64_t)x->job->vpp != vpp) return false;
    if (vpp == 1) return x->job->schedule != SC_SCH_INTERLEAVED || given;
    if (pp < 2 || !(schedule_open(x, SC_SCH_INTERLEAVED) || given))
        return false;
    /* embedding and head count as layers if the layers alone do not divide */
    uint64_t of = layers % pp == 0 ? layers : layers + 2;
    bool whole = of % (pp * vpp) == 0 && (vpp <= CHUNKS_USUAL || x->unusual);
    return sc_schedule_rounds(r->sw, pp, r->ga) && (whole || given) &&
           pp * vpp <= layers + 2;
}

/* Some programs cut the batch into as many micro-batches as stages. */
static bool usual_batches(const search_space *x, const sc_run *r)
{
    uint32_t stages = r->size[SC_AX_PP] * r->vpp;
    return !x->habit || r->ga == stages;
}

/* The schedule for one chunk per device. */
static sc_schedule plain_schedule(const search_space *x)
{
    if (x->job->schedule >= 0 && x->job->schedule <= SC_SCH_INTERLEAVED)
        return (sc_schedule)x->job->schedule;
    bool gpipe = space_has(x->law.schedules, SC_SCH_GPIPE) &&
                 !space_has(x->law.schedules, SC_SCH_1F1B);
    return gpipe ? SC_SCH_GPIPE : SC_SCH_1F1B;
}

/* The run with every option that saves memory, except sharding. */
static sc_run saving(const search_space *x, sc_run r)
{
    r.vpp = 1;
    if (!r.order && x->job->schedule <= SC_SCH_GPIPE)
        r.schedule = plain_schedule(x);
    for (size_t i = 0; i < SC_COUNT(recomputes); i++)
        if (recompute_open(x, recomputes[i])) r.recompute = recomputes[i];
    r.offload = fmax(0, x->job->offload);
    for (int i = 16; can_expand(x, &r) && i >= 0 && !expand(x, i, &r);) i--;
    return r;
}

/* Whether the run could fit with everything that saves memory; true if the
 * check would cost too much. */
static sc_status hopeful(search_space *x, const sc_run *of, bool *yes)
{
    predict_choice *c = x->out;
    sc_run r = saving(x, *of);
    uint32_t before = c->tried;
    bool done = false;
    *yes = true;
    if (fits(x) || x->beat_s < INFINITY || x->n == 1 || x->job->vpp ||
        r.order || can_offload(x, of) || can_expand(x, of) ||
        x->job->schedule > SC_SCH_GPIPE)
        return SC_OK;
    for (r.zero = 3; r.zero >= 0 && !fits(x); r.zero--) {
        if (!sharding_open(x, &r, r.zero) || !usual_batches(x, &r)) continue;
        SC_TRY(try_one(x, &r, &done));
        if (!x->unusual) break;
    }
    *yes = fits(x) || c->tried == before;
    return SC_OK;
}

/* Tries schedules that fix their number of chunks: the given one, or the
 * program's. */
static sc_status try_own(search_space *x, sc_run r)
{
    bool given = x->job->schedule > SC_SCH_INTERLEAVED || r.order;
    for (int s = SC_SCH_INTERLEAVED + 1; s < SC_N_SCHEDULES; s++) {
        bool open = given ? (int)r.schedule == s
                          : s != SC_SCH_FILE && x->job->schedule < 0 &&
                                !x->job->vpp && space_has(x->law.schedules, s);
        if (!open) continue;
        r.schedule = (sc_schedule)s;
        r.vpp = r.order ? r.order->vpp : s == SC_SCH_ZB_V ? 2 : 1;
        if (usual_batches(x, &r)) SC_TRY(try_sharding(x, r));
    }
    return SC_OK;
}

static sc_status try_chunks(search_space *x, sc_run r)
{
    uint32_t given = (uint32_t)x->job->vpp, pp = r.size[SC_AX_PP];
    uint32_t most = (uint32_t)(r.model->t.layers + 2) / pp;
    bool yes = true;
    SC_TRY(hopeful(x, &r, &yes));
    if (r.schedule > SC_SCH_INTERLEAVED && pp > 1) return try_own(x, r);
    for (r.vpp = given ? given : 1; yes; r.vpp++) {
        /* the checks explain why a given pipeline can't run */
        bool explain = given && x->job->pp;
        if (r.vpp > 1 && r.vpp > most && !given) break;
        r.schedule = r.vpp > 1 ? SC_SCH_INTERLEAVED : plain_schedule(x);
        if ((explain || chunks_legal(x, &r, r.vpp)) && usual_batches(x, &r))
            SC_TRY(try_sharding(x, r));
        if (given || pp == 1) break;
    }
    return pp > 1 && yes ? try_own(x, r) : SC_OK;
}

/* ---- meshes and their bounds --------------------------------------------- */

static uint64_t kernels_key(const sc_run *r)
{
    const uint64_t key[] = {r->size[SC_AX_TP],
                            r->size[SC_AX_CP],
                            r->size[SC_AX_EP],
                            r->experts_over_tp,
                            r->mbs,
                            r->sp,
                            r->ga > 1,
                            r->size[SC_AX_PP] > 1};
    return sc_hash(key, sizeof key, 0);
}

static sc_status price_kernels(search_space *x, const sc_run *of,
                               double *seconds)
{
    sc_run r = *of;
    if (r.schedule > SC_SCH_INTERLEAVED || r.order) r.schedule = SC_SCH_1F1B;
    r.order = NULL;
    r.vpp = 1;
    r.zero = 0;
    r.recompute = least_recompute(x);
    r.offload = 0;
    return predict_kernels(&r, x->memo, seconds, x->err);
}

static sc_status bound_of(search_space *x, mesh *m)
{
    uint64_t key = kernels_key(&m->run);
    uint32_t i = 0;
    while (i < x->n_seen && x->seen[i].key != key) i++;
    if (i == x->n_seen) {
        kernels *all =
            sc_grow(x->a, x->seen, x->n_seen, &x->cap_seen, 64, sizeof *all);
        if (!all) return sc_error_nomem(x->err);
        x->seen = all;
        x->seen[i].key = key;
        SC_TRY(price_kernels(x, &m->run, &x->seen[i].seconds));
        x->n_seen++;
    }
    m->bound = x->seen[i].seconds * m->run.ga / m->run.size[SC_AX_PP];
    return SC_OK;
}

static int by_bound(const void *a, const void *b)
{
    const mesh *x = a, *y = b;
    if (x->bound != y->bound) return x->bound < y->bound ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* Once a run that does not fit is known, removes meshes on which nothing
 * fits even with everything that saves memory. For most, the weights alone
 * show it, or that they need no less memory than that run. */
static sc_status leave_hopeless(search_space *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; x->small && i < x->n; i++) {
        sc_run r = saving(x, x->mesh[i].run);
        predict_eval e = {.fits = true};
        sc_err why;
        sc_err_init(&why);
        for (r.zero = 3; r.zero > 0 && !sharding_open(x, &r, r.zero);) r.zero--;
        bool ask =
            !can_offload(x, &x->mesh[i].run) && r.schedule <= SC_SCH_GPIPE;
        sc_status s = SC_OK;
        if (ask)
            s = predict_evaluate(&r, DBL_MIN, smallest(x), x->memo, &e, &why);
        if (s == SC_ENOMEM) return sc_error_nomem(x->err);
        if (s != SC_OK || e.fits)
            x->mesh[n++] = x->mesh[i];
        else
            keep_least(x, &e);
    }
    if (x->small) x->n = n;
    return SC_OK;
}

static sc_status search(search_space *x)
{
    SC_TRY(space_meshes(x));
    SC_TRY(leave_hopeless(x));
    for (uint32_t i = 0; i < x->n && x->n > 1; i++)
        SC_TRY(bound_of(x, &x->mesh[i]));
    if (x->n > 1) qsort(x->mesh, x->n, sizeof *x->mesh, by_bound);
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->mesh[i].bound >= to_beat(x)) break;
        SC_TRY(try_chunks(x, x->mesh[i].run));
    }
    return SC_OK;
}

static sc_status nothing(const search_space *x, sc_err *err)
{
    const sc_model *m = x->base.model;
    if (x->refused.n) {
        *err = x->refused;
        return SC_EINPUT;
    }
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_none(),
                    "change the number of devices, the global batch or a "
                    "given degree",
                    "there is no legal choice of parallelism for %u devices, "
                    "global batch %llu, %lld layers, %lld heads",
                    x->base.hw->n_devices, (unsigned long long)x->base.gbs,
                    (long long)m->t.layers, (long long)m->t.heads);
}

sc_status predict_search(const sc_job *job, const sc_run *base,
                         predict_memo *memo, sc_arena *a, predict_choice *out,
                         sc_err *err)
{
    search_space x = {.job = job,
                      .law = predict_law_of(job, base->sw),
                      .base = *base,
                      .a = a,
                      .out = out,
                      .memo = memo,
                      .beat_s = memo->beat_s > 0 ? memo->beat_s : INFINITY,
                      .err = err};
    *out = (predict_choice){0};
    sc_err_init(&x.refused);
    x.habit = base->sw->stage_batches && job->pp > 1 && !job->mbs &&
              !job->accumulation;
    SC_TRY(search(&x));
    out->habit = x.habit && fits(&x);
    if (x.habit && !fits(&x)) {
        x.habit = false;
        SC_TRY(search(&x));
    }
    x.unusual = !fits(&x) && x.beat_s == INFINITY &&
                (!job->tp || !job->pp || !job->ep || !job->cp);
    x.small = out->have_least;
    predict_eval usual = out->least;
    if (x.unusual) SC_TRY(search(&x));
    /* with tp and pp given, the smallest usual choice is reported */
    if (!fits(&x) && x.small && job->tp && job->pp) out->least = usual;
    /* a search with a limit on time needs a choice with memory to spare */
    if (x.beat_s < INFINITY && !out->have_best) return nothing(&x, err);
    return out->have_least ? SC_OK : nothing(&x, err);
}

sc_status predict_given(search_space *x, sc_run *out)
{
    const sc_job *job = x->job;
    SC_TRY(space_meshes(x));
    if (x->n == 0) return nothing(x, x->err);
    sc_run r = x->mesh[0].run;
    bool own = r.schedule > SC_SCH_INTERLEAVED && r.size[SC_AX_PP] > 1;
    r.vpp = job->vpp > 0 ? (uint32_t)job->vpp : 1;
    if (own)
        r.vpp = r.order ? r.order->vpp : r.schedule == SC_SCH_ZB_V ? 2 : 1;
    else
        r.schedule = r.vpp > 1 ? SC_SCH_INTERLEAVED : plain_schedule(x);
    r.zero = job->fsdp ? 3 : job->zero > 0 ? (int)job->zero : 0;
    r.recompute = (sc_recompute)job->recompute;
    r.offload = fmax(0, job->offload);
    *out = r;
    return SC_OK;
}

struct search_space *predict_searched(const sc_job *job, const sc_run *run,
                                      const predict_memo *memo, sc_arena *a)
{
    search_space *x = SC_NEW(a, search_space);
    sc_err quiet;
    sc_err_init(&quiet);
    bool other = job->tree || run->order || run->hw->n_groups > 0 ||
                 (run->sw->stage_batches && job->pp > 1);
    if (!x || other || !memo->searched || !predict_same_run(&memo->best, run))
        return NULL;
    *x = (search_space){.job = job,
                        .law = predict_law_of(job, run->sw),
                        .base = *run,
                        .a = a,
                        .err = &quiet};
    sc_err_init(&x->refused);
    bool listed = space_meshes(x) == SC_OK;
    x->err = NULL;
    return listed ? x : NULL;
}

bool predict_looked_at(const search_space *x, const sc_run *r)
{
    bool listed = false;
    for (uint32_t i = 0; i < x->n && !listed; i++) {
        const sc_run *m = &x->mesh[i].run;
        listed = memcmp(m->size, r->size, sizeof r->size) == 0 &&
                 m->mbs == r->mbs && m->ga == r->ga && m->sp == r->sp &&
                 m->experts_over_tp == r->experts_over_tp;
    }
    sc_schedule of = r->vpp > 1 ? SC_SCH_INTERLEAVED : plain_schedule(x);
    return listed && r->offload <= 0 && r->schedule == of &&
           (r->size[SC_AX_PP] == 1 || chunks_legal(x, r, r->vpp)) &&
           sharding_open(x, r, r->zero) && recompute_open(x, r->recompute);
}
