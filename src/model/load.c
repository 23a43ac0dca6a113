/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - a model by name or by file. */
#include "model/read.h"

#include <string.h>

#define FILE_MAX_BYTES ((size_t)4 << 20)

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

sc_status sc_model_load(const char *spec, sc_pos pos, sc_arena *a,
                        const sc_model **out, sc_err *err)
{
    bool json = ends_with(spec, ".json");
    if (!json && !ends_with(spec, ".yml") && !ends_with(spec, ".yaml")) {
        return model_find(spec, pos, a, out, err);
    }
    char *text;
    size_t len;
    SC_TRY(sc_file_read(spec, FILE_MAX_BYTES, a, &text, &len, err));
    return json ? model_read_hf(text, len, spec, a, out, err)
                : model_read_yaml(text, len, spec, a, out, err);
}
