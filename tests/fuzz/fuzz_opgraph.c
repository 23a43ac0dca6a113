/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of operators: any bytes are read or refused; what is read is sound,
 * and reads back from what is written of it. */
#include <stepcast/model_graph.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const sc_opgraph *read_graph(const char *text, size_t len, sc_arena *a,
                                    sc_err *err)
{
    const sc_opgraph *g = NULL;
    sc_status s = sc_opgraph_read(text, len, "fuzz.yml", a, &g, err);
    if (s == SC_EBUG) abort();
    if ((s == SC_OK) != (g != NULL) || (s == SC_OK) != (err->n == 0)) abort();
    return g;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_text t;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_text_init(&t);
    const sc_opgraph *g = read_graph((const char *)data, size, &a, &err);
    if (g && g->n_ops < 64) {
        if (sc_opgraph_check(g, &err) != SC_OK) abort();
        sc_opgraph_write(g, &t);
        const sc_opgraph *again = read_graph(t.buf, t.len, &a, &err);
        bool memory = err.n > 0 && err.d[0].code == SC_C_MEMORY;
        if (!memory &&
            (!again || again->n_ops != g->n_ops || again->params != g->params))
            abort();
    }
    sc_text_free(&t);
    sc_arena_free(&a);
    return 0;
}
