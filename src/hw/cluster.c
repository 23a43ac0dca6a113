/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - the keys of cluster files and of data/hw/nodes. */
#include "hw/cluster.h"

#include <string.h>

const char *const hw_cpus[] = {"unknown", "intel", "amd", "arm", NULL};

static const char *const fabric_names[] = {
    "nvswitch", "nvlink-mesh", "pcie-tree", "torus",         "ring",
    "full",     "none",        "mesh",      "nvlink-bridge", NULL};

static const char *const unit_names[] = {"node", "chip", NULL};

#define AT(field) .offset = offsetof(hw_spec, field)
#define WORD(key, field, about)                                    \
    {                                                              \
        .name = key, .type = SC_T_STRING, AT(field), .help = about \
    }
#define WHOLE(key, field, preset, lo, hi, about)                      \
    {                                                                 \
        .name = key, .type = SC_T_INT, .unit = SC_U_COUNT, AT(field), \
        .def = preset, .min = lo, .max = hi, .help = about            \
    }
#define NUMBER(key, field, kind, preset, lo, hi, about)              \
    {                                                                \
        .name = key, .type = SC_T_QUANTITY, .unit = kind, AT(field), \
        .def = preset, .min = lo, .max = hi, .help = about           \
    }

#define LINE_KEYS                                                              \
    WORD("device", device, "device of the catalogue"),                         \
        WHOLE("nics", nics, NULL, 0, 4096, "network adapters of one node"),    \
        NUMBER("nic_bw", nic_bw, SC_U_RATE, NULL, 1, 1e15,                     \
               "bandwidth of one adapter, one direction"),                     \
        WHOLE("rails", rails, "1", 1, 4096,                                    \
              "leaf switches that a node's adapters are spread over"),         \
        WHOLE("leaf", leaf, "0", 0, 0x1p31,                                    \
              "nodes under one leaf switch; 0: all"),                          \
        WHOLE("group", group, "0", 0, 0x1p31,                                  \
              "nodes of one dragonfly group; 0: leaves join at spines"),       \
        WHOLE("pod", pod, "0", 0, 0x1p31,                                      \
              "nodes of one pod, whose spines join at cores; 0: no cores"),    \
        NUMBER("core_oversubscription", core_oversubscription, SC_U_NONE, "1", \
               1, 1e6, "ratio of spine ports to core ports"),                  \
        WHOLE("host", host, "0", 0, 65536,                                     \
              "devices of one host; 0: of the node"),                          \
        NUMBER("oversubscription", oversubscription, SC_U_NONE, "1", 1, 1e6,   \
               "ratio of leaf ports to spine ports"),                          \
        {.name = "network",                                                    \
         .type = SC_T_ENUM,                                                    \
         AT(network),                                                          \
         .def = "unknown",                                                     \
         .names = sc_net_kind_names,                                           \
         .help = "kind of the network between nodes"},                         \
        {.name = "cpu",                                                        \
         .type = SC_T_ENUM,                                                    \
         AT(cpu),                                                              \
         .def = "unknown",                                                     \
         .names = hw_cpus,                                                     \
         .help = "vendor of the host's processor"},                            \
        NUMBER("node_power", node_power, SC_U_WATT, NULL, 0, 1e7,              \
               "power of the host without its devices"),                       \
        NUMBER("pue", pue, SC_U_NONE, NULL, 1, 10,                             \
               "power usage effectiveness of the room"),                       \
        NUMBER("price", price, SC_U_PRICE, NULL, 0, 1e6,                       \
               "rent of one device"),                                          \
        NUMBER("expanded_memory", expanded_memory, SC_U_BYTES, NULL, 0, 1e15,  \
               "expanded memory of one device (CXL, or its part of a pool)"),  \
        NUMBER("expanded_bw", expanded_bw, SC_U_RATE, NULL, 0, 1e15,           \
               "bandwidth of one device to it, one direction"),                \
        NUMBER("expanded_latency", expanded_latency, SC_U_TIME, "400ns", 0, 1, \
               "latency of one access"),                                       \
        WHOLE("expanded_pool", expanded_pool, "1", 1, 0x1p31,                  \
              "devices that share the expanded memory of all of them"),        \
        NUMBER("expanded_pool_bw", expanded_pool_bw, SC_U_RATE, NULL, 0, 1e17, \
               "bandwidth of the memory that they share, one direction")

