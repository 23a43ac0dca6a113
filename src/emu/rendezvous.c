/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous.c - which calls form one operation.
 *
 * The n-th collective that a member calls on a group matches the n-th of every
 * other member. Open operations of a group are a list in that order, and each
 * real member knows the first one that it has not joined.
 */
#include "emu/rendezvous.h"

#include <stdio.h>
#include <string.h>

/* ---- conflicts ----------------------------------------------------------- */

void emu_group_print(const emu_group *g, char *buf, size_t size)
{
    const emu_members *m = g->world;
    if (g->n == 1) {
        snprintf(buf, size, "rank %u", emu_group_rank_at(g, 0));
        return;
    }
    if (m->regular && m->stride == 1) {
        snprintf(buf, size, "ranks %u-%u", m->base, m->base + g->n - 1);
        return;
    }
    size_t at = (size_t)snprintf(buf, size, "ranks ");
    for (uint32_t i = 0; i < g->n && i < 4 && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%u", i ? ", " : "",
                               emu_group_rank_at(g, i));
    if (g->n > 4 && at < size) snprintf(buf + at, size - at, "... (%u)", g->n);
}

static void print_call(const emu_group *g, sc_coll coll, uint32_t root,
                       uint64_t bytes, char *buf, size_t size)
{
    char with[40] = "";
    bool into = coll == SC_REDUCE || coll == SC_GATHER;
    if (sc_coll_is_rooted(coll))
        snprintf(with, sizeof with, " %s rank %u", into ? "to" : "from",
                 emu_group_rank_at(g, root));
    snprintf(buf, size, "%s%s of %llu B", sc_coll_names[coll], with,
             (unsigned long long)bytes);
}

static sc_status differ(const sc_emu *e, const emu_op *o, const sc_emu_op *op,
                        uint32_t root, uint64_t call, sc_err *err)
{
    char mine[96], other[96], group[80];
    print_call(o->g, op->coll, root, op->bytes, mine, sizeof mine);
    print_call(o->g, o->coll, o->root, o->bytes, other, sizeof other);
    emu_group_print(o->g, group, sizeof group);
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_none(),
                    "all members call the same operations in the same order",
                    "rank %u calls %s where rank %u called %s, call %llu of "
                    "the group of %s",
                    op->rank, mine, e->post[o->posts.head].rank, other,
                    (unsigned long long)call, group);
}

/* ---- collectives --------------------------------------------------------- */

bool emu_coll_may_differ(sc_coll c)
{
    return c == SC_ALL_TO_ALL || c == SC_GATHER || c == SC_SCATTER ||
           c == SC_BARRIER;
}

static emu_op *open_rendezvous(sc_emu *e, emu_group *g, const sc_emu_op *op,
                               uint32_t root, uint32_t *out, sc_err *err)
{
    emu_op *o = emu_op_alloc(e, out, err);
    if (!o) return NULL;
    o->g = g;
    o->coll = op->coll;
    o->root = root;
    o->bytes = op->bytes;
    o->state = EMU_OPEN;
    o->expected = g->n_real;
    return o;
}

static void append(sc_emu *e, emu_members *m, uint32_t n_real, uint32_t i)
{
    if (m->tail != EMU_NONE) e->op[m->tail].next = i;
    m->tail = i;
    for (uint32_t k = 0; k < n_real; k++)
        if (m->next[k] == EMU_NONE) m->next[k] = i;
}

static sc_status join_collective(sc_emu *e, emu_group *g, const sc_emu_op *op,
                                 uint32_t *out, bool *all, sc_err *err)
{
    emu_members *m = g->world;
    uint32_t k = 0, root = 0;
    while (g->real[k] != op->rank) k++;
    if (sc_coll_is_rooted(op->coll)) root = emu_group_member(g, op->peer);
    *out = m->next[k];
    if (*out == EMU_NONE) {
        if (!open_rendezvous(e, g, op, root, out, err)) return SC_ENOMEM;
        if (g->n_real > 1) append(e, m, g->n_real, *out);
    }
    emu_op *o = &e->op[*out];
    m->posts[k]++;
    if (o->state != EMU_DROPPED &&
        (o->coll != op->coll || o->root != root ||
         (o->bytes != op->bytes && !emu_coll_may_differ(op->coll))))
        return differ(e, o, op, root, m->posts[k] - 1, err);
    if (op->bytes > o->bytes) o->bytes = op->bytes;
    *all = o->n_real + 1 == o->expected;
    if (g->n_real == 1) return SC_OK;
    m->next[k] = o->next;
    if (!*all) return SC_OK;
    if (o->next == EMU_NONE) m->tail = EMU_NONE; /* joined in order */
    return SC_OK;
}

sc_status emu_rendezvous_join(sc_emu *e, const sc_emu_op *op, uint32_t *out,
                              bool *all, sc_err *err)
{
    *all = true;
    if (!sc_coll_is_message(op->coll))
        return join_collective(e, e->groups.v[op->group], op, out, all, err);
    emu_op *o = emu_message_open(e, op, out, err); /* with an emulated rank */
    if (!o) return SC_ENOMEM;
    o->expected = 1;
    return SC_OK;
}
