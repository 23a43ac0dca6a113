/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_sweep.c - ends all processes of a run.
 *
 * The launcher is a subreaper: it becomes the parent of orphans. Every process
 * that a program has started is therefore below it in the process table, even
 * in a session of its own. Without the launcher, they are found by their
 * environment, and what they have started by its parents.
 */
#define _DEFAULT_SOURCE /* wait4() */
#include "cli/emulate.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 5000000L
/* a process that survives SIGKILL for this long is stuck */
#define LAST_S  10.0
#define LEAVE_S 0.5 /* helper processes may end a little after the program */

typedef struct process {
    pid_t pid, parent;
    bool ours, dead;
} process;

typedef struct table {
    process *p;
    size_t n, cap;
    const char *word; /* in the environment; NULL: descendants of ours */
} table;

/* Parses "123 (name) S 45 ..."; the name may contain any character. */
static bool read_stat(const char *pid, process *out)
{
    char path[64], text[512];
    if (strlen(pid) > 20) return false;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return false;
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    if (!at || strlen(at) < 4) return false;
    *out = (process){.pid = (pid_t)strtol(pid, NULL, 10),
                     .parent = (pid_t)strtol(at + 4, NULL, 10),
                     .dead = at[2] == 'Z' || at[2] == 'X'};
    return true;
}

static bool add(table *t, process p)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 256;
        process *more = realloc(t->p, cap * sizeof *more);
        if (!more) return false;
        t->p = more;
        t->cap = cap;
    }
    t->p[t->n++] = p;
    return true;
}

static void read_table(table *t)
{
    DIR *d = opendir("/proc");
    process p;
    t->n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (isdigit((unsigned char)e->d_name[0]) && read_stat(e->d_name, &p) &&
            !add(t, p))
            break;
    if (d) closedir(d);
}

/* Marks the descendants of marked processes and of `self` (0: none). */
static void mark(table *t, pid_t self)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < t->n; i++) {
            if (t->p[i].ours) continue;
            bool ours = self && t->p[i].parent == self;
            for (size_t k = 0; k < t->n && !ours; k++)
                ours = t->p[k].ours && t->p[k].pid == t->p[i].parent;
            t->p[i].ours = ours;
            more = more || ours;
        }
    }
}

/* Whether the environment with which a process began has the entry `word`. */
static bool has_word(pid_t pid, const char *word)
{
    char path[64], text[8192];
    size_t len = strlen(word) + 1, kept = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    for (ssize_t n; !found && len < sizeof text / 2 &&
                    (n = read(fd, text + kept, sizeof text - kept)) > 0;) {
        size_t end = kept + (size_t)n;
        for (size_t i = 0; i + len <= end && !found; i++)
            found = memcmp(text + i, word, len) == 0;
        kept = end < len ? end : len - 1;
        memmove(text, text + end - kept, kept);
    }
    close(fd);
    return found;
}

static void mark_word(table *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->p[i].ours =
            t->p[i].pid != getpid() && has_word(t->p[i].pid, t->word);
}

/* Sends a signal to all marked processes; returns how many are alive. */
static uint32_t signal_all(table *t, int sig)
{
    uint32_t n = 0;
    read_table(t);
    if (t->word) mark_word(t);
    mark(t, t->word ? 0 : getpid());
    for (size_t i = 0; i < t->n; i++) {
        if (!t->p[i].ours || t->p[i].dead) continue;
        if (sig) kill(t->p[i].pid, sig);
        if (sig == SIGTERM) kill(t->p[i].pid, SIGCONT);
        n++;
    }
    return n;
}

static void reap(void)
{
    pid_t pid;
    do pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0 || (pid < 0 && errno == EINTR));
}

/* Waits until `end`, or until none is left; returns how many are alive. */
static uint32_t wait_for(table *t, int sig, double end)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (;;) {
        reap();
        uint32_t left = signal_all(t, sig);
        if (left == 0 || cli_now_s() >= end) return left;
        nanosleep(&pause, NULL);
    }
}

uint32_t cli_emulate_sweep(double grace_s)
{
    table t = {0};
    uint32_t found = wait_for(&t, 0, cli_now_s() + LEAVE_S);
    if (found > 0) {
        signal_all(&t, SIGTERM);
        if (wait_for(&t, 0, cli_now_s() + grace_s) > 0)
            wait_for(&t, SIGKILL, cli_now_s() + LAST_S);
    }
    reap();
    free(t.p);
    return found;
}

void cli_emulate_sweep_folder(const char *folder)
{
    char word[4096];
    table t = {.word = word};
    snprintf(word, sizeof word, "STEPCAST_EMULATE=%s", folder);
    wait_for(&t, SIGKILL, cli_now_s() + LAST_S);
    free(t.p);
}
