/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h - what an operator of a trace computes, from its name and the shapes of
 * its inputs. */
#ifndef REPLAY_SHAPES_H
#define REPLAY_SHAPES_H

#include "cost/cost_alone.h"

#define SHAPE_TENSORS 16
#define SHAPE_DIMS    8

/* Inputs of an operator; scalars and lists of none have no dims. */
typedef struct shape_inputs {
    uint32_t n;

    struct shape_tensor {
        uint32_t n_dims;
        uint64_t dim[SHAPE_DIMS];
    } tensor[SHAPE_TENSORS];
} shape_inputs;

/* Reads "[[768], [788, 768], []]"; tensors of nested lists count one by one. What
 * has more tensors or dims is cut off. */
void shape_read(const char *text, shape_inputs *out);

/* Elements of a tensor; 0 if it has no dims. */
uint64_t shape_elements(const struct shape_tensor *t);

/* The precision of the first floating-point type in "["float", "Scalar"]". */
sc_precision shape_precision(const char *types);

/* Bytes of an element of the first type ("Long", "c10::Half", "float"). */
uint32_t shape_element_bytes(const char *types);

/* The kernel of an operator by its name; an unknown operator moves its inputs and
 * writes as much as the largest. `concrete` are its scalar inputs, from which the
 * stride and the padding of a convolution are read: '["", "", "[3, 3]", ...]'; ""
 * if the trace has none, for windows that move by one position and keep the size.
 * False if there are no shapes. */
bool shape_kernel(const char *name, const shape_inputs *in, sc_precision p,
                  const char *concrete, sc_kernel *out);

/* The kind of the operator's main kernel by its name alone; `*batched`: of products,
 * one for each sample. False: it is of no family, as element-wise ones. */
bool shape_kind(const char *name, sc_kernel_kind *out, bool *batched);

/* Whether a model knows what the operator does: it is of a family, or reads and
 * writes each element once. */
bool shape_known(const char *name);

/* The precision of an operator's products by the name of their kernel, which
 * says that fp32 runs as TF32. */
sc_precision shape_kernel_precision(const char *kernel, sc_precision p);

/* Replaces the operator's kernel by one that only accompanies it, if its name
 * says so: an exchange of dims, the sum of parts, a mean. An element-wise one
 * may address its elements one by one. */
void shape_part(const char *kernel, const shape_inputs *in, sc_kernel *inout);

#endif
