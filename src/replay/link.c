/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - finds the items of threads and the ops of streams in a trace, and
 * which call launched which op. */
#include "replay/model.h"

#include <stdlib.h>
#include <string.h>

typedef struct linker {
    replay_rank *r;
    const sc_profiled *m;
    sc_arena *a, *tmp;
    sc_err *err;
    bool has_steps, has_device;
    uint32_t *enqueued; /* [n_spans] COLL of a worker by its c10d operator, plus
                           1; NULL: no worker has any */
    uint32_t n_host;
    sc_map ids;         /* numbers of correlations */
    uint32_t *launched; /* first device span of a correlation, plus 1 */
    uint32_t *also;     /* [n_spans] the next of the same, plus 1 */
    uint32_t *op_of;    /* [n_spans] device op; REPLAY_NONE */
    uint32_t cap_items;
} linker;

static sc_status no_memory(linker *k)
{
    return sc_error_nomem(k->err);
}

/* ---- the window ---------------------------------------------------------- */

static int by_start(const void *x, const void *y)
{
    const replay_step *a = x, *b = y;
    return (a->from > b->from) - (a->from < b->from);
}

static sc_status list_steps(linker *k)
{
    const sc_profiled *m = k->m;
    uint32_t cap = 0;
    for (uint64_t i = 0; i < m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(m, i);
        if (s->kind != SC_SPAN_STEP) continue;
        replay_step *grown =
            sc_grow(k->tmp, k->r->step, k->r->n_steps, &cap, 16, sizeof *grown);
        if (!grown) return no_memory(k);
        k->r->step = grown;
        grown[k->r->n_steps++] =
            (replay_step){m->name[s->name], (uint32_t)i, REPLAY_NONE, s->start,
                          s->start + s->dur};
    }
    if (k->r->n_steps)
        qsort(k->r->step, k->r->n_steps, sizeof *k->r->step, by_start);
    k->has_steps = k->r->n_steps > 0;
    return SC_OK;
}

/* Of a trace without steps: from the launch of the first device op to the end of
 * the last one, because what is before is start-up; without devices, all that
 * takes time. False if nothing does. */
static bool whole_trace(linker *k, sc_time *from, sc_time *to)
{
    const sc_trace_span *first = NULL;
    bool any = false;
    for (uint64_t i = 0; i < k->m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(k->m, i);
        bool device = s->kind != SC_SPAN_SYNC && sc_trace_span_on_device(s);
        if (s->kind == SC_SPAN_MARK || s->kind == SC_SPAN_SYNC) continue;
        if (!device && k->has_device) continue;
        if (device && !k->has_device) any = false;
        k->has_device |= device;
        if (!any || s->start < *from) first = s;
        if (!any || s->start < *from) *from = s->start;
        if (!any || s->start + s->dur > *to) *to = s->start + s->dur;
        any = true;
    }
    for (uint64_t i = 0; first && k->has_device && i < k->m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(k->m, i);
        if (s->kind == SC_SPAN_CALL && s->id == first->id && first->id &&
            s->start < *from)
            *from = s->start;
    }
    return any;
}

static sc_status choose_window(linker *k, const sc_replay_steps *steps)
{
    replay_rank *r = k->r;
    sc_pos pos = sc_pos_file(k->m->file);
    SC_TRY(list_steps(k));
    if (!k->has_steps) {
        r->step = SC_NEW(k->a, replay_step);
        if (!r->step) return no_memory(k);
        if (!whole_trace(k, &r->from, &r->to))
            return sc_error(k->err, SC_EINPUT, SC_C_MISSING, pos, NULL,
                            "nothing in the trace takes time");
        *r->step =
            (replay_step){"trace", REPLAY_NONE, REPLAY_NONE, r->from, r->to};
        r->n_steps = 1;
        return SC_OK;
    }
    if (steps->first >= r->n_steps)
        return sc_error(
            k->err, SC_EINPUT, SC_C_RANGE, pos, "steps are numbered from 0",
            "the trace has %u steps, not step %u", r->n_steps, steps->first);
    uint32_t last = steps->last < r->n_steps ? steps->last : r->n_steps - 1;
    uint32_t n = last - steps->first + 1;
    replay_step *own = SC_NEW_N(k->a, replay_step, n);
    if (!own) return no_memory(k);
    memcpy(own, r->step + steps->first, n * sizeof *own);
    r->step = own;
    r->n_steps = n;
    r->from = own[0].from;
    r->to = own[0].to;
    for (uint32_t i = 1; i < n; i++)
        if (own[i].to > r->to) r->to = own[i].to;
    return SC_OK;
}

