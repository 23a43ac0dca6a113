/* SPDX-License-Identifier: Apache-2.0 */
/* A --what-if and any text: an error with its place, or values in range. */
#include "emu/whatif.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    uint32_t world = 1 + data[0];
    char *text = malloc(size);
    if (text == NULL) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    sc_err err;
    sc_err_init(&err);
    sc_emu_whatif w = {.value = 42};
    sc_status s =
        emu_whatif_parse(text, world, sc_pos_file("--what-if"), &w, &err);
    if (s == SC_OK) {
        bool fails = w.what == SC_EMU_FAIL;
        if (err.n != 0 || w.rank >= world || w.what > SC_EMU_FAIL) abort();
        if (!isfinite(w.value) || w.value < 0 || (fails && w.value != 0))
            abort();
    } else if ((s != SC_EUSAGE && s != SC_EINPUT) || err.n != 1 ||
               err.status != s || !err.d[0].file[0] || w.value != 42) {
        abort();
    }
    free(text);
    return 0;
}
