/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_watch.c - watches the ranks: passes on their streams and signals,
 * detects their ends, and ends the run if it does not end by itself.
 */
#define _DEFAULT_SOURCE /* wait4(), prctl() */
#include "cli/emulate.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How often ranks that another program has started are looked for. */
#define LOOK_S 0.1

typedef struct watch {
    emulate_run *r;
    bool lent;
    double begun, ending, killed; /* seconds; NaN: not yet */
} watch;

/* ---- signals ------------------------------------------------------------- */

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

sc_status cli_emulate_signals(emulate_run *r)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t ours, more;
    struct sigaction now;
    sigemptyset(&ours);
    for (size_t i = 0; i < SC_COUNT(passed_on); i++)
        if (sigaction(passed_on[i], NULL, &now) == 0 &&
            now.sa_handler != SIG_IGN) /* set by nohup or for a shell's
                                        * background */
            sigaddset(&ours, passed_on[i]);
    sigaddset(&ours, SIGCHLD);
    more = ours;
    sigaddset(&more, SIGTTOU); /* we may take the terminal back */
    sigaction(SIGPIPE, &ignore, &r->pipe_action);
    r->signals = -1;
    errno = pthread_sigmask(SIG_BLOCK, &more, &r->mask);
    if (errno != 0) return cli_emulate_cant(r->c, "block signals");
    r->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->signals >= 0 ? SC_OK : cli_emulate_cant(r->c, "wait for signals");
}

void cli_emulate_signals_back(emulate_run *r)
{
    struct signalfd_siginfo s;
    while (r->signals >= 0 && read(r->signals, &s, sizeof s) > 0)
        ; /* the run ends already */
    if (r->signals >= 0) close(r->signals);
    pthread_sigmask(SIG_SETMASK, &r->mask, NULL);
    sigaction(SIGPIPE, &r->pipe_action, NULL);
}

/* Sends a signal to all running ranks. */
static void signal_ranks(const watch *w, int sig)
{
    for (uint32_t i = 0; i < w->r->n; i++) {
        const emulate_rank *k = &w->r->rank[i];
        if (k->pid <= 0 || k->ended) continue;
        if (kill(-k->pid, sig) != 0) kill(k->pid, sig);
        kill(-k->pid, SIGCONT); /* stopped processes do not receive it */
    }
}

/* Ends the run; only the first reason is kept. */
static void end_run(watch *w, emulate_end why, double grace)
{
    if (w->r->end == EMULATE_ITSELF) w->r->end = why;
    if (isnan(w->ending)) w->ending = cli_now_s() + grace;
}

static void read_signals(watch *w)
{
    struct signalfd_siginfo s;
    while (read(w->r->signals, &s, sizeof s) == (ssize_t)sizeof s) {
        if (s.ssi_signo == SIGCHLD) continue;
        int sig = (int)s.ssi_signo;
        if (w->r->end == EMULATE_ITSELF) w->r->signal = sig;
        end_run(w, EMULATE_SIGNAL, 0);
        signal_ranks(w, sig);
        w->ending = NAN; /* reported already */
        w->killed =
            isnan(w->killed) ? cli_now_s() + w->r->o->grace : cli_now_s();
    }
}

/* ---- streams ------------------------------------------------------------- */

static void put(int to, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(to, text, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return; /* the reader is gone */
        text += n;
        len -= (size_t)n;
    }
}

static void put_line(const emulate_rank *k, emulate_pipe *p, const char *end)
{
    char line[sizeof p->line + 32];
    int n = snprintf(line, sizeof line, "[rank %u] %.*s%s", k->rank,
                     (int)p->len, p->line, end);
    if (n > 0) put(p->to, line, (size_t)n);
    p->len = 0;
}

/* False: the stream has ended. */
static bool pass_on(const emulate_rank *k, emulate_pipe *p)
{
    char text[4096];
    ssize_t n = read(p->from, text, sizeof text);
    if (n < 0 && errno == EINTR) return true;
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] == '\n' || p->len == sizeof p->line) put_line(k, p, "\n");
        if (text[i] != '\n') p->line[p->len++] = text[i];
    }
    if (n > 0) return true;
    if (p->len > 0) put_line(k, p, "\n");
    close(p->from);
    p->from = -1;
    return false;
}

