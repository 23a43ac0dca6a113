/* SPDX-License-Identifier: Apache-2.0 */
/* layers_net.c - the tables of layers.c for operator networks. */
#include "cost/cost_net.h"
#include "report/layers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

report_work report_work_of(const sc_net *g, uint32_t i, double samples)
{
    static const sc_op_pass passes[REPORT_PASSES] = {SC_PASS_FWD, SC_PASS_DGRAD,
                                                     SC_PASS_WGRAD};
    const sc_net_op *op = &g->op[i];
    double extent[SC_ITER_DIMS];
    report_work k = {0};
    for (unsigned p = 0; p < op->n_weight; p++) {
        const sc_tensor *t = &g->tensor[op->weight[p].tensor];
        if (t->op == i) k.params += (uint64_t)sc_tensor_elements(t, 1);
    }
    for (unsigned d = 0; d < op->n_iter; d++)
        extent[d] = sc_iter_dim_extent(&op->iter[d], samples);
    for (int p = 0; p < REPORT_PASSES; p++) {
        sc_net_work w = {.net = g,
                         .op = op,
                         .pass = passes[p],
                         .extent = extent,
                         .samples = samples,
                         .facts = {.precision = SC_BF16}};
        sc_price amount = sc_cost_net_op_amount(&w);
        k.flop[p] = amount.flops;
        k.bytes[p] = amount.bytes;
    }
    return k;
}

void report_net_layers(const sc_model *m, uint64_t batch, sc_text *out)
{
    const sc_net *g = m->net;
    report_work total = {0};
    int width = 8;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        int n = (int)strlen(g->op[i].path) + 1;
        if (n > width) width = n;
    }
    sc_text_add(out,
                "%s, batch %" PRIu64 "; not split, 2 bytes per element\n\n",
                m->name, batch);
    report_heading(out, width);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        report_work k = report_work_of(g, i, (double)batch);
        report_row(out, g->op[i].path, width, &k);
        report_add_work(&total, &k, 1);
    }
    report_row(out, "total", width, &total);
    report_step(out, &total, sc_net_flops(g, (double)batch, false),
                (double)batch, g->sample);
}

/* ---- summary */

static void print_types(const sc_net *g, sc_text *out)
{
    uint32_t n[SC_N_NET_TYPES] = {0};
    const char *comma = "";
    for (uint32_t i = 0; i < g->n_ops; i++) n[g->op[i].type]++;
    sc_text_add(out, "  %-12s %" PRIu32 ":", "operators", g->n_ops);
    for (int t = 0; t < SC_N_NET_TYPES; t++) {
        if (n[t] == 0) continue;
        sc_text_add(out, "%s %" PRIu32 " %s", comma, n[t],
                    sc_net_type_names[t]);
        comma = ",";
    }
    sc_text_add(out, "\n");
}

static void print_input(const sc_tensor *t, sc_text *out)
{
    sc_text_add(out, "  %-12s %s", "input", t->name);
    for (unsigned i = 1; i < t->n_dim; i++)
        sc_text_add(out, "%s%" PRIu64, i > 1 ? "x" : " ", t->dim[i].extent);
    sc_text_add(out, "\n");
}

void report_graph(const sc_model *m, sc_text *out)
{
    const sc_net *g = m->net;
    char text[2][32];
    const sc_zoo_entry *z = sc_zoo_find(m->name);
    if (z && m->source.text) sc_text_add(out, "  %-12s %s\n", "what", z->title);
    sc_text_add(out, "  %-12s %s\n", "sample", g->sample ? g->sample : "-");
    for (uint32_t i = 0, n = 0; i < g->n_tensors; i++) {
        if (g->tensor[i].kind != SC_TENSOR_INPUT) continue;
        if (n++ < 8) print_input(&g->tensor[i], out);
        if (n == 8 && g->n_inputs > 8)
            sc_text_add(out, "  %-12s and %" PRIu32 " more\n", "",
                        g->n_inputs - 8);
    }
    print_types(g, out);
    report_si(sc_net_flops(g, 1, true), text[0], sizeof text[0]);
    report_si(sc_net_flops(g, 1, false), text[1], sizeof text[1]);
    sc_text_add(out, "  %-12s %s forward, %s with gradients, of a sample\n",
                "FLOP", text[0], text[1]);
    sc_text_add(out, "parameters\n");
    report_params(out, "total", m->params, "");
    if (m->trained_params != m->params)
        report_params(out, "trained", m->trained_params, "");
}