/* ---- spans by lane ------------------------------------------------------- */

typedef struct key {
    sc_time start, dur;
    uint32_t lane, span;
} key;

/* Longer spans first, so that what encloses comes before what is enclosed. */
static int compare_keys(const void *x, const void *y)
{
    const key *a = x, *b = y;
    if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->dur != b->dur) return a->dur > b->dur ? -1 : 1;
    return (a->span > b->span) - (a->span < b->span);
}

/* The spans of host or device in the order of compare_keys. */
static sc_status sort_spans(linker *k, bool device, uint32_t **out, uint32_t *n)
{
    const sc_profiled *m = k->m;
    *n = 0;
    for (uint64_t i = 0; i < m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(m, i);
        *n += s->kind != SC_SPAN_SYNC && sc_trace_span_on_device(s) == device;
    }
    sc_arena_mark mark = sc_arena_save(k->tmp);
    *out = SC_RAW_N(k->a, uint32_t, *n);
    key *keys = SC_RAW_N(k->tmp, key, *n);
    if (!*out || !keys) return no_memory(k);
    uint32_t at = 0;
    for (uint64_t i = 0; i < m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(m, i);
        if (s->kind == SC_SPAN_SYNC || sc_trace_span_on_device(s) != device)
            continue;
        keys[at++] = (key){s->start, s->dur, s->lane, (uint32_t)i};
    }
    if (*n) qsort(keys, *n, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < *n; i++) (*out)[i] = keys[i].span;
    sc_arena_restore(k->tmp, mark);
    return SC_OK;
}

static sc_status number_lanes(linker *k)
{
    const sc_profiled *m = k->m;
    replay_rank *r = k->r;
    k->r->host_head = SC_NEW_N(k->a, uint32_t, (size_t)m->n_lanes + 1);
    r->parent = SC_RAW_N(k->a, uint32_t, m->n_spans);
    r->thread = SC_NEW_N(k->a, uint16_t, m->n_lanes);
    if (!k->r->host_head || !r->parent || !r->thread) return no_memory(k);
    memset(r->parent, 0xff, m->n_spans * sizeof *r->parent);
    for (uint32_t i = 0; i < k->n_host; i++)
        k->r->host_head[sc_trace_span_at(m, k->r->host[i])->lane + 1]++;
    for (uint32_t i = 0; i < m->n_lanes; i++)
        k->r->host_head[i + 1] += k->r->host_head[i];
    return SC_OK;
}

/* ---- device ops ---------------------------------------------------------- */

