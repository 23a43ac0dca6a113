/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - prints the parts of a model, and the FLOP and bytes of its
 * operators. */
#include "report/layers.h"

#include "model/model_net.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FORWARD = REPORT_FORWARD,
    DGRAD = REPORT_DGRAD,
    WGRAD = REPORT_WGRAD,
    N_PASSES = REPORT_PASSES
};

enum { NAME_WIDTH = 16 };

typedef report_work work;

void report_si(double v, char *buf, size_t size)
{
    static const char suffix[] = " KMGTPEZY";
    int i = 0;
    while (v >= 999.5 && suffix[i + 1]) {
        v /= 1000.0;
        i++;
    }
    int digits = v >= 99.95 || (i == 0 && v >= 1) ? 0 : v >= 9.995 ? 1 : 2;
    int n = snprintf(buf, size, "%.*f", v == 0 ? 0 : digits, v);
    if (i > 0 && n > 0 && (size_t)n < size) {
        snprintf(buf + n, size - (size_t)n, "%c", suffix[i]);
    }
}

void report_add_work(work *sum, const work *k, double times)
{
    for (int p = 0; p < N_PASSES; p++) {
        sum->flop[p] += times * k->flop[p];
        sum->bytes[p] += times * k->bytes[p];
    }
    sum->params += (uint64_t)times * k->params;
}

static void print_cell(sc_text *out, double v)
{
    char buf[32] = "-";
    if (v > 0) report_si(v, buf, sizeof buf);
    sc_text_add(out, " %7s", buf);
}

void report_row(sc_text *out, const char *name, int width, const work *k)
{
    sc_text_add(out, "%-*s", width, name);
    print_cell(out, (double)k->params);
    for (int p = 0; p < N_PASSES; p++) {
        sc_text_add(out, " ");
        print_cell(out, k->flop[p]);
        print_cell(out, k->bytes[p]);
        print_cell(out, k->bytes[p] > 0 ? k->flop[p] / k->bytes[p] : 0);
    }
    sc_text_add(out, "\n");
}

static void print_row(sc_text *out, const char *name, const work *k)
{
    report_row(out, name, NAME_WIDTH, k);
}

/* Prints the instance `x` of a segment that occurs `count` times in the
 * network. */
static work print_layer(const sc_model *m, const sc_net *g,
                        const sc_net_instance *x, uint32_t count,
                        uint64_t batch, sc_text *out)
{
    char name[64];
    work one = {0}, all = {0};
    const sc_layer *l = &m->layer[x->kind];
    sc_text_add(out, "%s\n", l->path);
    for (uint32_t i = x->first; i < x->first + x->n_ops; i++) {
        work k = report_work_of(g, i, (double)batch);
        snprintf(name, sizeof name, "  %s", sc_kind_op_name(l, &g->op[i]));
        print_row(out, name, &k);
        report_add_work(&one, &k, 1);
    }
    print_row(out, "  layer", &one);
    report_add_work(&all, &one, count);
    if (count > 1) {
        snprintf(name, sizeof name, "  all %" PRIu32, count);
        print_row(out, name, &all);
    }
    return all;
}

void report_heading(sc_text *out, int width)
{
    static const char *const passes[] = {"forward", "input gradient",
                                         "weight gradient"};
    sc_text_add(out, "%-*s", width + 8, "");
    for (int p = 0; p < N_PASSES; p++) sc_text_add(out, "  %23s", passes[p]);
    sc_text_add(out, "\n%-*s %7s", width, "", "params");
    for (int p = 0; p < N_PASSES; p++) {
        sc_text_add(out, "  %7s %7s %7s", "FLOP", "bytes", "FLOP/B");
    }
    sc_text_add(out, "\n");
}

void report_step(sc_text *out, const work *total, double flop, double per,
                 const char *what)
{
    double bytes = 0;
    for (int p = 0; p < N_PASSES; p++) bytes += total->bytes[p];
    char text[3][32];
    report_si(flop, text[0], sizeof text[0]);
    report_si(bytes, text[1], sizeof text[1]);
    report_si(flop / per, text[2], sizeof text[2]);
    sc_text_add(out, "one step: %s FLOP (%s per %s), %s bytes, %.4g FLOP/B\n",
                text[0], text[2], what, text[1], flop / bytes);
}

/* Prints segments in the order of their first occurrence in the network, a
 * block by the path of its kind. */
static work print_segments(const sc_model *m, const sc_net *g, uint64_t batch,
                           sc_text *out)
{
    work total = {0};
    for (uint32_t i = 0, seen = 0; i < g->n_instances; i++) {
        const sc_net_instance *x = &g->instance[i];
        uint32_t count = 0;
        if (x->segment < seen) continue;
        seen = x->segment + 1;
        for (uint32_t k = i; k < g->n_instances; k++)
            count += g->instance[k].segment == x->segment;
        work k = print_layer(m, g, x, count, batch, out);
        report_add_work(&total, &k, 1);
    }
    return total;
}

