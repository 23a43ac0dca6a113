/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - costs of a step if optimizer states are on the host or checkpoints
 * are saved.
 *
 * Optimizer (ZeRO-Offload, Ren et al. 2021; ZeRO-Infinity, Rajbhandari et al.
 * 2021): a rank's gradients are copied to the host in 16 bits during the
 * backward pass, the host updates the weights, and these are copied back in 16
 * bits tile by tile during the update.  An update moves 28 bytes per element:
 * it reads and writes 4 bytes of the master weight and of each of two moments,
 * reads the gradient and writes the weight.  With NVMe, the 12 bytes of states
 * are read and written at the same time.
 *
 * Checkpoint: one of the ranks that hold an element of weights or optimizer
 * states saves it.  An asynchronous checkpoint is copied to the host, and then
 * written while training continues.
 */
#include "plan/internal.h"
#include "plan/lower.h"
#include "plan/plan_host.h"
#include "plan/plan_segment.h"

#include <math.h>

enum { UPDATE_BYTES = 28, STATE_BYTES = 12, HALF_BYTES = 2 };

double plan_expanded_update(const sc_hw *hw, double seconds, double moved)
{
    return fmax(seconds, moved / hw->expanded.bw + hw->expanded.latency_s);
}

double plan_host_memory(const sc_device *d, uint32_t host_size)
{
    /* The CPU is on the module: Grace, LPDDR5X, 500 GB/s per device. */
    if (d->host_bw > 100e9) return 500e9 * host_size;
    /* Two sockets have eight channels each: DDR5-4800 with PCIe 5, else
     * DDR4-3200. / */
    return d->host_bw > 40e9 ? 614.4e9 : 409.6e9;
}

static double host_memory_bw(const sc_run *r)
{
    return r->host_mem_bw > 0
               ? r->host_mem_bw
               : plan_host_memory(r->hw->device, r->hw->host_size);
}

static double nvme_bw_of(const sc_run *r)
{
    return r->nvme_bw > 0 ? r->nvme_bw : PLAN_NVME_BW;
}

/* Memory tier of checkpoints; SC_TIER_DEVICE means shared storage. */
static sc_tier checkpoint_tier(const sc_run *r)
{
    return r->strategy ? (sc_tier)r->strategy->checkpoint_tier : SC_TIER_DEVICE;
}

static double storage_bw_of(const sc_run *r)
{
    double hosts = (double)r->hw->n_devices / r->hw->host_size;
    if (checkpoint_tier(r) == SC_TIER_CPU) return INFINITY;
    if (checkpoint_tier(r) == SC_TIER_NVME)
        return nvme_bw_of(r) * fmax(1, hosts);
    return r->storage_bw > 0 ? r->storage_bw : PLAN_STORAGE_BW * fmax(1, hosts);
}

static double optim_elements(const sc_segment *b)
{
    return b->optim_kept;
}

static double weight_elements(const sc_segment *b)
{
    return b->params_kept;
}

/* Seconds of a backward pass beside which the queue of copies is free for
 * gradients. */
static double backward_seconds(const sc_segment *b)
{
    return fmax(0, b->bwd_s - b->in_s - b->away * b->fetch_s[1]);
}

/* One device's part of a host's rate while all its devices use it. */
static double own_fraction(const sc_run *r, double rate)
{
    uint32_t n = r->hw->host_size < r->hw->n_devices ? r->hw->host_size
                                                     : r->hw->n_devices;
    return rate / (n ? n : 1);
}

double sc_plan_host_states(const sc_plan *p, const sc_segment *segments,
                           uint32_t dev)
{
    const sc_run *r = &p->run;
    if (r->optim_tier < SC_TIER_CPU || r->forward_only) return 0;
    return sc_plan_device_sum(p, segments, dev, optim_elements) *
           r->sw->optim_bytes;
}

