/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - reads tables of measurements that a command line names. */
#include "calib/calib.h"
#include "cli/cli.h"

#define MAX_BYTES ((size_t)256 << 20)

/* Continues after wrong rows of a table, to report all errors. */
static sc_status read_table(const cli *c, const char *file, sc_csv *out)
{
    char *packed, *text;
    size_t len;
    SC_TRY(sc_file_read(file, MAX_BYTES, c->arena, &packed, &len, c->err));
    SC_TRY(
        sc_unpack(packed, len, MAX_BYTES, file, c->arena, &text, &len, c->err));
    sc_status s = sc_csv_read(text, len, file, c->arena, out, c->err);
    if (s != SC_OK && out->n_cols) (void)sc_table_check(out, c->arena, c->err);
    return s;
}

sc_status cli_read_tables(const cli *c, const char *const *files, uint32_t n,
                          sc_csv *out)
{
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < n; i++) {
        sc_status s = read_table(c, files[i], &out[i]);
        if (first == SC_OK) first = s;
    }
    return first;
}
