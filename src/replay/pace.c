/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - added time as a polygon. */
#include "replay/pace.h"

bool replay_pace_new(uint32_t n, sc_arena *a, replay_pace *out)
{
    out->n = 0;
    out->at = SC_RAW_N(a, sc_time, n);
    out->added = SC_RAW_N(a, double, n);
    return out->at && out->added;
}

void replay_pace_add(replay_pace *p, sc_time at, double more)
{
    double before = p->n ? p->added[p->n - 1] : 0;
    p->at[p->n] = at;
    p->added[p->n++] = before + more;
}

static double added_until(const replay_pace *p, sc_time t)
{
    uint32_t i = 0;
    SC_FIRST(i, p->n, mid, p->at[mid] > t)
    if (i == 0) return 0;
    if (i == p->n) return p->added[i - 1];
    double part =
        (double)(t - p->at[i - 1]) / (double)(p->at[i] - p->at[i - 1]);
    return p->added[i - 1] + part * (p->added[i] - p->added[i - 1]);
}

double replay_pace_added(const replay_pace *p, sc_time from, sc_time to)
{
    return p->n ? added_until(p, to) - added_until(p, from) : 0;
}