sc_status sc_report_layers(const sc_model *m, uint64_t batch, uint64_t seq,
                           sc_arena *a, sc_text *out, sc_err *err)
{
    const sc_net *g;
    if (m->net) {
        report_net_layers(m, batch, out);
        return SC_OK;
    }
    SC_TRY(sc_net_from_model(m, seq, false, a, &g, err));
    sc_text_add(out,
                "%s, batch %" PRIu64 ", sequence %" PRIu64
                "; not split, 2 bytes per element\n\n",
                m->name, batch, seq);
    report_heading(out, NAME_WIDTH);
    work total = print_segments(m, g, batch, out);
    print_row(out, "total", &total);
    report_step(out, &total, sc_net_flops(g, (double)batch, false),
                (double)batch * (double)seq, "token");
    return SC_OK;
}

/* ---- summary */

static void print_number(sc_text *out, const char *name, int64_t v)
{
    if (v > 0) sc_text_add(out, "  %-12s %" PRId64 "\n", name, v);
}

void report_params(sc_text *out, const char *name, uint64_t n, const char *note)
{
    char text[32];
    report_si((double)n, text, sizeof text);
    sc_text_add(out, "  %-12s %16" PRIu64 "  %7s%s\n", name, n, text, note);
}

/* The usual parts of a transformer. */
enum { EMBED, ATTENTION, MAMBA, MLP, EXPERTS, ADAPTERS, NORM, HEAD, N_PARTS };

