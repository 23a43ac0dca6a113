/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - reads configuration trees by tables of keys. */
#include "import/keys.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PATH = 240 };

typedef struct walk {
    import_sink *to;
    const import_key *keys;
    import_value *v;
} walk;

static const import_key *find(const import_key *keys, const char *path)
{
    const import_key *k = keys;
    while (k->path && !sc_glob(k->path, path)) k++;
    return k->path ? k : NULL;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0) return true;
    return false;
}

/* Null, no, zero, "none" and an empty list are off, and so is a map whose
 * "enabled" is off. */
static bool is_off(const sc_node *n)
{
    static const char *const off[] = {"",     "false", "no",  "off", "0",
                                      "none", "null",  "0.0", NULL};
    if (n->kind == SC_N_NULL || n->kind == SC_N_SEQ)
        return n->kind == SC_N_NULL || n->n == 0;
    if (n->kind == SC_N_SCALAR) return is_one_of(n->text, off);
    const sc_node *e = sc_node_get(n, "enabled");
    if (!e) e = sc_node_get(n, "enable");
    return n->n == 0 || (e && is_off(e));
}

static bool is_given(const sc_node *n)
{
    static const char *const open[] = {"auto", "null", "None", "~"};
    if (n->kind != SC_N_SCALAR) return n->kind != SC_N_NULL;
    for (size_t i = 0; i < SC_COUNT(open); i++)
        if (strcmp(n->text, open[i]) == 0) return false;
    return true;
}

static void wrong_type(walk *w, import_value *v, const char *needs)
{
    v->bad = true;
    import_error(w->to, SC_C_TYPE, v->at, NULL, "%s needs %s%s%.60s", v->name,
                 needs, v->text[0] ? ", not " : "", v->text);
}

static void read_number(walk *w, const import_key *k, import_value *v)
{
    const char *s = v->text;
    size_t n = strlen(s);
    /* "1e-5" is a number; TOML's "5_000" has lost its underscores */
    bool whole =
        n > 0 &&
        strspn(s + (*s == '-'), "0123456789") == n - (size_t)(*s == '-') &&
        n > (*s == '-');
    if (k->kind == IMPORT_INT ? !whole : n == 0 || number_span(s) != n) {
        wrong_type(w, v, k->kind == IMPORT_INT ? "a whole number" : "a number");
        return;
    }
    v->number = number_scaled(s, n, 0);
    if (v->number >= k->lo && v->number <= k->hi) return;
    v->bad = true;
    import_error(w->to, SC_C_RANGE, v->at, NULL,
                 "%s %.40s is outside [%.0f, %.0f]", v->name, s, k->lo, k->hi);
}

static void read_bool(walk *w, import_value *v)
{
    static const char *const yes[] = {"true", "yes", "on", "1", NULL};
    static const char *const no[] = {"false", "no", "off", "0", NULL};
    v->number = is_one_of(v->text, yes);
    if (v->number == 0 && !is_one_of(v->text, no))
        wrong_type(w, v, "true or false");
}

static void use(walk *w, const import_key *k, const char *name,
                const sc_node *n)
{
    import_value v = {.given = is_given(n),
                      .pos = n->key ? n->key_pos : n->pos,
                      .at = n->pos,
                      .text = "",
                      .name = name,
                      .node = n};
    if (!v.given) {
        w->v[k->id].open = true;
        return;
    }
    if (n->kind == SC_N_SCALAR) v.text = n->text;
    if (k->kind != IMPORT_NODE && n->kind != SC_N_SCALAR)
        wrong_type(w, &v, "one value");
    else if (k->kind == IMPORT_INT || k->kind == IMPORT_REAL)
        read_number(w, k, &v);
    else if (k->kind == IMPORT_BOOL)
        read_bool(w, &v);
    const import_value *old = &w->v[k->id];
    if (old->given && strcmp(old->text, v.text) != 0) {
        char hint[240];
        snprintf(hint, sizeof hint, "line %u has %.100s %.80s",
                 (unsigned)old->pos.line, old->name, old->text);
        import_error(w->to, SC_C_CONFLICT, v.at, hint, "%s %.60s", v.name,
                     v.text);
    }
    w->v[k->id] = v;
}

bool import_is_slip(const char *name, const char *known)
{
    size_t n = strlen(name), k = strlen(known), longer = n > k ? n : k;
    size_t shorter = n < k ? n : k, a = 0, b = 0;
    if (longer - shorter > 2 || longer < 6) return false;
    while (a < shorter && name[a] == known[a]) a++;
    while (b < shorter - a && name[n - 1 - b] == known[k - 1 - b]) b++;
    return a + b + 2 >= longer;
}

