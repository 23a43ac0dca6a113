/* SPDX-License-Identifier: Apache-2.0 */
/* test_core.c PROBE CLOCK_PROBE CLOCK.so - real ranks as processes; the test is their launcher. */
#include "emu/emu_log.h"
#include "emu/emu_shared.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *probe, *clock_probe, *clock_library;

typedef struct run {
    char folder[256];
    sc_arena arena;
    sc_err err;
    uint32_t n; /* real ranks */
    pid_t pid[8];
    int status[8];
    sc_emu_shared *shared;
    pthread_t thread;
} run;

/* ---- folders ------------------------------------------------------------------- */

static void write_file(const run *r, const char *name, const char *text)
{
    char path[400];
    sc_err err;
    sc_err_init(&err);
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    assert_int_equal(sc_file_write(path, text, strlen(text), &err), SC_OK);
}

static char *read_file(run *r, const char *name)
{
    char path[400], *text;
    size_t len;
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    assert_int_equal(
        sc_file_read(path, 1 << 24, &r->arena, &text, &len, &r->err), SC_OK);
    return text;
}

/* The world of the tests: 8 ranks, 100 us + 1 us per 1000 bytes. */
static void make_run(run *r, const char *options)
{
    const char *tmp = getenv("TMPDIR");
    char text[600];
    memset(r, 0, sizeof *r);
    sc_arena_init(&r->arena, 0);
    sc_err_init(&r->err);
    snprintf(r->folder, sizeof r->folder, "%s/stepcast-core-XXXXXX",
             tmp ? tmp : P_tmpdir);
    assert_non_null(mkdtemp(r->folder));
    write_file(r, "times.yml",
               "ranks: 8\ndefault: {alpha: 100us, beta: 1GB/s}\n");
    snprintf(text, sizeof text,
             "cluster: 'ring8@100GB/s,1us'\nworld-size: 8\n"
             "delay-model: 'alpha-beta:%s/times.yml'\nseed: 3\n%s\n",
             r->folder, options);
    write_file(r, "emulate.yml", text);
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void end_run(run *r)
{
    nftw(r->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    sc_arena_free(&r->arena);
}

/* ---- processes ------------------------------------------------------------------ */

/* Its streams go to out.<rank>, err.<rank>. */
static pid_t start(run *r, uint32_t rank, const char *scenario, int in)
{
    char path[400], number[16];
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    snprintf(number, sizeof number, "%u", rank);
    setenv("STEPCAST_EMULATE", r->folder, 1);
    setenv("STEPCAST_RANK", number, 1);
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/%s.%u", r->folder, k ? "err" : "out",
                 rank);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (fd < 0 || dup2(fd, 1 + k) < 0) _exit(9);
    }
    if (in >= 0) dup2(in, 0);
    alarm(600);
    execl(probe, probe, scenario, (char *)NULL);
    _exit(9);
}

