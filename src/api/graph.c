/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - execution graphs of the interface: builds, runs and queries
 * them. */
#include "graph/graph.h"

#include <stepcast/graph.h>

#include "api/api.h"
#include "api/machine.h"
#include "report/report.h"
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define ROUTE_MAX 64 /* links of one message */

_Static_assert((int)STEPCAST_KIND_COMPUTE == SC_OP_COMPUTE, "kinds");
_Static_assert((int)STEPCAST_KIND_COLLECTIVE == SC_OP_COLL, "kinds");
_Static_assert((int)STEPCAST_KIND_TRANSFER == SC_OP_P2P, "kinds");
_Static_assert((int)STEPCAST_KIND_COPY == SC_OP_MEM, "kinds");
_Static_assert((int)STEPCAST_KIND_HOST == SC_OP_HOST, "kinds");
_Static_assert((int)STEPCAST_KIND_MARK == SC_OP_MARK, "kinds");
_Static_assert(SC_N_OP_KINDS == 6, "kinds");
_Static_assert((int)STEPCAST_STREAM_COMPUTE == SC_S_COMPUTE, "streams");
_Static_assert((int)STEPCAST_STREAM_COMM == SC_S_COMM, "streams");
_Static_assert((int)STEPCAST_STREAM_GRADIENTS == SC_S_GRAD, "streams");
_Static_assert((int)STEPCAST_STREAM_TRANSFER == SC_S_P2P, "streams");
_Static_assert((int)STEPCAST_STREAM_COPY == SC_S_COPY, "streams");
_Static_assert((int)STEPCAST_STREAM_HOST == SC_S_HOST, "streams");
_Static_assert((int)STEPCAST_STREAM_TRANSFER_ODD == SC_S_P2P_ODD, "streams");
_Static_assert(SC_N_STREAMS == 7, "streams");

struct stepcast_graph {
    sc_arena arena;
    sc_graph_builder *builder;
    sc_sim_opts opts;
    sc_graph graph;
    sc_result result;
    uint32_t n_devices, n_ops;
    bool ran; /* a run was attempted: the builder is used up */
    bool done;
    sc_err err; /* errors of refused operations */
};

/* ---- building ------------------------------------------------------------ */

static bool devices(stepcast_graph *g)
{
    g->builder = sc_graph_builder_new(&g->arena);
    for (uint32_t i = 0; g->builder && i < g->n_devices; i++) {
        const char *name = sc_sprintf(&g->arena, "device %u", (unsigned)i);
        if (!name) return false;
        sc_graph_add_class(g->builder, name, i, 1);
    }
    return g->builder != NULL;
}

stepcast_graph *stepcast_graph_new(uint32_t n, const stepcast_machine *machine,
                                   stepcast_errors *errors)
{
    static const char here[] = "stepcast_graph_new";
    sc_err own, *err = api_errors(errors, &own);
    if (n == 0 || (machine && n > machine->hw->n_devices)) {
        api_misuse(err, here,
                   n ? "the machine has fewer devices"
                     : "a graph needs a device");
        return NULL;
    }
    stepcast_graph *g = calloc(1, sizeof *g);
    if (g) {
        sc_arena_init(&g->arena, 0);
        sc_err_init(&g->err);
        sc_sim_opts_init(&g->opts);
        g->n_devices = n;
        g->opts.hw = machine ? machine->hw : NULL;
    }
    if (g && devices(g)) return g;
    sc_error_nomem(err);
    stepcast_graph_free(g);
    return NULL;
}

void stepcast_graph_free(stepcast_graph *graph)
{
    if (!graph) return;
    sc_arena_free(&graph->arena);
    free(graph);
}

/* Keeps the error for stepcast_graph_run(), with the operation's name. */
static stepcast_status refuse(stepcast_graph *g, const char *name,
                              const char *what)
{
    const char *at = sc_sprintf(&g->arena, "operation \"%.80s\"", name);
    sc_error(&g->err, SC_EINPUT, SC_C_RANGE, sc_pos_file(at), NULL, "%s", what);
    return STEPCAST_USAGE;
}

/* The reason why an operation is invalid; NULL: it is valid. */
static const char *fault(const stepcast_graph *g, const stepcast_operation *o)
{
    if (!o->name) return "it has no name";
    if ((unsigned)o->kind >= SC_N_OP_KINDS) return "the kind does not exist";
    if ((unsigned)o->stream >= SC_N_STREAMS) return "the stream does not exist";
    if (o->duration_ps < 0 || o->latency_ps < 0 ||
        o->latency_ps > o->duration_ps)
        return "times are 0 or more, and the latency is at most the duration";
    if (o->n_devices == 0 && o->kind != STEPCAST_KIND_MARK)
        return "every operation except a mark needs a device";
    if ((o->n_devices && !o->devices) || (o->n_links && !o->links))
        return "an array is NULL";
    for (uint32_t i = 0; i < o->n_devices; i++)
        if (o->devices[i] >= g->n_devices) return "the device does not exist";
    if (o->n_links && !g->opts.hw) return "the graph has no machine";
    for (uint32_t i = 0; i < o->n_links; i++) {
        if (o->links[i] >= sc_hw_n_links(g->opts.hw))
            return "the machine has no such link";
        if (o->shares && !(o->shares[i] > 0))
            return "a share has to be larger than 0";
    }
    return NULL;
}

