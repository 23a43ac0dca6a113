/* SPDX-License-Identifier: Apache-2.0 */
/* layers_graph.c - the same of a network that is a graph of operators. */
#include <stepcast/model_graph.h>

#include "report/layers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FORWARD = REPORT_FORWARD,
    DGRAD = REPORT_DGRAD,
    WGRAD = REPORT_WGRAD,
    N_PASSES = REPORT_PASSES
};

static double bytes_of(const sc_gtensor *t, double samples)
{
    return sc_gtensor_elements(t, samples) * (t->bytes ? t->bytes : 2);
}

/* What the passes of an operator move: x all inputs, w the weights. */
static void moved(const sc_gop *op, double x, double w, double y,
                  double e[N_PASSES])
{
    double rows = op->lookups ? op->lookups : 1;
    switch ((sc_gtype)op->type) {
    case SC_G_LINEAR:
    case SC_G_EXPERT:
    case SC_G_CONV:
    case SC_G_CONV_TRANSPOSED:
        e[FORWARD] = e[DGRAD] = e[WGRAD] = x + w + y;
        break;
    case SC_G_MATMUL: /* a product for each factor's gradient */
    case SC_G_ATTENTION:
    case SC_G_SCAN:
        e[FORWARD] = x + y;
        e[DGRAD] = 2 * (x + y);
        break;
    case SC_G_EMBED: /* rows, not the table */
        e[FORWARD] = e[WGRAD] = (rows + 1) * y;
        break;
    case SC_G_BATCH_NORM:
    case SC_G_NORM:
    case SC_G_CONV1D:
    case SC_G_ACT:
    case SC_G_SOFTMAX: /* backward reads a value again */
        e[FORWARD] = x + w + y;
        e[DGRAD] = 2 * x + y;
        break;
    case SC_G_ROPE:
    case SC_G_POSITION:
    case SC_G_ELEMENTWISE: /* factors are read again, terms are not */
        e[FORWARD] = x + w + y;
        e[DGRAD] = x + y;
        if (op->fn == SC_F_PRODUCT) e[DGRAD] += x;
        if (op->n_weight) e[WGRAD] = y + w;
        break;
    case SC_G_DROPOUT:
    case SC_G_POOL:
    case SC_G_UPSAMPLE:
    case SC_G_DISPATCH:
    case SC_G_COMBINE:
    case SC_G_CONCAT: e[FORWARD] = e[DGRAD] = x + w + y; break;
    case SC_G_VIEW:
        if (op->copy) e[FORWARD] = e[DGRAD] = x + y;
        break;
    case SC_G_SLICE: /* the rest of the gradient is zero, but written */
        e[FORWARD] = 2 * y;
        e[DGRAD] = x + y;
        break;
    case SC_G_LOSS: /* scores in, their gradient out */
        e[FORWARD] = x;
        e[DGRAD] = 2 * x;
        break;
    case SC_N_GTYPES: break;
    }
}

static report_work work_of(const sc_opgraph *g, uint32_t i, double samples)
{
    const sc_gop *op = &g->op[i];
    report_work k = {0};
    double x = 0, w = 0, learning = 0;
    bool weight = false;
    for (unsigned p = 0; p < op->n_in; p++) {
        const sc_gtensor *t = &g->tensor[op->in[p].tensor];
        double part = op->in[p].part > 0 ? (double)op->in[p].part : 1;
        x += part * bytes_of(t, samples);
        learning += t->learns ? part : 0;
    }
    for (unsigned p = 0; p < op->n_weight; p++) {
        const sc_gtensor *t = &g->tensor[op->weight[p].tensor];
        w += bytes_of(t, samples);
        weight |= t->learns;
        if (t->op == i) k.params += (uint64_t)sc_gtensor_elements(t, 1);
    }
    moved(op, x, w, bytes_of(&g->tensor[op->out.tensor], samples), k.bytes);
    bool attends = op->type == SC_G_ATTENTION;
    k.flop[FORWARD] = op->flops * samples;
    k.flop[DGRAD] =
        k.flop[FORWARD] * (attends && learning > 0 ? 2.0 : learning);
    k.flop[WGRAD] = weight && !attends ? k.flop[FORWARD] : 0;
    if (op->type == SC_G_MATMUL) k.bytes[DGRAD] *= learning / 2;
    if (learning == 0) k.bytes[DGRAD] = 0;
    if (!weight) k.bytes[WGRAD] = 0;
    return k;
}

void report_graph_layers(const sc_model *m, uint64_t batch, sc_text *out)
{
    const sc_opgraph *g = m->graph;
    report_work total = {0};
    int width = 8;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        int n = (int)strlen(g->op[i].path) + 1;
        if (n > width) width = n;
    }
    sc_text_add(out, "%s, batch %" PRIu64 "; unsplit, 2 bytes per element\n\n",
                m->name, batch);
    report_heading(out, width);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        report_work k = work_of(g, i, (double)batch);
        report_row(out, g->op[i].path, width, &k);
        report_add_work(&total, &k, 1);
    }
    report_row(out, "total", width, &total);
    report_step(out, &total, sc_opgraph_flops(g, (double)batch, false),
                (double)batch, g->sample);
}

/* ---- summary */

static void print_types(const sc_opgraph *g, sc_text *out)
{
    uint32_t n[SC_N_GTYPES] = {0};
    const char *comma = "";
    for (uint32_t i = 0; i < g->n_ops; i++) n[g->op[i].type]++;
    sc_text_add(out, "  %-12s %" PRIu32 ":", "operators", g->n_ops);
    for (int t = 0; t < SC_N_GTYPES; t++) {
        if (n[t] == 0) continue;
        sc_text_add(out, "%s %" PRIu32 " %s", comma, n[t], sc_gtype_names[t]);
        comma = ",";
    }
    sc_text_add(out, "\n");
}

static void print_input(const sc_gtensor *t, sc_text *out)
{
    sc_text_add(out, "  %-12s %s", "input", t->name);
    for (unsigned i = 1; i < t->n_dim; i++)
        sc_text_add(out, "%s%" PRIu64, i > 1 ? "x" : " ", t->dim[i].extent);
    sc_text_add(out, "\n");
}

void report_graph(const sc_model *m, sc_text *out)
{
    const sc_opgraph *g = m->graph;
    char text[2][32];
    const sc_zoo_entry *z = sc_zoo_find(m->name);
    if (z && m->source.text) sc_text_add(out, "  %-12s %s\n", "what", z->title);
    sc_text_add(out, "  %-12s %s\n", "sample", g->sample ? g->sample : "-");
    for (uint32_t i = 0, n = 0; i < g->n_tensors; i++) {
        if (g->tensor[i].kind != SC_GT_INPUT) continue;
        if (n++ < 8) print_input(&g->tensor[i], out);
        if (n == 8 && g->n_inputs > 8)
            sc_text_add(out, "  %-12s and %" PRIu32 " more\n", "",
                        g->n_inputs - 8);
    }
    print_types(g, out);
    report_si(sc_opgraph_flops(g, 1, true), text[0], sizeof text[0]);
    report_si(sc_opgraph_flops(g, 1, false), text[1], sizeof text[1]);
    sc_text_add(out, "  %-12s %s forward, %s with gradients, of a sample\n",
                "FLOP", text[0], text[1]);
    sc_text_add(out, "parameters\n");
    report_params(out, "total", m->params, "");
    if (m->trained_params != m->params)
        report_params(out, "trained", m->trained_params, "");
}