static int end_of(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A rank alone; returns how it ended. */
static int alone(run *r, const char *scenario)
{
    return end_of(start(r, 0, scenario, -1));
}

static void passes(const char *scenario, const char *options)
{
    run r;
    make_run(&r, options);
    int status = alone(&r, scenario);
    if (status != 0) print_error("%s", read_file(&r, "err.0"));
    assert_int_equal(status, 0);
    end_run(&r);
}

/* ---- one rank ---------------------------------------------------------------------- */

static void read_log(run *r, sc_emu_run *out)
{
    char path[400], *data;
    size_t len;
    snprintf(path, sizeof path, "%s/log.0", r->folder);
    assert_int_equal(
        sc_file_read(path, 1 << 26, &r->arena, &data, &len, &r->err), SC_OK);
    assert_int_equal(sc_emu_log_read(data, len, path, &r->arena, out, &r->err),
                     SC_OK);
}

static void test_real(void **state)
{
    (void)state;
    run r;
    sc_emu_run log;
    make_run(&r, "");
    assert_int_equal(alone(&r, "real"), 0);
    read_log(&r, &log);
    assert_int_equal(log.n_records, 22);
    assert_int_equal(log.totals.ended, 1);
    assert_true(log.totals.overhead > 0);
    assert_true(log.totals.n_late >= 20);
    assert_int_equal(log.group[0].n, 8);
    for (uint32_t i = 0; i < 20; i++) {
        const sc_emu_record *x = &log.record[i];
        assert_int_equal(x->coll, SC_ALL_REDUCE);
        assert_int_equal(x->bytes, 1000 * i);
        assert_int_equal(x->begin, x->post);
        assert_int_equal(x->end, x->begin + 100000000 + 1000000 * (int64_t)i);
        assert_true(x->resumed >= x->end);
        assert_true(x->waited <= x->resumed - x->post);
    }
    end_run(&r);
}

static void test_virtual(void **state)
{
    (void)state;
    passes("virtual", "clock: virtual");
    passes("slow", "clock: virtual\nwhat-if: ['straggler=0:3']");
    passes("polling", "clock: virtual");
    passes("unsteady", "clock: virtual");
    passes("weak", "clock: virtual");
    passes("cancel", "clock: virtual");
    passes("streams", "clock: virtual");
    passes("failing", "clock: virtual\nwhat-if: ['fail=5@0']");
    passes("sent", "clock: virtual");
}

/* Memory is for the whole process, which does nothing else. */
static void test_large(void **state)
{
    (void)state;
    run r;
    make_run(&r, "");
    write_file(&r, "emulate.yml",
               "cluster: 'dgx-h100:512'\nworld-size: 4096\nclock: virtual\n");
    assert_int_equal(alone(&r, "large"), 0);
    end_run(&r);
}

static void test_threads(void **state)
{
    (void)state;
    passes("threads", "clock: virtual");
    passes("threads", "clock: real");
}

static void test_forks(void **state)
{
    (void)state;
    passes("forks", "clock: real");
    passes("forks", "clock: virtual");
}

static void test_none(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        unsetenv("STEPCAST_EMULATE");
        execl(probe, probe, "none", (char *)NULL);
        _exit(9);
    }
    assert_int_equal(end_of(pid), 0);
}

static void test_talk(void **state)
{
    (void)state;
    run r;
    sc_emu_run log;
    make_run(&r, "");
    assert_int_equal(alone(&r, "talk"), 3);
    assert_string_equal(read_file(&r, "err.0"),
                        "stepcast: warning: this is odd\n"
                        "stepcast: error: no way 7\n");
    assert_string_equal(read_file(&r, "out.0"), "said");
    read_log(&r, &log);
    assert_int_equal(log.n_texts, 2);
    assert_int_equal(log.totals.ended, 0);
    end_run(&r);
}

/* A second process is no second rank 0; when the first has ended it may be. */
static void test_claims(void **state)
{
    (void)state;
    run r;
    int in[2];
    make_run(&r, "");
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    pid_t first = start(&r, 0, "hold", in[0]);
    while (strstr(read_file(&r, "emulate.yml"), "seed") &&
           access(r.folder, F_OK) == 0) {
        char path[400];
        snprintf(path, sizeof path, "%s/out.0", r.folder);
        if (access(path, F_OK) == 0 && strlen(read_file(&r, "out.0")) > 0)
            break;
        usleep(1000);
    }
    assert_string_equal(read_file(&r, "out.0"), "0 of 8\n");
    assert_int_equal(alone(&r, "real"), 3);
    assert_non_null(strstr(read_file(&r, "err.0"),
                           "calls collectives as rank 0, "
                           "but process "));
    assert_int_equal(write(in[1], "x", 1), 1);
    assert_int_equal(end_of(first), 0);
    assert_int_equal(alone(&r, "real"), 0);
    close(in[0]);
    close(in[1]);
    end_run(&r);
}

static void test_refused(void **state)
{
    (void)state;
    run r;
    make_run(&r, "ranks: ['3']");
    assert_int_equal(alone(&r, "real"), 3);
    assert_string_equal(
        read_file(&r, "err.0"),
        "stepcast: error: STEPCAST_RANK: 0 is not among --ranks\n");
    end_run(&r);
    make_run(&r, "clok: real");
    assert_int_equal(alone(&r, "real"), 3);
    assert_non_null(strstr(read_file(&r, "err.0"), "clok"));
    end_run(&r);
}

