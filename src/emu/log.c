/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - the writer of a real rank's log: a mapped file that grows in steps.
 *
 * Written pages belong to the kernel, so a program that is killed loses none.
 * Disk space is reserved before it is mapped (a full disk must not become a
 * SIGBUS), and no descriptor stays open, because programs may close or reuse
 * descriptors that they did not open. Pages are touched many at a time:
 * at 64 bytes per operation every 64th one would wait for a page fault.
 */
#include "emu/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_MIN ((size_t)1 << 20)
#define STEP_MAX ((size_t)64 << 20)
#define READY    ((size_t)128 << 10) /* touched at a time */
#define PAGE     ((size_t)4 << 10)   /* the least that a machine has */

struct sc_emu_log {
    const char *path;
    dev_t dev; /* whether it is still the same file */
    ino_t ino;
    size_t size;  /* mapped */
    size_t ready; /* touched */
    uint8_t *map;
    uint64_t used, room; /* slots behind the header */
    bool full;
};

static log_head *head_of(sc_emu_log *l)
{
    return (log_head *)(void *)l->map;
}

static log_slot *slot_of(sc_emu_log *l, uint64_t i)
{
    return (log_slot *)(void *)l->map + LOG_HEAD + i;
}

/* Maps the file with `size` bytes, all of them on disk. */
static bool map(sc_emu_log *l, int fd, size_t size)
{
    errno = posix_fallocate(fd, 0, (off_t)size); /* it does not set errno */
    if (errno != 0) return false;
    void *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED) return false;
    if (l->map) munmap(l->map, l->size);
    l->map = m;
    l->size = size;
    l->ready = (LOG_HEAD + l->used) * LOG_SLOT / READY * READY;
    l->room = size / LOG_SLOT - LOG_HEAD;
    return true;
}

