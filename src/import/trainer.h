/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.h - reads arguments of HuggingFace's Trainer as options of a
 * command.
 */
#ifndef IMPORT_TRAINER_H
#define IMPORT_TRAINER_H

#include "import/sink.h"

typedef struct trainer_word {
    const char *text;
    sc_pos pos;
} trainer_word;

/* Whether a word is an option that only Trainer has. */
bool trainer_is(const trainer_word *w, uint32_t n);
sc_status trainer_words(import_sink *to, const trainer_word *w, uint32_t n);

#endif
