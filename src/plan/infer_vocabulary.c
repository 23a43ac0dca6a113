/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_vocabulary.c - a vocabulary split over the stages of a pipeline (Yeung
 * et al. 2024, "Balancing Pipeline Parallelism with Vocabulary Parallelism").
 *
 * If a rule splits the rows of a table, or the classes of the head and its
 * loss, over pp, each such operator is copied for every pipeline device.  The
 * copies are on separate stages, as chunks before and after those of the
 * layers.  The last layer broadcasts its result to all copies of the head and
 * receives the sum of their gradients; each loss sends its part of the sums
 * over classes.  Words for later layers (a decoder, predictions of later
 * tokens) are looked up with the first ones, and heads of such predictions run
 * with the first head.  This file rewrites the network and its strategy, which
 * are then compiled like any other.
 */
#include "plan/infer.h"

#include <string.h>

typedef struct spreading {
    const sc_net_run *job;
    const sc_net *g;
    const sc_strategy *s;
    sc_arena *a;
    sc_err *err;
    uint32_t pp, parts;
    const sc_strategy_rule **rule; /* [n_ops] that splits it over pp; NULL */
    uint8_t *iter;                 /* [n_ops] the dim */
    uint32_t *clone;               /* [n_tensors * parts] + 1 */
    bool table, head;
    sc_net out;
    uint32_t n_cuts;
    sc_strategy_cut *cut;
} spreading;

static bool over(const sc_rule_split *d, uint32_t ax)
{
    return sc_axes_mask(d->axes) >> ax & 1;
}

static bool any_over(const sc_strategy *s, uint32_t ax)
{
    for (uint32_t i = 0; i < s->n_rules; i++)
        for (uint32_t k = 0; k < s->rule[i].n_split; k++)
            if (s->rule[i].tensor == SC_RT_OP && over(&s->rule[i].split[k], ax))
                return true;
    return false;
}

/* ---- operators to copy ----------------------------------------------- */

static sc_status refuse(const spreading *x, uint32_t op, const char *why)
{
    const sc_strategy_rule *r = x->rule[op];
    return sc_error(
        x->err, SC_EINPUT, SC_C_CONFLICT, r->pos,
        "axis pp divides the model into stages; only a vocabulary can be split "
        "over it: the rows of a table, or the classes of the head and the loss",
        "rule '%s' (%s) splits %s over pp: %s", r->match, r->origin,
        x->g->op[op].path, why);
}

static void find(spreading *x)
{
    for (uint32_t op = 0; op < x->g->n_ops; op++)
        for (uint32_t i = 0; i < x->s->n_rules; i++) {
            const sc_strategy_rule *r = &x->s->rule[i];
            if (r->tensor != SC_RT_OP ||
                !sc_rule_matches(r->match, x->g->op[op].path))
                continue;
            for (uint32_t k = 0; k < r->n_split; k++) {
                int it = sc_net_op_iter(&x->g->op[op], r->split[k].dim);
                if (it < 0 || !over(&r->split[k], x->pp)) continue;
                x->rule[op] = r;
                x->iter[op] = (uint8_t)it;
            }
        }
}

static bool indexes(const sc_operand *p, uint8_t it)
{
    return memchr(p->at, it, SC_TENSOR_DIMS) != NULL;
}

/* The only operator that reads the result of `op`; SC_NONE. */
static uint32_t only_reader(const sc_net *g, uint32_t op)
{
    uint32_t found = SC_NONE;
    for (uint32_t i = 0; i < g->n_ops; i++)
        for (uint32_t k = 0; k < g->op[i].n_in; k++) {
            if (g->op[i].in[k].tensor != g->op[op].out.tensor) continue;
            if (found != SC_NONE) return SC_NONE;
            found = i;
        }
    return found;
}

/* Whether the words of a table are inputs.  They must be, because parts of a
 * table run before all layers. */
static bool looks_up_words(const spreading *x, uint32_t op)
{
    const sc_net_op *o = &x->g->op[op];
    for (uint32_t k = 0; k < o->n_in; k++)
        if (x->g->tensor[o->in[k].tensor].kind != SC_TENSOR_INPUT) return false;
    return true;
}

