/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_system.c - the JSON of a system.
 *
 * Values of the releases before JSON are read too: "themis", "SCF",
 * "offlineGreedy" and lists joined by '_' ("ring_direct").
 */
#include "trace/config.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const char *const order_names[] = {"LIFO", "FIFO", "EXPLICIT", NULL};
static const char *const optimizations[] = {"baseline", "localBWAware", NULL};
static const char *const switching_names[] = {"cut-through",
                                              "store-and-forward", NULL};

/* Every name of a dimension order, and what it means. */
static const char *const dim_order_names[] = {"Ascending",
                                              "RoundRobin",
                                              "OfflineGreedy",
                                              "OfflineGreedyFlex",
                                              "OnlineGreedy",
                                              "ascending",
                                              "roundRobin",
                                              "offlineGreedy",
                                              "themis",
                                              "baseline",
                                              "themisFlex",
                                              "offlineGreedyFlex",
                                              NULL};
static const sc_dim_order dim_orders[] = {
    SC_DIMS_ASCENDING,           SC_DIMS_ROUND_ROBIN,
    SC_DIMS_OFFLINE_GREEDY,      SC_DIMS_OFFLINE_GREEDY_FLEX,
    SC_DIMS_ONLINE_GREEDY,       SC_DIMS_ASCENDING,
    SC_DIMS_ROUND_ROBIN,         SC_DIMS_OFFLINE_GREEDY,
    SC_DIMS_OFFLINE_GREEDY,      SC_DIMS_ASCENDING,
    SC_DIMS_OFFLINE_GREEDY_FLEX, SC_DIMS_OFFLINE_GREEDY_FLEX};
static const char *const queue_order_names[] = {"FIFO",
                                                "RG",
                                                "SmallestFirst",
                                                "LessRemainingPhaseFirst",
                                                "smallestFirst",
                                                "SCF",
                                                "lessRemainingPhaseFirst",
                                                NULL};
static const sc_queue_order queue_orders[] = {
    SC_QUEUE_FIFO,
    SC_QUEUE_RG,
    SC_QUEUE_SMALLEST_FIRST,
    SC_QUEUE_LESS_REMAINING_PHASE_FIRST,
    SC_QUEUE_SMALLEST_FIRST,
    SC_QUEUE_SMALLEST_FIRST,
    SC_QUEUE_LESS_REMAINING_PHASE_FIRST};

_Static_assert(SC_COUNT(dim_order_names) == SC_COUNT(dim_orders) + 1, "names");
_Static_assert(SC_COUNT(queue_order_names) == SC_COUNT(queue_orders) + 1,
               "names");

typedef struct raw {
    int order, optimization, dim_order, queue_order, switching;
    int roofline, replay, trace, track, bus, port_limit;
    int64_t chunks, splits, slots;
    double delay, mem_bw, peak, L, o, g, G, reduction;
    const char *mem_trace;
    const sc_node *node; /* target of the rows that are read by their name */
} raw;

#define CHOICE(key, field, list, value, text)                           \
    {                                                                   \
        .name = key, .type = SC_T_ENUM, .offset = offsetof(raw, field), \
        .names = list, .def = value, .help = text                       \
    }
#define FLAG(key, field, value, text) \
    CHOICE(key, field, trace_config_flags, value, text)
#define COUNT(key, field, value, most, text)                                 \
    {                                                                        \
        .name = key, .type = SC_T_INT, .unit = SC_U_COUNT,                   \
        .offset = offsetof(raw, field), .min = 1, .max = most, .def = value, \
        .help = text                                                         \
    }
#define NUMBER(key, field, value, least, most, text)               \
    {                                                              \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_NONE,     \
        .offset = offsetof(raw, field), .min = least, .max = most, \
        .def = value, .help = text                                 \
    }
#define NODE(key, text)                                                \
    {                                                                  \
        .name = key, .type = SC_T_NODE, .offset = offsetof(raw, node), \
        .help = text                                                   \
    }

