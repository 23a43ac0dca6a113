/* SPDX-License-Identifier: Apache-2.0 */
/* The flow machine against the slow reference, and what max-min fair rates
 * always are. */
#include "net/flow.h"
#include "property.h"
#include "reference_flow.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LINKS 48
#define FLOWS 64

typedef struct world {
    double bw[LINKS]; /* bytes/s */
    uint32_t n_links, n_flows;
    ref_flow flow[FLOWS];
    sc_time start[FLOWS], latency[FLOWS];
} world;

/* Small numbers tie, which is where it gets difficult. */
static double some_weight(prop *p)
{
    uint64_t kind = prop_below(p, 4);
    if (kind < 2) return 1;
    return kind == 2 ? 1 + (double)prop_below(p, 3) : 1e-2 + 10 * prop_unit(p);
}

/* Links that all fill at one level, but for the rounding of its multiples. */
static void make_even(world *w, double level)
{
    for (uint32_t l = 0; l < w->n_links; l++) {
        double weight = 0;
        for (uint32_t i = 0; i < w->n_flows; i++)
            for (uint32_t k = 0; k < w->flow[i].n; k++)
                if (w->flow[i].link[k] == l)
                    weight += w->flow[i].weight * w->flow[i].share[k];
        w->bw[l] = weight > 0 ? level * weight : level;
    }
}

static void random_world(prop *p, world *w, bool together)
{
    /* few links that all share, or many of which each change reaches some */
    w->n_links = 1 + (uint32_t)prop_below(p, prop_below(p, 2) ? LINKS : 8);
    w->n_flows = 1 + (uint32_t)prop_below(p, FLOWS);
    for (uint32_t l = 0; l < w->n_links; l++)
        w->bw[l] = prop_below(p, 2) ? 1e9 * (1 + (double)prop_below(p, 3))
                                    : 1e8 + 1e10 * prop_unit(p);
    for (uint32_t i = 0; i < w->n_flows; i++) {
        ref_flow *f = &w->flow[i];
        f->n = 1 + (uint32_t)prop_below(p, prop_below(p, 4) ? 3 : REF_LINKS);
        bool whole = prop_below(p, 3) < 2;
        for (uint32_t k = 0; k < f->n; k++) {
            f->link[k] = (uint32_t)prop_below(p, w->n_links);
            f->share[k] = whole ? 1 : 0.1 + 3 * prop_unit(p);
        }
        f->bytes = prop_below(p, 2) ? 1e8 * (double)prop_below(p, 4)
                                    : floor(1e9 * prop_unit(p));
        f->weight = some_weight(p);
        w->start[i] = w->latency[i] = 0;
        if (together) continue;
        w->start[i] = (sc_time)prop_below(p, 4) * (SC_PS_PER_S / 10);
        if (prop_below(p, 2))
            w->latency[i] = (sc_time)prop_below(p, SC_PS_PER_S / 10);
    }
    for (uint32_t i = 0; i < w->n_flows; i++)
        w->flow[i].start = sc_time_to_s(w->start[i] + w->latency[i]);
    if (prop_below(p, 3) == 2) make_even(w, 1e9 * prop_unit(p) + 1e8);
}

static sc_flows *machine_of(const world *w, sc_arena *a)
{
    sc_flows *x = NULL;
    if (sc_flows_new(a, &x, NULL)) abort();
    for (uint32_t l = 0; l < w->n_links; l++)
        if (sc_flows_add_link(x, w->bw[l]) != l) abort();
    return x;
}

static uint32_t post(sc_flows *x, const world *w, uint32_t i)
{
    const ref_flow *f = &w->flow[i];
    bool whole = true;
    for (uint32_t k = 0; k < f->n; k++) whole = whole && f->share[k] == 1;
    sc_flow flow = {.links = f->link,
                    .share = whole ? NULL : f->share,
                    .n_links = f->n,
                    .bytes = (uint64_t)f->bytes,
                    .weight = f->weight,
                    .latency = w->latency[i],
                    .tag = i};
    return sc_flows_post(x, &flow, w->start[i]);
}

typedef bool look_fn(sc_flows *x, const world *w);

