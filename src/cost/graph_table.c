/* SPDX-License-Identifier: Apache-2.0 */
/* graph_table.c - where a table of times has an operator of a graph. */
#include "cost/optable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static optable_shape shape_of(const sc_gwork *w, const sc_gport *p)
{
    optable_shape s = {.n = w->graph->tensor[p->tensor].n_dim};
    for (uint32_t i = 0; i < s.n; i++) s.dim[i] = round(gop_length(w, p, i));
    return s;
}

/* The second factor of a product as tables have it: [.., k, n]. */
static void untranspose(const sc_gop *o, optable_shape *w)
{
    uint32_t n = w->n;
    uint8_t column = o->out.at[n > 0 ? n - 1 : 0];
    if (n < 2 || column == SC_G_NO_ITER || o->in[1].at[n - 2] != column) return;
    double k = w->dim[n - 1];
    w->dim[n - 1] = w->dim[n - 2];
    w->dim[n - 2] = k;
}

/* Classes that an operator may stand under; the first is what people see. */
static const char *class_of(const sc_gwork *w, bool backward, uint32_t i)
{
    static const char *const names[SC_N_GTYPES][4] = {
        [SC_G_LINEAR] = {"Linear"},
        [SC_G_MATMUL] = {"Matmul"},
        [SC_G_CONV] = {"Conv"},
        [SC_G_CONV_TRANSPOSED] = {"ConvTranspose"},
        [SC_G_EMBED] = {"Embedding"},
        [SC_G_ATTENTION] = {"Attention"},
        [SC_G_BATCH_NORM] = {"BatchNorm"},
        [SC_G_NORM] = {"LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm"},
        [SC_G_ACT] = {"ReLU", "Activation"},
        [SC_G_SOFTMAX] = {"Softmax"},
        [SC_G_DROPOUT] = {"Dropout"},
        [SC_G_ELEMENTWISE] = {"Elementwise"},
        [SC_G_POOL] = {"Pool", "AdaptivePool"},
        [SC_G_UPSAMPLE] = {"Upsample"},
        [SC_G_CONCAT] = {"Concat"},
        [SC_G_SLICE] = {"Slice"},
        [SC_G_ROPE] = {"Elementwise"},
        [SC_G_POSITION] = {"Elementwise"},
        [SC_G_LOSS] = {"CrossEntropy"}};
    if (i >= 4) return NULL;
    const sc_gop *o = w->op;
    if (o->type == SC_G_CONCAT && backward) return i == 0 ? "Split" : NULL;
    /* Functions other than this one share a class. */
    if (o->type == SC_G_ACT && o->fn != SC_F_RELU) i = i < 2 ? 1 - i : i;
    return names[o->type][i];
}

static bool update_key(const sc_gwork *w, uint32_t i, char key[GOP_KEY])
{
    static const char *const ours[] = {"adam", "sgd", "lamb", "adagrad"};
    static const char *const names[] = {"Adam", "SGD", "LAMB", "Adagrad"};
    double n = round(gop_weight_elements(w));
    const char *o = w->optimizer ? w->optimizer : ours[0];
    if (i > 0) return false;
    for (size_t a = 0; a < SC_COUNT(ours); a++) {
        if (strcmp(ours[a], o) != 0) continue;
        snprintf(key, GOP_KEY, "%s", names[a]);
        optable_append(key, ' ', n);
        optable_append(key, ',', n);
        return true;
    }
    return false;
}

bool gop_table_key(const sc_gwork *w, uint32_t i, char key[GOP_KEY])
{
    if (w->pass == SC_GP_UPDATE) return update_key(w, i, key);
    const sc_gop *o = w->op;
    bool backward = w->pass != SC_GP_FWD;
    const char *name = class_of(w, backward, i);
    if (!name) return false;
    optable_shapes s = {.n_in = 0};
    if (backward) s.in[s.n_in++] = shape_of(w, &o->out);
    uint32_t n_in =
        o->n_in < OPTABLE_TENSORS / 2 ? o->n_in : OPTABLE_TENSORS / 2;
    bool whole = optable_form_of(name) != OPTABLE_ELEMENTS || !backward;
    for (uint32_t t = 0; t < n_in && whole; t++)
        s.in[s.n_in++] = shape_of(w, &o->in[t]);
    if (o->type == SC_G_MATMUL && n_in == 2) untranspose(o, &s.in[s.n_in - 1]);
    for (uint32_t t = 0; t < o->n_weight && whole; t++)
        s.in[s.n_in++] = shape_of(w, &o->weight[t]);
    if (!backward) s.out[s.n_out++] = shape_of(w, &o->out);
    for (uint32_t t = 0; backward && t < n_in; t++)
        s.out[s.n_out++] = shape_of(w, &o->in[t]);
    if (o->type == SC_G_EMBED && backward)
        s.out[0] = shape_of(w, &o->weight[0]);
    if (optable_form_of(name) == OPTABLE_PARTS) {
        /* Of several equal ones, whichever way. */
        s.n_in = n_in;
        s.n_out = 1;
        s.out[0] = shape_of(w, &o->out);
    }
    if (!optable_key(name, o->type == SC_G_CONCAT ? false : backward, &s, key))
        snprintf(key, GOP_KEY, "%s%s", name, backward ? "BW" : "");
    return true;
}
