/* SPDX-License-Identifier: Apache-2.0 */
/* infer_program.c - adds values and items to a program and prices kernels. */
#include "plan/infer.h"
#include "plan/internal.h"
#include "plan/prices.h"

#include <stdlib.h>
#include <string.h>

uint32_t infer_value(inference *f, program_value v)
{
    net_program *p = f->prog;
    program_value *grown = sc_grow_raw(f->a, p->value, p->n_values,
                                       &f->cap_values, 1024, sizeof *grown);
    if (!grown) {
        f->no_memory = true;
        return SC_NONE;
    }
    p->value = grown;
    grown[p->n_values] = v;
    return p->n_values++;
}

uint32_t infer_item_as_is(inference *f, const program_item *it, uint32_t phase)
{
    net_program *p = f->prog;
    program_item *grown = sc_grow_raw(f->a, p->item, p->n_items, &f->cap_items,
                                      512, sizeof *grown);
    if (grown) p->item = grown;
    infer_order *order = sc_grow_raw(f->a, f->order, p->n_items, &f->cap_order,
                                     512, sizeof *order);
    if (order) f->order = order;
    if (!grown || !order) {
        f->no_memory = true;
        return SC_NONE;
    }
    grown[p->n_items] = *it;
    order[p->n_items] = (infer_order){it->stage, phase, p->n_items, p->n_items};
    if (it->out != SC_NONE)
        for (uint32_t i = 0; i <= it->n_more; i++)
            p->value[it->out + i].made = p->n_items;
    return p->n_items++;
}

uint32_t infer_item(inference *f, program_item it, const uint32_t *in,
                    uint32_t phase)
{
    uint32_t *list = SC_RAW_N(f->a, uint32_t, it.n_in);
    if (!list) {
        f->no_memory = true;
        return SC_NONE;
    }
    for (uint32_t i = 0; i < it.n_in; i++) list[i] = in[i];
    it.in = list;
    return infer_item_as_is(f, &it, phase);
}

program_item infer_kernels(uint32_t op, uint32_t stage, sc_op_pass pass)
{
    return (program_item){.pass = (uint8_t)pass,
                          .cat = SC_CAT_COMPUTE,
                          .stage = stage,
                          .to = SC_NONE,
                          .op = op,
                          .exchange = SC_NONE,
                          .out = SC_NONE};
}

void infer_item_behind(inference *f, uint32_t item, uint32_t after)
{
    if (item != SC_NONE && after != SC_NONE)
        f->order[item].place = f->order[after].place;
}

void infer_note_mark(inference *f, uint32_t phase, uint32_t at)
{
    if (!f->mark[phase]) return;
    f->mark[phase][at] = (infer_mark){f->prog->n_values, f->prog->n_items,
                                      f->p->n_exchanges, f->n_wgrads};
}

static bool before(const infer_order *a, const infer_order *b)
{
    if (a->stage != b->stage) return a->stage < b->stage;
    if (a->phase != b->phase) return a->phase < b->phase;
    if (a->place != b->place) return a->place < b->place;
    return a->item < b->item;
}

static int by_order(const void *x, const void *y)
{
    const infer_order *a = x, *b = y;
    return before(a, b) ? -1 : before(b, a);
}

/* Counts the items that were not moved, by stage and phase. */
static sc_status sort_still(const inference *f, infer_order *out, uint32_t *n)
{
    uint32_t keys = 3 * f->n_stages;
    uint32_t *at = SC_NEW_N(f->a, uint32_t, (size_t)keys + 1);
    if (!at) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < f->prog->n_items; i++) {
        const infer_order *o = &f->order[i];
        if (o->place == o->item) at[3 * o->stage + o->phase + 1]++;
    }
    for (uint32_t k = 0; k < keys; k++) at[k + 1] += at[k];
    *n = at[keys];
    for (uint32_t i = 0; i < f->prog->n_items; i++) {
        const infer_order *o = &f->order[i];
        if (o->place == o->item) out[at[3 * o->stage + o->phase]++] = *o;
    }
    return SC_OK;
}

/* Sorts items by stage and pass; within a pass they keep their order, except
 * those that were moved. */
static sc_status sort_items(inference *f)
{
    uint32_t n = f->prog->n_items, still = 0, moved = 0;
    infer_order *a = SC_RAW_N(f->a, infer_order, n),
                *b = SC_RAW_N(f->a, infer_order, n);
    infer_order *out = SC_RAW_N(f->a, infer_order, n);
    if (!a || !b || !out) return sc_error_nomem(f->err);
    SC_TRY(sort_still(f, a, &still));
    for (uint32_t i = 0; i < n; i++)
        if (f->order[i].place != f->order[i].item) b[moved++] = f->order[i];
    if (moved) qsort(b, moved, sizeof *b, by_order);
    for (uint32_t i = 0, k = 0; i + k < n;) {
        bool first = k == moved || (i < still && before(&a[i], &b[k]));
        out[i + k] = first ? a[i] : b[k];
        if (first)
            i++;
        else
            k++;
    }
    f->order = out;
    f->cap_order = n;
    return SC_OK;
}