/* Ops that run in the window, or that were launched in it. */
static sc_status list_ops(linker *k)
{
    replay_rank *r = k->r;
    uint32_t n, *order, last_lane = REPLAY_NONE;
    sc_time last_end = 0;
    SC_TRY(sort_spans(k, true, &order, &n));
    SC_TRY(replay_split_lanes(k->m, order, n, k->tmp, k->err));
    r->op = SC_NEW_N(k->a, replay_device_op, n);
    r->stream = SC_NEW_N(k->a, uint16_t, n);
    k->op_of = SC_RAW_N(k->tmp, uint32_t, k->m->n_spans);
    if (!r->op || !r->stream || !k->op_of) return no_memory(k);
    memset(k->op_of, 0xff, k->m->n_spans * sizeof *k->op_of);
    for (uint32_t i = 0; i < n; i++) {
        const sc_trace_span *s = sc_trace_span_at(k->m, order[i]);
        if (s->start + s->dur <= r->from) continue;
        bool same =
            last_lane == s->lane && last_end <= s->start + REPLAY_OVERLAP;
        if (!same) r->stream[r->n_streams++] = s->lane;
        last_lane = s->lane;
        last_end = s->start + s->dur;
        k->op_of[order[i]] = r->n_ops;
        r->op[r->n_ops] =
            (replay_device_op){.start = s->start - r->from,
                               .dur = s->dur,
                               .stream = r->n_streams - 1,
                               .item = REPLAY_NONE,
                               .prev = same ? r->n_ops - 1 : REPLAY_NONE,
                               .frees = REPLAY_NONE,
                               .drains = REPLAY_NONE,
                               .span = order[i],
                               .coll = REPLAY_NONE};
        r->n_ops++;
    }
    return SC_OK;
}

/* Lists of device spans by correlation. */
static sc_status index_launched(linker *k)
{
    const sc_profiled *m = k->m;
    uint32_t n = 0;
    k->launched = SC_NEW_N(k->tmp, uint32_t, m->n_spans);
    k->also = SC_NEW_N(k->tmp, uint32_t, m->n_spans);
    if (!k->launched || !k->also) return no_memory(k);
    for (uint64_t i = m->n_spans; i-- > 0;) {
        const sc_trace_span *s = sc_trace_span_at(m, i);
        if (!sc_trace_span_on_device(s) || !s->id) continue;
        uint32_t list = sc_map_get(&k->ids, s->id);
        if (list == SC_MAP_END) {
            list = n++;
            if (!sc_map_set(&k->ids, k->tmp, s->id, list)) return no_memory(k);
        }
        k->also[i] = k->launched[list];
        k->launched[list] = (uint32_t)i + 1;
    }
    return SC_OK;
}

/* ---- items of threads ---------------------------------------------------- */

static bool waits(const sc_trace_span *s)
{
    return s->detail == SC_CALL_STREAM_SYNC ||
           s->detail == SC_CALL_DEVICE_SYNC || s->detail == SC_CALL_EVENT_SYNC;
}

static sc_status add_item(linker *k, const replay_item *item)
{
    replay_rank *r = k->r;
    replay_item *grown = sc_grow_raw(k->a, r->item, r->n_items, &k->cap_items,
                                     256, sizeof *grown);
    if (!grown) return no_memory(k);
    r->item = grown;
    r->item[r->n_items++] = *item;
    return SC_OK;
}

/* The operators around the span that is looked at. */
typedef struct around {
    uint32_t stack[64];
    uint32_t n;
} around;

static void enclose(const linker *k, around *x, sc_time now)
{
    while (x->n) {
        const sc_trace_span *s = sc_trace_span_at(k->m, x->stack[x->n - 1]);
        if (s->start + s->dur > now) break;
        x->n--;
    }
}

static bool is_comm_op(const linker *k, const sc_trace_span *s)
{
    const char *name = k->m->name[s->name];
    return strncmp(name, "nccl:", 5) == 0 || strncmp(name, "gloo:", 5) == 0 ||
           strcmp(name, "record_param_comms") == 0;
}

static void name_item(const linker *k, const around *x, replay_item *item)
{
    for (uint32_t i = x->n; i-- > 0;) {
        const sc_trace_span *s = sc_trace_span_at(k->m, x->stack[i]);
        bool comm = is_comm_op(k, s);
        if (comm && item->comm == REPLAY_NONE) item->comm = x->stack[i];
        if (comm && strcmp(k->m->name[s->name], "record_param_comms") == 0)
            item->comm = x->stack[i]; /* has the sizes and the group */
        if (!comm && item->op == REPLAY_NONE && s->kind == SC_SPAN_OP)
            item->op = x->stack[i];
    }
}