#define IGNORED "no effect"

/* ASTRA-sim distinguishes the streams of a collective by six decimal digits. */
#define SPLITS_MAX 1000000

const sc_key trace_system_keys[] = {
    CHOICE("scheduling-policy", order, order_names, "LIFO",
           "order of waiting collectives"),
    CHOICE("collective-optimization", optimization, optimizations, "baseline",
           "localBWAware: reduce-scatter, all-reduce, all-gather"),
    COUNT("active-chunks-per-dimension", chunks, "1", INT32_MAX,
          "chunks that run at once in a dimension"),
    COUNT("preferred-dataset-splits", splits, NULL, SPLITS_MAX,
          "chunks of a collective"),
    NUMBER("endpoint-delay", delay, "10", 0, 1e12, "ns"),
    NUMBER("local-mem-bw", mem_bw, NULL, 1e-9, 1e12, "GB/s"),
    NUMBER("peak-perf", peak, NULL, 0, 1e12, "TFLOP/s"),
    FLAG("roofline-enabled", roofline, "0", "compute durations from num_ops"),
    FLAG("replay-only", replay, "0", "every node takes its recorded duration"),
    FLAG("trace-enabled", trace, "0", "file for a log of every node"),
    FLAG("track-local-mem", track, "0", "lifetimes of tensors"),
    {.name = "local-mem-trace-filename",
     .type = SC_T_STRING,
     .offset = offsetof(raw, mem_trace),
     .def = "local_mem_trace",
     .help = "folder that they are written to"},
    FLAG("model-shared-bus", bus, "0", "LogGP memory bus"),
    NUMBER("L", L, "0", 0, 1e12, "ns"),
    NUMBER("o", o, "0", 0, 1e12, "ns"),
    NUMBER("g", g, "0", 0, 1e12, "ns"),
    NUMBER("G", G, "0", 0, 1e12, "ns per byte"),
    NUMBER("local-reduction-delay", reduction, "1", 0, 1e12, "ns"),
    NODE("all-reduce-implementation", "algorithm per dimension"),
    NODE("all-gather-implementation", "algorithm per dimension"),
    NODE("reduce-scatter-implementation", "algorithm per dimension"),
    NODE("all-to-all-implementation", "algorithm per dimension"),
    NODE("all-reduce-implementation-custom", "prefix of Chakra files"),
    NODE("all-gather-implementation-custom", "prefix of Chakra files"),
    NODE("reduce-scatter-implementation-custom", "prefix of Chakra files"),
    NODE("all-to-all-implementation-custom", "prefix of Chakra files"),
    {.name = "per-node-custom-implementation",
     .type = SC_T_NODE,
     .offset = offsetof(raw, node),
     .help = "file of node: prefix"},
    CHOICE("inter-dimension-scheduling", dim_order, dim_order_names,
           "Ascending", "order of a chunk's phases"),
    CHOICE("intra-dimension-scheduling", queue_order, queue_order_names, "FIFO",
           "order of a queue"),
    COUNT("communication-slots", slots, "1", INT32_MAX,
          "communication nodes at once on one NPU"),
    CHOICE("switching", switching, switching_names, "cut-through",
           "how switches forward"),
    NODE("in-network-collectives", "dimensions whose switch reduces"),
    FLAG("port-limit", port_limit, "true", "an NPU's port is shared"),
    /* without effect: see `warned` */
    NODE("boost-mode", IGNORED),
    NODE("seprate-log", IGNORED),
    NODE("packet-routing", IGNORED),
    NODE("gap-denominator", IGNORED),
    NODE("comm-scale", IGNORED),
    NODE("compute-scale", IGNORED),
    NODE("injection-scale", IGNORED),
    NODE("rendezvous-protocol", IGNORED),
    NODE("num-queues-per-dim", IGNORED),
    {.name = NULL}};