sc_status infer_finish(inference *f)
{
    net_program *p = f->prog;
    if (f->no_memory) return sc_error_nomem(f->err);
    program_item *item = SC_RAW_N(f->a, program_item, p->n_items);
    uint32_t *now = SC_RAW_N(f->a, uint32_t, p->n_items);
    if (!item || !now) return sc_error_nomem(f->err);
    SC_TRY(sort_items(f));
    for (uint32_t i = 0; i < p->n_items; i++) {
        item[i] = p->item[f->order[i].item];
        now[f->order[i].item] = i;
    }
    for (uint32_t v = 0; v < p->n_values; v++)
        if (p->value[v].made != SC_NONE)
            p->value[v].made = now[p->value[v].made];
    p->item = item;
    return SC_OK;
}

/* Joins words with blanks. */
sc_status program_name_values(const net_program *p, sc_arena *a, sc_err *err)
{
    size_t n = 0, length;
    if (p->n_values == 0 || p->value[0].name) return SC_OK;
    for (uint32_t v = 0; v < p->n_values; v++)
        for (size_t i = 0; i < 3 && p->value[v].word[i]; i++)
            n += strlen(p->value[v].word[i]) + 1;
    char *at = SC_RAW_N(a, char, n);
    if (!at) return sc_error_nomem(err);
    for (uint32_t v = 0; v < p->n_values; v++) {
        program_value *x = &p->value[v];
        x->name = at;
        for (size_t i = 0; i < 3 && x->word[i]; i++) {
            length = strlen(x->word[i]);
            memcpy(at, x->word[i], length);
            at += length;
            *at++ = ' ';
        }
        at[-1] = '\0';
    }
    return SC_OK;
}

double infer_copies(const inference *f, const layout *l)
{
    uint32_t ranks = f->p->n_ranks / f->devices;
    return (double)ranks *
           layout_fraction(l, (1u << LAYOUT_DIMS) - 1, &f->mesh);
}

/* ---- kernels --------------------------------------------------------- */

/* The iteration dim that is longer on a rank whose experts have more rows than
 * the mean.  In a product it is the dim of samples. */
static uint32_t rows_of(const sc_net_op *o)
{
    if (o->type == SC_NET_EXPERT) return 0;
    for (uint32_t i = 0; i < o->n_iter && o->topk; i++)
        if (strcmp(o->iter[i].name, "expert") == 0) return i;
    return SC_NONE;
}

static sc_status explain(const inference *f, const sc_device *d,
                         const sc_net_work *w)
{
    sc_text t;
    sc_text_init(&t);
    sc_status s = sc_cost_explain_net_op(f->job->cost, d, w, &t, f->err);
    if (s == SC_OK)
        return prices_report(f->job->prices, w->op->path,
                             prices_pass_name(w->pass), &t, f->err);
    sc_text_free(&t);
    return s;
}

typedef struct on_rank {
    sc_net_work w;
    double extent[SC_ITER_DIMS];
    uint32_t parts[SC_ITER_DIMS];
} on_rank;

bool infer_by_rows(const inference *f, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    if (o->type != SC_NET_EMBED || !o->sparse || f->rules->tables_dense)
        return false;
    return infer_weight_grad(f, op, 0).partial == 0;
}

/* Sizes of the part of an operator that one rank runs on device `d`. */
static void work_of(const inference *f, uint32_t op, const sc_device *d,
                    on_rank *r)
{
    const sc_net_op *o = &f->g->op[op];
    for (uint32_t i = 0; i < o->n_iter; i++) {
        r->parts[i] = infer_parts(f, f->node[op].split[i]);
        r->extent[i] =
            sc_iter_dim_extent(&o->iter[i], f->samples) / r->parts[i];
        if (f->uneven && !o->iter[i].batch)
            r->extent[i] *=
                infer_busiest(infer_units(&o->iter[i]), r->parts[i]) *
                r->parts[i];
    }
    uint32_t rows = rows_of(o);
    if (rows < o->n_iter)
        r->extent[rows] *= plan_rows(f->job->capacity, f->job->imbalance);
    r->w = (sc_net_work){.net = f->g,
                         .op = o,
                         .extent = r->extent,
                         .parts = r->parts,
                         .samples = f->samples,
                         .by_rows = infer_by_rows(f, op),
                         .optimizer = f->job->optimizer,
                         .table = f->job->table};
    r->w.facts = plan_software_facts(f->job->sw, d, f->job->precision,
                                     f->job->recipe, f->job->ga > 1);
}

