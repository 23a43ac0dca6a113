/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c - the kernels of operators, with one row per kind.
 *
 * Bytes are those of the operands that a framework's kernels read and write.
 * For element-wise kinds they are counted in passes over the operator's
 * tensors; programs without specialized kernels move `eager_traffic` times as
 * much.  With `fused`, an element-wise operator is part of the kernel of the
 * product, normalization or other operator before it: its result replaces the
 * value that it reads, and only additional operands cost.
 */
#include "cost/ops.h"

#include "cost/lookup.h"

#include <math.h>

/* The way in which a kind's kernels are derived. */
typedef enum form {
    FORM_MEMORY, /* passes over its tensors, as the row states */
    FORM_LINEAR,
    FORM_MATMUL,
    FORM_CONV,
    FORM_EXPERT,
    FORM_ATTENTION,
    FORM_TABLE,
    FORM_SCAN,
    FORM_LOSS
} form;

/* Passes over the first input, the other inputs, the output and the weight;
 * bytes per element of the output (a mask). */
typedef struct traffic {
    double x, others, y, w, mask;
    uint8_t launches;
} traffic;

typedef struct op_row {
    uint8_t form;
    uint8_t reads; /* SC_OP_READS_* */
    traffic forward, backward;
} op_row;

#define IN  SC_OP_READS_INPUTS
#define WIN (SC_OP_READS_FIRST | SC_OP_READS_WEIGHT)

static const op_row rows[SC_N_NET_TYPES] = {
    [SC_NET_LINEAR] = {.form = FORM_LINEAR, .reads = WIN},
    [SC_NET_MATMUL] = {.form = FORM_MATMUL, .reads = IN},
    [SC_NET_CONV] = {.form = FORM_CONV, .reads = WIN},
    [SC_NET_CONV_TRANSPOSED] = {.form = FORM_CONV, .reads = WIN},
    [SC_NET_EXPERT] = {.form = FORM_EXPERT, .reads = WIN},
    [SC_NET_EMBED] = {.form = FORM_TABLE, .reads = SC_OP_READS_FIRST},
    [SC_NET_ATTENTION] = {.form = FORM_ATTENTION, .reads = IN},
    [SC_NET_CONV1D] = {.form = FORM_SCAN, .reads = IN | WIN},
    [SC_NET_SCAN] = {.form = FORM_SCAN, .reads = IN},
    [SC_NET_LOSS] = {.form = FORM_LOSS, .reads = IN},
    /* The backward pass has two kernels that both read input and gradient: sums
     * over the batch, then the gradient of the input. */
    [SC_NET_BATCH_NORM] = {.reads = IN | WIN,
                           .forward = {.x = 2, .y = 1, .launches = 2},
                           .backward = {.x = 2, .y = 3, .launches = 2}},
    /* The backward pass has one kernel for the input's gradient (reads the
     * output's gradient and the input) and one for scale and shift (reads both
     * again). */
    [SC_NET_NORM] = {.reads = IN | WIN,
                     .forward = {.x = 1, .y = 1, .launches = 1},
                     .backward = {.x = 2, .y = 3, .launches = 2}},
    [SC_NET_ACT] = {.reads = IN,
                    .forward = {.x = 1, .y = 1, .launches = 1},
                    .backward = {.x = 2, .y = 1, .launches = 1}},
    /* The gradient of a sum goes to another branch, where it is added to those
     * of the value's other readers. */
    [SC_NET_ELEMENTWISE] =
        {.forward = {.x = 1, .others = 1, .y = 1, .w = 1, .launches = 1},
         .backward = {.others = 2, .y = 1, .w = 1, .launches = 1}},
    [SC_NET_DROPOUT] = {.forward = {.x = 1, .y = 1, .mask = 1, .launches = 1},
                        .backward = {.x = 1, .y = 1, .mask = 1, .launches = 1}},
    [SC_NET_SOFTMAX] = {.reads = SC_OP_READS_RESULT,
                        .forward = {.x = 1, .y = 1, .launches = 1},
                        .backward = {.x = 1, .y = 2, .launches = 1}},
    [SC_NET_POSITION] = {.forward = {.x = 1, .y = 1, .w = 1, .launches = 1},
                         .backward = {.y = 1, .w = 1, .launches = 1}},
    /* The halves of each head are exchanged, both are multiplied by tables of
     * angles, and they are summed. */
    [SC_NET_ROPE] = {.forward = {.x = 2.5, .y = 2.5, .launches = 4},
                     .backward = {.x = 2.5, .y = 2.5, .launches = 4}},
    /* Copies are read and written with their indices; the backward pass also
     * sums them.  Megatron-Core and torchtitan multiply by a token's scores
     * before the last product of its experts, so that product's result is not
     * kept. */
    [SC_NET_DISPATCH] = {.forward = {.y = 3, .launches = 4},
                         .backward = {.y = 4, .launches = 4}},
    [SC_NET_COMBINE] = {.forward = {.x = 3, .launches = 4},
                        .backward = {.x = 4, .launches = 4}},
    [SC_NET_POOL] = {.reads = IN,
                     .forward = {.x = 1, .others = 1, .y = 1, .launches = 1},
                     .backward = {.x = 1, .others = 1, .y = 1, .launches = 1}},
    [SC_NET_UPSAMPLE] =
        {.forward = {.x = 1, .others = 1, .y = 1, .launches = 1},
         .backward = {.x = 1, .others = 1, .y = 1, .launches = 1}},
    [SC_NET_CONCAT] = {.forward = {.y = 2, .launches = 1},
                       .backward = {.y = 2, .launches = 1}},
    /* The gradient of the whole tensor is cleared, then filled. */
    [SC_NET_SLICE] = {.forward = {.y = 2, .launches = 1},
                      .backward = {.x = 1, .others = 1, .y = 2, .launches = 1}},
    [SC_NET_VIEW] = {.forward = {.y = 2, .launches = 1},
                     .backward = {.y = 2, .launches = 1}},
};

