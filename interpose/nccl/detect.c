/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect.c - finds libraries in the process that move data between devices by
 * other ways than NCCL.
 */
#include "nccl/comm.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *part; /* of the file's name */
    const char *what;
} past[] = {
    {"libnvshmem", "NVSHMEM"},
    {"nvshmem_bootstrap", "NVSHMEM"},
    {"deep_ep", "DeepEP"},
    {"libmscclpp", "MSCCL++"},
    {"mscclpp_nccl", "MSCCL++"},
    {"libnixl", "NIXL"},
    {"libmooncake", "Mooncake"},
    {"flashinfer_comm", "FlashInfer's communication kernels"},
    {"libsharp_coll", "SHARP"},
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    live *l = arg;
    (void)size;
    if (!info->dlpi_name) return 0;
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name;
    for (size_t i = 0; i < sizeof past / sizeof past[0]; i++)
        if (strstr(name, past[i].part))
            live_warn(l,
                      "%s (%s) moves data without NCCL: this traffic takes no "
                      "emulated time and needs real peers",
                      past[i].what, name);
    return 0;
}

void detect_bypass(live *l)
{
    dl_iterate_phdr(look, l);
}
