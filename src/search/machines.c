/* SPDX-License-Identifier: Apache-2.0 */
/* machines.c - the best machines of a space, by branch and bound over boxes. */
#include "base/heap.h"
#include "search/budget.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The machines whose digits are from `lo` to `hi`; axes without an order have
 * one value in it. */
typedef struct box {
    uint32_t lo[SC_MACHINE_AXES], hi[SC_MACHINE_AXES];
    double least_s;          /* no step on any of these machines is shorter */
    double weight;           /* of a second of a step, at least */
    double points;           /* of each machine */
    double least[SC_N_DIMS]; /* of q->dims: of any machine; time and money for a
                              * second of a step */
    bool known;              /* the points of its best machine were searched */
} box;

typedef struct machines {
    sc_search_question q;
    sc_search_machines *out;
    uint32_t n;
    const sc_machine_axis *axis;
    sc_arena *a;  /* of what is kept */
    sc_arena own; /* of one machine */
    sc_err *err;
    bool over; /* a search was stopped */
    uint32_t n_heap, cap_heap;
    box *heap;
    uint32_t n_members, cap_members; /* searched machines, if q.dims */
    sc_search_member *member;
} machines;

/* More of a resource can change the order of transfers, and so make a step longer
 * by parts in a million. */
#define ORDER 1e-5

static double bound_of(const box *b)
{
    return b->least_s * b->weight * (1 - ORDER);
}

static bool before(const machines *x, box a, box b)
{
    (void)x;
    return bound_of(&a) < bound_of(&b);
}

SC_HEAP(box_heap, box, machines, before)

static double count(const machines *x, const box *b)
{
    double n = 1;
    for (uint32_t i = 0; i < x->n; i++) n *= b->hi[i] - b->lo[i] + 1.0;
    return n;
}

static sc_status push(machines *x, const box *b)
{
    box *all = sc_grow(x->a, x->heap, x->n_heap, &x->cap_heap, 64, sizeof *all);
    if (!all) return sc_error_nomem(x->err);
    x->heap = all;
    box_heap_push(x, all, x->n_heap++, *b);
    return SC_OK;
}

/* ---- one machine ---------------------------------------------------------- */

static sc_status open_machine(machines *x, const uint32_t *digit,
                              sc_search_machine *m, bool *legal)
{
    sc_err why;
    sc_job job = *x->q.job;
    sc_arena_reset(&x->own);
    SC_TRY(sc_machine_set(x->axis, x->n, digit, &x->own, &job, x->err));
    SC_TRY(
        sc_search_machine_open(&x->q, &job, &x->own, m, legal, &why, x->err));
    if (*legal || x->out->why || why.n == 0) return SC_OK;
    x->out->why = sc_sprintf(x->a, "%s: %s", job.cluster, why.d[0].msg);
    return x->out->why ? SC_OK : sc_error_nomem(x->err);
}

static sc_status weight_of(machines *x, const sc_search_machine *m, double *out)
{
    return sc_search_goal_weight(x->q.o->goal, &m->job,
                                 sc_points_run(m->jobs.points), &x->own, out,
                                 x->err);
}

/* What a second of a step on a machine takes at least, and the machine itself. */
static sc_status dims_of(machines *x, const sc_search_machine *m, double *out)
{
    const sc_run *run = sc_points_run(m->jobs.points);
    const sc_job *job = &m->job;
    bool money = !isnan(sc_job_rent(job, m->in.hw)) || sc_job_buys(job);
    sc_machine_bill bill;
    for (int d = 0; d < (int)SC_N_DIMS; d++) out[d] = 0;
    if (!x->q.dims) return SC_OK;
    SC_TRY(
        sc_machine_bill_of(job, m->in.hw, m->in.cost, &x->own, &bill, x->err));
    SC_TRY(sc_search_goal_weight(job->tokens > 0 ? SC_GOAL_DAYS
                                                 : SC_GOAL_STEP_TIME,
                                 job, run, &x->own, &out[SC_DIM_TIME], x->err));
    if (money)
        SC_TRY(sc_search_goal_weight(SC_GOAL_COST, job, run, &x->own,
                                     &out[SC_DIM_MONEY], x->err));
    out[SC_DIM_DEVICES] = m->in.hw->n_devices;
    out[SC_DIM_POWER] = isnan(bill.watts) ? 0 : bill.watts;
    out[SC_DIM_CAPITAL] = isnan(bill.usd) ? 0 : bill.usd;
    return SC_OK;
}

