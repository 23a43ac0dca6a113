/* SPDX-License-Identifier: Apache-2.0 */
/* delay_price.c - the time of an operation alone. */
#include "cost/cost_host.h"
#include "emu/delay_closed.h"

#include <math.h>

#define FEW_BYTES 8.0 /* bytes whose whole time counts as latency */

double closed_bytes(sc_coll coll, uint64_t bytes)
{
    return coll == SC_BARRIER ? FEW_BYTES : (double)bytes;
}

/* ---- nominal prices */

typedef struct nominal {
    double latency, whole; /* seconds */
    uint32_t hops;
} nominal;

static uint32_t hops_of(const emu_delay *d, const closed_kind *k, int algorithm,
                        double bytes)
{
    uint32_t hops = 0;
    sc_phases ph;
    if (algorithm < 0 ||
        !sc_algorithm_phases(algorithm, sc_coll_priced(k->coll), bytes,
                             &k->place, d->c->hw, &ph))
        return 1;
    for (uint32_t i = 0; i < ph.n; i++) hops += ph.p[i].steps;
    return hops;
}

/* The algorithm is chosen at nominal values, whatever the what-ifs: otherwise
 * an operation could get faster with less bandwidth. */
static sc_status analytic(const emu_delay *d, const closed_kind *k,
                          double bytes, nominal *out, sc_err *err)
{
    sc_coll coll = sc_coll_priced(k->coll);
    sc_coll_price p, few;
    *out = (nominal){0};
    if (k->n < 2 || bytes == 0) return SC_OK;
    SC_TRY(sc_cost_coll(d->c->cost, d->c->hw, coll, bytes, &k->place, -1, &p,
                        err));
    SC_TRY(sc_cost_coll(d->c->cost, d->c->hw, coll, fmin(bytes, FEW_BYTES),
                        &k->place, p.algorithm, &few, err));
    out->whole = p.seconds;
    out->latency = fmin(few.seconds, p.seconds);
    out->hops = hops_of(d, k, p.algorithm, bytes);
    return SC_OK;
}

static void of_hosts(const emu_delay *d, const closed_kind *k, double bytes,
                     nominal *out)
{
    sc_host_price p = sc_cost_host(d->c->hw, k->coll, bytes, &k->place);
    *out = (nominal){p.latency, p.seconds, p.hops};
}

static void from_file(const closed_kind *k, double bytes, nominal *out)
{
    const delay_curve *c = &k->fit.rows->time;
    double alpha = delay_curve_at(c, 0);
    *out = (nominal){0};
    if (k->n < 2) return;
    out->latency = alpha * k->fit.latency;
    out->whole =
        out->latency + (delay_curve_at(c, bytes) - alpha) * k->fit.work;
    out->hops = k->fit.hops;
}

/* ---- what-ifs */

static void apply(const delay_what *w, const nominal *p, closed_price *out)
{
    sc_time whole = delay_scaled(sc_time_from_s(p->whole), 1);
    sc_time latency = sc_time_from_s(p->latency);
    if (latency > whole) latency = whole;
    out->work = delay_scaled(whole - latency, 1 / w->bandwidth);
    out->latency =
        delay_scaled(latency, w->latency) + delay_sum(p->hops, w->hop);
}

sc_status closed_price_of(emu_delay *d, const closed_kind *k, uint64_t bytes,
                          const closed_price **out, sc_err *err)
{
    uint64_t state = bytes ^ (uint64_t)(uintptr_t)k;
    closed_price *p = &d->closed->price[sc_random(&state) % CLOSED_PRICES];
    *out = p;
    if (p->kind == k && p->bytes == bytes) return SC_OK;
    nominal n;
    if (d->closed->file != NULL)
        from_file(k, (double)bytes, &n);
    else if (d->closed->ports)
        of_hosts(d, k, (double)bytes, &n);
    else
        SC_TRY(analytic(d, k, closed_bytes(k->coll, bytes), &n, err));
    *p = (closed_price){.kind = k, .bytes = bytes};
    apply(&d->what, &n, p);
    return SC_OK;
}

sc_time delay_closed_cpu(const emu_delay *d, const emu_group *g, sc_coll coll,
                         uint64_t bytes)
{
    delay_fit fit;
    bool pair = coll == SC_SEND || coll == SC_RECV;
    if (d->closed->file == NULL || g->n < 2 ||
        delay_file_fit(d->closed->file, coll, pair ? 2 : g->n, &fit, NULL))
        return 0;
    const delay_curve *c = &fit.rows->cpu;
    double alpha = delay_curve_at(c, 0);
    double rest = delay_curve_at(c, (double)bytes) - alpha;
    return sc_time_from_s(alpha * fit.latency + rest * fit.work);
}
