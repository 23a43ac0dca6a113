/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator against one that looks through a list of blocks, and memory
 * over time against sums. */
#include "reference_exec.h"
#include "sim/memory_alloc.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define MIB (1024ull * 1024)

/* ---- the slow allocator -------------------------------------------------- */

#define BLOCKS 600

typedef struct slow_block {
    uint64_t address, size;
    uint32_t segment;
    bool free, small;
} slow_block;

typedef struct slow {
    slow_block b[BLOCKS]; /* by address */
    uint32_t n, segments;
    uint64_t end, reserved;
} slow;

static void slow_insert(slow *s, uint32_t at, slow_block b)
{
    memmove(&s->b[at + 1], &s->b[at], (s->n - at) * sizeof b);
    s->b[at] = b;
    s->n++;
}

static uint64_t slow_take(slow *s, uint64_t bytes)
{
    uint64_t size = (bytes + 511) / 512 * 512;
    bool is_small = size <= MIB;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->b[i].free && s->b[i].small == is_small && s->b[i].size >= size &&
            (best == UINT32_MAX || s->b[i].size < s->b[best].size))
            best = i;
    if (best == UINT32_MAX) {
        uint64_t seg = is_small ? 2 * MIB
                       : size < 10 * MIB
                           ? 20 * MIB
                           : (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
        best = s->n;
        slow_insert(s, best,
                    (slow_block){s->end, seg, s->segments++, true, is_small});
        s->end += seg;
        s->reserved += seg;
    }
    slow_block *b = &s->b[best];
    uint64_t rest = b->size - size;
    b->free = false;
    if (is_small ? rest >= 512 : rest > MIB) {
        b->size = size;
        slow_insert(
            s, best + 1,
            (slow_block){b->address + size, rest, b->segment, true, is_small});
    }
    return s->b[best].address;
}

/* Block `at` becomes part of the one before, if both are free. */
static void slow_join(slow *s, uint32_t at)
{
    if (at == 0 || at >= s->n || !s->b[at].free || !s->b[at - 1].free ||
        s->b[at].segment != s->b[at - 1].segment)
        return;
    s->b[at - 1].size += s->b[at].size;
    memmove(&s->b[at], &s->b[at + 1], (s->n - at - 1) * sizeof s->b[0]);
    s->n--;
}

static void slow_give(slow *s, uint64_t address)
{
    uint32_t i = 0;
    while (s->b[i].address != address) i++;
    s->b[i].free = true;
    slow_join(s, i + 1);
    slow_join(s, i);
}

static uint64_t some_bytes(prop *p)
{
    switch (prop_below(p, 4)) {
    case 0: return 1 + prop_below(p, 4000);
    case 1: return 1 + prop_below(p, MIB);
    case 2: return 1 + prop_below(p, 11 * MIB);
    default: return (1 + prop_below(p, 30)) * MIB;
    }
}

static bool equals_list(prop *p, void *ctx)
{
    static slow s; /* too large for a stack */
    (void)ctx;
    sc_arena a;
    alloc x;
    uint32_t block[200], n = 0;
    bool ok = true;
    sc_arena_init(&a, 0);
    alloc_init(&x, &a, UINT64_MAX);
    memset(&s, 0, sizeof s);
    uint32_t steps = (uint32_t)prop_below(p, 200);
    for (uint32_t k = 0; k < steps && ok; k++) {
        if (n > 0 && prop_below(p, 2)) {
            uint32_t i = (uint32_t)prop_below(p, n);
            slow_give(&s, x.block[block[i]].address);
            alloc_give(&x, block[i]);
            block[i] = block[--n];
        } else {
            uint64_t bytes = some_bytes(p), address = slow_take(&s, bytes);
            block[n] = alloc_take(&x, bytes);
            ok = x.block[block[n]].address == address;
            n++;
        }
        ok = ok && x.reserved == s.reserved;
    }
    sc_arena_free(&a);
    return ok;
}

static void test_blocks(void **state)
{
    (void)state;
    assert_true(prop_check("allocator equals list", 2000, equals_list, NULL));
}

/* ---- memory over time ---------------------------------------------------- */

typedef struct world {
    sc_arena a;
    sc_err err;
    sc_graph x;
    sc_result r;
    sc_lifetime *t;
    uint32_t n;
} world;