/* Whether a searched machine is at least as good as all of a box can be. */
static bool covered(const machines *x, const box *b)
{
    double at[SC_N_DIMS];
    memcpy(at, b->least, sizeof at);
    at[SC_DIM_TIME] *= b->least_s * (1 - ORDER);
    at[SC_DIM_MONEY] *= b->least_s * (1 - ORDER);
    for (uint32_t i = 0; i < x->n_members; i++)
        if (sc_search_covers(x->member[i].at, at, x->q.dims)) return true;
    return x->q.dims == 0;
}

/* Longer steps of a machine are not on the front. */
static double front_step(const machines *x, const double *dims)
{
    uint32_t others = x->q.dims & ~(1u << SC_DIM_TIME);
    double most = x->q.dims ? INFINITY : 0;
    if (!x->q.dims || x->q.o->exhaustive || others >> SC_DIM_MONEY & 1)
        return most;
    for (uint32_t i = 0; i < x->n_members; i++)
        if (sc_search_covers(x->member[i].at, dims, others))
            most = fmin(most, x->member[i].at[SC_DIM_TIME] / dims[SC_DIM_TIME]);
    return most;
}

/* Adds a machine with its fastest row to what may be on the front. */
static sc_status offer_member(machines *x, const uint32_t *digit,
                              const double *dims, sc_search_machine *m)
{
    if (!x->q.dims || m->found.n_best == 0) return SC_OK;
    SC_TRY(sc_search_machine_best(&x->q, m, &x->own, x->err));
    if (!m->meets) return SC_OK;
    sc_machine_row *r = SC_NEW(x->a, sc_machine_row);
    sc_search_member *all = sc_grow(x->a, x->member, x->n_members,
                                    &x->cap_members, 64, sizeof *all);
    if (!r || !all) return sc_error_nomem(x->err);
    const sc_search_row *row = &m->found.best[0];
    memcpy(r->digit, digit, x->n * sizeof *digit);
    r->step_s = row->point.step_s;
    sc_search_row_job(&m->jobs, row, &r->job);
    x->member = all;
    sc_search_member *own = &all[x->n_members++];
    *own = (sc_search_member){.machine = r};
    memcpy(own->at, dims, sizeof own->at);
    const sc_prediction *p = m->best;
    bool whole = !isnan(p->whole_run.days);
    double usd = whole ? p->whole_run.cost_usd : p->cost_usd_per_step;
    own->at[SC_DIM_TIME] = whole ? p->whole_run.days : p->step_time_s;
    own->at[SC_DIM_MONEY] = isnan(usd) ? 0 : usd;
    r->score = own->at[SC_DIM_TIME];
    return SC_OK;
}

/* A score below this changes the list of the best, or the best of some value. */
static double beat(const machines *x, const box *b)
{
    const sc_search_machines *out = x->out;
    if (x->q.o->exhaustive || out->n_best < x->q.o->top) return INFINITY;
    double most = out->best[out->n_best - 1].score;
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = b->lo[i]; k <= b->hi[i]; k++)
            most = fmax(most, out->per_axis[i][k]);
    return most;
}

static void offer(machines *x, const uint32_t *digit,
                  const sc_search_machine *m, const sc_search_row *row)
{
    sc_search_machines *out = x->out;
    uint32_t at = out->n_best, most = x->q.o->top;
    sc_machine_row r = {.score = row->score, .step_s = row->point.step_s};
    memcpy(r.digit, digit, x->n * sizeof *digit);
    for (uint32_t i = 0; i < x->n; i++)
        out->per_axis[i][digit[i]] = fmin(out->per_axis[i][digit[i]], r.score);
    while (at > 0 && out->best[at - 1].score > r.score) at--;
    if (at == most) return;
    sc_search_row_job(&m->jobs, row, &r.job);
    if (out->n_best < most) out->n_best++;
    memmove(&out->best[at + 1], &out->best[at],
            (out->n_best - 1 - at) * sizeof r);
    out->best[at] = r;
}

/* Searches a machine for steps shorter than `most_s`; `*found` is the shortest,
 * or else `most_s`, unless the search was stopped. */
