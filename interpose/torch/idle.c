/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle.c - whether the program only waits.
 *
 * C++ waits for futures in condition variables, out of sight. The system knows
 * which threads sleep, and in which call.
 */
#include "torch.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t read_task(const char *tid, const char *what, char *buf,
                        size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/%s", tid, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* A background thread that serves files or sockets, whenever something comes:
 * it waits for them without a time limit. Text: as the system shows the call,
 * its number and its arguments. */
static bool serves(const char *call)
{
    uint64_t a[4] = {0};
    char *end;
    long number = strtol(call, &end, 10);
    for (int i = 0; i < 4; i++) a[i] = strtoull(end, &end, 16);
    switch (number) {
#ifdef SYS_poll /* which newer machines have not */
    case SYS_poll: return (int)a[2] == -1;
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait: return (int)a[3] == -1;
    case SYS_ppoll: return a[2] == 0;
    default: return false;
    }
}

/* False: the thread runs, or is about to. */
static bool sleeps(const char *tid, bool *lock)
{
    char text[512];
    if (read_task(tid, "syscall", text, sizeof text)) {
        if (!isdigit((unsigned char)text[0])) return false;
        if (strtol(text, NULL, 10) != SYS_futex && !serves(text)) *lock = false;
    }
    if (!read_task(tid, "stat", text, sizeof text)) return true; /* it ended */
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'S';
}

bool torch_all_sleep(bool *lock)
{
    char own[24];
    bool all = true;
    *lock = true;
    snprintf(own, sizeof own, "%ld", (long)gettid());
    DIR *d = opendir("/proc/self/task");
    if (!d) return false;
    for (const struct dirent *e; all && (e = readdir(d));)
        if (e->d_name[0] != '.' && strcmp(e->d_name, own) != 0)
            all = sleeps(e->d_name, lock);
    closedir(d);
    return all;
}
