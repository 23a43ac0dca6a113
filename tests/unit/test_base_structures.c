/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_structures.c - the hash map, the heap, quantiles, random numbers. */
#include "base/base.h"
#include "base/heap.h"
#include "unit.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 3000

/* ---- the map ------------------------------------------------------------------ */

static void test_map_empty(void **state)
{
    sc_map m = {0};
    uint32_t at = 0;
    (void)state;
    assert_int_equal(sc_map_next(&m, 7, &at), SC_MAP_END);
    assert_int_equal(sc_map_get(&m, 7), SC_MAP_END);
    sc_map_clear(&m);
    assert_int_equal(m.n, 0);
}

static void test_map_keys(void **state)
{
    sc_arena a;
    sc_map m = {0};
    (void)state;
    sc_arena_init(&a, 0);
    for (uint32_t i = 0; i < N; i++)
        assert_true(sc_map_set(&m, &a, (uint64_t)i << 40, i));
    assert_int_equal(m.n, N);
    assert_true(m.cap >= 2 * m.n);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(sc_map_get(&m, (uint64_t)i << 40), i);
    assert_int_equal(sc_map_get(&m, 1), SC_MAP_END);
    sc_map_clear(&m);
    assert_int_equal(sc_map_get(&m, 0), SC_MAP_END);
    sc_arena_free(&a);
}

/* All values of one hash come, each once. */
static void test_map_same_hash(void **state)
{
    sc_arena a;
    sc_map m = {0};
    uint32_t at = 0, seen = 0, i;
    (void)state;
    sc_arena_init(&a, 0);
    for (i = 0; i < 5; i++) assert_true(sc_map_add(&m, &a, 42, i));
    assert_true(sc_map_add(&m, &a, 43, 5));
    while ((i = sc_map_next(&m, 42, &at)) != SC_MAP_END) seen |= 1u << i;
    assert_int_equal(seen, 31);
    sc_arena_free(&a);
}

/* Random additions and removals against a plain array; few hashes, so that
 * runs of slots collide and go round the end of the table. */
static void test_map_removal(void **state)
{
    enum { HASHES = 61 };

    sc_arena a;
    sc_map m = {0};
    bool there[N] = {false};
    uint64_t random = 1;
    (void)state;
    sc_arena_init(&a, 0);
    for (uint32_t step = 0; step < 20 * N; step++) {
        uint32_t i = (uint32_t)sc_random_below(&random, 200);
        uint64_t hash = i % HASHES + ((uint64_t)UINT32_MAX - 30);
        if (there[i])
            sc_map_remove(&m, hash, i);
        else
            assert_true(sc_map_add(&m, &a, hash, i));
        there[i] = !there[i];
        if (step % 97) continue;
        uint32_t n = 0;
        for (uint32_t k = 0; k < 200; k++) {
            uint32_t at = 0, found;
            hash = k % HASHES + ((uint64_t)UINT32_MAX - 30);
            do found = sc_map_next(&m, hash, &at);
            while (found != SC_MAP_END && found != k);
            assert_int_equal(found == k, there[k]);
            n += there[k];
        }
        assert_int_equal(m.n, n);
    }
    sc_arena_free(&a);
}

static void test_map_pointers(void **state)
{
    sc_arena a;
    sc_map m = {0};
    int thing[3];
    uint32_t at = 0;
    (void)state;
    sc_arena_init(&a, 0);
    for (int i = 0; i < 3; i++)
        assert_true(sc_map_add_ptr(&m, &a, 9, &thing[i]));
    sc_map_remove_ptr(&m, 9, &thing[1]);
    assert_ptr_equal(sc_map_next_ptr(&m, 9, &at), &thing[0]);
    assert_ptr_equal(sc_map_next_ptr(&m, 9, &at), &thing[2]);
    assert_null(sc_map_next_ptr(&m, 9, &at));
    sc_arena_free(&a);
}

/* Without memory nothing changes. */
static void test_map_memory(void **state)
{
    sc_arena a;
    sc_map m = {0};
    uint32_t n = 0;
    (void)state;
    sc_arena_init(&a, 4096);
    while (sc_map_set(&m, &a, n, n)) n++;
    assert_true(n > 8);
    assert_int_equal(m.n, n);
    assert_int_equal(sc_map_get(&m, n - 1), n - 1);
    assert_int_equal(sc_map_get(&m, n), SC_MAP_END);
    sc_arena_free(&a);
}

/* ---- the heap ----------------------------------------------------------------- */

static bool less(const void *none, uint32_t a, uint32_t b)
{
    (void)none;
    return a < b;
}

SC_HEAP(test_heap, uint32_t, void, less)

static void test_heap_order(void **state)
{
    uint32_t v[N], n = 0, out = 0;
    uint64_t random = 2, in = 0;
    (void)state;
    for (; n < N; n++) {
        uint32_t x = (uint32_t)sc_random_below(&random, 1000);
        test_heap_push(NULL, v, n, x);
        in += x;
    }
    for (uint32_t last = 0; n > 0; n--) {
        uint32_t x = test_heap_pop(NULL, v, n);
        assert_true(x >= last);
        last = x;
        out += x;
    }
    assert_int_equal(in, out);
}

