/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.c - the version of NCCL that the library claims to be: that in
 * STEPCAST_NCCL_VERSION (2.27.5 or 22705), else that of the libnccl that the
 * program would have loaded, if one is where PyTorch's packages put it, else a
 * recent one.
 */
#include "nccl/comm.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL 22705

static int version;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int code(unsigned long major, unsigned long minor, unsigned long patch)
{
    if (major > 99 || minor > 99 || patch > 99) return 0;
    unsigned long c = major <= 2 && minor <= 8
                          ? major * 1000 + minor * 100 + patch
                          : major * 10000 + minor * 100 + patch;
    return (int)c;
}

/* "2.27.5", then anything; or "22705". */
static int parse(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10), minor, patch = 0;
    if (end == text) return 0;
    if (*end != '.') return *end || major > INT_MAX ? 0 : (int)major;
    minor = strtoul(end + 1, &end, 10);
    if (*end == '.') patch = strtoul(end + 1, &end, 10);
    return code(major, minor, patch);
}

static const char *find(const char *in, size_t len, const char *what)
{
    size_t n = strlen(what);
    for (const char *at = in, *end = in + len; (size_t)(end - at) > n; at++) {
        at = memchr(at, what[0], (size_t)(end - at) - n);
        if (!at) return NULL;
        if (memcmp(at, what, n) == 0) return at + n;
    }
    return NULL;
}

/* NCCL's file contains its version as text. */
static int of_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC), found = 0;
    if (fd < 0) return 0;
    if (fstat(fd, &st) == 0 && st.st_size > 4096) {
        size_t len = (size_t)st.st_size;
        char *p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            const char *at = find(p, len - 64, "NCCL version ");
            if (at) found = parse(at);
            munmap(p, len);
        }
    }
    close(fd);
    return found;
}

/* Beside libtorch_cuda: nvidia/nccl/lib of the same site-packages. */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char *const places[] = {"/libnccl.so.2",
                                         "/../../nvidia/nccl/lib/libnccl.so.2"};
    char path[4096];
    (void)size;
    const char *name = info->dlpi_name,
               *base = name ? strrchr(name, '/') : NULL;
    if (!base || strncmp(base, "/libtorch_cuda", 14) != 0) return 0;
    for (size_t i = 0; i < 2 && !*(int *)arg; i++) {
        snprintf(path, sizeof path, "%.*s%s", (int)(base - name), name,
                 places[i]);
        *(int *)arg = of_file(path);
    }
    return *(int *)arg != 0;
}

static void find_version(void)
{
    const char *text = getenv("STEPCAST_NCCL_VERSION");
    if (text) version = parse(text);
    if (!version) dl_iterate_phdr(look, &version);
    if (!version) version = USUAL;
}

int version_get(void)
{
    pthread_once(&once, find_version);
    return version;
}

NCCL_API(ncclResult_t, ncclGetVersion, int *out)
{
    if (!out)
        return comm_fail(ncclInvalidArgument, "ncclGetVersion: no result");
    *out = version_get();
    return ncclSuccess;
}
