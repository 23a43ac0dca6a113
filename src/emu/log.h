/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the file of a real rank: slots of 64 bytes in the machine's byte
 * order, of which the first LOG_HEAD are the header.
 *
 * A slot is an operation, the name of a group (LOG_GROUP, then its members as
 * runs), a piece of text (the first one gives its length), or the end of a step. `used` grows
 * after a slot is written, and an operation's `end` is written last: whenever
 * the program dies, everything that counts is complete.
 */
#ifndef EMU_LOG_H
#define EMU_LOG_H

#include "emu/emu_log.h"

#define LOG_MAGIC     "stepemu"
#define LOG_VERSION   1u
#define LOG_ORDER     0x01020304u
#define LOG_SLOT      ((size_t)64)
#define LOG_HEAD      4u /* slots */
#define LOG_RUNS      4u /* per slot */
#define LOG_TEXT      48u
#define LOG_TEXT_MAX  200u
#define LOG_BYTES     ((size_t)4 << 30)
#define LOG_GROUP_MAX (1u << 20) /* numbers of groups, below */

typedef enum log_kind {
    LOG_NONE,
    LOG_OP,
    LOG_GROUP,
    LOG_MEMBERS,
    LOG_SAID,
    LOG_MORE,
    LOG_STEP, /* an operation of which only `post` counts */
    LOG_N_KINDS
} log_kind;

typedef struct log_head {
    char magic[8];
    uint32_t version, order, rank, world;
    uint64_t used; /* slots behind the header */
    sc_emu_totals totals;
} log_head;

/* Members first, first + stride, ... (n of them). */
typedef struct log_run {
    uint32_t first;
    int32_t stride;
    uint32_t n;
} log_run;

typedef struct log_group {
    uint8_t kind, error; /* LOG_GROUP, LOG_MEMBERS; LOG_SAID, LOG_MORE */
    uint16_t n;          /* runs, characters here */
    uint32_t group;
    uint32_t members; /* of LOG_GROUP; characters of LOG_SAID */
    uint32_t pad;

    union {
        log_run run[LOG_RUNS]; /* LOG_MEMBERS */
        char text[LOG_TEXT];
    } u;
} log_group;

typedef union log_slot {
    uint8_t kind;
    sc_emu_record op;
    log_group g;
} log_slot;

_Static_assert(sizeof(sc_emu_record) == LOG_SLOT, "a slot");
_Static_assert(sizeof(log_group) == LOG_SLOT, "a slot");
_Static_assert(sizeof(log_slot) == LOG_SLOT, "a slot");
_Static_assert(sizeof(log_head) <= LOG_HEAD * LOG_SLOT, "the header");

#endif
