/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_exchange.c - adds the operations of an exchange: one for all
 * communicators of a class of ranks, or one for each.
 */
#include "plan/lower.h"

typedef struct party {
    const uint32_t *dev, *member;
    uint32_t n_dev, n; /* numbers of devices and of members that take part */
    uint32_t traffic;
} party;

static sc_op add(lowering *g, uint32_t i, const lower_item *t, const party *who)
{
    sc_op_desc o = {.cat = g->prog->item[i].cat,
                    .bytes = t->bytes,
                    .traffic = who->traffic,
                    .dev = who->dev,
                    .n_dev = who->n_dev};
    sc_op op = lower_add(g, t, &o);
    if (!g->notes) return op;
    const program_item *it = &g->prog->item[i];
    const sc_net_exchange *x = &g->p->exchange[it->exchange];
    lower_report(
        g, op,
        &(lower_note){.name = t->name,
                      .comm = g->comms->asked[i].comm,
                      .bytes = x->bytes * (it->fraction > 0 ? it->fraction : 1),
                      .fills = t->fills,
                      .grad = x->grad && !it->once,
                      .hidden = !it->once && it->seconds < x->seconds});
    return op;
}

/* ---- collectives -------------------------------------------------------- */

static void collective(lowering *g, const lower_instance *at, uint32_t mb,
                       uint32_t i, const party *who)
{
    uint32_t row = g->prog->item[i].once ? at->row : mb;
    sc_op op = add(g, i, &g->item[i], who);
    for (uint32_t k = 0; k < who->n; k++) {
        lower_deps(g, at, mb, i, who->member[k], op);
        lower_ran(g, at, i, who->member[k], op);
        lower_ops(g, row, i)[who->member[k]] = op;
    }
}

/* Whether a transfer occupies only its sender, because the sender blocks or
 * because its transfers have no separate queue. */
static bool alone(const lowering *g, uint32_t i)
{
    return g->item[i].kind == SC_OP_P2P && g->prog->item[i].to != SC_NONE &&
           (g->rules->transfers_first || g->item[i].stream != SC_S_P2P);
}

/* Adds one operation for all communicators if each device is one class. */
static void folded(lowering *g, const lower_instance *at, uint32_t mb,
                   uint32_t i, const lower_comm *c)
{
    static const uint32_t member = 0;
    bool one = c->n_dev == 0 || alone(g, i);
    party who = {.dev = one ? &at->dev : c->dev,
                 .n_dev = one ? 1 : c->n_dev,
                 .member = &member,
                 .n = 1,
                 .traffic = c->traffic[0]};
    collective(g, at, mb, i, &who);
}

static void groups(lowering *g, const lower_instance *at, uint32_t mb,
                   uint32_t i, const lower_comm *c)
{
    for (uint32_t k = 0; k < c->n_groups; k++) {
        uint32_t *dev = g->scratch, *member = g->scratch + c->size, where;
        const uint32_t *rank = c->rank + (size_t)k * c->size;
        for (uint32_t j = 0; j < c->size; j++) {
            lower_place(g, rank[j], &where, &member[j]);
            dev[j] = where * g->members + member[j];
        }
        party who = {dev, member, c->size, c->size, c->traffic[k]};
        collective(g, at, mb, i, &who);
    }
}

/* ---- pairs -------------------------------------------------------------- */

/* A value from several sources has arrived when all of its parts have. */
static void arrive(lowering *g, uint32_t dev, sc_op *at, sc_op op)
{
    if (*at == SC_NONE) {
        *at = op;
        return;
    }
    sc_op_desc o = {.name = "arrived",
                    .kind = SC_OP_MARK,
                    .stream = SC_S_HOST,
                    .cat = SC_CAT_OTHER,
                    .traffic = SC_NONE,
                    .dev = &dev,
                    .n_dev = 1};
    sc_op mark = sc_graph_add_op(g->b, &o);
    lower_report(g, mark, &(lower_note){.name = o.name, .comm = SC_NONE});
    lower_after(g, *at, mark);
    lower_after(g, op, mark);
    *at = mark;
}

static void pairs(lowering *g, const lower_instance *at, uint32_t mb,
                  uint32_t i, const lower_comm *c)
{
    sc_op *ops = lower_ops(g, g->prog->item[i].once ? at->row : mb, i);
    for (uint32_t k = 0; k < c->n_groups; k++) {
        uint32_t from, to, r, s;
        const uint32_t *rank = c->rank + 2 * (size_t)k;
        lower_place(g, rank[0], &from, &r);
        lower_place(g, rank[1], &to, &s);
        uint32_t dev[2] = {from * g->members + r, to * g->members + s};
        party who = {.dev = dev,
                     .n_dev = alone(g, i) || dev[0] == dev[1] ? 1 : 2,
                     .traffic = c->traffic[k]};
        sc_op op = add(g, i, &g->item[i], &who);
        lower_deps(g, at, mb, i, r, op);
        lower_ran(g, at, i, r, op);
        arrive(g, dev[1], &ops[s], op);
    }
}

void lower_exchange(lowering *g, const lower_instance *at, uint32_t mb,
                    uint32_t i, const lower_comm *c)
{
    if (g->members == 1)
        folded(g, at, mb, i, c);
    else if (g->item[i].kind == SC_OP_P2P)
        pairs(g, at, mb, i, c);
    else
        groups(g, at, mb, i, c);
}
