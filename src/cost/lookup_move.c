/* SPDX-License-Identifier: Apache-2.0 */
/* lookup_move.c - rows that an operator reads, and the bytes that its kernels
 * move through memory and cache. */
#include "cost/lookup.h"
#include "hw/hw_arch.h"

#include <math.h>

/* Bytes that a multiprocessor reads from the last-level cache per clock: those
 * of GV100 and GA100 (2048 over 80 and 5120 over 108, NVIDIA A100 whitepaper,
 * 2020); the compute units of an MI300X get 27 (17.2 TB/s, AMD CDNA 3
 * whitepaper). */
#define CACHE_VOLTA  25.6
#define CACHE_AMPERE 47.4

/* Bytes/s of the last-level cache; never below those of memory. */
static double cache_rate(const sc_device *d)
{
    sc_fit_class fit = sc_arch_of(d->arch)->fit;
    bool ampere = fit == SC_FIT_AMPERE || fit == SC_FIT_ADA ||
                  fit == SC_FIT_HOPPER || fit == SC_FIT_BLACKWELL;
    double rate = ampere ? CACHE_AMPERE : CACHE_VOLTA;
    return fmax(d->mem_bw, d->units * d->clock_hz * rate);
}

static double hit_rate(const sc_device *d, const sc_row_reads *r)
{
    double together = sc_lookup_together(d->units, r->samples, r->tables);
    double hit = r->hit;
    sc_row_law law;
    const sc_row_law *one = &law;
    if (r->known) return hit;
    sc_row_law_of(&r->lookups, &law);
    sc_lookup_hits(&one, 1, sc_lookup_cache(d->l2_bytes) / together, &hit);
    return hit;
}

/* All bytes pass the cache; those that it lacks also memory. */
void lookup_move(const sc_device *d, const sc_kernel *k, sc_price *inout)
{
    const sc_lookups *l = &k->reads.lookups;
    double read = l->count / fmax(1, l->parts) * l->row_bytes;
    double all = inout->bytes;
    inout->bytes -= hit_rate(d, &k->reads) * fmin(read, all);
    inout->seconds = fmax(inout->bytes / d->mem_bw, all / cache_rate(d));
}

sc_row_reads lookup_reads(const sc_op_work *w, bool forward)
{
    double samples = w->elements / fmax(1, w->table_width);
    double parts = fmax(1, w->row_parts), count = samples * w->lookups;
    sc_lookups table = {.access = w->access,
                        .rows = w->table_rows,
                        .parts = parts,
                        .count = count,
                        .row_bytes = w->table_width * w->each};
    sc_lookups gradient = {.rows = samples,
                           .parts = 1,
                           .count = count / parts,
                           .row_bytes = table.row_bytes};
    return (sc_row_reads){.lookups = forward ? table : gradient,
                          .samples = samples,
                          .tables = w->tables};
}

double lookup_unique(const sc_op_work *w)
{
    sc_row_law law;
    sc_row_reads r = lookup_reads(w, true);
    sc_row_law_of(&r.lookups, &law);
    return sc_row_law_unique(&law, law.count);
}
