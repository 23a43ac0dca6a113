/* SPDX-License-Identifier: Apache-2.0 */
/* Covariances of parameters: any text is read or refused; what is read is
 * symmetric and has variances. */
#include "cost/cost_anchor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_covariance c = {0};
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s =
        sc_covariance_read((const char *)data, size, "fuzz.yml", &a, &c, &err);
    if ((s == SC_OK) != (err.n == 0)) abort();
    if (s != SC_OK && c.n != 0) abort();
    for (size_t i = 0; i < c.n; i++)
        for (size_t k = 0; k <= i; k++) {
            double v = c.of_log[i * c.n + k];
            if (v != c.of_log[k * c.n + i]) abort();
            if (i == k && !(v > 0)) abort();
        }
    sc_arena_free(&a);
    return 0;
}
