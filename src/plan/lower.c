/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.c - instantiates blocks along the schedule: an execution graph with
 * one rank class per pipeline device.
 *
 * A block whose pieces all run on the compute stream is closed: nothing
 * outside can change its inside, so it becomes one op per category.  Blocks
 * that exchange weights or gradients beside compute are opened layer by
 * layer.  Ops are added in an order in which their inputs exist already.
 */
#include "plan/lower.h"

#include "plan/plan_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sc_time ps(const lower *lw, double seconds)
{
    return sc_time_from_s(seconds * lw->slow);
}

sc_op lower_op(lower *lw, uint32_t dev, const lower_op_desc *d)
{
    sc_op_desc o = {.name = d->name,
                    .work = ps(lw, d->seconds),
                    .cls = dev,
                    .group = d->group,
                    .peer = d->peer,
                    .traffic = SC_NONE,
                    .bytes = (uint64_t)d->bytes,
                    .flops = d->flops,
                    .kind = d->kind,
                    .stream = d->stream,
                    .cat = d->cat};
    return sc_graph_add_op(lw->b, &o);
}

void lower_after(lower *lw, sc_op before, sc_op after)
{
    if (before != SC_NONE && after != SC_NONE)
        sc_graph_add_dep(lw->b, before, after);
}

static const char *const cat_names[SC_N_CATS] = {
    "compute", "tp",   "pp",      "dp",        "cp",   "ep",
    "wait",    "host", "offload", "optimizer", "other"};

static uint32_t group_of(const lower *lw, uint8_t cat)
{
    if (cat == SC_CAT_TP) return lw->group[SC_AX_TP];
    if (cat == SC_CAT_DP) return lw->group[SC_AX_DP];
    if (cat == SC_CAT_CP) return lw->group[SC_AX_CP];
    if (cat == SC_CAT_EP) return lw->group[SC_AX_EP];
    return SC_NONE;
}

/* One op per category.  The first waits for both of `after`. */
static sc_op closed(lower *lw, uint32_t dev, const char *name,
                    const double cat[SC_N_CATS], const sc_op after[2])
{
    sc_op last = SC_NONE;
    for (uint32_t c = 0; c < SC_N_CATS; c++) {
        if (cat[c] <= 0) continue;
        bool compute = c == SC_CAT_COMPUTE;
        uint8_t kind = compute               ? SC_OP_COMPUTE
                       : c == SC_CAT_HOST    ? SC_OP_HOST
                       : c == SC_CAT_OFFLOAD ? SC_OP_MEM
                                             : SC_OP_COLL;
        sc_op op =
            lower_op(lw, dev,
                     &(lower_op_desc){.name = compute ? name : cat_names[c],
                                      .seconds = cat[c],
                                      .group = group_of(lw, (uint8_t)c),
                                      .peer = SC_NONE,
                                      .kind = kind,
                                      .stream = SC_S_COMPUTE,
                                      .cat = (uint8_t)c});
        if (last == SC_NONE) {
            lower_after(lw, after[0], op);
            lower_after(lw, after[1], op);
        }
        last = op;
    }
    return last;
}

/* Share of a piece of the backward pass that belongs to `pass`. */
static double share_of(const sc_block *b, const sc_piece *p, sc_pass pass)
{
    if (pass == SC_FWD || pass == SC_BWD) return 1;
    double weights = p->wgrad ? 1 : 0, host = b->bwd_cat[SC_CAT_HOST];
    if (p->kind == SC_OP_COMPUTE && b->w_s <= 0) weights = 0;
    if (p->kind == SC_OP_HOST && host > 0)
        weights = b->w_cat[SC_CAT_HOST] / host;
    return pass == SC_BWD_W ? weights : 1 - weights;
}

static sc_op pieces(lower *lw, uint32_t dev, const sc_block *b, sc_pass pass,
                    const sc_op after[2])
{
    const sc_piece *p = pass == SC_FWD ? b->fwd : b->bwd;
    uint32_t n = pass == SC_FWD ? b->n_fwd : b->n_bwd;
    sc_op last = SC_NONE;
    for (uint32_t i = 0; i < n; i++) {
        double share = share_of(b, &p[i], pass);
        if (share <= 0) continue;
        sc_op op =
            lower_op(lw, dev,
                     &(lower_op_desc){.name = p[i].name,
                                      .seconds = p[i].seconds * share,
                                      .bytes = p[i].bytes,
                                      .flops = p[i].flops,
                                      .group = p[i].kind == SC_OP_COLL
                                                   ? group_of(lw, p[i].cat)
                                                   : SC_NONE,
                                      .peer = SC_NONE,
                                      .kind = p[i].kind,
                                      .stream = p[i].stream,
                                      .cat = p[i].cat});
        if (last == SC_NONE) {
            lower_after(lw, after[0], op);
            lower_after(lw, after[1], op);
        }
        last = op;
    }
    return last;
}

