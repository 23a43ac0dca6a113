/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_split.c - gathers updated weights in buckets if that overlaps the first
 * forward pass, so that its first operators wait for their own bucket only.
 */
#include "plan/lower.h"

#include <string.h>

static bool gathers_new(const net_program *p, const program_item *it)
{
    if (!it->once || it->exchange == SC_NONE || it->n_in < 2) return false;
    for (uint32_t k = 0; k < it->n_in; k++)
        if (p->value[it->in[k]].what != VALUE_WEIGHT_NEW) return false;
    return true;
}

static double bucket_bytes(const sc_net_run *job)
{
    const sc_strategy *s = job->strategy;
    if (s && s->grad_bucket > 0) return s->grad_bucket;
    return s ? sc_software_bucket(job->sw, false,
                                  (double)sc_strategy_replicas(s),
                                  sc_value_bytes(job->precision))
             : job->sw->bucket_bytes;
}

/* Returns the end of the bucket that begins with input `from` of a gather.  The
 * gather's bytes are divided among its inputs in proportion to their sizes. */
static uint32_t bucket_end(const net_program *p, const program_item *it,
                           uint32_t from, double sum, double most,
                           double *bytes)
{
    *bytes = 0;
    while (from < it->n_in && (*bytes == 0 || *bytes < most))
        *bytes += it->bytes * p->value[it->in[from++]].bytes / sum;
    return from;
}

static uint32_t split(const net_program *p, const program_item *it, double most,
                      program_item *out)
{
    double sum = 0, bytes;
    uint32_t n = 0;
    for (uint32_t k = 0; k < it->n_in; k++) sum += p->value[it->in[k]].bytes;
    for (uint32_t from = 0, to; from < it->n_in; from = to, n++) {
        to = bucket_end(p, it, from, sum, most, &bytes);
        if (!out) continue;
        out[n] = *it;
        out[n].in = it->in + from;
        out[n].n_in = to - from;
        out[n].bytes = bytes;
        out[n].fraction = bytes / it->bytes;
        out[n].seconds =
            it->latency + (it->seconds - it->latency) * bytes / it->bytes;
        if (to < it->n_in) out[n].out = SC_NONE;
    }
    return n;
}

sc_status lower_split(const sc_net_run *job, net_program *p, sc_arena *a,
                      sc_err *err)
{
    double most = job->sw && job->sw->param_overlap ? bucket_bytes(job) : 0;
    uint32_t n = 0, more = 0;
    if (most <= 0) return SC_OK;
    for (uint32_t i = 0; i < p->n_items; i++)
        if (gathers_new(p, &p->item[i]) && p->item[i].bytes > most)
            more += split(p, &p->item[i], most, NULL) - 1;
    if (!more) return SC_OK;
    program_item *item = SC_NEW_N(a, program_item, (size_t)p->n_items + more);
    uint32_t *now = SC_NEW_N(a, uint32_t, p->n_items);
    program_value *value = SC_NEW_N(a, program_value, p->n_values);
    if (!item || !now || !value) return sc_error_nomem(err);
    for (uint32_t i = 0; i < p->n_items; i++) {
        const program_item *it = &p->item[i];
        if (gathers_new(p, it) && it->bytes > most)
            n += split(p, it, most, item + n);
        else
            item[n++] = *it;
        now[i] = n - 1;
    }
    memcpy(value, p->value, p->n_values * sizeof *value);
    for (uint32_t v = 0; v < p->n_values; v++)
        if (value[v].made != SC_NONE) value[v].made = now[value[v].made];
    *p = (net_program){p->n_values, n, value, item};
    return SC_OK;
}
