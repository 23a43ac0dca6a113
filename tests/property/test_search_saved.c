/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search that was saved after any round and goes on, one of several parts,
 * and one of several ranks find what a search in one go finds.  The ranks here
 * are threads with queues instead of MPI.
 */
#include "search/search_saved.h"
#include "store/store.h"
#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MOST = 64, RANKS = 3 };

static sc_arena a;
static sc_err e;
static sc_job job;
static sc_inputs in;
static sc_search_jobs jobs;

static int set_up(void **state)
{
    sc_search_option axis[3];
    (void)state;
    sc_arena_init(&a, 0);
    sc_err_init(&e);
    sc_job_init(&job);
    job.model = "gpt3-6.7b";
    job.cluster = "dgx-a100:4";
    job.engine = SC_ENGINE_FAST;
    assert_int_equal(sc_predict_load(&job, &a, &in, &e), SC_OK);
    static const char *const names[] = {"global-batch", "vp", "recompute"};
    static const char *const values[] = {"64,128,256,512", "1", "none"};
    for (int i = 0; i < 3; i++) {
        const sc_key *k = sc_job_keys;
        while (strcmp(k->name, names[i]) != 0) k++;
        assert_int_equal(sc_search_option_read(k, values[i],
                                               sc_pos_file(k->flag), &a,
                                               &axis[i], &e),
                         SC_OK);
    }
    sc_search_option *given = SC_NEW_N(&a, sc_search_option, 3);
    memcpy(given, axis, sizeof axis);
    assert_int_equal(sc_search_jobs_open(&job, &in, given, 3, &a, &jobs, &e),
                     SC_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&a);
    return 0;
}

static sc_search_options options(void)
{
    return (sc_search_options){
        .top = 20, .kinds = true, .threads = 2, .keep_free = 0.08};
}

static void same_row(const sc_search_row *x, const sc_search_row *y)
{
    bool none = isinf(x->score);
    assert_int_equal(none, isinf(y->score));
    if (none) return;
    assert_memory_equal(x->digit, y->digit, jobs.n * sizeof *x->digit);
    assert_true(x->score == y->score);
    assert_true(x->point.step_s == y->point.step_s);
    assert_true(x->point.peak == y->point.peak);
    assert_true(x->point.full == y->point.full);
}

static void same(const sc_search_result *x, const sc_search_result *y,
                 bool counts)
{
    assert_int_equal(x->points, y->points);
    assert_int_equal(x->left, y->left);
    assert_true(x->bound == y->bound);
    if (counts) {
        assert_int_equal(x->evaluated, y->evaluated);
        assert_int_equal(x->pruned, y->pruned);
        assert_memory_equal(x->steps, y->steps, sizeof x->steps);
    }
    assert_int_equal(x->n_reasons, y->n_reasons);
    for (uint32_t i = 0; i < x->n_reasons; i++) {
        assert_string_equal(x->reason[i].name, y->reason[i].name);
        assert_int_equal(x->reason[i].n, y->reason[i].n);
    }
    assert_int_equal(x->n_best, y->n_best);
    for (uint32_t i = 0; i < x->n_best; i++) same_row(&x->best[i], &y->best[i]);
    assert_int_equal(x->n_front, y->n_front);
    for (uint32_t i = 0; i < x->n_front; i++)
        same_row(&x->front[i], &y->front[i]);
    for (uint32_t i = 0; i < jobs.n; i++)
        for (uint32_t k = 0; k < jobs.option[i].axis.n; k++)
            same_row(&x->per_axis[i][k], &y->per_axis[i][k]);
}

/* ---- checkpoints ----------------------------------------------------------- */

typedef struct saves {
    uint32_t n;
    sc_bytes of[ROUNDS_MOST];
    uint64_t rows; /* that were kept */
    sc_bytes log;
} saves;

static sc_status save(void *with, const sc_search_saved *s, sc_err *err)
{
    saves *x = with;
    (void)err;
    assert_true(x->n < ROUNDS_MOST);
    sc_search_saved_write(s, &x->of[x->n++]);
    return SC_OK;
}

