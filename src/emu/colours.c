/* SPDX-License-Identifier: Apache-2.0 */
/* colours.c - rules by which programs split communicators. */
#include "base/random.h"
#include "base/util.h"
#include "emu/emu_colours.h"

#include <math.h>
#include <stdlib.h>

#define KEPT   64u   /* of the rules that fit */
#define PLACES 4096u /* where they are compared */
#define OFTEN  16u   /* one of up to so many, if they do not divide all */
#define SURE   14    /* bits */

/* f(i) of a rule, whose values are base + scale * f(i). */
typedef enum rule_kind {
    SAME,    /* 0 */
    FIELD,   /* (i / a) % b */
    CLAMPED, /* min(i / a, b - 1): the last part has what is left */
    SHARED,  /* i * b / n: parts of about the same size */
    BELOW,   /* i >= a */
    ONE_OF,  /* (i / a) % b != c */
    AROUND   /* i % a and i / (a * b), with a scale each */
} rule_kind;

typedef struct rule {
    rule_kind kind;
    uint32_t a, b, c;
    int64_t base, scale, outer; /* outer: of i / (a * b) */
} rule;

/* Numbers of members, and where they are known. */
typedef struct column {
    uint32_t n, n_known;
    const uint32_t *at; /* [n_known] rising */
    const int32_t *v;   /* [n] */
} column;

/* Rules that give all known numbers; `rule` has a sample, and `even` is the
 * first one with as many members for each number. */
typedef struct fitting {
    uint64_t n;
    uint64_t random;
    bool has_even;
    rule even, rule[KEPT];
} fitting;

static int64_t field(const rule *r, uint32_t n, uint32_t i)
{
    switch (r->kind) {
    case SAME: return 0;
    case FIELD: return i / r->a % r->b;
    case CLAMPED: return i / r->a < r->b ? i / r->a : r->b - 1;
    case SHARED: return (int64_t)((uint64_t)i * r->b / n);
    case BELOW: return i >= r->a;
    case ONE_OF: return i / r->a % r->b != r->c;
    case AROUND: return i % r->a;
    }
    return 0;
}

static int64_t outer(const rule *r, uint32_t i)
{
    return r->kind == AROUND ? i / (r->a * r->b) : 0;
}

static int64_t value(const rule *r, uint32_t n, uint32_t i)
{
    return r->base + r->scale * field(r, n, i) + r->outer * outer(r, i);
}

static bool gives(const rule *r, const column *c)
{
    for (uint32_t k = 0; k < c->n_known; k++)
        if (value(r, c->n, c->at[k]) != c->v[c->at[k]]) return false;
    return true;
}

/* ---- base and scales ----------------------------------------------------- */

/* From two members with different f(i); false: there are none, or no whole
 * number fits. */
static bool solve(rule *r, const column *c)
{
    uint32_t i = c->at[0];
    int64_t f = field(r, c->n, i);
    for (uint32_t k = 1; k < c->n_known; k++) {
        uint32_t j = c->at[k];
        int64_t by = field(r, c->n, j) - f, up = (int64_t)c->v[j] - c->v[i];
        if (by == 0) {
            if (up != 0) return false;
            continue;
        }
        r->scale = up / by;
        r->base = c->v[i] - r->scale * f;
        return r->scale != 0 && up % by == 0;
    }
    return false;
}

/* The same of two fields, from three members. */
static bool solve_two(rule *r, const column *c)
{
    uint32_t i = c->at[0];
    int64_t f = field(r, c->n, i), g = outer(r, i), f1 = 0, g1 = 0, up1 = 0;
    for (uint32_t k = 1; k < c->n_known; k++) {
        uint32_t j = c->at[k];
        int64_t f2 = field(r, c->n, j) - f, g2 = outer(r, j) - g,
                up2 = (int64_t)c->v[j] - c->v[i], det = f1 * g2 - f2 * g1;
        if (det == 0) {
            if (f2 != 0 || g2 != 0) f1 = f2, g1 = g2, up1 = up2;
            continue;
        }
        int64_t s = up1 * g2 - up2 * g1, t = f1 * up2 - f2 * up1;
        if (s % det != 0 || t % det != 0) return false;
        r->scale = s / det;
        r->outer = t / det;
        r->base = c->v[i] - r->scale * f - r->outer * g;
        return r->scale != 0 && r->outer != 0;
    }
    return false;
}

/* ---- all rules ----------------------------------------------------------- */

static void keep(fitting *t, const rule *r)
{
    uint64_t k = t->n++;
    if (k >= KEPT)
        k = 1 + sc_random_below(&t->random, t->n - 1); /* never the first */
    if (k < KEPT) t->rule[k] = *r;
}

