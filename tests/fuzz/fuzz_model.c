/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_model.c - any bytes as a model.yml. */
#include "fuzz_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model(model_read_yaml, "fuzz.yml", data, size);
    return 0;
}
