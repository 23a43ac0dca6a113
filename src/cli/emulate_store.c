/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_store.c - serves the rendezvous at MASTER_ADDR in a thread of the
 * launcher. */
#include "cli/emulate.h"
#include "emu/emu_store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG    1024
#define STORE_SIZE ((size_t)1 << 30)

static sc_status refused(emulate_run *r, const char *what)
{
    cli *c = r->c;
    const char *port =
        sc_sprintf(c->arena, "--store-port %lld", (long long)r->o->store_port);
    if (!port) return sc_error_nomem(c->err);
    return sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file(port),
                    r->o->store_port ? "another program uses this port; "
                                       "without the option a free one is chosen"
                                     : NULL,
                    "can't %s on 127.0.0.1: %s", what, sc_errno_text(errno));
}

static sc_status open_listener(emulate_run *r)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)r->o->store_port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return refused(r, "open a socket");
    r->store.listener = fd;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
        return refused(r, "bind the port");
    if (listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return refused(r, "listen");
    r->store.port = ntohs(at.sin_port);
    return SC_OK;
}

uint16_t cli_emulate_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
              getsockname(fd, (struct sockaddr *)&at, &len) == 0;
    if (fd >= 0) close(fd);
    return ok ? ntohs(at.sin_port) : 0;
}

static void *serve(void *arg)
{
    emulate_store *s = arg;
    sc_store_serve(s->store, s->listener, s->stop[0], &s->err);
    return NULL;
}

sc_status cli_emulate_store(emulate_run *r)
{
    emulate_store *s = &r->store;
    SC_TRY(open_listener(r));
    if (!cli_emulate_pipe(s->stop)) return refused(r, "open a pipe");
    sc_arena_init(&s->arena, STORE_SIZE);
    sc_err_init(&s->err);
    SC_TRY(sc_store_new(r->config.world, r->config.real, r->config.n_real,
                        &s->arena, &s->store, r->c->err));
    int rc = pthread_create(&s->thread, NULL, serve, s);
    errno = rc;
    if (rc != 0) return refused(r, "start a thread");
    s->started = true;
    return SC_OK;
}

void cli_emulate_store_stop(emulate_run *r)
{
    emulate_store *s = &r->store;
    if (s->started) {
        ssize_t n = write(s->stop[1], "", 1);
        if (n == 1) pthread_join(s->thread, NULL);
        if (s->err.n)
            sc_text_add(&r->warnings, "rendezvous: %s\n", s->err.d[0].msg);
    }
    s->started = false;
    int *const fds[] = {&s->listener, &s->stop[0], &s->stop[1]};
    for (size_t i = 0; i < SC_COUNT(fds); i++) {
        if (*fds[i] > 0) close(*fds[i]);
        *fds[i] = -1;
    }
    sc_arena_free(&s->arena);
}