/* What the dimensions of a line say themselves. */
#define NODE_KEYS                                                          \
    WHOLE("devices_per_node", devices_per_node, NULL, 1, 65536,            \
          "devices in one node"),                                          \
        NUMBER("bandwidth", bandwidth, SC_U_RATE, NULL, 1, 1e17,           \
               "bandwidth of one device in the fabric, one direction"),    \
        NUMBER("fabric_latency", fabric_latency, SC_U_TIME, "700ns", 0, 1, \
               "latency of one hop of the fabric"),                        \
        {.name = "multicast",                                              \
         .type = SC_T_BOOL,                                                \
         AT(multicast),                                                    \
         .def = "false",                                                   \
         .help = "the fabric's switches reduce and multicast"},            \
        NUMBER("nic_latency", nic_latency, SC_U_TIME, "1us", 0, 1,         \
               "latency of one hop of the network"),                       \
    {                                                                      \
        .name = "sharp", .type = SC_T_BOOL, AT(sharp), .def = "false",     \
        .help = "the network's switches reduce (SHARP, CollNet)"           \
    }

const sc_key hw_line_keys[] = {LINE_KEYS, {.name = NULL}};

const sc_key sc_hw_name_keys[] = {LINE_KEYS, NODE_KEYS, {.name = NULL}};

const sc_key hw_cluster_keys[] = {
    LINE_KEYS,
    NODE_KEYS,
    WORD("name", name, "the name in the catalogue"),
    WORD("title", title, "common name"),
    {.name = "sources",
     .type = SC_T_NODE,
     AT(sources),
     .help = "where the values come from"},
    WORD("node", node, "catalogue node whose values hold unless given here"),
    {.name = "fabric",
     .type = SC_T_ENUM,
     AT(fabric),
     .names = fabric_names,
     .help = "kind of links between the devices of a node"},
    {.name = "unit",
     .type = SC_T_ENUM,
     AT(unit),
     .def = "node",
     .names = unit_names,
     .help = "whether N of NAME:N is nodes or devices"},
    WORD("shape", shape, "sides of a torus or mesh: 4x4"),
    WHOLE("wrap", wrap, "1", 1, 65536,
          "sides of a torus that are a multiple of this number are rings"),
    WHOLE("bridge", bridge, "2", 2, 64, "devices that one bridge joins"),
    WHOLE("nodes", nodes, "1", 1, 0x1p31, "number of nodes"),
    WORD("nccl", nccl, "release of NCCL: 2.18"),
    WORD("nccl_algo", nccl_algo, "NCCL_ALGO"),
    WORD("nccl_proto", nccl_proto, "NCCL_PROTO"),
    WHOLE("nccl_min_nchannels", nccl_min_channels, "0", 0, 64,
          "NCCL_MIN_NCHANNELS"),
    WHOLE("nccl_max_nchannels", nccl_max_channels, "0", 0, 64,
          "NCCL_MAX_NCHANNELS"),
    WHOLE("nccl_cross_nic", nccl_cross_nic, NULL, 0, 2, "NCCL_CROSS_NIC"),
    {.name = "nccl_pxn_disable",
     .type = SC_T_BOOL,
     AT(nccl_pxn_disable),
     .def = "false",
     .help = "NCCL_PXN_DISABLE"},
    WORD("topology", topology,
         "one node: NCCL's or hwloc's XML, nvidia-smi topo -m"),
    WORD("wiring", wiring, "file of the whole network, link by link"),
    {.name = "groups",
     .type = SC_T_NODE,
     AT(groups),
     .help = "nodes that differ: a list of maps of these keys"},
    {.name = NULL}};

