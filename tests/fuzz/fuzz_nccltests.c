/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a log of nccl-tests, text or JSON: rows that are in range, or
 * located errors. */
#include "coll/coll_nccltests.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const sc_nccl_row *r, uint32_t tables)
{
    if (!(r->bytes > 0) || !(r->time_s > 0) || r->ranks < 2) abort();
    if (r->nodes == 0 || r->ranks % r->nodes != 0) abort();
    if ((unsigned)r->coll >= SC_N_COLLS || !r->device || r->table >= tables)
        abort();
    if (r->pos.line == 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_nccl_log log = {.n_rows = 0};
    if (size > 65536) return 0;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_status s = sc_nccl_tests_read((const char *)data, size, "all_reduce.log",
                                     NULL, &a, &log, &err);
    if (s == SC_OK) {
        if (err.n != 0 || log.n_rows == 0) abort();
        for (uint32_t i = 0; i < log.n_rows; i++)
            check_row(&log.rows[i], log.n_tables);
    } else if ((s != SC_EINPUT && s != SC_ENOMEM) || err.n == 0 ||
               log.n_rows != 0) {
        abort();
    }
    sc_arena_free(&a);
    return 0;
}
