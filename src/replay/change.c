/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - how long things last with the changes of a replay. */
#include "replay/build.h"
#include "replay/host.h"
#include "replay/measure.h"
#include "replay/shapes.h"

#include <string.h>

const char *const sc_replay_class_names[] = {"compute", "comm", "memory",
                                             "host", NULL};

void sc_replay_change_init(sc_replay_change *c)
{
    *c = (sc_replay_change){.batch = 1};
    for (int i = 0; i < SC_N_REPLAY_CLASSES; i++) c->factor[i] = 1;
}

sc_replay_class replay_class_of(const sc_trace_span *s)
{
    return s->kind == SC_SPAN_KERNEL ? SC_REPLAY_COMPUTE
           : s->kind == SC_SPAN_COLL ? SC_REPLAY_COMM
                                     : SC_REPLAY_MEMORY;
}

static sc_time scaled(sc_time t, double factor)
{
    double v = (double)t * factor + 0.5;
    if (factor == 1) return t;
    return v < 9e18 ? (sc_time)v : SC_TIME_MAX / 4;
}

/* ---- slow ranks ---------------------------------------------------------- */

static sc_time kernel_time(const replay_rank *r)
{
    sc_time sum = 0;
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (replay_span(r, r->op[i].span)->kind == SC_SPAN_KERNEL)
            sum += r->op[i].dur;
    return sum;
}

/* The work of the threads between their items. */
static sc_time host_time(const replay_rank *r)
{
    sc_time sum = 0;
    for (uint32_t i = 0; i < r->n_items; i++) {
        const replay_item *it = &r->item[i];
        sc_time since = 0;
        if (i && r->item[i - 1].thread == it->thread)
            since = r->item[i - 1].leave;
        if (it->before != REPLAY_NONE) since = r->item[it->before].leave;
        if (it->enter > since) sum += it->enter - since;
    }
    return sum;
}

/* The factor that makes a rank as fast as the median rank, of an even number the
 * faster of two; at most 1. */
static sc_status relative(const sc_replay_model *m, uint32_t rank,
                          sc_time (*time)(const replay_rank *), sc_arena *a,
                          double *out, sc_err *err)
{
    double *all = SC_NEW_N(a, double, m->n_ranks);
    if (!all) return sc_error_nomem(err);
    for (uint32_t i = 0; i < m->n_ranks; i++)
        all[i] = (double)time(&m->rank[i]);
    double own = all[rank];
    sc_sort(all, m->n_ranks);
    double middle = all[(m->n_ranks - 1) / 2];
    *out = own > middle ? middle / own : 1;
    return SC_OK;
}

/* ---- kernels ------------------------------------------------------------- */

/* Kernels of these names read and write each element once. */
static bool is_elementwise(const char *name)
{
    static const char *const words[] = {"elementwise_kernel", "triton_poi_",
                                        "ElementwiseKernel"};
    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (strstr(name, words[i])) return true;
    return false;
}

/* A chain of element-wise kernels that is one kernel reads and writes memory as
 * often as its longest member. */
static void fuse(const replay_rank *r, replay_durations *d)
{
    uint32_t head = REPLAY_NONE;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const replay_device_op *op = &r->op[i];
        const sc_trace_span *s = replay_span(r, op->span);
        bool same = head != REPLAY_NONE && op->prev == i - 1 &&
                    op->waits.n == 0 && op->item != REPLAY_NONE;
        if (s->kind != SC_SPAN_KERNEL || !is_elementwise(r->m->name[s->name])) {
            head = REPLAY_NONE;
            continue;
        }
        if (!same) {
            head = i;
            continue;
        }
        if (d->op[i] > d->op[head]) d->op[head] = d->op[i];
        d->op[i] = 0;
        d->merged[i] = 1;
    }
}

static double glob_factor(const sc_replay_change *c, const char *name)
{
    double f = 1;
    for (uint32_t g = 0; g < c->n_globs; g++)
        if (sc_glob(c->glob[g].pattern, name)) f *= c->glob[g].factor;
    return f;
}

/* ---- another device ------------------------------------------------------ */

