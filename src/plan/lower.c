/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.c - instantiates a program along the pipeline schedule.
 *
 * Waits follow from values: an item of a micro-batch waits for the items that
 * made its inputs.  Kernels and the exchanges that block them run on the
 * compute stream in the order of the schedule.
 */
#include "plan/clock.h"
#include "plan/internal.h"
#include "plan/plan_schedule.h"

#include <string.h>

/* ---- operations --------------------------------------------------------- */

void lower_after(lowering *g, sc_op before, sc_op after)
{
    if (before == SC_NONE || before == after) return;
    if (g->clock) {
        clock_after(g->clock, before, after);
        return;
    }
    sc_op from = lower_op_of(g, before), to = lower_op_of(g, after);
    if (from != to) sc_graph_add_dep(g->b, from, to);
}

/* Megatron-LM does not batch transfers that overlap kernels, so PyTorch queues
 * those of each pair of devices by themselves; with two stages, those of each
 * direction (_p2p_ops()). */
uint8_t lower_transfer_stream(const lowering *g, uint32_t from, uint32_t to)
{
    uint32_t low = from < to ? from : to, high = from < to ? to : from;
    uint32_t first = g->pp == 2 ? from : high - low == 1 ? low : high;
    return first % 2 ? SC_S_P2P_ODD : SC_S_P2P;
}

static uint8_t stream_of(const lowering *g, const lower_item *t,
                         const sc_op_desc *o)
{
    bool pair = t->kind == SC_OP_P2P && o->n_dev == 2;
    if (t->stream != SC_S_P2P || !pair) return t->stream;
    return lower_transfer_stream(g, o->dev[0] / g->members,
                                 o->dev[1] / g->members);
}

sc_op lower_add(lowering *g, const lower_item *t, const sc_op_desc *o)
{
    sc_op_desc op = *o;
    op.stream = stream_of(g, t, o);
    if (g->clock) return clock_add(g->clock, t, &op);
    op.name = t->name;
    op.work = t->work;
    op.latency = t->latency;
    op.kind = t->work ? t->kind : SC_OP_MARK;
    sc_op id =
        lower_number(g, sc_graph_add_op(g->b, &op), op.parts ? op.parts->n : 1);
    if (g->notes)
        lower_report(
            g, id,
            &(lower_note){.name = t->name, .comm = SC_NONE, .fills = t->fills});
    return id;
}

void lower_report(lowering *g, sc_op op, const lower_note *note)
{
    lower_notes *n = g->notes;
    if (!n || op == SC_NONE) return;
    for (; n->n <= op; n->n++) {
        lower_note *at = sc_grow(g->a, n->at, n->n, &n->cap, 256, sizeof *at);
        n->failed = n->failed || !at;
        if (n->failed) return;
        n->at = at;
        at[n->n] = (lower_note){.comm = SC_NONE};
    }
    n->at[op] = *note;
}

/* The row in which an instance finds the operations of item `m`. */
static uint32_t row_of(const lowering *g, const lower_instance *at, uint32_t mb,
                       uint32_t m)
{
    const program_item *it = &g->prog->item[m];
    if (!it->once) return mb;
    return it->stage == at->stage ? at->row : 0;
}

/* A once-a-step item waits for the last micro-batch, as streams are in order;
 * if a stream runs what is ready first, it waits for all micro-batches. */
static void after_all(lowering *g, const lower_instance *at, uint32_t m,
                      uint32_t member, sc_op op)
{
    uint32_t v = g->prog->item[m].stage, part = g->item[m].part;
    uint32_t dev = v == at->stage ? at->dev : lower_device(g, v, 0);
    const lower_instance *of = &g->inst[g->inst_of[dev * g->p->n_stages + v]];
    uint32_t last = of->last[part == LOWER_FWD ? 0 : part == LOWER_X ? 1 : 2];
    if (last != SC_NONE && !g->rules->ready_order)
        lower_after(g, lower_ops(g, last, m)[member], op);
    for (uint32_t mb = 0; g->rules->ready_order && mb < g->ga; mb++)
        if (lower_device(g, v, mb) == dev)
            lower_after(g, lower_ops(g, mb, m)[member], op);
}