/* Copies the links of an operation; SC_NONE: there are none. */
static bool traffic(stepcast_graph *g, const stepcast_operation *o,
                    uint32_t *out)
{
    *out = SC_NONE;
    if (o->n_links == 0) return true;
    uint64_t *link = SC_NEW_N(&g->arena, uint64_t, o->n_links);
    double *share = SC_NEW_N(&g->arena, double, o->n_links);
    if (!link || !share) return false;
    for (uint32_t i = 0; i < o->n_links; i++) {
        link[i] = o->links[i];
        share[i] = o->shares ? o->shares[i] : 1;
    }
    *out = sc_graph_add_traffic(g->builder,
                                &(sc_traffic){o->n_links, link, share});
    return true;
}

static uint8_t category(stepcast_kind kind)
{
    static const uint8_t of[] = {SC_CAT_COMPUTE, SC_CAT_OTHER, SC_CAT_PP,
                                 SC_CAT_OFFLOAD, SC_CAT_HOST,  SC_CAT_OTHER};
    return of[kind];
}

uint32_t stepcast_graph_add(stepcast_graph *graph,
                            const stepcast_operation *operation)
{
    stepcast_graph *g = graph;
    stepcast_operation o = {.size = sizeof o};
    if (!g || g->ran || !operation) return STEPCAST_NONE;
    o.size = operation->size < sizeof o ? operation->size : sizeof o;
    bool known = api_copy(&o, operation, sizeof o);
    const char *what = known ? fault(g, &o) : "the size is not set";
    const char *name = sc_strdup(&g->arena, o.name ? o.name : "");
    sc_op_desc d = {.name = name,
                    .work = o.duration_ps,
                    .latency = o.latency_ps,
                    .cls = SC_NONE,
                    .bytes = o.bytes,
                    .kind = (uint8_t)o.kind,
                    .stream = (uint8_t)o.stream,
                    .dev = o.n_devices ? o.devices : NULL,
                    .n_dev = o.n_devices};
    if (!name || (!what && !traffic(g, &o, &d.traffic))) what = "out of memory";
    if (what) {
        refuse(g, name ? name : "", what);
        return STEPCAST_NONE;
    }
    d.cat = category(o.kind);
    sc_graph_add_op(g->builder, &d);
    return g->n_ops++;
}

uint32_t stepcast_graph_compute(stepcast_graph *graph, const char *name,
                                uint32_t device, int64_t duration_ps)
{
    stepcast_operation o = {.size = sizeof o,
                            .name = name,
                            .kind = STEPCAST_KIND_COMPUTE,
                            .stream = STEPCAST_STREAM_COMPUTE,
                            .n_devices = 1,
                            .devices = &device,
                            .duration_ps = duration_ps};
    return stepcast_graph_add(graph, &o);
}

uint32_t stepcast_graph_send(stepcast_graph *graph, const char *name,
                             uint32_t from, uint32_t to, uint64_t bytes)
{
    stepcast_graph *g = graph;
    uint64_t links[ROUTE_MAX];
    double slowest = 0, latency = 0;
    if (!g || g->ran) return STEPCAST_NONE;
    const sc_hw *hw = g->opts.hw;
    const char *what = !hw ? "the graph has no machine to send over"
                       : from >= g->n_devices || to >= g->n_devices
                           ? "the device does not exist"
                           : NULL;
    uint32_t n = what ? 0 : sc_hw_route(hw, from, to, 0, links, ROUTE_MAX);
    if (!what && (n > ROUTE_MAX || from == to))
        what = "the machine has no route between these devices";
    if (what) {
        refuse(g, name ? name : "", what);
        return STEPCAST_NONE;
    }
    for (uint32_t i = 0; i < n; i++) {
        double s = (double)bytes / sc_hw_link_bw(hw, links[i]);
        if (s > slowest) slowest = s;
        latency += sc_hw_link_latency(hw, links[i]);
    }
    stepcast_operation o = {.size = sizeof o,
                            .name = name,
                            .kind = STEPCAST_KIND_TRANSFER,
                            .stream = STEPCAST_STREAM_TRANSFER,
                            .n_devices = 1,
                            .devices = &from,
                            .duration_ps = sc_time_from_s(latency + slowest),
                            .latency_ps = sc_time_from_s(latency),
                            .bytes = bytes,
                            .n_links = n,
                            .links = links};
    return stepcast_graph_add(g, &o);
}

