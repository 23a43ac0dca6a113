/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.c - lanes of a device whose spans overlap.
 *
 * A stream runs one op after the other. A unit that runs several jobs at once,
 * such as the DMA engines of MTIA, is several queues side by side.
 */
#include "replay/model.h"

#include <string.h>

#define REPLAY_OVERLAP 1500000
#define MOST_QUEUES    64

static sc_time end_of(const sc_profiled *m, uint32_t span)
{
    const sc_trace_span *s = sc_trace_span_at(m, span);
    return s->start + s->dur;
}

/* Sorts the spans [n] of a lane by queue: each takes the first that is free. */
static sc_status split_lane(const sc_profiled *m, uint32_t *span, uint32_t n,
                            sc_arena *tmp, sc_err *err)
{
    sc_time end[MOST_QUEUES];
    uint32_t count[MOST_QUEUES] = {0}, queues = 0, first = 0;
    sc_arena_mark mark = sc_arena_save(tmp);
    uint8_t *queue = SC_RAW_N(tmp, uint8_t, n);
    uint32_t *sorted = SC_RAW_N(tmp, uint32_t, n);
    if (!queue || !sorted) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        sc_time start = sc_trace_span_at(m, span[i])->start;
        uint32_t q = 0;
        while (q < queues && end[q] > start + REPLAY_OVERLAP) q++;
        if (q == MOST_QUEUES) q--;
        if (q == queues) queues++;
        end[q] = end_of(m, span[i]);
        queue[i] = (uint8_t)q;
        count[q]++;
    }
    for (uint32_t q = 0; q < queues; q++) {
        uint32_t next = first + count[q];
        count[q] = first;
        first = next;
    }
    for (uint32_t i = 0; i < n; i++) sorted[count[queue[i]]++] = span[i];
    memcpy(span, sorted, n * sizeof *span);
    sc_arena_restore(tmp, mark);
    return SC_OK;
}

sc_status replay_split_lanes(const sc_profiled *m, uint32_t *order, uint32_t n,
                             sc_arena *tmp, sc_err *err)
{
    for (uint32_t i = 0, end; i < n; i = end) {
        uint32_t lane = sc_trace_span_at(m, order[i])->lane;
        bool overlap = false;
        for (end = i + 1; end < n; end++) {
            const sc_trace_span *s = sc_trace_span_at(m, order[end]);
            if (s->lane != lane) break;
            overlap |= end_of(m, order[end - 1]) > s->start + REPLAY_OVERLAP;
        }
        if (overlap) SC_TRY(split_lane(m, order + i, end - i, tmp, err));
    }
    return SC_OK;
}