/* Waits for weights that are gathered during the first forward pass. */
static void after_fresh(lowering *g, const lower_instance *at,
                        const program_value *v, uint32_t member, sc_op op)
{
    uint32_t gather =
        v->what == VALUE_WEIGHT ? g->new_weight[v->tensor] : SC_NONE;
    if (gather == SC_NONE || at->begun) return;
    if (g->prog->item[gather].stage == at->stage)
        lower_after(g, lower_ops(g, at->row, gather)[member], op);
}

static void after_once(lowering *g, const lower_instance *at, uint32_t i,
                       uint32_t member, sc_op op)
{
    const program_item *it = &g->prog->item[i];
    for (uint32_t k = 0; k < it->n_in; k++) {
        const program_value *v = &g->prog->value[it->in[k]];
        uint32_t m = v->made;
        if (m != SC_NONE && g->prog->item[m].once)
            lower_after(g, lower_ops(g, row_of(g, at, 0, m), m)[member], op);
        else if (m != SC_NONE && it->once)
            after_all(g, at, m, member, op);
        else if (m == SC_NONE && !it->once)
            after_fresh(g, at, v, member, op);
    }
}

void lower_after_values(lowering *g, const lower_instance *at, uint32_t mb,
                        uint32_t i, uint32_t member, sc_op op)
{
    const lower_item *t = &g->item[i];
    for (uint32_t k = 0; k < t->n_after; k++)
        lower_after(g, lower_ops(g, mb, t->after[k])[member], op);
    if (t->once) after_once(g, at, i, member, op);
}

/* ---- prefetches --------------------------------------------------------- */

static sc_op *past(const lowering *g, uint32_t dev, uint32_t n)
{
    size_t ring = g->ahead + 2;
    return g->past + (dev * ring + n % ring) * g->members;
}

static void after_layer(lowering *g, const lower_instance *at, uint32_t i,
                        uint32_t member, sc_op op)
{
    uint32_t back = g->item[i].back, n = g->n_past[at->dev];
    if (back <= n) lower_after(g, past(g, at->dev, n - back)[member], op);
}

/* Sharded gradients are reduced from two buffers: one is filled again when its
 * content has been reduced (DeepSpeed's stage 2, FSDP). */
static sc_op *reduced(const lowering *g, uint32_t dev, uint32_t n)
{
    return g->reduced + (2 * (size_t)dev + n % 2) * g->members;
}

static void after_reduced(lowering *g, const lower_instance *at, uint32_t i,
                          uint32_t member, sc_op op)
{
    const lower_item *t = &g->item[i];
    uint32_t n = g->n_reduced[at->dev];
    bool queued = g->prog->item[i].exchange != SC_NONE && !t->empties;
    if (n >= 2) lower_after(g, reduced(g, at->dev, n)[member], op);
    if (n >= 1 && queued) /* the copy precedes it in their queue */
        lower_after(g, reduced(g, at->dev, n - 1)[member], op);
}

static void remember_reduced(lowering *g, const lower_instance *at, uint32_t mb,
                             uint32_t i)
{
    if (!g->item[i].empties) return;
    memcpy(reduced(g, at->dev, g->n_reduced[at->dev]++), lower_ops(g, mb, i),
           g->members * sizeof(sc_op));
}

bool lower_is_transfer(const lowering *g, uint32_t i)
{
    return g->item[i].kind == SC_OP_P2P && g->prog->item[i].to != SC_NONE;
}

/* A pass begins when everything that it reads from other stages has arrived. */
static void after_arrivals(lowering *g, const lower_instance *at, uint32_t i,
                           uint32_t member, sc_op op)
{
    const lower_slot *s = g->opening;
    if (!s || g->item[i].stream != SC_S_COMPUTE) return;
    const lower_stage *st = &g->stage[at->stage];
    for (uint32_t k = 0; k < st->n_arrivals; k++)
        if (st->arrival_part[k] & s->parts)
            lower_after(g, lower_ops(g, s->mb, st->arrival[k])[member], op);
}