static sc_status search_machine(machines *x, const uint32_t *digit,
                                sc_search_machine *m, sc_search_goal goal,
                                double most_s, double *found)
{
    sc_search_options o = *x->q.o;
    const sc_run *run = sc_points_run(m->jobs.points);
    double tokens = sc_search_tokens(run);
    o.goal = goal;
    o.top = 1;
    o.only_best = true;
    o.slowest = isinf(most_s) ? 0 : most_s / tokens;
    SC_TRY(sc_search_run(&m->jobs, &o, &x->own, &m->found, x->err));
    const sc_search_result *f = &m->found;
    x->out->evaluated += (double)f->evaluated;
    x->over = x->over || f->left > 0;
    if (f->left == 0) *found = f->n_best ? f->best[0].point.step_s : most_s;
    if (goal != x->q.o->goal) return SC_OK;
    double longest;
    SC_TRY(sc_search_longest(&x->q, m, &x->own, &longest, x->err));
    if (f->n_best && f->best[0].point.step_s > longest * tokens) return SC_OK;
    SC_TRY(sc_search_machine_keep(&x->q, &o, m, &x->own, x->err));
    if (f->n_best) offer(x, digit, m, &f->best[0]);
    return SC_OK;
}

/* Searches the machine of a box that has most of everything.  A score that is not
 * in proportion to the step, such as energy, takes a search of its own beside that
 * for the bound. */
static sc_status search_best(machines *x, box *b)
{
    sc_search_machine m;
    bool legal;
    double any_s, weight, longest, dims[SC_N_DIMS];
    SC_TRY(open_machine(x, b->hi, &m, &legal));
    sc_assert(legal);
    SC_TRY(dims_of(x, &m, dims));
    SC_TRY(sc_search_longest(&x->q, &m, &x->own, &longest, x->err));
    longest *= sc_search_tokens(sc_points_run(m.jobs.points)) * (1 + 1e-12);
    double most_s = fmin((1 + 2 * ORDER) *
                             fmax(beat(x, b) / b->weight, front_step(x, dims)),
                         longest);
    sc_search_goal goal = x->q.o->goal;
    bool predicted = sc_search_goal_predicted(goal, &m.job);
    x->out->searched++;
    b->known = true;
    SC_TRY(search_machine(x, b->hi, &m, predicted ? SC_GOAL_STEP_TIME : goal,
                          most_s, &b->least_s));
    SC_TRY(offer_member(x, b->hi, dims, &m));
    if (!predicted || m.found.n_best == 0) return SC_OK;
    SC_TRY(weight_of(x, &m, &weight));
    return search_machine(x, b->hi, &m, goal,
                          fmin(beat(x, b) / weight, longest), &any_s);
}

/* ---- boxes ---------------------------------------------------------------- */

/* Adds a box of machines within the budget.  A machine that can't be built, or
 * does not divide the job, has no points, and neither has one that differs only
 * in axes with an order. */
static sc_status add_legal(machines *x, box *b)
{
    sc_search_machine m;
    bool legal;
    SC_TRY(open_machine(x, b->lo, &m, &legal));
    if (legal) SC_TRY(weight_of(x, &m, &b->weight));
    if (legal) SC_TRY(dims_of(x, &m, b->least));
    if (legal) SC_TRY(open_machine(x, b->hi, &m, &legal));
    if (!legal) {
        x->out->illegal += (uint64_t)count(x, b);
        return SC_OK;
    }
    SC_TRY(sc_search_least(&m.jobs, &x->own, &b->least_s, x->err));
    b->points = (double)sc_search_space_points(m.jobs.space);
    x->out->points += b->points * count(x, b);
    return push(x, b);
}

/* Whether a machine is within the budget; `*out` is true, too, if it can't be
 * built. */
static sc_status within(machines *x, const uint32_t *digit, search_over *out)
{
    sc_job job = *x->q.job;
    sc_arena_reset(&x->own);
    SC_TRY(sc_machine_set(x->axis, x->n, digit, &x->own, &job, x->err));
    return search_budget_over(&x->q, &job, &x->own, out, x->err);
}

/* Keeps the machines of a box that are within the budget.  More of a resource
 * takes no less power or money, so of a box whose best machine is within it all
 * are, and none if its least machine is not. */
static sc_status keep_within(machines *x, const box *b)
{
    search_over over = {0};
    box own = *b, low = *b, high = *b;
    uint32_t at = 0;
    if (x->q.budget) SC_TRY(within(x, b->lo, &over));
    if (over.is)
        return search_budget_count(&over, count(x, b), x->a, x->out, x->err);
    if (x->q.budget) SC_TRY(within(x, b->hi, &over));
    if (!over.is) return add_legal(x, &own);
    for (uint32_t i = 1; i < x->n; i++)
        if (b->hi[i] - b->lo[i] > b->hi[at] - b->lo[at]) at = i;
    low.hi[at] = b->lo[at] + (b->hi[at] - b->lo[at]) / 2;
    high.lo[at] = low.hi[at] + 1;
    SC_TRY(keep_within(x, &low));
    return keep_within(x, &high);
}

