/* SPDX-License-Identifier: Apache-2.0 */
/* moves_host.c - moves blocks in host memory, as emu_data.h does. */
#include "common/moves.h"

#include <stdlib.h>
#include <string.h>

static live_block block_at(const live_blocks *b, uint32_t i)
{
    if (b->list) return b->list[i];
    live_block at = b->first;
    at.at = (char *)at.at + i * at.len;
    return at;
}

/* Integers are sizes, counts and text, which the program needs unchanged. */
static sc_emu_data *data_for(live_moves *x, sc_emu_data *mirror)
{
    const live_host *h = x->arg;
    const sc_emu_type t = h->type;
    *mirror = (sc_emu_data){.kind = SC_EMU_DATA_MIRROR};
    bool floats = t == SC_EMU_F16 || t == SC_EMU_BF16 || t == SC_EMU_F32 ||
                  t == SC_EMU_F64;
    return floats ? live_data(x->l) : mirror;
}

static bool read_block(live_moves *x, uint32_t member, live_view *out)
{
    const live_host *h = x->arg;
    const live_blocks *in = h->in.n ? &h->in : &h->out;
    live_block b = block_at(in, in->n > 1 ? member : 0);
    *out = (live_view){b.at, b.len, NULL};
    return true;
}

static bool copy(live_moves *x, uint32_t i, const live_view *from)
{
    const live_host *h = x->arg;
    live_block to = block_at(&h->out, i);
    if (!from->p) {
        if (to.len) memset(to.at, 0, to.len);
        return true;
    }
    size_t len = from->len < to.len ? from->len : to.len;
    if (from->len != to.len && !h->cuts)
        live_die(x->l, "a block of %zu bytes in %s, for %zu bytes of rank %u",
                 from->len, sc_coll_names[x->coll], to.len,
                 (unsigned)live_rank(x->l));
    if (len && to.at != from->p) memmove(to.at, from->p, len);
    return true;
}

static bool mirror(live_moves *x, uint32_t first, uint32_t n,
                   const live_view *from)
{
    const live_host *h = x->arg;
    sc_emu_data same, *d = data_for(x, &same);
    size_t size = sc_emu_type_size(h->type);
    for (uint32_t i = first; i < first + n && from->len; i++) {
        live_block to = block_at(&h->out, i);
        for (size_t at = 0; at < to.len; at += from->len) {
            size_t len = to.len - at < from->len ? to.len - at : from->len;
            sc_emu_data_peer(d, from->p, len / size, h->type,
                             (char *)to.at + at);
        }
    }
    return true;
}

static bool reduce(live_moves *x, const void *const *real, uint32_t n_real,
                   uint32_t n, size_t len)
{
    const live_host *h = x->arg;
    sc_emu_data same, *d = data_for(x, &same);
    live_block to = block_at(&h->out, 0);
    if (len != to.len)
        live_die(x->l, "a reduction of %zu bytes in %s, for %zu bytes", len,
                 sc_coll_names[x->coll], to.len);
    return len == 0 || sc_emu_data_reduce(d, real, n_real, n,
                                          len / sc_emu_type_size(h->type),
                                          h->type, h->reduce, to.at);
}

static bool sent(live_moves *x)
{
    const live_host *h = x->arg;
    live_block to = block_at(&h->out, 0);
    const live_view last = {live_last_sent(x->l, to.len), to.len, NULL};
    return copy(x, 0, &last);
}

const live_mover live_in_host = {read_block, copy, mirror, reduce, sent};
