/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - which colours emulated members have.
 *
 * Their colours are unknown, but programs split by arithmetic on the rank: all
 * alike, rank / K or rank % K for a K that divides the size. Of the rules under
 * which every real member has the colour that it gave, the first of these is
 * taken: the rule of STEPCAST_MPI_SPLIT ("div:8,mod:8,all": one per split, in
 * order; the last one applies to all further splits); the one whose counterpart
 * is the key (rank / K by rank % K); the counterpart of the previous split of
 * this communicator; K ranks of a node, then that with the largest groups.
 */
#include "mpi/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum split_how { SPLIT_DIV, SPLIT_MOD } split_how;

/* Equal colours are DIV by the size; distinct colours are DIV by 1. */
typedef struct split_rule {
    split_how how;
    uint32_t k;
} split_rule;

static uint32_t colour_by(split_rule s, uint32_t member)
{
    return s.how == SPLIT_DIV ? member / s.k : member % s.k;
}

static void say(char *out, size_t size, split_rule s, uint32_t n)
{
    if (s.how == SPLIT_DIV && s.k == n)
        snprintf(out, size, "all");
    else
        snprintf(out, size, "%s:%u", s.how == SPLIT_DIV ? "div" : "mod", s.k);
}

/* Whether real members have colours by the rule. Equal colours and distinct
 * colours may be any numbers. */
static bool fits(const mp_comm *c, split_rule s, const split_choice *real)
{
    for (uint32_t i = 0; i < c->n_real; i++) {
        if (s.how == SPLIT_DIV && s.k == c->n) {
            if (real[i].colour != real[0].colour) return false;
        } else if (real[i].colour < 0 ||
                   (uint32_t)real[i].colour != colour_by(s, c->real[i])) {
            return false;
        }
    }
    return true;
}

static bool key_says(const mp_comm *c, split_rule s, const split_choice *real)
{
    split_rule other = {s.how == SPLIT_DIV ? SPLIT_MOD : SPLIT_DIV, s.k};
    bool telling = false;
    for (uint32_t i = 0; i < c->n_real; i++) {
        uint32_t key = colour_by(other, c->real[i]);
        if (real[i].key < 0 || (uint32_t)real[i].key != key) return false;
        telling |= key && key != c->real[i];
    }
    return telling;
}

static uint32_t node_size(void)
{
    const sc_hw *hw = live_config(mp.l)->hw;
    return hw && hw->node_size ? hw->node_size : 1;
}

/* The likelihood of a rule; higher is likelier. */
static uint64_t likely(const mp_comm *c, split_rule s, const split_choice *real)
{
    uint64_t v = s.how == SPLIT_DIV ? s.k : c->n / s.k;
    /* A common colour is mostly 0. */
    if (v == c->n && real[c->me_real].colour) return 1;
    if (s.k == node_size()) v += UINT64_C(1) << 40;
    if (c->split_by == s.k && c->split_mod == (s.how == SPLIT_DIV))
        v += UINT64_C(1) << 41;
    if (key_says(c, s, real)) v += UINT64_C(1) << 42;
    return 2 * v + (s.how == SPLIT_DIV);
}

/* Reads the user's rule for the communicator's split; false: there is none. */
static bool read_rule(split_rule *out, uint32_t n)
{
    static uint32_t asked;
    const char *p = getenv("STEPCAST_MPI_SPLIT");
    if (!p || !*p) return false;
    for (uint32_t i = 0; i < asked && strchr(p, ','); i++)
        p = strchr(p, ',') + 1;
    asked++;
    *out = (split_rule){SPLIT_DIV, n};
    if (!strncmp(p, "all", 3) && (!p[3] || p[3] == ',')) return true;
    char *end = NULL;
    unsigned long k = 0;
    if (!strncmp(p, "div:", 4) || !strncmp(p, "mod:", 4))
        k = strtoul(p + 4, &end, 10);
    if (!k || k > n || (*end && *end != ','))
        live_die(mp.l,
                 "STEPCAST_MPI_SPLIT: \"%s\" is not all, div:K or mod:K with "
                 "K up to the %u ranks that are split",
                 p, n);
    *out = (split_rule){*p == 'd' ? SPLIT_DIV : SPLIT_MOD, (uint32_t)k};
    return true;
}

static split_rule find_rule(const mp_comm *c, const split_choice *real,
                            uint32_t *n_fit, split_rule *second)
{
    split_rule best = {SPLIT_DIV, c->n};
    uint64_t best_v = 0, second_v = 0;
    *n_fit = 0;
    for (uint32_t k = 1; k <= c->n; k++) {
        if (c->n % k) continue;
        for (int how = SPLIT_DIV; how <= SPLIT_MOD; how++) {
            split_rule s = {(split_how)how, k};
            /* mod 1 is equal colours and mod n distinct ones, which div
             * covers */
            if (how == SPLIT_MOD && (k == 1 || k == c->n)) continue;
            if (!fits(c, s, real)) continue;
            uint64_t v = likely(c, s, real);
            ++*n_fit;
            if (v > best_v) {
                *second = best;
                second_v = best_v;
                best = s;
                best_v = v;
            } else if (v > second_v) {
                *second = s;
                second_v = v;
            }
        }
    }
    return best;
}

static void doubts(const mp_comm *c, split_rule s, split_rule second,
                   uint32_t n_fit, int colour)
{
    char is[32], other[32];
    say(is, sizeof is, s, c->n);
    say(other, sizeof other, second, c->n);
    if (n_fit > 1)
        live_warn(mp.l,
                  "MPI_Comm_split: %u ways to split give colour %d to rank %u "
                  "of %u; assumed: %s, not %s; STEPCAST_MPI_SPLIT names one",
                  n_fit, colour, c->me, c->n, is, other);
}

uint32_t split_members(mp_comm *c, const split_choice *real, uint32_t *member)
{
    split_rule s = {SPLIT_DIV, c->n}, second = {0};
    uint32_t n_fit = 0;
    if (c->n_real == c->n || read_rule(&s, c->n)) {
        second = s; /* all colours are known, or the rule is */
    } else {
        s = find_rule(c, real, &n_fit, &second);
        doubts(c, s, second, n_fit, real[c->me_real].colour);
    }
    if (s.k != 1 && s.k != c->n) {
        c->split_by = s.k;
        c->split_mod = s.how == SPLIT_MOD;
    }
    uint32_t n = 0, k = 0, mine = colour_by(s, c->me);
    int colour = real[c->me_real].colour;
    for (uint32_t i = 0; i < c->n; i++) {
        bool known = k < c->n_real && c->real[k] == i;
        if (known ? real[k].colour == colour : colour_by(s, i) == mine)
            member[n++] = i;
        k += known;
    }
    return n;
}
