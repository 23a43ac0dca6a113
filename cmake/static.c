/* SPDX-License-Identifier: Apache-2.0 */
/*
 * static.c - what the static program says where others load a library: a delay
 * model of the user's own, or SQLite.  The linker hands calls of dlopen() and so
 * on to these (--wrap): the C library's would need itself at run time.
 */
#include <stddef.h>

void *__wrap_dlopen(const char *file, int mode);
void *__wrap_dlsym(void *handle, const char *name);
int __wrap_dlclose(void *handle);
const char *__wrap_dlerror(void);

void *__wrap_dlopen(const char *file, int mode)
{
    (void)file;
    (void)mode;
    return NULL;
}

void *__wrap_dlsym(void *handle, const char *name)
{
    (void)handle;
    (void)name;
    return NULL;
}

int __wrap_dlclose(void *handle)
{
    (void)handle;
    return 0;
}

const char *__wrap_dlerror(void)
{
    return "the static program loads no libraries; use the package, or build "
           "stepcast";
}