static sc_status check_op(const spreading *x, uint32_t op)
{
    const sc_net_op *o = &x->g->op[op];
    uint8_t it = x->iter[op];
    uint32_t next = only_reader(x->g, op);
    switch ((sc_net_type)o->type) {
    case SC_NET_EMBED:
        if (op > 0 && !x->rule[0])
            return refuse(x, op, "it must be the first operator");
        if (!looks_up_words(x, op))
            return refuse(x, op, "another operator makes its indices");
        return indexes(&o->out, it)
                   ? refuse(x, op, "this dimension does not index its rows")
                   : SC_OK;
    case SC_NET_LINEAR:
        if (!indexes(&o->out, it))
            return refuse(x, op, "this dimension does not index classes");
        return next == SC_NONE || !x->rule[next] ||
                       x->g->op[next].type != SC_NET_LOSS
                   ? refuse(x, op,
                            "only a loss with the same split may read it")
                   : SC_OK;
    case SC_NET_LOSS:
        next = x->g->tensor[o->in[0].tensor].op;
        return o->iter[it].kind != SC_I_REDUCE || next == SC_NONE ||
                       !x->rule[next]
                   ? refuse(x, op, "its classes are not those of a split head")
                   : SC_OK;
    default: return refuse(x, op, "it has no vocabulary");
    }
}

static sc_status check_weights(const spreading *x)
{
    for (uint32_t op = 0; op < x->g->n_ops; op++)
        for (uint32_t i = 0; x->rule[op] && i < x->g->n_ops; i++) {
            const sc_net_op *a = &x->g->op[op], *b = &x->g->op[i];
            bool shared = a->n_weight && b->n_weight && !x->rule[i] &&
                          a->weight[0].tensor == b->weight[0].tensor;
            if (shared)
                return refuse(x, op,
                              "it shares a table that is not split over pp");
        }
    return SC_OK;
}

/* ---- the network ----------------------------------------------------- */

static uint32_t add_tensor(spreading *x, const sc_tensor *from)
{
    x->out.tensor[x->out.n_tensors] = *from;
    return x->out.n_tensors++;
}

/* The tensor that holds device `d`'s part of a weight or of a result. */
static uint32_t part_of(spreading *x, const sc_operand *p, uint8_t it,
                        uint32_t d)
{
    uint32_t *known = &x->clone[p->tensor * x->parts + d];
    if (*known) return *known - 1;
    sc_tensor t = x->g->tensor[p->tensor];
    for (uint32_t k = 0; k < t.n_dim; k++)
        if (p->at[k] == it)
            t.dim[k].extent = (t.dim[k].extent + x->parts - 1) / x->parts;
    *known = add_tensor(x, &t) + 1;
    return *known - 1;
}

static sc_status own_ports(const spreading *x, sc_net_op *o)
{
    sc_operand *in = SC_NEW_N(x->a, sc_operand, o->n_in);
    sc_operand *weight = SC_NEW_N(x->a, sc_operand, o->n_weight);
    if (!in || !weight) return sc_error_nomem(x->err);
    if (o->n_in) memcpy(in, o->in, o->n_in * sizeof *in);
    if (o->n_weight) memcpy(weight, o->weight, o->n_weight * sizeof *weight);
    o->in = in;
    o->weight = weight;
    return SC_OK;
}

static sc_status begin_stage(spreading *x, const char *path)
{
    x->cut[x->n_cuts++] = (sc_strategy_cut){.path = path};
    return path ? SC_OK : sc_error_nomem(x->err);
}

static sc_status copy_part(spreading *x, uint32_t op, uint32_t d)
{
    sc_net_op o = x->g->op[op];
    uint8_t it = x->iter[op];
    o.path = sc_sprintf(x->a, "%s.pp%u", o.path, d);
    if (!o.path) return sc_error_nomem(x->err);
    SC_TRY(own_ports(x, &o));
    o.iter[it].extent = (o.iter[it].extent + x->parts - 1) / x->parts;
    o.flops /= x->parts;
    for (uint32_t k = 0; k < o.n_weight; k++)
        o.weight[k].tensor = part_of(x, &o.weight[k], it, d);
    if (o.type == SC_NET_LOSS) o.in[0].tensor = part_of(x, &o.in[0], it, d);
    if (o.type == SC_NET_LINEAR)
        x->out.tensor[o.in[0].tensor].on_all_stages = true;
    uint32_t tensor = part_of(x, &o.out, it, d);
    o.out.tensor = tensor;
    x->out.tensor[tensor].name = o.path;
    x->out.op[x->out.n_ops++] = o;
    return SC_OK;
}

