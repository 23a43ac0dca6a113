/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_arch.h - what follows from a device's generation, one table row for
 * each. A new generation is a new row; no other code compares names of
 * generations.
 */
#ifndef HW_ARCH_H
#define HW_ARCH_H

#include "hw/hw_class.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows of NCCL's tables by generation, in their order. */
typedef enum sc_nccl_row {
    SC_NCCL_VOLTA, /* and before */
    SC_NCCL_AMPERE,
    SC_NCCL_HOPPER,
    SC_NCCL_BLACKWELL
} sc_nccl_row;

typedef struct sc_arch {
    const char *name; /* as in sc_device.arch; NULL: not in the table */
    sc_fit_class fit;
    bool ultra;           /* Blackwell's second chip has factors of its own */
    bool mx_products;     /* products take MX block scales */
    sc_nccl_row nccl_row; /* if there is no NCCL: the row that matches
                             measurements best */
    bool in_nccl_2_10;    /* NCCL 2.10 has tables for it */
    uint32_t sm;          /* CUDA's number of the generation; 0: it has none */
    uint32_t cpu_model;   /* family and model of an Intel host of that time */
} sc_arch;

/* The row of a generation. A generation that is not in the table has the
 * constants of Ampere and today's hosts and collectives. */
const sc_arch *sc_arch_of(const char *name);
#endif
