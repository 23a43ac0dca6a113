/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate.c - the step of a plan from the loads of its devices.
 *
 * Exchanges wait for all devices.  An uneven all-to-all lasts as long as an even
 * one in which every rank has the bytes of the fullest (Lin et al., arXiv
 * 2404.12674).  Tables on every device are looked up while row numbers are
 * exchanged; their gradients are computed while others are exchanged, and
 * summed while other rows are updated.  Where both exchanges need more than
 * all of a link, they slow each other.
 */
#include "shard/prices.h"

#include <math.h>
#include <string.h>

static void add_part(sc_shard_load *l, const shard_part *x, double sign)
{
    l->forward += sign * x->forward;
    l->backward += sign * x->backward;
    l->sends += sign * x->sends;
    l->indices += sign * x->indices;
    l->tables += sign * x->memory;
    l->parts += sign > 0 ? 1 : UINT32_MAX;
}

static void add_data(sc_shard_load *l, const shard_part *x, double bytes,
                     double sign)
{
    l->data_forward += sign * x->forward;
    l->data_backward += sign * x->backward;
    l->data_update += sign * x->update;
    l->reduced += sign * bytes;
    l->tables += sign * x->memory;
    l->data_parts += sign > 0 ? 1 : UINT32_MAX;
}

void shard_add(sc_shard_prices *p, uint32_t table, const sc_shard_place *x,
               double sign, sc_shard_load *load)
{
    const sc_shard_table *t = &p->job->table[table];
    const shard_part *part = shard_part_of(p, table, shard_variant(x));
    if (x->split == SC_SHARD_DATA)
        for (uint32_t d = 0; d < p->n; d++)
            add_data(&load[d], part, SHARD_VALUE * t->rows * t->width, sign);
    else
        for (uint32_t i = 0; i < x->parts; i++)
            add_part(&load[x->device[i]], part, sign);
}

double shard_sums(const sc_shard_prices *p, const sc_shard_load *load)
{
    double sum = 0;
    for (uint32_t d = 0; d < p->n; d++) sum += load[d].sends;
    return sum;
}

/* Sums and their gradients of the own tables for all samples, and of all tables
 * for the own samples. */
double shard_memory(const sc_shard_prices *p, const sc_shard_load *load,
                    double sums)
{
    double batch = p->job->batch;
    return load->tables + 2 * batch * load->sends + 2 * batch / p->n * sums +
           batch * load->indices + load->reduced;
}

sc_status shard_step(sc_shard_prices *p, const sc_shard_load *load,
                     sc_shard_step *out, sc_err *err)
{
    sc_shard_step s = {.step = 0};
    double batch = p->job->batch, n = p->n, sums = shard_sums(p, load);
    double most = 0, least = INFINITY, indices = 0, kernels[2] = {0, 0};
    for (uint32_t d = 0; d < p->n; d++) {
        const sc_shard_load *l = &load[d];
        most = fmax(most, l->sends);
        least = fmin(least, l->sends);
        indices = fmax(indices, l->indices);
        if (l->parts == 0) continue;
        kernels[0] = fmax(kernels[0], p->launch[0] + l->forward);
        kernels[1] = fmax(kernels[1], p->launch[1] + l->backward);
    }
    const sc_shard_load *l = &load[0];
    double data[2] = {l->data_forward, l->data_backward};
    for (int i = 0; i < 2; i++)
        if (l->data_parts > 0) data[i] += p->launch[i];
    double fullest = n > 1 ? fmax(most, (sums - least) / (n - 1)) : 0;
    SC_TRY(shard_exchange(p, &p->all_to_all, batch * indices, &s.indices, err));
    SC_TRY(
        shard_exchange(p, &p->all_to_all, batch * fullest, &s.exchange, err));
    SC_TRY(shard_exchange(p, &p->all_reduce, l->reduced, &s.reduce, err));
    s.gradients = s.exchange;
    s.forward = kernels[0];
    s.backward = kernels[1];
    double before = fmax(s.indices, data[0]) + s.forward + s.exchange;
    double both = fmin(fmax(0, s.gradients - data[1]), s.reduce) *
                  shard_sharing(p, batch * fullest, l->reduced);
    double rows = fmax(s.gradients + both, data[1]) + s.backward;
    s.step = before + fmax(rows, data[1] + s.reduce + both) + l->data_update;
    *out = s;
    return SC_OK;
}

sc_status shard_estimate(sc_shard_prices *p, sc_shard_plan *inout, sc_err *err)
{
    memset(inout->load, 0, p->n * sizeof *inout->load);
    for (uint32_t t = 0; t < p->job->n_tables; t++)
        shard_add(p, t, &inout->place[t], 1, inout->load);
    double sums = shard_sums(p, inout->load);
    inout->fits = true;
    for (uint32_t d = 0; d < p->n; d++) {
        sc_shard_load *l = &inout->load[d];
        l->memory = shard_memory(p, l, sums);
        if (inout->fits && l->memory > sc_shard_room(p)) {
            inout->fits = false;
            inout->full = d;
        }
    }
    inout->simulated = NAN;
    return shard_step(p, inout->load, &inout->step, err);
}

sc_status shard_plan_new(const sc_shard_prices *p, sc_arena *a,
                         sc_shard_plan *out, sc_err *err)
{
    *out =
        (sc_shard_plan){.place = SC_NEW_N(a, sc_shard_place, p->job->n_tables),
                        .load = SC_NEW_N(a, sc_shard_load, p->n),
                        .simulated = NAN};
    return out->place && out->load ? SC_OK : sc_error_nomem(err);
}

void shard_plan_copy(const sc_shard_prices *p, const sc_shard_plan *from,
                     sc_shard_plan *to)
{
    memcpy(to->place, from->place, p->job->n_tables * sizeof *to->place);
    memcpy(to->load, from->load, p->n * sizeof *to->load);
    to->step = from->step;
    to->simulated = from->simulated;
    to->fits = from->fits;
    to->full = from->full;
}
