/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a Chakra trace in JSON. */
#include "fuzz_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_trace(data, size, "f.json");
}