static void try(fitting *t, const column *c, rule r)
{
    bool solved = r.kind == AROUND ? solve_two(&r, c) : solve(&r, c);
    if (!solved || !gives(&r, c)) return;
    keep(t, &r);
    if (t->has_even || r.kind != FIELD || c->n % (r.a * r.b) != 0) return;
    t->even = r;
    t->has_even = true;
}

/* Two numbers, of which one belongs to a single value of a field. */
static void try_one_of(fitting *t, const column *c, uint32_t a, uint32_t b)
{
    uint32_t first = c->at[0], other = 0;
    while (other < c->n_known && c->v[c->at[other]] == c->v[first]) other++;
    if (other == c->n_known) return;
    rule r = {.kind = ONE_OF, .a = a, .b = b, .c = first / a % b};
    try(t, c, r);
    r.c = c->at[other] / a % b;
    if (b > 2) try(t, c, r);
}

static void try_fields(fitting *t, const column *c)
{
    for (uint32_t a = 1; a < c->n; a++) {
        uint32_t most = (c->n + a - 1) / a;
        for (uint32_t b = 2; b <= most; b++) {
            try(t, c, (rule){.kind = FIELD, .a = a, .b = b});
            if (b < most) try(t, c, (rule){.kind = CLAMPED, .a = a, .b = b});
            if (a > 1 && b < most)
                try(t, c, (rule){.kind = AROUND, .a = a, .b = b});
            if (c->n % (a * b) == 0 || b == most || (a == 1 && b <= OFTEN))
                try_one_of(t, c, a, b);
        }
    }
    for (uint32_t b = 2; b < c->n; b++)
        if (c->n % b) try(t, c, (rule){.kind = SHARED, .b = b});
}

static void try_below(fitting *t, const column *c)
{
    uint32_t k = 1;
    while (k < c->n_known && c->v[c->at[k]] == c->v[c->at[0]]) k++;
    if (k == c->n_known) return;
    for (uint32_t a = c->at[k - 1] + 1; a <= c->at[k]; a++)
        try(t, c, (rule){.kind = BELOW, .a = a});
}

static void fit(fitting *t, const column *c)
{
    rule same = {.kind = SAME, .base = c->v[c->at[0]]};
    t->n = 0;
    t->has_even = false;
    if (gives(&same, c)) keep(t, &same);
    try_below(t, c);
    try_fields(t, c);
}

/* ---- whom to ask --------------------------------------------------------- */

/* Where most of the rules differ from the first, but not nearly all; `n`: they
 * agree everywhere. */
static uint32_t disagreement(const fitting *t, uint32_t n)
{
    uint32_t kept = t->n < KEPT ? (uint32_t)t->n : KEPT, best = n, most = 0;
    uint32_t step = n > PLACES ? n / PLACES : 1;
    for (uint32_t i = 0; i < n; i += step) {
        uint32_t other = 0;
        for (uint32_t k = 1; k < kept; k++)
            other += value(&t->rule[k], n, i) != value(&t->rule[0], n, i);
        uint32_t gain = other < kept - other ? other : kept - other;
        if (gain > most) most = gain, best = i;
    }
    return best;
}

typedef struct survey {
    sc_emu_choice *all;
    uint32_t n;
    sc_emu_ask *ask;
    void *x;
    sc_emu_colours_found *found;
    uint8_t *asked;    /* [n] */
    uint32_t *at;      /* [n] known, rising */
    uint32_t *next;    /* [n] to be asked */
    int32_t *v[2];     /* [n] colours, keys */
    fitting *rules[2]; /* of colours, keys */
    uint32_t n_known, n_next;
    uint64_t random;
} survey;

static void want(survey *s, uint32_t i)
{
    if (i >= s->n || s->asked[i]) return;
    s->asked[i] = 1;
    s->next[s->n_next++] = i;
}

static void look(survey *s)
{
    s->n_known = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!s->all[i].known) continue;
        s->v[0][i] = s->all[i].colour;
        s->v[1][i] = s->all[i].key;
        s->at[s->n_known++] = i;
    }
}

static void ask_them(survey *s)
{
    if (s->n_next == 0) return;
    s->ask(s->x, s->next, s->n_next, s->all);
    s->found->n_asked += s->n_next;
    for (uint32_t i = 0; i < s->n_next; i++)
        s->found->n_silent += !s->all[s->next[i]].known;
    s->n_next = 0;
    look(s);
}

static void want_all(survey *s)
{
    for (uint32_t i = 0; i < s->n; i++) want(s, i);
}

static void want_some(survey *s)
{
    const uint32_t at[] = {0, s->n / 2 - 1, s->n / 2, s->n - 2, s->n - 1};
    for (size_t i = 0; i < SC_COUNT(at); i++) want(s, at[i]);
    for (uint32_t i = 1; i < s->n; i *= 2) want(s, i);
}