static const char *const pass_names[] = {
    "forward", "backward", "backward, inputs", "backward, weights"};

static sc_op one_layer(lower *lw, uint32_t dev, const sc_block *b, sc_pass pass,
                       sc_op input, sc_op weights)
{
    const sc_op after[2] = {input, weights};
    double cat[SC_N_CATS];
    if (lw->expand) return pieces(lw, dev, b, pass, after);
    for (uint32_t c = 0; c < SC_N_CATS; c++) cat[c] = plan_pass_cat(b, pass, c);
    return closed(lw, dev, pass_names[pass], cat, after);
}

static sc_op comm(lower *lw, uint32_t dev, const char *name, double seconds,
                  double bytes, uint8_t stream, sc_op after)
{
    sc_op op = lower_op(lw, dev,
                        &(lower_op_desc){.name = name,
                                         .seconds = seconds,
                                         .bytes = bytes,
                                         .group = lw->group[SC_AX_DP],
                                         .peer = SC_NONE,
                                         .kind = SC_OP_COLL,
                                         .stream = stream,
                                         .cat = SC_CAT_DP});
    lower_after(lw, after, op);
    return op;
}

/* Layer i of a virtual stage in forward order, on a device that has it. */
static const sc_block *layer_of(const lower *lw, uint32_t dev, uint32_t v,
                                uint32_t i)
{
    const sc_block *own = sc_plan_blocks(lw->p, lw->blocks, dev);
    return &own[sc_plan_stage_entry(lw->p, v, i)];
}

static uint32_t n_layers(const lower *lw, uint32_t v)
{
    return sc_plan_stage_layers(lw->p, v);
}

static sc_op gather(lower *lw, uint32_t dev, const sc_block *b, sc_op gate)
{
    if (b->gather_s <= 0) return SC_NONE;
    return comm(lw, dev, "gather weights", b->gather_s, b->gather_bytes,
                SC_S_COMM, gate);
}

/* What compresses a layer's gradients before they are exchanged. */
static sc_op packed(lower *lw, uint32_t dev, const sc_block *b, sc_op after)
{
    if (b->pack_s <= 0) return after;
    sc_op op = lower_op(lw, dev,
                        &(lower_op_desc){.name = "compress gradients",
                                         .seconds = b->pack_s,
                                         .group = SC_NONE,
                                         .peer = SC_NONE,
                                         .kind = SC_OP_COMPUTE,
                                         .stream = SC_S_COMPUTE,
                                         .cat = SC_CAT_COMPUTE});
    lower_after(lw, after, op);
    return op;
}

/* Layers of a virtual stage that a pass runs; those that nothing below learns
 * from are its first. */
static uint32_t n_run(const lower *lw, uint32_t v, bool bwd)
{
    uint32_t n = n_layers(lw, v), skip = 0;
    while (bwd && skip < n && layer_of(lw, 0, v, skip)->still) skip++;
    return n - skip;
}

static const sc_block *run_of(const lower *lw, uint32_t dev, uint32_t v,
                              bool bwd, uint32_t k)
{
    return layer_of(lw, dev, v, bwd ? n_layers(lw, v) - 1 - k : k);
}

/* End of the layer that has to be done, and its weights dropped, before those
 * of one `ahead` layers from now are gathered. */
static sc_op gate(const lower *lw, uint32_t dev, uint32_t ahead)
{
    uint32_t depth = (uint32_t)lw->p->run.sw->prefetch;
    const lower_past *past = &lw->past[dev];
    uint64_t back = 1 + depth - ahead;
    return back > past->n ? SC_NONE
                          : past->end[(past->n - back) % SC_COUNT(past->end)];
}

static sc_op scatter(lower *lw, uint32_t dev, const sc_block *b, sc_op last)
{
    if (b->grad_s <= 0) return last;
    last = packed(lw, dev, b, last);
    lw->grad_tail[dev] = comm(lw, dev, "scatter gradients", b->grad_s,
                              b->grad_bytes, SC_S_COMM, last);
    return last;
}