/* Adds an operator that joins the results of all copies of `op`. */
static sc_status join_parts(spreading *x, uint32_t op)
{
    const sc_net_op *from = &x->g->op[op];
    const sc_tensor *t = &x->g->tensor[from->out.tensor];
    bool loss = from->type == SC_NET_LOSS;
    sc_net_op o = {.path = loss ? from->path
                                : sc_sprintf(x->a, "%s.sum", from->path),
                   .type = loss ? SC_NET_ELEMENTWISE : SC_NET_VIEW,
                   .fn = loss ? SC_F_SUM : SC_F_NONE,
                   .on_all_stages = !loss,
                   .n_in = (uint8_t)x->parts,
                   .n_iter = t->n_dim};
    o.in = SC_NEW_N(x->a, sc_operand, x->parts);
    if (!o.path || !o.in) return sc_error_nomem(x->err);
    memset(o.out.at, SC_NO_ITER, sizeof o.out.at);
    o.out.tensor = from->out.tensor;
    for (uint8_t k = 0; k < t->n_dim; k++) {
        o.iter[k] = from->iter[from->out.at[k]];
        o.out.at[k] = k;
    }
    for (uint32_t d = 0; d < x->parts; d++) {
        o.in[d] = o.out;
        o.in[d].tensor = part_of(x, &from->out, x->iter[op], d);
    }
    x->out.op[x->out.n_ops++] = o;
    return SC_OK;
}

static bool spreads(const spreading *x, uint32_t op, sc_net_type type)
{
    return x->rule[op] && x->g->op[op].type == type;
}

/* Adds the parts of all tables, and joins those of the first one. */
static sc_status spread_tables(spreading *x)
{
    for (uint32_t d = 0; d < x->parts; d++) {
        uint32_t first = x->out.n_ops;
        for (uint32_t op = 0; op < x->g->n_ops; op++)
            if (spreads(x, op, SC_NET_EMBED)) SC_TRY(copy_part(x, op, d));
        if (d > 0) SC_TRY(begin_stage(x, x->out.op[first].path));
    }
    SC_TRY(join_parts(x, 0));
    return begin_stage(x, x->out.op[x->out.n_ops - 1].path);
}

/* Finds the operators from `from` on that depend on a split operator. */
static void find_behind(const spreading *x, uint32_t from, bool *behind)
{
    for (uint32_t op = from; op < x->g->n_ops; op++) {
        const sc_net_op *o = &x->g->op[op];
        behind[op] = x->rule[op] != NULL;
        for (uint32_t k = 0; k < o->n_in; k++) {
            const sc_tensor *t = &x->g->tensor[o->in[k].tensor];
            bool made = t->kind != SC_TENSOR_INPUT && t->op != SC_NONE;
            if (made && t->op >= from && behind[t->op]) behind[op] = true;
        }
    }
}

/* Adds the parts of all heads with their losses, after the operators that the
 * other heads (predictions of later tokens) read. */
static sc_status spread_heads(spreading *x, uint32_t from)
{
    const sc_net *g = x->g;
    bool *behind = SC_NEW_N(x->a, bool, g->n_ops);
    if (!behind) return sc_error_nomem(x->err);
    find_behind(x, from, behind);
    for (uint32_t op = from; op < g->n_ops; op++)
        if (!behind[op]) x->out.op[x->out.n_ops++] = g->op[op];
    for (uint32_t d = 0; d < x->parts; d++) {
        uint32_t first = x->out.n_ops;
        for (uint32_t op = from; op < g->n_ops; op++) {
            if (!spreads(x, op, SC_NET_LOSS)) continue;
            SC_TRY(copy_part(x, g->tensor[g->op[op].in[0].tensor].op, d));
            SC_TRY(copy_part(x, op, d));
        }
        SC_TRY(begin_stage(x, x->out.op[first].path));
    }
    for (uint32_t op = from; op < g->n_ops; op++)
        if (spreads(x, op, SC_NET_LOSS))
            SC_TRY(join_parts(x, op));
        else if (behind[op] && !x->rule[op])
            x->out.op[x->out.n_ops++] = g->op[op];
    return SC_OK;
}

