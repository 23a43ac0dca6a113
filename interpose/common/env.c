/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - restores the launcher's environment for workers of torchrun.
 *
 * torchrun numbers its workers among the processes that it knows: rank 0 of 1.
 * The first process of a run, which has the launcher's variables, saves them
 * for its children. A worker, which has a different TORCHELASTIC_RUN_ID,
 * restores them before its program reads them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAVED "STEPCAST_ENVIRONMENT" /* "NAME=value NAME=value ..." */
#define RUN   "TORCHELASTIC_RUN_ID"

/* LOCAL_RANK is not among them, because torchrun assigns the devices. */
static const char *const names[] = {"RANK",
                                    "WORLD_SIZE",
                                    "LOCAL_WORLD_SIZE",
                                    "GROUP_RANK",
                                    "GROUP_WORLD_SIZE",
                                    "NODE_RANK",
                                    "ROLE_RANK",
                                    "ROLE_WORLD_SIZE",
                                    "MASTER_ADDR",
                                    "MASTER_PORT",
                                    "TORCHELASTIC_USE_AGENT_STORE",
                                    "TORCHELASTIC_RESTART_COUNT",
                                    "TORCHELASTIC_MAX_RESTARTS",
                                    RUN,
                                    NULL};

static void write_down(void)
{
    char text[2048];
    size_t len = 0;
    for (size_t i = 0; names[i]; i++) {
        const char *v = getenv(names[i]);
        if (!v || strchr(v, ' ')) continue;
        int n = snprintf(text + len, sizeof text - len, "%s%s=%s",
                         len ? " " : "", names[i], v);
        if (n < 0 || (size_t)n >= sizeof text - len) return;
        len += (size_t)n;
    }
    if (len) setenv(SAVED, text, 1);
}

/* The saved value of `name`; NULL: there is none. */
static const char *saved(const char *text, const char *name, char *buf,
                         size_t size)
{
    size_t n = strlen(name);
    for (const char *at = text; at; at = strchr(at, ' ')) {
        if (*at == ' ') at++;
        if (strncmp(at, name, n) != 0 || at[n] != '=') continue;
        size_t len = strcspn(at + n + 1, " ");
        if (len >= size) return NULL;
        memcpy(buf, at + n + 1, len);
        buf[len] = '\0';
        return buf;
    }
    return NULL;
}

/* The command is started once per real rank, so each torchrun has one
 * worker. */
static void check_one(void)
{
    const char *n = getenv("WORLD_SIZE"), *rank = getenv("STEPCAST_RANK");
    if (!n || strcmp(n, "1") == 0) return;
    fprintf(stderr,
            "stepcast: error: torchrun starts %s workers for rank %s; write "
            "--nproc-per-node 1 (stepcast starts it once for each rank of "
            "--ranks)\n",
            n, rank ? rank : "?");
    _exit(3);
}

static void unset(const char *text)
{
    char buf[512];
    check_one();
    for (size_t i = 0; names[i]; i++) {
        const char *v = saved(text, names[i], buf, sizeof buf);
        if (v && strcmp(names[i], RUN) != 0) setenv(names[i], v, 1);
    }
}

__attribute__((constructor)) static void loaded(void)
{
    char was[512];
    if (!getenv("STEPCAST_EMULATE")) return;
    const char *text = getenv(SAVED), *run = getenv(RUN);
    if (!text) {
        if (run) write_down();
        return;
    }
    text = strdup(text); /* setenv() may move it */
    if (!text) return;
    if (run && saved(text, RUN, was, sizeof was) && strcmp(was, run) != 0)
        unset(text);
    free((void *)(uintptr_t)text);
}
