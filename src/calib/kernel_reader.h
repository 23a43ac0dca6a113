/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_reader.h - what the readers of the tables of kernels share. */
#ifndef CALIB_KERNEL_READER_H
#define CALIB_KERNEL_READER_H

#include "calib/kernel_table.h"

/* X(enumerator, header without quotes, lowest, highest). A column is text if
 * highest is 0, whole numbers if lowest is 0 or more, and reals above 0 if
 * lowest is -1. */
#define KERNEL_COLUMNS(X)                                \
    X(K_DEVICE, device, 0, 0)                            \
    X(K_SOFTWARE, software, 0, 0)                        \
    X(K_DTYPE, dtype, 0, 0)                              \
    X(K_KERNEL, kernel, 0, 0)                            \
    X(K_OPERATION, operation, 0, 0)                      \
    X(K_LIBRARY, library, 0, 0)                          \
    X(K_VERSION, version, 0, 0)                          \
    X(K_DISTRIBUTION, distribution, 0, 0)                \
    X(K_SECONDS, seconds, -1, 1e6)                       \
    X(K_CAST_SECONDS, quantize_seconds, -1, 1e6)         \
    X(K_M, m, 1, 1e9)                                    \
    X(K_N, n, 1, 1e9)                                    \
    X(K_K, k, 1, 1e9)                                    \
    X(K_BATCH, batch, 1, 1e6)                            \
    X(K_HEADS, heads, 1, 1e5)                            \
    X(K_KV_HEADS, kv_heads, 1, 1e5)                      \
    X(K_HEAD_DIM, head_dim, 1, 1e5)                      \
    X(K_SEQ, seq, 1, 1e9)                                \
    X(K_CAUSAL, causal, 0, 1)                            \
    X(K_WINDOW, window, 0, 1e9)                          \
    X(K_QK_DIM, qk_head_dim, 1, 1e5)                     \
    X(K_V_DIM, v_head_dim, 1, 1e5)                       \
    X(K_TOKENS, tokens, 1, 1e9)                          \
    X(K_HIDDEN, hidden, 1, 1e7)                          \
    X(K_INTER, inter, 1, 1e7)                            \
    X(K_GATED, gated, 0, 1)                              \
    X(K_EXPERTS, experts, 1, 1e5)                        \
    X(K_TOPK, topk, 1, 1e5)                              \
    X(K_EP, ep, 1, 1e5)                                  \
    X(K_TP, tp, 1, 1e5)                                  \
    X(K_NODES, nodes, 1, 1e5)                            \
    X(K_GPUS, gpus, 1, 1e5)                              \
    X(K_BYTES, bytes, -1, 1e15)                          \
    X(K_SMS, sms, 0, 1e4)                                \
    X(K_OPNAME, OPName, 0, 0)                            \
    X(K_LATENCY, Latency, -1, 1e9)                       \
    X(K_NS_DEVICE, Device, 0, 0)                         \
    X(K_NS_KERNEL, Kernel Name, 0, 0)                    \
    X(K_B, B, 1, 1e9)                                    \
    X(K_NS_M, M, 1, 1e9)                                 \
    X(K_NS_N, N, 1, 1e9)                                 \
    X(K_NS_K, K, 1, 1e9)                                 \
    X(K_H, H, 1, 1e9)                                    \
    X(K_IN, Input_Channel, 1, 1e6)                       \
    X(K_OUT, Output_Channel, 1, 1e6)                     \
    X(K_SIDE, Kernel_Szie, 1, 1e4)                       \
    X(K_SIZE_IN, Input_Size, 1, 1e5)                     \
    X(K_STRIDE, Stride, 1, 1e4)                          \
    X(K_PADDING, Padding, 0, 1e4)                        \
    X(K_N_HEAD, n_head, 1, 1e5)                          \
    X(K_N_KV_HEAD, n_kv_head, 1, 1e5)                    \
    X(K_N_EMBD, n_embd, 1, 1e7)                          \
    X(K_N_FFN, n_expanded_embd, 1, 1e8)                  \
    X(K_GATED_MLP, use_gated_mlp, 0, 0)                  \
    X(K_NUM_TOKENS, num_tokens, 1, 1e9)                  \
    X(K_SHARDS, num_tensor_parallel_workers, 1, 1e5)     \
    X(K_UP_TIME, time_stats.mlp_up_proj.median, -1, 1e9) \
    X(K_COLLECTIVE, collective, 0, 0)                    \
    X(K_WORKERS, num_workers, 1, 1e5)                    \
    X(K_SIZE, size, -1, 1e15)                            \
    X(K_PER_NODE, devices_per_node, 1, 1e5)              \
    X(K_MAX_PER_NODE, max_devices_per_node, 1, 1e5)      \
    X(K_RUN, Run, 0, 0)                                  \
    X(K_RUN_SECONDS, Seconds, -1, 1e6)                   \
    X(K_TRAINING, Training, 0, 1)                        \
    X(K_TIMES, Times, 1, 1e5)                            \
    X(K_NAME, Name, 0, 0)                                \
    X(K_GRAPH_OP, OpName, 0, 0)                          \
    X(K_FORWARD, FwOps, 0, 0)                            \
    X(K_BACKWARD, BwOps, 0, 0)                           \
    X(K_ACCUMULATE, AccOps, 0, 0)                        \
    X(K_PREV, Prev, 0, 0)                                \
    X(K_SHAPES, InputShapes, 0, 0)                       \
    X(K_SHAPE, OutputShape, 0, 0)

