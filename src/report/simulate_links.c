/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_links.c - sums and orders of what links carried. */
#include "report/simulate.h"

const char *const report_net_kinds[] = {
    [SC_DIM_SWITCH] = "Switch", [SC_DIM_FULL] = "FullyConnected",
    [SC_DIM_RING] = "Ring",     [SC_DIM_MESH] = "Mesh",
    [SC_DIM_TREE] = "Tree",     [SC_DIM_CUBE] = "Cube"};

double report_utilization(const sc_report_simulation *s, const sc_link_use *l)
{
    return s->r->makespan > 0 ? (double)l->busy / (double)s->r->makespan : 0;
}

void report_link_name(const sc_report_simulation *s, const sc_link_use *l,
                      char *buf, size_t size)
{
    if (s->opts->hw)
        sc_hw_link_name(s->opts->hw, l->link, buf, size);
    else
        sc_simulate_link_name(s->net, l->link, buf, size);
}

/* Links of a machine: inside nodes, between them. */
static uint32_t machine_tiers(const sc_hw *hw, report_tier *tier)
{
    uint64_t n = sc_hw_n_links(hw);
    for (uint64_t k = 0; k < n; k++) tier[sc_hw_link_scope(hw, k)].links++;
    tier[SC_SCOPE_NODE].kind = "inside nodes";
    tier[SC_SCOPE_NET].kind = "between nodes";
    return tier[SC_SCOPE_NET].links ? 2 : 1;
}

static uint32_t dimension_tiers(const sc_network *net, report_tier *tier)
{
    for (uint32_t i = 0; i < net->n_dims; i++) {
        tier[i].links = sc_simulate_dim_links(net, i);
        tier[i].kind = report_net_kinds[net->dim[i].kind];
        tier[i].size = net->dim[i].size;
    }
    return net->n_dims;
}

uint32_t report_tiers(const sc_report_simulation *s,
                      report_tier tier[SC_HW_DIMS])
{
    const sc_hw *hw = s->opts->hw;
    for (uint32_t i = 0; i < SC_HW_DIMS; i++) tier[i] = (report_tier){0};
    if (!hw && !s->opts->links) return 0;
    uint32_t n = hw ? machine_tiers(hw, tier) : dimension_tiers(s->net, tier);
    for (uint64_t k = 0; k < s->r->n_links; k++) {
        const sc_link_use *l = &s->r->link[k];
        report_tier *t = &tier[hw ? sc_hw_link_scope(hw, l->link)
                                  : sc_simulate_link_dim(s->net, l->link)];
        double u = report_utilization(s, l);
        t->used++;
        t->bytes += l->bytes;
        t->mean += u;
        if (u > t->most) t->most = u;
    }
    for (uint32_t i = 0; i < n; i++)
        if (tier[i].links) tier[i].mean /= (double)tier[i].links;
    return n;
}

static bool before(const sc_link_use *l, uint32_t a, uint32_t b)
{
    if (l[a].busy != l[b].busy) return l[a].busy > l[b].busy;
    if (l[a].bytes != l[b].bytes) return l[a].bytes > l[b].bytes;
    return a < b;
}

/* The heap's root is the least busy of those kept. */
static void sift(const sc_link_use *l, uint32_t *heap, uint32_t n, uint32_t i)
{
    for (uint32_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && before(l, heap[c], heap[c + 1])) c++;
        if (!before(l, heap[i], heap[c])) return;
        uint32_t t = heap[i];
        heap[i] = heap[c];
        heap[c] = t;
    }
}

uint32_t report_busiest(const sc_report_simulation *s, uint32_t n,
                        uint32_t *out)
{
    const sc_link_use *l = s->r->link;
    uint32_t have = 0;
    if (n > s->r->n_links) n = (uint32_t)s->r->n_links;
    if (n == 0) return 0;
    for (; have < n; have++) out[have] = have;
    for (uint32_t i = n / 2; i-- > 0;) sift(l, out, n, i);
    for (uint32_t k = n; k < s->r->n_links; k++) {
        if (!before(l, k, out[0])) continue;
        out[0] = k;
        sift(l, out, n, 0);
    }
    for (uint32_t left = n; left > 1;) {
        uint32_t last = out[0];
        out[0] = out[--left];
        out[left] = last;
        sift(l, out, left, 0);
    }
    return n;
}
