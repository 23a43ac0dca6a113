/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of embedding rows that a cache serves: the closed form against an exact
 * simulation of least-recently-used replacement by stack distances.
 *
 * Tables follow the reuse histograms of dlrm_datasets: each row occurs as often
 * as drawn for it, in random order.  Rows within a bin are drawn by another law
 * than the closed form assumes.
 */
#include "cost/cost_lookup.h"
#include "fixture.h"
#include "reuse_stats.h"

#include <math.h>

#define LIMIT 0.03 /* the largest difference of hit rates that is allowed */

/* ---- look-ups */

typedef struct stream {
    uint32_t *row; /* [n] */
    uint32_t n, rows;
} stream;

static void shuffle(uint32_t *v, uint32_t n, uint64_t *seed)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)sc_random_below(seed, i), x = v[i - 1];
        v[i - 1] = v[j];
        v[j] = x;
    }
}

/* The reuse factor of a row of the bin: uniform in the factor itself. */
static uint32_t draw_reuse(int bin, uint32_t n, uint64_t *seed)
{
    if (bin < 2) return (uint32_t)bin + 1;
    uint32_t low = 1u << (bin - 1);
    uint32_t k = low + 1 + (uint32_t)sc_random_below(seed, low);
    return k < n / 4 ? k : n / 4;
}

/* `tilt` changes the histogram as tables differ from their mean: weights of
 * bins are multiplied by exp(tilt bin). */
static void tilted(const double from[SC_REUSE_BINS], double tilt,
                   double out[SC_REUSE_BINS])
{
    double sum = 0;
    for (int i = 0; i < SC_REUSE_BINS; i++)
        sum += out[i] = from[i] * exp(tilt * i);
    for (int i = 0; i < SC_REUSE_BINS; i++) out[i] /= sum;
}

static stream draw(const double fraction[SC_REUSE_BINS], uint32_t n,
                   uint64_t *seed)
{
    stream s = {malloc(n * sizeof *s.row), 0, 0};
    assert_non_null(s.row);
    double until = 0;
    for (int bin = 0; bin < SC_REUSE_BINS; bin++) {
        until += fraction[bin] * n;
        while (s.n < n && s.n < until) {
            uint32_t k = draw_reuse(bin, n, seed);
            for (; k > 0 && s.n < n; k--) s.row[s.n++] = s.rows;
            s.rows++;
        }
    }
    shuffle(s.row, s.n, seed);
    return s;
}

/* The histogram of what was drawn, as a user would count it. */
static sc_access counted(const stream *s)
{
    sc_access x = {.kind = SC_ACCESS_REUSE, .lookups = s->n};
    uint32_t *count = calloc(s->rows, sizeof *count);
    assert_non_null(count);
    for (uint32_t i = 0; i < s->n; i++) count[s->row[i]]++;
    for (uint32_t r = 0; r < s->rows; r++) {
        int bin = 0;
        while (bin + 1 < SC_REUSE_BINS && count[r] > 1u << bin) bin++;
        x.fraction[bin] += (double)count[r] / s->n;
    }
    free(count);
    return x;
}

/* ---- exact simulation */

/* Sums of bytes by the time of the last use (Fenwick 1994). */
static void tree_add(int64_t *tree, uint32_t n, uint32_t at, int64_t bytes)
{
    for (at++; at <= n; at += at & -at) tree[at] += bytes;
}

static int64_t tree_sum(const int64_t *tree, uint32_t end)
{
    int64_t sum = 0;
    for (; end > 0; end -= end & -end) sum += tree[end];
    return sum;
}

typedef struct lru {
    const stream *s;
    const uint32_t *of;   /* [n] table of each look-up; NULL: one table */
    const int64_t *bytes; /* of a row, by table */
    const double *cache;  /* [n_cache] bytes, rising */
    uint32_t n_cache, n;  /* look-ups to run */
} lru;

/* Counts hits[cache * tables + table].  A read hits a cache that holds the rows
 * used since the last use of its row, and the row itself. */
static void simulate(const lru *x, uint32_t tables, double *hits)
{
    int64_t *tree = calloc(x->n + 1, sizeof *tree), total = 0;
    uint32_t *last = calloc(x->s->rows, sizeof *last);
    assert_true(tree && last);
    memset(hits, 0, x->n_cache * tables * sizeof *hits);
    for (uint32_t i = 0; i < x->n; i++) {
        uint32_t row = x->s->row[i], table = x->of ? x->of[i] : 0;
        int64_t own = x->bytes[table];
        if (last[row]) {
            int64_t since = total - tree_sum(tree, last[row]) + own;
            for (uint32_t c = x->n_cache; c-- > 0;) {
                if ((double)since > x->cache[c]) break;
                hits[c * tables + table]++;
            }
            tree_add(tree, x->n, last[row] - 1, -own);
            total -= own;
        }
        last[row] = i + 1;
        tree_add(tree, x->n, i, own);
        total += own;
    }
    free(tree);
    free(last);
}

