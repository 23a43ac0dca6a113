/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.h - the vocabulary size of a tokenizer of which a file only has the
 * name.
 */
#ifndef IMPORT_TOKENIZER_H
#define IMPORT_TOKENIZER_H

#include <stdint.h>

/* The size of the vocabulary of a tokenizer, 0 if it is not known.  `type` is
 * Megatron-LM's name of the type (NULL: not given, then GPT2BPETokenizer),
 * `model` the name or file of its model ("": not given).  `*what` gets a name
 * for people. */
int64_t import_tokenizer(const char *type, const char *model,
                         const char **what);

#endif