static bool grow(sc_emu_log *l)
{
    struct stat st;
    size_t step = l->size < STEP_MAX ? l->size : STEP_MAX;
    int fd = open(l->path, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == l->dev &&
              st.st_ino == l->ino && map(l, fd, l->size + step);
    if (fd >= 0) close(fd);
    l->full = !ok;
    return ok;
}

static sc_status refused(const char *path, sc_err *err)
{
    return sc_error(err, SC_EIO, SC_C_IO, sc_pos_file(path), NULL,
                    "can't write the log: %s", sc_errno_text(errno));
}

sc_status sc_emu_log_open(const char *path, uint32_t rank, uint32_t world,
                          sc_arena *a, sc_emu_log **out, sc_err *err)
{
    struct stat st;
    sc_emu_log *l = SC_NEW(a, sc_emu_log);
    char *name = sc_strdup(a, path);
    if (!l || !name) return sc_error_nomem(err);
    l->path = name;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return refused(path, err);
    bool ok = fstat(fd, &st) == 0 && map(l, fd, STEP_MIN);
    int saved = errno;
    close(fd);
    errno = saved;
    if (!ok) return refused(path, err);
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    log_head *h = head_of(l);
    memcpy(h->magic, LOG_MAGIC, sizeof h->magic);
    h->version = LOG_VERSION;
    h->order = LOG_ORDER;
    h->rank = rank;
    h->world = world;
    *out = l;
    return SC_OK;
}

void sc_emu_log_close(sc_emu_log *l)
{
    struct stat st;
    off_t size = (off_t)((LOG_HEAD + l->used) * LOG_SLOT);
    munmap(l->map, l->size);
    l->map = NULL;
    l->full = true;
    int fd = open(l->path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    /* if truncation fails the file is only longer than needed */
    if (fstat(fd, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino &&
        ftruncate(fd, size) != 0)
        errno = 0;
    close(fd);
}

/* What is behind the used slots is zero. */
static void make_ready(sc_emu_log *l)
{
    size_t used = (LOG_HEAD + l->used) * LOG_SLOT, end = l->ready + READY;
    for (size_t at = l->ready; at < end && at < l->size; at += PAGE)
        if (at >= used) *(volatile uint8_t *)(l->map + at) = 0;
    l->ready = end;
}

/* Reserves `n` slots at the end. */
static log_slot *room(sc_emu_log *l, uint64_t n)
{
    while (!l->full && l->room - l->used < n) (void)grow(l);
    if (l->full) return NULL;
    while (l->ready < l->size && (LOG_HEAD + l->used + n) * LOG_SLOT > l->ready)
        make_ready(l);
    return slot_of(l, l->used);
}

/* The slots from room() are complete: they count from now on. */
static void publish(sc_emu_log *l, uint64_t n)
{
    atomic_signal_fence(memory_order_release);
    l->used += n;
    head_of(l)->used = l->used;
}

/* The number of ranks from `rank` on that are first, first + stride, ... */
static log_run run_at(const uint32_t *rank, uint32_t n)
{
    log_run r = {rank[0], 0, 1};
    if (n == 1) return r;
    int64_t stride = (int64_t)rank[1] - rank[0];
    if (stride > INT32_MAX || stride < INT32_MIN) return r;
    r.stride = (int32_t)stride;
    while (r.n < n && (int64_t)rank[r.n] - rank[r.n - 1] == stride) r.n++;
    return r;
}

bool sc_emu_log_group(sc_emu_log *l, uint32_t group, const uint32_t *rank,
                      uint32_t n)
{
    uint32_t runs = 0;
    if (l->full || group >= LOG_GROUP_MAX) return false;
    for (uint32_t i = 0; i < n; runs++) i += run_at(rank + i, n - i).n;
    uint32_t slots = (runs + LOG_RUNS - 1) / LOG_RUNS;
    log_slot *s = room(l, 1 + (uint64_t)slots);
    if (!s) return false;
    s->g = (log_group){.kind = LOG_GROUP, .group = group, .members = n};
    for (uint32_t i = 0; i < n;) {
        log_group g = {.kind = LOG_MEMBERS, .group = group};
        for (; g.n < LOG_RUNS && i < n; g.n++) {
            g.u.run[g.n] = run_at(rank + i, n - i);
            i += g.u.run[g.n].n;
        }
        (++s)->g = g;
    }
    publish(l, 1 + (uint64_t)slots);
    return true;
}

/* Writes `end` last: until then the operation has not ended. */
static void fill(sc_emu_record *o, const sc_emu_record *r)
{
    sc_emu_record x = *r;
    x.kind = LOG_OP;
    x.end = o->end;
    *o = x;
    atomic_signal_fence(memory_order_release);
    o->end = r->end;
}

uint64_t sc_emu_log_add(sc_emu_log *l, const sc_emu_record *r)
{
    log_slot *s = room(l, 1);
    if (!s) return UINT64_MAX;
    fill(&s->op, r);
    publish(l, 1);
    return l->used - 1;
}

void sc_emu_log_set(sc_emu_log *l, uint64_t index, const sc_emu_record *r)
{
    if (l->map && index < l->used && slot_of(l, index)->kind == LOG_OP)
        fill(&slot_of(l, index)->op, r);
}

void sc_emu_log_step(sc_emu_log *l, sc_time t)
{
    log_slot *s = room(l, 1);
    if (!s) return;
    s->op = (sc_emu_record){.kind = LOG_STEP, .post = t};
    publish(l, 1);
}

void sc_emu_log_totals(sc_emu_log *l, const sc_emu_totals *t)
{
    if (l->map) head_of(l)->totals = *t;
}

void sc_emu_log_say(sc_emu_log *l, bool error, const char *text)
{
    size_t len = strnlen(text, LOG_TEXT_MAX);
    uint32_t slots = (uint32_t)((len + LOG_TEXT - 1) / LOG_TEXT);
    if (slots == 0) return;
    log_slot *s = room(l, slots);
    if (!s) return;
    for (uint32_t i = 0; i < slots; i++) {
        size_t from = (size_t)i * LOG_TEXT, n = len - from;
        if (n > LOG_TEXT) n = LOG_TEXT;
        log_group g = {.kind = i == 0 ? LOG_SAID : LOG_MORE,
                       .error = error,
                       .n = (uint16_t)n,
                       .members = (uint32_t)len};
        memcpy(g.u.text, text + from, n);
        s[i].g = g;
    }
    publish(l, slots);
}

sc_status sc_emu_log_save(const sc_emu_run *run, const char *path, sc_arena *a,
                          sc_err *err)
{
    sc_emu_log *l;
    SC_TRY(sc_emu_log_open(path, run->rank, run->world, a, &l, err));
    for (uint32_t i = 0; i < run->n_groups; i++)
        if (run->group[i].n > 0)
            sc_emu_log_group(l, i, run->group[i].rank, run->group[i].n);
    for (uint64_t i = 0; i < run->n_records; i++)
        sc_emu_log_add(l, &run->record[i]);
    sc_emu_log_totals(l, &run->totals);
    bool full = l->full;
    sc_emu_log_close(l);
    return full ? refused(path, err) : SC_OK;
}
