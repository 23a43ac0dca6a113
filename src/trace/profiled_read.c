/* SPDX-License-Identifier: Apache-2.0 */
/* profiled_read.c - opens what profilers recorded, whatever it is. */
#include "trace/kineto.h"
#include "trace/nsys.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_in(const char *path, const char *end)
{
    size_t len = strlen(path), n = strlen(end);
    return len >= n && strcmp(path + len - n, end) == 0;
}

/* Traces of profilers that are not read, by the ends of their names. */
static sc_status refuse_others(const char *path, sc_err *err)
{
    static const struct {
        const char *end, *what, *hint;
    } others[] = {
        {".xplane.pb", "XPlane traces of XLA are not read",
         "export it as JSON for Perfetto, which has other names: only traces "
         "of "
         "PyTorch's profiler can be replayed"},
        {".nsys-rep", "a report of Nsight Systems is read as a database",
         "write it: nsys export --type sqlite"},
        {".qdrep", "a report of Nsight Systems is read as a database",
         "write it: nsys export --type sqlite"},
        {".rpd", "traces of rocprof are not read",
         "record with PyTorch's profiler, which uses the same counters"},
        {".pftrace", "protobuf traces of Perfetto and rocprofv3 are not read",
         "record with PyTorch's profiler"},
        {".ncu-rep", "reports of Nsight Compute have no timeline",
         "record with PyTorch's profiler"},
        {".et", "this is a Chakra execution trace",
         "`stepcast simulate` runs it"},
    };

    for (size_t i = 0; i < SC_COUNT(others); i++)
        if (ends_in(path, others[i].end))
            return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(path),
                            others[i].hint, "%s", others[i].what);
    return SC_OK;
}

#define MAGIC "SQLite format 3" /* and a NUL */

static bool is_database(const char *data, size_t len)
{
    return len >= sizeof MAGIC && memcmp(data, MAGIC, sizeof MAGIC) == 0;
}

/* Of a pipe no byte may be read twice. */
static bool names_database(const char *path)
{
    struct stat st;
    char begin[sizeof MAGIC];
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return ends_in(path, ".sqlite");
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(begin, 1, sizeof begin, f) : 0;
    if (f) fclose(f);
    return is_database(begin, n) || ends_in(path, ".sqlite");
}

static sc_status read_stream(sc_stream *in, const char *file, sc_arena *a,
                             sc_text *warnings, sc_profiled **out, uint32_t *n,
                             sc_err *err)
{
    *out = SC_NEW(a, sc_profiled);
    *n = 1;
    return *out ? kineto_read(in, file, a, warnings, *out, err)
                : sc_error_nomem(err);
}

sc_status sc_profiled_read_all(const char *path, sc_arena *a, sc_text *warnings,
                               sc_profiled **out, uint32_t *n, sc_err *err)
{
    sc_stream *in;
    SC_TRY(refuse_others(path, err));
    if (names_database(path))
        return nsys_read(path, NULL, 0, a, warnings, out, n, err);
    SC_TRY(sc_stream_open(path, &in, err));
    sc_status s = read_stream(in, path, a, warnings, out, n, err);
    sc_stream_close(in);
    return s;
}

sc_status sc_profiled_read_all_memory(const char *data, size_t len,
                                      const char *file, sc_arena *a,
                                      sc_text *warnings, sc_profiled **out,
                                      uint32_t *n, sc_err *err)
{
    sc_stream *in;
    if (is_database(data, len))
        return nsys_read(file, data, len, a, warnings, out, n, err);
    SC_TRY(sc_stream_open_memory(data, len, file, &in, err));
    sc_status s = read_stream(in, file, a, warnings, out, n, err);
    sc_stream_close(in);
    return s;
}

static sc_status only_one(const char *file, const sc_profiled *all, uint32_t n,
                          sc_profiled *out, sc_err *err)
{
    if (n != 1)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(file), NULL,
                        "the file has %u ranks, not one", n);
    *out = *all;
    return SC_OK;
}

sc_status sc_profiled_read(const char *path, sc_arena *a, sc_text *warnings,
                           sc_profiled *out, sc_err *err)
{
    sc_profiled *all;
    uint32_t n;
    SC_TRY(sc_profiled_read_all(path, a, warnings, &all, &n, err));
    return only_one(path, all, n, out, err);
}

sc_status sc_profiled_read_memory(const char *data, size_t len,
                                  const char *file, sc_arena *a,
                                  sc_text *warnings, sc_profiled *out,
                                  sc_err *err)
{
    sc_profiled *all;
    uint32_t n;
    SC_TRY(sc_profiled_read_all_memory(data, len, file, a, warnings, &all, &n,
                                       err));
    return only_one(file, all, n, out, err);
}