/* Runs everything; looks at every moment, where asked to. */
static bool run(sc_flows *x, const world *w, double *end, look_fn *look)
{
    sc_time t;
    uint32_t left = w->n_flows;
    for (uint32_t i = 0; i < w->n_flows; i++)
        if (post(x, w, i) == SC_FLOW_NONE) return false;
    while ((t = sc_flows_next(x)) != SC_TIME_MAX) {
        const sc_flow_end *e;
        uint32_t n = sc_flows_advance(x, t, &e);
        if (n > left) return false;
        for (uint32_t k = 0; k < n; k++) {
            if (e[k].t != t) return false;
            end[e[k].tag] = sc_time_to_s(t);
        }
        left -= n;
        if (look != NULL && !look(x, w)) return false;
    }
    return left == 0;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-11;
}

static bool same_ends(prop *p, const world *w, const double *a, const double *b)
{
    for (uint32_t i = 0; i < w->n_flows; i++) {
        if (near(a[i], b[i])) continue;
        if (prop_reporting(p))
            printf("flow %u ends at %.15g, not %.15g\n", i, a[i], b[i]);
        return false;
    }
    return true;
}

static bool equals_reference(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    double end[FLOWS], expected[FLOWS];
    sc_arena a;
    sc_arena_init(&a, 0);
    random_world(p, &w, false);
    bool ok = run(machine_of(&w, &a), &w, end, NULL);
    reference_flows(w.bw, w.n_links, w.flow, w.n_flows);
    for (uint32_t i = 0; i < w.n_flows; i++) expected[i] = w.flow[i].end;
    ok = ok && same_ends(p, &w, end, expected);
    sc_arena_free(&a);
    return ok;
}

static void test_reference(void **state)
{
    (void)state;
    assert_true(
        prop_check("flows equal reference", 4000, equals_reference, NULL));
}

static bool equals_whole(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    double end[FLOWS], expected[FLOWS];
    sc_arena a;
    sc_arena_init(&a, 0);
    random_world(p, &w, false);
    sc_flows *part = machine_of(&w, &a), *whole = machine_of(&w, &a);
    whole->solve_all = true;
    bool ok = run(part, &w, end, NULL) && run(whole, &w, expected, NULL) &&
              same_ends(p, &w, end, expected) &&
              sc_flows_rated(part) <= sc_flows_rated(whole);
    sc_arena_free(&a);
    return ok;
}

static void test_whole(void **state)
{
    (void)state;
    assert_true(prop_check("part equals whole", 4000, equals_whole, NULL));
}

/* No link over capacity; every moving flow has a link that is full and on
 * which no flow has a higher level. */
static bool is_fair(sc_flows *x, const world *w)
{
    double used[LINKS] = {0}, most[LINKS] = {0};
    sc_flows_next(x);
    for (uint32_t l = 0; l < w->n_links; l++) {
        const net_link *k = &x->link[l];
        used[l] = sc_flows_link_rate(x, l);
        if (used[l] > w->bw[l] * (1 + 1e-9)) return false;
        for (uint32_t i = 0; i < k->n; i++)
            most[l] = fmax(most[l], x->share[k->flow[i]].level);
    }
    for (uint32_t i = 0; i < x->used; i++) {
        bool limited = false;
        if (x->path[i].state != NET_MOVES) continue;
        for (uint32_t k = 0; k < x->path[i].n; k++) {
            uint32_t l = x->path[i].link[k];
            if (used[l] >= w->bw[l] * (1 - 1e-9) &&
                x->share[i].level >= most[l] * (1 - 1e-9))
                limited = true;
        }
        if (!limited) return false;
    }
    return true;
}

/* Nor does a link carry its bytes in less time than at full rate. */
static bool is_bounded(const world *w, const double *end)
{
    for (uint32_t l = 0; l < w->n_links; l++) {
        double bytes = 0, first = INFINITY, last = 0;
        for (uint32_t i = 0; i < w->n_flows; i++)
            for (uint32_t k = 0; k < w->flow[i].n; k++) {
                if (w->flow[i].link[k] != l || w->flow[i].bytes == 0) continue;
                bytes += w->flow[i].bytes * w->flow[i].share[k];
                first = fmin(first, w->flow[i].start);
                last = fmax(last, end[i]);
            }
        if (bytes > 0 && last - first < bytes / w->bw[l] * (1 - 1e-12))
            return false;
    }
    return true;
}

static bool keeps_bounds(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    double end[FLOWS];
    sc_arena a;
    sc_arena_init(&a, 0);
    random_world(p, &w, false);
    bool ok = run(machine_of(&w, &a), &w, end, is_fair) && is_bounded(&w, end);
    sc_arena_free(&a);
    return ok;
}

