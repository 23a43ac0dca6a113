/* SPDX-License-Identifier: Apache-2.0 */
/* coll_explain.c - writes the estimates of a collective as text: every
 * candidate with its terms. */
#include "cost/coll.h"

static void print_time(sc_text *out, const char *label, double seconds)
{
    char buf[32];
    sc_unit_print_short(seconds, SC_U_TIME, buf, sizeof(buf));
    sc_text_add(out, "%s%s", label, buf);
}

static void print_rate(sc_text *out, const char *label, double bytes,
                       double rate)
{
    char b[32], r[32];
    if (!(bytes > 0)) return;
    sc_unit_print_short(bytes, SC_U_BYTES, b, sizeof(b));
    sc_unit_print_short(rate, SC_U_RATE, r, sizeof(r));
    sc_text_add(out, ", %s %s at %s", label, b, r);
}

static void print_estimate(sc_text *out, const coll_estimate *q, bool best)
{
    uint32_t n;
    sc_text_add(out, "%s %s/%s ", best ? "*" : " ",
                sc_algorithms(&n)[q->algorithm].name,
                coll_protocol_names[q->protocol]);
    print_time(out, "", q->seconds);
    print_time(out, ": base ", q->base);
    if (q->hops > 0) print_time(out, ", hops ", q->hops);
    if (q->fill > 0) print_time(out, ", fill ", q->fill);
    print_time(out, ", transfer ", q->transfer);
    print_rate(out, "port", q->port_bytes, q->node_bw);
    print_rate(out, "NICs of a node", q->nic_bytes, q->net_bw);
    print_time(out, "; bound ", q->bound);
    sc_text_add(out, "\n");
}

void sc_cost_explain_coll(const sc_cost *c, const sc_hw *hw, sc_coll coll,
                          double bytes, const sc_place *at, sc_text *out)
{
    char size[32];
    sc_unit_print_short(bytes, SC_U_BYTES, size, sizeof(size));
    sc_text_add(
        out,
        "%s of %s over %u devices, %u per node; groups that share a node: %u\n",
        sc_coll_names[coll], size, at->n, at->m, at->peers);
    if (at->n <= 1 || !(bytes > 0)) {
        sc_text_add(out, "  no data is moved\n");
        return;
    }
    coll_query k;
    coll_estimate q[COLL_ESTIMATES], best;
    if (coll_query_init(&k, c, hw, coll, bytes, at, NULL) != SC_OK ||
        coll_best(&k, -1, &best, NULL) != SC_OK) {
        sc_text_add(out, "  there is no path\n");
        return;
    }
    print_estimate(out, &best, true);
    uint32_t n = coll_estimates(&k, -1, q);
    for (uint32_t i = 0; i < n; i++)
        if (q[i].algorithm != best.algorithm || q[i].protocol != best.protocol)
            print_estimate(out, &q[i], false);
    sc_coll_slow slow;
    if (!sc_cost_coll_slow(c, hw, coll, bytes, at, &slow)) return;
    sc_text_add(out, "  warning: ");
    sc_cost_coll_slow_text(&slow, coll, bytes, at, 0, out);
    sc_text_add(out, "\n");
}
