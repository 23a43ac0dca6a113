/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - reads tables of measured training runs, row by row, as jobs for
 * sc_predict() (columns: data/validation/README.md).
 *
 * If a cell is empty or contains "see recipe", sc_predict() infers its value.
 * Values that have no place in sc_job (heads, vocabulary) are filled in here,
 * and `assumptions` lists them.  What is not known (software, device, precision,
 * conditions) is replaced by the nearest that is, with a warning.  A table may
 * also have the options of `predict` as columns (tp_overlap: --tp-overlap) and
 * keys of model.yml (model.position). Nothing depends on the family.
 */
#ifndef CALIB_RUNS_H
#define CALIB_RUNS_H

#include "predict/predict.h"

/* The role of a column. */
typedef enum calib_role {
    CALIB_INFO,    /* names, sources, measurements */
    CALIB_CONFIG,  /* part of the configuration */
    CALIB_PARALLEL /* like CONFIG: parallelization and micro-batch */
} calib_role;

/* X(enumerator, header, role, lowest, highest). A column is text if highest is
 * 0, whole numbers if lowest is 0 or more, and reals from 0 on if lowest is -1.
 * Gradient accumulation only gives a global batch that is not stated. */
#define CALIB_COLUMNS(X)                                        \
    X(C_ID, "id", CALIB_INFO, 0, 0)                             \
    X(C_FAMILY, "family", CALIB_CONFIG, 0, 0)                   \
    X(C_MODEL, "model", CALIB_CONFIG, 0, 0)                     \
    X(C_CLASS, "model_class", CALIB_CONFIG, 0, 0)               \
    X(C_LAYERS, "layers", CALIB_CONFIG, 1, 1e5)                 \
    X(C_HIDDEN, "hidden", CALIB_CONFIG, 1, 1e7)                 \
    X(C_HEADS, "heads", CALIB_CONFIG, 1, 1e5)                   \
    X(C_KV_HEADS, "kv_heads", CALIB_CONFIG, 1, 1e5)             \
    X(C_FFN, "ffn", CALIB_CONFIG, 1, 1e8)                       \
    X(C_VOCAB, "vocab", CALIB_CONFIG, 1, 1e8)                   \
    X(C_SEQ, "seq_len", CALIB_CONFIG, 1, 1e8)                   \
    X(C_PARAMS, "params_b", CALIB_INFO, -1, 1e6)                \
    X(C_EXPERTS, "experts", CALIB_CONFIG, 0, 1e5)               \
    X(C_TOPK, "topk", CALIB_CONFIG, 0, 1e4)                     \
    X(C_MOE_FFN, "moe_ffn", CALIB_CONFIG, 0, 1e8)               \
    X(C_GPU, "gpu", CALIB_CONFIG, 0, 0)                         \
    X(C_GPUS, "gpus", CALIB_CONFIG, 1, 1e7)                     \
    X(C_PER_NODE, "gpus_per_node", CALIB_CONFIG, 1, 1e6)        \
    X(C_NODES, "nodes", CALIB_CONFIG, 1, 1e7)                   \
    X(C_INTRA, "intra_gbps_per_gpu_uni", CALIB_CONFIG, -1, 1e6) \
    X(C_INTER, "inter_gbps_per_gpu_uni", CALIB_CONFIG, -1, 1e6) \
    X(C_SOFTWARE, "software", CALIB_CONFIG, 0, 0)               \
    X(C_DATE, "software_date", CALIB_CONFIG, 0, 0)              \
    X(C_PRECISION, "precision", CALIB_CONFIG, 0, 0)             \
    X(C_GBS, "gbs", CALIB_CONFIG, 1, 1e9)                       \
    X(C_MBS, "mbs", CALIB_PARALLEL, 1, 1e6)                     \
    X(C_TP, "tp", CALIB_PARALLEL, 1, 1e6)                       \
    X(C_PP, "pp", CALIB_PARALLEL, 1, 1e6)                       \
    X(C_VPP, "vpp", CALIB_PARALLEL, 1, 1e4)                     \
    X(C_CP, "cp", CALIB_PARALLEL, 1, 1e6)                       \
    X(C_EP, "ep", CALIB_PARALLEL, 1, 1e6)                       \
    X(C_DP, "dp", CALIB_PARALLEL, 1, 1e7)                       \
    X(C_SP, "sp", CALIB_PARALLEL, 0, 0)                         \
    X(C_SHARD, "shard", CALIB_CONFIG, 0, 0)                     \
    X(C_RECOMPUTE, "recompute", CALIB_CONFIG, 0, 0)             \
    X(C_GA, "ga", CALIB_INFO, 0, 1e9)                           \
    X(C_OVERLAP, "overlap_notes", CALIB_CONFIG, 0, 0)           \
    X(C_ITER, "iter_s", CALIB_INFO, -1, 1e9)                    \
    X(C_TOKENS, "tokens_s_gpu", CALIB_INFO, -1, 1e12)           \
    X(C_SAMPLES, "samples_s", CALIB_INFO, -1, 1e12)             \
    X(C_MEM, "mem_gib", CALIB_INFO, -1, 1e6)                    \
    X(C_MEM_KIND, "mem_kind", CALIB_INFO, 0, 0)                 \
    X(C_QUALITY, "quality", CALIB_INFO, 0, 0)                   \
    X(C_OUTCOME, "outcome", CALIB_INFO, 0, 0)                   \
    X(C_CONDITIONS, "conditions", CALIB_CONFIG, 0, 0)           \
    X(C_NOTES, "notes", CALIB_INFO, 0, 0)

