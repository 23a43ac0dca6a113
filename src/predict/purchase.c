/* SPDX-License-Identifier: Apache-2.0 */
/* purchase.c - money of a machine that is bought, and CO2e of its energy. */
#include "predict/internal.h"

#include <math.h>

static sc_status price_of_host(const sc_job *job, const sc_hw *hw,
                               const sc_prices *list, sc_arena *a, double *usd,
                               sc_err *err)
{
    const sc_host_price *h = sc_prices_host(list, hw->device->name);
    if (h) {
        *usd = h->usd;
        return SC_OK;
    }
    return sc_error(
        err, SC_EINPUT, SC_C_MISSING,
        sc_pos_option(a, "--purchase", job->purchase),
        "give hosts: {DEVICE: PRICE} in a file with base: list-2024",
        "no price of a host with %.60s is known", hw->device->name);
}

/* Links and switches of other rates than that of the list cost in proportion. */
static double rate_factor(const sc_prices *list, const sc_hw *hw)
{
    double rate = hw->dim[hw->n_dims - 1].port_bw;
    return list->link_rate > 0 && rate > 0 ? rate / list->link_rate : 1;
}

static sc_status buy_expanded(const sc_job *job, const sc_hw *hw, sc_arena *a,
                              sc_purchase *x, sc_err *err)
{
    x->expanded_gb = hw->expanded.bytes / 1e9 * hw->n_devices;
    x->expanded_usd = x->expanded_gb * x->prices->expanded_usd;
    if (x->expanded_gb <= 0 || x->prices->expanded_usd > 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_MISSING,
                    sc_pos_option(a, "--purchase", job->purchase),
                    "give expanded_memory: PRICE of a GB in a file with base: "
                    "list-2024",
                    "no price of expanded memory is known");
}

bool sc_job_buys(const sc_job *job)
{
    return job->purchase != NULL;
}

sc_status sc_predict_purchase(const sc_job *job, const sc_hw *hw, sc_arena *a,
                              sc_purchase *x, sc_err *err)
{
    sc_pos pos = sc_pos_option(a, "--purchase", job->purchase);
    double host = 0, tariff;
    if (job->price >= 0)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                        "leave out one of them",
                        "the price of a device for rent is given, too");
    SC_TRY(sc_prices_find(job->purchase, pos, a, &x->prices, err));
    const sc_prices *list = x->prices;
    SC_TRY(price_of_host(job, hw, list, a, &host, err));
    x->parts = sc_hw_count_parts(hw, list->switch_ports);
    x->hosts_usd = x->parts.hosts * host;
    double rate = rate_factor(list, hw);
    x->switches_usd = x->parts.switches * list->switch_usd * rate;
    x->links_usd = x->parts.links * list->link_usd * rate;
    x->racks_usd = x->parts.hosts * list->rack_usd;
    SC_TRY(buy_expanded(job, hw, a, x, err));
    x->usd = x->hosts_usd + x->switches_usd + x->links_usd + x->racks_usd +
             x->expanded_usd;
    x->usd_per_s = x->usd / list->life_s;
    x->spare_host_usd = host + list->rack_usd;
    tariff = job->electricity >= 0 ? job->electricity : list->usd_per_j;
    x->pue = hw->pue > 0 || list->pue <= 0 ? 1 : list->pue;
    x->usd_per_j = tariff * x->pue;
    return SC_OK;
}

static sc_status buy(const sc_job *job, sc_arena *a, sc_prediction *p,
                     sc_err *err)
{
    sc_purchase *x = SC_NEW(a, sc_purchase);
    if (!x) return sc_error_nomem(err);
    SC_TRY(sc_predict_purchase(job, p->run.hw, a, x, err));
    double energy = isnan(p->energy_j_per_step) ? 0 : p->energy_j_per_step;
    p->cost_usd_per_step =
        x->usd_per_s * p->step_time_s + x->usd_per_j * energy;
    p->purchase = x;
    return SC_OK;
}

sc_status sc_predict_least_usd(const sc_job *job, const sc_run *r, sc_arena *a,
                               double *per_s, sc_err *err)
{
    sc_purchase x;
    *per_s = sc_job_rent(job, r->hw) * r->hw->n_devices;
    if (!job->purchase) return SC_OK;
    SC_TRY(sc_predict_purchase(job, r->hw, a, &x, err));
    double least = sc_predict_least_watts(r);
    *per_s = x.usd_per_s + (isnan(least) ? 0 : x.usd_per_j * least);
    return SC_OK;
}

sc_status predict_purchase(const sc_job *job, sc_arena *a, sc_prediction *p,
                           sc_err *err)
{
    p->purchase = NULL;
    p->co2e_kg_per_step = job->grid_intensity >= 0
                              ? job->grid_intensity * p->energy_j_per_step
                              : NAN;
    return job->purchase ? buy(job, a, p, err) : SC_OK;
}

double predict_run_usd(const sc_prediction *p, uint32_t spares, double seconds)
{
    const sc_purchase *x = p->purchase;
    double n = p->run.hw->n_devices;
    double more = spares * (double)p->run.hw->host_size;
    if (!x)
        return p->cost_usd_per_step / p->step_time_s * (n + more) / n * seconds;
    double usd = x->usd + spares * x->spare_host_usd;
    double energy = isnan(p->whole_run.energy_j) ? 0 : p->whole_run.energy_j;
    return usd / x->prices->life_s * seconds + x->usd_per_j * energy;
}