typedef struct warning {
    const char *key, *what;
    bool compat; /* ignored by the compatible mode only */
} warning;

#define ONLY_OURS "is not of ASTRA-sim; its compatible mode ignores it"

static const warning warned[] = {
    {"boost-mode", "has no effect: every NPU is simulated", false},
    {"seprate-log", "belongs to old releases and has no effect", false},
    {"packet-routing", "belongs to old releases and has no effect", false},
    {"gap-denominator", "belongs to old releases and has no effect", false},
    {"trace-enabled", "has no effect here; write a timeline with --trace FILE",
     false},
    {"inter-dimension-scheduling",
     "is ignored by ASTRA-sim and by its compatible mode", true},
    {"intra-dimension-scheduling",
     "is ignored by ASTRA-sim and by its compatible mode", true},
    {"communication-slots", ONLY_OURS, true},
    {"switching", ONLY_OURS, true},
    {"in-network-collectives", ONLY_OURS, true},
    {"port-limit", ONLY_OURS, true},
    {"comm-scale", "has no effect in a system file, and none in ASTRA-sim",
     false},
    {"compute-scale", "has no effect in a system file, and none in ASTRA-sim",
     false},
    {"injection-scale",
     "has no effect in a system file; write --injection-scale", false},
    {"rendezvous-protocol",
     "has no effect in a system file; write --rendezvous", false},
    {"num-queues-per-dim",
     "has no effect in a system file; write --num-queues-per-dim", false}};

static const char *const lists[SC_N_CCL_OPS] = {
    [SC_ALL_REDUCE] = "all-reduce-implementation",
    [SC_ALL_GATHER] = "all-gather-implementation",
    [SC_REDUCE_SCATTER] = "reduce-scatter-implementation",
    [SC_ALL_TO_ALL] = "all-to-all-implementation"};
static const char *const customs[SC_N_CCL_OPS] = {
    [SC_ALL_REDUCE] = "all-reduce-implementation-custom",
    [SC_ALL_GATHER] = "all-gather-implementation-custom",
    [SC_REDUCE_SCATTER] = "reduce-scatter-implementation-custom",
    [SC_ALL_TO_ALL] = "all-to-all-implementation-custom"};

/* "boost-mode": 0 is in every file and has no effect. */
static bool asks_for_nothing(const sc_node *c)
{
    return strcmp(c->key, "boost-mode") == 0 && c->kind == SC_N_SCALAR &&
           (strcmp(c->text, "0") == 0 || strcmp(c->text, "false") == 0);
}

static void warn(const sc_node *root, bool compat, sc_text *warnings)
{
    if (warnings == NULL) return;
    for (const sc_node *c = root->child; c != NULL; c = c->next)
        for (size_t i = 0; i < SC_COUNT(warned); i++)
            if (strcmp(c->key, warned[i].key) == 0 &&
                warned[i].compat == compat && !asks_for_nothing(c))
                sc_text_add(warnings, "%s:%u:%u: warning: %s %s\n",
                            c->key_pos.file, c->key_pos.line, c->key_pos.col,
                            c->key, warned[i].what);
}

static sc_status warn_compat(const sc_node *root, sc_arena *a, sc_system *out,
                             sc_err *err)
{
    sc_text t;
    sc_text_init(&t);
    warn(root, true, &t);
    out->compat_warnings = t.failed ? NULL : sc_strdup(a, t.buf);
    sc_text_free(&t);
    return out->compat_warnings ? SC_OK : sc_error_nomem(err);
}

static sc_status read_lists(const sc_node *root, const char *file, sc_arena *a,
                            sc_system *out, sc_err *err)
{
    sc_status first = SC_OK;
    for (int op = 0; op < SC_N_CCL_OPS; op++) {
        const sc_node *c = sc_node_get(root, lists[op]);
        out->ccl[op].pos = out->ccl_custom[op].pos = root->pos;
        if (c != NULL)
            trace_config_keep(&first, trace_ccl_list(c, &out->ccl[op], a, err));
        c = sc_node_get(root, customs[op]);
        if (c != NULL)
            trace_config_keep(
                &first,
                trace_ccl_custom(c, file, &out->ccl_custom[op], a, err));
    }
    return first;
}

