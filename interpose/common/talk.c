/* SPDX-License-Identifier: Apache-2.0 */
/* talk.c - messages to the user, on stderr and in the log. */
#include "common/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_DIED 3

/* Written in one piece, whatever the program does with its own stderr. */
static void say(const char *kind, const char *text)
{
    char line[700];
    int n = snprintf(line, sizeof line, "stepcast: %s: %s\n", kind, text);
    if (n < 0) return;
    size_t len = (size_t)n;
    if (len >= sizeof line) {
        len = sizeof line - 1;
        line[len - 1] = '\n';
    }
    while (len > 0) {
        ssize_t done = write(STDERR_FILENO, line, len);
        if (done <= 0) return;
        len -= (size_t)done;
        memmove(line, line + done, len);
    }
}

/* Flushes the program's own output first, unless some thread holds its lock. */
_Noreturn static void leave(void)
{
    if (ftrylockfile(stdout) == 0) {
        fflush(stdout);
        funlockfile(stdout);
    }
    _exit(EXIT_DIED);
}

/* Whether the text is new. After too many different texts, old ones may
 * repeat. */
static bool is_new(live *l, const char *text)
{
    uint64_t hash = sc_hash(text, strlen(text), 0);
    uint32_t kept =
        l->n_reported < SC_COUNT(l->told) ? l->n_reported : SC_COUNT(l->told);
    for (uint32_t i = 0; i < kept; i++)
        if (l->told[i] == hash) return false;
    l->told[l->n_reported++ % SC_COUNT(l->told)] = hash;
    return true;
}

/* `text` becomes what the function's caller has said. */
#define FORMAT(text, fmt)                    \
    char text[600];                          \
    va_list args;                            \
    va_start(args, fmt);                     \
    vsnprintf(text, sizeof text, fmt, args); \
    va_end(args)

void live_warn(live *l, const char *fmt, ...)
{
    FORMAT(text, fmt);
    pthread_mutex_lock(&l->mutex);
    if (is_new(l, text)) {
        say("warning", text);
        if (l->log) sc_emu_log_say(l->log, false, text);
    }
    pthread_mutex_unlock(&l->mutex);
}

void live_guess(live *l, const char *name)
{
    pthread_mutex_lock(&l->mutex);
    bool was = l->totals.guessed;
    l->totals.guessed = 1;
    if (!was && l->log) sc_emu_log_totals(l->log, &l->totals);
    pthread_mutex_unlock(&l->mutex);
    if (!was)
        live_warn(l,
                  "what the program does depends on when messages arrive "
                  "(%s), which is not known of emulated ranks that mirror: "
                  "give --peers scout, or make all ranks real (--ranks all)",
                  name);
}

void live_die(live *l, const char *fmt, ...)
{
    FORMAT(text, fmt);
    /* Never released, so that no thread continues. */
    if (l) pthread_mutex_lock(&l->mutex);
    say("error", text);
    if (l && l->log) sc_emu_log_say(l->log, true, text);
    leave();
}

void live_die_err(live *l, const sc_err *err)
{
    const sc_diag *d = &err->d[0];
    if (err->n == 0) live_die(l, "unknown error");
    live_die(l, "%s%s%s%s%s", d->file, d->file[0] ? ": " : "", d->msg,
             d->hint[0] ? "; " : "", d->hint);
}

void *live_alloc(live *l, size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) live_die(l, "out of memory");
    return p;
}

void live_passed(live *l)
{
    atomic_fetch_add_explicit(&l->passed, 1, memory_order_relaxed);
}