/* Waits that follow from the schedule alone.  Programs send at the end of a
 * pass.  If streams start operations by readiness, a slot waits for the slot
 * before it, and recomputation waits for the backward work before it. */
static void after_order(lowering *g, const lower_instance *at, uint32_t i,
                        uint32_t member, sc_op op)
{
    const lower_tail *line = &g->tail[at->dev * g->members + member];
    if (!g->rules->ready_order) {
        if (g->eager || lower_spread(g, at->stage)) return;
        if (lower_is_transfer(g, i)) lower_after(g, line->tail, op);
        after_arrivals(g, at, i, member, op);
        return;
    }
    if (g->item[i].source) lower_after(g, line->before, op);
    if (g->prog->item[i].recomputed && g->item[i].source)
        lower_after(g, line->tail, op);
}

/* ---- items -------------------------------------------------------------- */

void lower_deps(lowering *g, const lower_instance *at, uint32_t mb, uint32_t i,
                uint32_t member, sc_op op)
{
    const lower_item *t = &g->item[i];
    if (t->n_after || t->once) lower_after_values(g, at, mb, i, member, op);
    if (t->back) after_layer(g, at, i, member, op);
    if (t->fills) after_reduced(g, at, i, member, op);
    if (g->opening || t->kind == SC_OP_P2P || g->rules->ready_order)
        after_order(g, at, i, member, op);
}

void lower_ran(lowering *g, const lower_instance *at, uint32_t i,
               uint32_t member, sc_op op)
{
    const lower_item *t = &g->item[i];
    if (t->closes) past(g, at->dev, g->n_past[at->dev])[member] = op;
    if (t->stream != SC_S_COMPUTE) return;
    lower_tail *line = &g->tail[at->dev * g->members + member];
    line->tail = op;
}

/* One operation on one device. */
static void emit_kernel(lowering *g, const lower_instance *at, uint32_t mb,
                        uint32_t i, uint32_t row)
{
    const lower_item *t = &g->item[i];
    uint32_t made = g->prog->item[i].out;
    bool loads = made != SC_NONE && g->prog->value[made].tier == SC_TIER_DEVICE;
    sc_op *ops = lower_ops(g, row, i);
    for (uint32_t r = 0; r < g->members; r++) {
        uint32_t dev = at->dev * g->members + r;
        sc_op_desc o = {.cat = g->prog->item[i].cat,
                        .bytes = t->bytes,
                        .flops = t->flops,
                        .traffic = SC_NONE,
                        .dev = &dev,
                        .n_dev = 1};
        ops[r] = lower_add(g, t, &o);
        if (g->prog->item[i].copy)
            lower_report(
                g, ops[r],
                &(lower_note){t->name, SC_NONE, .copy = true, .load = loads});
        lower_deps(g, at, mb, i, r, ops[r]);
        lower_ran(g, at, i, r, ops[r]);
    }
}

/* An item that takes no time ends when its last input is ready. */
static void emit_none(lowering *g, const lower_instance *at, uint32_t mb,
                      uint32_t i)
{
    uint32_t m = g->item[i].as, row = g->prog->item[i].once ? at->row : mb;
    if (m == SC_NONE) return;
    memcpy(lower_ops(g, row, i), lower_ops(g, row_of(g, at, mb, m), m),
           g->members * sizeof(sc_op));
}

sc_status lower_emit(lowering *g, const lower_instance *at, uint32_t mb,
                     uint32_t i)
{
    const program_item *it = &g->prog->item[i];
    const lower_item *t = &g->item[i];
    uint32_t row = it->once ? at->row : mb, to = SC_NONE;
    if (it->to != SC_NONE) {
        to = lower_device(g, it->to, mb);
        /* Nothing moves between stages of one device. */
        if (to == at->dev) {
            emit_none(g, at, mb, i);
            return SC_OK;
        }
    }
    if (it->exchange == SC_NONE || it->copy) {
        if (t->none)
            emit_none(g, at, mb, i);
        else
            emit_kernel(g, at, mb, i, row);
        remember_reduced(g, at, mb, i);
        if (t->closes) g->n_past[at->dev]++;
        return SC_OK;
    }
    const lower_comm *c;
    SC_TRY(lower_comm_of(g, i, at->dev, to, &c));
    lower_exchange(g, at, mb, i, c);
    remember_reduced(g, at, mb, i);
    return SC_OK;
}