/* Without shapes, a kernel moved as many bytes as it had time for. */
static sc_kernel unknown_kernel(const sc_replay_change *c, sc_time dur)
{
    double s = sc_time_to_s(dur > 0 ? dur : 1);
    return sc_kernel_moves(SC_K_ELEMENT, SC_FP32, s * c->from->mem_bw);
}

static const sc_trace_span *shaped_op(const replay_rank *r, uint32_t op)
{
    uint32_t span = replay_shaped_op(r, op);
    return span == REPLAY_NONE ? NULL : replay_span(r, span);
}

/* The kernel of that name of an operator with shapes, and the same with another
 * batch. */
static bool kernels_of(const replay_rank *r, const replay_params *p,
                       double batch, const sc_trace_span *s, const char *kernel,
                       sc_kernel *k, sc_kernel *there)
{
    shape_inputs in;
    const sc_trace_span_args *x = &r->m->args[s->args];
    const char *name = r->m->name[s->name], *concrete = r->m->name[x->concrete];
    sc_precision precision =
        shape_kernel_precision(kernel, shape_precision(r->m->name[x->types]));
    shape_read(r->m->name[x->dims], &in);
    if (!shape_kernel(name, &in, precision, concrete, k)) return false;
    shape_part(kernel, &in, k);
    *there = *k;
    if (batch == 1) return true;
    replay_batch_scale(p, name, batch, &in);
    if (!shape_kernel(name, &in, precision, concrete, there)) return false;
    shape_part(kernel, &in, there);
    return true;
}

/* The time of a kernel with the changes, before factors. */
static sc_time kernel_on(const replay_rank *r, const sc_replay_change *c,
                         const replay_params *p, const sc_time *sums,
                         uint32_t op)
{
    uint32_t span;
    const sc_replay_operator *measured =
        sums ? replay_time_of(c->times, r, op, &span) : NULL;
    /* the kernels of an operator keep their shares of its time */
    if (measured && sums[span] > 0)
        return scaled(r->op[op].dur,
                      (double)measured->total / (double)sums[span]);
    const sc_trace_span *s = shaped_op(r, op);
    const char *kernel = r->m->name[replay_span(r, r->op[op].span)->name];
    sc_kernel k, more;
    bool known = s && kernels_of(r, p, c->batch, s, kernel, &k, &more);
    if (!known) k = more = unknown_kernel(c, r->op[op].dur);
    const sc_device *device = c->to ? c->to : c->from;
    double there = sc_kernel_alone(c->cost, device, &more).seconds;
    if (c->predict_kernels && known) return sc_time_from_s(there);
    double here = sc_kernel_alone(c->cost, c->from, &k).seconds;
    return scaled(r->op[op].dur, here > 0 ? there / here : 1);
}

/* A copy between host and device, or of a tensor, that grows with the batch. */
static sc_time copy_on(const replay_rank *r, const sc_replay_change *c,
                       const replay_params *p, uint32_t op)
{
    const sc_trace_span *s = shaped_op(r, op);
    sc_kernel k, more;
    if (c->batch == 1 || !s || !kernels_of(r, p, c->batch, s, "", &k, &more) ||
        k.bytes <= 0)
        return r->op[op].dur;
    return scaled(r->op[op].dur, more.bytes / k.bytes);
}

/* ---- another machine ----------------------------------------------------- */

/* The traced job, of which there are several, or of which a part remains. */
static uint32_t job_size(const sc_replay_model *m)
{
    uint32_t world = m->rank[0].m->world_size;
    return world > m->n_ranks ? world : m->n_ranks;
}

/* Parameters and gradients are exchanged as flat buffers; what has dimensions is
 * exchanged inside a layer, by groups that do not depend on the size of the job. */
static bool is_flat(const replay_rank *r, uint32_t op)
{
    shape_inputs in;
    shape_read(r->m->name[replay_comm_args(r, op)->dims], &in);
    for (uint32_t i = 0; i < in.n; i++)
        if (in.tensor[i].n_dims > 1) return false;
    return true;
}

/* The ranks of a group in a job of another size: the traced job again behind
 * itself, or its first ranks. */