stepcast_status stepcast_graph_wait(stepcast_graph *graph, uint32_t operation,
                                    uint32_t earlier)
{
    stepcast_graph *g = graph;
    if (!g || g->ran) return STEPCAST_USAGE;
    if (operation >= g->n_ops || earlier >= operation)
        return refuse(g, "wait",
                      "an operation can only wait for operations that were "
                      "added before it");
    sc_graph_add_dep(g->builder, earlier, operation);
    return STEPCAST_OK;
}

stepcast_status stepcast_graph_slow(stepcast_graph *graph, stepcast_kind slowed,
                                    stepcast_kind by, double rate)
{
    if (!graph || graph->ran) return STEPCAST_USAGE;
    if ((unsigned)slowed >= SC_N_OP_KINDS || (unsigned)by >= SC_N_OP_KINDS ||
        !(rate > 0 && rate <= 1))
        return refuse(graph, "slow",
                      "a rate has to be larger than 0 and at most 1");
    graph->opts.rate[slowed][by] = rate;
    return STEPCAST_OK;
}

/* ---- running ------------------------------------------------------------- */

stepcast_status stepcast_graph_run(stepcast_graph *graph,
                                   stepcast_errors *errors)
{
    stepcast_graph *g = graph;
    sc_err own, *err = api_errors(errors, &own);
    if (!g || g->ran)
        return api_misuse(err, "stepcast_graph_run",
                          "the graph is NULL, or it has run already");
    g->ran = true;
    if (g->err.n) {
        *err = g->err;
        return api_status(err->status);
    }
    sc_status s = sc_graph_build(g->builder, &g->arena, &g->graph, err);
    if (s == SC_OK)
        s = sc_sim_run(&g->graph, &g->opts, &g->arena, &g->result, err);
    g->done = s == SC_OK;
    return api_status(s);
}

int64_t stepcast_graph_makespan(const stepcast_graph *graph)
{
    return graph && graph->done ? graph->result.makespan : -1;
}

stepcast_status stepcast_graph_timing(const stepcast_graph *graph,
                                      uint32_t operation, stepcast_timing *out)
{
    if (!graph || !graph->done || operation >= graph->n_ops || !out)
        return STEPCAST_USAGE;
    const sc_result *r = &graph->result;
    stepcast_timing t = {.start_ps = r->start[operation],
                         .end_ps = r->end[operation],
                         .shared_ps = r->shared ? r->shared[operation] : 0,
                         .overlapped_ps =
                             r->overlapped ? r->overlapped[operation] : 0,
                         .cause = r->cause[operation]};
    return api_copy(out, &t, sizeof t) ? STEPCAST_OK : STEPCAST_USAGE;
}

int64_t stepcast_graph_busy(const stepcast_graph *graph, uint32_t device,
                            stepcast_kind kind)
{
    int64_t sum = 0;
    if (!graph || !graph->done || device >= graph->n_devices) return -1;
    const sc_graph *g = &graph->graph;
    const sc_result *r = &graph->result;
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (g->kind[i] != (uint8_t)kind || g->stream[i] != SC_S_COMPUTE)
            continue;
        for (uint32_t k = sc_op_place(g, i); k < sc_op_place(g, i + 1); k++)
            if (g->cls[k] == device) sum += r->end[i] - r->start[i];
    }
    return sum;
}

double stepcast_graph_carried(const stepcast_graph *graph, uint64_t link)
{
    const sc_result *r = graph && graph->done ? &graph->result : NULL;
    for (uint32_t i = 0; r && i < r->n_links; i++)
        if (r->link[i] == link) return r->link_bytes[i];
    return 0;
}

stepcast_status stepcast_graph_trace(const stepcast_graph *graph,
                                     stepcast_document **out,
                                     stepcast_errors *errors)
{
    sc_err own, *err = api_errors(errors, &own);
    sc_json j;
    stepcast_document *d = NULL;
    if (!graph || !graph->done || !out)
        return api_misuse(err, "stepcast_graph_trace",
                          "a parameter is NULL, or the graph has not run");
    sc_json_init(&j, false);
    sc_report_chrome_trace(&graph->graph, &graph->result, NULL, 0, &j);
    if (j.failed)
        sc_error_nomem(err);
    else
        d = api_document(j.buf, j.len, "", err);
    sc_json_free(&j);
    if (!d) return api_status(err->status);
    *out = d;
    return STEPCAST_OK;
}
