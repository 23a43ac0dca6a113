/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hfconfig.c - any bytes as a HuggingFace config.json. */
#include "fuzz_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model(model_read_hf, "config.json", data, size);
    return 0;
}