/* Renumbers instances.  One whose operators were split differs from the others
 * of its segment, so it gets a new segment. */
static void instances(spreading *x, const uint32_t *now)
{
    sc_net *g = &x->out;
    for (uint32_t i = 0; i < g->n_instances; i++) {
        const sc_net_instance *was = &x->g->instance[i];
        uint32_t end = was->first + was->n_ops;
        g->instance[i] = *was;
        g->instance[i].first = now[was->first];
        g->instance[i].n_ops = now[end] - now[was->first];
        bool changed = false;
        for (uint32_t op = was->first; op < end; op++)
            changed = changed || x->rule[op];
        if (changed) g->instance[i].segment = g->n_segments++;
    }
}

static void find_makers(sc_net *g)
{
    for (uint32_t t = 0; t < g->n_tensors; t++)
        if (g->tensor[t].kind != SC_TENSOR_INPUT) g->tensor[t].op = SC_NONE;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        const sc_net_op *o = &g->op[op];
        g->tensor[o->out.tensor].op = op;
        for (uint32_t k = 0; k < o->n_weight; k++) {
            sc_tensor *w = &g->tensor[o->weight[k].tensor];
            if (w->op == SC_NONE) w->op = op;
        }
    }
    for (uint32_t t = 0; t < g->n_tensors; t++) /* of removed operators */
        if (g->tensor[t].kind != SC_TENSOR_INPUT && g->tensor[t].op == SC_NONE)
            g->tensor[t].op = 0;
}

static sc_status rewrite(spreading *x, const uint32_t *stage_of)
{
    const sc_net *g = x->g;
    uint32_t n = 0, *now = SC_NEW_N(x->a, uint32_t, (size_t)g->n_ops + 1);
    for (uint32_t op = 0; op < g->n_ops; op++) n += x->rule[op] != NULL;
    x->out = *g;
    x->out.n_ops = 0;
    x->out.op = SC_NEW_N(x->a, sc_net_op, g->n_ops + n * (x->parts + 1));
    x->out.tensor = SC_NEW_N(x->a, sc_tensor, g->n_tensors + 4 * n * x->parts);
    x->out.instance = SC_NEW_N(x->a, sc_net_instance, g->n_instances);
    x->clone = SC_NEW_N(x->a, uint32_t, (size_t)g->n_tensors * x->parts);
    x->cut = SC_NEW_N(x->a, sc_strategy_cut, 3 * (size_t)x->parts);
    if (!now || !x->out.op || !x->out.tensor || !x->out.instance || !x->clone ||
        !x->cut)
        return sc_error_nomem(x->err);
    memcpy(x->out.tensor, g->tensor, g->n_tensors * sizeof *g->tensor);
    bool heads = false; /* the first head and all operators behind it exist */
    for (uint32_t op = 0; op < g->n_ops; op++) {
        bool begins = op > 0 && stage_of[op] != stage_of[op - 1];
        now[op] = x->out.n_ops;
        if (heads) continue;
        if (begins) SC_TRY(begin_stage(x, g->op[op].path));
        heads = spreads(x, op, SC_NET_LINEAR);
        if (heads)
            SC_TRY(spread_heads(x, op));
        else if (x->rule[op])
            SC_TRY(op ? join_parts(x, op) : spread_tables(x));
        else
            x->out.op[x->out.n_ops++] = g->op[op];
    }
    now[g->n_ops] = x->out.n_ops;
    instances(x, now);
    find_makers(&x->out);
    return SC_OK;
}

/* ---- the strategy ---------------------------------------------------- */

