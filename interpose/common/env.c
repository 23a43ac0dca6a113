/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - the environment of workers of torchrun.
 *
 * torchrun numbers its workers among the processes that it starts, and keeps a
 * store of its own. A worker gets the world's numbers and the world's store
 * (STEPCAST_ENVIRONMENT, from the launcher) before its program reads them. It
 * keeps LOCAL_RANK, because torchrun assigns the devices.
 */
#include "common/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAVED   "STEPCAST_ENVIRONMENT" /* "NAME=value NAME=value ..." */
#define REAL    "STEPCAST_REAL"        /* real ranks: "0-3,8" */
#define RUN     "TORCHELASTIC_RUN_ID"
#define OUR_RUN "stepcast"

static unsigned long number(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

/* The `i`-th real rank, and *n, how many there are. */
static unsigned long real_rank(unsigned long i, unsigned long *n)
{
    unsigned long found = i;
    const char *at = getenv(REAL);
    *n = 0;
    while (at && *at) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if (i >= *n && i - *n <= last - first) found = first + (i - *n);
        *n += last - first + 1;
        at = *end == ',' ? end + 1 : "";
    }
    return found;
}

static void put_number(const char *name, unsigned long v)
{
    char text[24];
    snprintf(text, sizeof text, "%lu", v);
    setenv(name, text, 1);
}

/* Started for one rank, torchrun has one worker; started once, one for each. */
static void set_rank(void)
{
    unsigned long workers = number("WORLD_SIZE", 1), n;
    unsigned long rank = real_rank(number("RANK", 0), &n);
    const char *mine = getenv("STEPCAST_RANK");
    if (mine && workers != 1)
        live_die(
            NULL,
            "torchrun starts %lu workers for rank %s alone; write "
            "--nproc-per-node 1, or --start once and as many workers as real "
            "ranks",
            workers, mine);
    if (!mine && workers != n)
        live_die(
            NULL,
            "torchrun starts %lu workers, but --ranks names another number of "
            "ranks: %s; set --nproc-per-node",
            workers, getenv(REAL));
    if (mine) rank = number("STEPCAST_RANK", 0);
    put_number("RANK", rank);
    put_number("ROLE_RANK", rank);
}

__attribute__((constructor)) static void loaded(void)
{
    const char *saved = getenv(SAVED), *run = getenv(RUN);
    if (!saved || !run || strcmp(run, OUR_RUN) == 0) return;
    char *text = strdup(saved); /* setenv() may move it */
    if (!text) return;
    set_rank();
    char *rest = text;
    for (char *word; (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value++ = '\0';
        setenv(word, value, 1);
    }
    unsetenv(SAVED); /* children of the worker keep what it has */
    free(text);
}
