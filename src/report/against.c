/* SPDX-License-Identifier: Apache-2.0 */
/* against.c - a prediction and a measured trace side by side. */
#include "report/replay.h"
#include "report/report_against.h"
#include "report/report_row.h"

#include <stdio.h>
#include <string.h>

/* ---- the predicted device ------------------------------------------------ */

/* The class whose rank is the nearest at or below it: ranks of a pipeline stage
 * follow each other. */
static uint32_t class_of(const sc_graph *g, uint32_t rank)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < g->n_classes; i++) {
        uint32_t r = g->classes[i].rank, best = g->classes[at].rank;
        if (r <= rank && (best > rank || r > best)) at = i;
    }
    return at;
}

static bool on_class(const sc_graph *g, sc_op i, uint32_t cls)
{
    for (uint32_t k = sc_op_place(g, i); k < sc_op_place(g, i + 1); k++)
        if (g->cls[k] == cls) return true;
    return false;
}

/* The instances of a network, by what they are to a device. */
typedef struct places {
    const sc_net *net;
    uint32_t *layer; /* [n_instances] 0: before the layers, 1.. : a layer, last:
                        behind; UINT32_MAX: not on the device */
    uint32_t n_layers;
} places;

/* The instance of the operator that an operation's name begins with; UINT32_MAX.
 * `*op` is that operator. */
static uint32_t instance_of(const sc_net *net, const char *name, uint32_t *op)
{
    size_t len = strcspn(name, " ");
    for (uint32_t i = 0; i < net->n_instances; i++) {
        const sc_net_instance *x = &net->instance[i];
        size_t n = strlen(x->path);
        if (n && (strncmp(x->path, name, n) != 0 || name[n] != '.')) continue;
        for (uint32_t k = x->first; k < x->first + x->n_ops; k++) {
            const char *path = net->op[k].path;
            if (strncmp(path, name, len) != 0 || path[len]) continue;
            *op = k;
            return i;
        }
    }
    return UINT32_MAX;
}

/* The segment that most instances of the device are of. */
static uint32_t usual_segment(const sc_net *net, const bool *here)
{
    uint32_t most = 0, best = UINT32_MAX;
    for (uint32_t i = 0; i < net->n_instances; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < net->n_instances; k++)
            n +=
                here[k] && net->instance[k].segment == net->instance[i].segment;
        if (!here[i] || n <= most) continue;
        most = n;
        best = net->instance[i].segment;
    }
    return best;
}

static sc_status find_places(const sc_prediction *p, uint32_t cls, sc_arena *a,
                             places *out, sc_err *err)
{
    const sc_net *net = p->net->job->net;
    const sc_graph *g = &p->net->plan.step;
    uint32_t op;
    bool *here = SC_NEW_N(a, bool, net->n_instances);
    *out =
        (places){.net = net, .layer = SC_NEW_N(a, uint32_t, net->n_instances)};
    if (!here || !out->layer) return sc_error_nomem(err);
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (g->kind[i] != SC_OP_COMPUTE || !on_class(g, i, cls)) continue;
        uint32_t k = instance_of(net, g->name[i], &op);
        if (k != UINT32_MAX) here[k] = true;
    }
    uint32_t usual = usual_segment(net, here);
    for (uint32_t i = 0; i < net->n_instances; i++)
        if (here[i] && net->instance[i].segment == usual)
            out->layer[i] = ++out->n_layers;
    uint32_t passed = 0;
    for (uint32_t i = 0; i < net->n_instances; i++) {
        if (out->layer[i]) passed = out->layer[i];
        if (!out->layer[i] && passed == out->n_layers)
            out->layer[i] = out->n_layers + 1;
    }
    return SC_OK;
}

sc_status sc_against_layers(const sc_prediction *p, uint32_t rank, sc_arena *a,
                            uint32_t *out, sc_err *err)
{
    places x;
    SC_TRY(find_places(p, class_of(&p->net->plan.step, rank), a, &x, err));
    *out = x.n_layers;
    return SC_OK;
}

/* ---- its work ------------------------------------------------------------ */

static sc_work_kind kind_of(const sc_net_op *op)
{
    switch (op->type) {
    case SC_NET_LINEAR:
    case SC_NET_CONV:
    case SC_NET_CONV_TRANSPOSED:
    case SC_NET_EXPERT: return SC_WORK_PRODUCTS;
    case SC_NET_ATTENTION:
    case SC_NET_MATMUL:
    case SC_NET_SOFTMAX: return SC_WORK_ATTENTION;
    case SC_NET_NORM:
    case SC_NET_BATCH_NORM: return SC_WORK_NORMS;
    default: return SC_WORK_KERNELS;
    }
}

static sc_work_pass pass_of(const sc_graph *g, sc_op i)
{
    const char *rest = g->name[i] + strcspn(g->name[i], " ");
    if (g->cat[i] == SC_CAT_OPTIMIZER) return SC_WORK_UPDATE;
    if (strstr(rest, "(bucket)")) return SC_WORK_ELSE;
    return strstr(rest, "grad") ? SC_WORK_BACKWARD : SC_WORK_FORWARD;
}

