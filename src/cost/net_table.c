/* SPDX-License-Identifier: Apache-2.0 */
/* net_table.c - finds a network operator in a table of times. */
#include "cost/cost_optimizer.h"
#include "cost/optable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static optable_shape shape_of(const sc_net_work *w, const sc_operand *p)
{
    optable_shape s = {.n = w->net->tensor[p->tensor].n_dim};
    for (uint32_t i = 0; i < s.n; i++) s.dim[i] = round(net_op_length(w, p, i));
    return s;
}

/* The second factor of a product in the layout of tables: [.., k, n]. */
static void untranspose(const sc_net_op *o, optable_shape *w)
{
    uint32_t n = w->n;
    uint8_t column = o->out.at[n > 0 ? n - 1 : 0];
    if (n < 2 || column == SC_NO_ITER || o->in[1].at[n - 2] != column) return;
    double k = w->dim[n - 1];
    w->dim[n - 1] = w->dim[n - 2];
    w->dim[n - 2] = k;
}

/* Classes of a table that may contain an operator; messages name the first. */
static const char *class_of(const sc_net_work *w, bool backward, uint32_t i)
{
    static const char *const names[SC_N_NET_TYPES][4] = {
        [SC_NET_LINEAR] = {"Linear"},
        [SC_NET_MATMUL] = {"Matmul"},
        [SC_NET_CONV] = {"Conv"},
        [SC_NET_CONV_TRANSPOSED] = {"ConvTranspose"},
        [SC_NET_EMBED] = {"Embedding"},
        [SC_NET_ATTENTION] = {"Attention"},
        [SC_NET_BATCH_NORM] = {"BatchNorm"},
        [SC_NET_NORM] = {"LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm"},
        [SC_NET_ACT] = {"ReLU", "Activation"},
        [SC_NET_SOFTMAX] = {"Softmax"},
        [SC_NET_DROPOUT] = {"Dropout"},
        [SC_NET_ELEMENTWISE] = {"Elementwise"},
        [SC_NET_POOL] = {"Pool", "AdaptivePool"},
        [SC_NET_UPSAMPLE] = {"Upsample"},
        [SC_NET_CONCAT] = {"Concat"},
        [SC_NET_SLICE] = {"Slice"},
        [SC_NET_ROPE] = {"Elementwise"},
        [SC_NET_POSITION] = {"Elementwise"},
        [SC_NET_LOSS] = {"CrossEntropy"}};
    if (i >= 4) return NULL;
    const sc_net_op *o = w->op;
    if (o->type == SC_NET_CONCAT && backward) return i == 0 ? "Split" : NULL;
    /* All functions except ReLU share a class. */
    if (o->type == SC_NET_ACT && o->fn != SC_F_RELU) i = i < 2 ? 1 - i : i;
    return names[o->type][i];
}

static bool update_key(const sc_net_work *w, uint32_t i, char key[NET_OP_KEY])
{
    double n = round(net_op_weight_elements(w));
    const char *name = sc_optimizer_of(w->optimizer)->table_name;
    if (i > 0 || !name) return false;
    snprintf(key, NET_OP_KEY, "%s", name);
    optable_append(key, ' ', n);
    optable_append(key, ',', n);
    return true;
}

bool net_op_table_key(const sc_net_work *w, uint32_t i, char key[NET_OP_KEY])
{
    if (w->pass == SC_PASS_UPDATE) return update_key(w, i, key);
    const sc_net_op *o = w->op;
    bool backward = w->pass != SC_PASS_FWD;
    const char *name = class_of(w, backward, i);
    if (!name) return false;
    optable_shapes s = {.n_in = 0};
    if (backward) s.in[s.n_in++] = shape_of(w, &o->out);
    uint32_t n_in =
        o->n_in < OPTABLE_TENSORS / 2 ? o->n_in : OPTABLE_TENSORS / 2;
    bool whole = optable_form_of(name) != OPTABLE_ELEMENTS || !backward;
    for (uint32_t t = 0; t < n_in && whole; t++)
        s.in[s.n_in++] = shape_of(w, &o->in[t]);
    if (o->type == SC_NET_MATMUL && n_in == 2)
        untranspose(o, &s.in[s.n_in - 1]);
    for (uint32_t t = 0; t < o->n_weight && whole; t++)
        s.in[s.n_in++] = shape_of(w, &o->weight[t]);
    if (!backward) s.out[s.n_out++] = shape_of(w, &o->out);
    for (uint32_t t = 0; backward && t < n_in; t++)
        s.out[s.n_out++] = shape_of(w, &o->in[t]);
    if (o->type == SC_NET_EMBED && backward)
        s.out[0] = shape_of(w, &o->weight[0]);
    if (optable_form_of(name) == OPTABLE_PARTS) {
        /* several equal inputs are on either side */
        s.n_in = n_in;
        s.n_out = 1;
        s.out[0] = shape_of(w, &o->out);
    }
    if (!optable_key(name, o->type == SC_NET_CONCAT ? false : backward, &s,
                     key))
        snprintf(key, NET_OP_KEY, "%s%s", name, backward ? "BW" : "");
    return true;
}
