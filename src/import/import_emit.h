/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_emit.h - a predicted job as files of training programs.
 *
 * What is written is read back by the readers of import.h and predicted again:
 * every choice must be the same.  A choice that a format can't state is an
 * error that names its option; nothing is dropped.
 */
#ifndef SC_IMPORT_EMIT_H
#define SC_IMPORT_EMIT_H

#include "predict/predict.h"

typedef enum sc_emit_format {
    SC_EMIT_MEGATRON,   /* a launch script of Megatron-LM */
    SC_EMIT_NEMO,       /* YAML of NeMo 2 */
    SC_EMIT_DEEPSPEED,  /* JSON, and a launch script */
    SC_EMIT_TORCHTITAN, /* TOML */
    SC_EMIT_STRATEGY,   /* strategy.yml */
    SC_EMIT_JOB,        /* a file for --config */
    SC_EMIT_CLUSTER,    /* cluster.yml: the machine alone */
    SC_EMIT_ASTRA_SIM,  /* the same as network, system and memory files */
    SC_N_EMITS
} sc_emit_format;

extern const char *const sc_emit_names[]; /* "megatron" ...; NULL ends */

typedef struct sc_emitted_file {
    const char *name, *text;
} sc_emitted_file;

typedef struct sc_emitted {
    uint32_t n_files;
    sc_emitted_file file[3];
    const char *command; /* predicts the files: "stepcast predict --from ..." */
    const char *note;    /* what the files leave to the user; NULL: nothing */
} sc_emitted;

/* The files for `job`, which was predicted as `p`, in folder `dir`, which is
 * only used in texts. The arena has them. Errors, all in one pass:
 * SC_C_UNSUPPORTED at the option of each choice that the format can't state. */
sc_status sc_emit(sc_emit_format format, const char *dir, const sc_job *job,
                  const sc_prediction *p, sc_arena *a, sc_emitted *out,
                  sc_err *err);

/* Writes the files into folder `dir`, which is made if needed. */
sc_status sc_emit_write(const sc_emitted *e, const char *dir, sc_arena *a,
                        sc_err *err);

#endif