/* Weights gathered before use, gradients scattered after: ZeRO-3.  A gather
 * is issued before the layer at work runs, so that this layer's scatter does
 * not hold it up; the layer at work and `prefetch` more are gathered. */
static sc_op open_zero3(lower *lw, uint32_t dev, uint32_t v, sc_pass pass,
                        sc_op input)
{
    bool bwd = pass != SC_FWD;
    uint32_t n = n_run(lw, v, bwd), next = 0;
    uint32_t depth = (uint32_t)lw->p->run.sw->prefetch;
    lower_past *past = &lw->past[dev];
    sc_op last = input, ready[SC_PREFETCH_MAX + 1] = {0};
    for (uint32_t k = 0; k < n; k++) {
        const sc_block *b = run_of(lw, dev, v, bwd, k);
        for (; next < n && next <= k + depth; next++)
            ready[next % (depth + 1)] =
                gather(lw, dev, run_of(lw, dev, v, bwd, next),
                       gate(lw, dev, next - k));
        last = one_layer(lw, dev, b, pass, k == 0 ? input : SC_NONE,
                         ready[k % (depth + 1)]);
        past->end[past->n++ % SC_COUNT(past->end)] = last;
        if (pass == SC_BWD) last = scatter(lw, dev, b, last);
    }
    return last;
}

/* The weight pass needs no weights. */
static sc_op late_zero3(lower *lw, uint32_t dev, uint32_t v)
{
    sc_op last = SC_NONE;
    for (uint32_t k = 0; k < n_run(lw, v, true); k++) {
        const sc_block *b = run_of(lw, dev, v, true, k);
        sc_op op = one_layer(lw, dev, b, SC_BWD_W, SC_NONE, SC_NONE);
        if (op == SC_NONE) op = lw->tail[dev];
        last = scatter(lw, dev, b, op);
    }
    return last;
}

/* The first forward behind the gathers of updated weights, or a backward with
 * gradient buckets beside it. */
static sc_op open_edges(lower *lw, uint32_t dev, uint32_t v, sc_pass pass,
                        sc_op input)
{
    bool bwd = pass != SC_FWD;
    uint32_t n = n_run(lw, v, bwd);
    double bucket = 0, bucket_s = 0;
    sc_op last = input;
    for (uint32_t k = 0; k < n; k++) {
        const sc_block *b = run_of(lw, dev, v, bwd, k);
        sc_op g = SC_NONE;
        if (!bwd && b->update_s > 0)
            g = comm(lw, dev, "gather updated weights", b->update_s,
                     b->update_bytes, SC_S_COMM, SC_NONE);
        sc_op op = one_layer(lw, dev, b, pass, k == 0 ? input : SC_NONE, g);
        last = op == SC_NONE && pass == SC_BWD_W ? last : op;
        if (!bwd) continue;
        last = packed(lw, dev, b, last);
        bucket += b->grad_bytes;
        bucket_s += b->grad_s;
        if (bucket > 0 &&
            (k == n - 1 || bucket >= lw->p->run.sw->bucket_bytes)) {
            lw->grad_tail[dev] = comm(lw, dev, "reduce gradients", bucket_s,
                                      bucket, SC_S_GRAD, last);
            bucket = bucket_s = 0;
        }
    }
    return last;
}

static sc_op closed_stage(lower *lw, uint32_t dev, uint32_t v, sc_pass pass,
                          sc_op input)
{
    bool bwd = pass != SC_FWD;
    if (lw->expand) {
        sc_op last = input;
        uint32_t n = n_run(lw, v, bwd);
        for (uint32_t k = 0; k < n; k++) {
            sc_op op = one_layer(lw, dev, run_of(lw, dev, v, bwd, k), pass,
                                 k == 0 ? input : SC_NONE, SC_NONE);
            last = op == SC_NONE && pass == SC_BWD_W ? last : op;
        }
        return last;
    }
    double cat[SC_N_CATS];
    plan_stage_cats(lw->p, sc_plan_blocks(lw->p, lw->blocks, dev), v, pass,
                    cat);
    const sc_op after[2] = {input, SC_NONE};
    sc_op last = closed(lw, dev, pass_names[pass], cat, after);
    return last == SC_NONE ? input : last;
}

