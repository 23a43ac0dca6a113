/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_closed.c - operations with known durations, on links that they share.
 *
 * An operation is its latency followed by a flow of work: one byte of the flow
 * is one picosecond of the work alone.  A link of its own limits the flow to
 * the speed of the operation alone.  On shared links it uses, per picosecond of
 * work, the bytes that it moves there.  Weights make flows that share a
 * bottleneck move their bytes at the same rate. (sim/exec_net.c does the same
 * for a step whose operations are known beforehand; here they appear one by
 * one.)
 */
#include "emu/delay_closed.h"

static sc_status read_file(const emu_delay *d, delay_file *out, sc_err *err)
{
    char *text = NULL;
    size_t len = 0;
    const char *name = d->c->delay_file;
    SC_TRY(sc_file_read(name, SC_DOC_MAX_BYTES, d->a, &text, &len, err));
    if (d->c->delay == SC_EMU_DELAY_TABLE)
        return delay_table_read(text, len, name, d->c->delay_ranks, d->a, out,
                                err);
    return delay_alpha_beta_read(text, len, name, d->a, out, err);
}

sc_status delay_closed_new(emu_delay *d, sc_err *err)
{
    delay_closed *x = SC_NEW(d->a, delay_closed);
    /* an operation on a port alone takes longer if the port has less
     * bandwidth */
    double factor = d->what.bandwidth;
    if (x == NULL) return sc_error_nomem(err);
    x->ports = d->c->delay != SC_EMU_DELAY_ANALYTIC;
    if (x->ports) factor = 1;
    if (x->ports && d->c->delay != SC_EMU_DELAY_HOST) {
        x->file = SC_NEW(d->a, delay_file);
        if (x->file == NULL) return sc_error_nomem(err);
        SC_TRY(read_file(d, x->file, err));
    }
    SC_TRY(delay_flights_init(&x->flights, factor, d->a, err));
    d->flows = x->flights.flows;
    d->closed = x;
    return SC_OK;
}

/* ---- operations */

sc_status delay_closed_post(emu_delay *d, const emu_flight *op, sc_time t,
                            sc_time credit, sc_err *err)
{
    delay_closed *x = d->closed;
    closed_kind *k = NULL;
    const closed_price *p = NULL;
    bool longer;
    SC_TRY(closed_kind_of(d, op, &k, &longer, err));
    if (longer && !delay_flights_reroute(&x->flights))
        return sc_error_nomem(err);
    SC_TRY(closed_price_of(d, k, op->bytes, &p, err));
    sc_time latency = p->latency > credit ? p->latency - credit : 0;
    double bytes = closed_bytes(op->coll, op->bytes);
    delay_flight f = {.route = k->route,
                      .tag = op->tag,
                      .bytes = (uint64_t)p->work,
                      .starts = t + latency,
                      .weight = 1};
    if (p->work > 0 && bytes > 0) f.weight = (double)p->work / bytes;
    f.per_ps = x->ports ? 1 : 1 / f.weight;
    return delay_flights_send(&x->flights, &f, t) == SC_FLOW_NONE
               ? sc_error_nomem(err)
               : SC_OK;
}

/* ---- the clock */

uint32_t delay_closed_advance(emu_delay *d, sc_time t,
                              const emu_delay_end **ends)
{
    delay_flights *x = &d->closed->flights;
    const sc_flow_end *end;
    uint32_t n = delay_flights_advance(x, t, &end);
    if (n == SC_FLOW_NONE || !delay_ends(d, n)) return SC_FLOW_NONE;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t id = (uint32_t)end[k].tag;
        d->end[k] = (emu_delay_end){x->flight[id]->tag, end[k].t};
        delay_flights_free(x, id);
    }
    *ends = d->end;
    return n;
}

void delay_closed_cancel(emu_delay *d, uint64_t tag)
{
    delay_flights *x = &d->closed->flights;
    for (uint32_t k = 0; k < x->n_moving; k++)
        if (x->flight[x->moving[k]]->tag == tag) {
            delay_flights_cancel(x, x->moving[k]);
            return;
        }
}
