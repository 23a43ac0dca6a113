/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - names of devices and nodes, their aliases, and their lists.
 *
 * A catalogue name is one look-up of an embedded file; the alias table is read
 * only for other names.
 */
#include "hw/names.h"

#include "base/name.h"

#include <stdio.h>
#include <string.h>

static const char *const folders[] = {"hw/devices/", "hw/nodes/"};
static const char *const sections[] = {"devices", "nodes"};

static const sc_embedded *file_of(hw_kind kind, const char *name)
{
    char path[NAME_FOLDED + 32];
    int n = snprintf(path, sizeof path, "%s%s.yml", folders[kind], name);
    return n < (int)sizeof path ? sc_embedded_find(path) : NULL;
}

static bool in_list(const char *folded, const sc_node *list)
{
    for (const sc_node *c = list->child; c != NULL; c = c->next)
        if (c->kind == SC_N_SCALAR && name_is(folded, c->text)) return true;
    return false;
}

/* The map or list of one kind in an embedded file. */
static sc_status section(const char *path, hw_kind kind, sc_arena *a,
                         const sc_node **out, sc_err *err)
{
    const sc_embedded *f = sc_embedded_find(path);
    sc_node *root;
    *out = NULL;
    if (f == NULL)
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "data/%s is not built in", path);
    SC_TRY(sc_embedded_read(f, a, &root, err));
    if (root->kind == SC_N_MAP) *out = sc_node_get(root, sections[kind]);
    return SC_OK;
}

/* The i-th embedded file, if it describes this kind: its name without folder
 * and suffix, of `*len` bytes. NULL: it does not. */
static const char *nth_name(hw_kind kind, uint32_t i, size_t *len)
{
    uint32_t n_files;
    const sc_embedded *f = sc_embedded_all(&n_files);
    size_t skip = strlen(folders[kind]), n = strlen(f[i].path);
    if (n < skip + 4 || memcmp(f[i].path, folders[kind], skip) != 0)
        return NULL;
    *len = n - skip - 4;
    return f[i].path + skip;
}

/* An alias of a name in the catalogue. */
static const sc_embedded *find_spelling(const char *folded, hw_kind kind)
{
    uint32_t n_files;
    const sc_embedded *f = sc_embedded_all(&n_files);
    for (uint32_t i = 0; i < n_files; i++) {
        size_t len;
        char name[NAME_FOLDED + 1];
        const char *at = nth_name(kind, i, &len);
        if (at == NULL || len > NAME_FOLDED) continue;
        memcpy(name, at, len);
        name[len] = '\0';
        if (name_is(folded, name)) return &f[i];
    }
    return NULL;
}

static sc_status find_alias(const char *folded, hw_kind kind, sc_arena *a,
                            const sc_embedded **out, sc_err *err)
{
    const sc_node *map;
    *out = find_spelling(folded, kind);
    if (*out != NULL) return SC_OK;
    SC_TRY(section("hw/aliases.yml", kind, a, &map, err));
    for (const sc_node *c = map ? map->child : NULL; c != NULL; c = c->next)
        if (in_list(folded, c)) {
            *out = file_of(kind, c->key);
            return SC_OK;
        }
    return SC_OK;
}

/* Lists the names of one kind from out[*n] on, without folder and suffix. */
static sc_status add_names(hw_kind kind, sc_arena *a, const char **out,
                           uint32_t *n, sc_err *err)
{
    uint32_t n_files;
    sc_embedded_all(&n_files);
    for (uint32_t i = 0; i < n_files; i++) {
        size_t len;
        const char *name = nth_name(kind, i, &len);
        if (name == NULL) continue;
        if ((out[*n] = sc_strndup(a, name, len)) == NULL)
            return sc_error_nomem(err);
        ++*n;
    }
    return SC_OK;
}

static sc_status list_names(unsigned kinds, sc_arena *a, const char ***names,
                            uint32_t *n, sc_err *err)
{
    uint32_t n_files, count = 0;
    sc_embedded_all(&n_files);
    const char **out = SC_NEW_N(a, const char *, n_files + 1);
    if (out == NULL) return sc_error_nomem(err);
    for (int k = HW_DEVICE; k <= HW_NODE; k++)
        if ((kinds >> k & 1) != 0)
            SC_TRY(add_names((hw_kind)k, a, out, &count, err));
    *names = out;
    *n = count;
    return SC_OK;
}

