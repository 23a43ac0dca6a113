/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - where the result of a command goes. */
#include "cli/cli.h"

#include <stdio.h>

sc_status cli_emit(const cli *c, const char *text, size_t len)
{
    if (c->output) return sc_file_write(c->output, text, len, c->err);
    if (fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0)
        return SC_OK;
    return sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file("<stdout>"), NULL,
                    "can't write the result");
}