static bool indexes(const inference *f, const sc_operand *p, uint32_t iter)
{
    for (uint32_t i = 0; i < f->g->tensor[p->tensor].n_dim; i++)
        if (p->at[i] == iter) return true;
    return false;
}

/* Leaves one of `chunks` parts of the rows of a product. */
static void one_chunk(const inference *f, uint32_t op, uint32_t chunks,
                      on_rank *r)
{
    const sc_net_op *o = &f->g->op[op];
    for (uint32_t i = 0; i < o->n_iter; i++) {
        bool row = indexes(f, &o->out, i) && indexes(f, &o->in[0], i);
        if (!row || indexes(f, &o->weight[0], i)) continue;
        r->extent[i] /= chunks;
        return;
    }
}

/* Computes the price or, if `tell` is set, its explanation. */
static sc_status compute(inference *f, uint32_t op, sc_op_pass pass,
                         uint32_t weight, double weight_parts, uint32_t chunks,
                         bool tell, sc_price *out)
{
    const sc_device *d = infer_slowest(f, f->node[op].stage);
    on_rank r;
    work_of(f, op, d, &r);
    if (chunks > 1) one_chunk(f, op, chunks, &r);
    r.w.pass = pass;
    r.w.weight = weight;
    r.w.weight_parts = weight_parts;
    if (pass != SC_PASS_UPDATE)
        infer_low_parts(f, op, &r.w.cast_input, &r.w.cast_gradient);
    if (pass == SC_PASS_UPDATE && infer_state_tier(f, op) < SC_TIER_CPU)
        r.w.update_bytes = f->job->update_bytes > 0
                               ? f->job->update_bytes +
                                     infer_low_cast(f, op, weight, weight_parts)
                               : 0;
    bool adds = true;
    if (pass == SC_PASS_WGRAD || pass == SC_PASS_BWD)
        SC_TRY(infer_accumulates(f, op, &adds));
    if (!adds) r.w.facts.accum_bytes = 0;
    if (tell) return explain(f, d, &r.w);
    return sc_cost_net_op(f->job->cost, d, &r.w, out, f->err);
}

sc_op_held infer_kernel_memory_anew(const inference *f, uint32_t op)
{
    on_rank r;
    sc_op_held out;
    work_of(f, op, infer_slowest(f, f->node[op].stage), &r);
    sc_cost_net_op_held(&r.w, &out);
    return out;
}

sc_status infer_compute_anew(inference *f, uint32_t op, sc_op_pass pass,
                             uint32_t weight, double weight_parts,
                             uint32_t chunks, sc_price *out)
{
    return compute(f, op, pass, weight, weight_parts, chunks, false, out);
}

/* Computes a price that is part of the step, and explains it. */
static sc_status explained_price(inference *f, uint32_t op, sc_op_pass pass,
                                 uint32_t weight, double weight_parts,
                                 sc_price *out)
{
    if (f->job->prices)
        SC_TRY(compute(f, op, pass, weight, weight_parts, 1, true, NULL));
    return infer_compute(f, op, pass, weight, weight_parts, out);
}

/* Whether two operators of a round-robin rule run at the same time. */
static bool together(const inference *f, uint32_t op, uint32_t other)
{
    const infer_node *a = &f->node[op], *b = &f->node[other];
    uint32_t ranks = infer_parts(f, a->rr_axes);
    return a->rr_rule == b->rr_rule &&
           a->rr_index / ranks == b->rr_index / ranks;
}

sc_status infer_compute_rr(inference *f, uint32_t op, sc_op_pass pass,
                           uint32_t weight, double weight_parts, sc_price *out)
{
    const infer_node *node = &f->node[op];
    sc_price sum = {0}, longest = {0};
    double ranks = infer_parts(f, node->rr_axes);
    if (!node->rr_rule) {
        SC_TRY(explained_price(f, op, pass, weight, weight_parts, out));
        out->flops /= ranks; /* the mean over ranks: one of them runs it */
        return SC_OK;
    }
    for (uint32_t i = 0; i < f->g->n_ops; i++) {
        sc_price p;
        if (!together(f, op, i)) continue;
        SC_TRY(explained_price(f, i, pass, weight, weight_parts, &p));
        sum.seconds += p.seconds;
        sum.flops += p.flops;
        sum.bytes += p.bytes;
        if (!longest.limit || p.seconds > longest.seconds) longest = p;
    }
    *out = longest;
    out->flops = sum.flops / ranks;
    if (!node->rr_rule->r->balanced) return SC_OK;
    out->seconds = sum.seconds / ranks;
    out->bytes = sum.bytes / ranks;
    return SC_OK;
}

