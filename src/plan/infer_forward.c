/* SPDX-License-Identifier: Apache-2.0 */
/* infer_forward.c - operators in the forward pass, or recomputed in the
 * backward pass. */
#include "plan/infer.h"

static sc_status done(const inference *f)
{
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

uint32_t infer_rr_count(const inference *f, uint32_t op)
{
    const infer_rule *r = f->node[op].rr_rule;
    uint32_t n = 0;
    if (!r) return 1;
    if (f->node[op].rr_index > 0) return 0;
    for (uint32_t i = op; i < f->g->n_ops; i++) n += f->node[i].rr_rule == r;
    return n;
}

uint32_t infer_rr_ranks(const inference *f, uint32_t op)
{
    const infer_node *n = &f->node[op];
    return n->place ? 1 : infer_parts(f, n->rr_axes);
}

uint32_t infer_rr_op(const inference *f, uint32_t op, uint32_t i)
{
    const infer_rule *r = f->node[op].rr_rule;
    if (!r) return op;
    for (;; op++)
        if (f->node[op].rr_rule == r && f->node[op].rr_index == i) return op;
}

/* ---- what an operator reads ---------------------------------------------- */

static bool same_segment(const inference *f, uint32_t a, uint32_t b)
{
    return f->node[a].segment != SC_NONE &&
           f->node[a].segment == f->node[b].segment;
}

static sc_status data(inference *f, uint32_t op, const sc_operand *p,
                      uint32_t *value)
{
    const sc_tensor *t = &f->g->tensor[p->tensor];
    uint32_t stage = f->node[op].stage;
    layout l = infer_port(f, op, p, false);
    infer_form *form = infer_find(f->fwd[p->tensor], stage, NULL);
    if (!form) {
        uint32_t v =
            infer_value(f, (program_value){.word = {t->name},
                                           .tensor = p->tensor,
                                           .what = VALUE_INPUT,
                                           .stage = stage,
                                           .bytes = infer_rank_bytes(f, t, &l),
                                           .made = SC_NONE});
        form = infer_remember(f, &f->fwd[p->tensor], stage, v, &l);
    }
    if (form) *value = form->value;
    return done(f);
}

/* Broadcasts a value to all stages that read it. */
static sc_status to_all_stages(inference *f, const infer_why *w, uint32_t op,
                               const infer_sum *v, infer_form **list,
                               infer_form **out)
{
    const infer_kept *k = &f->kept[w->of];
    uint32_t *stage = SC_NEW_N(f->a, uint32_t, k->n_readers), n = 0, value;
    if (!stage) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < k->n_readers; i++) {
        uint32_t s = f->node[k->reader[i]].stage;
        if (s != w->stage && (n == 0 || stage[n - 1] != s)) stage[n++] = s;
    }
    double bytes = infer_rank_bytes(f, &f->g->tensor[w->of], &k->l);
    SC_TRY(infer_over_stages(f, w, SC_BROADCAST, bytes, v, stage, n, &value));
    for (uint32_t i = 0; i < n; i++) {
        infer_form *form = infer_remember(f, list, stage[i], value + i, &k->l);
        if (stage[i] == f->node[op].stage) *out = form;
    }
    return done(f);
}

/* Finds or makes the form of the tensor on the stage of `op`, in the layout in
 * which the tensor is kept. */
static sc_status kept_form(inference *f, uint32_t op, uint32_t tensor,
                           infer_form **list, infer_form **out)
{
    uint32_t stage = f->node[op].stage, from = f->g->tensor[tensor].op;
    const layout *l = &f->kept[tensor].l;
    infer_form *form = infer_find(*list, stage, l);
    if (!form) {
        infer_form *there = infer_find(*list, f->node[from].stage, l);
        const infer_rule *rule = f->node[op].rr_rule;
        if (!there && rule)
            return sc_error(
                f->err, SC_EINPUT, SC_C_UNSUPPORTED, rule->r->pos,
                "assign only operators that do not read each other's results",
                "rule '%s' runs operators at the same time, but %s reads a "
                "result of another of them",
                rule->r->match, f->g->op[op].path);
        if (!there)
            return sc_error(f->err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                            "%s reads a tensor that no operator has made yet",
                            f->g->op[op].path);
        infer_why w = {.path = f->g->op[from].path,
                       .tensor = "out",
                       .pass = SC_PASS_FWD,
                       .op = from,
                       .stage = f->node[from].stage,
                       .of = tensor,
                       .what = VALUE_ACT,
                       .phase = INFER_FORWARD};
        infer_sum v = {0};
        if (!infer_sum_add(f, &v, there->value)) return done(f);
        if (f->g->tensor[tensor].on_all_stages)
            return to_all_stages(f, &w, op, &v, list, out);
        SC_TRY(infer_send(f, &w, stage, l,
                          infer_rank_bytes(f, &f->g->tensor[tensor], l), &v));
        form = infer_remember(f, list, stage, v.value[0], l);
    }
    *out = form;
    return done(f);
}

