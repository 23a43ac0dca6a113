/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_measured.c - measured traces as a workload: they are replayed without
 * changes, and the replay is what `stepcast replay --emit-chakra` writes. */
#include "base/stream.h"
#include "cli/replay.h"
#include "cli/simulate.h"
#include "trace/trace_et.h"

#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#define PS_PER_US 1000000

/* ---- what a file is ------------------------------------------------------ */

typedef enum content { OTHER, PROFILE, REPORT, EXECUTION, CHAKRA } content;

static bool holds(const char *text, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= len; i++)
        if (memcmp(text + i, word, n) == 0) return true;
    return false;
}

static bool holds_one(const char *text, size_t len, const char *const *words)
{
    for (; *words; words++)
        if (holds(text, len, *words)) return true;
    return false;
}

/* Profilers write the events or one of the other members first. */
static content content_of_begin(const char *text, size_t len)
{
    static const char *const profile[] = {"\"traceEvents\"",
                                          "\"schemaVersion\"",
                                          "\"deviceProperties\"",
                                          "\"distributedInfo\"",
                                          "\"ph\"",
                                          NULL};
    static const char *const chakra[] = {"\"data_deps\"",
                                         "\"dataDeps\"",
                                         "\"ctrl_deps\"",
                                         "\"ctrlDeps\"",
                                         "\"duration_micros\"",
                                         "\"durationMicros\"",
                                         NULL};
    size_t blanks = 0;
    if (len >= 15 && memcmp(text, "SQLite format 3", 15) == 0) return REPORT;
    while (blanks < len && strchr(" \t\r\n", text[blanks])) blanks++;
    if (blanks == len || !strchr("{[", text[blanks])) return OTHER;
    if (holds_one(text, len, profile)) return PROFILE;
    return holds_one(text, len, chakra) ? CHAKRA : OTHER;
}

static bool is_chakra_name(const char *path)
{
    static const char *const ends[] = {".et", ".et.gz", ".et.zst"};
    size_t len = strlen(path);
    for (size_t i = 0; i < SC_COUNT(ends); i++) {
        size_t n = strlen(ends[i]);
        if (len > n && strcmp(path + len - n, ends[i]) == 0) return true;
    }
    return false;
}

/* A file that can't be read is a PROFILE, whose reader reports the error. */
static content look(const char *path)
{
    char begin[1 << 16];
    size_t len = 0, n = 1;
    sc_stream *in;
    struct stat st;
    sc_err err;
    sc_err_init(&err);
    if (is_chakra_name(path)) return CHAKRA;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return OTHER;
    if (sc_et_file_look(path).is) return EXECUTION;
    sc_status s = sc_stream_open(path, &in, &err);
    if (s != SC_OK) return PROFILE;
    while (s == SC_OK && n > 0 && len < sizeof begin) {
        s = sc_stream_read(in, begin + len, sizeof begin - len, &n, &err);
        if (s == SC_OK) len += n;
    }
    sc_stream_close(in);
    return s == SC_OK ? content_of_begin(begin, len) : PROFILE;
}

/* ---- the files of a workload --------------------------------------------- */

typedef struct finder {
    cli *c;
    const char *text; /* as given */
    bool folder;
    const char **file; /* [n] */
    uint32_t n;
    uint32_t of[CHAKRA + 1]; /* how many of each kind */
    sc_text *warnings;
} finder;

static sc_status wrong(const finder *f, sc_code code, const char *hint,
                       const char *what)
{
    return sc_error(f->c->err, SC_EINPUT, code,
                    sc_pos_option(f->c->arena, "--workload", f->text), hint,
                    "%s", what);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A pattern that only `path` matches, with `end` behind it. */
static const char *pattern_of(sc_arena *a, const char *path, const char *end)
{
    size_t n = strlen(path), k = 0;
    char *out = SC_RAW_N(a, char, 2 * n + strlen(end) + 1);
    if (!out) return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strchr("*?[\\", path[i])) out[k++] = '\\';
        out[k++] = path[i];
    }
    memcpy(out + k, end, strlen(end) + 1);
    return out;
}

static sc_status add_file(finder *f, const char *path)
{
    content kind;
    if (is_folder(path)) return SC_OK;
    kind = look(path);
    if (kind == OTHER && f->folder) {
        sc_text_add(f->warnings,
                    "%s: warning: this is no measured trace and is not read\n",
                    path);
        return SC_OK;
    }
    f->of[kind]++;
    f->file[f->n] = sc_strdup(f->c->arena, path);
    return f->file[f->n++] ? SC_OK : sc_error_nomem(f->c->err);
}

