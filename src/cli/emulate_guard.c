/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_guard.c - ends a run whose launcher was killed.
 *
 * A process that is killed cannot clean up, and its children stay. The guard is
 * a process of its own session that waits for the end of a pipe, whose other
 * end only the launcher has. It is no child of the launcher, so that the
 * launcher does not count it among the processes of the run.
 */
#define _DEFAULT_SOURCE /* setsid() */
#include "cli/emulate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The guard must not keep the user's pipes open. */
static void close_but(int keep)
{
    DIR *d = opendir("/proc/self/fd");
    if (!d) {
        for (int fd = 0; fd < 3; fd++) close(fd);
        return;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        int fd = (int)strtol(e->d_name, NULL, 10);
        if (e->d_name[0] != '.' && fd != keep && fd != dirfd(d)) close(fd);
    }
    closedir(d);
}

_Noreturn static void watch_over(const emulate_run *r, int pipe)
{
    char word;
    ssize_t n;
    setsid();
    close_but(pipe);
    do n = read(pipe, &word, 1);
    while (n < 0 && errno == EINTR);
    if (n == 0) { /* no word: the launcher was killed */
        cli_emulate_sweep_folder(r->folder);
        if (!r->o->keep) cli_emulate_folder_remove(r);
    }
    _exit(0);
}

sc_status cli_emulate_guard(emulate_run *r)
{
    int fd[2];
    if (!cli_emulate_pipe(fd)) return cli_emulate_cant(r->c, "open a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[1]);
        pid_t guard = fork(); /* an orphan from now on */
        if (guard == 0) watch_over(r, fd[0]);
        _exit(guard > 0 ? 0 : 1);
    }
    close(fd[0]);
    r->guard = fd[1];
    if (pid < 0) return cli_emulate_cant(r->c, "start a process");
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    errno = EAGAIN;
    return status == 0 ? SC_OK : cli_emulate_cant(r->c, "start a process");
}

void cli_emulate_guard_stop(emulate_run *r)
{
    if (r->guard < 0) return;
    ssize_t n = write(r->guard, "q", 1);
    (void)n; /* the guard is gone: nothing to say */
    close(r->guard);
    r->guard = -1;
}