static sc_status resize(const sc_replay_model *m, const sc_replay_change *c,
                        bool flat, sc_arena *a, uint32_t **rank, uint32_t *n,
                        sc_err *err)
{
    uint32_t world = job_size(m);
    if (!c->ranks || c->ranks == world || (*n != world && !flat)) return SC_OK;
    uint32_t left = (uint32_t)((uint64_t)*n * c->ranks / world);
    uint32_t *all = SC_NEW_N(a, uint32_t, left);
    if (!all) return sc_error_nomem(err);
    for (uint32_t i = 0; i < left; i++)
        all[i] = (*rank)[i % *n] + i / *n * world;
    *rank = all;
    *n = left;
    return SC_OK;
}

/* The ranks between which the collective of an op moves data; `*n` 0: they are not
 * known. */
static sc_status members_of(const sc_replay_model *m, const replay_rank *r,
                            const sc_replay_change *c, uint32_t op, bool flat,
                            sc_arena *a, uint32_t **rank, uint32_t *n,
                            sc_err *err)
{
    uint32_t peer[2];
    *n = replay_coll_size(m, r, op);
    if (replay_message(r, replay_comm_args(r, op), peer)) {
        *n = peer[0] && peer[1] ? 2 : 0;
        *rank = SC_NEW_N(a, uint32_t, 2);
        if (!*rank) return sc_error_nomem(err);
        for (uint32_t i = 0; i < *n; i++) (*rank)[i] = peer[i] - 1;
        return SC_OK;
    }
    if (*n < 2) *n = 0;
    if (*n == 0) return SC_OK;
    if (!replay_coll_ranks(r, op, *n, a, rank, n)) return sc_error_nomem(err);
    return resize(m, c, flat, a, rank, n, err);
}

/* Leaves the time as it is where the trace does not state what the collective
 * moves. */
static sc_status coll_on(const sc_replay_model *m, const replay_rank *r,
                         const sc_replay_change *c, uint32_t op, sc_arena *a,
                         sc_time *out, uint8_t *priced, sc_err *err)
{
    uint64_t bytes;
    uint32_t n = replay_coll_size(m, r, op), *rank;
    sc_coll coll = replay_coll_kind(r, op, n, &bytes);
    sc_coll_price p;
    bool flat = is_flat(r, op);
    if (coll == SC_N_COLLS || !bytes) return SC_OK;
    sc_arena_mark mark = sc_arena_save(a);
    SC_TRY(members_of(m, r, c, op, flat, a, &rank, &n, err));
    if (n == 0) return SC_OK;
    *priced = 1;
    *out = 0;
    if (n < 2) return SC_OK;
    for (uint32_t i = 0; i < n; i++)
        if (rank[i] >= c->hw->n_devices)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_file(r->m->file),
                            "the machine needs a device for every rank",
                            "rank %u takes part in a collective on %u devices",
                            rank[i], c->hw->n_devices);
    sc_place at = sc_hw_place_ranks(c->hw, n, rank);
    SC_TRY(sc_cost_coll(c->cost, c->hw, sc_coll_priced(coll),
                        (double)bytes * (flat ? 1 : c->batch), &at, -1, &p,
                        err));
    sc_arena_restore(a, mark);
    *out = sc_time_from_s(p.seconds);
    return SC_OK;
}

/* ---- another batch or host ----------------------------------------------- */

/* Operators of a trace without kernels compute on the host. */
static bool computes_on_host(const replay_rank *r)
{
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (replay_span(r, r->op[i].span)->kind == SC_SPAN_KERNEL) return false;
    return true;
}

/* Ranks that were traced are part of the job. */
static sc_status check_ranks(const sc_replay_model *m,
                             const sc_replay_change *c, sc_err *err)
{
    for (uint32_t i = 0; c->ranks && i < m->n_ranks; i++)
        if (m->rank[i].rank >= c->ranks)
            return sc_error(err, SC_EINPUT, SC_C_RANGE,
                            sc_pos_file(m->rank[i].m->file),
                            "give the traces of ranks that the job has",
                            "rank %u is not in a job of %u ranks",
                            m->rank[i].rank, c->ranks);
    return SC_OK;
}

