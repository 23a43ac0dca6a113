/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - which blocks of a model have a feature, as Megatron-LM's options
 * state it: a number, or a Python list with 0 or 1 for each block.
 */
#ifndef IMPORT_BLOCKS_H
#define IMPORT_BLOCKS_H

#include <stdint.h>

typedef enum import_blocks_form {
    IMPORT_BLOCKS_BAD,    /* neither a number nor a list, or numbers other than
                             0 and 1 */
    IMPORT_BLOCKS_EVERY,  /* `every` */
    IMPORT_BLOCKS_LIST,   /* the list is in the next fields */
    IMPORT_BLOCKS_LENGTH, /* a list of the wrong length `n` */
} import_blocks_form;

typedef struct import_blocks {
    int64_t every, n;
    int64_t n_ones, leading_zeros;
    /* The period, if there is one: only the first of each is 1, only the last
     * is 1, only the last is 0.  0: there is none. */
    int64_t first_one_of, last_one_of, last_zero_of;
} import_blocks;

/* `text`: "4", "[1,0,1,0]", "([0]*3+[1]*58)". */
import_blocks_form import_blocks_read(const char *text, int64_t layers,
                                      import_blocks *out);

#endif
