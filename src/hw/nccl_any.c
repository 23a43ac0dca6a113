/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_any.c - recognizes the format of a file that describes a node. */
#include "hw/hw_nccl.h"

#include <string.h>

/* Offset of `what` from `at` on, or of the end. */
static size_t skip_to(const char *text, size_t len, size_t at, const char *what)
{
    size_t n = strlen(what);
    while (at + n <= len && memcmp(text + at, what, n) != 0) at++;
    return at + n <= len ? at : len;
}

/* The first tag of an XML text, after declarations and comments. */
static size_t first_tag(const char *text, size_t len)
{
    size_t at = skip_to(text, len, 0, "<");
    while (at + 1 < len && (text[at + 1] == '?' || text[at + 1] == '!')) {
        bool comment = at + 4 <= len && memcmp(text + at, "<!--", 4) == 0;
        at = skip_to(text, len, at, comment ? "-->" : ">");
        at = skip_to(text, len, at, "<");
    }
    return at;
}

sc_status sc_topo_read_any(const char *text, size_t len, const char *file,
                           const sc_hw *hw, sc_arena *a, const sc_topo **out,
                           sc_err *err)
{
    static const char hwloc[] = "<topology";
    size_t at = 0;
    while (at < len && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
        at++;
    if (at < len && text[at] != '<')
        return sc_topo_read_matrix(text, len, file, hw, a, out, err);
    at = first_tag(text, len);
    if (len - at >= sizeof hwloc - 1 &&
        memcmp(text + at, hwloc, sizeof hwloc - 1) == 0)
        return sc_topo_read_hwloc(text, len, file, hw, a, out, err);
    return sc_topo_read(text, len, file, (sc_nccl)hw->nccl, a, out, err);
}