/* ---- comparisons */

#define CACHES 6

static const double cache_rows[CACHES] = {500,   2000,  8000,
                                          32000, 74000, 147000};

typedef struct tally {
    double worst, sum;
    uint32_t n;
} tally;

static void compare(tally *t, double exact, double model, const char *what,
                    double cache)
{
    double d = fabs(exact - model);
    t->worst = fmax(t->worst, d);
    t->sum += d;
    t->n++;
    if (d > LIMIT)
        fail_msg("%s, cache of %.0f rows: %.4f of reads hit, predicted %.4f",
                 what, cache, exact, model);
}

static void check_stream(const stream *s, const sc_access *x, double rows,
                         double part, const char *what, tally *t)
{
    const int64_t bytes = 256;
    double cache[CACHES], exact[CACHES];
    uint32_t n = (uint32_t)(part * s->n);
    for (int i = 0; i < CACHES; i++) cache[i] = 256 * cache_rows[i];
    const lru run = {s, NULL, &bytes, cache, CACHES, n};
    simulate(&run, 1, exact);
    sc_row_law law;
    const sc_row_law *one = &law;
    sc_lookups l = {x, rows, 1, n, 256};
    sc_row_law_of(&l, &law);
    for (int i = 0; i < CACHES; i++) {
        double hit;
        sc_lookup_hits(&one, 1, cache[i], &hit);
        compare(t, exact[i] / n, hit, what, cache_rows[i]);
    }
}

static const char *shared;

/* Every histogram, once as it is and once as a table with more or less reuse,
 * whole batches and parts of them. */
static void histograms_of_the_data(void **state)
{
    (void)state;
    static reuse_file file[REUSE_FILES];
    static const double parts[] = {1, 0.5, 0.125, 0.0625};
    tally t = {0, 0, 0};
    uint32_t tables = 0;
    for (int year = 2021; year <= 2022; year++) {
        uint32_t n = reuse_read(shared, year, file);
        assert_true(n >= 10);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t seed = 100 * (uint64_t)year + i;
            double f[SC_REUSE_BINS], tilt = (double)(i % 5) * 0.1 - 0.2;
            tilted(file[i].fraction, i % 5 == 4 ? 0 : tilt, f);
            double all = fmin(2e6, file[i].lookups / file[i].tables);
            stream s = draw(f, (uint32_t)all, &seed);
            sc_access x = counted(&s);
            check_stream(&s, &x, s.rows, parts[i % 4], file[i].name, &t);
            free(s.row);
            tables++;
        }
    }
    print_message("%u tables, %u hit rates: mean difference %.4f, largest "
                  "%.4f\n",
                  tables, t.n, t.sum / t.n, t.worst);
}

/* Rows that are drawn independently: uniform, and Zipf's law. */
static void drawn_rows(void **state)
{
    (void)state;

    static const struct {
        double exponent, rows;
    } c[] = {{0, 3},     {0, 20000},    {0, 1e6},    {0.6, 50000},
             {0.9, 2e5}, {1.0, 100000}, {1.05, 1e6}, {1.5, 3e5}};

    tally t = {0, 0, 0};
    for (size_t k = 0; k < SC_COUNT(c); k++) {
        uint32_t rows = (uint32_t)c[k].rows, n = 200000;
        uint64_t seed = k + 1;
        double *until = malloc(rows * sizeof *until), sum = 0;
        stream s = {malloc(n * sizeof *s.row), n, rows};
        assert_true(until && s.row);
        for (uint32_t i = 0; i < rows; i++)
            until[i] = sum += pow(i + 1.0, -c[k].exponent);
        for (uint32_t i = 0; i < n; i++) {
            double u = sc_random_unit(&seed) * sum;
            uint32_t at = 0;
            SC_FIRST(at, rows - 1, mid, until[mid] > u);
            s.row[i] = at;
        }
        sc_access x = {.kind = c[k].exponent > 0 ? SC_ACCESS_ZIPF
                                                 : SC_ACCESS_UNIFORM,
                       .exponent = c[k].exponent};
        check_stream(&s, &x, rows, 1, "drawn", &t);
        free(until);
        free(s.row);
    }
    print_message("8 laws, %u hit rates: mean difference %.4f, largest %.4f\n",
                  t.n, t.sum / t.n, t.worst);
}

