/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - reads and writes whole files. */
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *sc_errno_text(int number)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): each thread has its own */
    return strerror(number);
}

static sc_status io_error(const char *what, const char *path, int number,
                          sc_err *err)
{
    return sc_error(err, SC_EIO, SC_C_IO, sc_pos_file(path), NULL,
                    "can't %s: %s", what, sc_errno_text(number));
}

static sc_status too_big(const char *path, size_t max, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(path), NULL,
                    "larger than the limit of %zu bytes", max);
}

/* Reads to the end of `fd`; `cap` is the expected size. */
static sc_status read_all(int fd, const char *path, size_t max, size_t cap,
                          sc_arena *a, char **buf, size_t *len, sc_err *err)
{
    char *p = sc_alloc(a, cap + 1, 1);
    size_t n = 0;
    while (p != NULL) {
        /* one byte more than expected shows whether this is the end */
        ssize_t got = read(fd, p + n, cap + 1 - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error("read", path, errno, err);
        if (got == 0) break;
        n += (size_t)got;
        if (n > max) return too_big(path, max, err);
        if (n <= cap) continue;
        cap = cap > max / 2 ? max : 2 * cap + 4096;
        char *grown = sc_alloc(a, cap + 1, 1);
        if (grown != NULL) memcpy(grown, p, n);
        p = grown;
    }
    if (p == NULL) return sc_error_nomem(err);
    p[n] = '\0';
    *buf = p;
    *len = n;
    return SC_OK;
}

static sc_status read_fd(int fd, const char *path, size_t max, sc_arena *a,
                         char **buf, size_t *len, sc_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return io_error("read", path, errno, err);
    if (S_ISDIR(st.st_mode)) return io_error("read", path, EISDIR, err);
    size_t cap = 4096;
    if (S_ISREG(st.st_mode)) {
        if (st.st_size > 0 && (uintmax_t)st.st_size > max)
            return too_big(path, max, err);
        cap = (size_t)st.st_size;
    }
    return read_all(fd, path, max, cap, a, buf, len, err);
}

sc_status sc_file_read(const char *path, size_t max, sc_arena *a, char **buf,
                       size_t *len, sc_err *err)
{
    if (max > SIZE_MAX / 4) max = SIZE_MAX / 4;
    if (strcmp(path, "-") == 0)
        return read_fd(STDIN_FILENO, "<stdin>", max, a, buf, len, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io_error("open", path, errno, err);
    sc_status s = read_fd(fd, path, max, a, buf, len, err);
    close(fd);
    return s;
}

/* Returns 0 or the errno of the call that failed; always closes `fd`. */
static int write_close(int fd, const char *buf, size_t len, bool durable)
{
    int failed = 0;
    while (len > 0 && failed == 0) {
        ssize_t put = write(fd, buf, len);
        if (put < 0) {
            failed = errno == EINTR ? 0 : errno;
            continue;
        }
        buf += put;
        len -= (size_t)put;
    }
    if (durable && failed == 0 && fsync(fd) != 0) failed = errno;
    if (close(fd) != 0 && failed == 0) failed = errno;
    return failed;
}

/* A new file beside `path`, readable as the umask allows. */
static int open_beside(const char *path, char *tmp, size_t size)
{
    for (unsigned i = 0; i < 100; i++) {
        snprintf(tmp, size, "%s.tmp%ld.%u", path, (long)getpid(), i);
        int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

sc_status sc_folder_make(const char *path, sc_err *err)
{
    struct stat st;
    if (mkdir(path, 0777) == 0) return SC_OK;
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return SC_OK;
    return io_error("make the folder", path, errno, err);
}

static sc_status write_file(const char *path, const char *buf, size_t len,
                            bool durable, sc_err *err)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode)) { /* a device or pipe: no rename */
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        int failed = fd < 0 ? errno : write_close(fd, buf, len, false);
        return failed == 0 ? SC_OK : io_error("write", path, failed, err);
    }
    size_t size = strlen(path) + 48;
    char *tmp = malloc(size);
    if (tmp == NULL) return sc_error_nomem(err);
    sc_status s = SC_OK;
    int fd = open_beside(path, tmp, size);
    if (fd < 0) {
        s = io_error("write", path, errno, err);
    } else {
        /* keep the permissions of the file that is replaced, if allowed */
        int failed = exists && fchmod(fd, st.st_mode & 0777) != 0 ? errno : 0;
        int late = write_close(fd, buf, len, durable);
        if (failed == 0) failed = late;
        if (failed == 0 && rename(tmp, path) != 0) failed = errno;
        if (failed != 0) {
            s = io_error("write", path, failed, err);
            unlink(tmp);
        }
    }
    free(tmp);
    return s;
}

sc_status sc_file_write(const char *path, const char *buf, size_t len,
                        sc_err *err)
{
    return write_file(path, buf, len, false, err);
}

sc_status sc_file_write_durable(const char *path, const char *buf, size_t len,
                                sc_err *err)
{
    return write_file(path, buf, len, true, err);
}
