/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - the words of an axis. */
#include "search/values.h"

#include <string.h>

sc_status search_status_at(sc_pos pos)
{
    return pos.line > 0 ? SC_EINPUT : SC_EUSAGE;
}

static bool separates(char c)
{
    return c == ',' || c == ' ';
}

sc_status search_next_value(const char **text, sc_arena *a, char **out,
                            sc_err *err)
{
    const char *from = *text;
    bool inside = false;
    size_t n = 0;
    while (separates(*from)) from++;
    for (; from[n] && (inside || !separates(from[n])); n++)
        inside = from[n] == '{' || (inside && from[n] != '}');
    *text = from + n;
    *out = n > 0 ? sc_strndup(a, from, n) : NULL;
    return n > 0 && !*out ? sc_error_nomem(err) : SC_OK;
}

/* A whole number of a key, wherever its field is. */
static sc_status whole(const sc_key *key, const char *text, sc_pos pos,
                       sc_arena *a, int64_t *out, sc_err *err)
{
    sc_key k = *key;
    k.offset = 0;
    return sc_schema_set(&k, text, pos, out, a, err);
}

sc_status search_range(const sc_key *key, char *value, sc_pos pos, sc_arena *a,
                       bool *range, int64_t *from, int64_t *to, sc_err *err)
{
    char *dots = strstr(value, "..");
    *range = dots && key->type != SC_T_STRING;
    if (!*range) return SC_OK;
    *dots = '\0';
    if (key->type == SC_T_INT) {
        SC_TRY(whole(key, value, pos, a, from, err));
        SC_TRY(whole(key, dots + 2, pos, a, to, err));
    }
    if (key->type != SC_T_INT || *to < *from)
        return sc_error(err, search_status_at(pos), SC_C_RANGE, pos,
                        "write the smaller whole number first: 1..8",
                        "%s..%s is no range", value, dots + 2);
    if (*to - *from >= SEARCH_VALUES)
        return sc_error(err, search_status_at(pos), SC_C_TOO_BIG, pos, NULL,
                        "there are more than %d values", SEARCH_VALUES);
    return SC_OK;
}