sc_status hw_spec_init(hw_spec *s, sc_pos pos, sc_arena *a, sc_err *err)
{
    *s = (hw_spec){.fabric = HW_FABRIC_UNKNOWN,
                   .nics = -1,
                   .nccl_cross_nic = -1,
                   .pos = pos};
    return sc_schema_defaults(hw_cluster_keys, s, a, err);
}

sc_pos hw_spec_pos(const hw_spec *s, const char *key)
{
    const sc_node *c = NULL;
    if (s->map != NULL && s->map->kind == SC_N_MAP)
        c = sc_node_get(s->map, key);
    return c != NULL ? c->pos : s->pos;
}

/* The file's own values, followed by those that it inherits and does not
 * replace. */
static sc_status merge_values(hw_values own, hw_values base, hw_values *out,
                              sc_arena *a, sc_err *err)
{
    sc_value *v = SC_NEW_N(a, sc_value, own.n + base.n);
    if (v == NULL) return sc_error_nomem(err);
    for (uint32_t i = 0; i < own.n; i++) v[i] = own.v[i];
    uint32_t n = own.n;
    for (uint32_t i = 0; i < base.n; i++) {
        bool replaced = false;
        for (uint32_t j = 0; j < own.n; j++)
            if (strcmp(own.v[j].key, base.v[i].key) == 0) replaced = true;
        if (!replaced) v[n++] = base.v[i];
    }
    *out = (hw_values){n, v};
    return SC_OK;
}

/* The catalogue node that a map names in `node:`, if any. There is only one
 * level: a node that inherits can't be inherited from. */
static sc_status read_base(const sc_node *map, hw_spec *s, hw_values *base,
                           sc_arena *a, sc_err *err)
{
    hw_name found;
    const sc_node *node =
        map->kind == SC_N_MAP ? sc_node_get(map, "node") : NULL;
    *base = (hw_values){0, NULL};
    if (node == NULL || node->kind != SC_N_SCALAR) return SC_OK;
    SC_TRY(hw_name_find(node->text, 1u << HW_NODE, node->pos, a, &found, err));
    SC_TRY(hw_embedded(found.file, &s->map, base, a, err));
    if (sc_node_get(s->map, "node") != NULL)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, node->pos,
                        "name the node that it is based on",
                        "%.80s is itself based on another node", node->text);
    return sc_schema_read(hw_cluster_keys, s->map, s, NULL, a, err);
}

void hw_own_rails(hw_spec *s, bool given)
{
    if (!given && s->nics > 0 && s->nics % s->rails != 0) s->rails = s->nics;
}

static sc_status read_map(const sc_node *map, hw_values own, hw_spec *s,
                          sc_arena *a, sc_err *err)
{
    hw_values base;
    sc_status known = read_base(map, s, &base, a, err);
    SC_TRY(sc_schema_read(hw_cluster_keys, map, s, NULL, a, err));
    SC_TRY(known);
    hw_own_rails(s, map->kind == SC_N_MAP && sc_node_get(map, "rails"));
    s->map = map;
    if (s->pos.file == NULL || map->pos.file != NULL) s->pos = map->pos;
    return merge_values(own, base, &s->values, a, err);
}

/* Replaces a device that is described in place by its name. */
static sc_status own_device(sc_node *map, const hw_own **own, sc_arena *a,
                            sc_err *err)
{
    hw_values values;
    sc_node *c = map->kind == SC_N_MAP ? map->child : NULL;
    while (c != NULL && strcmp(c->key, "device") != 0) c = c->next;
    if (c == NULL || c->kind != SC_N_MAP) return SC_OK;
    hw_own *o = SC_NEW(a, hw_own);
    if (o == NULL) return sc_error_nomem(err);
    SC_TRY(hw_take_sources(c, &values, a, err));
    SC_TRY(hw_device_own(c, values, a, &o->device, err));
    if (hw_own_device(*own, o->device->name) != NULL)
        return sc_error(
            err, SC_EINPUT, SC_C_DUPLICATE, c->pos, "give each its name",
            "another device has the name \"%.60s\"", o->device->name);
    o->next = *own;
    *own = o;
    c->kind = SC_N_SCALAR;
    c->text = o->device->name;
    c->quoted = true;
    c->n = 0;
    c->child = NULL;
    return SC_OK;
}

