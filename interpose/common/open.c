/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - the process's rank: opened at first use, closed at exit.
 *
 * Many processes have the environment of a rank (shells, torchrun's agent, data
 * loaders); the first that calls a collective is the rank (rank.c). It holds a
 * lock on rank.<N> of the run's folder until it ends, for whatever reason.
 */
#include "common/camp.h"
#include "common/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef enum open_state {
    NOT_ASKED,
    NO_RANK, /* not under `stepcast emulate`, or a forked child */
    OPEN
} open_state;

static struct {
    _Atomic int state; /* open_state */
    pthread_mutex_t mutex;
    live *live;
    void (*on_rank)(void);
    bool scout; /* of `rank` */
    uint32_t rank;
} the = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- files of the launcher ------------------------------------------------------- */

typedef struct run_options {
    sc_emu_options emu;
    int64_t seed;
} run_options;

/* The keys of emulate.yml: those of the command, and the common --seed. */
static sc_key *run_keys(sc_arena *a)
{
    static const sc_key seed = {.name = "seed",
                                .type = SC_T_INT,
                                .offset = offsetof(run_options, seed),
                                .def = "0"};
    uint32_t n = 0;
    while (sc_emu_keys[n].name) n++;
    sc_key *keys = SC_NEW_N(a, sc_key, n + 2);
    if (!keys) return NULL;
    memcpy(keys, sc_emu_keys, n * sizeof *keys);
    keys[n] = seed;
    return keys;
}

static sc_status read_options(const char *folder, sc_arena *a,
                              sc_emu_options *out, sc_err *err)
{
    char *text;
    size_t len;
    sc_node *root;
    run_options o = {0};
    sc_key *keys = run_keys(a);
    const char *path = sc_sprintf(a, "%s/emulate.yml", folder);
    if (!keys || !path) return sc_error_nomem(err);
    SC_TRY(sc_file_read(path, SC_DOC_MAX_BYTES, a, &text, &len, err));
    SC_TRY(sc_doc_parse(text, len, SC_FMT_YAML, path, a, &root, err));
    SC_TRY(sc_schema_defaults(keys, &o, a, err));
    SC_TRY(sc_schema_read(keys, root, &o, NULL, a, err));
    *out = o.emu;
    out->seed = o.seed;
    return SC_OK;
}

/* ---- one process per rank -------------------------------------------------------- */

static void lock_rank(const char *folder, uint32_t rank)
{
    char path[4096], who[32];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int n = snprintf(path, sizeof path, "%s/rank.%u", folder, rank);
    if (n < 0 || (size_t)n >= sizeof path) live_die(NULL, "a path is too long");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) live_die(NULL, "%s: %s", path, strerror(errno));
    fd = camp_high(fd);
    if (fcntl(fd, F_SETLK, &lock) != 0) {
        fcntl(fd, F_GETLK, &lock);
        live_die(NULL,
                 "process %ld calls collectives as rank %u, but process %ld "
                 "is already this rank; %s",
                 (long)getpid(), rank, (long)lock.l_pid,
                 getenv("STEPCAST_RANK")
                     ? "if the program starts its ranks by itself, give "
                       "--start once"
                     : "each process of --start once needs a rank of its own");
    }
    n = snprintf(who, sizeof who, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || write(fd, who, (size_t)n) != n)
        live_die(NULL, "%s: %s", path, strerror(errno));
}

static void init_threads(live *l)
{
    pthread_condattr_t cond;
    pthread_mutexattr_t mutex;
    if (pthread_condattr_init(&cond) != 0 ||
        pthread_condattr_setclock(&cond, CLOCK_MONOTONIC) != 0 ||
        pthread_cond_init(&l->moved, &cond) != 0 ||
        pthread_mutexattr_init(&mutex) != 0 ||
        pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_RECURSIVE) != 0 ||
        pthread_mutex_init(&l->mutex, &mutex) != 0)
        live_die(NULL, "a mutex cannot be created");
    pthread_condattr_destroy(&cond);
    pthread_mutexattr_destroy(&mutex);
}

/* A scout is alone with ranks that mirror it, and does not wait. */
static void config_of_scout(live *l)
{
    l->config = the.live->config; /* of the process that it is a copy of */
    l->config.real = &the.rank;
    l->config.n_real = 1;
    l->config.clock = SC_EMU_VIRTUAL;
    l->config.peers = NULL;
    l->config.peer_tags = false;
    l->config.n_whatif = 0;
    l->rank = the.rank;
}

static sc_status config_of_rank(live *l, const char *folder, sc_err *err)
{
    sc_emu_options o;
    SC_TRY(read_options(folder, &l->arena, &o, err));
    SC_TRY(sc_emu_resolve(&o, &l->arena, &l->config, err));
    l->rank = live_find_rank(&l->config);
    lock_rank(folder, l->rank);
    return SC_OK;
}

/* A scout's log is not read. */
static sc_status open_log(live *l, const char *folder, sc_err *err)
{
    const char *path =
        the.scout
            ? sc_sprintf(&l->arena, "%s/scout.%ld", folder, (long)getpid())
            : sc_sprintf(&l->arena, "%s/log.%u", folder, l->rank);
    if (!path) return sc_error_nomem(err);
    SC_TRY(sc_emu_log_open(path, l->rank, l->world, &l->arena, &l->log, err));
    if (the.scout) unlink(path);
    return SC_OK;
}