#define TABLES 4

/* Several tables share a cache: different lengths, reuse and row sizes. */
static void tables_share_a_cache(void **state)
{
    (void)state;
    static reuse_file file[REUSE_FILES];
    static const int64_t bytes[TABLES] = {64, 128, 256, 512};
    static const double tilt[TABLES] = {0.2, -0.2, 0, 0.1};
    assert_true(reuse_read(shared, 2021, file) > 0);
    uint64_t seed = 7;
    stream one[TABLES], all = {NULL, 0, 0};
    sc_access x[TABLES];
    sc_row_law law[TABLES];
    const sc_row_law *laws[TABLES];
    for (int i = 0; i < TABLES; i++) {
        double f[SC_REUSE_BINS];
        tilted(file[0].fraction, tilt[i], f);
        one[i] = draw(f, 100000 + 60000 * (uint32_t)i, &seed);
        x[i] = counted(&one[i]);
        sc_lookups l = {&x[i], one[i].rows, 1, one[i].n, (double)bytes[i]};
        sc_row_law_of(&l, &law[i]);
        laws[i] = &law[i];
        all.n += one[i].n;
    }
    uint32_t *of = malloc(all.n * sizeof *of), at = 0, next[TABLES] = {0};
    all.row = malloc(all.n * sizeof *all.row);
    assert_true(of && all.row);
    for (int i = 0; i < TABLES; i++)
        for (uint32_t k = 0; k < one[i].n; k++) of[at++] = (uint32_t)i;
    shuffle(of, all.n, &seed);
    uint32_t first[TABLES];
    for (int i = 0; i < TABLES; i++) {
        first[i] = all.rows;
        all.rows += one[i].rows;
    }
    for (uint32_t k = 0; k < all.n; k++)
        all.row[k] = first[of[k]] + one[of[k]].row[next[of[k]]++];
    double cache[CACHES], exact[CACHES * TABLES], hit[TABLES];
    for (int c = 0; c < CACHES; c++) cache[c] = 256 * cache_rows[c];
    const lru run = {&all, of, bytes, cache, CACHES, all.n};
    simulate(&run, TABLES, exact);
    tally t = {0, 0, 0};
    for (int c = 0; c < CACHES; c++) {
        sc_lookup_hits(laws, TABLES, cache[c], hit);
        for (int i = 0; i < TABLES; i++)
            compare(&t, exact[c * TABLES + i] / one[i].n, hit[i], "shared",
                    cache_rows[c]);
    }
    print_message("4 tables share a cache, %u hit rates: mean difference %.4f, "
                  "largest %.4f\n",
                  t.n, t.sum / t.n, t.worst);
    for (int i = 0; i < TABLES; i++) free(one[i].row);
    free(all.row);
    free(of);
}

/* Different rows, and bounds: a cache of all rows leaves the first reads. */
static void unique_rows(void **state)
{
    (void)state;
    static reuse_file file[REUSE_FILES];
    assert_true(reuse_read(shared, 2022, file) > 0);
    uint64_t seed = 3;
    stream s = draw(file[0].fraction, 300000, &seed);
    sc_access x = counted(&s);
    sc_lookups l = {&x, s.rows, 1, s.n, 128};
    sc_row_law law;
    const sc_row_law *one = &law;
    double hit;
    sc_row_law_of(&l, &law);
    double unique = sc_row_law_unique(&law, s.n);
    assert_true(fabs(unique / s.rows - 1) < 0.02);
    sc_lookup_hits(&one, 1, 1e12, &hit);
    assert_true(fabs(hit - (1 - (double)s.rows / s.n)) < 0.01);
    sc_lookup_hits(&one, 1, 0, &hit);
    assert_true(hit == 0);
    /* half of the rows, half of the look-ups, and half of the cache */
    double whole, half;
    sc_lookup_hits(&one, 1, 1e6, &whole);
    l.parts = 2;
    sc_row_law_of(&l, &law);
    sc_lookup_hits(&one, 1, 5e5, &half);
    assert_true(fabs(whole - half) < 1e-3);
    free(s.row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histograms_of_the_data),
        cmocka_unit_test(drawn_rows),
        cmocka_unit_test(tables_share_a_cache),
        cmocka_unit_test(unique_rows),
    };
    static reuse_file file[REUSE_FILES];
    shared = getenv("STEPCAST_SHARED");
    if (!shared || strlen(shared) > 300 || !reuse_read(shared, 2021, file)) {
        printf("skipped: STEPCAST_SHARED has no data/dlrm_datasets\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
