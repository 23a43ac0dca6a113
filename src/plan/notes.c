/* SPDX-License-Identifier: Apache-2.0 */
/* notes.c - what lowering knows of an op beyond its place in the graph. */
#include "plan/lower.h"

static uint32_t count(const lower_op_desc *d)
{
    uint32_t n = d->axes ? 1 : 0;
    for (uint32_t m = 1; d->x && m < 1u << SC_N_AX; m++)
        n += d->x->bytes[m] > 0;
    return n;
}

/* Communicators of an exchange by rising mask: scattered inside a group before
 * groups are summed. */
static void fill(const lower_op_desc *d, lower_transfer *t)
{
    if (d->axes) *t++ = (lower_transfer){d->coll, d->axes, d->whole};
    for (uint32_t m = 1; d->x && m < 1u << SC_N_AX; m++)
        if (d->x->bytes[m] > 0)
            *t++ = (lower_transfer){d->x->coll[m], m, d->x->bytes[m]};
}

void lower_note_op(lower_notes *notes, sc_op op, const lower_op_desc *d)
{
    lower_note *at =
        sc_grow(notes->a, notes->at, notes->n, &notes->cap, 1024, sizeof *at);
    lower_note note = {.name = d->name,
                       .n = count(d),
                       .beside = d->beside,
                       .load = d->load,
                       .traffic = d->traffic};
    lower_transfer *t = SC_NEW_N(notes->a, lower_transfer, note.n);
    if (!at || !t || op != notes->n) {
        notes->failed = true;
        return;
    }
    fill(d, t);
    note.t = t;
    at[notes->n++] = note;
    notes->at = at;
}