static sc_status read_batch(const replay_rank *r, const sc_replay_change *c,
                            bool on_host, sc_arena *a, replay_params *p,
                            sc_err *err)
{
    if (c->batch == 1) return SC_OK;
    SC_TRY(replay_params_of(r, a, p, err));
    if (!p->any_shape)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(r->m->file),
                        "record with record_shapes=True",
                        "another batch needs the shapes of operators, which "
                        "the trace does not have");
    if (on_host || c->from) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(r->m->file),
                    "the trace needs deviceProperties",
                    "another batch needs the device of the kernels");
}

/* The pace of the threads: of operators that compute there with another batch, or
 * that launch kernels with other overheads. */
static sc_status read_pace(const sc_replay_model *m, const replay_rank *r,
                           const sc_replay_change *c, bool on_host,
                           const replay_params *p, sc_arena *a,
                           replay_pace **out, sc_err *err)
{
    sc_host_overheads own;
    if (!(on_host && c->batch != 1) && !c->host) return SC_OK;
    if (on_host && c->host)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(r->m->file),
                        NULL,
                        "operators of this trace compute on the host, so that "
                        "their time is no overhead");
    *out = SC_NEW_N(a, replay_pace, r->n_threads);
    if (!*out) return sc_error_nomem(err);
    if (c->host) SC_TRY(sc_host_overheads_of(&m, 1, a, &own, err));
    for (uint32_t i = 0; i < r->n_threads; i++)
        SC_TRY(c->host ? replay_host_pace(r, r->thread[i], &own, c->host, a,
                                          &(*out)[i], err)
                       : replay_pace_of(r, p, r->thread[i], c->batch, a,
                                        &(*out)[i], err));
    return SC_OK;
}

sc_status replay_durations_of(const sc_replay_model *m, uint32_t rank,
                              const sc_replay_change *c, sc_arena *a,
                              replay_durations *out, sc_err *err)
{
    const replay_rank *r = &m->rank[rank];
    replay_params params = {.any_shape = false};
    double kernels = 1, host = 1;
    sc_time *sums = NULL;
    SC_TRY(check_ranks(m, c, err));
    bool on_host = computes_on_host(r);
    SC_TRY(read_batch(r, c, on_host, a, &params, err));
    SC_TRY(read_pace(m, r, c, on_host, &params, a, &out->pace, err));
    out->op = SC_NEW_N(a, sc_time, r->n_ops);
    out->merged = SC_NEW_N(a, uint8_t, r->n_ops);
    double *by_name = SC_NEW_N(a, double, r->m->n_names);
    out->priced = SC_NEW_N(a, uint8_t, r->n_ops);
    if (!out->op || !out->merged || !out->priced || !by_name)
        return sc_error_nomem(err);
    if (c->times) SC_TRY(replay_sum_operators(r, a, &sums, err));
    for (uint32_t i = 0; c->n_globs && i < r->m->n_names; i++)
        by_name[i] = glob_factor(c, r->m->name[i]);
    if (c->drop_straggler) {
        SC_TRY(relative(m, rank, kernel_time, a, &kernels, err));
        SC_TRY(relative(m, rank, host_time, a, &host, err));
    }
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const sc_trace_span *s = replay_span(r, r->op[i].span);
        sc_time own = r->op[i].dur;
        double f = c->factor[replay_class_of(s)];
        bool kernel = s->kind == SC_SPAN_KERNEL;
        if (kernel && c->from) own = kernel_on(r, c, &params, sums, i);
        if (s->kind == SC_SPAN_COPY) own = copy_on(r, c, &params, i);
        if (s->kind == SC_SPAN_COLL && c->hw)
            SC_TRY(coll_on(m, r, c, i, a, &own, &out->priced[i], err));
        if (s->kind == SC_SPAN_COLL && !out->priced[i] && c->batch != 1 &&
            !is_flat(r, i))
            f *= c->batch;
        if (c->n_globs) f *= by_name[s->name];
        if (kernel) f *= kernels;
        out->op[i] = scaled(own, f);
    }
    out->host = host * c->factor[SC_REPLAY_HOST];
    if (c->fuse) fuse(r, out);
    return SC_OK;
}
