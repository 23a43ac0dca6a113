/* SPDX-License-Identifier: Apache-2.0 */
/* front.c - finds the interposer for the MPI library of this process. */
#include "front.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_DIED 3

/* MPICH's library has two names, of which derived libraries use the other. */
static const struct flavour {
    const char *name; /* of --api */
    const char *interposer, *soname, *headers;
} flavours[] = {
    {"openmpi", "libstepcast-openmpi.so", "libmpi.so.40", "libopenmpi-dev"},
    {"mpich", "libstepcast-mpich.so", "libmpich.so.12", "libmpich-dev"},
    {"mpich", "libstepcast-mpich.so", "libmpi.so.12", "libmpich-dev"}};

#define N_FLAVOURS (sizeof flavours / sizeof *flavours)

typedef struct loaded {
    const struct flavour *flavour; /* NULL: none of them */
    char path[PATH_MAX];
} loaded;

void front_die(const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fflush(stdout);
    dprintf(STDERR_FILENO, "stepcast: error: %s\n", text);
    _exit(EXIT_DIED);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int is_mpi(struct dl_phdr_info *info, size_t size, void *out)
{
    const char *name = base_name(info->dlpi_name);
    loaded *x = out;
    (void)size;
    for (size_t i = 0; i < N_FLAVOURS; i++) {
        size_t n = strlen(flavours[i].soname);
        if (strncmp(name, flavours[i].soname, n) != 0 ||
            (name[n] && name[n] != '.'))
            continue;
        x->flavour = &flavours[i];
        snprintf(x->path, sizeof x->path, "%s", info->dlpi_name);
        return 1;
    }
    return 0;
}

uint32_t front_find(const char *name)
{
    uint32_t low = 0, high = front_n;
    while (low < high) {
        uint32_t at = low + (high - low) / 2;
        int order = strcmp(name, front_name[at]);
        if (order == 0) return at;
        if (order < 0)
            high = at;
        else
            low = at + 1;
    }
    return UINT32_MAX;
}

/* The interposer is beside this library. */
static void *open_interposer(const loaded *x)
{
    Dl_info self;
    char path[PATH_MAX];
    if (!dladdr(&flavours, &self)) front_die("MPI: dladdr() failed");
    const char *base = base_name(self.dli_fname);
    int n = snprintf(path, sizeof path, "%.*s%s", (int)(base - self.dli_fname),
                     self.dli_fname, x->flavour->interposer);
    if (n < 0 || (size_t)n >= sizeof path) front_die("MPI: a path is too long");
    if (access(path, R_OK) != 0)
        front_die("the program loads %s, and this stepcast was built without "
                  "%s; build it again where %s is installed",
                  x->flavour->soname, x->flavour->interposer,
                  x->flavour->headers);
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) front_die("MPI: %s", dlerror());
    return h;
}

static void check_asked(const loaded *x)
{
    const char *asked = getenv("STEPCAST_MPI");
    if (asked && *asked && strcmp(asked, x->flavour->name) != 0)
        front_die("--api %s: the program has loaded %s; --api auto takes the "
                  "library that is loaded",
                  asked, x->path);
}

static void fill(void)
{
    loaded x = {0};
    dl_iterate_phdr(is_mpi, &x);
    void *h = RTLD_NEXT; /* a library of stubs, or another MPI */
    if (x.flavour) {
        check_asked(&x);
        h = open_interposer(&x);
    }
    /* What the interposer leaves alone is found in its library. */
    for (uint32_t i = 0; i < front_n; i++) {
        void *at = dlsym(h, front_name[i]);
        if (at) front_slot[i] = at;
    }
    front_fortran(); /* it may have been loaded after this library */
}

void *front_resolve(uint32_t i)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const void *before = front_slot[i];
    pthread_once(&once, fill);
    if (front_slot[i] == before)
        front_die("%s was called, but the process has loaded none of the MPI "
                  "libraries that can be emulated: libmpi.so.40 (Open MPI), "
                  "libmpich.so.12 or libmpi.so.12 (MPICH)",
                  front_name[i]);
    return front_slot[i];
}

/* Arguments stay in their registers; the number of the function is on the
 * stack, and the call continues where its slot then leads. */
__asm__(".text\n"
        ".hidden front_resolve\n"
        ".hidden front_lazy\n"
        ".globl front_lazy\n"
        ".type front_lazy, @function\n"
        "front_lazy:\n"
        "push %rdi\n"
        "push %rsi\n"
        "push %rdx\n"
        "push %rcx\n"
        "push %r8\n"
        "push %r9\n"
        "push %rax\n"
        "mov 56(%rsp), %rdi\n"
        "sub $136, %rsp\n"
        "movups %xmm0, (%rsp)\n"
        "movups %xmm1, 16(%rsp)\n"
        "movups %xmm2, 32(%rsp)\n"
        "movups %xmm3, 48(%rsp)\n"
        "movups %xmm4, 64(%rsp)\n"
        "movups %xmm5, 80(%rsp)\n"
        "movups %xmm6, 96(%rsp)\n"
        "movups %xmm7, 112(%rsp)\n"
        "call front_resolve\n"
        "mov %rax, %r11\n"
        "movups (%rsp), %xmm0\n"
        "movups 16(%rsp), %xmm1\n"
        "movups 32(%rsp), %xmm2\n"
        "movups 48(%rsp), %xmm3\n"
        "movups 64(%rsp), %xmm4\n"
        "movups 80(%rsp), %xmm5\n"
        "movups 96(%rsp), %xmm6\n"
        "movups 112(%rsp), %xmm7\n"
        "add $136, %rsp\n"
        "pop %rax\n"
        "pop %r9\n"
        "pop %r8\n"
        "pop %rcx\n"
        "pop %rdx\n"
        "pop %rsi\n"
        "pop %rdi\n"
        "add $8, %rsp\n"
        "jmp *%r11\n"
        ".size front_lazy, . - front_lazy\n");

__attribute__((constructor)) static void preloaded(void)
{
    front_fortran();
}