/* [0, 2]: these dimensions; [true, false, true]: the same. */
static sc_status read_in_network(const sc_node *list, sc_system *out,
                                 sc_arena *a, sc_err *err)
{
    static const char *const words[] = {"false", "true", NULL};
    static const sc_key flag = {.name = "in-network-collectives",
                                .type = SC_T_ENUM,
                                .names = words,
                                .help = "write [0, 1] or [true, false]"};
    static const sc_key index = {.name = "in-network-collectives",
                                 .type = SC_T_INT,
                                 .unit = SC_U_COUNT,
                                 .min = 0,
                                 .max = SC_HW_DIMS - 1,
                                 .help = "write [0, 1] or [true, false]"};
    SC_TRY(trace_config_list(list, SC_HW_DIMS, err));
    const sc_node *c = list->child;
    bool flags = c != NULL && c->kind == SC_N_SCALAR &&
                 (c->text[0] == 't' || c->text[0] == 'f');
    sc_status first = SC_OK;
    for (int i = 0; c != NULL; c = c->next, i++) {
        int on = 0;
        int64_t dim = 0;
        sc_status s = flags ? trace_config_entry(&flag, c, &on, a, err)
                            : trace_config_entry(&index, c, &dim, a, err);
        trace_config_keep(&first, s);
        if (s != SC_OK) continue;
        uint32_t bit = flags ? (uint32_t)on << i : 1u << dim;
        if (!flags && (out->in_network & bit) != 0)
            trace_config_keep(
                &first, sc_error(err, SC_EINPUT, SC_C_DUPLICATE, c->pos, NULL,
                                 "dimension %u occurs twice", (unsigned)dim));
        out->in_network |= bit;
    }
    out->in_network_pos = list->pos;
    return first;
}

static sc_status read_node_file(const sc_node *c, const char *file,
                                trace_node_file *out, sc_arena *a, sc_err *err)
{
    static const char *const as_it_is[] = {"", NULL};
    static const sc_key row = {.name = "per-node-custom-implementation",
                               .type = SC_T_STRING,
                               .help = "write the name of its yml"};
    SC_TRY(trace_config_entry(&row, c, &out->path, a, err));
    out->path = trace_config_beside(out->path, file, as_it_is, a);
    out->pos = c->pos;
    return out->path == NULL ? sc_error_nomem(err) : SC_OK;
}

/* A roofline needs both of its slopes, unless recorded times are replayed. */
static sc_status check_roofline(const sc_node *root, const raw *r, sc_err *err)
{
    if (r->roofline % 2 == 0 || r->replay % 2 == 1) return SC_OK;
    sc_pos pos = sc_node_get(root, "roofline-enabled")->pos;
    sc_status first = SC_OK;
    if (r->peak <= 0)
        trace_config_keep(&first,
                          sc_error(err, SC_EINPUT, SC_C_MISSING, pos,
                                   "write it in TFLOP/s: \"peak-perf\": 900",
                                   "a roofline needs peak-perf"));
    if (r->mem_bw <= 0)
        trace_config_keep(&first,
                          sc_error(err, SC_EINPUT, SC_C_MISSING, pos,
                                   "write it in GB/s: \"local-mem-bw\": 1600",
                                   "a roofline needs local-mem-bw"));
    return first;
}

static bool given(const sc_given *g, const char *name)
{
    return sc_given_has(g, trace_system_keys, name);
}

