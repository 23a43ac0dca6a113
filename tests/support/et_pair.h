/* SPDX-License-Identifier: Apache-2.0 */
/* et_pair.h - a profile and an execution trace of one run, written by calls. */
#ifndef TESTS_ET_PAIR_H
#define TESTS_ET_PAIR_H

#include "base/base.h"

/* Generations of schemas: flat fields; attributes; attributes of collectives,
 * too; strides. */
typedef enum et_schema { ET_1_0_1, ET_1_0_3, ET_1_1_0, ET_1_1_1 } et_schema;

/* ---- the profile --------------------------------------------------------- */

/* An operator; `key` is "External id" or "Record function id". */
static inline void pair_op(sc_text *t, const char *name, int tid, int ts,
                           int dur, const char *key, int id)
{
    sc_text_add(t,
                "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"pid\":7,"
                "\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{\"%s\":%d}}",
                t->len ? ",\n" : "", name, tid, ts, dur, key, id);
}

static inline void pair_call(sc_text *t, const char *name, int tid, int ts,
                             int dur, int id)
{
    sc_text_add(t,
                "%s{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\","
                "\"pid\":7,\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{"
                "\"correlation\":%d}}",
                t->len ? ",\n" : "", name, tid, ts, dur, id);
}

static inline void pair_kernel(sc_text *t, const char *name, int stream, int ts,
                               int dur, int id)
{
    sc_text_add(t,
                "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,"
                "\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{\"device\":0,"
                "\"stream\":%d,\"correlation\":%d}}",
                t->len ? ",\n" : "", name, stream, ts, dur, stream, id);
}

/* ---- the execution trace ------------------------------------------------- */

typedef struct pair_node {
    const char *name;
    int id, record, thread;
    const char *schema;
    const char *in, *in_shapes, *in_types; /* lists without brackets */
    const char *out, *out_shapes, *out_types;
    const char *attrs; /* more of them; NULL */
} pair_node;

static inline const char *pair_text(const char *text)
{
    return text ? text : "";
}

static inline void pair_add_old(sc_text *t, const pair_node *n)
{
    sc_text_add(t,
                "%s\n{\"name\": \"%s\", \"id\": %d, \"rf_id\": %d, \"parent\": "
                "1, \"scope\": 0, \"tid\": %d, \"op_schema\": \"%s\", "
                "\"inputs\": [%s], \"input_shapes\": [%s], \"input_types\": "
                "[%s], \"outputs\": [%s], \"output_shapes\": [%s], "
                "\"output_types\": [%s]}",
                t->len ? "," : "", n->name, n->id, n->record, n->thread,
                pair_text(n->schema), pair_text(n->in), pair_text(n->in_shapes),
                pair_text(n->in_types), pair_text(n->out),
                pair_text(n->out_shapes), pair_text(n->out_types));
}

static inline void pair_add(sc_text *t, et_schema schema, const pair_node *n)
{
    const char *strides = schema == ET_1_1_1 ? ", \"strides\": []" : "";
    if (schema == ET_1_0_1) {
        pair_add_old(t, n);
        return;
    }
    sc_text_add(t,
                "%s\n{\"id\": %d, \"name\": \"%s\", \"ctrl_deps\": 1, "
                "\"inputs\": {\"values\": [%s], \"shapes\": [%s], \"types\": "
                "[%s]%s}, \"outputs\": {\"values\": [%s], \"shapes\": [%s], "
                "\"types\": [%s]%s}, \"attrs\": [{\"name\": \"rf_id\", "
                "\"type\": \"uint64\", \"value\": %d}, {\"name\": \"tid\", "
                "\"type\": \"uint64\", \"value\": %d}, {\"name\": \"scope\", "
                "\"type\": \"uint64\", \"value\": 0}, {\"name\": \"op_schema\","
                " \"type\": \"string\", \"value\": \"%s\"}",
                t->len ? "," : "", n->id, n->name, pair_text(n->in),
                pair_text(n->in_shapes), pair_text(n->in_types), strides,
                pair_text(n->out), pair_text(n->out_shapes),
                pair_text(n->out_types), strides, n->record, n->thread,
                pair_text(n->schema));
    if (n->attrs) sc_text_add(t, ", %s", n->attrs);
    sc_text_add(t, "]}");
}