static sc_op stage_pass(lower *lw, uint32_t dev, const sc_slot *s, sc_op input)
{
    const sc_run *r = &lw->p->run;
    uint32_t v = sc_run_stage(r, dev, s->chunk);
    uint32_t c = dev * lw->chunks + s->chunk;
    sc_pass pass = (sc_pass)s->pass;
    bool grads = pass == SC_BWD || pass == SC_BWD_W;
    if (r->zero >= 3 && pass == SC_BWD_W) return late_zero3(lw, dev, v);
    if (r->zero >= 3) return open_zero3(lw, dev, v, pass, input);
    bool exchange = s->mb == lw->last[c] || sc_run_reductions(r) > 1;
    bool edge = grads ? exchange && r->sw->grad_overlap
                      : pass == SC_FWD && s->mb == lw->first[c] &&
                            r->sw->param_overlap && r->zero > 0;
    if (edge && sc_run_dp(r) * r->size[SC_AX_CP] > 1)
        return open_edges(lw, dev, v, pass, input);
    return closed_stage(lw, dev, v, pass, input);
}

static sc_op send(lower *lw, uint32_t dev, uint32_t peer, bool bwd, sc_op done)
{
    const sc_step_costs *c = &lw->costs[dev];
    sc_op op = lower_op(
        lw, dev,
        &(lower_op_desc){.name = bwd ? "send gradient" : "send activation",
                         .seconds = c->send_s,
                         .bytes = c->send_bytes,
                         .group = SC_NONE,
                         .peer = peer,
                         .kind = SC_OP_P2P,
                         .stream = c->send_blocks ? SC_S_COMPUTE : SC_S_P2P,
                         .cat = SC_CAT_PP});
    lower_after(lw, done, op);
    return op;
}

/* Transfers beside a pass take units and bandwidth from it. */
static sc_op slowed(lower *lw, uint32_t dev, sc_op done)
{
    double s = lw->costs[dev].send_slow_s;
    if (s <= 0) return done;
    sc_op op = lower_op(lw, dev,
                        &(lower_op_desc){.name = "beside transfers",
                                         .seconds = s,
                                         .group = SC_NONE,
                                         .peer = SC_NONE,
                                         .kind = SC_OP_HOST,
                                         .stream = SC_S_COMPUTE,
                                         .cat = SC_CAT_PP});
    lower_after(lw, done, op);
    return op;
}

/* Nobody on the stage waits for a gradient. */
static bool still(const lower *lw, uint32_t v)
{
    return n_run(lw, v, true) == 0;
}

/* Behind the pass for inputs on the same device; nobody waits for it. */
static bool weight_slot(lower *lw, uint32_t dev, const sc_slot *s)
{
    uint32_t v = sc_run_stage(&lw->p->run, dev, s->chunk);
    sc_op done = stage_pass(lw, dev, s, SC_NONE);
    if (n_run(lw, v, true) > 0 && done != SC_NONE) lw->tail[dev] = done;
    lw->at[dev]++;
    return true;
}

/* Runs one slot of `dev` if its input exists. */
static bool step_slot(lower *lw, uint32_t dev)
{
    const sc_run *r = &lw->p->run;
    uint32_t n = lw->p->n_stages;
    const sc_slot *s = &lw->order[dev][lw->at[dev]];
    if (s->pass == SC_BWD_W) return weight_slot(lw, dev, s);
    uint32_t v = sc_run_stage(r, dev, s->chunk);
    size_t i = (size_t)v * r->ga + s->mb;
    bool bwd = s->pass != SC_FWD;
    sc_op input = SC_NONE;
    if (!bwd && v > 0) {
        input = lw->fwd[i - r->ga];
        if (input == SC_NONE) return false;
    }
    if (bwd) {
        input = v + 1 < n ? lw->bwd[i + r->ga] : lw->fwd[i];
        if (input == SC_NONE || lw->fwd[i] == SC_NONE) return false;
    }
    sc_op done = slowed(lw, dev, stage_pass(lw, dev, s, input));
    if (n_run(lw, v, bwd) > 0) lw->tail[dev] = done;
    uint32_t to = bwd ? v - 1 : v + 1;
    bool last = bwd ? v == 0 || still(lw, v - 1) : v + 1 == n;
    uint32_t peer = last ? dev : sc_run_device(r, to, s->mb);
    if (peer != dev) {
        sc_op sent = send(lw, dev, peer, bwd, done);
        if (lw->costs[dev].send_blocks) lw->tail[dev] = sent;
        done = sent;
    }
    if (bwd)
        lw->bwd[i] = done;
    else
        lw->fwd[i] = done;
    lw->at[dev]++;
    return true;
}

