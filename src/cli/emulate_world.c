/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_world.c - the launcher's part of the emulated world: checks that the
 * world is valid and, with several real ranks, serves the shared world in a
 * thread.
 */
#include "cli/emulate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORLD_SIZE ((size_t)16 << 30)

/* ---- one real rank: the world is in its process -------------------------- */

/* Errors of a table or a plug-in are reported before CMD starts. */
static sc_status try_out(emulate_run *r)
{
    sc_arena a;
    sc_emu *e = NULL;
    sc_arena_init(&a, WORLD_SIZE);
    sc_status s = sc_emu_new(&r->config, &a, &e, r->c->err);
    sc_arena_free(&a);
    return s;
}

/* ---- several real ranks: the world is in this process -------------------- */

static void *serve(void *arg)
{
    emulate_world *w = arg;
    sc_emu_serve_world(w->shared, &w->err);
    return NULL;
}

static sc_status share(emulate_run *r)
{
    cli *c = r->c;
    emulate_world *w = &r->world;
    const char *path = sc_sprintf(c->arena, "%s/shared", r->folder);
    if (!path) return sc_error_nomem(c->err);
    sc_arena_init(&w->arena, WORLD_SIZE);
    sc_err_init(&w->err);
    SC_TRY(sc_emu_shared_new(path, &r->config, &w->arena, &w->shared, c->err));
    errno = pthread_create(&w->thread, NULL, serve, w);
    if (errno != 0) return cli_emulate_cant(c, "start a thread");
    w->serving = true;
    return SC_OK;
}

sc_status cli_emulate_world(emulate_run *r)
{
    if (r->config.delay == SC_EMU_DELAY_PLUGIN)
        SC_TRY(sc_emu_plugin_open(r->config.delay_file, r->c->arena,
                                  &r->config.plugin, r->c->err));
    return r->n > 1 ? share(r) : try_out(r);
}

void cli_emulate_world_gone(emulate_run *r, emulate_rank *k)
{
    if (r->world.serving && !k->gone)
        sc_emu_shared_gone(r->world.shared, k->rank);
    k->gone = true;
}

/* Its process has taken the rank, and ended. */
static bool is_free(const emulate_run *r, uint32_t rank)
{
    char path[4096];
    struct stat st;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(path, sizeof path, "%s/rank.%u", r->folder, rank);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    bool ended = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK &&
                 fstat(fd, &st) == 0 && st.st_size > 0;
    close(fd);
    return ended;
}

void cli_emulate_world_look(emulate_run *r)
{
    for (uint32_t i = 0; r->world.serving && i < r->n; i++)
        if (!r->rank[i].gone && is_free(r, r->rank[i].rank))
            cli_emulate_world_gone(r, &r->rank[i]);
}

void cli_emulate_world_stop(emulate_run *r)
{
    emulate_world *w = &r->world;
    if (w->serving) {
        sc_emu_shared_stop(w->shared);
        pthread_join(w->thread, NULL);
        if (w->err.n) sc_text_add(&r->warnings, "%s\n", w->err.d[0].msg);
    }
    if (w->shared) sc_emu_shared_close(w->shared);
    w->shared = NULL;
    w->serving = false;
    sc_arena_free(&w->arena);
}
