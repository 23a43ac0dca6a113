/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_convert.h - inside model/: what converting a generated transformer to
 * an operator graph keeps between operators and layers.
 */
#ifndef MODEL_GRAPH_CONVERT_H
#define MODEL_GRAPH_CONVERT_H

#include "model/graph_build.h"

/* Stacks of T5: relative positions are learned once per stack. */
enum { CONVERT_STACKS = 2 };

typedef struct convert {
    const sc_model *m;
    uint64_t seq;
    bool unfused;
    gb_graph b;
    gb_value ids;     /* tokens: later predictions and decoders look up too */
    gb_value table;   /* of the words: the head's too where it is tied */
    gb_value head;    /* weight of the head: of later predictions too */
    gb_value labels;  /* of all tokens */
    gb_value encoded; /* what an encoder made */
    gb_value relative[CONVERT_STACKS];
    unsigned stack;
} convert;

/* Operator `op` of a layer, with what it reads; `q` is the second input: a
 * residual, keys and values, scores of a router. */
gb_value convert_op(convert *c, const sc_operator *op, gb_value x, gb_value y);
/* The table of the words, once more. */
gb_value convert_words_again(convert *c, const char *name);

#endif
