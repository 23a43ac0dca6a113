/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes from two clients of the rendezvous store: the first byte says how
 * many ranks are real and where the bytes are cut.  Errors are located, answers
 * are bounded, the store serves a third client afterwards. */
#include "emu/store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drain(sc_store_client *c)
{
    uint8_t buf[4096];
    while (sc_store_has_output(c))
        if (sc_store_output(c, buf, sizeof buf) == 0) abort();
    if (sc_store_output(c, buf, sizeof buf) != 0) abort();
}

static void still_serves(sc_store *s)
{
    static const uint8_t ping[] = {0, 0xCE, 0xF7, 0x85, 0x3C, 13, 1, 2, 3, 4};
    uint8_t back[8];
    sc_store_client *c = sc_store_connect(s);
    if (!c) return; /* no memory */
    if (sc_store_input(s, c, ping, sizeof ping, NULL) == SC_OK &&
        (sc_store_output(c, back, sizeof back) != 4 ||
         memcmp(back, ping + 6, 4) != 0))
        abort();
    sc_store_close(s, c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t real[] = {0, 3};
    sc_arena a;
    sc_err err;
    sc_store *s = NULL;
    sc_store_client *c[2] = {NULL, NULL};
    if (size == 0) return 0;
    sc_arena_init(&a, (size_t)32 << 20);
    sc_err_init(&err);
    if (sc_store_new(8, real, 1 + (data[0] & 1), &a, &s, &err) != SC_OK)
        abort();
    size_t step = (size_t)(data[0] >> 1) + 1, at = 1;
    for (uint32_t k = 0; k < 2; k++) c[k] = sc_store_connect(s);
    for (uint32_t k = 0; at < size; k ^= 1) {
        size_t n = size - at < step ? size - at : step;
        uint32_t before = err.n + err.n_more;
        if (step == 128) k = 0, n = size - at;
        if (c[k] && sc_store_input(s, c[k], data + at, n, &err) != SC_OK) {
            if (err.n + err.n_more != before + 1) abort();
            sc_store_close(s, c[k]);
            c[k] = NULL;
        } else if (err.n + err.n_more != before) {
            abort();
        }
        (void)store_tick(s, (int64_t)at * 1000);
        for (uint32_t i = 0; i < 2; i++)
            if (c[i]) drain(c[i]);
        at += n;
    }
    still_serves(s);
    sc_arena_free(&a);
    return 0;
}
