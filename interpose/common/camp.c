/* SPDX-License-Identifier: Apache-2.0 */
/* camp.c - the process that sends scouts, and remembers what they say. */
#include "common/camp.h"

#include "common/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES  256 /* scouts at a time, of which most wait for others */
#define PATIENT (60 * SC_PS_PER_S) /* with a scout that says nothing */

typedef enum said_state {
    SAID_WANTED,
    SAID_SENT, /* a scout is on its way */
    SAID_TOLD,
    SAID_NEVER /* its scout ended before */
} said_state;

/* What a rank says at a split. */
typedef struct said {
    uint64_t split;
    uint32_t rank;
    said_state state;
    sc_emu_choice choice;
    struct said *next; /* wanted */
} said;

typedef struct kept {
    uint64_t split;
    uint32_t n;
    sc_emu_choice *all; /* [n] */
} kept;

/* The program, or a scout. */
typedef struct client {
    int fd;
    pid_t pid;  /* 0: the program */
    said *goal; /* for which it was sent */
    sc_time since;
    said **asked; /* [n_asked] not answered yet; NULL: it runs */
    uint32_t n_asked, n_ready;
} client;

typedef struct camp {
    sc_arena memory;
    sc_map said, kept;
    sc_map hopeless; /* splits to which scouts do not come */
    said *first;     /* wanted, the latest first */
    client client[1 + PLACES];
    uint32_t n_clients;
    uint32_t most; /* scouts that run at a time */
} camp;

/* ---- sockets -------------------------------------------------------------- */

