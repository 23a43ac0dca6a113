/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a log of rows: an error with its byte, or rows whose values
 * exist. */
#include "store/store.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Seals of the head and of the first block that fit their bytes are beyond a
 * fuzzer, so it gets them: the first byte says how long the head is. */
static void seal(sc_bytes *out, const uint8_t *data, size_t size)
{
    size_t head = size ? data[0] : 0;
    if (head > size) head = size;
    sc_bytes_add(out, data + 1, head ? head - 1 : 0);
    sc_bytes_seal(out, 0);
    if (size > head)
        sc_store_write_block(1 + data[head] % 4, data + head, size - head, out);
    sc_store_write_end(1, out);
}

static void read_all(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_store_reader r;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    bool is = true;
    uint64_t rows = 0;
    sc_status s = sc_store_open(data, size, "rows", &a, &r, &err);
    while (s == SC_OK && is) {
        s = sc_store_next(&r, &is, &err);
        if (s != SC_OK || !is) break;
        for (uint32_t i = 0; i < r.head.n; i++)
            if (r.row.digit[i] >= r.head.axis[i].n) abort();
        if (++rows > size) abort(); /* a row has bytes of its own */
    }
    if ((s == SC_OK) != (err.n == 0)) abort();
    sc_arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_bytes sealed = {0};
    read_all(data, size);
    seal(&sealed, data, size);
    if (!sealed.failed) read_all(sealed.buf, sealed.len);
    sc_bytes_free(&sealed);
    return 0;
}
