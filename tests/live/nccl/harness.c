/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#include <dlfcn.h>
#include <ftw.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

nccl_calls nccl;
static char folder[512];

void check_near(const char *file, int line, const char *what, double a,
                double b, double d)
{
#ifdef REAL_DEVICE
    if (d >= 1 && getenv("STEPCAST_NO_TIMES")) return;
    if (d >= 1) d += 2e5 + 0.02 * fabs(b); /* times, in ns */
#endif
    if (fabs(a - b) <= d) return;
    fprintf(stderr, "%s:%d: %s is %.9g, not %.9g\n", file, line, what, a, b);
    finish(1);
}

static int drop(const char *path, const struct stat *st, int flag,
                struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void finish(int rc)
{
    if (folder[0]) nftw(folder, drop, 8, FTW_DEPTH | FTW_PHYS);
    exit(rc);
}

static void write_file(const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void write_options(const setup *s)
{
    const char *tmp = getenv("TMPDIR");
    char text[2048];
    snprintf(folder, sizeof folder, "%s/stepcast-nccl-XXXXXX",
             tmp ? tmp : P_tmpdir);
    CHECK(mkdtemp(folder));
    write_file("model.yml",
               s->model ? s->model : "default: {alpha: 10us, beta: 1GB/s}\n");
    snprintf(text, sizeof text,
             "cluster: '%s'\nworld-size: %u\nranks: ['%u']\napi: nccl\n"
             "siblings: false\ndelay-model: 'alpha-beta:%s/model.yml'\n%s",
             s->cluster ? s->cluster : "dgx-h100:1", s->world, s->rank, folder,
             s->more ? s->more : "");
    write_file("emulate.yml", text);
    snprintf(text, sizeof text, "%u", s->rank);
    setenv("STEPCAST_EMULATE", folder, 1);
    setenv("STEPCAST_RANK", text, 1);
#ifndef REAL_DEVICE
    setenv("STEPCAST_NCCL_POLL_US", "50", 0);
    setenv("STEPCAST_NCCL_SPIN_US", "0", 0);
#endif
}

static void *lib;

void find(const char *name, void *out)
{
    void *p = dlsym(lib, name);
    if (!p) fprintf(stderr, "no %s\n", name);
    CHECK(p);
    memcpy(out, &p, sizeof p);
}

void start(const setup *s)
{
    CUcontext c;
    write_options(s);
    lib = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!lib) fprintf(stderr, "%s\n", dlerror());
    CHECK(lib);
#define X(name, args) find("nccl" #name, &nccl.name);
    NCCL_USED(X)
#undef X
    find("ncclGetLastError", &nccl.GetLastError);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
}

ncclComm_t comm_of(int n, int rank)
{
    ncclUniqueId id;
    ncclComm_t c;
    OK(nccl.GetUniqueId(&id));
    OK(nccl.CommInitRank(&c, n, id, rank));
    return c;
}

void *device(size_t bytes)
{
    CUdeviceptr p;
#ifdef REAL_DEVICE
    OK(cuMemAllocManaged(&p, bytes, 1)); /* the host looks at it, too */
#else
    OK(cuMemAlloc_v2(&p, bytes));
#endif
    memset((void *)(uintptr_t)p, 0, bytes);
    return (void *)(uintptr_t)p;
}

CUstream stream(void)
{
    CUstream s;
    OK(cuStreamCreate(&s, 1));
    return s;
}

CUevent event(void)
{
    CUevent e;
    OK(cuEventCreate(&e, 0));
    return e;
}