static sc_status run_schedule(lower *lw, sc_err *err)
{
    uint32_t pp = lw->p->run.size[SC_AX_PP];
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t dev = 0; dev < pp; dev++)
            while (lw->at[dev] < lw->n_order[dev] && step_slot(lw, dev))
                moved = true;
    }
    for (uint32_t dev = 0; dev < pp; dev++)
        if (lw->at[dev] < lw->n_order[dev])
            return sc_error(err, SC_EINPUT, SC_C_CYCLE, sc_pos_none(), NULL,
                            "the schedule waits for itself: stage %u, "
                            "micro-batch %u",
                            dev, lw->order[dev][lw->at[dev]].mb);
    return SC_OK;
}

static sc_status prepare(lower *lw, sc_arena *a, sc_err *err)
{
    const sc_run *r = &lw->p->run;
    uint32_t pp = r->size[SC_AX_PP];
    size_t n = (size_t)lw->p->n_stages * r->ga;
    lw->fwd = SC_NEW_N(a, sc_op, n);
    lw->bwd = SC_NEW_N(a, sc_op, n);
    lw->order = SC_NEW_N(a, sc_slot *, pp);
    lw->n_order = SC_NEW_N(a, uint32_t, pp);
    lw->at = SC_NEW_N(a, uint32_t, pp);
    lw->tail = SC_NEW_N(a, sc_op, pp);
    lw->grad_tail = SC_NEW_N(a, sc_op, pp);
    lw->costs = SC_NEW_N(a, sc_step_costs, pp);
    lw->past = SC_NEW_N(a, lower_past, pp);
    if (!lw->past) return sc_error_nomem(err);
    if (!lw->fwd || !lw->bwd || !lw->order || !lw->n_order || !lw->at ||
        !lw->tail || !lw->grad_tail || !lw->costs)
        return sc_error_nomem(err);
    lw->chunks = sc_run_chunks(r);
    lw->first = SC_NEW_N(a, uint32_t, (size_t)pp * lw->chunks);
    lw->last = SC_NEW_N(a, uint32_t, (size_t)pp * lw->chunks);
    if (!lw->first || !lw->last) return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) lw->fwd[i] = lw->bwd[i] = SC_NONE;
    for (uint32_t dev = 0; dev < pp; dev++) {
        lw->tail[dev] = lw->grad_tail[dev] = SC_NONE;
        lw->order[dev] = SC_NEW_N(a, sc_slot, sc_run_slots(r));
        if (!lw->order[dev]) return sc_error_nomem(err);
        uint32_t m = sc_run_order(r, dev, lw->order[dev]);
        for (uint32_t c = 0; c < lw->chunks; c++)
            sc_schedule_ends(lw->order[dev], m, c,
                             &lw->first[dev * lw->chunks + c],
                             &lw->last[dev * lw->chunks + c]);
        lw->n_order[dev] = m;
        SC_TRY(
            sc_plan_step_costs(lw->p, lw->blocks, dev, &lw->costs[dev], err));
    }
    return SC_OK;
}

static void mesh(lower *lw, sc_arena *a)
{
    const sc_run *r = &lw->p->run;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) {
        if (ax != SC_AX_REP || r->size[ax] > 1)
            sc_graph_add_axis(lw->b, sc_axis_names[ax], r->size[ax]);
        lw->group[ax] = SC_NONE;
    }
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (r->size[ax] > 1 && ax != SC_AX_PP)
            lw->group[ax] =
                sc_graph_add_group(lw->b, sc_axis_names[ax], 1u << ax);
    for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++) {
        uint32_t coord[SC_AXES] = {dev};
        char *name = sc_sprintf(a, "stage%u", dev);
        sc_graph_add_class(lw->b, name ? name : "stage", 1u << SC_AX_PP, coord);
    }
}

sc_status sc_lower(const sc_plan *p, const sc_block *blocks,
                   const sc_lower_opts *o, sc_arena *a, sc_graph *out,
                   sc_err *err)
{
    lower lw = {.p = p,
                .blocks = blocks,
                .expand = o && o->expand,
                .slow = sc_plan_slow_factor(&p->run)};
    lw.b = sc_graph_builder_new(a);
    if (!lw.b) return sc_error_nomem(err);
    SC_TRY(prepare(&lw, a, err));
    mesh(&lw, a);
    SC_TRY(run_schedule(&lw, err));
    lower_finish(&lw);
    return sc_graph_build(lw.b, a, out, err);
}