bool camp_send(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

bool camp_recv(int fd, void *data, size_t len)
{
    char *p = data;
    while (len > 0) {
        ssize_t n = recv(fd, p, len, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

int camp_high(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 900);
    if (high < 0) return fd;
    close(fd);
    return high;
}

/* ---- memory --------------------------------------------------------------- */

static void *room(camp *c, size_t n, size_t size)
{
    void *p = sc_alloc(&c->memory, n ? n : 1, size);
    if (!p) _exit(1); /* the program goes on without scouts */
    return p;
}

static said *find_said(camp *c, uint64_t split, uint32_t rank)
{
    uint64_t hash = sc_mix(split ^ sc_mix(rank));
    uint32_t at = 0;
    said *s;
    do s = sc_map_next_ptr(&c->said, hash, &at);
    while (s && (s->split != split || s->rank != rank));
    if (s) return s;
    s = room(c, 1, sizeof *s);
    *s = (said){.split = split, .rank = rank, .state = SAID_WANTED};
    if (!sc_map_add_ptr(&c->said, &c->memory, hash, s)) _exit(1);
    if (sc_map_get(&c->hopeless, split) != SC_MAP_END) s->state = SAID_NEVER;
    /* What a scout needs on its way comes before what others want, or scouts
     * that wait would fill all places. */
    s->next = c->first;
    c->first = s;
    return s;
}

static kept *find_kept(const camp *c, uint64_t split)
{
    uint32_t at = 0;
    kept *k;
    do k = sc_map_next_ptr(&c->kept, sc_mix(split), &at);
    while (k && k->split != split);
    return k;
}

/* ---- requests -------------------------------------------------------------- */

static bool hear_ask(camp *c, client *x, const camp_head *h)
{
    uint32_t *rank = room(c, h->n, sizeof *rank);
    if (!camp_recv(x->fd, rank, h->n * sizeof *rank)) return false;
    x->asked = room(c, h->n, sizeof(said *));
    for (uint32_t i = 0; i < h->n; i++)
        x->asked[i] = find_said(c, h->split, rank[i]);
    x->n_asked = h->n;
    x->n_ready = 0;
    return true;
}

static bool hear_keep(camp *c, const client *x, const camp_head *h)
{
    kept *k = room(c, 1, sizeof *k);
    *k = (kept){h->split, h->n, room(c, h->n, sizeof *k->all)};
    return camp_recv(x->fd, k->all, h->n * sizeof *k->all) &&
           (find_kept(c, h->split) ||
            sc_map_add_ptr(&c->kept, &c->memory, sc_mix(h->split), k));
}

static bool answer_kept(const camp *c, const client *x, const camp_head *h)
{
    const kept *k = find_kept(c, h->split);
    if (k && k->n != h->n) k = NULL;
    camp_head out = {.kind = CAMP_KEPT, .n = k ? k->n : 0, .split = h->split};
    return camp_send(x->fd, &out, sizeof out) &&
           (!k || camp_send(x->fd, k->all, k->n * sizeof *k->all));
}

/* False: the client has ended. */
static bool hear(camp *c, client *x)
{
    camp_head h;
    said *s;
    if (!camp_recv(x->fd, &h, sizeof h)) return false;
    switch (h.kind) {
    case CAMP_ASK: return hear_ask(c, x, &h);
    case CAMP_KEEP: return hear_keep(c, x, &h);
    case CAMP_KEPT: return answer_kept(c, x, &h);
    case CAMP_TELL:
        s = find_said(c, h.split, h.rank);
        s->state = SAID_TOLD;
        s->choice = h.choice;
        s->choice.known = true;
        return true;
    default: return false;
    }
}

static void end_client(camp *c, client *x)
{
    if (x->goal && x->goal->state == SAID_SENT) x->goal->state = SAID_NEVER;
    if (x->pid) {
        kill(x->pid, SIGKILL);
        while (waitpid(x->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(x->fd);
    *x = c->client[--c->n_clients];
}

/* A scout has come nowhere for a minute: others that are sent to its split
 * would not either. */
static void give_up(camp *c, client *x)
{
    uint64_t split = x->goal->split;
    if (sc_map_get(&c->hopeless, split) == SC_MAP_END &&
        !sc_map_set(&c->hopeless, &c->memory, split, 0))
        _exit(1);
    for (said *s = c->first; s; s = s->next)
        if (s->split == split && s->state == SAID_WANTED) s->state = SAID_NEVER;
    end_client(c, x);
}

/* Answers the client if all is known that it asked for. */
static bool answer(camp *c, client *x)
{
    while (x->n_ready < x->n_asked && x->asked[x->n_ready]->state >= SAID_TOLD)
        x->n_ready++;
    if (!x->asked || x->n_ready < x->n_asked) return true;
    sc_emu_choice *out = room(c, x->n_asked, sizeof *out);
    for (uint32_t i = 0; i < x->n_asked; i++) out[i] = x->asked[i]->choice;
    x->asked = NULL;
    x->since = live_clock_mono();
    return camp_send(x->fd, out, x->n_asked * sizeof *out);
}

/* ---- scouts --------------------------------------------------------------- */

static uint32_t n_running(const camp *c)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < c->n_clients; i++) n += !c->client[i].asked;
    return n;
}

/* True in the scout. */
static bool send_scout(camp *c, said *s, camp_scout *out)
{
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0) {
        s->state = SAID_NEVER;
        return false;
    }
    fd[0] = camp_high(fd[0]);
    fd[1] = camp_high(fd[1]);
    pid_t pid = fork();
    if (pid == 0) {
        for (uint32_t i = 0; i < c->n_clients; i++) close(c->client[i].fd);
        close(fd[0]);
        *out = (camp_scout){fd[1], s->rank, s->split};
        return true;
    }
    close(fd[1]);
    s->state = pid > 0 ? SAID_SENT : SAID_NEVER;
    if (pid > 0)
        c->client[c->n_clients++] = (client){
            .fd = fd[0], .pid = pid, .goal = s, .since = live_clock_mono()};
    else
        close(fd[0]);
    return false;
}

static bool send_scouts(camp *c, camp_scout *out)
{
    while (c->first && c->n_clients <= PLACES && n_running(c) < c->most) {
        said *s = c->first;
        c->first = s->next;
        if (s->state == SAID_WANTED && send_scout(c, s, out)) return true;
    }
    return false;
}

/* Waits for a client, and hears what has come. */
static void wait_for_clients(camp *c)
{
    struct pollfd p[1 + PLACES];
    uint32_t n = c->n_clients;
    sc_time late = live_clock_mono() - PATIENT;
    for (uint32_t i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = c->client[i].fd, .events = POLLIN};
    if (poll(p, n, n > 1 ? 1000 : -1) < 0 && errno != EINTR) _exit(1);
    for (uint32_t i = n; i-- > 0;) { /* those that end are replaced by later
                                        ones */
        client *x = &c->client[i];
        bool ok = !p[i].revents || hear(c, x);
        if (!ok && !x->pid) _exit(0); /* scouts end with their sockets */
        if (!ok)
            end_client(c, x);
        else if (x->pid && !x->asked && x->since < late)
            give_up(c, x);
    }
}

camp_scout camp_serve(int fd)
{
    static camp c;
    camp_scout out = {.fd = -1};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    sc_arena_init(&c.memory, 0);
    c.client[0] = (client){.fd = fd};
    c.n_clients = 1;
    c.most = cores > 1 ? (uint32_t)cores : 1;
    for (;;) {
        if (send_scouts(&c, &out)) return out;
        wait_for_clients(&c);
        for (uint32_t i = c.n_clients; i-- > 0;)
            if (!answer(&c, &c.client[i]) && i > 0)
                end_client(&c, &c.client[i]);
    }
}
