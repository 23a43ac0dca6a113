/* SPDX-License-Identifier: Apache-2.0 */
/* pad.c - a vocabulary that tensor parallelism can divide. */
#include <stepcast/base/util.h>
#include <stepcast/model.h>

#include <string.h>

/* Programs with tensor parallelism pad to a multiple of this for every rank. */
#define ROWS_OF_RANK 128

static uint64_t scaled(uint64_t n, int64_t from, int64_t to)
{
    return n / (uint64_t)from * (uint64_t)to;
}

/* Weights of an operator on words are as many rows as there are words. */
static void pad(sc_operator *op, int64_t from, int64_t to)
{
    for (uint32_t i = 0; i < op->n_iter; i++) {
        if (op->iter[i].name != SC_D_VOCAB) continue;
        if (op->iter[i].units == (uint64_t)from)
            op->iter[i].units = (uint32_t)to;
        op->iter[i].extent = (uint64_t)to;
        op->params = scaled(op->params, from, to);
        op->bias = scaled(op->bias, from, to);
    }
}

int64_t sc_model_padded(const sc_model *m, uint64_t parts)
{
    int64_t vocab = m->t.vocab, step = ROWS_OF_RANK * (int64_t)parts;
    if (parts == 0 || vocab % (int64_t)parts == 0) return vocab;
    return (vocab + step - 1) / step * step;
}

sc_status sc_model_pad(const sc_model *from, uint64_t parts, sc_arena *a,
                       const sc_model **out, sc_err *err)
{
    int64_t vocab = from->t.vocab, padded = sc_model_padded(from, parts);
    *out = from;
    if (padded == vocab) return SC_OK;
    sc_model *m = SC_NEW(a, sc_model);
    sc_layer *layer = SC_NEW_N(a, sc_layer, from->n_layers);
    if (!m || !layer) return sc_error_nomem(err);
    *m = *from;
    memcpy(layer, from->layer, from->n_layers * sizeof *layer);
    m->layer = layer;
    m->t.vocab = padded;
    if (m->t.classes == vocab) m->t.classes = m->t.vocab;
    for (uint32_t l = 0; l < m->n_layers; l++)
        for (uint32_t i = 0; i < layer[l].n_ops; i++) {
            sc_operator *op = &layer[l].op[i];
            uint64_t before = op->params;
            pad(op, vocab, m->t.vocab);
            uint64_t more = (op->params - before) * layer[l].repeat;
            m->params += more;
            m->active_params += more;
            if (!op->frozen) m->trained_params += more;
        }
    *out = m;
    return SC_OK;
}
