/* SPDX-License-Identifier: Apache-2.0 */
#include "mock/mock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

CUstream mock_streams;
static struct CUstream_st default_stream;

struct CUgraph_st {
    item *first, *last; /* in the order of capture */
    uint32_t n_lanes;
    CUstream origin;
};

struct CUgraphExec_st {
    CUgraph graph;
    CUstream *lane; /* one per stream that was captured */
    CUevent *event; /* ends of lanes; the last one is the start */
};

CUstream stream_new(void)
{
    CUstream s = calloc(1, sizeof *s);
    if (!s) abort();
    s->next = mock_streams;
    mock_streams = s;
    return s;
}

/* Each thread has a default stream of its own, too. */
static CUstream stream_of_thread(void)
{
    static _Thread_local CUstream own;
    if (!own) own = stream_new();
    return own;
}

CUstream stream_of(CUstream s)
{
    if ((uintptr_t)s > 2) return s;
    if ((uintptr_t)s == 2) return stream_of_thread();
    if (!default_stream.next && mock_streams != &default_stream) {
        default_stream.next = mock_streams;
        mock_streams = &default_stream;
    }
    return &default_stream;
}

static void append(item **first, item **last, const item *i)
{
    item *copy = malloc(sizeof *copy);
    if (!copy) abort();
    *copy = *i;
    copy->next = NULL;
    if (i->blob && (copy->blob = malloc(KERNEL_BLOB)) != NULL)
        memcpy(copy->blob, i->blob, i->f->size[i->f->n_args - 1]);
    if (*last)
        (*last)->next = copy;
    else
        *first = copy;
    *last = copy;
}

void stream_push(CUstream s, const item *i)
{
    if (s->capture) {
        item lane = *i;
        lane.lane = s->lane;
        append(&s->capture->first, &s->capture->last, &lane);
        return;
    }
    append(&s->first, &s->last, i);
}

/* ---- what a stream does ------------------------------------------------------------------ */

static bool wait_value(const item *i)
{
    _Atomic uint32_t *at = (_Atomic uint32_t *)(uintptr_t)i->to;
    return (int32_t)(atomic_load(at) - i->value) >= 0;
}

static bool run(item *i)
{
    switch (i->kind) {
    case ITEM_WORK:
        if (!i->begun) i->end = mock_time() + i->ns;
        i->begun = true;
        return mock_time() >= i->end;
    case ITEM_RECORD:
        i->event->done = i->count;
        i->event->time = mock_time();
        return true;
    case ITEM_WAIT: return i->event->done >= i->count;
    case ITEM_KERNEL: return kernel_run(i);
    case ITEM_COPY:
        memmove((void *)(uintptr_t)i->to, (void *)(uintptr_t)i->from, i->bytes);
        return true;
    case ITEM_SET:
        memset((void *)(uintptr_t)i->to, (int)i->value, i->bytes);
        return true;
    case ITEM_WRITE_VALUE:
        atomic_store((_Atomic uint32_t *)(uintptr_t)i->to, i->value);
        return true;
    case ITEM_WAIT_VALUE: return wait_value(i);
    }
    return true;
}

void mock_move(void)
{
    bool again = true;
    while (again) {
        again = false;
        for (CUstream s = mock_streams; s; s = s->next)
            while (s->first && run(s->first)) {
                item *i = s->first;
                s->first = i->next;
                if (!s->first) s->last = NULL;
                free(i->blob);
                free(i);
                again = true;
            }
    }
}

/* ---- graphs ------------------------------------------------------------------------------- */

CUresult cuStreamBeginCapture_v2(CUstream s, int mode)
{
    (void)mode;
    pthread_mutex_lock(&mock_lock);
    CUgraph g = calloc(1, sizeof *g);
    if (!g) abort();
    g->origin = s;
    g->n_lanes = 1;
    s->capture = g;
    s->lane = 0;
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *out)
{
    pthread_mutex_lock(&mock_lock);
    CUgraph g = s->capture;
    for (CUstream x = mock_streams; x; x = x->next)
        if (x->capture == g) x->capture = NULL;
    *out = g;
    pthread_mutex_unlock(&mock_lock);
    return g ? 0 : 1;
}

