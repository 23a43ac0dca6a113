/* SPDX-License-Identifier: Apache-2.0 */
/* shared_wait.c - sleeping on a word that processes share. */
#include "emu/shared.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void shared_sleep(_Atomic uint32_t *word, uint32_t seen, sc_time at_most)
{
    struct timespec t = {.tv_sec = (time_t)(at_most / SC_PS_PER_S),
                         .tv_nsec = (long)(at_most % SC_PS_PER_S / 1000)};
    syscall(SYS_futex, word, FUTEX_WAIT, seen,
            at_most == SC_TIME_MAX ? NULL : &t, NULL, 0);
}

void shared_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

sc_time shared_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (sc_time)t.tv_sec * SC_PS_PER_S + (sc_time)t.tv_nsec * 1000;
}