/* A device's states of its first weight, whose gradient is made last. */
static double first_states(const sc_plan *p, const sc_segment *segments,
                           uint32_t dev)
{
    const sc_segment *own = sc_plan_segments(p, segments, dev);
    uint32_t v = sc_run_stage(&p->run, dev, 0);
    const sc_segment *b = &own[sc_plan_stage_entry(p, v, 0)];
    if (b->n_weights == 0 || b->params <= 0) return 0;
    return b->optim_kept * b->weight[0].elements / b->params;
}

/* ---- weights in another memory ------------------------------------------ */

static double table_elements(const sc_segment *b)
{
    return b->tables_kept;
}

static double tier_bw(const sc_run *r, sc_tier tier)
{
    sc_net_run job = {.hw = r->hw, .nvme_bw = r->nvme_bw};
    return lower_tier_bw(&job, tier);
}

/* Seconds of copying `bytes` of weights that the host has updated to the devices,
 * or to the memory that keeps a fraction of them. */
static double copied_back(const sc_run *r, double bytes, double link)
{
    sc_tier to = (sc_tier)sc_run_offload_tier(r);
    double away = r->offload_weights > 0 ? r->offload_weights : 0;
    bool there = to == SC_TIER_CPU || (int)to == r->optim_tier;
    double rate = to == SC_TIER_NVME ? tier_bw(r, to) : link;
    return (1 - away) * bytes / link + (there ? 0 : away * bytes / rate);
}

/* Weights that the device has updated are copied to the memory that keeps them,
 * unless the update writes them there; rows of tables are updated where they
 * are (lower_tiers.c). */
static void keep_weights(const sc_plan *p, const sc_segment *segments,
                         uint32_t dev, sc_step_costs *c)
{
    const sc_run *r = &p->run;
    sc_tier to = (sc_tier)sc_run_offload_tier(r);
    double away = r->offload_weights, bw = away > 0 ? tier_bw(r, to) : 0;
    double n = sc_plan_device_sum(p, segments, dev, optim_elements);
    if (bw <= 0 || n <= 0) return;
    if (r->optim_tier >= SC_TIER_CPU || (int)to == r->optim_tier) return;
    /* A table is the first tensor of its device, and kept whole (lower_tiers.c). */
    double rows = sc_plan_device_sum(p, segments, dev, table_elements);
    double least = to == SC_TIER_EXPANDED ? 0.5 : 1, there = 0;
    if (away >= least) there = rows;
    double copied = fmin(n - rows, fmax(0, away * n - there));
    c->keep_s = HALF_BYTES * copied / bw;
    if (there <= 0) return;
    c->optimizer_s +=
        fmax(0, r->sw->update_bytes * rows / bw - c->optimizer_s * rows / n);
}

/* ---- states on the host ------------------------------------------------- */

/* Copies of gradients overlap the backward pass, and copies of weights overlap
 * the update.  Only during the last copy of each is the host idle. */
static void optimizer(const sc_plan *p, const sc_segment *segments,
                      uint32_t dev, sc_step_costs *c)
{
    const sc_run *r = &p->run;
    double n = sc_plan_device_sum(p, segments, dev, optim_elements);
    double link = r->hw->device->host_bw;
    if (r->optim_tier < SC_TIER_CPU || n <= 0 || link <= 0) return;
    double behind = sc_plan_hides_copies(p, segments, dev);
    double once = HALF_BYTES * n / link;
    double last = HALF_BYTES * first_states(p, segments, dev) / link;
    double host = own_fraction(r, host_memory_bw(r)) * PLAN_UPDATE_FRACTION;
    double update = UPDATE_BYTES * n / host;
    if (r->optim_tier == SC_TIER_NVME)
        update =
            fmax(update, 2 * STATE_BYTES * n / own_fraction(r, nvme_bw_of(r)));
    double back = copied_back(r, HALF_BYTES * n, link);
    c->host_copy_s = once;
    c->host_last_s = last;
    c->host_in_s = last * back / once;
    c->host_update_s = fmax(update, back - c->host_in_s);
    c->host_out_s = sc_plan_host_out(r, once, last, behind);
    c->optimizer_s = 0;
}

