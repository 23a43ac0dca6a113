/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files of ASTRA-sim: the first byte chooses the reader; any
 * text behind it is read or refused, and what is read holds together. */
#include "trace/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RANKS 16

static void check_lists(const sc_system *s)
{
    for (int op = 0; op < SC_N_CCL_OPS; op++) {
        const sc_ccl_list *l = &s->ccl[op];
        if (l->n > SC_HW_DIMS || s->ccl_custom[op].n > 1) abort();
        for (uint32_t i = 0; i < l->n; i++)
            if (l->dim[i].kind >= SC_CCL_CUSTOM ||
                (l->dim[i].window != 0 && l->dim[i].kind != SC_CCL_DIRECT))
                abort();
        if (s->ccl_custom[op].n == 1 &&
            s->ccl_custom[op].dim[0].prefix[0] == '\0')
            abort();
    }
}

static sc_status systems(const char *text, size_t len, sc_arena *a, sc_err *err)
{
    sc_text warnings;
    sc_system s = {0};
    trace_node_file nodes = {NULL, {0}};
    sc_text_init(&warnings);
    sc_status got =
        trace_system_text(text, len, "fuzz", a, &warnings, &s, &nodes, err);
    if (got == SC_OK) {
        check_lists(&s);
        if (s.active_chunks == 0 || s.comm_slots == 0) abort();
        if (!(s.local_mem_bw >= 0) || !(s.peak_flops >= 0)) abort();
        if (!(s.endpoint_delay_ns >= 0) || s.in_network >> SC_HW_DIMS) abort();
        if (s.roofline && !s.replay_only &&
            !(s.local_mem_bw > 0 && s.peak_flops > 0))
            abort();
    } else if (warnings.len != 0) {
        abort();
    }
    sc_text_free(&warnings);
    return got;
}

static sc_status nodes(const char *text, size_t len, sc_arena *a, sc_err *err)
{
    sc_system s = {0};
    sc_status got = trace_node_text(text, len, "fuzz", "fuzz", a, &s, err);
    for (uint32_t i = 1; i < s.n_node_ccl; i++)
        if (s.node_ccl[i - 1].node >= s.node_ccl[i].node) abort();
    return got;
}

static sc_status networks(const char *text, size_t len, sc_arena *a,
                          sc_err *err)
{
    sc_network n = {0};
    sc_status got = trace_network_text(text, len, "fuzz", a, &n, err);
    uint64_t ranks = 1;
    if (got == SC_OK && (n.n_dims == 0 || n.n_dims > SC_HW_DIMS)) abort();
    for (uint32_t i = 0; i < n.n_dims; i++) {
        ranks *= n.dim[i].size;
        if (n.dim[i].size < 2 || !(n.dim[i].gib_per_s > 0) ||
            !(n.dim[i].latency_ns >= 0))
            abort();
    }
    if (got == SC_OK && ranks != n.n_ranks) abort();
    return got;
}

static sc_status pools(const char *text, size_t len, sc_arena *a, sc_err *err)
{
    sc_pool p = {.kind = SC_POOL_NONE};
    sc_status got = trace_pool_text(text, len, "fuzz", a, &p, err);
    if (p.kind != SC_POOL_NONE && !(p.bytes_per_ns > 0)) abort();
    if (p.kind == SC_POOL_PER_NODE && (p.nodes == 0 || p.npus_per_node == 0))
        abort();
    if (p.kind == SC_POOL_HIERARCHICAL &&
        (p.groups == 0 || p.chunk_bytes == 0 || !(p.in_node_bytes_per_ns > 0) ||
         !(p.out_node_bytes_per_ns > 0)))
        abort();
    return got;
}

static sc_status groups(const char *text, size_t len, sc_arena *a, sc_err *err)
{
    sc_rank_group *g = NULL;
    uint32_t n = 0;
    sc_status got = trace_groups_text(text, len, "fuzz", RANKS, a, &g, &n, err);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seen = 0;
        if (g[i].n == 0 || g[i].name[0] == '\0') abort();
        for (uint32_t k = 0; k < g[i].n; k++) {
            if (g[i].rank[k] >= RANKS || (seen >> g[i].rank[k] & 1)) abort();
            seen |= 1u << g[i].rank[k];
        }
    }
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_status s;
    if (size == 0) return 0;
    const char *text = (const char *)data + 1;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    switch (data[0]) {
    case 's': s = systems(text, size - 1, &a, &err); break;
    case 'c': s = nodes(text, size - 1, &a, &err); break;
    case 'n': s = networks(text, size - 1, &a, &err); break;
    case 'm': s = pools(text, size - 1, &a, &err); break;
    default: s = groups(text, size - 1, &a, &err);
    }
    if ((s == SC_OK) != (err.n == 0)) abort();
    sc_arena_free(&a);
    return 0;
}