static sc_status add_call(linker *k, uint32_t span, uint32_t thread,
                          const around *x)
{
    const sc_trace_span *s = sc_trace_span_at(k->m, span);
    uint32_t list = s->id ? sc_map_get(&k->ids, s->id) : SC_MAP_END;
    uint32_t device = list != SC_MAP_END ? k->launched[list] : 0;
    sc_time at = s->start - k->r->from;
    replay_item item = {.enter = at,
                        .leave = at,
                        .thread = thread,
                        .before = REPLAY_NONE,
                        .device = REPLAY_NONE,
                        .span = span,
                        .op = REPLAY_NONE,
                        .comm = REPLAY_NONE,
                        .kind = device ? REPLAY_LAUNCH : REPLAY_WAIT};
    if (!device && !waits(s)) return SC_OK;
    name_item(k, x, &item);
    for (uint32_t d = device; d; d = k->also[d - 1]) {
        uint32_t op = k->op_of[d - 1];
        if (op == REPLAY_NONE || k->r->op[op].item != REPLAY_NONE) continue;
        k->r->op[op].item = k->r->n_items;
        if (item.device == REPLAY_NONE) item.device = op;
    }
    return add_item(k, &item);
}

/* An operator goes on behind a gap of its thread: it may have waited for a
 * worker (waits.c). */
#define LEAST_GAP 50000000

static sc_status add_resume(linker *k, uint32_t span, uint32_t thread,
                            sc_time since, const around *x)
{
    const sc_trace_span *s = sc_trace_span_at(k->m, span);
    replay_item item = {.enter = since - k->r->from,
                        .leave = s->start - k->r->from,
                        .tail = s->start - since,
                        .thread = thread,
                        .before = REPLAY_NONE,
                        .device = REPLAY_NONE,
                        .span = span,
                        .op = REPLAY_NONE,
                        .comm = REPLAY_NONE,
                        .kind = REPLAY_RESUME};
    if (s->start - since < LEAST_GAP || since < k->r->from ||
        s->start >= k->r->to)
        return SC_OK;
    name_item(k, x, &item);
    return add_item(k, &item);
}

/* A collective of a worker is launched by the operator that enqueues it. */
static sc_status add_enqueue(linker *k, uint32_t span, uint32_t thread)
{
    const sc_trace_span *s = sc_trace_span_at(k->m, span);
    if (!k->enqueued[span] || s->start < k->r->from || s->start >= k->r->to)
        return SC_OK;
    uint32_t op = k->op_of[k->enqueued[span] - 1];
    sc_time at = s->start - k->r->from;
    if (op == REPLAY_NONE) return SC_OK;
    k->r->op[op].item = k->r->n_items;
    return add_item(k, &(replay_item){.enter = at,
                                      .leave = at,
                                      .thread = thread,
                                      .before = REPLAY_NONE,
                                      .device = op,
                                      .span = span,
                                      .op = k->r->parent[span],
                                      .comm = REPLAY_NONE,
                                      .kind = REPLAY_LAUNCH});
}

static sc_status add_mark(linker *k, uint32_t step, uint32_t thread, bool end)
{
    replay_step *s = &k->r->step[step];
    sc_time at = (end ? s->to : s->from) - k->r->from;
    *(end ? &s->end : &s->begin) = k->r->n_items;
    return add_item(
        k, &(replay_item){.enter = at,
                          .leave = at,
                          .thread = thread,
                          .before = REPLAY_NONE,
                          .device = REPLAY_NONE,
                          .span = REPLAY_NONE,
                          .op = REPLAY_NONE,
                          .comm = REPLAY_NONE,
                          .kind = end ? REPLAY_STEP_END : REPLAY_STEP_BEGIN});
}

/* A boundary of a step of this thread that is due. */
typedef struct bounds {
    const uint32_t *step; /* [n] indices */
    uint32_t n, next;     /* of 2 n boundaries in order */
} bounds;

static bool boundary(const linker *k, const bounds *b, sc_time *at)
{
    if (b->next >= 2 * b->n) return false;
    const replay_step *s = &k->r->step[b->step[b->next / 2]];
    *at = b->next % 2 ? s->to : s->from;
    return true;
}