unsigned sc_op_reads(sc_net_type type)
{
    return rows[type].reads;
}

/* ---- the list */

bool ops_forward(const op_list *l)
{
    return l->w->pass == SC_PASS_FWD;
}

bool ops_dgrad(const op_list *l)
{
    uint8_t pass = l->w->pass;
    return (pass == SC_PASS_DGRAD || pass == SC_PASS_BWD) && l->w->input_learns;
}

bool ops_wgrad(const op_list *l)
{
    uint8_t pass = l->w->pass;
    return (pass == SC_PASS_WGRAD || pass == SC_PASS_BWD) &&
           l->w->weight_learns;
}

/* Operators without a product compute all gradients in one kernel, including
 * those of scales and biases. */
static bool backward(const op_list *l)
{
    bool only = !l->w->input_learns && ops_wgrad(l);
    if (l->w->pass == SC_PASS_WGRAD) return only;
    return ops_dgrad(l) || only;
}

static const char *name_of(const op_list *l)
{
    return l->w->name ? l->w->name : sc_net_type_names[l->w->type];
}

void ops_push(op_list *l, sc_kernel k)
{
    sc_op_kernels *out = l->out;
    sc_assert(out->n < SC_OP_KERNELS);
    if (out->n == SC_OP_KERNELS) {
        out->full = true;
        return;
    }
    if (!k.name) k.name = name_of(l);
    out->joined[out->n] = false;
    out->k[out->n++] = k;
}

void ops_memory(op_list *l, const char *name, double bytes, uint32_t launches)
{
    bool once = l->f->fused || l->f->single_pass;
    if (!(bytes > 0)) return;
    ops_push(l, (sc_kernel){.kind = SC_K_MEMORY,
                            .precision = l->f->precision,
                            .name = name,
                            .bytes = bytes * (once ? 1 : l->c->p[SC_P_TRAFFIC]),
                            .launches = launches});
}

/* ---- element by element */

static double passes(const traffic *t, const sc_op_work *w)
{
    return t->x * w->x + t->others * w->others + t->y * w->y + t->w * w->w +
           t->mask * w->elements;
}

