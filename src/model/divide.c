/* SPDX-License-Identifier: Apache-2.0 */
/* divide.c - divides blocks of one kind into several kinds. */
#include "model/network.h"

#include <string.h>

/* Index of the entry for block i's kind and label; n_layers if there is
 * none. */
static uint32_t entry_of(const sc_model *from, const uint64_t *label,
                         const sc_model *m, uint32_t i)
{
    uint32_t at = 1;
    while (at < m->n_layers &&
           (from->order[m->layer[at].block] != from->order[i] ||
            label[m->layer[at].block] != label[i]))
        at++;
    return at;
}

sc_status model_divide(const sc_model *from, const uint64_t *label, sc_pos pos,
                       sc_arena *a, sc_model *m, sc_err *err)
{
    sc_layer *layer = SC_NEW_N(a, sc_layer, SC_LAYERS);
    uint8_t *order = SC_NEW_N(a, uint8_t, from->n_blocks);
    if (!layer || !order) return sc_error_nomem(err);
    *m = *from;
    m->layer = layer;
    m->order = order;
    m->n_layers = 1;
    layer[0] = from->layer[0];
    for (uint32_t i = 0; i < from->n_blocks; i++) {
        uint32_t at = entry_of(from, label, m, i);
        if (at == SC_LAYERS - 1)
            return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, pos,
                            "name ranges of whole layers",
                            "there are more than %d kinds of layers",
                            SC_LAYERS - 2);
        if (at == m->n_layers) {
            layer[at] = from->layer[from->order[i]];
            layer[at].repeat = 0;
            layer[at].block = i;
            m->n_layers++;
        }
        layer[at].repeat++;
        order[i] = (uint8_t)at;
    }
    layer[m->n_layers++] = from->layer[from->n_layers - 1];
    return SC_OK;
}

/* "layers.moe.*" for blocks 4 to 7 only becomes "layers.moe.4-7.*", for blocks
 * 4, 6 ... "layers.moe.4+.*", so that rules for the kind still match. */
static const char *part_path(const sc_model *m, uint32_t at, sc_arena *a)
{
    const char *whole = m->layer[at].path;
    int n = (int)strlen(whole) - 2;
    uint32_t count = m->layer[at].repeat, first = m->layer[at].block, run = 0;
    while (first + run < m->n_blocks && m->order[first + run] == at) run++;
    if (count == 1) return sc_sprintf(a, "%.*s.%u.*", n, whole, first);
    if (run < count) return sc_sprintf(a, "%.*s.%u+.*", n, whole, first);
    return sc_sprintf(a, "%.*s.%u-%u.*", n, whole, first, first + count - 1);
}

sc_status sc_model_divide(const sc_model *from, const uint64_t *label,
                          sc_pos pos, sc_arena *a, const sc_model **out,
                          sc_err *err)
{
    sc_model *m = SC_NEW(a, sc_model);
    if (!m) return sc_error_nomem(err);
    SC_TRY(model_divide(from, label, pos, a, m, err));
    for (uint32_t at = 1; at + 1 < m->n_layers; at++) {
        sc_layer *l = &m->layer[at];
        if (from->layer[from->order[l->block]].repeat == l->repeat) continue;
        l->path = part_path(m, at, a);
        if (!l->path) return sc_error_nomem(err);
    }
    m->hash = sc_hash(label, from->n_blocks * sizeof *label, from->hash);
    SC_TRY(model_kinds(m, pos, a, err));
    *out = m;
    return SC_OK;
}
