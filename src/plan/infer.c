/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.c - infers, from a strategy on a network of operators, layouts, stages
 * and exchanges, in this order.
 */
#include "plan/infer.h"

#include "plan/plan_schedule.h"

static sc_status check_mesh(const inference *f)
{
    const sc_hw *hw = f->job->hw;
    uint64_t ranks = sc_strategy_ranks(f->s);
    if (ranks <= hw->n_devices) return SC_OK; /* other devices idle */
    return sc_error(f->err, SC_EINPUT, SC_C_CONFLICT, f->s->mesh_pos,
                    "use at most one rank per device",
                    "the mesh has %llu ranks; %s has %u devices",
                    (unsigned long long)ranks, hw->name, hw->n_devices);
}

static sc_status check_job(const inference *f)
{
    const sc_net_run *j = f->job;
    if (j->micro > 0 && j->ga > 0) return SC_OK;
    return sc_error(f->err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                    "%llu samples in each of %u micro-batches",
                    (unsigned long long)j->micro, j->ga);
}

sc_schedule program_schedule(const sc_net_run *job, bool several)
{
    const sc_strategy *s = job->strategy;
    if (job->order) return job->order->placement;
    if (s && s->schedule >= 0) return (sc_schedule)s->schedule;
    return several ? SC_SCH_INTERLEAVED : SC_SCH_1F1B;
}

static void set_mesh(inference *f)
{
    const sc_strategy *s = f->s;
    f->mesh.n_axes = s->n_axes;
    for (uint32_t ax = 0; ax < s->n_axes; ax++) {
        f->mesh.size[ax] = s->axis[ax].size;
        f->stride[ax] = sc_strategy_stride(s, (int)ax);
    }
    for (uint32_t i = 0; i < s->n_axes; i++)
        f->mesh.inner_first[i] = (uint8_t)(s->n_axes - 1 - i);
    f->pp = sc_strategy_axis(s, SC_AX_PP);
    f->tp = sc_strategy_axis(s, SC_AX_TP);
    f->cp = sc_strategy_axis(s, SC_AX_CP);
    f->ep_axis = sc_axes_mask(sc_strategy_axes(s, 1u << SC_AX_EP));
    f->replica_axes = sc_axes_mask(sc_strategy_samples(s)) & ~f->ep_axis;
    f->replicas = (double)sc_strategy_replicas(s);
    f->devices = f->pp < 0 ? 1 : f->mesh.size[f->pp];
    uint32_t vpp = s->virtual_stages > 0 ? (uint32_t)s->virtual_stages : 1;
    f->schedule = program_schedule(f->job, vpp > 1);
    if (f->job->order) vpp = f->job->order->vpp;
    f->chunks = sc_schedule_chunks(f->schedule, vpp);
    f->n_stages = sc_schedule_stages(f->schedule, f->devices, f->chunks);
}

static sc_status make_lists(inference *f)
{
    size_t n = f->g->n_tensors;
    f->fwd = SC_NEW_N(f->a, infer_form *, n);
    f->bwd = SC_NEW_N(f->a, infer_form *, n);
    f->grad = SC_NEW_N(f->a, infer_form *, n);
    f->wgrad_of = SC_NEW_N(f->a, uint32_t, n);
    f->kernel_memory = SC_NEW_N(f->a, sc_op_held, f->g->n_ops);
    f->elements = SC_NEW_N(f->a, double, n);
    f->saved[0] = SC_NEW_N(f->a, infer_saved, f->g->n_ops);
    f->saved[1] = SC_NEW_N(f->a, infer_saved, f->g->n_ops);
    if (!f->kernel_memory || !f->saved[0] || !f->saved[1] || !f->fwd ||
        !f->bwd || !f->grad || !f->wgrad_of || !f->elements)
        return sc_error_nomem(f->err);
    return SC_OK;
}

static void sums(inference *f)
{
    const net_program *p = f->prog;
    double ga = f->job->ga, each = 0, recomputed = 0;
    for (uint32_t i = 0; i < p->n_items; i++) {
        const program_item *it = &p->item[i];
        each += it->price.flops * (it->once ? 1 : ga);
        if (it->recomputed && it->exchange == SC_NONE && it->price.flops > 0)
            recomputed += f->g->op[it->op].flops;
    }
    f->p->flops = each * f->p->n_ranks / f->devices;
    f->p->samples = f->samples * ga;
    f->p->recomputed_flops = recomputed * f->p->samples;
}

sc_status infer_passes(inference *f)
{
    SC_TRY(infer_keep(f));
    SC_TRY(make_lists(f));
    SC_TRY(infer_forward(f));
    return f->job->forward_only ? SC_OK : infer_backward(f);
}

/* Lists the file's rules with `recompute` that recompute no operator. */
static sc_status idle_rules(inference *f)
{
    const sc_strategy_rule **idle =
        SC_NEW_N(f->a, const sc_strategy_rule *, f->n_rules);
    if (!idle) return sc_error_nomem(f->err);
    f->p->n_idle = 0;
    for (uint32_t i = 0; i < f->n_rules; i++)
        if (f->rule[i].file && f->rule[i].r->recompute == 1 &&
            !f->rule[i].repeats)
            idle[f->p->n_idle++] = f->rule[i].r;
    f->p->idle = idle;
    return SC_OK;
}

sc_status infer_close(inference *f)
{
    SC_TRY(idle_rules(f));
    if (!f->elements) f->elements = SC_NEW_N(f->a, double, f->g->n_tensors);
    if (!f->elements) return sc_error_nomem(f->err);
    if (!f->job->forward_only) SC_TRY(infer_gradients(f));
    if (!f->job->no_update) SC_TRY(infer_host(f));
    SC_TRY(infer_finish(f));
    SC_TRY(infer_side_by_side(f));
    sums(f);
    return SC_OK;
}

sc_status infer_prepare(inference *f)
{
    SC_TRY(check_job(f));
    SC_TRY(check_mesh(f));
    set_mesh(f);
    SC_TRY(infer_pools(f));
    SC_TRY(infer_number_units(f));
    SC_TRY(infer_rules(f));
    SC_TRY(infer_memo_new(f));
    SC_TRY(infer_rr_weigh(f));
    if (f->s->cuts == SC_CUT_BALANCED) SC_TRY(infer_keep(f));
    SC_TRY(infer_cut(f));
    f->p->model_flops =
        sc_net_flops(f->g, f->samples * f->job->ga, f->job->forward_only);
    return infer_expansion(f);
}