static void test_environment(void **state)
{
    (void)state;
    run r;
    make_run(&r, "");
    setenv("RANK", "5", 1);
    setenv("WORLD_SIZE", "8", 1);
    setenv("MASTER_PORT", "1234", 1);
    setenv("LOCAL_RANK", "5", 1);
    setenv("TORCHELASTIC_RUN_ID", "stepcast", 1);
    setenv("PROBE_AGENT", "1", 1);
    setenv("STEPCAST_ENVIRONMENT", "WORLD_SIZE=8 MASTER_PORT=1234", 1);
    assert_int_equal(alone(&r, "environment"), 0);
    assert_string_equal(read_file(&r, "out.0"),
                        "RANK=5 WORLD_SIZE=8 MASTER_PORT=1234 LOCAL_RANK=5 "
                        "RANK=0 WORLD_SIZE=8 MASTER_PORT=1234 LOCAL_RANK=0 ");
    unsetenv("PROBE_AGENT");
    unsetenv("TORCHELASTIC_RUN_ID");
    unsetenv("STEPCAST_ENVIRONMENT");
    end_run(&r);
}

/* Time calls, with the library that answers them. */
static void test_time(void **state)
{
    (void)state;
    run r;
    make_run(&r, "clock: virtual");
    const char *kept = probe;
    probe = clock_probe;
    setenv("LD_PRELOAD", clock_library, 1);
    int status = alone(&r, "");
    unsetenv("LD_PRELOAD");
    probe = kept;
    if (status != 0) print_error("%s", read_file(&r, "err.0"));
    assert_int_equal(status, 0);
    assert_string_equal(read_file(&r, "out.0"), "time\n");
    end_run(&r);
}

/* ---- several --------------------------------------------------------------------- */

static void *serve(void *arg)
{
    run *r = arg;
    sc_err err;
    sc_err_init(&err);
    return sc_emu_serve_world(r->shared, &err) == SC_OK ? NULL : r;
}

static void share(run *r, uint32_t n, bool virt)
{
    char ranks[16], path[400], model[400];
    const char *list[2] = {ranks, NULL};
    sc_emu_config c;
    snprintf(ranks, sizeof ranks, "0-%u", n - 1);
    snprintf(path, sizeof path, "%s/shared", r->folder);
    snprintf(model, sizeof model, "alpha-beta:%s/times.yml", r->folder);
    sc_emu_options o = {.cluster = "ring8@100GB/s,1us",
                        .world_size = 8,
                        .ranks = list,
                        .clock = virt ? SC_EMU_VIRTUAL : SC_EMU_REAL,
                        .delay_model = model,
                        .peer_data = "mirror",
                        .peers = "mirror",
                        .seed = 3};
    assert_int_equal(sc_emu_resolve(&o, &r->arena, &c, &r->err), SC_OK);
    assert_int_equal(
        sc_emu_shared_new(path, &c, &r->arena, &r->shared, &r->err), SC_OK);
    assert_int_equal(pthread_create(&r->thread, NULL, serve, r), 0);
    r->n = n;
}

/* Starts them all and waits for their ends, as a launcher does. */
static void run_all(run *r, const char *scenario)
{
    for (uint32_t i = 0; i < r->n; i++) r->pid[i] = start(r, i, scenario, -1);
    for (uint32_t left = r->n; left > 0; left--) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        assert_true(pid > 0);
        for (uint32_t i = 0; i < r->n; i++)
            if (r->pid[i] == pid) {
                sc_emu_shared_gone(r->shared, i);
                r->status[i] =
                    WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
            }
    }
}

static void stop(run *r)
{
    void *failed;
    sc_emu_shared_stop(r->shared);
    assert_int_equal(pthread_join(r->thread, &failed), 0);
    assert_null(failed);
    sc_emu_shared_close(r->shared);
}

static void several(run *r, uint32_t n, bool virt, const char *scenario)
{
    char options[64];
    snprintf(options, sizeof options, "ranks: ['0-%u']\nclock: %s", n - 1,
             virt ? "virtual" : "real");
    make_run(r, options);
    share(r, n, virt);
    run_all(r, scenario);
    stop(r);
}

static void all_pass(uint32_t n, bool virt, const char *scenario)
{
    run r;
    several(&r, n, virt, scenario);
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "err.%u", i);
        if (r.status[i] != 0) print_error("%u: %s", i, read_file(&r, name));
    }
    for (uint32_t i = 0; i < n; i++) assert_int_equal(r.status[i], 0);
    end_run(&r);
}

static void test_several_data(void **state)
{
    (void)state;
    all_pass(2, false, "sums");
    all_pass(3, true, "sums");
    all_pass(2, true, "buffers");
}

