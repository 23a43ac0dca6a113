/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - prepares traces, and runs them with changes. */
#include "replay/build.h"
#include "replay/split.h"

#include <stdlib.h>

/* ---- preparation --------------------------------------------------------- */

/* The window as it was: until the last step ended; without steps, until devices
 * were idle. */
static void measure(sc_replay_model *m)
{
    sc_time host = 0, device = 0;
    for (uint32_t k = 0; k < m->n_ranks; k++) {
        const replay_rank *r = &m->rank[k];
        for (uint32_t i = 0; i < r->n_steps; i++) {
            sc_time to = r->offset + r->step[i].to - r->from;
            if (r->step[i].end != REPLAY_NONE && to > host) host = to;
        }
        for (uint32_t i = 0; i < r->n_ops; i++) {
            sc_time to = r->offset + replay_end(r, i);
            if (to > device) device = to;
        }
    }
    m->measured = host ? host : device;
}

/* What a replay can only repeat, because the trace does not have its cause. */
static void say_unexplained(const replay_rank *r, sc_text *warnings)
{
    sc_time window = r->to - r->from, host = 0;
    for (uint32_t i = 0; i < r->n_items; i++)
        if (r->item[i].kind == REPLAY_WAIT && r->item[i].waits.n == 0)
            host += r->item[i].tail;
    if (r->gpu_only && r->n_ops)
        sc_text_add(warnings,
                    "%s: no call launches a kernel of the steps, so gaps "
                    "between kernels stay as recorded\n",
                    r->m->file);
    if (host > window / 100)
        sc_text_add(warnings,
                    "%s: calls that synchronize wait %.3g ms for nothing that "
                    "the trace has; this stays as recorded\n",
                    r->m->file, (double)host / 1e9);
    if (r->from_before > window / 100)
        sc_text_add(
            warnings,
            "%s: first kernels of streams wait %.0f ms in all, probably for "
            "work from before the trace; this stays as recorded\n",
            r->m->file, (double)r->from_before / 1e9);
    if (r->unrecorded > window / 100)
        sc_text_add(
            warnings,
            "%s: gaps of %.3g ms beside kernels of CUDA graphs, of which "
            "profilers miss kernels, stay as recorded: %.3g %% of the "
            "window\n",
            r->m->file, (double)r->unrecorded / 1e9,
            100 * (double)r->unrecorded / (double)window);
}

static sc_status check_ranks(const sc_replay_model *m, sc_err *err)
{
    for (uint32_t i = 0; i < m->n_ranks; i++)
        for (uint32_t k = 0; k < i; k++)
            if (m->rank[i].rank == m->rank[k].rank)
                return sc_error(err, SC_EINPUT, SC_C_DUPLICATE,
                                sc_pos_file(m->rank[i].m->file),
                                "--rank-pattern finds ranks in the names of "
                                "files",
                                "rank %u is already that of %.80s",
                                m->rank[i].rank, m->rank[k].m->file);
    return SC_OK;
}

/* What was inferred, from the least to the most certain. */
enum { DRAINS, QUEUES, HANDOVERS, WAITS, N_INFERRED };

static void leave_out(replay_rank *r, int what)
{
    for (uint32_t i = 0; i < r->n_ops; i++) {
        if (what == DRAINS) r->op[i].drains = REPLAY_NONE;
        if (what == QUEUES) r->op[i].frees = REPLAY_NONE;
        if (what == WAITS) r->op[i].waits.n = 0;
    }
    for (uint32_t i = 0; i < r->n_items; i++) {
        if (what == HANDOVERS) r->item[i].before = REPLAY_NONE;
        if (what == WAITS) r->item[i].waits.n = 0;
    }
}

/* Inferred dependencies of events whose times contradict each other may form a
 * cycle: then those of one kind are left out after the other. */
