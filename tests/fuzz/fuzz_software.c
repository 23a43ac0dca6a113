/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_software.c - any bytes as a profile of a program and as the name of one:
 * what is read has the words that its lists name. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    const sc_software *sw = NULL;
    const sc_device *h100 = NULL;
    char name[64];
    size_t n = size < sizeof name - 1 ? size : sizeof name - 1;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s =
        sc_software_read((const char *)data, size, "f.yml", &a, &sw, &err);
    if ((s == SC_OK) != (sw != NULL)) abort();
    if (s != SC_OK && err.n == 0) abort();
    if (sw && (!sw->name || sw->optim_bytes < 0)) abort();
    memcpy(name, data, n);
    name[n] = '\0';
    if (!strchr(name, '.')) {
        sc_err_init(&err);
        s = sc_device_find("h100-sxm", &a, &h100, &err);
        if (s == SC_OK)
            s = sc_software_nearest(name, NULL, h100, sc_pos_none(), &a, &sw,
                                    &err);
        if (s != SC_OK && s != SC_ENOMEM) abort();
    }
    sc_arena_free(&a);
    return 0;
}
