/* SPDX-License-Identifier: Apache-2.0 */
/* software_nearest.c - finds the profile that is nearest to an unknown name. */
#include "plan/internal.h"
#include "plan/plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* How well a profile fits a name. */
typedef struct match {
    const sc_node *profile;
    uint32_t shared; /* words of its best name that the unknown name has */
    uint32_t spare;  /* words of that name that the unknown name lacks */
    bool vendor;     /* it has measured rows on devices of the vendor */
    int month;       /* of its release, since year 0; 0: unknown */
} match;

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next word from `*at` on, of `*len` characters: letters and digits, with a
 * letter.  Numbers are dates and versions.  NULL: there is none. */
static const char *next_word(const char **at, size_t *len)
{
    for (const char *s = *at; *s;) {
        size_t n = 0;
        bool letters = false;
        for (; letter(s[n]) || digit(s[n]); n++)
            letters = letters || letter(s[n]);
        if (letters) {
            *at = s + n;
            *len = n;
            return s;
        }
        s += n ? n : 1;
    }
    return NULL;
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    return c;
}

static bool has_word(const char *name, const char *word, size_t len)
{
    const char *at = name, *w;
    size_t n;
    while ((w = next_word(&at, &n))) {
        size_t i = 0;
        if (n != len) continue;
        while (i < n && lower(w[i]) == lower(word[i])) i++;
        if (i == n) return true;
    }
    return false;
}

/* Month of "2025-02", of "2025" (its middle) or of the release "25.02" in a
 * name; 0: none. */
static int month_of(const char *text)
{
    for (const char *s = text; s && *s; s++) {
        char *end;
        if (!digit(*s)) continue;
        long year = strtol(s, &end, 10), month = 0;
        if (end - s == 2 && *end == '.' && year >= 20) {
            month = strtol(end + 1, &end, 10);
            if (month >= 1 && month <= 12)
                return (int)((2000 + year) * 12 + month);
        } else if (end - s == 4 && year >= 2015 && year < 2100) {
            if (*end == '-' && digit(end[1])) month = strtol(end + 1, &end, 10);
            return (int)(year * 12 + (month >= 1 && month <= 12 ? month : 6));
        }
        s = end - 1;
        if (!*end) break;
    }
    return 0;
}

static void compare_name(const char *name, const char *of, match *m)
{
    const char *at = of, *w;
    size_t len;
    uint32_t shared = 0, spare = 0;
    while ((w = next_word(&at, &len))) {
        bool both = has_word(name, w, len);
        shared += both;
        spare += !both;
    }
    if (shared < m->shared || (shared == m->shared && spare >= m->spare))
        return;
    m->shared = shared;
    m->spare = spare;
}

/* The key that a profile or the profile under it has; NULL: none. */
static const sc_node *inherited(const sc_node *profiles, const sc_node *profile,
                                const char *key)
{
    for (uint32_t depth = 0; profile && depth < 8; depth++) {
        const sc_node *n = sc_node_get(profile, key);
        const sc_node *base = sc_node_get(profile, "base");
        if (n || !base) return n;
        profile = sc_node_get(profiles, base->text);
    }
    return NULL;
}

static match match_of(const sc_node *profiles, const sc_node *profile,
                      const char *name, const char *vendor)
{
    match m = {.profile = profile, .spare = UINT32_MAX};
    const sc_node *list = sc_node_get(profile, "aliases");
    const sc_node *date = inherited(profiles, profile, "date");
    compare_name(name, profile->key, &m);
    for (const sc_node *n = list ? list->child : NULL; n; n = n->next)
        if (strncmp(n->text, "default", 7) != 0)
            compare_name(name, n->text, &m);
    m.month = date ? month_of(date->text) : 0;
    list = inherited(profiles, profile, "measured_on");
    for (const sc_node *n = list ? list->child : NULL; n; n = n->next)
        m.vendor = m.vendor || (vendor && strcmp(n->text, vendor) == 0);
    return m;
}

/* Months between two releases; a later release than the wanted one counts as
 * ten years more, since a program has what was there before it. */
static int months_apart(int of, int wanted)
{
    if (of == 0) return INT_MAX;
    return of <= wanted ? wanted - of : of - wanted + 120;
}

/* Whether `x` fits better than `y`.  Without a date, the newest does. */
static bool better(const match *x, const match *y, int wanted)
{
    if (!y->profile) return true;
    if (x->shared != y->shared) return x->shared > y->shared;
    if (x->vendor != y->vendor) return x->vendor;
    if (x->shared > 0 && x->spare != y->spare) return x->spare < y->spare;
    if (!wanted) return x->month > y->month;
    return months_apart(x->month, wanted) < months_apart(y->month, wanted);
}

static const char *why(const match *best, const char *name, const char *vendor,
                       sc_arena *a)
{
    if (best->shared > 0)
        return sc_sprintf(a,
                          "software \"%.60s\" is not known: %s is the nearest "
                          "name",
                          name, best->profile->key);
    return sc_sprintf(a,
                      "software \"%.60s\" is not known: %s is the newest "
                      "program with measured rows%s%s",
                      name, best->profile->key, best->vendor ? " on " : "",
                      best->vendor ? vendor : "");
}