/* Adds all values of the axes with an order to digits of the others. */
static sc_status add_box(machines *x, const uint32_t *digit)
{
    box b = {.points = 0};
    for (uint32_t i = 0; i < x->n; i++) {
        bool all = x->axis[i].ordered;
        b.lo[i] = all ? 0 : digit[i];
        b.hi[i] = all ? x->axis[i].n - 1 : digit[i];
    }
    return keep_within(x, &b);
}

static sc_status add_boxes(machines *x, uint32_t *digit, uint32_t i)
{
    if (i == x->n) return add_box(x, digit);
    uint32_t n = x->axis[i].ordered ? 1 : x->axis[i].n;
    for (digit[i] = 0; digit[i] < n; digit[i]++)
        SC_TRY(add_boxes(x, digit, i + 1));
    return SC_OK;
}

static sc_status set_weight(machines *x, box *b)
{
    sc_search_machine m;
    bool legal;
    double w;
    SC_TRY(open_machine(x, b->lo, &m, &legal));
    sc_assert(legal);
    SC_TRY(weight_of(x, &m, &w));
    sc_assert(w >= b->weight * (1 - 1e-12));
    b->weight = w;
    return dims_of(x, &m, b->least);
}

/* The best known with the worst value of an axis that a box has. */
static double worst_of(const machines *x, const box *b, uint32_t axis)
{
    double most = 0;
    for (uint32_t k = b->lo[axis]; k <= b->hi[axis]; k++)
        most = fmax(most, x->out->per_axis[axis][k]);
    return most;
}

/* Divides a box along the axis that keeps it from being left out, or else along
 * the longest one: its best value is split off, whose machine is known. */
static sc_status divide(machines *x, const box *b)
{
    uint32_t at = 0;
    double most = -1;
    for (uint32_t i = 0; i < x->n; i++) {
        double worst = worst_of(x, b, i);
        if (b->hi[i] == b->lo[i] || worst < most) continue;
        if (worst == most && b->hi[i] - b->lo[i] <= b->hi[at] - b->lo[at])
            continue;
        at = i;
        most = worst;
    }
    box low = *b, high = *b;
    low.hi[at] = b->hi[at] - 1;
    low.known = false;
    high.lo[at] = b->hi[at];
    SC_TRY(set_weight(x, &high));
    SC_TRY(push(x, &high));
    return push(x, &low);
}

static bool excluded(const machines *x, const box *b)
{
    return !x->q.o->exhaustive && bound_of(b) >= beat(x, b) && covered(x, b);
}

/* Boxes whose bound is least come first, so that all others are excluded when
 * theirs is not below what is known. */
static sc_status branch(machines *x)
{
    while (x->n_heap > 0 && !x->over) {
        box b = box_heap_pop(x, x->heap, x->n_heap--);
        if (excluded(x, &b)) continue;
        if (!b.known) {
            SC_TRY(search_best(x, &b));
            SC_TRY(push(x, &b));
        } else if (count(x, &b) > 1) {
            SC_TRY(divide(x, &b));
        }
    }
    x->out->bound = x->out->n_best ? x->out->best[0].score : 0;
    for (uint32_t i = 0; i < x->n_heap; i++) {
        x->out->left += x->heap[i].points * count(x, &x->heap[i]);
        x->out->bound = fmin(x->out->bound, bound_of(&x->heap[i]));
    }
    return SC_OK;
}

/* ---- the answer ----------------------------------------------------------- */

/* Jobs of rows have lived in the memory of their machine. */
static sc_status finish_row(machines *x, sc_machine_row *r)
{
    sc_inputs in = *x->q.in;
    sc_prediction *p = SC_NEW(x->a, sc_prediction);
    if (!p) return sc_error_nomem(x->err);
    r->job.cluster = x->q.job->cluster;
    SC_TRY(sc_machine_set(x->axis, x->n, r->digit, x->a, &r->job, x->err));
    SC_TRY(sc_job_on_machine(&r->job, x->a, &in, x->err));
    r->job.engine = SC_ENGINE_FAST;
    r->job.brief = true;
    SC_TRY(
        sc_predict(&r->job, in.hw, in.model, in.sw, in.cost, x->a, p, x->err));
    r->best = p;
    return sc_machine_bill_of(&r->job, in.hw, in.cost, x->a, &r->bill, x->err);
}

