/* SPDX-License-Identifier: Apache-2.0 */
/* trace_model.h - networks of recorded traces. */
#ifndef TESTS_TRACE_MODEL_H
#define TESTS_TRACE_MODEL_H

#include "fixture.h"
#include "model/model_net.h"

#include <stdlib.h>
#include <string.h>

static inline const sc_net *load(const char *path)
{
    const sc_model *m = NULL;
    sc_err_init(&err);
    if (sc_model_load(path, sc_pos_none(), &arena, &m, &err) != SC_OK)
        fail_msg("%s: %s", path, err.d[0].msg);
    assert_non_null(m->net);
    assert_int_equal(sc_net_check(m->net, &err), SC_OK);
    return m->net;
}

static inline const sc_net *corpus(const char *name)
{
    const char *root = getenv("STEPCAST_SOURCE");
    return load(sc_sprintf(&arena, "%s/tests/fuzz/corpus/model_trace/%s",
                           root ? root : ".", name));
}

static inline const sc_net_op *op(const sc_net *g, uint32_t i, const char *path,
                                  sc_net_type type)
{
    assert_true(i < g->n_ops);
    assert_string_equal(g->op[i].path, path);
    assert_int_equal(g->op[i].type, type);
    return &g->op[i];
}

#endif
