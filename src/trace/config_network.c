/* SPDX-License-Identifier: Apache-2.0 */
/* config_network.c - the yml of the analytical network: a list per property,
 * an entry per dimension. */
#include "trace/config.h"

#include <stddef.h>

/* MESH is ours: a ring that does not wrap. */
static const char *const kind_names[] = {"Ring", "FullyConnected", "Switch",
                                         "Mesh", NULL};
static const sc_dim_kind kinds[] = {SC_DIM_RING, SC_DIM_FULL, SC_DIM_SWITCH,
                                    SC_DIM_MESH};

typedef struct raw_dim {
    int kind;
    int64_t size;
    double bandwidth, latency;
} raw_dim;

/* Entries of the lists. */
static const sc_key entries[] = {
    {.name = "topology",
     .type = SC_T_ENUM,
     .offset = offsetof(raw_dim, kind),
     .names = kind_names,
     .help = "write [Ring, Switch]"},
    {.name = "npus_count",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = offsetof(raw_dim, size),
     .min = 2,
     .max = INT32_MAX,
     .help = "write [8, 4]"},
    {.name = "bandwidth",
     .type = SC_T_QUANTITY,
     .unit = SC_U_NONE,
     .offset = offsetof(raw_dim, bandwidth),
     .min = 1e-9,
     .max = 1e12,
     .help = "write [50.0, 25.0], in GB/s of 2^30 bytes"},
    {.name = "latency",
     .type = SC_T_QUANTITY,
     .unit = SC_U_NONE,
     .offset = offsetof(raw_dim, latency),
     .min = 0,
     .max = 1e15,
     .help = "write [500.0, 1000.0], in ns"}};

typedef struct raw {
    const sc_node *list[SC_COUNT(entries)];
} raw;

#define LIST(i, key, text)                                                  \
    {                                                                       \
        .name = key, .type = SC_T_NODE,                                     \
        .offset = offsetof(raw, list) + (i) * sizeof(void *), .help = text, \
        .required = true                                                    \
    }

static const sc_key keys[] = {
    LIST(0, "topology", "Ring, FullyConnected, Switch or Mesh per dimension"),
    LIST(1, "npus_count", "members of each dimension"),
    LIST(2, "bandwidth", "GB/s (2^30 bytes) of one link of each dimension"),
    LIST(3, "latency", "ns of one link of each dimension"),
    {.name = NULL}};

static sc_status read_list(const sc_key *row, const sc_node *list, raw_dim *dim,
                           sc_network *net, sc_arena *a, sc_err *err)
{
    SC_TRY(trace_config_list(list, SC_HW_DIMS, err));
    if (list->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, list->pos, row->help,
                        "%s names no dimension", row->name);
    sc_status first = SC_OK;
    uint32_t i = 0;
    for (const sc_node *c = list->child; c != NULL; c = c->next, i++) {
        void *field = (char *)&dim[i] + row->offset;
        sc_key to = *row;
        to.offset = 0;
        trace_config_keep(&first, trace_config_entry(&to, c, field, a, err));
        if (row == entries) net->dim[i].pos = c->pos;
    }
    return first;
}

static sc_status check_sizes(const sc_node *root, const sc_network *net,
                             uint64_t *n_ranks, sc_err *err)
{
    *n_ranks = 1;
    for (uint32_t i = 0; i < net->n_dims; i++) {
        *n_ranks *= net->dim[i].size;
        if (*n_ranks > INT32_MAX)
            return sc_error(err, SC_EINPUT, SC_C_TOO_BIG,
                            sc_node_get(root, "npus_count")->pos, NULL,
                            "more than %d NPUs", INT32_MAX);
    }
    return SC_OK;
}

sc_status trace_network_text(const char *text, size_t len, const char *file,
                             sc_arena *a, sc_network *out, sc_err *err)
{
    const sc_node *root;
    raw lists;
    raw_dim dim[SC_HW_DIMS] = {{0}};
    sc_network net = {0};
    SC_TRY(trace_config_parse(text, len, file, a, &root, err));
    sc_status first = sc_schema_read(keys, root, &lists, NULL, a, err);
    const sc_node *names = sc_node_get(root, "topology");
    for (size_t k = 0; k < SC_COUNT(entries); k++) {
        const sc_node *list = sc_node_get(root, entries[k].name);
        if (list == NULL) continue;
        trace_config_keep(&first,
                          read_list(&entries[k], list, dim, &net, a, err));
        if (names == NULL || names->kind != SC_N_SEQ ||
            list->kind != SC_N_SEQ || list->n == names->n)
            continue;
        trace_config_keep(
            &first, sc_error(err, SC_EINPUT, SC_C_CONFLICT, list->pos, NULL,
                             "%s has %u entries, topology has %u dimensions",
                             list->key, list->n, names->n));
    }
    if (first != SC_OK) return first;
    net.pos = root->pos;
    net.n_dims = names->n;
    for (uint32_t i = 0; i < net.n_dims; i++) {
        net.dim[i].kind = kinds[dim[i].kind];
        net.dim[i].size = (uint32_t)dim[i].size;
        net.dim[i].gib_per_s = dim[i].bandwidth;
        net.dim[i].latency_ns = dim[i].latency;
    }
    uint64_t n_ranks;
    SC_TRY(check_sizes(root, &net, &n_ranks, err));
    net.n_ranks = (uint32_t)n_ranks;
    *out = net;
    return SC_OK;
}

sc_status sc_network_read(const char *path, sc_arena *a, sc_network *out,
                          sc_err *err)
{
    const char *file;
    char *text;
    size_t len;
    SC_TRY(trace_config_load(path, a, &file, &text, &len, err));
    return trace_network_text(text, len, file, a, out, err);
}