/* ---- slots -------------------------------------------------------------- */

/* Issues the items of a slot.  Transfers are issued in order with the others if
 * `at_once`, else after them. */
static sc_status pass(lowering *g, const lower_instance *at,
                      const lower_slot *s, const lower_list *l, bool at_once)
{
    uint32_t later = 0;
    g->opening = s;
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = l->item[k];
        if (!(g->item[i].part & s->parts)) continue;
        bool waits = !at_once && lower_is_transfer(g, i);
        later += waits;
        if (waits) continue;
        SC_TRY(lower_emit(g, at, s->mb, i));
        if (g->item[i].stream == SC_S_COMPUTE && !g->item[i].none)
            g->opening = NULL;
    }
    g->opening = NULL;
    for (uint32_t k = 0; later && k < l->n; k++) {
        uint32_t i = l->item[k];
        if (!(g->item[i].part & s->parts) || !lower_is_transfer(g, i)) continue;
        SC_TRY(lower_emit(g, at, s->mb, i));
    }
    return SC_OK;
}

static sc_status slot(lowering *g, const lower_slot *s)
{
    lower_instance *at = &g->inst[s->inst];
    const lower_stage *st = &g->stage[s->stage];
    const lower_list *l = s->parts == LOWER_FWD ? &st->fwd : &st->bwd;
    size_t mine = (size_t)s->dev * g->members;
    if (g->clock) SC_TRY(clock_row(g, s->mb));
    if (!at->begun) SC_TRY(lower_first_pass(g, at));
    for (uint32_t r = 0; r < g->members; r++)
        g->tail[mine + r].before = g->tail[mine + r].tail;
    bool known = false;
    if (g->clock) SC_TRY(clock_slot_begin(g, s, &known));
    bool done = known;
    if (g->runs && !done) SC_TRY(lower_runs_pass(g, at, s, l, &done));
    if (!done)
        SC_TRY(pass(g, at, s, l,
                    g->rules->ready_order || g->eager ||
                        lower_spread(g, s->stage)));
    at->ran |= s->parts;
    if (g->clock && !known) SC_TRY(clock_slot_end(g, s));
    if (g->clock) clock_row_done(g, s->mb);
    at->begun = true;
    bool last = true;
    for (uint32_t part = 0; part < 3; part++) {
        if (s->parts >> part & 1) at->left[part]--;
        if (at->left[part]) last = false;
    }
    return last ? lower_last_pass(g, at) : SC_OK;
}

/* ---- shape -------------------------------------------------------------- */

static bool said(int strategy, bool software)
{
    return strategy < 0 ? software : strategy > 0;
}

static sc_status places(lowering *g)
{
    g->device = SC_NEW_N(g->a, uint32_t, (size_t)g->p->n_stages * g->ga);
    if (!g->device) return sc_error_nomem(g->err);
    for (uint32_t v = 0; v < g->p->n_stages; v++)
        for (uint32_t mb = 0; mb < g->ga; mb++)
            g->device[(size_t)v * g->ga + mb] =
                sc_schedule_device(g->schedule, g->pp, g->chunks, v, mb, g->ga);
    return SC_OK;
}

static sc_status check_order(const lowering *g)
{
    const sc_schedule_file *f = g->job->order;
    if (!f || (f->pp == g->pp && f->ga == g->ga)) return SC_OK;
    return sc_error(g->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(f->file),
                    NULL,
                    "the schedule is for %u devices and %u micro-batches, the "
                    "run has %u and %u",
                    f->pp, f->ga, g->pp, g->ga);
}

