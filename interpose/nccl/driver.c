/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - loads the entry points of CUDA's driver and sets up kernels and
 * slots per context.
 */
#include "nccl/driver.h"

#include "nccl/ring.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static driver calls;
static bool found;
static const char *missing;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gpu *gpus;

static void load(void)
{
    static char text[96];
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        missing = "there is no libcuda.so.1: no NVIDIA driver";
        return;
    }
    found = true;
/* A function's address comes as a data pointer from dlsym(). */
#define X(field, name, needed, args)                                       \
    {                                                                      \
        void *p = dlsym(lib, name);                                        \
        memcpy(&calls.field, &p, sizeof p);                                \
        if (!p && (needed) && found) {                                     \
            found = false;                                                 \
            snprintf(text, sizeof text, "libcuda.so.1 has no %s: too old", \
                     name);                                                \
            missing = text;                                                \
        }                                                                  \
    }
    DRIVER_CALLS(X)
#undef X
}

/* NULL: there is none; *why says what is missing. */
static const driver *find_driver(const char **why)
{
    pthread_once(&once, load);
    if (!found) *why = missing;
    return found ? &calls : NULL;
}

const char *driver_error(const driver *d, CUresult rc)
{
    const char *name = NULL;
    if (!d->error_name || d->error_name(rc, &name) || !name)
        return "unknown error of the driver";
    return name;
}

/* ---- contexts -------------------------------------------------------------------- */

static bool get(gpu *g, CUmodule m, const char *prefix, const char *name,
                CUfunction *out)
{
    char full[64];
    snprintf(full, sizeof full, "stepcast_%s%s", prefix, name);
    return g->d->module_get(out, m, full) == 0;
}

static bool load_kernels(gpu *g)
{
    const driver *d = g->d;
    CUmodule m = NULL;
    if (!d->module_load || !d->module_get || !d->launch) return false;
    if (d->module_load(&m, kernel_text)) return false;
    for (int t = 0; t < NCCL_N_TYPES; t++) {
        const char *name = kernel_type_names[t];
        if (!get(g, m, "op_", name, &g->op[t])) return false;
        bool number = t >= NCCL_FLOAT16;
        if (number && (!get(g, m, "noise_", name, &g->noise[t]) ||
                       !get(g, m, "moments_", name, &g->moments[t])))
            return false;
    }
    return d->alloc(&g->scratch, MOMENTS_BYTES) == 0 && ring_set_up(g);
}

static const char *set_up(gpu *g)
{
    const char *wish = getenv("STEPCAST_NCCL_HOLD");
    bool kernels = !wish || strcmp(wish, "values") != 0;
    int sms = 0;
    if (g->d->ctx_device(&g->device)) return "cuCtxGetDevice failed";
    if (g->d->attribute) g->d->attribute(&sms, CU_ATTRIBUTE_SMS, g->device);
    g->sms = sms > 0 ? (uint32_t)sms : 1;
    g->kernels = load_kernels(g);
    g->values = !kernels || !g->kernels;
    if (!g->values) return NULL;
    if (!g->d->write_value || !g->d->wait_value)
        return "the driver takes no kernel in PTX, and has no "
               "cuStreamWaitValue32";
    return NULL;
}

static gpu *set_up_new(const driver *d, CUcontext ctx, const char **why)
{
    gpu *g = calloc(1, sizeof *g);
    if (!g) {
        *why = "out of memory";
        return NULL;
    }
    g->d = d;
    g->ctx = ctx;
    int mode = CU_CAPTURE_RELAXED;
    if (d->capture_mode) d->capture_mode(&mode);
    *why = set_up(g);
    if (d->capture_mode) d->capture_mode(&mode);
    if (*why) {
        free(g);
        return NULL;
    }
    g->next = gpus;
    gpus = g;
    return g;
}

/* The device that a thread without a context would use: 0 <= *out < the number
 * of devices. */
static CUdevice usual_device(const driver *d)
{
    int (*current)(int *) = NULL, of_runtime = 0, n = 1;
    void *p = dlsym(RTLD_DEFAULT, "cudaGetDevice");
    memcpy(&current, &p, sizeof p);
    if (p && current(&of_runtime) == 0) return of_runtime;
    const char *local = getenv("LOCAL_RANK");
    long rank = local ? strtol(local, NULL, 10) : 0;
    if (d->device_count) d->device_count(&n);
    return rank > 0 && n > 0 ? (CUdevice)(rank % n) : 0;
}

/* The state of the current context, `ctx`. */
static gpu *state_of(const driver *d, CUcontext ctx, const char **why)
{
    pthread_mutex_lock(&lock);
    gpu *g = gpus;
    while (g && g->ctx != ctx) g = g->next;
    if (!g) g = set_up_new(d, ctx, why);
    pthread_mutex_unlock(&lock);
    return g;
}

gpu *gpu_get(const char **why)
{
    const driver *d = find_driver(why);
    CUcontext ctx = NULL;
    if (!d) return NULL;
    CUresult rc = d->ctx_get(&ctx);
    bool pushed = !rc && !ctx && d->retain &&
                  !(rc = d->retain(&ctx, usual_device(d))) &&
                  !(rc = d->ctx_push(ctx));
    if (rc || !ctx) {
        *why = rc ? driver_error(d, rc) : "the thread has no CUDA context";
        return NULL;
    }
    gpu *g = state_of(d, ctx, why);
    if (pushed) d->ctx_pop(&ctx);
    return g;
}

bool gpu_enter(gpu *g)
{
    CUcontext now = NULL;
    if (g->d->ctx_get(&now) == 0 && now == g->ctx) return false;
    return g->d->ctx_push(g->ctx) == 0;
}

void gpu_leave(gpu *g, bool entered)
{
    CUcontext old;
    if (entered) g->d->ctx_pop(&old);
}

void *gpu_pinned(gpu *g, size_t bytes, CUdeviceptr *at)
{
    void *p = NULL;
    int mode = CU_CAPTURE_RELAXED;
    unsigned flags = CU_HOSTALLOC_PORTABLE | (at ? CU_HOSTALLOC_MAPPED : 0);
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    if (g->d->host_alloc(&p, bytes, flags)) p = NULL;
    if (p && at && g->d->host_device(at, p, 0)) {
        g->d->host_free(p);
        p = NULL;
    }
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    return p;
}

CUresult gpu_launch(gpu *g, CUfunction f, uint32_t blocks, uint32_t threads,
                    cudaStream_t s, void **args)
{
    return g->d->launch(f, blocks, 1, 1, threads, 1, 1, 0, s, args, NULL);
}

CUresult gpu_op(gpu *g, ncclDataType_t type, uint32_t blocks, cudaStream_t s,
                kernel_op *o)
{
    void *args[] = {&o->slot,  &o->count, &o->ring, &o->tickets, &o->gen,
                    &o->flags, &o->index, &o->n,    o->fill};
    return gpu_launch(g, g->op[type], blocks, KERNEL_THREADS, s, args);
}