/* At random; nobody if all have been asked. */
static void want_another(survey *s)
{
    uint32_t i = (uint32_t)sc_random_below(&s->random, s->n), left = s->n;
    while (left > 0 && s->asked[i]) {
        i = i + 1 < s->n ? i + 1 : 0;
        left--;
    }
    want(s, i);
}

/* How many bits the known numbers have in all, if all that were seen are
 * equally likely. */
static double evidence(const survey *s, int k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_known; i++) {
        uint32_t j = 0;
        while (j < i && s->v[k][s->at[j]] != s->v[k][s->at[i]]) j++;
        n += j == i;
    }
    return s->n_known * log2(n);
}

/* Numbers that follow no rule fit one by chance with the number of rules (about
 * n^1.5, as tried above) by 2^evidence. More members are asked at random until
 * that is below 2^-SURE; where all numbers are equal, log2(n) of them. */
static bool want_proof(survey *s)
{
    double missing = 0;
    for (int k = 0; k < 2; k++) {
        bool same = s->rules[k]->rule[0].kind == SAME;
        double need = same ? log2(s->n) : 1.5 * log2(s->n) + SURE,
               has = same ? s->n_known : evidence(s, k),
               each = same ? 1 : has / s->n_known;
        missing = fmax(missing, (need - has) / each);
    }
    for (uint32_t i = 0; i < missing; i++) want_another(s);
    return s->n_next > 0;
}

/* Until one rule for colours and one for keys are left; false: none is. */
static bool narrow(survey *s)
{
    for (;;) {
        for (int k = 0; k < 2; k++) {
            column c = {s->n, s->n_known, s->at, s->v[k]};
            fit(s->rules[k], &c);
            if (s->rules[k]->n == 0) return false;
            uint32_t i = disagreement(s->rules[k], s->n);
            if (i < s->n) want(s, i);
        }
        if (s->n_next == 0) return true;
        ask_them(s);
    }
}

/* Rules disagree only if too few members could be asked. */
static const rule *chosen(const fitting *t)
{
    return t->has_even ? &t->even : &t->rule[0];
}

static void apply(survey *s)
{
    const rule *colour = chosen(s->rules[0]), *key = chosen(s->rules[1]);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->all[i].known) continue;
        s->all[i] = (sc_emu_choice){.colour = (int32_t)value(colour, s->n, i),
                                    .key = (int32_t)value(key, s->n, i),
                                    .known = true};
        s->found->n_ruled++;
    }
}

static sc_status complete(survey *s, sc_err *err)
{
    look(s);
    if (s->n <= SC_EMU_ASK_ALL)
        want_all(s);
    else
        want_some(s);
    ask_them(s);
    while (s->n_known < s->n) {
        if (!narrow(s)) {
            want_all(s);
            if (s->n_next == 0)
                return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(),
                                "make all ranks real (--ranks all)",
                                "%u of %u members could not be asked which "
                                "colours they give, and those of the others "
                                "follow no rule",
                                s->found->n_silent, s->n);
        } else if (!want_proof(s)) {
            apply(s);
            break;
        }
        ask_them(s);
    }
    return SC_OK;
}

sc_status sc_emu_colours(sc_emu_choice *all, uint32_t n, sc_emu_ask *ask,
                         void *x, sc_emu_colours_found *out, sc_err *err)
{
    sc_arena a;
    sc_arena_init(&a, 0);
    *out = (sc_emu_colours_found){0};
    survey s = {.all = all, .n = n, .ask = ask, .x = x, .found = out};
    s.asked = SC_NEW_N(&a, uint8_t, n);
    s.at = SC_NEW_N(&a, uint32_t, n);
    s.next = SC_NEW_N(&a, uint32_t, n);
    bool room = s.asked && s.at && s.next;
    for (int k = 0; k < 2; k++) {
        s.v[k] = SC_NEW_N(&a, int32_t, n);
        s.rules[k] = SC_NEW(&a, fitting);
        room = room && s.v[k] && s.rules[k];
    }
    for (uint32_t i = 0; room && i < n; i++) s.asked[i] = all[i].known;
    sc_status status = room ? complete(&s, err) : sc_error_nomem(err);
    sc_arena_free(&a);
    return status;
}

/* ---- a part -------------------------------------------------------------- */

typedef struct place {
    int32_t key;
    uint32_t at;
} place;

static int by_key(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

sc_status sc_emu_part(const sc_emu_choice *all, uint32_t n, uint32_t me,
                      uint32_t *member, uint32_t *n_members, sc_err *err)
{
    place *p = malloc(n * sizeof *p);
    uint32_t k = 0;
    if (!p) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++)
        if (all[i].colour == all[me].colour) p[k++] = (place){all[i].key, i};
    qsort(p, k, sizeof *p, by_key);
    for (uint32_t i = 0; i < k; i++) member[i] = p[i].at;
    free(p);
    *n_members = k;
    return SC_OK;
}