#define CALIB_COLUMN_ENUM(id, name, role, lo, hi) id,

typedef enum calib_column {
    CALIB_COLUMNS(CALIB_COLUMN_ENUM) CALIB_N_COLUMNS
} calib_column;

#undef CALIB_COLUMN_ENUM

/* A column that is an option of `predict` or a key of model.yml. */
typedef struct calib_extra {
    const sc_key *key;
    bool of_model;
    int col;
    const char *text; /* of the row; "": not given */
    sc_pos pos;
} calib_extra;

/* The cells of one row. */
typedef struct calib_cells {
    uint32_t n_extra;
    calib_extra *extra;                /* [n_extra] */
    const char *text[CALIB_N_COLUMNS]; /* "": not given */
    double number[CALIB_N_COLUMNS];    /* NaN: the cell is empty or text */
    sc_pos pos;                        /* of the row */
} calib_cells;

#define CALIB_ASSUMPTIONS 12

enum { CALIB_UNTIED = 1, CALIB_TIED = 2 };

/* What the words of a row state beside the options of its job. */
typedef struct calib_facts {
    const char *variant; /* "eager": another profile of the program; NULL */
    int lora;            /* rank of adapters; 0: none */
    int tied;            /* CALIB_TIED, CALIB_UNTIED; 0: not stated */
    bool formula;        /* the memory is a formula's */
    sc_net_kind network; /* between nodes */
} calib_facts;

/* What is known of whether a configuration fits. */
typedef enum calib_outcome {
    CALIB_UNKNOWN, /* neither stated nor measured */
    CALIB_RAN,
    CALIB_OOM /* it ran out of memory */
} calib_outcome;

typedef struct calib_run {
    const char *id, *family, *device, *model_name;
    const char *reason;   /* why the row can't be predicted; NULL: it can */
    const char *unscored; /* why its time is not compared; NULL: it is
                             compared */
    sc_job job;
    const sc_hw *hw; /* hw, model, sw: NULL if there is a reason */
    const sc_model *model;
    const sc_software *sw;
    double measured;     /* s; NaN: nothing to compare with */
    double rate;         /* tokens/s of all devices, where the batch that makes
                            it a step time is inferred; NaN */
    double mem_measured; /* bytes; NaN */
    uint8_t outcome;     /* calib_outcome */
    bool mem_formula;    /* mem_measured is a formula over the blocks of the
                            first stage, not a measurement */
    uint64_t config_key; /* equal for repetitions of one configuration */
    uint64_t group_key;  /* equal for rows that differ only in parallelization
                            and micro-batch */
    sc_pos pos;
    uint32_t relaxed; /* facts that were left open, see calib_relax(); no fit
                         uses such a row */
    uint32_t n_assumptions, n_warnings;
    const char *assumptions[CALIB_ASSUMPTIONS], *warnings[CALIB_ASSUMPTIONS];
} calib_run;

/* The header of a column, its role, and whether its cells are text. */
const char *calib_column_name(calib_column c);
calib_role calib_column_role(calib_column c);
bool calib_column_text(calib_column c);