static void convert(const raw *r, const sc_given *g, sc_system *out)
{
    out->order = (sc_stream_order)r->order;
    out->order_given = given(g, "scheduling-policy");
    out->local_bw_aware = r->optimization == 1;
    out->active_chunks = (uint32_t)r->chunks;
    out->splits = (uint32_t)r->splits;
    out->endpoint_delay_ns = r->delay;
    out->local_mem_bw = r->mem_bw * 1e9;
    out->peak_flops = r->peak * 1e12;
    out->roofline = r->roofline % 2 == 1;
    out->replay_only = r->replay % 2 == 1;
    out->trace = r->trace % 2 == 1;
    out->track_local_mem = r->track % 2 == 1;
    out->local_mem_trace = r->mem_trace;
    out->shared_bus = r->bus % 2 == 1;
    out->bus_L = r->L;
    out->bus_o = r->o;
    out->bus_g = r->g;
    out->bus_G = r->G;
    out->local_reduction_delay_ns = r->reduction;
    out->dim_order = dim_orders[r->dim_order];
    out->dim_order_given = given(g, "inter-dimension-scheduling");
    out->queue_order = queue_orders[r->queue_order];
    out->queue_order_given = given(g, "intra-dimension-scheduling");
    out->comm_slots = (uint32_t)r->slots;
    out->switching = (sc_switching)r->switching;
    out->port_limit = r->port_limit % 2 == 1;
}

sc_status trace_system_text(const char *text, size_t len, const char *file,
                            sc_arena *a, sc_text *warnings, sc_system *out,
                            trace_node_file *nodes, sc_err *err)
{
    const sc_node *root;
    raw r = {0};
    sc_system sys = {0};
    sc_given g;
    trace_node_file node_file = {NULL, {0}};
    SC_TRY(trace_config_parse(text, len, file, a, &root, err));
    SC_TRY(sc_schema_defaults(trace_system_keys, &r, a, err));
    sc_status first = sc_schema_read(trace_system_keys, root, &r, &g, a, err);
    if (first == SC_OK)
        trace_config_keep(&first, check_roofline(root, &r, err));
    trace_config_keep(&first, read_lists(root, file, a, &sys, err));
    sys.pos = sys.in_network_pos = root->pos;
    const sc_node *c = sc_node_get(root, "in-network-collectives");
    if (c != NULL) trace_config_keep(&first, read_in_network(c, &sys, a, err));
    c = sc_node_get(root, "per-node-custom-implementation");
    if (c != NULL)
        trace_config_keep(&first, read_node_file(c, file, &node_file, a, err));
    *nodes = node_file;
    if (first != SC_OK) return first;
    warn(root, false, warnings);
    convert(&r, &g, &sys);
    SC_TRY(warn_compat(root, a, &sys, err));
    *out = sys;
    return SC_OK;
}

static sc_status read_nodes(const trace_node_file *from, const char *base,
                            sc_arena *a, sc_system *out, sc_err *err)
{
    char *text;
    size_t len;
    if (access(from->path, R_OK) != 0)
        return sc_error(err, SC_EINPUT, SC_C_REFERENCE, from->pos, NULL,
                        "the file \"%.160s\" does not exist", from->path);
    SC_TRY(sc_file_read(from->path, SC_DOC_MAX_BYTES, a, &text, &len, err));
    return trace_node_text(text, len, from->path, base, a, out, err);
}

sc_status sc_system_read(const char *path, sc_arena *a, sc_text *warnings,
                         sc_system *out, sc_err *err)
{
    const char *file;
    char *text;
    size_t len;
    sc_system sys = {0};
    trace_node_file nodes = {NULL, {0}};
    SC_TRY(trace_config_load(path, a, &file, &text, &len, err));
    sc_status first =
        trace_system_text(text, len, file, a, warnings, &sys, &nodes, err);
    if (nodes.path != NULL)
        trace_config_keep(&first, read_nodes(&nodes, file, a, &sys, err));
    if (first == SC_OK) *out = sys;
    return first;
}
