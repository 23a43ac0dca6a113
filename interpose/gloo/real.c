/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.c - the libraries behind the interposer: the addresses of their
 * functions, and a check that their objects match abi.h. Python opens torch
 * with RTLD_LOCAL, so RTLD_NEXT does not find gloo.
 */
#define _GNU_SOURCE
#include "inside.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUPPORTED                                                           \
    "; this library supports the gloo of Debian 12's python3-torch 1.13.1 " \
    "(libgloo.so.0.5.0, libtorch_cpu.so.1.13)"

static const char *const soname[] = {"libgloo.so.0", "libtorch_cpu.so.1.13",
                                     "libstdc++.so.6"};

/* Like live_die(), usable without a rank. */
static _Noreturn void die(const char *what, const char *which)
{
    fprintf(stderr, "stepcast: error: gloo: %s%s" SUPPORTED "\n", what, which);
    exit(3);
}

void *gloo_real(gloo_lib lib, const char *symbol)
{
    void *h = dlopen(soname[lib], RTLD_LAZY | RTLD_NOLOAD);
    if (!h) die("the process has not loaded ", soname[lib]);
    void *p = dlsym(h, symbol);
    dlclose(h); /* it stays loaded, because the program has it open */
    if (!p) die(soname[lib], " has other functions than expected");
    return p;
}

/* ---- is it the right library? -------------------------------------------- */

typedef void context_new(void *, int, int, int);
typedef void barrier_new(void *, const cxx_shared *);
typedef void set_input(void *, void *, size_t, size_t);

/* The library's own output must lie where abi.h says. */
static bool layout_is_ours(void)
{
    union {
        gloo_context c;
        unsigned char b[192];
    } x;

    union {
        gloo_barrier_opts o;
        unsigned char b[192];
    } b;

    union {
        gloo_allgatherv_opts o;
        unsigned char b[192];
    } v;

    memset(&x, 0xA5, sizeof(x));
    memset(&b, 0xA5, sizeof(b));
    memset(&v, 0, sizeof(v));
    ((context_new *)gloo_real(LIB_GLOO, "_ZN4gloo10rendezvous7ContextC1Eiii"))(
        &x, 5, 9, 3);
    if (x.c.rank != 5 || x.c.size != 9 || x.c.base != 3 || x.c.device.p ||
        x.c.transport.p || x.b[sizeof(gloo_context)] != 0xA5)
        return false;
    cxx_shared s = {.p = &x};
    ((barrier_new *)gloo_real(
        LIB_GLOO, "_ZN4gloo14BarrierOptionsC1ERKSt10shared_ptrINS_7ContextEE"))(
        &b, &s);
    bool ok = b.o.context == &x.c && gloo_buffer_ours(b.o.buffer) &&
              b.o.tag == 0 && b.o.timeout == x.c.timeout &&
              b.b[sizeof(b.o)] == 0xA5;
    if (ok) gloo_buffer_free(b.o.buffer);
    v.o.context = &x.c;
    ((set_input *)gloo_real(
        LIB_GLOO, "_ZN4gloo17AllgathervOptions8setInputEPvmm"))(&v, &x, 3, 4);
    ok = ok && gloo_buffer_ours(v.o.in) && v.o.in->ptr == &x &&
         v.o.in->size == 12 && v.o.element_size == 4;
    if (gloo_buffer_ours(v.o.in)) gloo_buffer_free(v.o.in);
    return ok;
}

static void look(void)
{
    void *h = dlopen(soname[LIB_GLOO], RTLD_LAZY | RTLD_NOLOAD);
    if (!h) die("torch here has a gloo of its own", "");
    struct link_map *map = NULL;
    char path[PATH_MAX] = "";
    if (!dlinfo(h, RTLD_DI_LINKMAP, &map) && map)
        if (!realpath(map->l_name, path)) path[0] = '\0';
    dlclose(h);
    const char *base = strrchr(path, '/');
    if (!base || strcmp(base + 1, "libgloo.so.0.5.0") != 0)
        die("unknown library ", path);
    if (!layout_is_ours()) die("its objects have another layout: ", path);
}

static pthread_once_t looked = PTHREAD_ONCE_INIT;

live *gloo_live(void)
{
    live *l = live_get();
    if (l) pthread_once(&looked, look);
    return l;
}

/* ---- exceptions ---------------------------------------------------------- */

typedef void *cxa_allocate(size_t);
typedef void cxa_throw(void *, void *, void (*)(void *));
typedef void error_new(void *, const char *);

void gloo_throw(const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    void *e = ((cxa_allocate *)gloo_real(LIB_CXX, "__cxa_allocate_exception"))(
        16); /* a vtable pointer and a string's */
    ((error_new *)gloo_real(LIB_CXX, "_ZNSt13runtime_errorC1EPKc"))(e, text);
    ((cxa_throw *)gloo_real(LIB_CXX, "__cxa_throw"))(
        e, gloo_real(LIB_CXX, "_ZTISt13runtime_error"),
        (void (*)(void *))gloo_real(LIB_CXX, "_ZNSt13runtime_errorD1Ev"));
    abort();
}