static const char *input_name(inference *f, uint32_t k)
{
    static const char *const names[] = {"in:0", "in:1", "in:2", "in:3"};
    if (k < SC_COUNT(names)) return names[k];
    const char *name = sc_sprintf(f->a, "in:%u", k);
    return name ? name : "in";
}

double infer_part(const inference *f, uint32_t op, uint32_t k, bool grad)
{
    const sc_net_op *o = &f->g->op[op];
    float parts = 0;
    double sum = 0;
    for (uint32_t i = 0; i < o->n_in; i++) parts += o->in[i].part;
    if (!(parts > 0)) return 1;
    layout l = infer_port(f, op, &o->in[k], grad);
    for (uint32_t i = 0; i < o->n_in; i++) {
        if (o->in[i].tensor != o->in[k].tensor) continue;
        layout m = infer_port(f, op, &o->in[i], grad);
        if (layout_equal(&l, &m)) sum += (double)o->in[i].part;
    }
    return sum > 0 && sum < 0.999 ? sum : 1;
}

/* Converts a value that holds input `k` in layout `from` to what the operator
 * needs. */
static sc_status bring(inference *f, uint32_t op, uint32_t k, uint32_t phase,
                       uint32_t value, const layout *from, infer_form **out)
{
    uint32_t tensor = f->g->op[op].in[k].tensor, stage = f->node[op].stage;
    const sc_tensor *t = &f->g->tensor[tensor];
    bool back = phase == INFER_BACKWARD;
    const infer_rule *r = back ? NULL : infer_stated(f, op, SC_RT_IN, k);
    layout need = infer_port(f, op, &f->g->op[op].in[k], false), at = *from,
           via;
    infer_why w = {.path = f->g->op[op].path,
                   .tensor = input_name(f, k),
                   .origin = infer_by(f, op),
                   .pass = back ? SC_PASS_WGRAD : SC_PASS_FWD,
                   .op = op,
                   .stage = stage,
                   .of = tensor,
                   .what = VALUE_ACT,
                   .phase = (uint8_t)phase,
                   .recomputed = back && same_segment(f, op, t->op),
                   .hidden_s = back ? f->hidden_s : 0};
    infer_sum v = {0};
    if (!infer_sum_add(f, &v, value)) return done(f);
    double bytes = infer_bytes(f, t) * infer_part(f, op, k, false);
    if (r) {
        SC_TRY(infer_place(f, t, r, NULL, false, &via));
        w.origin = r->r->origin;
        SC_TRY(infer_convert(f, &w, &at, &via, bytes, &v));
        at = via;
    }
    bool gathered = v.gathered;
    SC_TRY(infer_convert(f, &w, &at, &need, bytes, &v));
    infer_form **list = back ? f->bwd : f->fwd;
    *out = infer_remember(f, &list[tensor], stage, v.value[0], &need);
    if (*out)
        (*out)->lasts = !(gathered || v.gathered) || infer_keeps_input(f, op);
    return done(f);
}

/* Finds or makes the value of input `k` in the layout that `op` reads. */
static sc_status input(inference *f, uint32_t op, uint32_t k, uint32_t phase,
                       uint32_t *value)
{
    const sc_operand *p = &f->g->op[op].in[k];
    const sc_tensor *t = &f->g->tensor[p->tensor];
    uint32_t stage = f->node[op].stage;
    if (t->kind == SC_TENSOR_INPUT) return data(f, op, p, value);
    layout need = infer_port(f, op, p, false);
    bool back = phase == INFER_BACKWARD;
    bool inside = back && same_segment(f, op, t->op);
    bool dropped = back && !inside && infer_dropped(f, t->op, op);
    if (dropped) SC_TRY(infer_recompute(f, t->op));
    infer_form **fwd = &f->fwd[p->tensor], **bwd = &f->bwd[p->tensor];
    infer_form *form = NULL;
    const infer_rule *r =
        phase == INFER_FORWARD ? infer_stated(f, op, SC_RT_IN, k) : NULL;
    if (phase == INFER_BACKWARD) form = infer_find(*bwd, stage, &need);
    if (!form && !inside && !dropped && !r) {
        form = infer_find(*fwd, stage, &need);
        if (form && phase == INFER_BACKWARD && !form->lasts) form = NULL;
    }
    if (!form) {
        infer_form *base = NULL;
        SC_TRY(
            kept_form(f, op, p->tensor, inside || dropped ? bwd : fwd, &base));
        SC_TRY(bring(f, op, k, phase, base->value, &base->l, &form));
    }
    if (form) *value = form->value;
    return done(f);
}