static bool says_yes(const sc_node *profiles, const sc_node *profile,
                     const char *key)
{
    const sc_node *n = inherited(profiles, profile, key);
    return n && strcmp(n->text, "true") == 0;
}

/* Keys by which a profile names another that replaces it for some jobs. */
static const char *const variants[] = {"mxfp8", "nvfp4", "zero1"};

static bool is_variant(const sc_node *profiles, const char *name)
{
    for (const sc_node *p = profiles->child; p; p = p->next)
        for (size_t i = 0; i < SC_COUNT(variants); i++) {
            const sc_node *n = sc_node_get(p, variants[i]);
            if (n && strcmp(n->text, name) == 0) return true;
        }
    return false;
}

static uint32_t rows_with_variants(const sc_held_out *rows,
                                   const sc_node *profile, const char *arch)
{
    uint32_t n = sc_held_out_measured(rows, profile->key, arch);
    for (size_t i = 0; i < SC_COUNT(variants); i++) {
        const sc_node *other = sc_node_get(profile, variants[i]);
        if (other) n += sc_held_out_measured(rows, other->text, arch);
    }
    return n;
}

/* The newest profile that has so many measured rows; NULL: none. */
static const char *newest(const sc_node *profiles, const sc_held_out *rows,
                          const char *arch, int wanted, uint32_t least)
{
    match best = {.shared = 0};
    for (const sc_node *p = profiles->child; p; p = p->next) {
        if (says_yes(profiles, p, "unfitted") ||
            says_yes(profiles, p, "benchmark") ||
            is_variant(profiles, p->key) ||
            rows_with_variants(rows, p, arch) < least)
            continue;
        match m = match_of(profiles, p, "", NULL);
        if (better(&m, &best, wanted)) best = m;
    }
    return best.profile ? best.profile->key : NULL;
}

sc_status sc_software_default(const sc_held_out *rows, const char *arch,
                              const char *date, sc_arena *a, const char **name,
                              sc_err *err)
{
    const sc_node *profiles = NULL;
    int wanted = date && date[0] ? month_of(date) : 0;
    SC_TRY(software_profiles(a, &profiles, err));
    *name = newest(profiles, rows, arch, wanted, SC_DEFAULT_ROWS);
    if (!*name) *name = newest(profiles, rows, arch, wanted, 1);
    return SC_OK;
}

/* The program of a job that names none. */
static sc_status unnamed(const sc_device *device, const char *date, sc_pos pos,
                         sc_arena *a, const sc_software **out, sc_err *err)
{
    sc_err unknown;
    sc_held_out rows;
    const char *name = NULL;
    sc_err_init(&unknown);
    SC_TRY(sc_held_out_builtin(a, &rows, err));
    SC_TRY(sc_software_default(&rows, device->arch, date, a, &name, err));
    if (name) {
        SC_TRY(sc_software_find(name, NULL, pos, a, out, err));
        sc_software *own = SC_NEW(a, sc_software);
        if (!own) return sc_error_nomem(err);
        *own = **out;
        own->open = true;
        *out = own;
        return SC_OK;
    }
    name = sc_sprintf(a, "default %s", device->vendor);
    if (!name) return sc_error_nomem(err);
    if (sc_software_find(name, NULL, pos, a, out, &unknown) == SC_OK)
        return SC_OK;
    return sc_software_find(NULL, NULL, pos, a, out, err);
}

sc_status sc_software_nearest(const char *name, const char *date,
                              const sc_device *device, sc_pos pos, sc_arena *a,
                              const sc_software **out, sc_err *err)
{
    const char *vendor = device ? device->vendor : NULL;
    sc_err unknown;
    const sc_node *profiles = NULL;
    match best = {.shared = 0};
    sc_err_init(&unknown);
    if ((!name || !name[0]) && device)
        return unnamed(device, date, pos, a, out, err);
    sc_status s = sc_software_find(name, date, pos, a, out, &unknown);
    if (s == SC_OK) return s;
    if (unknown.n == 0 || unknown.d[0].code != SC_C_UNKNOWN_NAME)
        return sc_software_find(name, date, pos, a, out, err);
    if (name && strchr(name, '.') &&
        (strstr(name, ".yml") || strstr(name, ".yaml")))
        return sc_software_find(name, date, pos, a, out, err);
    SC_TRY(software_profiles(a, &profiles, err));
    int wanted = month_of(date && date[0] ? date : name);
    for (const sc_node *p = profiles->child; p; p = p->next) {
        match m = match_of(profiles, p, name, vendor);
        if (better(&m, &best, wanted)) best = m;
    }
    if (!best.profile) return sc_software_find(name, date, pos, a, out, err);
    SC_TRY(sc_software_find(best.profile->key, NULL, pos, a, out, err));
    sc_software *own = SC_NEW(a, sc_software);
    if (!own) return sc_error_nomem(err);
    *own = **out;
    own->open = true; /* what the unknown program has is not known either */
    own->nearest = why(&best, name, vendor, a);
    if (!own->nearest) return sc_error_nomem(err);
    *out = own;
    return SC_OK;
}
