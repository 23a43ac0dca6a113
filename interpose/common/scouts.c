/* SPDX-License-Identifier: Apache-2.0 */
/* scouts.c - the program's side of scouts, and what makes a copy one. */
#include "common/scouts.h"

#include "common/camp.h"
#include "common/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex; /* one request at a time */
    int fd;                /* to the camp; -1: there is none */
    bool is_scout;         /* sent for `goal` */
    uint64_t goal;
} the = {.mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- a copy ---------------------------------------------------------------- */

/* Neither the program's terminal nor its pipes are a copy's. */
static void silence(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDOUT_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    if (null > STDERR_FILENO) close(null);
}

/* A copy reads files from where the program was, at its own pace, and writes to
 * none of those that the program had opened. */
static void own_file(int fd)
{
    struct stat st;
    char path[64];
    int flags = fcntl(fd, F_GETFL);
    if (fstat(fd, &st) != 0 || flags < 0) return;
    bool file = S_ISREG(st.st_mode);
    if (!file && fd != STDIN_FILENO) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool reads = (flags & O_ACCMODE) != O_WRONLY;
    int own =
        open(file && reads ? path : "/dev/null", reads ? O_RDONLY : O_WRONLY);
    if (own < 0) return;
    if (file && reads) lseek(own, lseek(fd, 0, SEEK_CUR), SEEK_SET);
    int kept = fcntl(fd, F_GETFD);
    dup2(own, fd);
    fcntl(fd, F_SETFD, kept);
    close(own);
}

static void own_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        int fd = (int)strtol(e->d_name, NULL, 10);
        if (e->d_name[0] != '.' && fd != dirfd(d)) own_file(fd);
    }
    if (d) closedir(d);
}

static void become_scout(camp_scout s)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    the.fd = s.fd;
    the.is_scout = true;
    the.goal = s.split;
    own_files();
    live_open_as(s.rank);
}

/* The camp is no child of the program, which may wait for all of its own. */
static bool fork_camp(int fd, int other)
{
    pid_t pid = fork();
    if (pid == 0) {
        close(other);
        pid_t camp = fork();
        if (camp != 0) _exit(camp > 0 ? 0 : 1);
        silence();
        become_scout(camp_serve(fd));
        return true;
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || status != 0) {
        close(other);
        the.fd = -1;
    }
    return false;
}

void live_scouts_camp(void)
{
    const live *l = live_get();
    int fd[2];
    if (!l || the.fd >= 0) return;
    const sc_emu_config *c = live_config(l);
    if (c->n_real == c->world ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return;
    the.fd = camp_high(fd[0]);
    int theirs = camp_high(fd[1]);
    if (!fork_camp(theirs, the.fd)) close(theirs);
}

/* ---- messages --------------------------------------------------------------- */

/* Without a camp, nothing is known. */
static void camp_lost(void)
{
    if (the.is_scout) _exit(0);
    if (the.fd >= 0) close(the.fd);
    the.fd = -1;
}

static bool say(camp_head h, const void *data, size_t len)
{
    if (the.fd < 0) return false;
    if (camp_send(the.fd, &h, sizeof h) && camp_send(the.fd, data, len))
        return true;
    camp_lost();
    return false;
}

static bool hear(void *data, size_t len)
{
    if (camp_recv(the.fd, data, len)) return true;
    camp_lost();
    return false;
}

/* Sends a request, and receives an answer if there is one. */
static bool request(camp_head h, const void *data, size_t len, void *answer,
                    size_t size)
{
    pthread_mutex_lock(&the.mutex);
    bool ok = say(h, data, len) && (!answer || hear(answer, size));
    pthread_mutex_unlock(&the.mutex);
    return ok;
}

void live_scouts_tell(const live *l, uint64_t split, sc_emu_choice mine)
{
    camp_head h = {.kind = CAMP_TELL,
                   .split = split,
                   .rank = live_rank(l),
                   .choice = mine};
    request(h, NULL, 0, NULL, 0);
    if (the.is_scout && split == the.goal) _exit(0);
}

void live_scouts_ask(uint64_t split, const uint32_t *rank, uint32_t n,
                     sc_emu_choice *out)
{
    camp_head h = {.kind = CAMP_ASK, .n = n, .split = split};
    if (!request(h, rank, n * sizeof *rank, out, n * sizeof *out))
        for (uint32_t i = 0; i < n; i++) out[i].known = false;
}

void live_scouts_keep(uint64_t split, const sc_emu_choice *all, uint32_t n)
{
    camp_head h = {.kind = CAMP_KEEP, .n = n, .split = split};
    request(h, all, n * sizeof *all, NULL, 0);
}

bool live_scouts_kept(uint64_t split, sc_emu_choice *all, uint32_t n)
{
    camp_head h = {.kind = CAMP_KEPT, .n = n, .split = split}, out;
    pthread_mutex_lock(&the.mutex);
    bool there = say(h, NULL, 0) && hear(&out, sizeof out) && out.n > 0 &&
                 hear(all, out.n * sizeof *all);
    pthread_mutex_unlock(&the.mutex);
    return there;
}
