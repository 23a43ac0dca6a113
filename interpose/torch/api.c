/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - what Python calls, except for the queue of operations. */
#include "torch.h"

#include <stdlib.h>

void stepcast_torch_say(uint32_t rank, uint32_t n)
{
    live_say_rank(rank, n);
}

bool stepcast_torch_open(uint32_t *world, uint32_t *rank)
{
    live *l = live_get();
    if (!l) return false;
    *world = live_world(l);
    *rank = live_rank(l);
    live_group(l, NULL, *world, 0); /* the launcher learns of the rank */
    return true;
}

bool stepcast_torch_is_real(uint32_t rank)
{
    return sc_emu_is_real(live_config(live_get()), rank);
}

void stepcast_torch_enter(void)
{
    live *l = live_get();
    if (l) live_enter(l);
}

void stepcast_torch_leave(void)
{
    live *l = live_get();
    if (l) live_leave(l);
}

live_members *stepcast_torch_group(const uint32_t *rank, uint32_t n,
                                   uint64_t instance)
{
    return live_members_new(live_get(), rank, n, instance);
}

uint32_t stepcast_torch_declare(const uint32_t *rank, uint32_t n)
{
    return live_declare(live_get(), rank, n);
}

void stepcast_torch_use(uint32_t declared, uint32_t or_this)
{
    live_declared_use(declared, or_this);
}

int stepcast_torch_status(const torch_op *o)
{
    return (int)o->status;
}

uint32_t stepcast_torch_source(const torch_op *o)
{
    return o->x.root;
}

void stepcast_torch_free(torch_op *o)
{
    free(o);
}

void stepcast_torch_step(void)
{
    live *l = live_get();
    if (l) live_step(l);
}