/* The traffic of a kind's row, corrected for facts of the operator. */
static traffic adjusted(const op_list *l, traffic t)
{
    const sc_op_work *w = l->w;
    bool forward = ops_forward(l);
    switch ((sc_net_type)w->type) {
    case SC_NET_BATCH_NORM:
        if (forward && w->behind_conv) t.x -= 1;
        break;
    case SC_NET_NORM:
        if (forward && w->wide_rows) t.x += 1, t.launches = 2;
        break;
    case SC_NET_ACT:
        if (w->gated) t.launches = forward ? 2 : 3;
        break;
    case SC_NET_ELEMENTWISE: /* a bias, or an addition with the mask of a
                                dropout */
        if (w->dropout) t.mask = 1;
        /* The gradient of the dropped branch needs a kernel of its own. */
        if (w->dropout && !forward) t.y += 2;
        /* With a constant: the input is read again, and both gradients are
         * moved. */
        if (!forward && !(w->others > 0) && !(w->w > 0)) t.x = 2;
        if (!forward && w->others > 0) t.launches = 2;
        break;
    default: break;
    }
    return t;
}

/* Traffic inside the kernel that makes its input: only what that kernel does
 * not move anyway.  An activation reads its input, which a normalization reads
 * too. */
static double beside(const op_list *l)
{
    const sc_op_work *w = l->w;
    if (w->type == SC_NET_DROPOUT) return w->elements;
    double mask = w->dropout ? w->elements : 0;
    if (w->type == SC_NET_ROPE) return 0;
    if (ops_forward(l)) return w->others + mask;
    if (w->others > 0) return 2 * w->others + mask;
    return w->behind_norm ? 0 : w->x;
}

bool ops_elementwise(sc_net_type type)
{
    switch (type) {
    case SC_NET_ACT:
    case SC_NET_DROPOUT:
    case SC_NET_ROPE:
    case SC_NET_POSITION:
    case SC_NET_ELEMENTWISE: return true;
    default: return false;
    }
}

/* GPT-OSS clamps activations and adds a bias per expert outside of the grouped
 * products. */
static double expert_bias(const op_list *l)
{
    if (!l->w->expert_bias) return 1;
    return 1 + l->c->p[l->f->fused_experts ? SC_P_EXPERT_BIAS_FUSED
                                           : SC_P_EXPERT_BIAS];
}

static void memory_kind(op_list *l, const op_row *row)
{
    const sc_op_work *w = l->w;
    if (!ops_forward(l) && !backward(l)) return;
    uint32_t n = l->out->n;
    if (l->f->fused && w->joins && ops_elementwise((sc_net_type)w->type)) {
        ops_memory(l, NULL, beside(l), 1);
        if (l->out->n > n) l->out->joined[n] = true;
        return;
    }
    traffic t = adjusted(l, ops_forward(l) ? row->forward : row->backward);
    ops_memory(l, NULL, passes(&t, w) * expert_bias(l), t.launches);
}

/* The scan and its convolution process the state in several passes; the
 * backward pass is like that of other memory-bound operators. */
static void scan(op_list *l)
{
    if (!ops_forward(l) && !backward(l)) return;
    double e = l->w->elements * l->w->each / 2;
    ops_memory(l, NULL, (ops_forward(l) ? 1 : 1.6) * l->c->p[SC_P_SCAN] * e, 3);
}

/* Softmax and cross entropy: the bytes that a program moves per logit. */
static void loss(op_list *l)
{
    double logits = l->w->x / l->w->each;
    if (!ops_forward(l) && !backward(l)) return;
    ops_push(l, (sc_kernel){.kind = SC_K_MEMORY,
                            .name = "loss",
                            .bytes = logits * l->f->loss_bytes / 2,
                            .launches = ops_forward(l) ? 12 : 8});
}

/* The forward pass gathers and sums rows.  The backward pass sorts indices with
 * their positions (8 bytes, four radix passes, read and written), then writes
 * the gradient of each row; a gradient as large as the table is cleared
 * first. */
static double table_bytes(const sc_op_work *w, bool forward)
{
    double bytes = w->lookups * w->elements * w->each + w->y;
    if (forward) return bytes + w->x;
    if (w->dense) return bytes + 2 * w->y + 2 * w->w + 8 * w->x;
    return bytes + 8 * w->x;
}

/* If the distribution is known, the backward pass reads the gradient of a
 * result for each look-up and writes that of each row once. */
static double known_bytes(const sc_op_work *w, const sc_row_reads *r,
                          bool forward)
{
    const sc_lookups *l = &r->lookups;
    double read = l->count / fmax(1, l->parts) * l->row_bytes;
    if (forward) return read + w->y + w->x;
    double dense = w->dense ? 2 * w->y + 2 * w->w : 0;
    return read + lookup_unique(w) * l->row_bytes + dense + 8 * w->x;
}