/* The used key that `path` is a misspelling of; NULL: none. */
static const char *misspelt(const walk *w, const char *path)
{
    const char *dot = strrchr(path, '.');
    for (const import_key *k = w->keys; k->path; k++) {
        bool any = strncmp(k->path, "*.", 2) == 0;
        if (k->use != IMPORT_USED) continue;
        if (import_is_slip(any && dot ? dot + 1 : path,
                           any ? k->path + 2 : k->path))
            return any ? k->path + 2 : k->path;
    }
    return NULL;
}

/* The known key nearest to `path`. */
static const char *nearest(walk *w, const char *path)
{
    const char *name[400], *near = misspelt(w, path);
    uint32_t n = 0;
    for (const import_key *k = w->keys; k->path && n + 1 < 400; k++)
        if (!strpbrk(k->path, "*?")) name[n++] = k->path;
    name[n] = NULL;
    if (!near) near = sc_nearest(path, name);
    return near ? sc_sprintf(w->to->a, "did you mean %s?", near)
                : "a key that is not understood may change the step; remove "
                  "it if it does not";
}

static sc_status apply(walk *w, const import_key *k, const char *path,
                       const sc_node *n)
{
    sc_pos pos = n->key ? n->key_pos : n->pos;
    const char *name;
    switch ((import_use)k->use) {
    case IMPORT_HARMLESS: break;
    case IMPORT_REPORTED:
        if (!is_off(n) && is_given(n))
            return import_warn(w->to, pos, "%.160s is not modelled", path);
        break;
    case IMPORT_REFUSED:
        if (!is_off(n) && is_given(n))
            import_error(w->to, SC_C_UNSUPPORTED, pos, k->hint,
                         "%.160s changes the step and is not modelled", path);
        break;
    case IMPORT_USED:
        name = sc_strdup(w->to->a, path);
        if (!name) return sc_error_nomem(w->to->err);
        use(w, k, name, n);
        break;
    }
    return SC_OK;
}

/* Whether the keys inside a map are looked up instead of the map itself, which
 * row `k` matches: the row needs a single value, or ends in '*' and earlier
 * rows may match keys inside. */
static bool is_of_inside(const import_key *k, const sc_node *n)
{
    if (!k || n->kind != SC_N_MAP || n->n == 0) return false;
    if (k->use == IMPORT_USED) return k->kind != IMPORT_NODE;
    size_t len = strlen(k->path);
    return strcmp(k->path, "*") == 0 ||
           (k->use == IMPORT_HARMLESS && k->path[len - 1] == '*');
}

/* Whether the table has keys of the map `path`; a null map switches them
 * off. */
static bool is_section(const import_key *keys, const char *path)
{
    size_t n = strlen(path);
    for (; keys->path; keys++)
        if (strncmp(keys->path, path, n) == 0 && keys->path[n] == '.')
            return true;
    return false;
}

static sc_status map(walk *w, const sc_node *n, char path[PATH], size_t len)
{
    for (const sc_node *c = n->child; c; c = c->next) {
        int m =
            snprintf(path + len, PATH - len, "%s%s", len ? "." : "", c->key);
        if (m < 0 || (size_t)m >= PATH - len) {
            import_error(
                w->to, SC_C_TOO_BIG, c->key_pos, NULL,
                "the path of this key is longer than that of any known key");
            continue;
        }
        const import_key *k = find(w->keys, path);
        bool other = k && strcmp(k->path, "*") == 0;
        if (is_of_inside(k, c) || (other && misspelt(w, path))) k = NULL;
        if (k)
            SC_TRY(apply(w, k, path, c));
        else if (c->kind == SC_N_MAP)
            SC_TRY(map(w, c, path, len + (size_t)m));
        else if (is_given(c) || !is_section(w->keys, path))
            import_error(w->to, SC_C_UNKNOWN_KEY, c->key_pos, nearest(w, path),
                         "unknown key %.160s", path);
    }
    return SC_OK;
}

sc_status import_keys_read(import_sink *to, const import_key *keys,
                           const sc_node *root, import_value *v)
{
    char path[PATH] = "";
    walk w = {to, keys, v};
    if (root->kind == SC_N_MAP) return map(&w, root, path, 0);
    import_error(to, SC_C_TYPE, root->pos, NULL,
                 "the file is not a mapping of keys");
    return SC_OK;
}

int import_choose(import_sink *to, import_value *v, const char *const *names,
                  const char *hint)
{
    if (!import_good(v)) return -1;
    for (int i = 0; names[i]; i++)
        if (strcasecmp(v->text, names[i]) == 0) return i;
    v->bad = true;
    import_error(to, SC_C_UNKNOWN_NAME, v->at, hint, "%s '%.60s'", v->name,
                 v->text);
    return -1;
}