static double turn_elements(const inference *f, uint32_t op, bool weight)
{
    const sc_net_op *o = &f->g->op[op];
    if (!weight) return infer_elements(f, &f->g->tensor[o->out.tensor]);
    if (o->n_weight == 0) return 0;
    return infer_elements(f, &f->g->tensor[o->weight[0].tensor]);
}

/* Finds, for each round-robin rule, the rank that holds most results, and the
 * one that holds most weights. */
sc_status infer_rr_weigh(inference *f)
{
    for (uint32_t op = 0; op < f->g->n_ops; op++) {
        const infer_node *node = &f->node[op];
        if (!node->rr_rule || node->rr_index > 0) continue;
        uint32_t ranks = infer_parts(f, node->rr_axes);
        double *held = SC_NEW_N(f->a, double, (size_t)2 * ranks);
        infer_rule *r = &f->rule[node->rr_rule - f->rule];
        if (!held) return sc_error_nomem(f->err);
        for (uint32_t i = op; i < f->g->n_ops; i++) {
            if (f->node[i].rr_rule != r) continue;
            double *at = &held[(size_t)2 * (f->node[i].rr_index % ranks)];
            at[0] += turn_elements(f, i, false);
            at[1] += turn_elements(f, i, true);
        }
        for (uint32_t k = 0; k < 2 * ranks; k++) {
            if (held[k] <= r->fullest_elements[k % 2]) continue;
            r->fullest_elements[k % 2] = held[k];
            r->fullest[k % 2] = k / 2;
        }
    }
    return SC_OK;
}

double infer_rr_fraction(const inference *f, uint32_t op, bool weight)
{
    const infer_node *node = &f->node[op];
    double sum = 0, own;
    uint32_t ranks = infer_parts(f, node->rr_axes);
    if (!node->rr_rule || node->place) return 1;
    own = turn_elements(f, op, weight);
    if (own <= 0) return 1;
    bool even = node->rr_rule->r->balanced;
    uint32_t fullest = node->rr_rule->fullest[weight];
    for (uint32_t i = 0; i < f->g->n_ops; i++) {
        if (!together(f, op, i)) continue;
        bool there = f->node[i].rr_index % ranks == fullest;
        if (even || there) sum += turn_elements(f, i, weight);
    }
    return sum / own / (even ? ranks : 1);
}

static double looked_up(const inference *f, uint32_t op)
{
    layout l = infer_port(f, op, &f->g->op[op].weight[0], false);
    on_rank r;
    work_of(f, op, infer_slowest(f, f->node[op].stage), &r);
    r.w.weight_parts = 1 / infer_fraction(f, f->g->op[op].weight[0].tensor, &l,
                                          (1u << SC_TENSOR_DIMS) - 1);
    return sc_cost_net_op_touched(&r.w);
}

double infer_touched(const inference *f, uint32_t op)
{
    const infer_node *node = &f->node[op];
    if (!node->rr_rule || node->place) return looked_up(f, op);
    uint32_t ranks = infer_parts(f, node->rr_axes);
    bool even = node->rr_rule->r->balanced;
    double sum = 0;
    for (uint32_t i = 0; i < f->g->n_ops; i++) {
        if (!together(f, op, i)) continue;
        bool there = f->node[i].rr_index % ranks == node->rr_rule->fullest[1];
        if (even || there) sum += looked_up(f, i);
    }
    return even ? sum / ranks : sum;
}

double infer_rr_bytes(const inference *f, uint32_t op)
{
    const infer_node *node = &f->node[op];
    const sc_tensor *t = &f->g->tensor[f->g->op[op].out.tensor];
    double sum = 0, each = infer_bytes(f, t) / infer_elements(f, t);
    if (!node->rr_rule) return infer_bytes(f, t);
    if (!node->place && !node->rr_rule->r->balanced)
        return each * infer_parts(f, node->rr_axes) *
               node->rr_rule->fullest_elements[0];
    for (uint32_t i = 0; i < f->g->n_ops; i++)
        if (f->node[i].rr_rule == node->rr_rule)
            sum += turn_elements(f, i, false);
    return each * sum;
}

/* ---- forms of tensors ------------------------------------------------ */

infer_form *infer_find(infer_form *list, uint32_t stage, const layout *l)
{
    for (; list; list = list->next)
        if (list->stage == stage && (!l || layout_equal(&list->l, l)))
            return list;
    return NULL;
}

infer_form *infer_remember(inference *f, infer_form **list, uint32_t stage,
                           uint32_t value, const layout *l)
{
    infer_form *form = SC_RAW_N(f->a, infer_form, 1);
    if (!form) {
        f->no_memory = true;
        return NULL;
    }
    *form = (infer_form){*list, value, stage, SC_NONE, true, 1, *l};
    *list = form;
    return form;
}