static sc_status shape(lowering *g)
{
    const sc_net_run *j = g->job;
    const sc_strategy *s = j->strategy;
    const sc_software *sw = j->sw;
    int axis = s ? sc_strategy_axis(s, SC_AX_PP) : -1;
    g->rules = j->rules ? j->rules : sc_rules_find(NULL);
    g->ga = g->n_rows = j->ga ? j->ga : 1;
    g->pp = axis < 0 ? 1 : s->axis[axis].size;
    g->stride = axis < 0 ? 1 : sc_strategy_stride(s, axis);
    g->schedule = program_schedule(j, g->p->n_stages > g->pp);
    SC_TRY(check_order(g));
    uint32_t vpp = g->p->n_stages / g->pp;
    g->chunks = sc_schedule_chunks(g->schedule, vpp ? vpp : 1);
    if (sc_schedule_stages(g->schedule, g->pp, g->chunks) != g->p->n_stages)
        return sc_error(
            g->err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
            "%u stages on %u pipeline devices do not match schedule %s",
            g->p->n_stages, g->pp, sc_schedule_names[g->schedule]);
    g->slow = 1;
    if (!g->rules->nothing_fixed && j->hw && j->cost)
        g->slow = plan_straggler(j->hw, j->cost) *
                  (j->numa_unbound ? 1 + j->cost->p[SC_P_NUMA] : 1);
    if (g->notes) { /* a simulator of the workload knows which rank is slow */
        g->notes->slow = g->slow;
        g->slow = 1;
    }
    g->members = j->unfold ? g->p->n_ranks / g->pp : 1;
    if (axis < 0) g->stride = g->p->n_ranks;
    bool own = g->rules->exchanges_overlap;
    g->grads_overlap =
        own || said(s ? s->grad_overlap : -1, sw && sw->grad_overlap);
    g->p2p_overlaps =
        own || said(s ? s->p2p_overlap : -1,
                    sw && sw->p2p_overlap && g->chunks > 1 && !j->layers_chunk);
    g->weights_overlap = sw && sw->param_overlap && !j->forward_only;
    return places(g);
}

static sc_status instances(lowering *g)
{
    uint32_t n = g->p->n_stages;
    g->inst = SC_NEW_N(g->a, lower_instance, (size_t)g->pp * g->chunks);
    g->inst_of = SC_NEW_N(g->a, uint32_t, (size_t)g->pp * n);
    if (!g->inst || !g->inst_of) return sc_error_nomem(g->err);
    memset(g->inst_of, 0xff, (size_t)g->pp * n * sizeof *g->inst_of);
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        for (uint32_t c = 0; c < g->chunks; c++) {
            lower_instance *at = &g->inst[g->n_inst];
            at->dev = dev;
            at->stage =
                sc_schedule_stage(g->schedule, g->pp, g->chunks, dev, c);
            at->row = dev != lower_device(g, at->stage, 0);
            for (uint32_t k = 0; k < 3; k++) at->last[k] = SC_NONE;
            g->inst_of[dev * n + at->stage] = g->n_inst++;
        }
    }
    return SC_OK;
}

static sc_status devices(lowering *g)
{
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        for (uint32_t r = 0; r < g->members; r++) {
            uint32_t rank = lower_rank(g, dev, r);
            char *name = sc_sprintf(g->a, g->members > 1 ? "rank%u" : "stage%u",
                                    g->members > 1 ? rank : dev);
            if (!name) return sc_error_nomem(g->err);
            sc_graph_add_class(g->b, name, rank,
                               g->p->n_ranks / g->pp / g->members);
        }
    }
    return SC_OK;
}

/* The fast sink keeps only rows of micro-batches that are in flight. */
static sc_status rows(lowering *g, uint32_t n)
{
    size_t each = (size_t)g->prog->n_items * g->members;
    g->row = SC_NEW_N(g->a, sc_op *, n);
    if (!g->row) return sc_error_nomem(g->err);
    if (g->clock) return SC_OK;
    sc_op *all = SC_RAW_N(g->a, sc_op, n * each);
    if (!all) return sc_error_nomem(g->err);
    memset(all, 0xff, n * each * sizeof *all);
    for (uint32_t k = 0; k < n; k++) g->row[k] = all + k * each;
    return SC_OK;
}

