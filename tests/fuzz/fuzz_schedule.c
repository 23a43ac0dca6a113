/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules from files: any text is read or refused; what is read has every
 * pass once, and holds nothing in the end. */
#include "plan/plan_schedule.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const sc_schedule_file *f, uint32_t dev)
{
    uint32_t chunks = sc_schedule_chunks(f->placement, f->vpp);
    uint64_t passes[4] = {0};
    for (uint32_t i = 0; i < f->n[dev]; i++) {
        const sc_slot *s = &f->slot[dev][i];
        if (s->pass > SC_BWD_W || s->chunk >= chunks || s->mb >= f->ga) abort();
        uint32_t v =
            sc_schedule_stage(f->placement, f->pp, f->vpp, dev, s->chunk);
        if (sc_schedule_device(f->placement, f->pp, f->vpp, v, s->mb, f->ga) !=
            dev)
            abort();
        passes[s->pass]++;
    }
    if (passes[SC_FWD] != passes[SC_BWD] + passes[SC_BWD_X]) abort();
    if (passes[SC_BWD_X] != passes[SC_BWD_W]) abort();
    if (f->splits == 0 && passes[SC_BWD_W]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    const sc_schedule_file *f = NULL;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s =
        sc_schedule_read((const char *)data, size, "fuzz.yml", &a, &f, &err);
    if ((s == SC_OK) != (f != NULL) || (s == SC_OK) != (err.n == 0)) abort();
    for (uint32_t d = 0; s == SC_OK && d < f->pp; d++) walk(f, d);
    sc_arena_free(&a);
    return 0;
}