/* Passes on everything that has arrived. */
static void drain(const watch *w)
{
    for (uint32_t i = 0; i < w->r->n; i++)
        for (int s = 0; s < 2; s++) {
            emulate_pipe *p = &w->r->rank[i].pipe[s];
            struct pollfd one = {.fd = p->from, .events = POLLIN};
            while (p->from >= 0 && poll(&one, 1, 0) > 0 &&
                   pass_on(&w->r->rank[i], p))
                ;
        }
}

static void close_streams(const watch *w)
{
    for (uint32_t i = 0; i < w->r->n; i++)
        for (int s = 0; s < 2; s++) {
            emulate_pipe *p = &w->r->rank[i].pipe[s];
            if (p->from >= 0 && p->len > 0) put_line(&w->r->rank[i], p, "\n");
            if (p->from >= 0) close(p->from);
            p->from = -1;
        }
}

/* ---- the terminal -------------------------------------------------------- */

/* A single rank that reads from a terminal becomes its foreground. */
static bool has_terminal(const emulate_run *r)
{
    return r->n_processes == 1 && !r->scout.active && isatty(STDIN_FILENO) &&
           tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void lend_terminal(watch *w)
{
    if (w->r->terminal)
        w->lent = tcsetpgrp(STDIN_FILENO, w->r->rank[0].pid) == 0;
}

static void take_terminal(watch *w)
{
    if (w->lent) tcsetpgrp(STDIN_FILENO, getpgrp());
    w->lent = false;
}

/* ^Z has stopped the rank: stops this process, and continues together with
 * it. */
static void stop_with(watch *w, const emulate_rank *k)
{
    if (!w->lent) return;
    take_terminal(w);
    kill(getpid(), SIGSTOP);
    lend_terminal(w);
    kill(-k->pid, SIGCONT);
}

/* ---- ends ---------------------------------------------------------------- */

static bool failed(const emulate_rank *k)
{
    return k->ended && (!WIFEXITED(k->status) || WEXITSTATUS(k->status) != 0);
}

static void rank_ended(watch *w, emulate_rank *k, int status,
                       const struct rusage *u)
{
    k->ended = true;
    k->status = status;
    cli_emulate_world_gone(w->r, k);
    for (uint32_t i = 1; w->r->once && i < w->r->n; i++) {
        w->r->rank[i].status = status; /* all ranks were its children */
        cli_emulate_world_gone(w->r, &w->r->rank[i]);
    }
    k->cpu_s = (double)u->ru_utime.tv_sec + (double)u->ru_utime.tv_usec / 1e6 +
               (double)u->ru_stime.tv_sec + (double)u->ru_stime.tv_usec / 1e6;
    k->peak_rss = (uint64_t)u->ru_maxrss * 1024;
    k->preemptions = (uint64_t)u->ru_nivcsw;
    if (!failed(k)) return;
    if (w->lent && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) {
        w->r->end = EMULATE_SIGNAL; /* ^C went to the rank itself */
        w->r->signal = SIGINT;
    }
    if (w->r->end == EMULATE_ITSELF) {
        w->r->failed = (uint32_t)(k - w->r->rank);
        end_run(w, EMULATE_RANK, w->r->o->grace);
    }
}

static void reap(watch *w)
{
    struct rusage u;
    int status = 0;
    for (;;) {
        pid_t pid = wait4(-1, &status, WNOHANG | WUNTRACED, &u);
        if (pid < 0 && errno == EINTR) continue;
        if (pid <= 0) return;
        for (uint32_t i = 0; i < w->r->n; i++) {
            emulate_rank *k = &w->r->rank[i];
            if (k->pid != pid) continue;
            if (WIFSTOPPED(status))
                stop_with(w, k);
            else
                rank_ended(w, k, status, &u);
        }
    }
}

static bool all_ended(const emulate_run *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->rank[i].pid > 0 && !r->rank[i].ended) return false;
    return true;
}