static sc_status check_order(sc_replay_model *m, sc_text *warnings, sc_err *err)
{
    static const char *const names[] = {
        "kernels that wait for a full device", "launches that wait for a queue",
        "threads that hand over to others", "waits for events"};
    sc_replay_change none;
    sc_replay_change_init(&none);
    for (int what = 0;; what++) {
        sc_arena tmp;
        sc_err own;
        replay_built b;
        sc_err_init(&own);
        sc_arena_init(&tmp, m->a->limit);
        sc_status s = replay_build(m, &none, &tmp, &b, &own);
        bool built = s == SC_OK;
        if (built)
            s = replay_check_flows(m, &b.graph, b.owner, b.span, &tmp, warnings,
                                   err);
        sc_arena_free(&tmp);
        if (built) return s;
        if (own.d[0].code != SC_C_CYCLE || what == N_INFERRED)
            return sc_error(err, s, own.d[0].code,
                            sc_pos_file(m->rank[0].m->file), NULL,
                            "the times of events contradict each other: %.150s",
                            own.d[0].msg);
        for (uint32_t k = 0; k < m->n_ranks; k++) leave_out(&m->rank[k], what);
        sc_text_add(warnings,
                    "times of events contradict each other: %s are left out\n",
                    names[what]);
    }
}

sc_status sc_replay_prepare(const sc_profiled *const *m, uint32_t n,
                            const sc_replay_steps *steps, sc_arena *a,
                            sc_text *warnings, sc_replay_model **out,
                            sc_err *err)
{
    sc_replay_model *x = SC_NEW(a, sc_replay_model);
    if (!x || !(x->rank = SC_NEW_N(a, replay_rank, n)))
        return sc_error_nomem(err);
    x->a = a;
    x->n_ranks = n;
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(replay_link(m[i], steps, a, &x->rank[i], err));
        say_unexplained(&x->rank[i], warnings);
        x->rank[i].rank = m[i]->rank >= 0 && m[i]->rank < UINT32_MAX
                              ? (uint32_t)m[i]->rank
                              : i;
    }
    SC_TRY(check_ranks(x, err));
    SC_TRY(replay_join(x, warnings, err));
    measure(x);
    SC_TRY(check_order(x, warnings, err));
    *out = x;
    return SC_OK;
}

/* ---- results ------------------------------------------------------------- */

typedef struct runner {
    const sc_replay_model *m;
    const replay_built *b;
    const sc_result *run;
    sc_arena *a;
    sc_err *err;
} runner;

/* Device ops of a rank as they ran, in the time of all ranks. */
static sc_status predicted_busy(const runner *x, uint32_t rank,
                                replay_busy **out)
{
    const replay_rank *r = &x->m->rank[rank];
    const replay_built_rank *b = &x->b->rank[rank];
    replay_busy *v = SC_NEW_N(x->a, replay_busy, r->n_ops);
    if (!v) return sc_error_nomem(x->err);
    for (uint32_t i = 0; i < r->n_ops; i++) {
        sc_op op = b->op[i], first = op;
        bool member = b->arrive[i] != SC_NONE;
        if (member) first = b->arrive[i];
        sc_time end = x->run->end[op];
        sc_op why = x->run->cause[first];
        v[i] = (replay_busy){
            .from = member ? x->run->end[first] : end - b->dur[i],
            .to = end,
            .arrived = member ? x->run->start[op] : end - b->dur[i],
            .class = (uint8_t)replay_class_of(replay_span(r, r->op[i].span)),
            .host_bound = why != SC_NONE &&
                          x->b->graph.kind[why] == SC_OP_MARK &&
                          x->b->span[why] == REPLAY_NONE};
    }
    replay_sort_busy(v, r->n_ops);
    *out = v;
    return SC_OK;
}

static sc_status recorded_busy(const runner *x, uint32_t rank,
                               replay_busy **out)
{
    const replay_rank *r = &x->m->rank[rank];
    replay_busy *v = SC_NEW_N(x->a, replay_busy, r->n_ops);
    if (!v) return sc_error_nomem(x->err);
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const replay_device_op *op = &r->op[i];
        sc_time from = op->start, to = op->start + op->dur;
        sc_time arrived =
            op->coll == REPLAY_NONE ? from : to - x->m->coll[op->coll].dur;
        v[i] = (replay_busy){from,
                             to,
                             arrived > from ? arrived : from,
                             (uint8_t)replay_class_of(replay_span(r, op->span)),
                             true,
                             0};
    }
    replay_sort_busy(v, r->n_ops);
    *out = v;
    return SC_OK;
}

