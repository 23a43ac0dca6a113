/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c - c10d's queue of operations: when the program reached each, its
 * element type, and the order in which they are posted.
 *
 * c10d::ProcessGroupGloo creates an AsyncWork and puts it into its queue
 * (enqueue()); one of the group's threads runs it (execute()), which calls
 * gloo's function.
 */
#include "inside.h"

#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static gloo_work *works; /* created, not yet begun; under the mutex */
static _Atomic uint32_t n_queued;

static _Thread_local struct {
    const void *owner; /* process group being created */
    bool filled;       /* so is the work */
    gloo_work *now;
    sc_time ended;      /* virtual clock: its last operation; -1: none */
    sc_time idle_since; /* this worker */
} self = {.ended = -1};

const void *gloo_work_owner(void)
{
    return self.owner;
}

gloo_work *gloo_work_now(void)
{
    return self.now;
}

sc_time gloo_work_time(live *l)
{
    const gloo_work *w = self.now;
    if (!w || w->queued < 0) return live_now(l);
    /* On the real clock an operation begins when a processor is free for its
     * worker, as without the interposer. */
    if (live_config(l)->clock == SC_EMU_REAL) return live_now(l);
    /* The second operation of one work item follows the first; one for which no
     * worker was free begins when one was. */
    if (w->left) return self.ended >= 0 ? self.ended : live_now(l);
    return w->queued > self.idle_since ? w->queued : self.idle_since;
}

bool gloo_work_any(void)
{
    return atomic_load_explicit(&n_queued, memory_order_relaxed) > 0;
}

void gloo_work_ended(sc_time end)
{
    self.ended = end;
}

void gloo_work_enter(gloo_work *w)
{
    if (w->left || !w->queue) return;
    gloo_queue *t = w->queue;
    pthread_mutex_lock(&t->mutex);
    while (t->served != w->ticket) pthread_cond_wait(&t->moved, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
}

void gloo_work_leave(gloo_work *w)
{
    if (w->left) return;
    w->left = true;
    gloo_queue *t = w->queue;
    if (!t) return;
    pthread_mutex_lock(&t->mutex);
    t->served++;
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->mutex);
}

/* ---- works by c10d's object --------------------------------------------------------- */

static gloo_work *remove_work(const void *work)
{
    pthread_mutex_lock(&mutex);
    gloo_work **at = &works;
    while (*at && (*at)->work != work) at = &(*at)->next;
    gloo_work *w = *at;
    if (w) *at = w->next;
    pthread_mutex_unlock(&mutex);
    return w;
}

static void add_work(gloo_work *w)
{
    pthread_mutex_lock(&mutex);
    w->next = works;
    works = w;
    pthread_mutex_unlock(&mutex);
}

/* ---- what c10d calls ------------------------------------------------------------------- */

typedef void make_group(void *, const void *, int, int, void *);
typedef void make_work(void *, cxx_vector *, const char *, const void *);
typedef void put_work(void *, void **);
typedef void run_work(void **);
typedef bool is_float(const void *);

#define MAKE_GROUP(c)                                                          \
    "_ZN4c10d16ProcessGroupGlooC" c                                            \
    "ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_" \
    "null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE"
#define BROADCAST                                                              \
    "_ZN4c10d16ProcessGroupGloo9broadcastERSt6vectorIN2at6TensorESaIS3_EERKNS" \
    "_16BroadcastOptionsE"
#define SCATTER                                                              \
    "_ZN4c10d16ProcessGroupGloo7scatterERSt6vectorIN2at6TensorESaIS3_EERS1_" \
    "IS5_SaIS5_EERKNS_14ScatterOptionsE"
#define IS_COMPLETED "_ZN4c10d4Work11isCompletedEv"
#define MAKE_WORK                                                             \
    "_ZN4c10d16ProcessGroupGloo9AsyncWorkC2ESt6vectorIS2_IN2at6TensorESaIS4_" \
    "EESaIS6_EEPKcRKN3c108optionalIS6_EE"
#define PUT_WORK                                                   \
    "_ZN4c10d16ProcessGroupGloo7enqueueEN3c1013intrusive_ptrINS0_" \
    "9AsyncWorkENS1_6detail34intrusive_target_default_null_typeIS3_EEEE"
#define RUN_WORK                                                            \
    "_ZN4c10d16ProcessGroupGloo9AsyncWork7executeEN3c1013intrusive_ptrIS1_" \
    "NS2_6detail34intrusive_target_default_null_typeIS1_EEEE"

void c10d_make_group(void *pg, const void *store, int rank, int size,
                     void *options) GLOO_HOOK(MAKE_GROUP("1"));
void c10d_make_work(void *work, cxx_vector *out, const char *title,
                    const void *in) GLOO_HOOK(MAKE_WORK);