sc_status sc_hw_list(bool devices, sc_arena *a, const char ***names,
                     uint32_t *n, sc_err *err)
{
    return list_names(1u << (devices ? HW_DEVICE : HW_NODE), a, names, n, err);
}

/* Appends the aliases to the names, for hints. */
static sc_status add_aliases(unsigned kinds, sc_arena *a, const char ***names,
                             uint32_t *n, sc_err *err)
{
    uint32_t cap = *n;
    for (int k = HW_DEVICE; k <= HW_NODE; k++) {
        const sc_node *map;
        if ((kinds >> k & 1) == 0) continue;
        SC_TRY(section("hw/aliases.yml", (hw_kind)k, a, &map, err));
        for (const sc_node *c = map ? map->child : NULL; c; c = c->next)
            for (const sc_node *s = c->child; s; s = s->next) {
                if (s->kind != SC_N_SCALAR) continue;
                *names = sc_grow(a, *names, *n, &cap, 64, sizeof **names);
                if (*names == NULL) return sc_error_nomem(err);
                (*names)[(*n)++] = s->text;
            }
    }
    *names = sc_grow(a, *names, *n, &cap, 64, sizeof **names);
    if (*names == NULL) return sc_error_nomem(err);
    (*names)[*n] = NULL;
    return SC_OK;
}

sc_status hw_name_list(unsigned kinds, sc_arena *a, const char ***names,
                       uint32_t *n, sc_err *err)
{
    SC_TRY(list_names(kinds, a, names, n, err));
    return add_aliases(kinds, a, names, n, err);
}

const char *hw_kinds_word(unsigned kinds)
{
    return kinds == 1u << HW_DEVICE ? "device" : "cluster";
}

static sc_status unknown(const char *name, const char *folded, unsigned kinds,
                         sc_pos pos, sc_arena *a, sc_err *err)
{
    const char **names = NULL;
    uint32_t n = 0;
    for (int k = HW_DEVICE; k <= HW_NODE; k++) {
        const sc_node *list;
        if ((kinds >> k & 1) == 0) continue;
        SC_TRY(section("hw/not-yet.yml", (hw_kind)k, a, &list, err));
        if (list == NULL || !in_list(folded, list)) continue;
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                        "describe its node in a cluster file with a device "
                        "of the catalogue",
                        "\"%.80s\" is known, but not in the catalogue yet",
                        name);
    }
    SC_TRY(hw_name_list(kinds, a, &names, &n, err));
    char hint[200], low[NAME_FOLDED + 1];
    size_t i = 0;
    for (; name[i] != '\0' && i < NAME_FOLDED; i++)
        low[i] = name_lower(name[i]);
    low[i] = '\0';
    const char *near = sc_nearest_numbered(low, names);
    if (near != NULL && name_slip(low, near))
        snprintf(hint, sizeof hint, "did you mean %.120s?", near);
    else
        snprintf(hint, sizeof hint,
                 "\"stepcast list %ss\" names them all; a cluster file can "
                 "describe another device (docs/cluster.md)",
                 hw_kinds_word(kinds));
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos, hint,
                    "unknown %s \"%.80s\"", hw_kinds_word(kinds), name);
}

sc_status hw_name_find(const char *name, unsigned kinds, sc_pos pos,
                       sc_arena *a, hw_name *out, sc_err *err)
{
    static const hw_kind order[] = {HW_NODE, HW_DEVICE};
    char folded[NAME_FOLDED + 1];
    for (unsigned i = 0; i < SC_COUNT(order); i++) {
        if ((kinds >> order[i] & 1) == 0) continue;
        const sc_embedded *f = file_of(order[i], name);
        if (f == NULL) continue;
        *out = (hw_name){order[i], f};
        return SC_OK;
    }
    name_fold(name, folded);
    for (unsigned i = 0; i < SC_COUNT(order) && folded[0] != '\0'; i++) {
        const sc_embedded *f = NULL;
        if ((kinds >> order[i] & 1) == 0) continue;
        SC_TRY(find_alias(folded, order[i], a, &f, err));
        if (f == NULL) continue;
        *out = (hw_name){order[i], f};
        return SC_OK;
    }
    return unknown(name, folded, kinds, pos, a, err);
}