#define KERNEL_COLUMN_ENUM(id, name, lo, hi) id,

typedef enum kernel_column {
    K_NONE,
    KERNEL_COLUMNS(KERNEL_COLUMN_ENUM) KERNEL_N_COLUMNS
} kernel_column;

#undef KERNEL_COLUMN_ENUM

#define KERNEL_PARTS 24 /* kernels of one line of a table at most */

/* A device or machine that earlier rows have found. */
typedef struct kernel_known {
    const char *text;
    uint32_t nodes, per_node;
    const void *value;
    const char *warning;
} kernel_known;

typedef struct kernel_known_list {
    uint32_t n, cap;
    kernel_known *k;
} kernel_known_list;

typedef struct kernel_reader {
    const sc_csv *t;
    sc_arena *a;
    sc_err *err;
    calib_kernel_table table;
    uint32_t i; /* the row that is read */
    int col[KERNEL_N_COLUMNS];
    kernel_known_list devices, machines;
    const char *path_device, *path_folder; /* NULL: not looked for yet */
    sc_status status;                      /* of the first error */
    bool bad;                              /* this row has an error */
    const char *missing;                   /* an empty cell of this row; NULL */
    uint32_t n, cap;
    calib_kernel_row *rows;
    uint32_t n_parts;
    sc_kernel part[KERNEL_PARTS]; /* of the row that is being read */
    double times[KERNEL_PARTS];
    /* The last row, if it has several lines, and all its kernels. */
    const char *run; /* NULL: none */
    uint32_t run_cap;
    sc_kernel *run_part; /* [run_cap] */
    double *run_times;   /* [run_cap] */
} kernel_reader;

/* Cells of the present row. The numbers report errors and return the lowest
 * then. An empty cell gives the row a reason. */
const char *kernel_text(const kernel_reader *rd, kernel_column c);
double kernel_number(kernel_reader *rd, kernel_column c);
uint64_t kernel_whole(kernel_reader *rd, kernel_column c);

/* The same for a cell that may be empty or have no column. */
uint64_t kernel_optional(kernel_reader *rd, kernel_column c,
                         uint64_t otherwise);

/* Seconds that may be missing: NaN. */
double kernel_optional_seconds(kernel_reader *rd, kernel_column c);

/* The milliseconds that Vidur's column for `name` has, in seconds; false: there
 * is no such column, or the cell is empty. */
bool kernel_vidur_seconds(kernel_reader *rd, const char *name, double *out);

/* Starts a row with the device of that text. NULL after an error. `suffix` of
 * the id is NULL, except if a line has several rows. */
calib_kernel_row *kernel_row(kernel_reader *rd, const char *device,
                             const char *operation, const char *suffix);

/* Appends a kernel to the present row; the next call of kernel_finish() moves
 * them to the row. */
void kernel_push(kernel_reader *rd, sc_kernel k);
/* One that runs several times. */
void kernel_push_times(kernel_reader *rd, sc_kernel k, uint64_t times);
void kernel_finish(kernel_reader *rd, calib_kernel_row *row);
/* Moves them behind those of the last row of rd->rows. */
void kernel_append(kernel_reader *rd, calib_kernel_row *row);

/* Adds a constant text, or one in the arena. */
void kernel_warn(calib_kernel_row *row, const char *warning);

/* The first failure of memory or input of the reader. */
void kernel_fail(kernel_reader *rd, sc_status s);

/* The precision and the scaling that a table's dtype means. */
void kernel_precision(calib_kernel_row *row, const char *dtype,
                      sc_precision *precision, sc_scaling *scaling);

/* The machine of `nodes` times `per_node` devices of the row's device in their
 * usual node; NULL: there is none, and the row has a reason. `spec` names a
 * node of the catalogue instead; NULL: the usual one. */
const sc_hw *kernel_machine(kernel_reader *rd, calib_kernel_row *row,
                            const char *spec, uint32_t nodes,
                            uint32_t per_node);

/* The device that a folder of the path names; "" if none does. Vidur has no
 * column for it. Sets rd->path_folder. */
const char *kernel_path_device(kernel_reader *rd);

/* One row of the table; kernel_shape.c, kernel_operator.c, kernel_coll.c,
 * kernel_network.c. */
void kernel_read_gemm(kernel_reader *rd);
void kernel_read_attention(kernel_reader *rd);
void kernel_read_mla(kernel_reader *rd);
void kernel_read_moe(kernel_reader *rd);
void kernel_read_quant(kernel_reader *rd);
void kernel_read_comm(kernel_reader *rd);
void kernel_read_deepep(kernel_reader *rd);
void kernel_read_operator(kernel_reader *rd);
void kernel_read_layer(kernel_reader *rd);
void kernel_read_vidur_coll(kernel_reader *rd);
void kernel_read_network(kernel_reader *rd);

#endif
