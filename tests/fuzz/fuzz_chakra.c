/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a binary Chakra trace, compressed or not: a located error, or a
 * workload that keeps its promises and reads the same again. */
#include "fuzz_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_trace(data, size, "f.et");
}
