/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hfconfig.c - any bytes as a HuggingFace config.json; what is accepted
 * must hold together. */
#include "model/read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    const sc_model *m = NULL, *again = NULL;

    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s =
        model_read_hf((const char *)data, size, "config.json", &a, &m, &err);
    if (s != SC_OK) {
        /* an error says what, and writes nothing */
        if (err.n == 0 || m != NULL || s == SC_EBUG) abort();
    } else {
        if (!(sc_model_flops(m, 1, 1, false) > 0)) abort();
        /* a completed transformer is its own completion */
        s = sc_model_from_transformer(&m->t, sc_pos_none(), &a, &again, &err);
        if (s != SC_OK || again->hash != m->hash ||
            again->params != m->params) {
            abort();
        }
    }
    sc_arena_free(&a);
    return 0;
}