CUresult cuStreamIsCapturing(CUstream s, int *out)
{
    *out = stream_of(s)->capture ? 1 : 0;
    return 0;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int mine;
    int old = mine;
    mine = *mode;
    *mode = old;
    return 0;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g,
                                     unsigned long long flags)
{
    (void)flags;
    pthread_mutex_lock(&mock_lock);
    CUgraphExec e = calloc(1, sizeof *e);
    if (!e) abort();
    e->graph = g;
    e->lane = calloc(g->n_lanes, sizeof(CUstream));
    e->event = calloc(g->n_lanes + 1, sizeof(CUevent));
    if (!e->lane || !e->event) abort();
    for (uint32_t i = 0; i <= g->n_lanes; i++) {
        if (i < g->n_lanes) e->lane[i] = stream_new();
        e->event[i] = calloc(1, sizeof *e->event[i]);
        if (!e->event[i]) abort();
    }
    pthread_mutex_unlock(&mock_lock);
    *out = e;
    return 0;
}

static void push_event(CUstream s, CUevent e, item_kind kind)
{
    if (kind == ITEM_RECORD) e->recorded++;
    stream_push(s, &(item){.kind = kind, .event = e, .count = e->recorded});
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream s)
{
    pthread_mutex_lock(&mock_lock);
    uint32_t n = e->graph->n_lanes;
    s = stream_of(s);
    push_event(s, e->event[n], ITEM_RECORD);
    for (uint32_t i = 0; i < n; i++)
        push_event(e->lane[i], e->event[n], ITEM_WAIT);
    for (const item *i = e->graph->first; i; i = i->next) {
        CUstream to = e->lane[i->lane];
        if (i->kind == ITEM_RECORD || i->kind == ITEM_WAIT)
            push_event(to, i->event, i->kind);
        else
            stream_push(to, i);
    }
    for (uint32_t i = 0; i < n; i++) {
        push_event(e->lane[i], e->event[i], ITEM_RECORD);
        push_event(s, e->event[i], ITEM_WAIT);
    }
    mock_move();
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

/* ---- events ------------------------------------------------------------------------------- */

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    return *out ? 0 : 2;
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
    pthread_mutex_lock(&mock_lock);
    s = stream_of(s);
    e->capture = s->capture;
    push_event(s, e, ITEM_RECORD);
    mock_move();
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&mock_lock);
    s = stream_of(s);
    if (e->capture && !s->capture) { /* it joins the capture */
        s->capture = e->capture;
        s->lane = e->capture->n_lanes++;
    }
    push_event(s, e, ITEM_WAIT);
    mock_move();
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
    *ms = (float)((double)(b->time - a->time) / 1e6);
    return 0;
}

int64_t mock_event_time(CUevent e)
{
    return e->time;
}

/* ---- waiting ------------------------------------------------------------------------------- */

static bool empty(void *s)
{
    return !((CUstream)s)->first;
}

static bool all_empty(void *unused)
{
    (void)unused;
    for (CUstream s = mock_streams; s; s = s->next)
        if (s->first) return false;
    return true;
}

void stream_sync_all(void)
{
    pthread_mutex_lock(&mock_lock);
    mock_block(all_empty, NULL, INT64_MAX);
    pthread_mutex_unlock(&mock_lock);
}

CUresult cuStreamSynchronize(CUstream s)
{
    pthread_mutex_lock(&mock_lock);
    mock_block(empty, stream_of(s), INT64_MAX);
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

CUresult cuStreamQuery(CUstream s)
{
    pthread_mutex_lock(&mock_lock);
    mock_move();
    bool done = empty(stream_of(s));
    pthread_mutex_unlock(&mock_lock);
    return done ? 0 : 600; /* CUDA_ERROR_NOT_READY */
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&mock_lock);
    *out = stream_new();
    pthread_mutex_unlock(&mock_lock);
    return 0;
}

CUresult cuStreamDestroy_v2(CUstream s)
{
    (void)s; /* kept: it may have work to do */
    return 0;
}