/* The part of an operation that is communication. */
static double exchanged(const sc_graph *g, sc_op i)
{
    const sc_parts *x = g->parts ? g->parts[i] : NULL;
    double all = 0, comm = 0;
    if (g->kind[i] == SC_OP_COLL) return 1;
    for (int k = 0; x && k < SC_N_CATS; k++) {
        all += (double)x->by_cat[k];
        if (k != SC_CAT_COMPUTE && k != SC_CAT_OPTIMIZER)
            comm += (double)x->by_cat[k];
    }
    return all > 0 ? comm / all : 0;
}

static void add_op(const sc_graph *g, const sc_result *r, sc_op i,
                   const places *x, sc_step_work *out)
{
    uint32_t op = 0, at;
    sc_time t = r->end[i] - r->start[i];
    sc_time comm = (sc_time)((double)t * exchanged(g, i));
    sc_work_pass pass = pass_of(g, i);
    sc_work_kind kind = SC_WORK_KERNELS;
    if (g->kind[i] == SC_OP_HOST || g->kind[i] == SC_OP_MARK) return;
    out->time[pass][SC_WORK_COLLS] += comm;
    if (g->kind[i] == SC_OP_MEM) {
        out->time[pass][SC_WORK_COPIES] += t;
        return;
    }
    at = instance_of(x->net, g->name[i], &op);
    if (at != UINT32_MAX) kind = kind_of(&x->net->op[op]);
    if (pass == SC_WORK_UPDATE) kind = SC_WORK_KERNELS;
    out->time[pass][kind] += t - comm;
    if (at != UINT32_MAX && pass <= SC_WORK_BACKWARD)
        out->layer[x->layer[at]].pass[pass] += t - comm;
}

static sc_status predicted_work(const sc_prediction *p, uint32_t cls,
                                sc_arena *a, sc_step_work *out, sc_err *err)
{
    const sc_graph *g = &p->net->plan.step;
    places x;
    SC_TRY(find_places(p, cls, a, &x, err));
    *out = (sc_step_work){.n_layers = x.n_layers};
    out->layer = SC_NEW_N(a, sc_layer_work, (size_t)x.n_layers + 2);
    if (!out->layer) return sc_error_nomem(err);
    for (uint32_t i = 0; i < x.net->n_instances; i++)
        if (x.layer[i] && x.layer[i] <= x.n_layers)
            out->layer[x.layer[i]].name = x.net->instance[i].path;
    for (sc_op i = 0; i < g->n_ops; i++)
        if (on_class(g, i, cls)) add_op(g, &p->net->run, i, &x, out);
    return SC_OK;
}

sc_status sc_against_of(const sc_prediction *p, const sc_replay_result *r,
                        uint32_t at, const sc_step_work *measured, sc_arena *a,
                        sc_against *out, sc_err *err)
{
    const sc_replay_rank *rank = &r->rank[at];
    sc_time all;
    sc_replay_split s = report_sum_split(rank, &all);
    uint32_t n = rank->n_steps;
    *out =
        (sc_against){.rank = rank->rank, .n_steps = n, .measured = *measured};
    for (uint32_t i = 0; i < n; i++) out->step[1] += rank->step[i].measured / n;
    out->kernels[1] = s.compute / n;
    out->exposed[1] = s.exposed_comm / n;
    out->idle[1] = (s.host_bound + s.idle + s.memory) / n;
    out->step[0] = sc_time_from_s(p->step_time_s);
    out->kernels[0] = sc_time_from_s(p->time_breakdown_s[SC_CAT_COMPUTE] +
                                     p->time_breakdown_s[SC_CAT_OPTIMIZER]);
    for (int k = SC_CAT_TP; k <= SC_CAT_EP; k++)
        out->exposed[0] += sc_time_from_s(p->time_breakdown_s[k]);
    out->idle[0] = out->step[0] - out->kernels[0] - out->exposed[0];
    return predicted_work(p, class_of(&p->net->plan.step, rank->rank), a,
                          &out->predicted, err);
}

/* ---- text ---------------------------------------------------------------- */

static void row(sc_text *out, const char *name, sc_time predicted,
                sc_time measured)
{
    char off[32] = "-";
    if (predicted == 0 && measured == 0) return;
    if (measured > 0)
        snprintf(off, sizeof off, "%+.1f %%",
                 100 * ((double)predicted / (double)measured - 1));
    sc_text_add(out, "  %-30s %12s %12s %11s\n", name,
                report_seconds(sc_time_to_s(predicted)).s,
                report_seconds(sc_time_to_s(measured)).s, off);
}

static bool comparable(const sc_against *x, int pass)
{
    uint32_t n = x->predicted.n_layers;
    return n > 1 && x->measured.repeats[pass] == n;
}

