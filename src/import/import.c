/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - reads files of other programs as one job. */
#include "import/import.h"

#include "base/utf8.h"
#include "import/readers.h"

#include <string.h>

#define MAX_BYTES ((size_t)4 << 20)

static const char *stem(const char *file, sc_arena *a)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file, *dot = strrchr(name, '.');
    return sc_strndup(a, name,
                      dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

typedef sc_status (*reader)(import_sink *to, const char *text, size_t len,
                            const char *const *define);

static const reader readers[SC_IMPORT_N_READ] = {
    [SC_IMPORT_MEGATRON] = megatron_read,
    [SC_IMPORT_DEEPSPEED] = deepspeed_read,
    [SC_IMPORT_TORCHTITAN] = torchtitan_read,
    [SC_IMPORT_ACCELERATE] = accelerate_read,
    [SC_IMPORT_TRAINER] = trainer_read,
    [SC_IMPORT_NEMO] = nemo_read,
    [SC_IMPORT_BRIDGE] = bridge_read,
};

static sc_status read_one(import_sink *to, const sc_import_file *f,
                          const char *const *define)
{
    bool had_model = to->out->has_model;
    char *copy = sc_strndup(to->a, f->text, f->len); /* terminated */
    if (!copy) return sc_error_nomem(to->err);
    to->file = f->name;
    if (f->len > MAX_BYTES)
        return sc_error(to->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(f->name),
                        "give the configuration, not its output",
                        "the file is larger than %d MiB",
                        (int)(MAX_BYTES >> 20));
    SC_TRY(utf8_check(copy, f->len, f->name, to->err));
    SC_TRY(readers[f->format](to, copy, f->len, define));
    if (to->status != SC_OK || had_model || !to->out->has_model) return SC_OK;
    to->out->model.name = stem(f->name, to->a);
    return to->out->model.name ? SC_OK : sc_error_nomem(to->err);
}

sc_status sc_import_read(const sc_import_file *f, uint32_t n,
                         const char *const *define, sc_arena *a, sc_job *inout,
                         sc_import *out, sc_err *err)
{
    sc_job job = *inout;
    sc_import result = {0};
    import_sink to = {.a = a, .err = err, .job = &job, .out = &result};
    /* A file that names another file is read after it; launch scripts are
     * last. */
    static const sc_import_format order[] = {
        SC_IMPORT_DEEPSPEED, SC_IMPORT_TORCHTITAN, SC_IMPORT_ACCELERATE,
        SC_IMPORT_TRAINER,   SC_IMPORT_NEMO,       SC_IMPORT_BRIDGE,
        SC_IMPORT_MEGATRON};
    _Static_assert(SC_COUNT(order) == SC_IMPORT_N_READ, "all formats");
    for (size_t k = 0; k < SC_COUNT(order); k++)
        for (uint32_t i = 0; i < n; i++)
            if (f[i].format == order[k]) SC_TRY(read_one(&to, &f[i], define));
    SC_TRY(to.status);
    SC_TRY(import_finish(&to));
    SC_TRY(to.status);
    *inout = job;
    *out = result;
    return SC_OK;
}

sc_status sc_megatron_read(const char *text, size_t len, const char *file,
                           const char *const *define, sc_arena *a,
                           sc_job *inout, sc_import *out, sc_err *err)
{
    sc_import_file f = {file, text, len, SC_IMPORT_MEGATRON};
    return sc_import_read(&f, 1, define, a, inout, out, err);
}