/* Copies the rules without their splits over pp. */
static sc_status without_pp(spreading *x, sc_strategy *s)
{
    sc_strategy_rule *all = SC_NEW_N(x->a, sc_strategy_rule, s->n_rules);
    if (!all) return sc_error_nomem(x->err);
    for (uint32_t i = 0; i < s->n_rules; i++) {
        sc_strategy_rule r = s->rule[i];
        sc_rule_split *own = SC_NEW_N(x->a, sc_rule_split, r.n_split);
        uint32_t kept = 0;
        if (!own) return sc_error_nomem(x->err);
        for (uint32_t k = 0; k < r.n_split; k++) {
            own[kept] = r.split[k];
            own[kept].axes = infer_without(r.split[k].axes, 1u << x->pp);
            kept += own[kept].axes || !over(&r.split[k], x->pp);
            r.over_stages = r.over_stages || over(&r.split[k], x->pp);
        }
        bool empty = r.n_split > 0 && kept == 0;
        r.split = own;
        r.n_split = kept;
        r.has_split = r.has_split && !empty;
        all[i] = r;
    }
    s->rule = all;
    return SC_OK;
}

/* Finds the stages of the layers as if no vocabulary were split. */
static sc_status base_stages(const spreading *x, const sc_strategy *s,
                             const uint32_t **out)
{
    sc_net_run job = *x->job;
    sc_net_plan plan = {.job = &job,
                        .n_ranks = (uint32_t)sc_strategy_ranks(x->s)};
    inference f = {.job = &job,
                   .g = job.net,
                   .s = s,
                   .rules = job.rules ? job.rules : sc_rules_find(NULL),
                   .a = x->a,
                   .p = &plan,
                   .err = x->err};
    struct infer_groups *groups = NULL;
    net_program prog = {0};
    f.groups = &groups;
    f.prog = &prog;
    job.strategy = s;
    SC_TRY(infer_prepare(&f));
    *out = plan.stage_of;
    bool chain = (s->schedule < 0 || s->schedule == SC_SCH_1F1B) &&
                 !job.order && plan.n_stages == x->parts && !plan.branches;
    if (chain) return SC_OK;
    uint32_t op = 0;
    while (!x->rule[op]) op++;
    return refuse(x, op,
                  "this needs schedule 1f1b, one stage per device, and stages "
                  "that no rule moves");
}

static sc_status prepare(spreading *x)
{
    uint32_t n = x->g->n_ops;
    x->rule = SC_NEW_N(x->a, const sc_strategy_rule *, n);
    x->iter = SC_NEW_N(x->a, uint8_t, n);
    if (!x->rule || !x->iter) return sc_error_nomem(x->err);
    find(x);
    for (uint32_t op = 0; op < n; op++) {
        if (!x->rule[op]) continue;
        SC_TRY(check_op(x, op));
        x->table = x->table || x->g->op[op].type == SC_NET_EMBED;
        x->head = x->head || x->g->op[op].type == SC_NET_LOSS;
    }
    return check_weights(x);
}

sc_status infer_vocabulary(const sc_net_run *job, sc_arena *a,
                           const sc_net_run **out, sc_err *err)
{
    const sc_strategy *s = job->strategy;
    int pp = s ? sc_strategy_axis(s, SC_AX_PP) : -1;
    *out = job;
    if (pp < 0 || s->axis[pp].size < 2 || !any_over(s, (uint32_t)pp))
        return SC_OK;
    spreading x = {.job = job,
                   .g = job->net,
                   .s = s,
                   .a = a,
                   .err = err,
                   .pp = (uint32_t)pp,
                   .parts = s->axis[pp].size};
    SC_TRY(prepare(&x));
    if (!x.table && !x.head) return SC_OK;
    sc_strategy *own = SC_NEW(a, sc_strategy);
    sc_net_run *now = SC_NEW(a, sc_net_run);
    sc_net *g = SC_NEW(a, sc_net);
    const uint32_t *stage_of;
    if (!own || !now || !g) return sc_error_nomem(err);
    *own = *s;
    SC_TRY(without_pp(&x, own));
    SC_TRY(base_stages(&x, own, &stage_of));
    SC_TRY(rewrite(&x, stage_of));
    own->cuts = SC_CUT_LIST;
    own->cut = x.cut;
    own->n_cuts = x.n_cuts;
    own->schedule = SC_SCH_INTERLEAVED;
    own->virtual_stages = 1 + x.table + x.head;
    *g = x.out;
    *now = *job;
    now->net = g;
    now->strategy = own;
    now->layers_chunk = 1 + x.table;
    *out = now;
    return SC_OK;
}