/* Without boundaries on a thread, a step is what the devices do. */
static sc_time step_time(const runner *x, uint32_t rank, const replay_step *s,
                         bool end, const replay_busy *busy)
{
    const replay_built_rank *b = &x->b->rank[rank];
    uint32_t i = end ? s->end : s->begin, n = x->m->rank[rank].n_ops;
    if (i != REPLAY_NONE) return x->run->end[b->leave[i]];
    if (n == 0) return x->m->rank[rank].offset;
    sc_time at = busy[0].from;
    for (uint32_t k = 0; end && k < n; k++)
        if (busy[k].to > at) at = busy[k].to;
    return at;
}

static sc_status rank_result(const runner *x, uint32_t rank,
                             sc_replay_rank *out)
{
    const replay_rank *r = &x->m->rank[rank];
    replay_busy *predicted = NULL, *recorded = NULL;
    *out = (sc_replay_rank){.rank = r->rank,
                            .world_size = r->m->world_size,
                            .device = r->m->device,
                            .offset = r->offset,
                            .n_steps = r->n_steps};
    out->step = SC_NEW_N(x->a, sc_replay_step, r->n_steps);
    if (!out->step) return sc_error_nomem(x->err);
    SC_TRY(predicted_busy(x, rank, &predicted));
    SC_TRY(recorded_busy(x, rank, &recorded));
    for (uint32_t i = 0; i < r->n_steps; i++) {
        const replay_step *s = &r->step[i];
        sc_time from = step_time(x, rank, s, false, predicted);
        sc_time to = step_time(x, rank, s, true, predicted);
        sc_time begin = s->from - r->from, end = s->to - r->from;
        if (s->begin == REPLAY_NONE && r->n_ops) begin = recorded[0].from;
        out->step[i] = (sc_replay_step){
            .name = s->name, .measured = end - begin, .predicted = to - from};
        SC_TRY(replay_split(predicted, r->n_ops, from, to, x->a,
                            &out->step[i].split, x->err));
    }
    out->facts.streams = r->n_streams;
    return replay_facts(recorded, r->n_ops, 0, r->to - r->from, x->a,
                        &out->facts, x->err);
}

/* Follows causes from the end to the begin. */
static void find_path(const runner *x, sc_replay_path *out)
{
    const sc_graph *g = &x->b->graph;
    for (sc_op i = x->b->end; i != SC_NONE; i = x->run->cause[i]) {
        sc_time t = x->run->end[i] - x->run->start[i];
        out->total += t;
        if (g->kind[i] == SC_OP_HOST)
            out->host += t;
        else if (g->kind[i] == SC_OP_COLL || g->stream[i] == SC_S_COMM)
            out->comm += t;
        else if (g->kind[i] == SC_OP_MEM)
            out->memory += t;
        else if (g->kind[i] == SC_OP_COMPUTE)
            out->compute += t;
        else if (g->name[i] == replay_later)
            out->later += t;
        else
            out->latency += t;
    }
}

sc_status sc_replay_run(const sc_replay_model *m, const sc_replay_change *c,
                        sc_arena *a, sc_replay_result *out, sc_err *err)
{
    replay_built *b = SC_NEW(a, replay_built);
    sc_result *run = SC_NEW(a, sc_result);
    sc_sim_opts opts;
    sc_sim_opts_init(&opts);
    if (!b || !run) return sc_error_nomem(err);
    SC_TRY(replay_build(m, c, a, b, err));
    SC_TRY(sc_sim_run(&b->graph, &opts, a, run, err));
    runner x = {m, b, run, a, err};
    *out = (sc_replay_result){.measured = m->measured,
                              .predicted = run->end[b->end],
                              .n_ranks = m->n_ranks,
                              .n_ops = b->graph.n_ops,
                              .graph = &b->graph,
                              .run = run,
                              .end = b->end,
                              .owner = b->owner,
                              .span = b->span,
                              .busy = b->busy};
    out->rank = SC_NEW_N(a, sc_replay_rank, m->n_ranks);
    if (!out->rank) return sc_error_nomem(err);
    for (uint32_t i = 0; i < m->n_ranks; i++) {
        SC_TRY(rank_result(&x, i, &out->rank[i]));
        if (m->rank[i].n_steps > out->n_steps)
            out->n_steps = m->rank[i].n_steps;
    }
    find_path(&x, &out->path);
    return SC_OK;
}