static sc_status keep(void *with, uint64_t rows, const uint8_t *bytes,
                      size_t len, sc_err *err)
{
    saves *x = with;
    (void)err;
    x->rows += rows;
    sc_store_write_block(rows, bytes, len, &x->log);
    return SC_OK;
}

static void resumed(void **state)
{
    saves x = {.n = 0};
    sc_search_options o = options();
    sc_search_saved first;
    sc_search_result all, again;
    (void)state;
    sc_search_saved_init(&first, "a search\n", &a);
    o.saved = &first;
    o.save = save;
    o.with = &x;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &all, &e), SC_OK);
    assert_in_range(x.n, 3, ROUNDS_MOST);
    assert_true(sc_search_saved_done(&first));
    assert_true(all.pruned > 0 && all.n_front > 3);
    for (uint32_t i = 0; i < x.n; i++) {
        sc_search_saved s;
        sc_bytes back = {0};
        assert_true(x.of[i].len < 1 << 20);
        assert_int_equal(
            sc_search_saved_read(x.of[i].buf, x.of[i].len, "state", &a, &s, &e),
            SC_OK);
        sc_search_saved_write(&s, &back);
        assert_int_equal(back.len, x.of[i].len);
        assert_memory_equal(back.buf, x.of[i].buf, back.len);
        assert_int_equal(sc_search_saved_done(&s), i + 1 == x.n);
        o = options();
        o.threads = 1 + i % 4;
        o.saved = &s;
        assert_int_equal(sc_search_run(&jobs, &o, &a, &again, &e), SC_OK);
        same(&all, &again, true);
        sc_search_saved_free(&s);
        sc_bytes_free(&back);
        sc_bytes_free(&x.of[i]);
    }
    sc_search_saved_free(&first);
}

/* A checkpoint is refused if the search has other axes or options. */
static void refused(void **state)
{
    sc_search_options o = options();
    sc_search_saved s;
    sc_search_result r;
    (void)state;
    sc_search_saved_init(&s, "a search\n", &a);
    o.saved = &s;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &r, &e), SC_OK);
    s.next = 0;
    s.file = "state";
    o.top++;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &r, &e), SC_EINPUT);
    assert_string_equal(e.d[0].file, "state");
    sc_err_init(&e);
    assert_int_equal(sc_search_saved_check(&s, "a search\n", &e), SC_OK);
    assert_int_equal(sc_search_saved_check(&s, "a search\nb\n", &e), SC_EINPUT);
    sc_search_saved_free(&s);
}

/* ---- parts ------------------------------------------------------------------ */

static void parts(void **state)
{
    sc_search_options o = options();
    sc_search_result all, joined, one;
    (void)state;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &all, &e), SC_OK);
    for (uint32_t n = 1; n <= 3; n++) {
        sc_search_saved part[3], whole;
        for (uint32_t i = 0; i < n; i++) {
            sc_search_saved_init(&part[i], "", &a);
            part[i].shards = n;
            part[i].shard = n - i; /* in any order */
            o = options();
            o.shards = n;
            o.shard = n - i;
            o.saved = &part[i];
            assert_int_equal(sc_search_run(&jobs, &o, &a, &one, &e), SC_OK);
        }
        o = options();
        assert_int_equal(
            sc_search_saved_join(&jobs, &o, part, n, &a, &whole, &e), SC_OK);
        if (n > 1) {
            assert_int_equal(
                sc_search_saved_join(&jobs, &o, part, n - 1, &a, &whole, &e),
                SC_EINPUT);
            sc_err_init(&e);
            sc_search_saved_free(&whole);
            assert_int_equal(
                sc_search_saved_join(&jobs, &o, part, n, &a, &whole, &e),
                SC_OK);
        }
        o.saved = &whole;
        assert_int_equal(sc_search_run(&jobs, &o, &a, &joined, &e), SC_OK);
        same(&all, &joined, n == 1);
        for (uint32_t i = 0; i < n; i++) sc_search_saved_free(&part[i]);
        sc_search_saved_free(&whole);
    }
}

/* ---- ranks ------------------------------------------------------------------ */