static sc_status find_scouted(live *l, sc_err *err)
{
    const sc_emu_config *c = &l->config;
    if (!c->peer_tags) return SC_OK;
    l->scouted = SC_NEW_N(&l->arena, bool, c->world);
    l->sends = SC_NEW_N(&l->arena, bool, c->world);
    if (!l->scouted || !l->sends) return sc_error_nomem(err);
    for (uint32_t r = 0; r < c->world; r++) {
        if (sc_emu_is_real(c, r)) continue;
        l->scouted[r] = c->peers->classes[c->peers->ranks[r].cls].n_tasks > 0;
        l->sends[r] = sc_emu_sends(c, r, l->rank);
    }
    return SC_OK;
}

static sc_status open_world(live *l, const char *folder, sc_err *err)
{
    if (the.scout)
        config_of_scout(l);
    else
        SC_TRY(config_of_rank(l, folder, err));
    SC_TRY(find_scouted(l, err));
    l->world = l->config.world;
    l->virt = l->config.clock == SC_EMU_VIRTUAL;
    l->weak = l->config.progress == SC_EMU_PROGRESS_WEAK;
    const char *shared = sc_sprintf(&l->arena, "%s/shared", folder);
    if (!shared) return sc_error_nomem(err);
    bool alone = l->config.n_real == 1;
    if (alone && l->config.delay == SC_EMU_DELAY_PLUGIN)
        SC_TRY(sc_emu_plugin_open(l->config.delay_file, &l->arena,
                                  &l->config.plugin, err));
    world_open(l, alone ? NULL : shared);
    return open_log(l, folder, err);
}

static live *open_rank(const char *folder)
{
    live *l = calloc(1, sizeof *l);
    if (!l) live_die(NULL, "out of memory");
    init_threads(l);
    sc_arena_init(&l->arena, 0);
    l->unused = l->held = l->ended = l->polled =
        (slot_list){LIVE_NONE, LIVE_NONE};
    sc_err_init(&l->err);
    if (open_world(l, folder, &l->err) != SC_OK) live_die_err(NULL, &l->err);
    l->idle = -1;
    double factor = sc_emu_straggler(&l->config, l->rank);
    if (l->virt && factor != 1) live_clock_slow(factor);
    l->start = l->virt ? live_clock_virtual() : sc_emu_port_start(l->w->port);
    return l;
}

static void before_fork(void)
{
    live_clock_fork(0);
}

static void in_child(void)
{
    live_clock_fork(1);
    atomic_store(&the.state, NO_RANK);
}

void live_open_as(uint32_t rank)
{
    the.scout = true;
    the.rank = rank;
    atomic_store(&the.state, NOT_ASKED);
}

static live *first_use(void)
{
    pthread_mutex_lock(&the.mutex);
    if (atomic_load(&the.state) == NOT_ASKED) {
        const char *folder = getenv("STEPCAST_EMULATE");
        if (folder && *folder) {
            /* None of this is the program's time. */
            live_clock_enter(true);
            the.live = open_rank(folder);
            live_clock_leave(true);
            atomic_store(&the.state, OPEN);
            if (the.on_rank) the.on_rank();
        } else {
            atomic_store(&the.state, NO_RANK);
        }
    }
    pthread_mutex_unlock(&the.mutex);
    return atomic_load(&the.state) == OPEN ? the.live : NULL;
}

live *live_get(void)
{
    int state = atomic_load_explicit(&the.state, memory_order_acquire);
    if (state == OPEN) return the.live;
    return state == NO_RANK ? NULL : first_use();
}

bool live_is_open(void)
{
    return atomic_load(&the.state) != NOT_ASKED;
}

void live_clock_on_rank(void (*start)(void))
{
    the.on_rank = start;
}

void live_uses(live *l, sc_emu_api api)
{
    pthread_mutex_lock(&l->mutex);
    l->totals.apis |= 1u << api;
    sc_emu_log_totals(l->log, &l->totals);
    pthread_mutex_unlock(&l->mutex);
}

/* For the report of a process that the launcher did not start itself. */
static void used(sc_emu_totals *t)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0) return;
    t->cpu = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SC_PS_PER_S +
             (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * INT64_C(1000000);
    t->peak_rss = (uint64_t)u.ru_maxrss * 1024;
    t->preemptions = (uint64_t)u.ru_nivcsw;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_atfork(before_fork, NULL, in_child);
}

__attribute__((destructor)) static void unloaded(void)
{
    if (atomic_load(&the.state) != OPEN) return;
    live *l = the.live;
    pthread_mutex_lock(&l->mutex);
    l->totals.now = live_now(l);
    l->totals.overhead = atomic_load(&l->overhead);
    l->totals.passed = atomic_load(&l->passed);
    l->totals.ended = 1;
    used(&l->totals);
    sc_emu_log_totals(l->log, &l->totals);
    sc_emu_log_close(l->log);
    world_leave(l);
    pthread_mutex_unlock(&l->mutex);
}

bool live_is_scout(void)
{
    return the.scout;
}

bool live_is_scouted(const live *l, uint32_t rank)
{
    return l->scouted && l->scouted[rank];
}

bool live_scout_sends(const live *l, uint32_t rank)
{
    return l->sends && l->sends[rank];
}

uint32_t live_rank(const live *l)
{
    return l->rank;
}

uint32_t live_world(const live *l)
{
    return l->world;
}

const sc_emu_config *live_config(const live *l)
{
    return &l->config;
}