static sc_status pass_bounds(linker *k, bounds *b, sc_time until,
                             uint32_t thread)
{
    sc_time at;
    while (boundary(k, b, &at) && at <= until) {
        SC_TRY(add_mark(k, b->step[b->next / 2], thread, b->next % 2));
        b->next++;
    }
    return SC_OK;
}

static sc_status thread_items(linker *k, uint32_t lane, bounds *b)
{
    around x = {.n = 0};
    sc_time idle_since = 0; /* behind the last operator */
    bool idle = false;
    replay_rank *r = k->r;
    uint32_t thread = r->n_threads, before = r->n_items;
    for (uint32_t i = k->r->host_head[lane]; i < k->r->host_head[lane + 1];
         i++) {
        const sc_trace_span *s = sc_trace_span_at(k->m, k->r->host[i]);
        enclose(k, &x, s->start);
        if (x.n) r->parent[r->host[i]] = x.stack[x.n - 1];
        SC_TRY(pass_bounds(k, b, s->start, thread));
        bool in = s->start >= r->from && s->start < r->to;
        bool op = k->enqueued && s->kind == SC_SPAN_OP;
        if (op && idle && s->start > idle_since)
            SC_TRY(add_resume(k, r->host[i], thread, idle_since, &x));
        if (op) SC_TRY(add_enqueue(k, r->host[i], thread));
        if (op && (!idle || s->start + s->dur > idle_since))
            idle_since = s->start + s->dur;
        idle |= op;
        if (s->kind == SC_SPAN_CALL && in)
            SC_TRY(add_call(k, k->r->host[i], thread, &x));
        if (s->kind != SC_SPAN_CALL && x.n < SC_COUNT(x.stack))
            x.stack[x.n++] = k->r->host[i];
    }
    SC_TRY(pass_bounds(k, b, SC_TIME_MAX, thread));
    if (r->n_items == before) return SC_OK;
    r->thread[r->n_threads++] = (uint16_t)lane;
    return SC_OK;
}

/* The thread on which the boundaries of a trace without steps and devices are:
 * that of its last operator. */
static uint32_t main_lane(const linker *k)
{
    uint32_t lane = REPLAY_NONE;
    sc_time last = 0;
    for (uint32_t i = 0; i < k->n_host; i++) {
        const sc_trace_span *s = sc_trace_span_at(k->m, k->r->host[i]);
        if (lane != REPLAY_NONE && s->start + s->dur <= last) continue;
        if (s->kind == SC_SPAN_MARK) continue;
        last = s->start + s->dur;
        lane = s->lane;
    }
    return lane;
}

static uint32_t lane_of_step(const linker *k, const replay_step *s,
                             uint32_t main)
{
    if (k->has_steps) return sc_trace_span_at(k->m, s->begin)->lane;
    return k->has_device ? REPLAY_NONE : main;
}

static sc_status list_items(linker *k)
{
    replay_rank *r = k->r;
    uint32_t main = main_lane(k);
    uint32_t *mine = SC_NEW_N(k->tmp, uint32_t, r->n_steps);
    uint32_t *lane = SC_NEW_N(k->tmp, uint32_t, r->n_steps);
    if (!mine || !lane) return no_memory(k);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        lane[i] = lane_of_step(k, &r->step[i], main);
        r->step[i].begin = REPLAY_NONE;
    }
    for (uint32_t l = 0; l < k->m->n_lanes; l++) {
        bounds b = {.step = mine};
        if (k->m->lanes[l].device) continue;
        for (uint32_t i = 0; i < r->n_steps; i++)
            if (lane[i] == l) mine[b.n++] = i;
        SC_TRY(thread_items(k, l, &b));
    }
    return SC_OK;
}

/* ---- workers ------------------------------------------------------------- */

static bool enqueues(const linker *k, const sc_trace_span *s)
{
    return s->kind == SC_SPAN_OP &&
           strncmp(k->m->name[s->name], "c10d::", 6) == 0;
}