/* Performs the actions whose time has come. */
static void look_at_clock(watch *w)
{
    const emulate_opts *o = w->r->o;
    double now = cli_now_s();
    if (o->timeout > 0 && now - w->begun >= o->timeout && isnan(w->ending) &&
        isnan(w->killed))
        end_run(w, EMULATE_TIMEOUT, 0);
    if (w->r->scout.active && w->r->end == EMULATE_ITSELF &&
        cli_emulate_scout_look(w->r))
        end_run(w, EMULATE_ENOUGH, 0);
    if (!isnan(w->ending) && now >= w->ending) {
        signal_ranks(w, SIGTERM);
        w->ending = NAN;
        w->killed = now + o->grace;
    }
    if (!isnan(w->killed) && now >= w->killed) {
        signal_ranks(w, SIGKILL);
        w->killed = now + o->grace;
    }
}

/* Milliseconds until the next action; -1: none. */
static int next_due(const watch *w)
{
    double t = INFINITY, now = cli_now_s();
    if (w->r->o->timeout > 0) t = w->begun + w->r->o->timeout;
    if (!isnan(w->ending)) t = w->ending;
    if (!isnan(w->killed)) t = w->killed;
    if (w->r->scout.active && w->r->end == EMULATE_ITSELF)
        t = fmin(t, w->r->scout.next);
    if (w->r->once && w->r->world.serving) t = fmin(t, now + LOOK_S);
    if (isinf(t)) return -1;
    if (t <= now) return 0;
    return t - now > 1e6 ? 1000000000 : (int)ceil((t - now) * 1000);
}

static sc_status loop(watch *w)
{
    emulate_run *r = w->r;
    struct pollfd *fd =
        SC_NEW_N(r->c->arena, struct pollfd, (size_t)2 * r->n + 1);
    if (!fd) return sc_error_nomem(r->c->err);
    for (;;) {
        reap(w);
        if (all_ended(r)) return SC_OK;
        if (r->once) cli_emulate_world_look(r);
        look_at_clock(w);
        fd[0] = (struct pollfd){.fd = r->signals, .events = POLLIN};
        for (uint32_t i = 0; i < 2 * r->n; i++)
            fd[1 + i] = (struct pollfd){.fd = r->rank[i / 2].pipe[i % 2].from,
                                        .events = POLLIN};
        if (poll(fd, 2 * (nfds_t)r->n + 1, next_due(w)) < 0) {
            if (errno == EINTR) continue;
            return cli_emulate_cant(r->c, "wait for the program");
        }
        read_signals(w);
        for (uint32_t i = 0; i < 2 * r->n; i++)
            if (fd[1 + i].revents)
                pass_on(&r->rank[i / 2], &r->rank[i / 2].pipe[i % 2]);
    }
}

static sc_status start(watch *w)
{
    emulate_run *r = w->r;
    for (uint32_t i = 0; i < r->n; i++)
        r->rank[i].pipe[0].from = r->rank[i].pipe[1].from = -1;
    r->terminal = has_terminal(r);
    for (uint32_t i = 0; i < r->n_processes; i++)
        SC_TRY(cli_emulate_spawn(r, i));
    lend_terminal(w);
    return SC_OK;
}

sc_status cli_emulate_watch(emulate_run *r)
{
    watch w = {.r = r, .ending = NAN, .killed = NAN};
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return cli_emulate_cant(r->c, "look after orphans");
    w.begun = cli_now_s();
    sc_status s = start(&w);
    if (s == SC_OK) s = loop(&w);
    take_terminal(&w);
    r->wall_s = cli_now_s() - w.begun;
    uint32_t left = cli_emulate_sweep(r->o->grace);
    if (s == SC_OK) r->n_left = left;
    /* the guard of a later run is to be an orphan of others */
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    drain(&w);
    close_streams(&w);
    return s;
}