static void test_heap_removal(void **state)
{
    uint32_t v[N], n = N;
    uint64_t random = 3;
    (void)state;
    for (uint32_t i = 0; i < N; i++)
        v[i] = (uint32_t)sc_random_below(&random, 1000);
    test_heap_build(NULL, v, n);
    while (n > 0) {
        test_heap_remove(NULL, v, n, (uint32_t)sc_random_below(&random, n));
        n--;
        for (uint32_t i = 1; i < n; i++)
            if (v[(i - 1) / 2] > v[i])
                fail_msg("%u stands above %u of %u", v[(i - 1) / 2], v[i], n);
    }
}

/* A broken invariant ends the program in builds for tests. */
static void test_assertion(void **state)
{
    int status = 0;
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint32_t v[1] = {0};
        struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(2);
        (void)test_heap_pop(NULL, v, 0);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
#ifdef NDEBUG
    assert_true(WIFEXITED(status));
#else
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
#endif
}

/* ---- quantiles and random numbers --------------------------------------------- */

static void test_quantiles(void **state)
{
    double v[] = {4, 1, 3, 2}, w[] = {5, 1, 3};
    sc_weighted weighted[] = {{3, 1}, {1, 2}, {2, 1}};
    (void)state;
    assert_true(sc_quantile(v, 4, 0.5) == 2.5);
    assert_true(sc_quantile_sorted(v, 4, 0.25) == 1.75);
    assert_true(sc_quantile_sorted(v, 4, 1) == 4);
    assert_true(sc_quantile(w, 3, 0.5) == 3);
    assert_true(isnan(sc_quantile(w, 0, 0.5)));
    /* the middles of the weights are at 1/4, 5/8 and 7/8 */
    assert_true(sc_weighted_quantile(weighted, 3, 0.1) == 1);
    assert_true(sc_weighted_quantile(weighted, 3, 0.75) == 2.5);
    assert_true(sc_weighted_quantile(weighted, 3, 0.9) == 3);
}

/* Tables of the normal distribution: P(x < 1.6449) = 0.95. */
static void test_normal_quantile(void **state)
{
    (void)state;
    assert_true(fabs(sc_normal_max(0.95, 1) - 1.6448536269514722) < 1e-12);
    assert_true(fabs(sc_normal_max(0.05, 1) + 1.6448536269514722) < 1e-12);
    /* both of two lie below with probability 0.95^2 */
    assert_true(fabs(sc_normal_max(0.9025, 2) - 1.6448536269514722) < 1e-12);
    assert_true(isfinite(sc_normal_max(1 - 0x1p-53, 1e12)));
}

static void test_normal(void **state)
{
    enum { DRAWS = 200000 };

    uint64_t random = 4, again;
    double sum = 0, square = 0, beyond = 0, both = 0, pair[2];
    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        again = random;
        sc_normal_pair(&random, pair);
        assert_true(pair[0] == sc_normal(&again));
        assert_true(again == random);
        both += pair[0] * pair[1];
        for (int k = 0; k < 2; k++) {
            sum += pair[k];
            square += pair[k] * pair[k];
            beyond += pair[k] > 1.6448536269514722;
        }
    }
    /* four standard errors */
    assert_true(fabs(sum / (2 * DRAWS)) < 4 / sqrt(2 * DRAWS));
    assert_true(fabs(square / (2 * DRAWS) - 1) < 4 * sqrt(2.0 / (2 * DRAWS)));
    assert_true(fabs(beyond / (2 * DRAWS) - 0.05) <
                4 * sqrt(0.05 * 0.95 / (2 * DRAWS)));
    assert_true(fabs(both / DRAWS) < 4 / sqrt(DRAWS));
}

/* ---- binary search ------------------------------------------------------------- */

static void test_first(void **state)
{
    static const uint32_t rising[] = {2, 3, 5, 8, 13};
    (void)state;
    for (uint32_t n = 0; n <= 5; n++)
        for (uint32_t number = 0; number < 15; number++) {
            uint32_t at = 0, found = 0, want = 0;
            while (want < n && rising[want] < number) want++;
            SC_FIRST(at, n, mid, rising[mid] >= number);
            assert_int_equal(at, want);
            found = want < n && rising[want] == number ? want : n;
            assert_int_equal(sc_find_rising(rising, n, number), found);
        }
    uint32_t from = 2; /* nothing before is asked for */
    SC_FIRST(from, 5, mid, rising[mid] > 1);
    assert_int_equal(from, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_empty),
        cmocka_unit_test(test_map_keys),
        cmocka_unit_test(test_map_same_hash),
        cmocka_unit_test(test_map_removal),
        cmocka_unit_test(test_map_pointers),
        cmocka_unit_test(test_map_memory),
        cmocka_unit_test(test_heap_order),
        cmocka_unit_test(test_heap_removal),
        cmocka_unit_test(test_assertion),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_normal_quantile),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
