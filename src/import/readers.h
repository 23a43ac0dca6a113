/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readers.h - a reader for each format. `text` is terminated UTF-8; messages
 * and fields are added to `to`.
 */
#ifndef IMPORT_READERS_H
#define IMPORT_READERS_H

#include "import/sink.h"

typedef sc_status import_reader(import_sink *to, const char *text, size_t len,
                                const char *const *define);

/* The first one reads launch scripts, options and tables of arguments. */
import_reader megatron_read, deepspeed_read, torchtitan_read, accelerate_read,
    trainer_read, nemo_read, bridge_read;

/* Reads a configuration of DeepSpeed inside another file. */
sc_status deepspeed_map(import_sink *to, const sc_node *root);
/* Reads what DeepSpeed keeps in other memories: the device of states, that of
 * weights, and the elements of these that stay in host memory (NULL: the
 * default). */
sc_status deepspeed_offload(import_sink *to, import_value *states,
                            import_value *weights, const import_value *in_cpu);
/* Reads arguments of Trainer given as a map. */
sc_status trainer_map(import_sink *to, const sc_node *root);

#endif
