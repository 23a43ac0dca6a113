/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsdp.h - FSDP as accelerate and the HuggingFace Trainer configure it.
 */
#ifndef IMPORT_FSDP_H
#define IMPORT_FSDP_H

#include "import/keys.h"

/* Sets ZeRO and HSDP from the name of a sharding strategy: "FULL_SHARD", "1",
 * "full_shard" ...  If `v` is not given, full sharding is the default. */
sc_status import_fsdp(import_sink *to, const import_value *v, const char *name);

/* Reads a map of settings; keys may start with "fsdp_". */
sc_status import_fsdp_map(import_sink *to, const sc_node *map);

/* CPU offload of FSDP: each rank keeps its part of weights and optimizer states
 * in host memory, and updates it there. */
sc_status import_fsdp_away(import_sink *to, const import_value *v);

/* Sets the software profile that fits the job's ZeRO stage. */
sc_status import_pytorch(import_sink *to, bool compiled, const char *program);

#endif