double sc_plan_host_out(const sc_run *r, double copies, double last,
                        double behind)
{
    return fmax(last, sc_run_reductions(r) * (copies - behind));
}

double sc_plan_hides_copies(const sc_plan *p, const sc_segment *segments,
                            uint32_t dev)
{
    const sc_run *r = &p->run;
    /* Gradients that a step copies once queue behind all copies of passes. */
    bool behind = r->zero < 2 && (r->offload > 0 || r->offload_weights > 0);
    return r->sw->grad_overlap && !behind
               ? sc_plan_device_sum(p, segments, dev, backward_seconds)
               : 0;
}

/* Bytes that one device saves. */
static double checkpoint_bytes(const sc_plan *p, const sc_segment *segments,
                               uint32_t dev)
{
    const sc_run *r = &p->run;
    double copies = (double)sc_run_dp(r) * r->size[SC_AX_CP];
    double weights = sc_plan_device_sum(p, segments, dev, weight_elements);
    double states = sc_plan_device_sum(p, segments, dev, optim_elements);
    double low = sc_precision_bytes(SC_BF16);
    /* DualPipe's second copy is not saved. */
    double all = sc_run_placement(r) == SC_SCH_DUALPIPE ? 0.5 : 1;
    return all * (weights * low / (sc_run_shards(r) ? 1 : copies) +
                  states * r->sw->optim_bytes / (r->zero >= 1 ? 1 : copies));
}

/* Seconds that a device copies its part of a checkpoint to the host. States that
 * are already there need no copy. */
static double copy_seconds(const sc_run *r, double bytes)
{
    double bw = r->hw->device->host_bw;
    return r->optim_tier < SC_TIER_CPU && bw > 0 ? bytes / bw : 0;
}

void sc_plan_save(const sc_plan *p, const sc_segment *segments,
                  sc_net_save *out)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP];
    double most = 0, sum = 0;
    for (uint32_t d = 0, like; d < pp; d += like) {
        for (like = 1; d + like < pp && sc_plan_devices_alike(p, d, d + like);)
            like++;
        double mine = checkpoint_bytes(p, segments, d);
        most = fmax(most, mine);
        sum += like * mine;
    }
    *out = (sc_net_save){.every = r->checkpoint_every,
                         .bytes = sum * r->hw->n_devices / pp,
                         .copy_s = copy_seconds(r, most),
                         .async = r->checkpoint_async};
    out->write_s = out->bytes / storage_bw_of(r);
}

static void checkpoint(const sc_plan *p, const sc_segment *segments,
                       uint32_t dev, sc_step_costs *c)
{
    const sc_run *r = &p->run;
    sc_net_save all;
    double every = r->checkpoint_every;
    if (every <= 0 || r->forward_only) return;
    sc_plan_save(p, segments, &all);
    c->save_copy_s =
        copy_seconds(r, checkpoint_bytes(p, segments, dev)) / every;
    c->save_write_s = all.write_s / every;
    if (r->checkpoint_async) c->save_write_s = 0; /* overlaps training */
}

void plan_host_costs(const sc_plan *p, const sc_segment *segments, uint32_t dev,
                     sc_step_costs *c)
{
    if (p->run.forward_only) return;
    optimizer(p, segments, dev, c);
    keep_weights(p, segments, dev, c);
    checkpoint(p, segments, dev, c);
}

void sc_run_set_end(const sc_run *of, int zero, sc_run *r)
{
    r->sw = of->sw;
    r->opts = of->opts;
    r->optim_tier = of->optim_tier;
    r->checkpoint_every = of->checkpoint_every;
    r->checkpoint_async = of->checkpoint_async;
    plan_resolve_zero(zero, r);
}

bool sc_run_same_passes(const sc_run *x, const sc_run *y)
{
    return x->sw->grad_overlap == y->sw->grad_overlap;
}

bool sc_run_same_states(const sc_run *x, const sc_run *y)
{
    return x->sw == y->sw && x->optim_tier == y->optim_tier;
}