typedef struct mail {
    struct mail *next;
    uint32_t from;
    sc_bytes bytes;
} mail;

typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    mail *first, **last;
} queue;

static queue queues[RANKS];

typedef struct rank {
    sc_search_ranks ranks;
    saves kept;
    sc_arena a;
    sc_search_result found;
    sc_status status;
    bool keeps;
} rank;

static sc_status send_to(void *with, uint32_t to, const sc_bytes *m,
                         sc_err *err)
{
    const rank *r = with;
    queue *q = &queues[to];
    mail *x = calloc(1, sizeof *x);
    (void)err;
    assert_non_null(x);
    x->from = r->ranks.rank;
    sc_bytes_add(&x->bytes, m->buf, m->len);
    pthread_mutex_lock(&q->lock);
    *q->last = x;
    q->last = &x->next;
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->lock);
    return SC_OK;
}

static sc_status receive(void *with, sc_bytes *m, uint32_t *from, sc_err *err)
{
    const rank *r = with;
    queue *q = &queues[r->ranks.rank];
    (void)err;
    pthread_mutex_lock(&q->lock);
    while (!q->first) pthread_cond_wait(&q->filled, &q->lock);
    mail *x = q->first;
    q->first = x->next;
    if (!q->first) q->last = &q->first;
    pthread_mutex_unlock(&q->lock);
    sc_bytes_free(m);
    *m = x->bytes;
    *from = x->from;
    free(x);
    return SC_OK;
}

static void *run_rank(void *with)
{
    rank *r = with;
    sc_err err;
    sc_search_options o = options();
    o.ranks = &r->ranks;
    o.with = &r->kept;
    o.keep = r->keeps ? keep : NULL;
    o.exhaustive = r->keeps;
    sc_err_init(&err);
    r->status = sc_search_run(&jobs, &o, &r->a, &r->found, &err);
    return NULL;
}

static void ranks_find(bool keeps)
{
    rank r[RANKS] = {{.keeps = false}};
    pthread_t of[RANKS];
    sc_search_result all;
    saves one = {.n = 0};
    sc_search_options o = options();
    o.keep = keeps ? keep : NULL;
    o.exhaustive = keeps;
    o.with = &one;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &all, &e), SC_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        pthread_mutex_init(&queues[i].lock, NULL);
        pthread_cond_init(&queues[i].filled, NULL);
        queues[i].last = &queues[i].first;
        r[i].keeps = keeps;
        r[i].ranks = (sc_search_ranks){i, RANKS, &r[i], send_to, receive};
        sc_arena_init(&r[i].a, 0);
        assert_int_equal(pthread_create(&of[i], NULL, run_rank, &r[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++) pthread_join(of[i], NULL);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(r[i].status, SC_OK);
        same(&all, &r[i].found, true);
        assert_null(queues[i].first);
        assert_int_equal(r[i].kept.rows, i == 0 ? one.rows : 0);
        sc_arena_free(&r[i].a);
    }
    assert_int_equal(one.rows, keeps ? all.evaluated : 0);
    assert_int_equal(one.log.len, r[0].kept.log.len);
    if (keeps) assert_memory_equal(one.log.buf, r[0].kept.log.buf, one.log.len);
    sc_bytes_free(&one.log);
    sc_bytes_free(&r[0].kept.log);
}

static void ranks(void **state)
{
    (void)state;
    ranks_find(false);
    ranks_find(true);
}

/* ---- interruption ------------------------------------------------------------ */

static bool always(void *with)
{
    (void)with;
    return true;
}

static void interrupted(void **state)
{
    sc_search_options o = options();
    sc_search_saved s;
    sc_search_result all, again;
    (void)state;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &all, &e), SC_OK);
    sc_search_saved_init(&s, "", &a);
    o.saved = &s;
    o.interrupted = always;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &again, &e), SC_EINTR);
    assert_false(sc_search_saved_done(&s));
    s.next = 0;
    o.interrupted = NULL;
    assert_int_equal(sc_search_run(&jobs, &o, &a, &again, &e), SC_OK);
    same(&all, &again, true);
    sc_search_saved_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(resumed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(interrupted, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
