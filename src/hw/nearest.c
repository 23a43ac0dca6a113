/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - the device nearest to a name that is not in the catalogue. */
#include "base/name.h"
#include "hw/device.h"

#include <string.h>

/* The first part of a name of the catalogue, folded: "h100" of "h100-sxm". */
static void stem_of(const char *name, char out[NAME_FOLDED + 1])
{
    char part[NAME_FOLDED + 1];
    size_t n = strcspn(name, "-");
    if (n > NAME_FOLDED) n = NAME_FOLDED;
    memcpy(part, name, n);
    part[n] = '\0';
    name_fold(part, out);
}

/* Length of `part` if `text` contains it and no other number follows: "h100" is
 * not in "h1000". */
static size_t contained(const char *text, const char *part)
{
    size_t len = strlen(part);
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        if (at[len] < '0' || at[len] > '9') return len;
    return 0;
}

/* The same for the words of `name`, which may be joined to others: "8xB200". */
static size_t word_contains(const char *name, const char *part)
{
    static const char ends[] = " -_./,;:+()[]";
    size_t best = 0;
    for (const char *at = name; *at != '\0';) {
        char word[NAME_FOLDED + 1], folded[NAME_FOLDED + 1];
        size_t n = strcspn(at, ends), kept = n < NAME_FOLDED ? n : NAME_FOLDED;
        memcpy(word, at, kept);
        word[kept] = '\0';
        name_fold(word, folded);
        size_t len = contained(folded, part);
        if (len > best) best = len;
        at += n + (at[n] != '\0');
    }
    return best;
}

/* The device whose name, or the first part of it, `name` contains; the longest
 * counts. Parts without a number ("rtx") say too little. */
static const char *containing(const char *name, const char **names, uint32_t n)
{
    const char *best = NULL;
    size_t longest = 1;
    char folded[NAME_FOLDED + 1];
    name_fold(name, folded);
    for (uint32_t i = 0; i < n; i++) {
        char whole[NAME_FOLDED + 1], stem[NAME_FOLDED + 1];
        name_fold(names[i], whole);
        stem_of(names[i], stem);
        size_t len = contained(folded, whole);
        if (len == 0 && strpbrk(stem, "0123456789"))
            len = word_contains(name, stem);
        if (len <= longest) continue;
        best = names[i];
        longest = len;
    }
    return best;
}

/* An alias of the first part, such as "h100", is the usual board, unless the
 * text contains all of the name. */
static sc_status usual_board(const char *text, const char *name, sc_arena *a,
                             const sc_device **out, sc_err *err)
{
    char folded[NAME_FOLDED + 1], whole[NAME_FOLDED + 1];
    char stem[NAME_FOLDED + 1];
    name_fold(text, folded);
    name_fold(name, whole);
    stem_of(name, stem);
    if (contained(folded, whole)) return sc_device_find(name, a, out, err);
    if (sc_device_find(stem, a, out, NULL) == SC_OK) return SC_OK;
    return sc_device_find(name, a, out, err);
}

sc_status sc_device_nearest(const char *name, sc_arena *a,
                            const sc_device **out, const char **warning,
                            sc_err *err)
{
    static const char fallback[] = "h100-sxm";
    const char **names;
    uint32_t n;
    *warning = NULL;
    if (sc_device_find(name, a, out, NULL) == SC_OK) return SC_OK;
    SC_TRY(sc_hw_list(true, a, &names, &n, err));
    const char *near = containing(name, names, n);
    SC_TRY(usual_board(name, near ? near : fallback, a, out, err));
    *warning = sc_sprintf(a, "unknown device \"%.60s\"; priced as %s%s", name,
                          (*out)->name, near ? "" : ", which may be far off");
    return *warning ? SC_OK : sc_error_nomem(err);
}
