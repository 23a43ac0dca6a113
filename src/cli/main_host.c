/* SPDX-License-Identifier: Apache-2.0 */
/* main_host.c - signals, and what the environment says. */
#include "cli/main.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t asked_to_end;

static void note(int number)
{
    (void)number;
    asked_to_end = 1;
}

bool main_interrupted(void)
{
    static bool watches;
    if (!watches) {
        struct sigaction act = {.sa_handler = note};
        sigemptyset(&act.sa_mask);
        sigaction(SIGINT, &act, NULL);
        sigaction(SIGTERM, &act, NULL);
        watches = true;
    }
    return asked_to_end != 0;
}

const char *main_cache(char *buf, size_t size)
{
    const char *own = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = own && *own == '/' ? snprintf(buf, size, "%s/stepcast", own)
            : home && *home == '/'
                ? snprintf(buf, size, "%s/.cache/stepcast", home)
                : -1;
    return n > 0 && (size_t)n < size ? buf : NULL;
}

/* The value of a variable; -1: it is no number. */
static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    long v = text ? strtol(text, &end, 10) : -1;
    return text && end != text && !*end && v >= 0 ? v : -1;
}

const char *main_shard(char *buf, size_t size)
{
    long id = number_of("SLURM_ARRAY_TASK_ID");
    long n = number_of("SLURM_ARRAY_TASK_COUNT");
    long first = number_of("SLURM_ARRAY_TASK_MIN");
    long step = number_of("SLURM_ARRAY_TASK_STEP");
    if (id < 0 || n < 1) return NULL;
    if (first < 0) first = 1;
    if (step < 1) step = 1;
    snprintf(buf, size, "%ld/%ld", (id - first) / step + 1, n);
    return buf;
}
