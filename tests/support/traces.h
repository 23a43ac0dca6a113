/* SPDX-License-Identifier: Apache-2.0 */
/* traces.h - real traces of PyTorch's profiler and their facts, which are kept
 * outside of the repository. */
#ifndef TESTS_TRACES_H
#define TESTS_TRACES_H

#include "archive.h"
#include "fixture.h"
#include "replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DLRM "param/inputs/dlrm_kineto.tar.gz"

/* The folder of the traces. */
static inline const char *traces_folder(void)
{
    static char folder[512];
    const char *shared = getenv("STEPCAST_SHARED");
    snprintf(folder, sizeof folder, "%s/traces", shared ? shared : "");
    return folder;
}

/* Whether there are none; says so. */
static inline bool no_traces(void)
{
    FILE *f;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", traces_folder(), DLRM);
    f = fopen(path, "rb");
    if (f) {
        fclose(f);
        return false;
    }
    printf("skipped: real traces are kept outside; set STEPCAST_SHARED\n");
    return true;
}

static char traces_unpacked[512]; /* folder of the archive's files; "": none */

/* At the end of the tests. */
static inline void remove_traces(void)
{
    if (*traces_unpacked) archive_remove(traces_unpacked);
}

/* A trace by its name in data/validation/traces.csv: a file, or ARCHIVE!MEMBER. */
static inline const sc_profiled *read_trace(const char *name)
{
    char path[1024];
    sc_text notes;
    sc_profiled *m = SC_NEW(&arena, sc_profiled);
    const char *bang = strchr(name, '!');
    assert_non_null(m);
    sc_text_init(&notes);
    snprintf(path, sizeof path, "%s/%.*s", traces_folder(),
             bang ? (int)(bang - name) : (int)strlen(name), name);
    if (bang) {
        const char *base = strrchr(name, '/');
        if (!*traces_unpacked) {
            const char *tmp = getenv("TMPDIR");
            snprintf(traces_unpacked, sizeof traces_unpacked,
                     "%s/stepcast-traces-XXXXXX", tmp ? tmp : "/tmp");
            assert_non_null(mkdtemp(traces_unpacked));
            assert_true(archive_unpack(path, traces_unpacked, &err));
        }
        snprintf(path, sizeof path, "%s/%s", traces_unpacked, base + 1);
    }
    sc_profiled_read(sc_strdup(&arena, path), &arena, &notes, m, &err);
    no_error();
    sc_text_free(&notes);
    return m;
}

static inline sc_replay_model *prepare(const sc_profiled *const *m, uint32_t n)
{
    sc_replay_model *out;
    sc_text notes;
    sc_text_init(&notes);
    sc_replay_prepare(m, n, &(sc_replay_steps){0, UINT32_MAX}, &arena, &notes,
                      &out, &err);
    no_error();
    sc_text_free(&notes);
    return out;
}

static inline sc_replay_result run_with(const sc_replay_model *m,
                                        const sc_replay_change *c)
{
    sc_replay_result r;
    sc_replay_change none;
    sc_replay_change_init(&none);
    sc_replay_run(m, c ? c : &none, &arena, &r, &err);
    no_error();
    return r;
}

/* The eight ranks of one DLRM job. */
static inline sc_replay_model *dlrm_job(const sc_csv *facts)
{
    const sc_profiled *m[8];
    uint32_t n = 0;
    int col = sc_csv_col(facts, "file");
    for (uint32_t i = 0; i < facts->n_rows && n < 8; i++) {
        const char *name = sc_csv_get(facts, i, col);
        if (strncmp(name, DLRM, strlen(DLRM)) == 0) m[n++] = read_trace(name);
    }
    assert_int_equal(n, 8);
    return prepare(m, 8);
}

static inline sc_csv trace_facts(void)
{
    sc_csv out;
    char *text;
    size_t len;
    sc_file_read("data/validation/traces.csv", (size_t)1 << 20, &arena, &text,
                 &len, &err);
    no_error();
    sc_csv_parse(text, len, "traces.csv", &arena, &out, &err);
    no_error();
    return out;
}

#endif
