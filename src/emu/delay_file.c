/* SPDX-License-Identifier: Apache-2.0 */
/* delay_file.c - curves of times, and which curve is used for an operation. */
#include "emu/delay_file.h"

#include "emu/delay_model.h"

#include <math.h>
#include <stdio.h>

double delay_curve_at(const delay_curve *c, double bytes)
{
    if (c->n == 0) return 0;
    uint32_t last = c->n - 1, high = 1;
    if (bytes <= c->bytes[0])
        return fmax(c->value[0] - c->head * (c->bytes[0] - bytes), 0);
    if (bytes >= c->bytes[last])
        return c->value[last] + c->tail * (bytes - c->bytes[last]);
    SC_FIRST(high, last, mid, c->bytes[mid] > bytes);
    double b0 = c->bytes[high - 1], b1 = c->bytes[high];
    double v0 = c->value[high - 1], v1 = c->value[high];
    if (!(b0 > 0 && v0 > 0)) return v0 + (v1 - v0) * (bytes - b0) / (b1 - b0);
    double v = v0 * pow(v1 / v0, log(bytes / b0) / log(b1 / b0));
    return fmin(fmax(v, v0), v1);
}

/* ---- other groups, other operations */

/* Sequential hops of a ring, of a binary tree, or of one message. */
static uint32_t hops_of(sc_coll coll, uint32_t n)
{
    uint32_t tree = 1;
    switch (coll) {
    case SC_ALL_REDUCE:
    case SC_SCAN:
    case SC_BARRIER: return 2 * (n - 1);
    case SC_ALL_GATHER:
    case SC_REDUCE_SCATTER:
    case SC_ALL_TO_ALL: return n - 1;
    case SC_BROADCAST:
    case SC_REDUCE:
    case SC_GATHER:
    case SC_SCATTER:
        while (tree < 31 && 1u << tree < n) tree++;
        return tree;
    case SC_SEND:
    case SC_RECV:
    case SC_SENDRECV:
    case SC_N_COLLS: break;
    }
    return 1;
}

#define NONE SC_N_COLLS
#define KIN  4

/* Operations whose times are used for one that is not in the file; the first
 * that the file has counts. */
static const uint8_t kin[SC_N_COLLS][KIN] = {
    [SC_ALL_REDUCE] = {SC_REDUCE_SCATTER, SC_ALL_GATHER, NONE},
    [SC_ALL_GATHER] = {SC_REDUCE_SCATTER, SC_ALL_REDUCE, NONE},
    [SC_REDUCE_SCATTER] = {SC_ALL_GATHER, SC_ALL_REDUCE, NONE},
    [SC_ALL_TO_ALL] = {SC_ALL_GATHER, SC_REDUCE_SCATTER, SC_ALL_REDUCE, NONE},
    [SC_BROADCAST] = {SC_REDUCE, SC_ALL_GATHER, SC_ALL_REDUCE, NONE},
    [SC_REDUCE] = {SC_BROADCAST, SC_REDUCE_SCATTER, SC_ALL_REDUCE, NONE},
    [SC_GATHER] = {SC_SCATTER, SC_BROADCAST, SC_ALL_GATHER, SC_ALL_REDUCE},
    [SC_SCATTER] = {SC_GATHER, SC_BROADCAST, SC_ALL_GATHER, SC_ALL_REDUCE},
    [SC_SCAN] = {SC_ALL_REDUCE, SC_REDUCE, NONE},
    [SC_BARRIER] = {SC_ALL_REDUCE, SC_ALL_GATHER, NONE},
    [SC_SEND] = {SC_RECV, NONE},
    [SC_RECV] = {SC_SEND, NONE},
};

static double bus(sc_coll coll, uint32_t n)
{
    return sc_coll_bus_factor(sc_coll_priced(coll), n);
}

/* The largest measured group that does not exceed `n`, else the smallest. */
static const delay_rows *nearest(const delay_op_rows *o, uint32_t n)
{
    uint32_t k = 0;
    while (k + 1 < o->n && o->at[k + 1].ranks <= n) k++;
    return &o->at[k];
}

static sc_status missing(const delay_file *f, sc_coll coll, sc_err *err)
{
    const char *first = sc_coll_names[coll];
    const char *second = sc_coll_names[kin[coll][0]];
    char hint[120];
    snprintf(hint, sizeof hint,
             f->table ? "measure %s or %s as well" : "add %s, %s or default",
             first, second);
    return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(f->name), hint,
                    "the file has no time for %s, which the program calls",
                    first);
}

sc_status delay_file_fit(const delay_file *f, sc_coll coll, uint32_t n,
                         delay_fit *out, sc_err *err)
{
    const delay_op_rows *o = &f->op[coll];
    sc_coll of = coll;
    if (o->n == 0) o = &f->other;
    for (uint32_t k = 0; k < KIN && o->n == 0 && kin[coll][k] != NONE; k++) {
        of = (sc_coll)kin[coll][k];
        o = &f->op[of];
    }
    if (o->n == 0) return missing(f, coll, err);
    const delay_rows *r = nearest(o, n);
    uint32_t m = r->ranks == 0 ? n : r->ranks;
    out->rows = r;
    out->hops = hops_of(coll, n);
    out->latency = (double)out->hops / hops_of(of, m);
    out->work = bus(coll, n) / bus(of, m);
    return SC_OK;
}