static bool begin(prop *p, world *w)
{
    sc_sim_opts o;
    sc_arena_init(&w->a, 0);
    sc_err_init(&w->err);
    sc_sim_opts_init(&o);
    if (!random_exec(p, 20, false, true, &w->a, &w->x, &w->err) ||
        sc_sim_run(&w->x, &o, &w->a, &w->r, &w->err))
        return false;
    w->n = (uint32_t)prop_below(p, 60);
    w->t = SC_NEW_N(&w->a, sc_lifetime, w->n);
    for (uint32_t i = 0; i < w->n; i++) {
        sc_lifetime *t = &w->t[i];
        *t = (sc_lifetime){.name = "t", .first = SC_NONE};
        t->device = (uint32_t)prop_below(p, w->x.n_classes);
        t->kind = (uint8_t)prop_below(p, SC_N_MEM_KINDS);
        t->bytes = prop_below(p, 5) ? some_bytes(p) : 0;
        if (w->x.n_ops == 0) continue;
        if (prop_below(p, 4)) t->first = (sc_op)prop_below(p, w->x.n_ops);
        t->n_last = (uint32_t)prop_below(p, 3);
        sc_op *last = SC_NEW_N(&w->a, sc_op, t->n_last);
        for (uint32_t k = 0; k < t->n_last; k++)
            last[k] = (sc_op)prop_below(p, w->x.n_ops);
        t->last = last;
    }
    return true;
}

/* What is live on a device just after `t`, with what ends then still there:
 * the most that may be counted at that moment. */
static uint64_t live_at(const world *w, uint32_t device, sc_time t, bool most)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        const sc_lifetime *l = &w->t[i];
        sc_time from = l->first == SC_NONE ? 0 : w->r.start[l->first], to = 0;
        if (l->device != device) continue;
        for (uint32_t k = 0; k < l->n_last; k++)
            if (w->r.end[l->last[k]] > to) to = w->r.end[l->last[k]];
        if (to < from) to = from;
        bool ended = l->n_last > 0 && (to < t || (to == t && from < t));
        if (!most && l->n_last > 0 && to == t) ended = true;
        if (from <= t && !ended) sum += (l->bytes + 511) / 512 * 512;
    }
    return sum;
}

static bool is_balanced(const world *w, uint32_t device, const sc_mem_device *d)
{
    uint64_t most = 0, sum = 0, reserved = 0;
    for (uint32_t k = 0; k < d->n; k++) {
        const sc_mem_point *at = &d->at[k];
        if (at->live > at->reserved) return false;
        if (at->reserved > reserved) reserved = at->reserved;
        if (k > 0 && at->t < at[-1].t) return false;
        uint64_t there = live_at(w, device, at->t, true);
        if (there > most) most = there;
        /* the last change of a moment: all of it has happened */
        if ((k + 1 == d->n || at[1].t > at->t) &&
            at->live != live_at(w, device, at->t, false))
            return false;
    }
    for (int k = 0; k < SC_N_MEM_KINDS; k++) sum += d->by_kind[k];
    for (uint32_t k = 1; k < d->n_top; k++)
        if (w->t[d->top[k]].bytes > w->t[d->top[k - 1]].bytes) return false;
    return d->peak_live == most && sum == most && d->peak_reserved == reserved;
}

static bool balances(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    sc_mem_device *d = NULL;
    sc_mem_opts o = {.capacity =
                         prop_below(p, 2) ? prop_below(p, 400) * MIB : 0,
                     .context = prop_below(p, 9) * MIB};
    bool ok = begin(p, &w);
    w.x.lifetime = w.t;
    w.x.n_lifetimes = w.n;
    ok = ok && !sc_memory_run(&w.x, &w.r, &o, &w.a, &d, &w.err);
    for (uint32_t k = 0; ok && k < w.x.n_classes; k++)
        ok = is_balanced(&w, k, &d[k]) &&
             d[k].fits == (o.capacity == 0 ||
                           d[k].peak_reserved + o.context <= o.capacity);
    if (!ok && prop_reporting(p))
        printf("%u ops, %u tensors, capacity %llu, context %llu: fits %d, "
               "reserved %llu, error %s\n",
               w.x.n_ops, w.n, (unsigned long long)o.capacity,
               (unsigned long long)o.context, d ? d[0].fits : -1,
               d ? (unsigned long long)d[0].peak_reserved : 0,
               w.err.n ? w.err.d[0].msg : "none");
    sc_arena_free(&w.a);
    return ok;
}

static void test_balance(void **state)
{
    (void)state;
    assert_true(prop_check("memory balances", 2000, balances, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_balance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