static void test_several_time(void **state)
{
    (void)state;
    all_pass(2, false, "several");
    all_pass(2, true, "steps");
    all_pass(4, true, "steps");
}

static void test_several_many(void **state)
{
    (void)state;
    all_pass(2, false, "many");
    all_pass(2, true, "many");
}

/* Ranks in a real-time class that their launcher does not have, rank 1 on core
 * `core`, all else on core 0: its thread must get its turn all the same. */
static bool spin_on(const char *core)
{
    run r;
    const char *kept = probe;
    char script[400], path[400];
    make_run(&r, "ranks: ['0-1']\nclock: real");
    snprintf(
        script, sizeof script,
        "#!/bin/sh\nexec timeout -k 1 300 taskset -c $((STEPCAST_RANK * %s)) "
        "chrt -r 20 %s \"$@\"\n",
        core, kept);
    write_file(&r, "wrapper", script);
    snprintf(path, sizeof path, "%s/wrapper", r.folder);
    assert_int_equal(chmod(path, 0700), 0);
    share(&r, 2, false);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    assert_int_equal(pthread_setaffinity_np(r.thread, sizeof first, &first), 0);
    probe = path;
    run_all(&r, strcmp(core, "0") == 0 ? "spins" : "spins-apart");
    probe = kept;
    stop(&r);
    bool ok = r.status[0] == 0 && r.status[1] == 0;
    if (!ok)
        print_message("%s%s", read_file(&r, "err.0"), read_file(&r, "err.1"));
    end_run(&r);
    return ok;
}

static void test_several_class(void **state)
{
    (void)state;
    if (system("chrt -r 20 taskset -c 1 true 2>/dev/null") != 0) {
        print_message("no real-time class, or no second core, to be had\n");
        skip();
    }
    assert_true(spin_on("0"));
    /* Others may have real-time programs, too. */
    assert_true(spin_on("1") || spin_on("1") || spin_on("1"));
}

static void test_several_repeat(void **state)
{
    (void)state;
    char *first[3];
    sc_arena keep;
    sc_arena_init(&keep, 0);
    for (int i = 0; i < 4; i++) {
        run r;
        several(&r, 3, true, "mixed");
        for (uint32_t k = 0; k < 3; k++) {
            char name[16];
            snprintf(name, sizeof name, "out.%u", k);
            assert_int_equal(r.status[k], 0);
            char *text = read_file(&r, name);
            assert_true(strlen(text) > 100);
            if (i == 0) assert_non_null(first[k] = sc_strdup(&keep, text));
            assert_string_equal(text, first[k]);
        }
        end_run(&r);
    }
    sc_arena_free(&keep);
}

static void test_several_ends(void **state)
{
    (void)state;
    all_pass(2, true, "leaver");
    all_pass(3, false, "leaver");
    all_pass(2, true, "outside");
}

static void test_several_differ(void **state)
{
    (void)state;
    run r;
    several(&r, 2, false, "differ");
    uint32_t told = r.status[0] == 3 ? 0 : 1;
    assert_int_equal(r.status[told], 3);
    assert_int_equal(r.status[1 - told], 0);
    assert_non_null(strstr(read_file(&r, told ? "err.1" : "err.0"),
                           "call 0 of the group of ranks 0-7"));
    end_run(&r);
}

/* Among several none begins again. */
static void test_several_again(void **state)
{
    (void)state;
    run r;
    make_run(&r, "ranks: ['0-1']\nclock: real");
    share(&r, 2, false);
    run_all(&r, "several");
    assert_int_equal(r.status[0] | r.status[1], 0);
    assert_int_equal(alone(&r, "several"), 3);
    assert_non_null(strstr(read_file(&r, "err.0"), "rank 0 has run already"));
    stop(&r);
    end_run(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real),
        cmocka_unit_test(test_virtual),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_forks),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_talk),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_several_data),
        cmocka_unit_test(test_several_time),
        cmocka_unit_test(test_several_many),
        cmocka_unit_test(test_several_class),
        cmocka_unit_test(test_several_repeat),
        cmocka_unit_test(test_several_ends),
        cmocka_unit_test(test_several_differ),
        cmocka_unit_test(test_several_again),
    };
    if (argc != 4) return 2;
    probe = argv[1];
    clock_probe = argv[2];
    clock_library = argv[3];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