/* Index of a column under its name or one of its usual other names ("Global
 * Batch Size"); -1: the table lacks it. `scale` turns its numbers into the
 * column's unit. */
int calib_find_column(const sc_csv *t, calib_column c, double *scale);

/* Whether a cell says that its value is not stated: "", "n/a", "see recipe". */
bool calib_cell_empty(calib_column c, const char *text);

/* Reads a number within the limits of its column: "1,024", or "8k" tokens. */
sc_status calib_read_number(calib_column c, const char *text, sc_pos pos,
                            double *out, sc_err *err);

/* True if the header is that of a table of training runs, with a device, a
 * number of them, a model and a measurement, or that of calib_oom_table(). */
bool calib_runs_table(const sc_csv *t);
/* The first column that a table of runs lacks; NULL: none. */
const char *calib_missing_column(const sc_csv *t);

/* True if the header is that of the Ultra-Scale Playbook's configurations that
 * ran out of memory: model, nodes, mbs, ga, dp, pp, tp, zero. */
bool calib_oom_table(const sc_csv *t);

/* Fills the cells of a row of such a table. Numbers are not checked. */
sc_status calib_oom_cells(const sc_csv *t, uint32_t row, sc_arena *a,
                          const char *text[CALIB_N_COLUMNS], sc_err *err);

/* Reads all rows of the tables, in order, [n] in the arena. Errors: a table
 * with another header, a cell that is no number or out of range (all in one
 * pass). A well-formed row that can't be expressed as a job has a `reason`. */
sc_status calib_runs_read(const sc_csv *tables, uint32_t n_tables, sc_arena *a,
                          calib_run **out, uint32_t *n, sc_err *err);

/* Only reports errors in cells. */
sc_status calib_runs_check(const sc_csv *t, sc_arena *a, sc_err *err);

/* Sets job, model and name of the software profile (NULL: the default) of `run`
 * from `c`, or its `reason`. */
sc_status calib_run_expand(const calib_cells *c, const calib_facts *f,
                           sc_arena *a, calib_run *run, const char **software,
                           sc_err *err);

/* Whether a key of sc_job_keys is the batch of a step. */
bool calib_of_batch(const sc_key *key);

/* Leaves open how a job divides its model and its batch; true if it stated
 * anything of it. */
bool calib_leave_degrees(sc_job *job);

/* Rounds the batch of a step up to a multiple of the devices; true if it was
 * none. */
bool calib_round_batch(const sc_hw *hw, sc_job *job);

/* Appends a text to the assumptions or the warnings of a row, if there is room. */
sc_status calib_assume(calib_run *run, sc_arena *a, sc_err *err,
                       const char *fmt, ...) SC_PRINTF(4, 5);
sc_status calib_warn(calib_run *run, sc_arena *a, sc_err *err, const char *fmt,
                     ...) SC_PRINTF(4, 5);

/* Sets options of run->job and `out` from the known words of a row. */
sc_status calib_read_words(const calib_cells *c, sc_arena *a, calib_run *run,
                           calib_facts *out, sc_err *err);

/* Sets an option from "tp-overlap=yes". */
sc_status calib_set_option(const char *setting, sc_pos pos, sc_arena *a,
                           sc_job *job, sc_err *err);

/* "Qwen3_30B_a3B" as the catalogue spells it: "qwen3-30b-a3b". */
void calib_catalogue_name(const char *name, char *out, size_t size);

/* The parameters in billions that a name of the catalogue's spelling states
 * ("70b"); NaN: none. */
double calib_name_params(const char *name);

/* The published transformer that is nearest to a name without one: of the same
 * first letters if there are such, then with the nearest number of parameters,
 * in billions (NaN: not known). NULL: neither is known. */
sc_status calib_nearest_model(const char *name, double params, bool experts,
                              sc_arena *a, const sc_model **out, sc_err *err);

/* Sets run->model, or its `reason`. */
sc_status calib_run_model(const calib_cells *c, const calib_facts *f,
                          sc_arena *a, calib_run *run, sc_err *err);

/* If prediction of one row fails because of its input, sets the row's reason
 * (text in the arena) and returns SC_OK. Other errors are recorded in `err`. */
sc_status calib_row_reason(sc_status s, const sc_err *why, sc_arena *a,
                           const char **reason, sc_err *err);

#endif
