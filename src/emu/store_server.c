/* SPDX-License-Identifier: Apache-2.0 */
/* store_server.c - the rendezvous store on sockets: one loop, no threads. */
#include "emu/store.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK       ((size_t)64 << 10)
#define CLIENTS_MAX 4096u /* a real rank has two, or one per group */

typedef struct server {
    sc_store *s;
    sc_arena *a;
    int listener, stop;
    uint32_t n, cap;
    struct pollfd *fd;        /* [n + 2]: stop, listener, clients */
    sc_store_client **client; /* [n + 2] */
    uint8_t *chunk;
} server;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool no_block(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* For one more client. */
static bool room(server *v)
{
    uint32_t n = v->n + 2, cap = v->cap ? v->cap : 16;
    while (cap <= n) cap *= 2;
    if (cap == v->cap) return true;
    struct pollfd *fd = SC_NEW_N(v->a, struct pollfd, cap);
    sc_store_client **client = SC_NEW_N(v->a, sc_store_client *, cap);
    if (!fd || !client) return false;
    if (v->cap != 0) {
        memcpy(fd, v->fd, n * sizeof *fd);
        memcpy(client, v->client, n * sizeof *client);
    }
    v->fd = fd;
    v->client = client;
    v->cap = cap;
    return true;
}

/* Accepts one more client, if there is one; hangs up if it can't be served. */
static void welcome(server *v)
{
    int one = 1, fd = accept(v->listener, NULL, NULL);
    if (fd < 0) return;
    sc_store_client *c = NULL;
    if (v->n < CLIENTS_MAX && no_block(fd) && room(v))
        c = sc_store_connect(v->s);
    if (!c) {
        close(fd);
        return;
    }
    /* a socket of another kind has no such option */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    v->fd[v->n + 2] = (struct pollfd){fd, POLLIN, 0};
    v->client[v->n + 2] = c;
    v->n++;
}

static void hang_up(server *v, uint32_t i)
{
    uint32_t last = v->n + 1;
    close(v->fd[i].fd);
    sc_store_close(v->s, v->client[i]);
    v->fd[i] = v->fd[last];
    v->client[i] = v->client[last];
    v->n--;
}

/* False: the connection is over. */
static bool receive(server *v, uint32_t i)
{
    ssize_t n = recv(v->fd[i].fd, v->chunk, CHUNK, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    return sc_store_input(v->s, v->client[i], v->chunk, (size_t)n, NULL) ==
           SC_OK;
}

static bool transmit(server *v, uint32_t i)
{
    sc_store_client *c = v->client[i];
    while (sc_store_has_output(c)) {
        size_t len = store_peek(c, v->chunk, CHUNK);
        ssize_t n = send(v->fd[i].fd, v->chunk, len, MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        (void)sc_store_output(c, v->chunk, (size_t)n);
    }
    return true;
}

static void serve_clients(server *v)
{
    for (uint32_t i = v->n + 1; i >= 2; i--) {
        short got = v->fd[i].revents;
        bool ok = !(got & (POLLERR | POLLNVAL));
        if (ok && (got & (POLLIN | POLLHUP))) ok = receive(v, i);
        if (!ok) hang_up(v, i);
    }
    /* also sends answers to clients that asked earlier */
    for (uint32_t i = v->n + 1; i >= 2; i--)
        if (!transmit(v, i)) hang_up(v, i);
    for (uint32_t i = 2; i < v->n + 2; i++)
        v->fd[i].events =
            (short)(POLLIN | (sc_store_has_output(v->client[i]) ? POLLOUT : 0));
}

static sc_status refused(const char *what, sc_err *err)
{
    return sc_error(err, SC_EIO, SC_C_IO, sc_pos_none(), NULL,
                    "rendezvous store: %s: %s", what, sc_errno_text(errno));
}

static sc_status loop(server *v, sc_err *err)
{
    int wait = -1;
    if (!no_block(v->listener)) return refused("listening socket", err);
    if (!room(v)) return sc_error_nomem(err);
    v->fd[0] = (struct pollfd){v->stop, POLLIN, 0};
    v->fd[1] = (struct pollfd){v->listener, POLLIN, 0};
    for (;;) {
        if (poll(v->fd, v->n + 2, wait) < 0) {
            if (errno == EINTR) continue;
            return refused("poll", err);
        }
        if (v->fd[0].revents) return SC_OK;
        if (v->fd[1].revents & (POLLERR | POLLNVAL))
            return refused("listening socket", err);
        serve_clients(v);
        if (v->fd[1].revents & POLLIN) welcome(v);
        wait = store_tick(v->s, now_ms());
        for (uint32_t i = 2; i < v->n + 2; i++)
            if (sc_store_has_output(v->client[i])) v->fd[i].events |= POLLOUT;
    }
}

sc_status sc_store_serve(sc_store *s, int listener, int stop, sc_err *err)
{
    sc_arena a;
    sc_arena_init(&a, 0);
    server v = {.s = s, .a = &a, .listener = listener, .stop = stop};
    v.chunk = SC_NEW_N(&a, uint8_t, CHUNK);
    sc_status got = v.chunk ? loop(&v, err) : sc_error_nomem(err);
    while (v.n > 0) hang_up(&v, v.n + 1);
    sc_arena_free(&a);
    return got;
}