/* Rows of the front are copied: members are in memory of their own. */
static sc_status finish_front(machines *x)
{
    sc_search_machines *out = x->out;
    SC_TRY(sc_search_front_of(x->member, x->n_members, x->q.dims, x->a,
                              &out->front, &out->n_front, x->err));
    for (uint32_t i = 0; i < out->n_front; i++) {
        sc_machine_row *r = SC_NEW(x->a, sc_machine_row);
        if (!r) return sc_error_nomem(x->err);
        *r = *out->front[i].machine;
        SC_TRY(finish_row(x, r));
        out->front[i].machine = r;
    }
    return SC_OK;
}

/* All rows of the best machine. */
static sc_status choose(machines *x)
{
    sc_search_machine *m = SC_NEW(x->a, sc_search_machine);
    sc_search_options o = *x->q.o;
    bool legal;
    sc_err why;
    if (!m) return sc_error_nomem(x->err);
    if (x->out->n_best == 0) return SC_OK;
    sc_job job = *x->q.job;
    job.cluster = x->out->best[0].job.cluster;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->axis[i].option)
            sc_search_option_set(x->axis[i].option, x->out->best[0].digit[i],
                                 &job);
    SC_TRY(sc_search_machine_open(&x->q, &job, x->a, m, &legal, &why, x->err));
    double most;
    SC_TRY(sc_search_longest(&x->q, m, x->a, &most, x->err));
    o.slowest = isinf(most) ? 0 : most;
    x->out->chosen = m;
    SC_TRY(sc_search_run(&m->jobs, &o, x->a, &m->found, x->err));
    SC_TRY(sc_search_machine_keep(&x->q, &o, m, x->a, x->err));
    return sc_search_machine_best(&x->q, m, x->a, x->err);
}

static sc_status none_legal(machines *x)
{
    const sc_search_machines *out = x->out;
    const sc_search_question *q = &x->q;
    SC_TRY(
        sc_search_goal_check(q->o->goal, q->limits, q->job, q->in->hw, x->err));
    double over = out->beyond_watts + out->beyond_usd + out->not_known;
    if (over > 0)
        return sc_error(x->err, SC_EINPUT, SC_C_CONFLICT,
                        sc_pos_file("--cluster-budget"), out->why_over,
                        "%.0f of %.0f machines are beyond the budget, and the "
                        "job can't run on the others",
                        over, out->machines);
    return sc_error(x->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file("--machine"),
                    x->out->why, "the job can't run on any of %.0f machines",
                    x->out->machines);
}

static sc_status run(machines *x)
{
    uint32_t digit[SC_MACHINE_AXES];
    sc_search_machines *out = x->out;
    out->machines = 1;
    for (uint32_t i = 0; i < x->n; i++) {
        out->machines *= x->axis[i].n;
        out->per_axis[i] = SC_RAW_N(x->a, double, x->axis[i].n);
        if (!out->per_axis[i]) return sc_error_nomem(x->err);
        for (uint32_t k = 0; k < x->axis[i].n; k++)
            out->per_axis[i][k] = INFINITY;
    }
    SC_TRY(add_boxes(x, digit, 0));
    if (x->n_heap == 0) return none_legal(x);
    SC_TRY(branch(x));
    for (uint32_t i = 0; i < out->n_best; i++)
        SC_TRY(finish_row(x, &out->best[i]));
    if (x->q.dims) SC_TRY(finish_front(x));
    return choose(x);
}

sc_status sc_search_machines_run(const sc_search_question *q,
                                 const sc_machine_axis *axis, uint32_t n_axes,
                                 sc_arena *a, sc_search_machines *out,
                                 sc_err *err)
{
    sc_job own;
    machines x = {
        .q = *q, .out = out, .n = n_axes, .axis = axis, .a = a, .err = err};
    sc_assert(n_axes <= SC_MACHINE_AXES);
    *out =
        (sc_search_machines){.n_axes = n_axes, .axis = axis, .dims = q->dims};
    out->best = SC_NEW_N(a, sc_machine_row, (size_t)q->o->top + 1);
    out->per_axis = SC_NEW_N(a, double *, (size_t)n_axes + 1);
    if (!out->best || !out->per_axis) return sc_error_nomem(err);
    SC_TRY(sc_search_batch(q->job, q->in, a, &own, err));
    x.q.job = &own;
    sc_arena_init(&x.own, a->limit);
    sc_status s = run(&x);
    sc_arena_free(&x.own);
    return s;
}