/* Workers take collectives from one queue, so the k-th that is enqueued is the
 * k-th that begins. */
static sc_status pair_enqueues(linker *k)
{
    uint32_t n = 0, n_runs = 0, r = 0;
    key *calls = SC_RAW_N(k->tmp, key, k->m->n_spans);
    key *runs = SC_RAW_N(k->tmp, key, k->m->n_spans);
    if (!calls || !runs) return no_memory(k);
    for (uint64_t i = 0; i < k->m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(k->m, i);
        key x = {s->start, s->dur, 0, (uint32_t)i};
        if (s->kind == SC_SPAN_COLL && !s->id) runs[n_runs++] = x;
        if (enqueues(k, s)) calls[n++] = x;
    }
    if (!n || !n_runs) return SC_OK;
    qsort(calls, n, sizeof *calls, compare_keys);
    qsort(runs, n_runs, sizeof *runs, compare_keys);
    k->enqueued = SC_NEW_N(k->tmp, uint32_t, k->m->n_spans);
    if (!k->enqueued) return no_memory(k);
    for (uint32_t i = 0; i < n; i++) {
        while (r < n_runs && runs[r].start < calls[i].start) r++;
        if (r < n_runs) k->enqueued[calls[i].span] = runs[r++].span + 1;
    }
    return SC_OK;
}

/* ---- the whole ----------------------------------------------------------- */

/* Where threads and streams begin in their arrays. */
static sc_status find_heads(linker *k)
{
    replay_rank *r = k->r;
    r->thread_head = SC_NEW_N(k->a, uint32_t, (size_t)r->n_threads + 1);
    r->stream_head = SC_NEW_N(k->a, uint32_t, (size_t)r->n_streams + 1);
    if (!r->thread_head || !r->stream_head) return no_memory(k);
    for (uint32_t i = 0; i < r->n_items; i++)
        r->thread_head[r->item[i].thread + 1] = i + 1;
    for (uint32_t i = 0; i < r->n_ops; i++)
        r->stream_head[r->op[i].stream + 1] = i + 1;
    return SC_OK;
}

static sc_status link_all(linker *k, const sc_replay_steps *steps)
{
    replay_rank *r = k->r;
    if (k->m->n_spans >= REPLAY_NONE - 1)
        return sc_error(k->err, SC_EINPUT, SC_C_TOO_BIG,
                        sc_pos_file(k->m->file), NULL,
                        "more than 4 billion events");
    SC_TRY(choose_window(k, steps));
    SC_TRY(sort_spans(k, false, &k->r->host, &k->n_host));
    SC_TRY(number_lanes(k));
    SC_TRY(list_ops(k));
    SC_TRY(index_launched(k));
    SC_TRY(pair_enqueues(k));
    SC_TRY(list_items(k));
    SC_TRY(find_heads(k));
    r->gpu_only = true;
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (r->op[i].item != REPLAY_NONE) r->gpu_only = false;
    if (r->n_items == 0 && r->n_ops == 0)
        return sc_error(k->err, SC_EINPUT, SC_C_MISSING,
                        sc_pos_file(k->m->file), NULL,
                        "no call and no kernel is in the steps of the trace");
    return SC_OK;
}

sc_status replay_link(const sc_profiled *m, const sc_replay_steps *steps,
                      sc_arena *a, replay_rank *out, sc_err *err)
{
    sc_arena tmp;
    sc_arena_init(&tmp, a->limit);
    linker k = {.r = out, .m = m, .a = a, .tmp = &tmp, .err = err};
    *out = (replay_rank){.m = m};
    sc_status s = link_all(&k, steps);
    sc_arena_free(&tmp);
    SC_TRY(s);
    SC_TRY(replay_find_waits(out, a, err));
    SC_TRY(replay_find_latencies(out, a, err));
    SC_TRY(replay_find_flows(out, a, err));
    return replay_find_handovers(out, a, err);
}
