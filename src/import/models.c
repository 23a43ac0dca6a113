/* SPDX-License-Identifier: Apache-2.0 */
/* models.c - maps names of models in other programs to names of the
 * catalogue. */
#include "import/models.h"

#include <string.h>
#include <strings.h>

/* Names that the catalogue does not have as aliases. */
static const struct {
    const char *name, *catalogue;
} aliases[] = {
    {"deepseek_v3-671B", "deepseek-v3"},
    {"deepseek_v3-16B", "deepseek-v2-lite"},
    {"llama4-17bx16e", "llama4-scout"},
    {"llama4-17bx128e", "llama4-maverick"},
    {"llama3-405B", "llama3.1-405b"},
};

static bool is_known(import_sink *to, const char *name)
{
    static const char *const files[] = {".json", ".json.gz", ".yml", ".yaml"};
    const sc_model *m;
    size_t n = strlen(name);
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        size_t k = strlen(files[i]);
        if (n >= k && strcmp(name + n - k, files[i]) == 0) return false;
    }
    sc_arena_mark mark = sc_arena_save(to->a);
    bool known = sc_model_load(name, sc_pos_none(), to->a, &m, NULL) == SC_OK;
    sc_arena_restore(to->a, mark);
    return known;
}

/* "Meta-Llama-3-8B-Instruct" is Llama-3-8B, tuned; NULL: out of memory. */
static const char *plain(import_sink *to, const char *name)
{
    static const char *const ends[] = {
        "-Instruct", "-instruct", "-Chat", "-chat", "-it", "-Base", "-base"};
    if (strncasecmp(name, "Meta-", 5) == 0) name += 5;
    size_t n = strlen(name);
    for (size_t i = 0; i < SC_COUNT(ends); i++) {
        size_t k = strlen(ends[i]);
        if (n > k && strcmp(name + n - k, ends[i]) == 0) n -= k;
    }
    return sc_strndup(to->a, name, n);
}

sc_status import_model(import_sink *to, const char *name, const import_value *v)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash ? slash + 1 : name;
    const char *const tries[] = {name, last, plain(to, last)};
    for (size_t i = 0; i < SC_COUNT(aliases); i++)
        if (strcasecmp(name, aliases[i].name) == 0)
            return import_put_text(to, "model", aliases[i].catalogue, v, NULL);
    for (size_t i = 0; i < SC_COUNT(tries); i++) {
        if (!tries[i]) return sc_error_nomem(to->err);
        if (tries[i][0] && is_known(to, tries[i]))
            return import_put_text(to, "model", tries[i], v, NULL);
    }
    if (import_has(to, "model")) return SC_OK;
    return import_warn(
        to, v->at, "model %.100s is not in the catalogue: give --model", name);
}
