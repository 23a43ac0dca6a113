/* SPDX-License-Identifier: Apache-2.0 */
/* camp.h - between the program, its camp and its scouts: messages of a stream
 * socket. */
#ifndef LIVE_CAMP_H
#define LIVE_CAMP_H

#include "common/scouts.h"

typedef enum camp_kind {
    CAMP_ASK,  /* n ranks (uint32_t) follow; answered by n choices */
    CAMP_TELL, /* the choice of `rank` */
    CAMP_KEEP, /* n choices follow */
    CAMP_KEPT  /* of n members; answered by a camp_head, and choices if n > 0 */
} camp_kind;

typedef struct camp_head {
    uint32_t kind, n;
    uint64_t split;
    uint32_t rank;
    sc_emu_choice choice;
} camp_head;

/* All bytes; false: the other end is closed. */
bool camp_send(int fd, const void *data, size_t len);
bool camp_recv(int fd, void *data, size_t len);

/* A descriptor out of the way of the program's, which may close those that it
 * believes are its own. */
int camp_high(int fd);

/* What a camp is asked to do: to become a scout of `rank`, which has been sent
 * for `split`, with the camp's socket `fd`. */
typedef struct camp_scout {
    int fd;
    uint32_t rank;
    uint64_t split;
} camp_scout;

/* Serves the program at the other end of `fd` until it ends, and then ends the
 * process; returns only in a scout. */
camp_scout camp_serve(int fd);

#endif