/* Whether an operator belongs to the Mamba-2 half of a block with attention. */
static bool is_mamba_half(const char *name)
{
    static const char *const names[] = {"in_proj", "conv", "scan", "out_proj"};
    for (size_t i = 0; i < SC_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static int part_of(const sc_layer *l, const sc_net_op *op, bool mixer,
                   bool mamba)
{
    if (l->mixer == SC_MIXER_BOTH)
        mamba = is_mamba_half(sc_kind_op_name(l, op));
    if (strstr(op->path, "_lora_")) return ADAPTERS;
    if (op->type == SC_NET_NORM) return NORM;
    if (l->kind == SC_LAYER_EMBED) return EMBED;
    if (l->kind == SC_LAYER_HEAD) return HEAD;
    if (op->type == SC_NET_EXPERT) return EXPERTS;
    return !mixer ? MLP : mamba ? MAMBA : ATTENTION;
}

/* T5's position scores are counted as an embedding, once per stack (umT5: per
 * layer). */
static void add_params(const sc_model *m, const sc_layer *l, uint32_t op,
                       int own, uint64_t part[N_PARTS])
{
    const sc_net_op *o = &m->kinds->op[op];
    for (unsigned k = 0; k < o->n_weight; k++) {
        const sc_tensor *w = &m->kinds->tensor[o->weight[k].tensor];
        if (w->op != op) continue;
        bool table = strcmp(w->name, "relative") == 0;
        uint64_t n = (uint64_t)sc_tensor_elements(w, 1);
        bool once = table && !m->t.relative_each;
        part[table ? EMBED : own] += n * (once ? 1 : l->repeat);
    }
}

static void print_parts(const sc_model *m, sc_text *out)
{
    static const char *const names[] = {"embedding", "attention", "mamba",
                                        "mlp",       "experts",   "adapters",
                                        "norms",     "head"};
    uint64_t part[N_PARTS] = {0};
    for (uint32_t i = 0; i < m->kinds->n_instances; i++) {
        const sc_net_instance *x = &m->kinds->instance[i];
        const sc_layer *l = &m->layer[x->kind];
        if (l->mtp) continue; /* not part of the total */
        bool mixer = true;
        bool mamba = l->mixer == SC_MIXER_MAMBA || l->mixer == SC_MIXER_DELTA;
        for (uint32_t k = x->first; k < x->first + x->n_ops; k++) {
            const sc_net_op *op = &m->kinds->op[k];
            const char *name = sc_kind_op_name(l, op);
            if (strncmp(name, "mtp_", 4) == 0) continue;
            if (strcmp(name, "norm2") == 0) mixer = false;
            add_params(m, l, k, part_of(l, op, mixer, mamba), part);
            if (strcmp(name, "add1") == 0) mixer = false;
            if (strncmp(name, "cross_", 6) == 0) mixer = true;
        }
    }
    sc_text_add(out, "parameters\n");
    for (int i = 0; i < N_PARTS; i++) {
        bool shared = i == HEAD && m->t.tied;
        bool rare = i == MAMBA || i == EXPERTS || i == ADAPTERS;
        if (rare && !part[i]) continue;
        report_params(out, names[i], part[i],
                      shared ? "  (shares the embedding)" : "");
    }
    report_params(out, "total", m->params, "");
    if (m->mtp_params)
        report_params(out, "mtp", m->mtp_params,
                      "  (multi-token prediction, not in the total)");
    if (m->active_params != m->params)
        report_params(out, "active", m->active_params, "  (used by one token)");
    if (m->trained_params != m->params + m->mtp_params)
        report_params(out, "trained", m->trained_params, "");
}

/* ---- kinds of models */

static void print_experts(const sc_transformer *t, sc_text *out)
{
    print_number(out, "experts", t->experts);
    print_number(out, "topk", t->topk);
    if (t->experts) print_number(out, "moe_ffn", t->moe_ffn);
    print_number(out, "shared_ffn", t->shared_ffn);
    print_number(out, "first_dense", t->first_dense);
    if (t->moe_every > 1) print_number(out, "moe_every", t->moe_every);
    print_number(out, "latent", t->latent);
    print_number(out, "mtp", t->mtp);
}

static void print_kind(const sc_transformer *t, sc_text *out)
{
    print_number(out, "window_every", t->window_every);
    print_number(out, "full_every", t->full_every);
    print_number(out, "q_rank", t->q_rank);
    print_number(out, "kv_rank", t->kv_rank);
    print_number(out, "qk_nope", t->qk_nope);
    print_number(out, "qk_rope", t->qk_rope);
    print_number(out, "v_dim", t->v_dim);
    print_experts(t, out);
    if (t->pattern) sc_text_add(out, "  %-12s %s\n", "pattern", t->pattern);
    if (t->pattern && t->ssm_state) {
        print_number(out, "ssm_state", t->ssm_state);
        print_number(out, "ssm_heads", t->ssm_heads);
        print_number(out, "ssm_head_dim", t->ssm_head_dim);
        print_number(out, "ssm_groups", t->ssm_groups);
        print_number(out, "ssm_rank", t->ssm_rank);
    }
    print_number(out, "lora", t->lora);
    if (t->encoder) sc_text_add(out, "  %-12s yes\n", "encoder");
    print_number(out, "decoder_layers", t->decoder_layers);
    print_number(out, "image", t->image);
    print_number(out, "patch", t->patch);
}

static void print_biases(const sc_transformer *t, sc_text *out)
{
    const struct {
        const char *name;
        bool has;
    } part[] = {{"qkv", t->qkv_bias},
                {"proj", t->proj_bias},
                {"mlp", t->mlp_bias},
                {"head", t->head_bias}};

    uint32_t n = 0;
    sc_text_add(out, "  %-12s%s", "bias", t->bias ? " yes" : "");
    for (size_t i = 0; i < SC_COUNT(part); i++)
        if (part[i].has && (!t->bias || i == 3))
            sc_text_add(out, "%s %s", n++ ? "," : "", part[i].name);
    sc_text_add(out, "%s\n", t->bias ? "" : n ? " only" : " no");
}

void sc_report_model(const sc_model *m, sc_text *out)
{
    const sc_transformer *t = &m->t;
    sc_text_add(out, "%s\n", m->name);
    if (m->source.text) {
        sc_text_add(out, "  %-12s %s (%s)\n", "source", m->source.text,
                    m->source.date ? m->source.date : "no date");
    }
    if (m->note) sc_text_add(out, "  %-12s %s\n", "note", m->note);
    if (m->net) {
        report_graph(m, out);
        return;
    }
    print_number(out, "layers", t->layers);
    print_number(out, "hidden", t->hidden);
    print_number(out, "heads", t->heads);
    if (t->kv_heads != t->heads) print_number(out, "kv_heads", t->kv_heads);
    print_number(out, "head_dim", t->head_dim);
    print_number(out, "ffn", t->ffn);
    print_number(out, "vocab", t->vocab);
    print_number(out, "max_seq", t->max_seq);
    if (t->positions != t->max_seq)
        print_number(out, "positions", t->positions);
    print_number(out, "window", t->window);
    print_kind(t, out);
    sc_text_add(out, "  %-12s %s\n", "position",
                sc_position_names[t->position]);
    sc_text_add(out, "  %-12s %s\n", "act", sc_act_names[t->act]);
    sc_text_add(out, "  %-12s %s\n", "norm", sc_norm_names[t->norm]);
    if (t->norms)
        sc_text_add(out, "  %-12s %s\n", "norms", sc_norms_names[t->norms]);
    print_biases(t, out);
    sc_text_add(out, "  %-12s %s\n", "tied", t->tied ? "yes" : "no");
    sc_text_add(out, "  %-12s %s\n", "dropout", t->dropout ? "yes" : "no");
    if (t->embed_norm) sc_text_add(out, "  %-12s yes\n", "embed_norm");
    if (t->parallel)
        sc_text_add(out, "  %-12s yes%s\n", "parallel",
                    t->one_norm ? ", one norm" : "");
    print_parts(m, out);
}
