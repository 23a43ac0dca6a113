/* SPDX-License-Identifier: Apache-2.0 */
/* hw_class.h - classes of generations whose kernels have common constants. */
#ifndef HW_CLASS_H
#define HW_CLASS_H

/* Selects the fitted constants of matrix products and attention.
 * X(enumerator, name) */
#define SC_FIT_CLASSES(X)                                              \
    X(SC_FIT_AMPERE, "ampere") /* and earlier generations of NVIDIA */ \
    X(SC_FIT_HOPPER, "hopper")                                         \
    X(SC_FIT_BLACKWELL, "blackwell")                                   \
    X(SC_FIT_ADA, "ada") /* boards for graphics and inference */       \
    X(SC_FIT_CDNA, "cdna")                                             \
    X(SC_FIT_GAUDI, "gaudi") /* and other accelerators */              \
    X(SC_FIT_TPU, "tpu")                                               \
    X(SC_FIT_TPU6, "tpu6")

#define SC_FIT_ENUM(id, name) id,

typedef enum sc_fit_class {
    SC_FIT_CLASSES(SC_FIT_ENUM) SC_N_FIT_CLASSES
} sc_fit_class;

#undef SC_FIT_ENUM

extern const char *const sc_fit_class_names[]; /* NULL ends */

#endif
