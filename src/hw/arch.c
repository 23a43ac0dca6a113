/* SPDX-License-Identifier: Apache-2.0 */
/* arch.c - the table of generations. */
#include "hw/hw_arch.h"

#include <stddef.h>
#include <string.h>

#define SC_FIT_NAME(id, name) name,
const char *const sc_fit_class_names[] = {SC_FIT_CLASSES(SC_FIT_NAME) NULL};
#undef SC_FIT_NAME

#define TODAYS_HOST 0x68f

/* Generations that NCCL runs on; those of other vendors. */
#define NVIDIA(name_, fit_, row_, sm_, host_)                        \
    .name = (name_), .fit = (fit_), .nccl_row = (row_), .sm = (sm_), \
    .cpu_model = (host_)
#define OTHER(name_, fit_)                                          \
    {                                                               \
        .name = (name_), .fit = (fit_), .nccl_row = SC_NCCL_HOPPER, \
        .cpu_model = TODAYS_HOST                                    \
    }

static const sc_arch rows[] = {
    {NVIDIA("hopper", SC_FIT_HOPPER, SC_NCCL_HOPPER, 90, 0x68f)},
    {NVIDIA("ampere", SC_FIT_AMPERE, SC_NCCL_AMPERE, 80, 0x66a),
     .in_nccl_2_10 = true},
    {NVIDIA("blackwell", SC_FIT_BLACKWELL, SC_NCCL_BLACKWELL, 100, 0x6cf),
     .mx_products = true},
    {NVIDIA("blackwell-ultra", SC_FIT_BLACKWELL, SC_NCCL_BLACKWELL, 103, 0x6cf),
     .mx_products = true, .ultra = true},
    {NVIDIA("blackwell-rtx", SC_FIT_ADA, SC_NCCL_BLACKWELL, 120, 0x6cf),
     .mx_products = true},
    {NVIDIA("volta", SC_FIT_AMPERE, SC_NCCL_VOLTA, 70, 0x655),
     .in_nccl_2_10 = true},
    {NVIDIA("ada", SC_FIT_ADA, SC_NCCL_AMPERE, 89, 0x68f)},
    {NVIDIA("turing", SC_FIT_AMPERE, SC_NCCL_VOLTA, 75, 0x655),
     .in_nccl_2_10 = true},
    {NVIDIA("pascal", SC_FIT_AMPERE, SC_NCCL_VOLTA, 60, 0x64f),
     .in_nccl_2_10 = true},
    OTHER("cdna1", SC_FIT_CDNA),
    OTHER("cdna2", SC_FIT_CDNA),
    OTHER("cdna3", SC_FIT_CDNA),
    OTHER("cdna4", SC_FIT_CDNA),
    OTHER("gaudi", SC_FIT_GAUDI),
    OTHER("dojo", SC_FIT_GAUDI),
    OTHER("tpu-v3", SC_FIT_TPU),
    OTHER("tpu-v4", SC_FIT_TPU),
    OTHER("tpu-v5e", SC_FIT_TPU),
    OTHER("tpu-v5p", SC_FIT_TPU),
    OTHER("tpu-v6e", SC_FIT_TPU6),
    OTHER("tpu-v7", SC_FIT_TPU6),
    OTHER("trainium2", SC_FIT_GAUDI)};

const sc_arch *sc_arch_of(const char *name)
{
    static const sc_arch unknown = OTHER(NULL, SC_FIT_AMPERE);
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return &unknown;
}
