/* SPDX-License-Identifier: Apache-2.0 */
/* shared_rank.h - a real rank's view of the memory that it shares. */
#ifndef EMU_SHARED_RANK_H
#define EMU_SHARED_RANK_H

#include "emu/shared.h"

typedef struct port_peer {
    uint32_t rank;
    int fd;              /* the launcher's descriptor of its data */
    unsigned char *data; /* [SHARED_ROOM] mapped at first use */
} port_peer;

struct sc_emu_port {
    uint32_t rank, number; /* index among the real ones */
    sc_emu_shared *alone;  /* the world is in this process; NULL: it is not */
    long pid;              /* the launcher's */
    shared_head *head;
    shared_port *port;
    uint32_t told;            /* answers of operations that were read */
    uint32_t n_used;          /* cells that were ever used */
    uint32_t spare;           /* list of free cells; SC_EMU_NO_CELL: none */
    uint32_t lent, last_lent; /* cells that the server frees, in order */
    port_peer *peer; /* [n_peers] the real ranks, this one among them */
    uint32_t n_peers, cap_peers;
};

/* port_alone.c: answers what was asked; delivers all ends up to `now`. */
void port_alone_serve(sc_emu_port *p);
void port_alone_look(sc_emu_port *p, sc_time now);

/* Maps a descriptor of the launcher; NULL, errno. */
void *port_map(long pid, int fd, size_t size);

#endif
