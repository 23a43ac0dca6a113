/* SPDX-License-Identifier: Apache-2.0 */
/* config_pool.c - the JSON of remote memory. */
#include "trace/config.h"

#include <stddef.h>

/* In the order of sc_pool_kind. */
static const char *const kind_names[] = {
    "NO_MEMORY_EXPANSION",       "PER_NPU_MEMORY_EXPANSION",
    "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL",
    "HIERARCHICAL_POOL",         NULL};

typedef struct raw {
    int kind, collectives;
    int64_t nodes, npus, groups, chunk;
    double bw, latency, in_bw, in_latency, out_bw, out_latency;
} raw;

#define GBPS(key, field, text)                                              \
    {                                                                       \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_NONE,              \
        .offset = offsetof(raw, field), .min = 0, .max = 1e12, .help = text \
    }
#define NS(key, field, text)                                               \
    {                                                                      \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_NONE,             \
        .offset = offsetof(raw, field), .min = 0, .max = 1e15, .def = "0", \
        .help = text                                                       \
    }
#define COUNT(key, field, value, text)                              \
    {                                                               \
        .name = key, .type = SC_T_INT, .unit = SC_U_COUNT,          \
        .offset = offsetof(raw, field), .min = 1, .max = INT32_MAX, \
        .def = value, .help = text                                  \
    }

const sc_key trace_pool_keys[] = {
    {.name = "memory-type",
     .type = SC_T_ENUM,
     .offset = offsetof(raw, kind),
     .names = kind_names,
     .help = "write \"memory-type\": \"NO_MEMORY_EXPANSION\"",
     .required = true},
    GBPS("remote-mem-bw", bw, "GB/s of the memory, of one group of a pool"),
    NS("remote-mem-latency", latency, "ns of one access"),
    COUNT("num-nodes", nodes, NULL, "nodes"),
    COUNT("num-npus-per-node", npus, NULL, "NPUs of one node"),
    COUNT("remote-mem-groups", groups, NULL, "memory groups of the pool"),
    GBPS("in-node-bw", in_bw, "GB/s of a GPU's link to its in-node switch"),
    NS("in-node-latency", in_latency, "ns of that link"),
    GBPS("out-node-bw", out_bw, "GB/s of a node's link to the pool"),
    NS("out-node-latency", out_latency, "ns of that link"),
    COUNT("chunk-size", chunk, "4194304", "bytes of one transfer"),
    {.name = "in-switch-collectives",
     .type = SC_T_ENUM,
     .offset = offsetof(raw, collectives),
     .names = trace_config_flags,
     .def = "false",
     .help = "switches inside nodes gather and reduce data in transit"},
    {.name = NULL}};

/* The keys that a kind requires, and those that only it has. */
typedef struct need {
    const char *key;
    unsigned kinds; /* bit per sc_pool_kind */
    bool only;
    bool rate; /* may be 0 where it is not needed */
} need;

#define IN(kind) (1u << SC_POOL_##kind)
#define QUEUED   (IN(PER_NODE) | IN(HIERARCHICAL))

static const need needs[] = {
    {"remote-mem-bw", IN(PER_NPU) | IN(SHARED) | QUEUED, false, true},
    {"num-nodes", QUEUED, false, false},
    {"num-npus-per-node", QUEUED, false, false},
    {"remote-mem-groups", IN(HIERARCHICAL), true, false},
    {"in-node-bw", IN(HIERARCHICAL), true, true},
    {"out-node-bw", IN(HIERARCHICAL), true, true},
    {"in-node-latency", 0, true, false},
    {"out-node-latency", 0, true, false},
    {"chunk-size", 0, true, false},
    {"in-switch-collectives", 0, true, false}};

static bool is_zero(const sc_node *c)
{
    double v = 1;
    sc_err none;
    sc_err_init(&none);
    return c->kind == SC_N_SCALAR && !c->quoted &&
           sc_unit_parse(c->text, SC_U_NONE, c->pos, &v, &none) == SC_OK &&
           v == 0;
}

static sc_status check_need(const need *n, int kind, const sc_node *root,
                            sc_err *err)
{
    const sc_node *c = sc_node_get(root, n->key);
    bool needed = (n->kinds >> kind & 1) != 0;
    if (c == NULL && needed)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, root->pos, NULL,
                        "%s needs %s", kind_names[kind], n->key);
    if (c != NULL && needed && n->rate && is_zero(c))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, c->pos, NULL,
                        "%s is 0, so no data could move", n->key);
    if (c != NULL && n->only && kind != SC_POOL_HIERARCHICAL)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, c->key_pos,
                        "write \"memory-type\": \"HIERARCHICAL_POOL\"",
                        "%s has no %s", kind_names[kind], n->key);
    return SC_OK;
}

/* The kind that a file names, or -1; missing keys are reported in the same pass
 * as other errors. */
static int kind_of(const sc_node *root, sc_arena *a)
{
    raw r = {0};
    sc_err none;
    const sc_node *c = sc_node_get(root, "memory-type");
    sc_err_init(&none);
    if (c == NULL || c->kind != SC_N_SCALAR) return -1;
    return sc_schema_set(&trace_pool_keys[0], c->text, c->pos, &r, a, &none) ==
                   SC_OK
               ? r.kind
               : -1;
}

sc_status trace_pool_text(const char *text, size_t len, const char *file,
                          sc_arena *a, sc_pool *out, sc_err *err)
{
    const sc_node *root;
    raw r = {0};
    SC_TRY(trace_config_parse(text, len, file, a, &root, err));
    SC_TRY(sc_schema_defaults(trace_pool_keys, &r, a, err));
    sc_status first = sc_schema_read(trace_pool_keys, root, &r, NULL, a, err);
    int kind = kind_of(root, a);
    for (size_t i = 0; kind >= 0 && i < SC_COUNT(needs); i++)
        trace_config_keep(&first, check_need(&needs[i], kind, root, err));
    if (first != SC_OK) return first;
    *out = (sc_pool){.kind = (sc_pool_kind)r.kind,
                     .latency_ns = r.latency,
                     .bytes_per_ns = r.bw, /* 1e9 bytes/s */
                     .nodes = (uint32_t)r.nodes,
                     .npus_per_node = (uint32_t)r.npus,
                     .groups = (uint32_t)r.groups,
                     .in_node_bytes_per_ns = r.in_bw,
                     .in_node_latency_ns = r.in_latency,
                     .out_node_bytes_per_ns = r.out_bw,
                     .out_node_latency_ns = r.out_latency,
                     .chunk_bytes = (uint64_t)r.chunk,
                     .in_switch_collectives = r.collectives % 2 == 1,
                     .pos = root->pos};
    return SC_OK;
}

sc_status sc_pool_read(const char *path, sc_arena *a, sc_pool *out, sc_err *err)
{
    const char *file;
    char *text;
    size_t len;
    SC_TRY(trace_config_load(path, a, &file, &text, &len, err));
    return trace_pool_text(text, len, file, a, out, err);
}