void c10d_put_work(void *pg, void **work) GLOO_HOOK(PUT_WORK);
void c10d_run_work(void **work) GLOO_HOOK(RUN_WORK);

void c10d_make_group(void *pg, const void *store, int rank, int size,
                     void *options)
{
    make_group *real = GLOO_REAL(make_group *, LIB_TORCH, MAKE_GROUP("1"));
    if (rank >= 0 && size > 0) live_say_rank((uint32_t)rank, (uint32_t)size);
    (void)gloo_live(); /* refuses an unknown torch */
    self.owner = pg;
    real(pg, store, rank, size, options);
    self.owner = NULL;
}

/* Whether the work's tensors are floating point; `out`: a list of lists of
 * pointers to tensors. */
static bool gives_floats(const cxx_vector *out)
{
    if (out->begin == out->end) return false;
    const cxx_vector *first = out->begin;
    if (first->begin == first->end || !*(void **)first->begin) return false;
    return GLOO_REAL(is_float *, LIB_TORCH,
                     "_ZN2at6native17is_floating_pointERKNS_6TensorE")(
        first->begin);
}

void c10d_make_work(void *work, cxx_vector *out, const char *title,
                    const void *in)
{
    live *l = gloo_live();
    gloo_work *w = NULL;
    if (l) {
        live_enter(l);
        w = remove_work(work); /* it never ran */
        if (!w && !(w = malloc(sizeof(*w)))) live_die(l, "gloo: out of memory");
        *w = (gloo_work){.work = work,
                         .floats = gives_floats(out),
                         .filled = self.filled,
                         .queued = -1};
        add_work(w);
        live_leave(l);
    }
    GLOO_REAL(make_work *, LIB_TORCH, MAKE_WORK)(work, out, title, in);
}

void c10d_put_work(void *pg, void **work)
{
    live *l = gloo_live();
    if (l) {
        gloo_virtual_catch_up(l);
        live_enter(l);
        gloo_work *w = remove_work(*work);
        if (w) {
            w->queue = gloo_group_queue(pg);
            if (w->queue) {
                pthread_mutex_lock(&w->queue->mutex);
                w->ticket = w->queue->taken++;
                pthread_mutex_unlock(&w->queue->mutex);
            }
            w->queued = live_now(l);
            atomic_fetch_add(&n_queued, 1);
            add_work(w);
        }
        live_leave(l);
    }
    GLOO_REAL(put_work *, LIB_TORCH, PUT_WORK)(pg, work);
}

void c10d_run_work(void **work)
{
    live *l = gloo_live();
    gloo_work *w = l ? remove_work(*work) : NULL;
    self.now = w;
    GLOO_REAL(run_work *, LIB_TORCH, RUN_WORK)(work);
    self.now = NULL;
    if (!w) return;
    if (w->queued >= 0) atomic_fetch_sub(&n_queued, 1);
    gloo_work_enter(w); /* it may have failed before it called gloo */
    gloo_work_leave(w);
    free(w);
    self.idle_since = self.ended >= 0 ? self.ended : live_now(l);
}

/* `opts` begins with the root. */
static void from_root(const void *pg, const void *opts)
{
    live *l = gloo_live();
    if (!l || !gloo_group_emulated(pg, *(const int *)opts)) return;
    live_enter(l);
    self.filled = gloo_python_objects();
    live_leave(l);
}

typedef void *broadcast_fn(void *, void *, void *, const void *);
void *c10d_broadcast(void *out, void *pg, void *tensors, const void *opts)
    GLOO_HOOK(BROADCAST);

/* `out`: the place of the pointer that it returns. */
void *c10d_broadcast(void *out, void *pg, void *tensors, const void *opts)
{
    from_root(pg, opts);
    GLOO_REAL(broadcast_fn *, LIB_TORCH, BROADCAST)(out, pg, tensors, opts);
    self.filled = false;
    return out;
}

typedef void *scatter_fn(void *, void *, void *, void *, const void *);
void *c10d_scatter(void *out, void *pg, void *tensors, void *parts,
                   const void *opts) GLOO_HOOK(SCATTER);

void *c10d_scatter(void *out, void *pg, void *tensors, void *parts,
                   const void *opts)
{
    from_root(pg, opts);
    GLOO_REAL(scatter_fn *, LIB_TORCH, SCATTER)(out, pg, tensors, parts, opts);
    self.filled = false;
    return out;
}

typedef bool is_completed_fn(void *);
bool c10d_is_completed(void *work) GLOO_HOOK(IS_COMPLETED);

/* The program polls. */
bool c10d_is_completed(void *work)
{
    live *l = gloo_live();
    if (l) gloo_virtual_catch_up(l);
    return GLOO_REAL(is_completed_fn *, LIB_TORCH, IS_COMPLETED)(work);
}