static void table(op_list *l)
{
    const sc_op_work *w = l->w;
    bool forward = ops_forward(l);
    sc_row_reads reads = {.samples = 0};
    if (!forward && !ops_wgrad(l)) return;
    if (w->access) reads = lookup_reads(w, forward);
    double bytes =
        w->access ? known_bytes(w, &reads, forward) : table_bytes(w, forward);
    ops_push(l, (sc_kernel){.kind = SC_K_LOOKUP,
                            .precision = l->f->precision,
                            .bytes = bytes,
                            .reads = reads,
                            .launches = forward ? 1 : 5});
    if (l->f->fused && w->same_kernel) l->out->joined[l->out->n - 1] = true;
}

void sc_op_list(const sc_cost *c, const sc_op_facts *f, const sc_op_work *w,
                sc_op_kernels *out)
{
    op_list l = {c, f, w, out};
    const op_row *row = &rows[w->type];
    out->n = 0;
    switch ((form)row->form) {
    case FORM_LINEAR: ops_linear(&l); break;
    case FORM_MATMUL: ops_matmul(&l); break;
    case FORM_CONV: ops_conv(&l); break;
    case FORM_EXPERT: ops_expert(&l); break;
    case FORM_ATTENTION: ops_attention(&l); break;
    case FORM_TABLE: table(&l); break;
    case FORM_SCAN: scan(&l); break;
    case FORM_LOSS: loss(&l); break;
    case FORM_MEMORY: memory_kind(&l, row); break;
    }
}

sc_price sc_op_amount(const sc_op_work *w)
{
    static const sc_op_facts plain = {.precision = SC_BF16,
                                      .attention = SC_ATTN_CUDNN,
                                      .single_pass = true,
                                      .fused_accumulate = true,
                                      .loss_bytes = 12};
    sc_cost c;
    sc_op_kernels l;
    sc_op_work own = *w;
    sc_price sum = {.limit = NULL};
    own.expert_bias = false; /* programs add these kernels */
    sc_cost_centres(&c);
    sc_op_list(&c, &plain, &own, &l);
    for (uint32_t i = 0; i < l.n; i++) {
        sc_price p = sc_kernel_amount(&l.k[i]);
        sum.flops += p.flops;
        sum.bytes += p.bytes;
        sum.launches += p.launches;
    }
    return sum;
}

/* ---- prices */

static sc_price kernel_price(const sc_cost *c, const sc_device *d,
                             const sc_op_kernels *l, uint32_t i)
{
    sc_price p = sc_cost_kernel(c, d, &l->k[i]);
    if (l->joined[i]) {
        p.seconds = fmax(0, p.seconds - p.launches * c->p[SC_P_LAUNCH]);
        p.launches = 0;
        p.limit = "memory";
    }
    return p;
}

sc_price sc_op_price(const sc_cost *c, const sc_device *d,
                     const sc_op_kernels *l)
{
    sc_price sum = {.limit = NULL};
    double longest = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        sc_price p = kernel_price(c, d, l, i);
        if (p.seconds > 0 && (!sum.limit || p.seconds > longest)) {
            sum.limit = p.limit;
            longest = p.seconds;
        }
        sum.seconds += p.seconds;
        sum.flops += p.flops;
        sum.bytes += p.bytes;
        sum.launches += p.launches;
    }
    if (!sum.limit) sum.limit = "nothing";
    return sum;
}

void sc_op_explain(const sc_cost *c, const sc_device *d, const sc_op_kernels *l,
                   sc_text *out)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (!l->joined[i]) {
            sc_cost_explain_kernel(c, d, &l->k[i], out);
            continue;
        }
        sc_price p = kernel_price(c, d, l, i);
        char t[32], b[32];
        sc_unit_print_short(p.seconds, SC_U_TIME, t, sizeof t);
        sc_unit_print_short(p.bytes, SC_U_BYTES, b, sizeof b);
        sc_text_add(out, "  %-22s %9s  %9s  %9s  in another's kernel\n",
                    l->k[i].name, t, "", b);
    }
}
