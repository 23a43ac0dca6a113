/* SPDX-License-Identifier: Apache-2.0 */
/* Values of an axis and any text: an error with its place, or different values
 * that the option takes. */
#include "search/search.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t n = 0;
    sc_arena a;
    sc_err err;
    sc_search_option o;
    if (size == 0) return 0;
    while (sc_job_keys[n].name) n++;
    const sc_key *k = &sc_job_keys[data[0] % n];
    char *text = malloc(size);
    if (text == NULL) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    sc_status s =
        sc_search_option_read(k, text, sc_pos_file("--axis"), &a, &o, &err);
    if (s == SC_OK && (err.n != 0 || o.axis.n == 0)) abort();
    if (s != SC_OK && (err.n == 0 || !err.d[0].file[0])) abort();
    for (uint32_t i = 0; s == SC_OK && i < o.axis.n; i++) {
        char buf[64];
        sc_job job;
        sc_job_init(&job);
        sc_search_option_set(&o, i, &job);
        sc_search_option_print(&o, i, buf, sizeof buf);
        if (!buf[0]) abort();
    }
    sc_arena_free(&a);
    free(text);
    return 0;
}
