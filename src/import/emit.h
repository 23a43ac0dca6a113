/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - writers of other programs' files.  Each writes what its format can
 * state; emit.c compares what the reader makes of it with the job.
 */
#ifndef IMPORT_EMIT_H
#define IMPORT_EMIT_H

#include "import/import_emit.h"
#include "import/megatron.h"

typedef struct emitter {
    sc_arena *a;
    sc_err *err;
    sc_emit_format format;
    const char *title; /* of the program, in errors */
    bool program;      /* of a training program */
    const char *dir;   /* in texts */
    const sc_job *job; /* with every choice */
    const sc_run *run;
    const sc_prediction *prediction;
    bool with_model;        /* the file has the model, too */
    const char *missing;    /* key of the model that the format lacks; "" */
    const char *command;    /* for a comment; "" until it is known */
    const char *value[M_N]; /* options of Megatron-LM, as emit_options() sets
                               them; NULL: not given, "": a flag */
    sc_emitted *out;
} emitter;

/* Options of Megatron-LM that the job, and with_model its model, become. */
sc_status emit_options(emitter *e);
sc_status emit_model_options(emitter *e);

sc_status emit_number(emitter *e, megatron_id id, int64_t v);
void emit_flag(emitter *e, megatron_id id, bool on);

/* "layers.0-1,layers.30-31" as numbers of first and last blocks; false: other
 * patterns. */
bool emit_ends(const char *patterns, int64_t layers, int64_t *first,
               int64_t *last);

/* Bytes per gradient that the job has, from its option or the program. */
double emit_grad_bytes(const sc_job *job, const sc_run *run);

/* Adds a file; `text` is freed. */
sc_status emit_file(emitter *e, const char *name, sc_text *text);

/* Lines "# ..." with the model, the machine and the command. */
void emit_comment(const emitter *e, sc_text *out);

sc_status emit_megatron(emitter *e);
sc_status emit_nemo(emitter *e);
sc_status emit_deepspeed(emitter *e);
sc_status emit_torchtitan(emitter *e);
sc_status emit_strategy(emitter *e);
sc_status emit_job(emitter *e);
/* These write no job, and their own e->command. */
sc_status emit_cluster(emitter *e);
sc_status emit_astra_sim(emitter *e);

/* Whether both jobs have the same choice `k`, after each was resolved for its
 * run; `run` is that of `got`. */
bool emit_same(const emitter *e, const sc_key *k, const sc_job *want,
               const sc_job *got, const sc_run *run);
/* Reports what the job keeps in expanded memory, which no training program
 * names. */
sc_status emit_expanded(const emitter *e);
/* Reports each choice that differs at the option of `want`. */
sc_status emit_compare(const emitter *e, const sc_job *want, const sc_job *got,
                       const sc_run *run);

#endif
