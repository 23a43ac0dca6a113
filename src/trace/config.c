/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - what the readers of configuration files share. */
#include "trace/config.h"

#include <string.h>
#include <unistd.h>

const char *const trace_config_flags[] = {"0", "1", "false", "true", NULL};

sc_status trace_config_parse(const char *text, size_t len, const char *file,
                             sc_arena *a, const sc_node **root, sc_err *err)
{
    sc_node *top;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &top, err));
    if (top->kind != SC_N_MAP)
        return sc_error(
            err, SC_EINPUT, SC_C_TYPE, top->pos, "write {\"key\": value, ...}",
            top->kind == SC_N_NULL ? "the file is empty" : "not a mapping");
    *root = top;
    return SC_OK;
}

sc_status trace_config_load(const char *path, sc_arena *a, const char **file,
                            char **text, size_t *len, sc_err *err)
{
    if ((*file = sc_strdup(a, path)) == NULL) return sc_error_nomem(err);
    return sc_file_read(path, SC_DOC_MAX_BYTES, a, text, len, err);
}

sc_status trace_config_list(const sc_node *list, uint32_t max, sc_err *err)
{
    if (list->kind != SC_N_SEQ)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, list->pos,
                        "write [value, ...]", "%s needs a list", list->key);
    if (list->n > max)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, list->pos, NULL,
                        "%s has %u entries, more than %u", list->key, list->n,
                        max);
    return SC_OK;
}

sc_status trace_config_entry(const sc_key *row, const sc_node *entry,
                             void *target, sc_arena *a, sc_err *err)
{
    if (entry->kind != SC_N_SCALAR)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, entry->pos, row->help,
                        "%s has an element that is not a scalar value",
                        row->name);
    if (entry->quoted && (row->type == SC_T_INT || row->type == SC_T_QUANTITY))
        return sc_error(
            err, SC_EINPUT, SC_C_TYPE, entry->pos, "write it without quotes",
            "%s is a string here: \"%.60s\"", row->name, entry->text);
    return sc_schema_set(row, entry->text, entry->pos, target, a, err);
}

static bool exists(const char *path, const char *const *suffixes, sc_arena *a,
                   bool *failed)
{
    for (; *suffixes != NULL; suffixes++) {
        const char *full = sc_sprintf(a, "%s%s", path, *suffixes);
        if (full == NULL) {
            *failed = true;
            return false;
        }
        if (access(full, F_OK) == 0) return true;
    }
    return false;
}

const char *trace_config_beside(const char *name, const char *base,
                                const char *const *suffixes, sc_arena *a)
{
    bool failed = false;
    const char *slash = strrchr(base, '/');
    if (slash == NULL || name[0] == '/') return name;
    if (exists(name, suffixes, a, &failed)) return name;
    const char *there =
        sc_sprintf(a, "%.*s/%s", (int)(slash - base), base, name);
    if (failed || there == NULL) return NULL;
    bool found = exists(there, suffixes, a, &failed);
    if (failed) return NULL;
    return found ? there : name;
}
