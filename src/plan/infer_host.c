/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_host.c - the time by which the host, which issues kernels, makes a pass
 * longer.  If it takes c seconds to issue kernels of g seconds, these take
 * (g^p + c^p)^(1/p).  With blocking launches the device also idles after each
 * kernel.  The time beyond g is a separate item at the end of the pass.
 *
 * Up to 1024 kernels queue on the device, so a host that falls behind in one
 * layer catches up in the next, and the times are compared per pass.  If the
 * host waits for a value from the device, it loses its lead and a new span
 * begins.  This happens with experts whose tokens are not padded to a capacity:
 * the host needs the router's counts to launch their products.
 */
#include "plan/infer.h"
#include "plan/internal.h"

#include <math.h>

#define PHASES 3

typedef struct pass {
    sc_span now;    /* since the last wait */
    sc_span before; /* before the first wait */
    bool waited;
    double extra;
    uint32_t last; /* last item */
} pass;

/* Whether the kernel is part of a CUDA graph, which one launch issues. */
bool infer_captured(const sc_net_run *job, const program_item *it)
{
    int what = job->sw->capture;
    return what == SC_CAPTURE_STEP ||
           (what == SC_CAPTURE_LAYERS && job->net->op[it->op].topk == 0);
}

bool infer_waits(const sc_net_run *job, const program_item *it)
{
    return job->net->op[it->op].type == SC_NET_DISPATCH &&
           it->pass == SC_PASS_FWD && it->exchange == SC_NONE &&
           !(job->capacity > 0) && job->sw->capture != SC_CAPTURE_STEP;
}

bool sc_plan_stages_apart(const sc_hw *hw, uint32_t pp, uint32_t stride)
{
    return pp > 1 && hw->n_nodes > 1 && (uint64_t)pp * stride > hw->node_size;
}

bool sc_plan_waits(const sc_software *sw, const sc_hw *hw, uint32_t tp)
{
    bool many = (int64_t)hw->n_nodes >= sw->transfer_wait_nodes;
    bool wide = sw->transfer_wait_tp > 0 && tp >= sw->transfer_wait_tp;
    return many || wide;
}

double plan_transfer_wait(const sc_software *sw, const sc_cost *cost,
                          const sc_hw *hw, uint32_t tp, const sc_place *place)
{
    if (place->nodes < 2 || !sc_plan_waits(sw, hw, tp)) return 0;
    return sc_software_value(sw, offsetof(sc_software, transfer_wait_s), cost);
}

sc_host_rate sc_plan_host_rate(const sc_cost *cost, const sc_software *sw,
                               bool apart)
{
    double launch =
        sc_software_value(sw, offsetof(sc_software, launch_s), cost);
    double member =
        sc_software_value(sw, offsetof(sc_software, stages_apart_s), cost);
    if (launch <= 0) launch = cost->p[SC_P_HOST_KERNEL];
    return (sc_host_rate){.launch = launch,
                          .member = apart ? member : 0,
                          .power = cost->p[SC_P_HOST_POWER],
                          .apart = apart};
}

bool infer_of_weights(const net_program *prog, const sc_net_exchange *exchange,
                      const program_item *it)
{
    if (it->exchange == SC_NONE) return false;
    if (exchange[it->exchange].grad) return true;
    return it->out != SC_NONE && prog->value[it->out].what == VALUE_WEIGHT_USED;
}

void infer_issue(const sc_net_run *job, const net_program *prog,
                 const sc_net_exchange *exchange, int tp,
                 const program_item *it, sc_span *to)
{
    bool kernels = it->exchange == SC_NONE;
    if (!infer_captured(job, it))
        to->launches += kernels ? it->price.launches : 1;
    if (kernels) {
        to->kernels += it->price.seconds;
        return;
    }
    const sc_net_exchange *x = &exchange[it->exchange];
    if (x->p2p || infer_of_weights(prog, exchange, it)) return;
    if (tp < 0 || !(x->axes >> tp & 1)) return;
    to->members += x->size;
    to->exposed += it->seconds;
}

void plan_span_add(sc_span *to, const sc_span *more)
{
    to->kernels += more->kernels;
    to->launches += more->launches;
    to->members += more->members;
    to->exposed += more->exposed;
}

/* The waits of exchanges are one long time, during which the device runs at its
 * own pace, exchanges included: the pass takes the longer of both. */
double infer_host_seconds(const sc_host_rate *host, const sc_span *span)
{
    double g = span->kernels, power = host->power;
    double c = span->launches * host->launch, w = span->members * host->member;
    if (!(g > 0)) return 0;
    double both = c > 0 ? g * pow(1 + pow(c / g, power), 1 / power) : g;
    return fmax(both, c + w - span->exposed) - g;
}

static sc_host_rate rate_of(const inference *f)
{
    bool apart =
        f->pp >= 0 &&
        sc_plan_stages_apart(f->job->hw, f->mesh.size[f->pp], f->stride[f->pp]);
    return sc_plan_host_rate(f->job->cost, f->job->sw, apart);
}

static void end_span(const inference *f, pass *p)
{
    sc_host_rate host = rate_of(f);
    p->extra += infer_host_seconds(&host, &p->now);
    p->now = (sc_span){0};
}

/* Ends the span at a wait.  A pass is followed by an equal one, so the span
 * after its last wait ends at the first wait of the next pass. */
static void wait(const inference *f, pass *p)
{
    if (p->waited) {
        end_span(f, p);
        return;
    }
    p->waited = true;
    p->before = p->now;
    p->now = (sc_span){0};
}

static void end_pass(const inference *f, pass *p)
{
    plan_span_add(&p->now, &p->before);
    end_span(f, p);
}

static void host(inference *f, const pass *p, uint32_t phase)
{
    if (p->extra <= 0) return;
    const program_item *last = &f->prog->item[p->last];
    program_item it =
        infer_kernels(last->op, last->stage, (sc_op_pass)last->pass);
    it.cat = SC_CAT_HOST;
    it.once = last->once;
    it.price.seconds = p->extra;
    (void)infer_item(f, it, NULL, phase);
}

static void add(const inference *f, uint32_t item, pass *all)
{
    const program_item *it = &f->prog->item[item];
    uint32_t phase = f->order[item].phase;
    pass *p = &all[it->stage * PHASES + phase];
    /* Exchanges that run once a step belong to no pass. */
    if (it->copy || (it->exchange != SC_NONE && phase == INFER_ONCE)) return;
    bool kernels = it->exchange == SC_NONE;
    double n = kernels ? it->price.launches : 1;
    if (kernels) p->last = item;
    infer_issue(f->job, f->prog, f->p->exchange, f->tp, it, &p->now);
    if (f->job->launch_blocking) p->extra += n * f->job->cost->p[SC_P_BLOCKING];
    if (infer_waits(f->job, it)) wait(f, p);
}

sc_status infer_host(inference *f)
{
    uint32_t n = f->prog->n_items;
    /* Measured times of a table already include the host's. */
    if (f->job->table || f->rules->launch_gap) return SC_OK;
    pass *all = SC_NEW_N(f->a, pass, (size_t)f->n_stages * PHASES);
    if (!all) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < n; i++) add(f, i, all);
    for (uint32_t s = 0; s < f->n_stages; s++)
        for (uint32_t k = 0; k < PHASES; k++) {
            pass *p = &all[s * PHASES + k];
            end_pass(f, p);
            host(f, p, k);
        }
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}