sc_status infer_recomputed_input(inference *f, uint32_t op, uint32_t k,
                                 uint32_t *value)
{
    const sc_operand *p = &f->g->op[op].in[k];
    infer_saved s = infer_saved_of(f, op);
    if (k > 0 || !s.copy ||
        (f->node[op].segment == SC_NONE &&
         infer_dropped(f, f->g->tensor[p->tensor].op, op)))
        return input(f, op, k, INFER_BACKWARD, value);
    layout need = infer_port(f, op, p, false), is = infer_copy_layout(f, op);
    *value = s.copy - 1;
    if (layout_equal(&need, &is)) return SC_OK;
    infer_form *form = infer_find(f->bwd[p->tensor], f->node[op].stage, &need);
    if (!form) SC_TRY(bring(f, op, k, INFER_BACKWARD, *value, &is, &form));
    if (form) *value = form->value;
    return done(f);
}

/* ---- an operator --------------------------------------------------------- */

typedef struct operands {
    uint32_t n;
    uint32_t *value;
} operands;

static sc_status read_all(inference *f, uint32_t op, uint32_t phase,
                          operands *v)
{
    const sc_net_op *o = &f->g->op[op];
    v->n = 0;
    v->value =
        SC_NEW_N(f->a, uint32_t, (size_t)o->n_in + o->n_weight + INFER_EXTRA);
    if (!v->value) return sc_error_nomem(f->err);
    for (uint32_t k = 0; k < o->n_in; k++)
        SC_TRY(input(f, op, k, phase, &v->value[v->n++]));
    for (uint32_t k = 0; k < o->n_weight; k++)
        SC_TRY(infer_weight_used(f, op, k, phase, &v->value[v->n++]));
    return SC_OK;
}

/* The product for the weights of a convolution reads the halo, too. */
static sc_status read_around(inference *f, uint32_t op, uint32_t phase,
                             operands *v)
{
    infer_extra extra;
    if (f->g->op[op].n_in == 0) return SC_OK;
    SC_TRY(infer_neighbours(f, op, phase, phase == INFER_BACKWARD, v->value, 1,
                            &extra));
    for (uint32_t i = 0; i < extra.n; i++) v->value[v->n++] = extra.value[i];
    f->node[op].around = extra.n ? extra.value[0] + 1 : 0;
    return SC_OK;
}

/* Adds the kernels of operators that different ranks run at the same time. */
static sc_status run(inference *f, uint32_t op, uint32_t first, bool recomputed,
                     uint32_t *value)
{
    const sc_net_op *o = &f->g->op[infer_rr_op(f, op, first)];
    infer_node *node = &f->node[op];
    uint32_t phase = recomputed ? INFER_BACKWARD : INFER_FORWARD;
    uint32_t member = infer_rr_op(f, op, first);
    sc_price price;
    operands in = {0};
    SC_TRY(read_all(f, member, phase, &in));
    SC_TRY(read_around(f, member, phase, &in));
    SC_TRY(infer_compute_rr(f, member, SC_PASS_FWD, 0, 1, &price));
    layout made = infer_port(f, op, &o->out, true);
    const sc_tensor *t = &f->g->tensor[o->out.tensor];
    bool said;
    int tier = infer_tier(f, op, SC_RT_OUT, &said);
    if (recomputed) tier = SC_TIER_DEVICE;
    *value = infer_value(
        f, (program_value){.word = {o->path, "out"},
                           .tensor = o->out.tensor,
                           .what = VALUE_ACT,
                           .tier = (uint8_t)tier,
                           .stays = said && tier == SC_TIER_DEVICE,
                           .stage = node->stage,
                           .bytes = infer_rank_bytes(f, t, &made) *
                                    infer_rr_fraction(f, member, false)});
    program_item it = infer_kernels(member, node->stage, SC_PASS_FWD);
    double part = infer_spared(f, op);
    if (recomputed && node->spared) {
        in.value[in.n++] = node->spared - 1;
        price.seconds *= 1 - part;
        price.flops *= 1 - part;
        price.bytes *= 1 - part;
    }
    it.recomputed = recomputed;
    it.price = price;
    it.n_in = in.n;
    it.out = *value;
    SC_TRY(infer_save(f, member, recomputed, &it));
    if (!recomputed && part > 0)
        node->spared = infer_save_spared(
            f, member, part * f->prog->value[*value].bytes, &it);
    part = infer_unread(f, op);
    if (part > 0)
        node->unread = infer_save_spared(
            f, member, part * f->prog->value[*value].bytes, &it);
    (void)infer_item(f, it, in.value, phase);
    return done(f);
}