static void test_bounds(void **state)
{
    (void)state;
    assert_true(prop_check("flows are fair", 2000, keeps_bounds, NULL));
}

/* Flows that start together, on links k times as fast, take 1/k of the time.
 * (Of flows that come at fixed times that is not so, nor of one faster link:
 * a flow that it helps can be in the way of others for longer.) */
static bool scales(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    double end[FLOWS], faster[FLOWS], factor = 1 + 3 * prop_unit(p);
    sc_arena a;
    sc_arena_init(&a, 0);
    random_world(p, &w, true);
    bool ok = run(machine_of(&w, &a), &w, end, NULL);
    for (uint32_t l = 0; l < w.n_links; l++) w.bw[l] *= factor;
    ok = ok && run(machine_of(&w, &a), &w, faster, NULL);
    for (uint32_t i = 0; i < w.n_flows; i++) faster[i] *= factor;
    ok = ok && same_ends(p, &w, faster, end);
    sc_arena_free(&a);
    return ok;
}

static void test_scales(void **state)
{
    (void)state;
    assert_true(prop_check("flows scale", 1000, scales, NULL));
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint32_t levels(sc_flows *x, const world *w, double *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_flows; i++)
        if (w->flow[i].bytes > 0) out[n++] = x->share[i].level;
    qsort(out, n, sizeof *out, by_size);
    return n;
}

/* A faster link: the slowest flow is not slower, and if it is as slow as
 * before the second slowest is not, and so on.  Also what set_bw() finds is
 * what was found with that link from the start. */
static bool rises(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    double before[FLOWS], after[FLOWS], fresh[FLOWS];
    sc_arena a;
    sc_arena_init(&a, 0);
    random_world(p, &w, true);
    uint32_t l = (uint32_t)prop_below(p, w.n_links);
    sc_flows *x = machine_of(&w, &a);
    for (uint32_t i = 0; i < w.n_flows; i++) post(x, &w, i);
    sc_flows_next(x);
    uint32_t n = levels(x, &w, before);
    w.bw[l] *= 1 + prop_unit(p);
    sc_flows_set_bw(x, l, w.bw[l]);
    sc_flows *y = machine_of(&w, &a);
    for (uint32_t i = 0; i < w.n_flows; i++) post(y, &w, i);
    sc_flows_next(x);
    sc_flows_next(y);
    levels(x, &w, after);
    levels(y, &w, fresh);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) ok = ok && near(after[i], fresh[i]);
    for (uint32_t i = 0; i < n; i++) {
        if (after[i] > before[i] * (1 + 1e-9)) break;
        ok = ok && after[i] >= before[i] * (1 - 1e-9);
    }
    sc_arena_free(&a);
    return ok;
}

static void test_rises(void **state)
{
    (void)state;
    assert_true(prop_check("a faster link", 2000, rises, NULL));
}

/* Cancelling and posting at any moment, against a machine that never knew the
 * cancelled flows: rates of those that are left are the same. */
static bool forgets(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    uint32_t id[FLOWS];
    bool kept[FLOWS];
    sc_arena a;
    sc_arena_init(&a, 0);
    random_world(p, &w, true);
    sc_flows *x = machine_of(&w, &a), *y = machine_of(&w, &a);
    for (uint32_t i = 0; i < w.n_flows; i++) {
        id[i] = post(x, &w, i);
        kept[i] = prop_below(p, 2) == 0;
    }
    if (prop_below(p, 2)) sc_flows_next(x);
    for (uint32_t i = 0; i < w.n_flows; i++) {
        if (!kept[i]) sc_flows_cancel(x, id[i]);
        if (!kept[i] && prop_below(p, 4) == 0) sc_flows_next(x);
    }
    bool ok = true;
    uint32_t other[FLOWS];
    for (uint32_t i = 0; i < w.n_flows; i++)
        if (kept[i]) other[i] = post(y, &w, i);
    for (uint32_t i = 0; i < w.n_flows; i++)
        if (kept[i])
            ok = ok && near(sc_flows_rate(x, id[i]) * 1e-9,
                            sc_flows_rate(y, other[i]) * 1e-9);
    sc_arena_free(&a);
    return ok;
}

static void test_forgets(void **state)
{
    (void)state;
    assert_true(prop_check("cancelled flows", 2000, forgets, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_bounds),    cmocka_unit_test(test_scales),
        cmocka_unit_test(test_rises),     cmocka_unit_test(test_forgets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