static inline void pair_close(sc_text *t, et_schema schema)
{
    static const char *const names[] = {"1.0.1", "1.0.3-chakra.0.0.4",
                                        "1.1.0-chakra.0.0.4",
                                        "1.1.1-chakra.0.0.4"};
    sc_text all;
    sc_text_init(&all);
    sc_text_add(&all,
                "{\"schema\": \"%s\", \"pid\": 7, \"start_ts\": 1, \"nodes\": "
                "[%s], \"finish_ts\": 2}",
                names[schema], t->buf);
    sc_text_free(t);
    *t = all;
}

/* ---- a pair -------------------------------------------------------------- */

/* Three operators: a product on stream 7; what stream 20 computes from it, behind
 * a wait for an event or not; and a change of that in place. `key` as above. */
static inline void pair_profile(sc_text *t, const char *key, bool waits)
{
    pair_op(t, "aten::mm", 7, 0, 10, key, 1);
    pair_call(t, "cudaLaunchKernel", 7, 4, 2, 11);
    pair_kernel(t, "gemm", 7, 20, 100, 11);
    if (waits) pair_call(t, "cudaStreamWaitEvent", 7, 12, 1, 21);
    pair_op(t, "aten::relu", 7, 20, 10, key, 2);
    pair_call(t, "cudaLaunchKernel", 7, 24, 2, 12);
    pair_kernel(t, "relu", 20, 130, 50, 12);
    pair_op(t, "aten::add_", 7, 40, 10, key, 3);
    pair_call(t, "cudaLaunchKernel", 7, 44, 2, 13);
    pair_kernel(t, "add", 20, 190, 50, 13);
    sc_text all;
    sc_text_init(&all);
    sc_text_add(&all,
                "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA "
                "A100-SXM4-80GB\"}], \"traceEvents\": [%s]}",
                t->buf);
    sc_text_free(t);
    *t = all;
}

#define PAIR_TENSOR(id, storage) \
    "[" #id ", " #storage ", 0, 4096, 2, \"cuda:0\"]"
#define PAIR_HALF "\"Tensor(c10::Half)\""

static inline void pair_nodes(sc_text *t, et_schema schema)
{
    static const pair_node nodes[] = {
        {"[pytorch|profiler|execution_trace|thread]", 2, 0, 1, NULL, NULL, NULL,
         NULL, NULL, NULL, NULL, NULL},
        {"aten::mm", 6, 1, 1, "aten::mm(Tensor self, Tensor mat2) -> Tensor",
         PAIR_TENSOR(4, 5) ", " PAIR_TENSOR(7, 8), "[64, 64], [64, 64]",
         PAIR_HALF ", " PAIR_HALF, PAIR_TENSOR(9, 10), "[64, 64]", PAIR_HALF,
         NULL},
        {"aten::relu", 11, 2, 1, "aten::relu(Tensor self) -> Tensor",
         PAIR_TENSOR(9, 10), "[64, 64]", PAIR_HALF, PAIR_TENSOR(12, 13),
         "[64, 64]", PAIR_HALF, NULL},
        {"aten::add_", 14, 3, 1,
         "aten::add_.Scalar(Tensor(a!) self, Scalar other, *, int[] more) -> "
         "Tensor(a!)",
         PAIR_TENSOR(12, 13) ", 1.5, [1, 2], \"<None>\"",
         "[64, 64], [], [[], []], []",
         PAIR_HALF ", \"Double\", \"GenericList[Int,Int]\", \"None\"", NULL,
         NULL, NULL, NULL}};
    for (size_t i = 0; i < SC_COUNT(nodes); i++) pair_add(t, schema, &nodes[i]);
    pair_close(t, schema);
}

#endif