/* Adds a reduction over all stages in place of the operator's kernels. */
static sc_status from_all_stages(inference *f, uint32_t op, uint32_t *value)
{
    const sc_net_op *o = &f->g->op[op];
    layout l = infer_port(f, op, &o->in[0], false);
    infer_why w = {.path = o->path,
                   .tensor = "in",
                   .pass = SC_PASS_FWD,
                   .op = op,
                   .stage = f->node[op].stage,
                   .of = o->out.tensor,
                   .what = VALUE_ACT,
                   .phase = INFER_FORWARD};
    infer_sum v = {0};
    for (uint32_t k = 0; k < o->n_in; k++) {
        uint32_t t = o->in[k].tensor, from = f->g->tensor[t].op;
        infer_form *form = infer_find(f->fwd[t], f->node[from].stage, NULL);
        infer_sum one = {0};
        if (!form || !infer_sum_add(f, &one, form->value)) return done(f);
        infer_why there = w;
        there.stage = f->node[from].stage;
        SC_TRY(infer_convert(f, &there, &form->l, &l,
                             infer_bytes(f, &f->g->tensor[t]), &one));
        if (!infer_sum_add(f, &v, one.value[0])) return done(f);
    }
    return infer_over_stages(
        f, &w, SC_REDUCE, infer_rank_bytes(f, &f->g->tensor[o->out.tensor], &l),
        &v, &w.stage, 1, value);
}

/* Loss of a split vocabulary: ranks exchange the largest logit, the sum of
 * exponentials and the label's logit. */
static sc_status loss(inference *f, const infer_why *w, const layout *made,
                      const layout *kept, infer_sum *v)
{
    const sc_tensor *t = &f->g->tensor[w->of];
    static const char *const parts[] = {"max", "sum", "out"};
    bool once = f->rules->loss_per_sample || !made->partial;
    double bytes =
        4 * (f->rules->loss_per_sample ? f->samples : infer_elements(f, t));
    for (uint32_t i = once ? 2 : 0; i < 3; i++) {
        infer_why part = *w;
        part.tensor = parts[i];
        SC_TRY(infer_convert(f, &part, made, kept, bytes, v));
    }
    return SC_OK;
}

sc_status infer_forward_op(inference *f, uint32_t op, bool recomputed)
{
    const sc_net_op *o = &f->g->op[op];
    const infer_node *node = &f->node[op];
    uint32_t n = infer_rr_count(f, op), ranks = infer_rr_ranks(f, op);
    infer_sum v = {0};
    if (n == 0) return SC_OK;
    for (uint32_t i = 0; i < n; i += ranks) {
        uint32_t value = SC_NONE;
        if (o->on_all_stages)
            SC_TRY(from_all_stages(f, op, &value));
        else
            SC_TRY(run(f, op, i, recomputed, &value));
        if (!infer_sum_add(f, &v, value)) return done(f);
    }
    double bytes = infer_rr_bytes(f, op);
    layout made = infer_port(f, op, &o->out, true);
    infer_kept *kept = &f->kept[o->out.tensor];
    infer_why w = {.path = o->path,
                   .tensor = "out",
                   .origin = kept->origin ? kept->origin : infer_by(f, op),
                   .pass = SC_PASS_FWD,
                   .op = op,
                   .stage = node->stage,
                   .of = o->out.tensor,
                   .what = VALUE_ACT,
                   .phase = recomputed ? INFER_BACKWARD : INFER_FORWARD,
                   .recomputed = recomputed};
    if (o->type == SC_NET_LOSS)
        SC_TRY(loss(f, &w, &made, &kept->l, &v));
    else
        SC_TRY(infer_convert(f, &w, &made, &kept->l, bytes, &v));
    infer_form **lists = recomputed ? f->bwd : f->fwd;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t t = f->g->op[infer_rr_op(f, op, i)].out.tensor;
        uint32_t slot = v.n > 1 ? i / ranks : 0;
        (void)infer_remember(f, &lists[t], node->stage, v.value[slot],
                             &f->kept[t].l);
    }
    return done(f);
}

sc_status infer_forward(inference *f)
{
    for (uint32_t op = 0; op < f->g->n_ops; op++) {
        infer_note_mark(f, INFER_FORWARD, op);
        SC_TRY(infer_forward_op(f, op, false));
    }
    infer_note_mark(f, INFER_FORWARD, f->g->n_ops);
    return SC_OK;
}
