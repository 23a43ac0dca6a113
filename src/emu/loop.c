/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - the part of a run that repeats, so that an emulated rank can run it
 * for ever: the program's start once, and then whole repetitions.
 */
#include "emu/emu_log.h"
#include "emu/steps.h"

#include <string.h>

#define FEWEST  3u /* repetitions; the first one is not repeated */
#define ENDINGS 8u /* operations after the last one */

/* Communicators that are made anew in every step have new numbers. */
static uint64_t *group_letters(const sc_emu_run *run, sc_arena *a)
{
    uint64_t *out = SC_NEW_N(a, uint64_t, run->n_groups);
    for (uint32_t i = 0; out && i < run->n_groups; i++)
        out[i] = sc_hash(run->group[i].rank,
                         run->group[i].n * sizeof *run->group[i].rank, 0);
    return out;
}

/* Backwards. */
static void spell(const sc_emu_run *run, const uint64_t *group, bool tags,
                  bool bytes, uint64_t *letter)
{
    for (uint64_t i = 0; i < run->n_records; i++) {
        const sc_emu_record *o = &run->record[run->n_records - 1 - i];
        const uint64_t parts[] = {o->coll,
                                  group[o->group],
                                  bytes ? o->bytes : 0,
                                  tags ? (uint32_t)o->tag : 0,
                                  o->peer,
                                  o->flags & SC_EMU_ASYNC};
        letter[i] = sc_hash(parts, sizeof parts, 0);
    }
}

/* The longest end of a run, given backwards, that repeats with a period of at
 * least `least` operations. `z` has room for `n`. */
static void longest(const uint64_t *letter, uint64_t n, uint64_t least,
                    bool tags, uint64_t *z, sc_emu_loop *best)
{
    uint64_t most = best->each * best->n;
    emu_prefixes(letter, n, z);
    for (uint64_t p = 1; p < n; p++) {
        uint64_t k = z[p];
        if (p < least || (p + k) / p < FEWEST || p + k <= most) continue;
        most = p + k;
        *best = (sc_emu_loop){n - most, p, most / p, tags};
    }
}

static bool complete(const sc_emu_record *o, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (o[i].end == SC_TIME_MAX) return false;
    return true;
}

sc_emu_loop sc_emu_loop_find(const sc_emu_run *run, uint64_t least, sc_arena *a)
{
    sc_emu_loop best = {0};
    uint64_t n = run->n_records;
    uint64_t *letter = SC_NEW_N(a, uint64_t, n), *z = SC_NEW_N(a, uint64_t, n);
    const uint64_t *group = group_letters(run, a);
    if (!letter || !z || !group) return best;
    for (int exact = 2; exact >= 0 && 2 * best.each * best.n < n; exact--) {
        spell(run, group, exact > 1, exact > 0, letter);
        /* the last operations of a run may not be part of it */
        for (uint64_t k = 0; k <= ENDINGS && k < n; k++)
            longest(letter + k, n - k, least, exact > 1, z, &best);
    }
    const sc_emu_record *o = run->record + best.from;
    while (best.n > 0 && !complete(o + (best.n - 1) * best.each, best.each))
        best.n--;
    return best;
}

/* ---- a run that can go on for ever --------------------------------------- */

/* Whether each tag from record `from` on changes by the same number from one
 * repetition to the next. */
static bool is_steady(const sc_emu_run *run, uint64_t from, uint64_t each)
{
    for (uint64_t i = from; i + each < run->n_records; i++) {
        const sc_emu_record *o = &run->record[i];
        if (o->tag < 0 || o[each].tag < 0) return false;
        if (i - from >= each && (int64_t)o[each].tag - o->tag !=
                                    (int64_t)o->tag - o[-(ptrdiff_t)each].tag)
            return false;
    }
    return from + 2 * each <= run->n_records;
}

void sc_emu_loop_cut(sc_emu_run *run, const sc_emu_loop *x)
{
    sc_emu_totals *t = &run->totals;
    run->n_records = x->from + x->n * x->each;
    t->loop = x->each;
    t->loop_from = x->from + x->each;
    t->now = 0;
    for (uint64_t i = 0; i < run->n_records; i++)
        if (run->record[i].end > t->now && run->record[i].end < SC_TIME_MAX)
            t->now = run->record[i].end;
    if (x->tags || is_steady(run, t->loop_from, x->each)) return;
    for (uint64_t i = t->loop_from; i < run->n_records; i++)
        run->record[i].tag = SC_EMU_ANY_TAG;
}