static sc_status room(lowering *g)
{
    uint32_t n_rows = g->ga < 2 ? 2 : g->ga;
    uint64_t n = (uint64_t)n_rows * g->prog->n_items * g->members;
    size_t m = (size_t)g->pp * g->members;
    if (n >= SC_NONE / 2)
        return sc_error(
            g->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
            "simulate classes of ranks",
            "%u operators x %u micro-batches x %u ranks are too many",
            g->prog->n_items, g->ga, g->members);
    SC_TRY(rows(g, n_rows));
    g->past = SC_NEW_N(g->a, sc_op, (g->ahead + 2) * m);
    g->n_past = SC_NEW_N(g->a, uint32_t, g->pp);
    g->reduced = SC_NEW_N(g->a, sc_op, 2 * m);
    g->n_reduced = SC_NEW_N(g->a, uint32_t, g->pp);
    g->tail = SC_NEW_N(g->a, lower_tail, m);
    g->issued = SC_NEW_N(g->a, bool, 2 * (size_t)g->prog->n_items);
    g->scratch = SC_NEW_N(g->a, uint32_t, 2 * (size_t)g->p->n_ranks);
    if (!g->past || !g->n_past || !g->reduced || !g->n_reduced || !g->tail ||
        !g->issued || !g->scratch)
        return sc_error_nomem(g->err);
    memset(g->tail, 0xff, m * sizeof *g->tail);
    return SC_OK;
}

sc_status lower_begin(lowering *g, net_program *whole)
{
    const net_program *prog = g->p->program;
    g->job = g->p->job;
    struct sc_net_walks *x = lower_shared(g);
    if (x && x->made) {
        *whole = x->whole;
    } else {
        SC_TRY(lower_tiers(g->job, prog, g->a, whole, g->err));
        SC_TRY(lower_split(g->job, whole, g->a, g->err));
    }
    g->prog = whole;
    SC_TRY(shape(g));
    if (x && x->made) {
        lower_use_shared(g, x);
    } else {
        SC_TRY(lower_find_eager(g));
        SC_TRY(lower_items(g));
        if (g->p->n_stages > 1) SC_TRY(lower_needs(g));
        if (x) lower_share(g, x);
    }
    SC_TRY(instances(g));
    SC_TRY(lower_slots(g));
    return room(g);
}

sc_status lower_walk(lowering *g)
{
    for (uint32_t k = 0; k < g->n_slots; k++) SC_TRY(slot(g, &g->slot[k]));
    return lower_finish(g);
}

/* Notes are in the order in which operations were added. */
static sc_status finish_notes(const lowering *g, lower_notes *n)
{
    const sc_graph *x = &g->p->step;
    if (n->failed) return sc_error_nomem(g->err);
    n->n_comms = g->comms->n;
    n->comm = g->comms->all;
    n->pp = g->pp;
    n->stride = g->stride;
    n->ahead = g->chunks > 1 || lower_splits(g);
    for (sc_op i = 0; i < x->n_ops; i++)
        if (i >= n->n || n->at[i].name != x->name[i])
            return sc_error(g->err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "lowering added op %u (%s) out of order", i,
                            x->name[i]);
    return SC_OK;
}

sc_status sc_net_plan_lower(sc_net_plan *p, sc_arena *a, sc_err *err)
{
    return lower_lower(p, NULL, a, err);
}

sc_status lower_lower(sc_net_plan *p, lower_notes *notes, sc_arena *a,
                      sc_err *err)
{
    net_program whole;
    lowering g = {.p = p,
                  .a = a,
                  .err = err,
                  .notes = notes,
                  .b = sc_graph_builder_new(a)};
    if (!g.b) return sc_error_nomem(err);
    SC_TRY(lower_begin(&g, &whole));
    SC_TRY(lower_comms_begin(&g));
    SC_TRY(devices(&g));
    if (!notes) SC_TRY(lower_runs_prepare(&g));
    SC_TRY(lower_walk(&g));
    if (!g.job->timed) SC_TRY(lower_lifetimes(&g));
    SC_TRY(sc_graph_build(g.b, a, &p->step, err));
    return notes ? finish_notes(&g, notes) : SC_OK;
}
