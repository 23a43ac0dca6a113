/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modelnear.c - the published model that is nearest to a name that no model
 * has, for rows that state no sizes.
 */
#include "base/number.h"
#include "calib/runs.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Length of the letters at the beginning of a name: "llama" of "llama3-8b". */
static size_t stem(const char *name)
{
    size_t n = 0;
    while (isalpha((unsigned char)name[n])) n++;
    return n;
}

/* Characters that two names have in common at their beginnings. */
static size_t common(const char *x, const char *y)
{
    size_t n = 0;
    while (x[n] != '\0' && x[n] == y[n]) n++;
    return n;
}

double calib_name_params(const char *name)
{
    for (const char *s = name; *s != '\0'; s++) {
        bool starts = s == name || !isalnum((unsigned char)s[-1]);
        size_t n = starts && isdigit((unsigned char)*s) ? number_span(s) : 0;
        if (n == 0) continue;
        char unit = s[n];
        double v = number_scaled(s, n, 0);
        if (unit == '\0' || isalnum((unsigned char)s[n + 1])) continue;
        if (unit == 'b') return v;
        if (unit == 'm') return v * 1e-3;
        if (unit == 't') return v * 1e3;
    }
    return NAN;
}

/* How near a published model is: its first letters, whether it is of attention
 * blocks with experts as the row's, the ratio of parameters, then the letters
 * in common. */
typedef struct nearness {
    bool alike, named;
    size_t common;
    double apart; /* |log| of the ratio of parameters */
} nearness;

static bool nearer(const nearness *x, const nearness *y)
{
    if (x->named != y->named) return x->named;
    if (x->alike != y->alike) return x->alike;
    if (x->apart != y->apart) return x->apart < y->apart;
    return x->common > y->common;
}

/* Whether a name states active parameters ("30b-a3b", "8x7b"). */
static bool names_experts(const char *name)
{
    for (const char *s = name; *s != '\0'; s++) {
        bool digit = isdigit((unsigned char)s[1]);
        if (*s == '-' && s[1] == 'a' && isdigit((unsigned char)s[2]))
            return true;
        if (*s == 'x' && s > name && isdigit((unsigned char)s[-1]) && digit)
            return true;
    }
    return false;
}

sc_status calib_nearest_model(const char *name, double params, bool experts,
                              sc_arena *a, const sc_model **out, sc_err *err)
{
    const char **names;
    uint32_t n;
    nearness best = {0};
    size_t len = stem(name);
    *out = NULL;
    experts = experts || names_experts(name);
    SC_TRY(sc_model_list(a, &names, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        const sc_model *m;
        bool named =
            len > 1 && common(name, names[i]) >= len && stem(names[i]) == len;
        if (!named && !(params > 0)) continue;
        SC_TRY(sc_model_load(names[i], sc_pos_none(), a, &m, err));
        if (m->net || (!named && m->t.encoder)) continue;
        nearness x = {(m->t.experts > 1) == experts && !m->t.pattern, named,
                      common(name, names[i]), 0};
        if (params > 0) x.apart = fabs(log((double)m->params / (params * 1e9)));
        if (x.apart < 0.05) x.apart = 0; /* names round */
        if (*out && !nearer(&x, &best)) continue;
        best = x;
        *out = m;
    }
    return SC_OK;
}
