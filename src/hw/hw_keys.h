/* SPDX-License-Identifier: Apache-2.0 */
/* hw_keys.h - the words with which a line changes a machine. */
#ifndef SC_HW_KEYS_H
#define SC_HW_KEYS_H

#include "base/schema.h"

/* The keys that may follow a name of the catalogue: "dgx-h100:16; nic_bw=200Gb/s".
 * Their offsets are private. */
extern const sc_key sc_hw_name_keys[];

/* The factors of a device: "h100-sxm*{peak=1.5,mem_bw=2}". */
extern const sc_key sc_hw_factor_keys[];

#endif