static sc_status add_files(finder *f, const glob_t *g)
{
    f->file = SC_NEW_N(f->c->arena, const char *, g->gl_pathc);
    if (!f->file) return sc_error_nomem(f->c->err);
    for (size_t i = 0; i < g->gl_pathc; i++)
        SC_TRY(add_file(f, g->gl_pathv[i]));
    return SC_OK;
}

/* One kind of files only. Execution traces belong to profiles. */
static sc_status check(const finder *f)
{
    if (f->n == 0)
        return wrong(f, SC_C_MISSING,
                     "name a folder or a quoted pattern of traces of "
                     "PyTorch's profiler, or a database of Nsight Systems",
                     f->folder ? "the folder has no measured traces"
                               : "no file matches");
    if (f->of[CHAKRA] == f->n)
        return wrong(f, SC_C_UNSUPPORTED,
                     "of traces PREFIX.RANK.et (or .json) write the PREFIX",
                     "these are Chakra traces");
    if (f->of[CHAKRA])
        return wrong(f, SC_C_CONFLICT, "keep them in folders of their own",
                     "these are Chakra traces and measured ones");
    if (f->of[REPORT] && f->of[REPORT] < f->n)
        return wrong(f, SC_C_CONFLICT,
                     "a database has all ranks of a node; leave the others out",
                     "these are databases of Nsight Systems and other files");
    return SC_OK;
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static sc_status find(finder *f)
{
    glob_t g;
    f->folder = is_folder(f->text);
    const char *pattern = f->text;
    if (exists(f->text))
        pattern = pattern_of(f->c->arena, f->text, f->folder ? "/*" : "");
    if (!pattern) return sc_error_nomem(f->c->err);
    int failed = glob(pattern, 0, NULL, &g);
    if (failed == GLOB_NOSPACE) return sc_error_nomem(f->c->err);
    sc_status s = failed ? SC_OK : add_files(f, &g);
    if (!failed) globfree(&g);
    SC_TRY(s);
    return check(f);
}

bool cli_simulate_is_measured(const char *text)
{
    if (sc_trace_exists(text, 0)) return false;
    return exists(text) || strpbrk(text, "*?[");
}

/* ---- the workload -------------------------------------------------------- */

/* As the Chakra trace has them where no more than microseconds are read. */
static void round_to_micros(sc_workload *w)
{
    for (uint32_t k = 0; k < w->n_classes; k++)
        for (uint32_t i = 0; i < w->classes[k].n_tasks; i++) {
            sc_time *d = &w->classes[k].duration[i];
            *d = (*d + PS_PER_US / 2) / PS_PER_US * PS_PER_US;
        }
}

static sc_status read_files(const finder *f, sc_text *warnings,
                            sc_text *assumptions, sc_workload *out)
{
    cli *c = f->c;
    replay_set set;
    sc_replay_change none;
    sc_replay_result result;
    const sc_replay_steps all = {0, UINT32_MAX};
    sc_replay_change_init(&none);
    SC_TRY(cli_replay_load(c, NULL, &all, f->file, f->n, warnings, assumptions,
                           &set));
    SC_TRY(sc_replay_run(set.model, &none, c->arena, &result, c->err));
    SC_TRY(sc_replay_workload(set.model, &result, c->arena, warnings, out,
                              c->err));
    out->jobs[0].name = f->text;
    return SC_OK;
}

/* Warnings of replays do not say that they are some. */
static void add_warnings(sc_text *out, const char *text, const char *lines)
{
    for (const char *at = lines; *at;) {
        int len = (int)strcspn(at, "\n");
        sc_text_add(out, "%s: warning: %.*s\n", text, len, at);
        at += len + (at[len] == '\n');
    }
}

sc_status cli_simulate_measured(cli *c, simulate_run *r, const char *text,
                                sc_workload *out)
{
    finder f = {.c = c, .text = text, .warnings = &r->warnings};
    sc_text warnings;
    SC_TRY(find(&f));
    sc_text_init(&warnings);
    sc_status s = read_files(&f, &warnings, &r->assumptions, out);
    add_warnings(&r->warnings, text, warnings.buf);
    sc_text_free(&warnings);
    SC_TRY(s);
    if (r->rules->durations_in_micros) round_to_micros(out);
    return SC_OK;
}
