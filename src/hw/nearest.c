/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c - finds the device or node whose name is nearest to an unknown one:
 * most words in common, then a word with the same letters and the nearest
 * number ("H900": h800), then fewest other words. In the name of a system
 * ("8xSystem-H100-SXM-80GB") a device may be joined to other words.
 */
#include "base/name.h"
#include "hw/device.h"
#include "hw/names.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct word {
    const char *at;
    size_t len, letters; /* characters; letters at its beginning */
    long number;         /* after them; -1: none */
} word;

/* How near a name of the catalogue is. */
typedef struct nearness {
    int shared, spare;
    bool letters; /* a word has the same letters before its number */
    long apart;   /* between the numbers of such words */
} nearness;

static bool alnum(char c)
{
    c = name_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool next_word(const char **at, word *out)
{
    const char *s = *at;
    while (*s && !alnum(*s)) s++;
    if (!*s) return false;
    *out = (word){.at = s, .number = -1};
    while (alnum(s[out->len])) out->len++;
    while (out->letters < out->len && name_lower(s[out->letters]) >= 'a')
        out->letters++;
    if (out->letters < out->len)
        out->number = strtol(s + out->letters, NULL, 10);
    *at = s + out->len;
    return true;
}

static bool same(const char *x, const char *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name_lower(x[i]) != name_lower(y[i])) return false;
    return true;
}

/* A word with letters and a number after them ("h800") names the chip. */
static int weight(const word *w)
{
    return w->letters > 0 && w->number >= 0 ? 4 : 1;
}

static nearness compare(const char *name, const char *of)
{
    nearness x = {.apart = LONG_MAX};
    word mine, theirs;
    for (const char *i = of; next_word(&i, &theirs);) {
        bool both = false;
        for (const char *k = name; next_word(&k, &mine);) {
            both = both || (mine.len == theirs.len &&
                            same(mine.at, theirs.at, mine.len));
            if (mine.letters == 0 || mine.letters != theirs.letters ||
                mine.number < 0 || theirs.number < 0 ||
                !same(mine.at, theirs.at, mine.letters))
                continue;
            long apart = labs(mine.number - theirs.number);
            x.letters = true;
            if (apart < x.apart) x.apart = apart;
        }
        x.shared += both ? weight(&theirs) : 0;
        x.spare += !both;
    }
    return x;
}

static bool nearer(const nearness *x, const nearness *y)
{
    if (x->letters != y->letters) return x->letters;
    if (x->apart != y->apart) return x->apart < y->apart;
    if (x->shared != y->shared) return x->shared > y->shared;
    return x->spare <= y->spare;
}

/* ---- devices in the names of systems ---------------------------------------- */

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
        char one[NAME_FOLDED + 1], folded[NAME_FOLDED + 1];
        size_t n = strcspn(at, ends), kept = n < NAME_FOLDED ? n : NAME_FOLDED;
        memcpy(one, at, kept);
        one[kept] = '\0';
        name_fold(one, folded);
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

/* ---- names -------------------------------------------------------------------- */

/* The name of `names` that is nearest; NULL: none has anything in common. */
static const char *nearest_of(const char *name, const char **names, uint32_t n,
                              nearness *most)
{
    const char *best = NULL;
    for (uint32_t i = 0; i < n; i++) {
        nearness x = compare(name, names[i]);
        if (!x.letters && x.shared == 0) continue;
        if (best && !nearer(&x, most)) continue;
        best = names[i];
        *most = x;
    }
    return best;
}

/* The device of a node that is called so; NULL: no node is. */
static sc_status device_of_node(const char *name, sc_arena *a,
                                const char **device, sc_err *err)
{
    hw_name found;
    const sc_hw *hw;
    sc_err quiet;
    sc_err_init(&quiet);
    *device = NULL;
    if (hw_name_find(name, 1u << HW_NODE, sc_pos_none(), a, &found, &quiet) !=
        SC_OK)
        return SC_OK;
    SC_TRY(sc_hw_build(name, sc_pos_none(), a, &hw, err));
    *device = hw->device->name;
    return SC_OK;
}

sc_status sc_hw_nearest(const char *name, bool devices, sc_arena *a,
                        const char **out, const char **why, sc_err *err)
{
    unsigned kinds = 1u << HW_DEVICE | (devices ? 0 : 1u << HW_NODE);
    hw_name found;
    sc_err quiet;
    const char **names, *best = NULL;
    uint32_t n;
    sc_err_init(&quiet);
    *out = name;
    *why = NULL;
    if (hw_name_find(name, kinds, sc_pos_none(), a, &found, &quiet) == SC_OK)
        return SC_OK;
    if (devices) SC_TRY(device_of_node(name, a, &best, err));
    SC_TRY(hw_name_list(kinds, a, &names, &n, err));
    if (!best) {
        nearness most = {0};
        best = nearest_of(name, names, n, &most);
        bool chip = best && most.letters && most.apart == 0;
        const char *in = chip || !devices ? NULL : containing(name, names, n);
        const sc_device *d;
        if (in) SC_TRY(usual_board(name, in, a, &d, err));
        if (in) best = d->name; /* "8xH100" contains one */
    }
    if (!best) return SC_OK;
    SC_TRY(hw_name_find(best, kinds, sc_pos_none(), a, &found, err));
    const char *file = strrchr(found.file->path, '/') + 1;
    best = sc_strndup(a, file, strcspn(file, "."));
    if (!best) return sc_error_nomem(err);
    *out = best;
    *why = sc_sprintf(a, "%s \"%.80s\" is not known: %s is the nearest name",
                      hw_kinds_word(kinds), name, best);
    return *why ? SC_OK : sc_error_nomem(err);
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
    const char *near = containing(name, names, n), *why = NULL;
    if (!near) SC_TRY(sc_hw_nearest(name, true, a, &near, &why, err));
    SC_TRY(usual_board(name, near != name ? near : fallback, a, out, err));
    *warning =
        sc_sprintf(a, "unknown device \"%.60s\"; priced as %s%s", name,
                   (*out)->name, near != name ? "" : ", which may be far off");
    return *warning ? SC_OK : sc_error_nomem(err);
}
