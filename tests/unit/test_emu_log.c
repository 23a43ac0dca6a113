/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of emulated ranks: what was written is read back, also when the program
 * died, when the file ends early, when the disk is full; and what is no log. */
#include "emu/log.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fixture {
    sc_arena a;
    sc_err err;
    char folder[256], path[320];
} f;

static int set_up(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    sc_arena_init(&f.a, 0);
    sc_err_init(&f.err);
    snprintf(f.folder, sizeof f.folder, "%s/emulogXXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(f.folder)) return -1;
    snprintf(f.path, sizeof f.path, "%s/log.0", f.folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(f.path);
    rmdir(f.folder);
    sc_arena_free(&f.a);
    return 0;
}

static sc_emu_log *opened(uint32_t rank, uint32_t world)
{
    sc_emu_log *l = NULL;
    assert_int_equal(sc_emu_log_open(f.path, rank, world, &f.a, &l, &f.err),
                     SC_OK);
    return l;
}

static void contents(char **buf, size_t *len)
{
    assert_int_equal(
        sc_file_read(f.path, (size_t)1 << 30, &f.a, buf, len, &f.err), SC_OK);
}

static sc_emu_run back(void)
{
    char *buf;
    size_t len;
    sc_emu_run r = {0};
    contents(&buf, &len);
    assert_int_equal(sc_emu_log_read(buf, len, "log.0", &f.a, &r, &f.err),
                     SC_OK);
    return r;
}

static sc_emu_record op(uint64_t i)
{
    return (sc_emu_record){.coll = (uint8_t)(i % SC_N_CALLED_COLLS),
                           .flags = (uint8_t)(i % 16),
                           .group = (uint32_t)(i % 2),
                           .peer = (uint32_t)(i % 5),
                           .stream = (uint8_t)(i % 3),
                           .tag = (int32_t)(i % 7) - 1,
                           .bytes = i << 33,
                           .post = (sc_time)i * 10,
                           .begin = (sc_time)i * 10 + 1,
                           .end = (sc_time)i * 10 + 7,
                           .waited = 6,
                           .resumed = (sc_time)i * 10 + 8};
}

static void same(const sc_emu_record *x, const sc_emu_record *y)
{
    assert_int_equal(x->coll, y->coll);
    assert_int_equal(x->flags, y->flags);
    assert_int_equal(x->group, y->group);
    assert_int_equal(x->peer, y->peer);
    assert_int_equal(x->stream, y->stream);
    assert_int_equal(x->tag, y->tag);
    assert_true(x->bytes == y->bytes && x->post == y->post &&
                x->begin == y->begin && x->end == y->end &&
                x->waited == y->waited && x->resumed == y->resumed);
}

static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint32_t some[] = {6, 4, 2, 7, 0};

static void steps_come_back(void **state)
{
    (void)state;
    sc_emu_log *l = opened(3, 8);
    sc_emu_record o = op(0);
    (void)sc_emu_log_group(l, 0, all, 8);
    sc_emu_log_step(l, 10);
    (void)sc_emu_log_add(l, &o);
    (void)sc_emu_log_add(l, &o);
    sc_emu_log_step(l, 30);
    (void)sc_emu_log_add(l, &o);
    sc_emu_log_step(l, 70);
    sc_emu_log_close(l);
    sc_emu_run r = back();
    assert_int_equal(r.n_records, 3);
    assert_int_equal(r.n_marks, 3);
    assert_true(r.mark[1].at == 30 && r.mark[1].record == 2);
    sc_emu_step *step;
    uint32_t n;
    bool sure;
    assert_int_equal(sc_emu_steps(&r, 0, &f.a, &step, &n, &sure, &f.err),
                     SC_OK);
    assert_int_equal(n, 2);
    assert_true(sure && step[0].begin == 10 && step[0].end == 30);
    assert_true(step[1].first == 2 && step[1].n == 1);
}

static void comes_back(void **state)
{
    (void)state;

    /* more than two steps of growth */
    enum { N = 100000 };

    sc_emu_log *l = opened(3, 8);
    assert_true(sc_emu_log_group(l, 0, all, 8));
    assert_true(sc_emu_log_group(l, 1, some, 5));
    sc_emu_log_say(l, false, "a call that is not modelled");
    for (uint64_t i = 0; i < N; i++) {
        sc_emu_record o = op(i), open = o;
        open.end = SC_TIME_MAX;
        uint64_t at = sc_emu_log_add(l, &open);
        if (i != 77) sc_emu_log_set(l, at, &o);
    }
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sc_emu_log_say(l, true, text);
    sc_emu_totals t = {1, 2, 3, 4, 5, 1, 6, 7, 8, 9, 1, 10, 11};
    sc_emu_log_totals(l, &t);
    sc_emu_log_close(l);

    sc_emu_run r = back();
    assert_int_equal(r.rank, 3);
    assert_int_equal(r.world, 8);
    assert_int_equal(r.totals.now, 1);
    assert_int_equal(r.totals.overhead, 2);
    assert_int_equal(r.totals.late, 3);
    assert_int_equal(r.totals.n_late, 4);
    assert_int_equal(r.totals.passed, 5);
    assert_int_equal(r.totals.ended, 1);
    assert_int_equal(r.totals.apis, 6);
    assert_int_equal(r.totals.guessed, 1);
    assert_int_equal(r.totals.loop, 10);
    assert_int_equal(r.totals.loop_from, 11);
    assert_int_equal(r.totals.cpu, 7);
    assert_int_equal(r.totals.peak_rss, 8);
    assert_int_equal(r.totals.preemptions, 9);
    assert_int_equal(r.n_groups, 2);
    assert_int_equal(r.group[0].n, 8);
    assert_memory_equal(r.group[0].rank, all, sizeof all);
    assert_int_equal(r.group[1].n, 5);
    assert_memory_equal(r.group[1].rank, some, sizeof some);
    assert_string_equal(r.group[1].name, "1");
    assert_int_equal(r.n_records, N);
    for (uint64_t i = 0; i < N; i++) {
        sc_emu_record o = op(i);
        if (i == 77) o.end = SC_TIME_MAX;
        same(&r.record[i], &o);
    }
    assert_int_equal(r.n_texts, 2);
    assert_string_equal(r.text[0], "warning: a call that is not modelled");
    assert_int_equal(strlen(r.text[1]), strlen("error: ") + LOG_TEXT_MAX);
}

static void large_groups_are_small(void **state)
{
    (void)state;

    enum { N = 65536 };
    struct stat st;
    uint32_t *rank = SC_NEW_N(&f.a, uint32_t, N);
    sc_emu_log *l = opened(0, N);
    for (uint32_t i = 0; i < N; i++) rank[i] = i;
    assert_true(sc_emu_log_group(l, 0, rank, N));
    for (uint32_t i = 0; i < N / 8; i++) rank[i] = N - 1 - 8 * i;
    assert_true(sc_emu_log_group(l, 9, rank, N / 8));
    sc_emu_log_close(l);
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal((size_t)st.st_size, (LOG_HEAD + 4) * LOG_SLOT);
    sc_emu_run r = back();
    assert_int_equal(r.n_groups, 10);
    assert_int_equal(r.group[5].n, 0);
    assert_int_equal(r.group[0].n, N);
    assert_int_equal(r.group[0].rank[N - 1], N - 1);
    assert_memory_equal(r.group[9].rank, rank, N / 8 * sizeof *rank);
}

static void a_killed_program_leaves_all(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sc_emu_log *l = opened(0, 8);
        (void)sc_emu_log_group(l, 0, all, 8);
        for (uint64_t i = 0; i < 40000; i += 2) {
            sc_emu_record o = op(i);
            (void)sc_emu_log_add(l, &o);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    sc_emu_run r = back();
    assert_int_equal(r.n_records, 20000);
    sc_emu_record o = op(39998);
    same(&r.record[19999], &o);
    assert_int_equal(r.totals.ended, 0);
}

/* The file can't grow: the log ends there, the program goes on. */
static void a_full_disk_ends_it(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit most = {(rlim_t)3 << 20, (rlim_t)3 << 20};
        signal(SIGXFSZ, SIG_IGN);
        sc_emu_log *l = opened(0, 8);
        uint64_t n = 0;
        sc_emu_record o = op(2);
        if (!sc_emu_log_group(l, 0, all, 8) ||
            setrlimit(RLIMIT_FSIZE, &most) != 0)
            _exit(1);
        while (n < 100000 && sc_emu_log_add(l, &o) != UINT64_MAX) n++;
        if (n == 100000 || sc_emu_log_group(l, 1, some, 5)) _exit(2);
        sc_emu_log_set(l, UINT64_MAX, &o);
        sc_emu_log_say(l, true, "lost");
        _exit(sc_emu_log_add(l, &o) == UINT64_MAX ? 0 : 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    sc_emu_run r = back();
    assert_int_equal(r.n_records, ((size_t)2 << 20) / LOG_SLOT - LOG_HEAD - 2);
}

static void a_short_file_is_read_up_to_there(void **state)
{
    (void)state;
    char *buf;
    size_t len;
    sc_emu_log *l = opened(0, 8);
    sc_emu_record o = op(0);
    (void)sc_emu_log_group(l, 0, all, 8);
    for (int i = 0; i < 10; i++) (void)sc_emu_log_add(l, &o);
    (void)sc_emu_log_group(l, 1, some, 5);
    sc_emu_log_close(l);
    contents(&buf, &len);
    assert_int_equal(len, (LOG_HEAD + 2 + 10 + 2) * LOG_SLOT);
    for (size_t n = len; n >= sizeof(log_head); n--) {
        sc_emu_run r = {0};
        size_t slots = n / LOG_SLOT, ops = slots > 6 ? slots - 6 : 0;
        assert_int_equal(sc_emu_log_read(buf, n, "log.0", &f.a, &r, &f.err),
                         SC_OK);
        assert_int_equal(r.n_records, ops < 10 ? ops : 10);
        assert_int_equal(r.n_groups, n == len ? 2 : slots >= 6);
    }
}

typedef struct wrong {
    const char *what;
    size_t at; /* byte of the file */
    uint8_t value;
    sc_code code;
    uint32_t col;
} wrong;

/* Slots: group 0 at 256, its members at 320, an operation at 384, a text at
 * 448. */
static const wrong wrongs[] = {
    {"magic", 0, 'S', SC_C_SYNTAX, 1},
    {"version", 8, 99, SC_C_UNSUPPORTED, 1},
    {"rank", 16, 8, SC_C_RANGE, 1},
    {"a total", 32 + 7, 0x80, SC_C_RANGE, 1},
    {"kind", 256, LOG_N_KINDS, SC_C_SYNTAX, 257},
    {"kind of a piece", 256, LOG_MEMBERS, SC_C_SYNTAX, 257},
    {"number of the group", 256 + 4 + 3, 1, SC_C_RANGE, 257},
    {"no members", 256 + 8, 0, SC_C_SYNTAX, 321},
    {"too many members", 256 + 8, 9, SC_C_RANGE, 257},
    {"fewer members", 256 + 8, 7, SC_C_RANGE, 321},
    {"other group", 320 + 4, 1, SC_C_SYNTAX, 321},
    {"first member", 320 + 16, 1, SC_C_RANGE, 321},
    {"stride", 320 + 20, 0, SC_C_RANGE, 321},
    {"operation", 384 + 1, SC_N_CALLED_COLLS, SC_C_SYNTAX, 385},
    {"flags", 384 + 2, 16, SC_C_SYNTAX, 385},
    {"its group", 384 + 4, 1, SC_C_RANGE, 385},
    {"its peer", 384 + 8, 8, SC_C_RANGE, 385},
    {"its time", 384 + 24 + 7, 0xff, SC_C_RANGE, 385},
    {"length of a text", 448 + 8, 0, SC_C_RANGE, 449},
    {"piece of a text", 448 + 2, 99, SC_C_SYNTAX, 449},
};

static void what_is_no_log(void **state)
{
    (void)state;
    char *buf;
    size_t len;
    sc_emu_log *l = opened(0, 8);
    sc_emu_record o = op(0);
    (void)sc_emu_log_group(l, 0, all, 8);
    (void)sc_emu_log_add(l, &o);
    sc_emu_log_say(l, true, "text");
    sc_emu_log_close(l);
    contents(&buf, &len);
    assert_int_equal(len, 512);
    for (size_t i = 0; i < SC_COUNT(wrongs); i++) {
        const wrong *w = &wrongs[i];
        char copy[512];
        sc_emu_run r = {0};
        sc_err err;
        sc_err_init(&err);
        memcpy(copy, buf, len);
        copy[w->at] = (char)w->value;
        sc_status s = sc_emu_log_read(copy, len, "log.0", &f.a, &r, &err);
        if (s != SC_EINPUT || err.n != 1 || err.d[0].code != w->code ||
            err.d[0].col != w->col)
            fail_msg("%s: status %d, code %s, column %u: %s", w->what, (int)s,
                     err.n ? sc_code_name(err.d[0].code) : "none",
                     err.n ? err.d[0].col : 0, err.n ? err.d[0].msg : "");
    }
    sc_emu_run r = {0};
    assert_int_equal(sc_emu_log_read(buf, 40, "log.0", &f.a, &r, &f.err),
                     SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_SYNTAX);
}

static void refused(void **state)
{
    (void)state;
    sc_emu_log *l = NULL;
    char path[400];
    snprintf(path, sizeof path, "%s/none/log.0", f.folder);
    assert_int_equal(sc_emu_log_open(path, 0, 1, &f.a, &l, &f.err), SC_EIO);
    assert_int_equal(f.err.d[0].code, SC_C_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_groups_are_small, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_killed_program_leaves_all, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_ends_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_short_file_is_read_up_to_there,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
