/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an executable: a located error, or words that end. */
#include "emu/emu_executable.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sc_executable *p, size_t size)
{
    if ((p->kind == SC_EXECUTABLE_SCRIPT) != (p->interpreter != NULL)) abort();
    if (p->interpreter && strlen(p->interpreter) == 0) abort();
    if (p->argument && (!p->interpreter || strlen(p->argument) == 0)) abort();
    if (p->interpreter && strlen(p->interpreter) > size) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_executable p = {0};
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s = sc_executable_read(data, size, "program", &a, &p, &err);
    if ((s == SC_OK) != (err.n == 0)) abort();
    if (s == SC_OK) check(&p, size);
    sc_arena_free(&a);
    return 0;
}
