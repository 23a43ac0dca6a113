/* SPDX-License-Identifier: Apache-2.0 */
/* search_memo.c - a table of parts by hash. */
#include "coll/search_memo.h"

enum { PARTS = 1 << 14 };

static search_part *place(const search_memo *m, uint64_t key)
{
    return &m->part[key & (PARTS - 1)];
}

const search_part *search_memo_get(const search_memo *m, uint64_t key)
{
    const search_part *p = place(m, key);
    return p->key == key ? p : NULL;
}

void search_memo_put(search_memo *m, search_part part)
{
    *place(m, part.key) = part;
}

void search_reach_add(search_reach *to, search_reach more)
{
    if (more.channels < to->channels) return;
    if (more.channels > to->channels || more.hops < to->hops) *to = more;
}

sc_status search_memo_init(search_memo *m, sc_arena *a, sc_err *err)
{
    *m = (search_memo){.part = SC_NEW_N(a, search_part, PARTS)};
    return m->part == NULL ? sc_error_nomem(err) : SC_OK;
}