static sc_status own_devices(sc_node *root, const hw_own **own, sc_arena *a,
                             sc_err *err)
{
    SC_TRY(own_device(root, own, a, err));
    sc_node *c = root->kind == SC_N_MAP ? root->child : NULL;
    while (c != NULL && strcmp(c->key, "groups") != 0) c = c->next;
    for (c = c && c->kind == SC_N_SEQ ? c->child : NULL; c; c = c->next)
        SC_TRY(own_device(c, own, a, err));
    return SC_OK;
}

sc_status hw_cluster_read(const char *text, size_t len, const char *file,
                          hw_spec *s, sc_arena *a, sc_err *err)
{
    sc_node *root;
    hw_values own;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    SC_TRY(hw_take_sources(root, &own, a, err));
    SC_TRY(own_devices(root, &s->own, a, err));
    return read_map(root, own, s, a, err);
}

sc_status hw_group_read(const sc_node *item, const hw_spec *of, hw_spec *s,
                        sc_arena *a, sc_err *err)
{
    static const char *const common[] = {"groups",
                                         "rails",
                                         "leaf",
                                         "group",
                                         "oversubscription",
                                         "pod",
                                         "core_oversubscription",
                                         "network",
                                         "cpu",
                                         "pue",
                                         "price",
                                         "expanded_memory",
                                         "expanded_bw",
                                         "expanded_latency",
                                         "expanded_pool",
                                         "expanded_pool_bw",
                                         "nic_latency",
                                         "host",
                                         "unit",
                                         "nccl",
                                         "nccl_algo",
                                         "nccl_proto",
                                         "nccl_min_nchannels",
                                         "nccl_max_nchannels",
                                         "nccl_cross_nic",
                                         "nccl_pxn_disable",
                                         "sharp",
                                         "topology",
                                         "wiring"};
    hw_values base;
    hw_spec own = *of;
    if (item->kind == SC_N_MAP && sc_node_get(item, "node") != NULL)
        SC_TRY(hw_spec_init(&own, item->pos, a, err));
    own.own = of->own;
    own.groups = NULL;
    own.nodes = 1;
    sc_status first = SC_OK;
    for (size_t i = 0; i < SC_COUNT(common) && item->kind == SC_N_MAP; i++) {
        const sc_node *c = sc_node_get(item, common[i]);
        if (c != NULL)
            first = sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, c->pos,
                             "give it beside groups: for all of them",
                             "%s of one group", common[i]);
    }
    sc_status known = read_base(item, &own, &base, a, err);
    SC_TRY(sc_schema_read(hw_cluster_keys, item, &own, NULL, a, err));
    SC_TRY(known);
    SC_TRY(first);
    *s = own;
    s->rails = of->rails;
    s->leaf = of->leaf;
    s->group = of->group;
    s->pod = of->pod;
    s->oversubscription = of->oversubscription;
    s->core_oversubscription = of->core_oversubscription;
    s->nic_latency = of->nic_latency;
    s->host = of->host;
    s->network = of->network;
    s->map = item;
    s->pos = item->pos;
    return SC_OK;
}

sc_status hw_node_read(const sc_embedded *file, hw_spec *s, sc_arena *a,
                       sc_err *err)
{
    const sc_node *map;
    hw_values own;
    SC_TRY(hw_embedded(file, &map, &own, a, err));
    return read_map(map, own, s, a, err);
}