static void no_layers(const sc_against *x, int pass, sc_text *out)
{
    uint32_t n = x->predicted.n_layers, seen = x->measured.repeats[pass];
    const char *name = sc_work_pass_names[pass];
    if (n < 2)
        sc_text_add(out, "  layers, %s: the model has no equal ones\n", name);
    else if (seen)
        sc_text_add(out,
                    "  layers, %s: kernels repeat %u times, but the predicted "
                    "device has %u layers\n",
                    name, seen, n);
    else
        sc_text_add(out, "  layers, %s: no kernels repeat %u times\n", name, n);
}

static void layer_rows(const sc_against *x, sc_text *out)
{
    uint32_t n = x->predicted.n_layers;
    const sc_layer_work *p = x->predicted.layer, *m = x->measured.layer;
    for (int k = SC_WORK_FORWARD; k <= SC_WORK_BACKWARD; k++) {
        char name[64];
        const char *pass = sc_work_pass_names[k];
        sc_time sum[2] = {0, 0};
        if (!comparable(x, k)) {
            no_layers(x, k, out);
            continue;
        }
        for (uint32_t i = 1; i <= n; i++) {
            sum[0] += p[i].pass[k];
            sum[1] += m[i].pass[k];
        }
        snprintf(name, sizeof name, "before the layers, %s", pass);
        row(out, name, p[0].pass[k], m[0].pass[k]);
        snprintf(name, sizeof name, "one of %u layers, %s", n, pass);
        row(out, name, sum[0] / n, sum[1] / n);
        snprintf(name, sizeof name, "behind the layers, %s", pass);
        row(out, name, p[n + 1].pass[k], m[n + 1].pass[k]);
    }
}

void sc_report_against_text(const sc_against *x, sc_text *out)
{
    sc_text_add(out, "\n  against %s: rank %u, %u step%s\n\n", x->file, x->rank,
                x->n_steps, x->n_steps == 1 ? "" : "s");
    sc_text_add(out, "  %-30s %12s %12s %11s\n", "", "predicted", "measured",
                "off");
    row(out, "step", x->step[0], x->step[1]);
    row(out, "kernels", x->kernels[0], x->kernels[1]);
    row(out, "exposed communication", x->exposed[0], x->exposed[1]);
    row(out, "no kernel runs", x->idle[0], x->idle[1]);
    for (int p = 0; p < SC_N_WORK_PASSES; p++)
        for (int k = 0; k < SC_N_WORK_KINDS; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s, %s", sc_work_pass_names[p],
                     sc_work_kind_names[k]);
            row(out, name, x->predicted.time[p][k], x->measured.time[p][k]);
        }
    layer_rows(x, out);
}

/* ---- JSON ---------------------------------------------------------------- */

static void pair(sc_json *j, const char *key, sc_time predicted,
                 sc_time measured)
{
    sc_json_key(j, key);
    sc_json_begin(j, '{');
    sc_json_put_double(j, "predicted_s", sc_time_to_s(predicted));
    sc_json_put_double(j, "measured_s", sc_time_to_s(measured));
    sc_json_end(j, '}');
}

static void put_work(const sc_against *x, sc_json *j)
{
    sc_json_key(j, "work");
    sc_json_begin(j, '{');
    for (int p = 0; p < SC_N_WORK_PASSES; p++) {
        sc_json_key(j, sc_work_pass_names[p]);
        sc_json_begin(j, '{');
        for (int k = 0; k < SC_N_WORK_KINDS; k++)
            pair(j, sc_work_kind_names[k], x->predicted.time[p][k],
                 x->measured.time[p][k]);
        sc_json_end(j, '}');
    }
    sc_json_end(j, '}');
}

static void put_layers(const sc_against *x, sc_json *j)
{
    const sc_layer_work *p = x->predicted.layer, *m = x->measured.layer;
    uint32_t n = x->predicted.n_layers + 2;
    sc_json_key(j, "layers");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "name",
                           i == 0       ? "before the layers"
                           : i == n - 1 ? "behind the layers"
                                        : p[i].name);
        for (int k = SC_WORK_FORWARD; k <= SC_WORK_BACKWARD; k++)
            if (comparable(x, k))
                pair(j, sc_work_pass_names[k], p[i].pass[k], m[i].pass[k]);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

void sc_report_against_json(const sc_against *x, sc_json *j)
{
    sc_json_key(j, "against");
    sc_json_begin(j, '{');
    sc_json_put_string(j, "file", x->file);
    sc_json_put_uint(j, "rank", x->rank);
    sc_json_put_uint(j, "steps", x->n_steps);
    pair(j, "step", x->step[0], x->step[1]);
    pair(j, "kernels", x->kernels[0], x->kernels[1]);
    pair(j, "exposed_communication", x->exposed[0], x->exposed[1]);
    pair(j, "no_kernel_runs", x->idle[0], x->idle[1]);
    put_work(x, j);
    put_layers(x, j);
    sc_json_end(j, '}');
}
