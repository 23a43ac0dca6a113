/* SPDX-License-Identifier: Apache-2.0 */
/* replay_load.c - reads measured traces of several ranks, and the execution traces
 * beside them. */
#include "cli/replay.h"
#include "trace/trace_et.h"

#include <stdlib.h>
#include <string.h>

/* ---- ranks --------------------------------------------------------------- */

bool cli_whole(const char *text, char **end, uint32_t *out)
{
    if (*text < '0' || *text > '9') return false;
    unsigned long v = strtoul(text, end, 10);
    *out = (uint32_t)v;
    return v < UINT32_MAX;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The number where `pattern` has {rank}; false if the name does not match. */
static bool rank_by_pattern(const char *name, const char *pattern, sc_arena *a,
                            int64_t *out)
{
    const char *hole = strstr(pattern, "{rank}");
    if (!hole) return false;
    for (const char *p = name; *p; p++) {
        char *end;
        uint32_t rank;
        if (!cli_whole(p, &end, &rank)) continue;
        if (p > name && p[-1] >= '0' && p[-1] <= '9') continue;
        char *full = sc_sprintf(a, "%.*s%.*s%s", (int)(hole - pattern), pattern,
                                (int)(end - p), p, hole + 6);
        if (!full || !sc_glob(full, name)) continue;
        *out = rank;
        return true;
    }
    return false;
}

/* The number behind "rank" or "worker". */
static bool rank_by_name(const char *name, int64_t *out)
{
    static const char *const words[] = {"rank", "worker"};
    for (size_t i = 0; i < SC_COUNT(words); i++) {
        const char *p = name;
        while ((p = strstr(p, words[i]))) {
            char *end;
            uint32_t rank;
            p += strlen(words[i]);
            const char *digits = p + (*p == '-' || *p == '_' || *p == '.');
            if (!cli_whole(digits, &end, &rank)) continue;
            *out = rank;
            return true;
        }
    }
    return false;
}

typedef struct loader {
    cli *c;
    const char *pattern;
    sc_text *warnings, *assumptions;
    sc_profiled **m; /* [n] */
    uint32_t n, cap, n_files;
    uint64_t n_events;
    sc_et_file *et;     /* [n_ets] */
    const char **added; /* [n] the execution trace of a rank; NULL */
    uint32_t n_ets;
    sc_et_linked sum;
    bool ordered; /* some were linked by the order of calls */
} loader;

static sc_status find_rank(const loader *l, sc_profiled *m)
{
    const char *name = base_name(m->file);
    int64_t stated = m->rank;
    if (l->pattern) {
        if (rank_by_pattern(name, l->pattern, l->c->arena, &m->rank))
            return SC_OK;
        return sc_error(l->c->err, SC_EINPUT, SC_C_REFERENCE,
                        sc_pos_file(m->file),
                        "write --rank-pattern 'worker{rank}_*'",
                        "the name does not match the pattern of ranks");
    }
    if (stated >= 0) return SC_OK;
    if (rank_by_name(name, &m->rank)) {
        sc_text_add(l->assumptions, "%s is of rank %lld by its name\n", m->file,
                    (long long)m->rank);
        return SC_OK;
    }
    m->rank = l->n;
    if (l->n_files - l->n_ets > 1)
        sc_text_add(l->warnings,
                    "%s does not state its rank: it is taken as rank %u, in "
                    "the order given\n",
                    m->file, l->n);
    return SC_OK;
}

/* Ranks of one file are numbered behind those before. */
static void number_ranks(const loader *l, const char *file, sc_profiled *m,
                         uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) m[i].rank = l->n + i;
    sc_text_add(l->assumptions,
                "%s has %u processes: they are ranks %u to %u, in the order of "
                "their devices\n",
                file, n, l->n, l->n + n - 1);
}

/* ---- profiles ------------------------------------------------------------ */

static sc_status add_rank(loader *l, sc_profiled *m)
{
    sc_profiled **grown =
        sc_grow(l->c->arena, (void *)l->m, l->n, &l->cap, 8, sizeof *grown);
    if (!grown) return sc_error_nomem(l->c->err);
    l->m = grown;
    l->m[l->n++] = m;
    l->n_events += m->n_spans + m->n_python + m->n_ignored + m->n_broken;
    return SC_OK;
}

/* Adds the ranks of a file. */
static sc_status load_file(loader *l, const char *file)
{
    sc_text notes;
    sc_profiled *m = NULL;
    uint32_t n = 0;
    cli *c = l->c;
    sc_text_init(&notes);
    sc_status s = sc_profiled_read_all(file, c->arena, &notes, &m, &n, c->err);
    for (const char *at = notes.buf; *at;) {
        int len = (int)strcspn(at, "\n");
        sc_text_add(l->warnings, "%s: %.*s\n", file, len, at);
        at += len + (at[len] == '\n');
    }
    sc_text_free(&notes);
    SC_TRY(s);
    if (n > 1)
        number_ranks(l, file, m, n);
    else
        SC_TRY(find_rank(l, m));
    for (uint32_t i = 0; i < n; i++) SC_TRY(add_rank(l, &m[i]));
    return SC_OK;
}

/* ---- execution traces ---------------------------------------------------- */

/* The last number in the name of a file. */
static bool last_number(const char *name, int64_t *out)
{
    bool found = false;
    for (const char *p = name; *p;) {
        char *end;
        uint32_t v;
        if (!cli_whole(p, &end, &v)) {
            p += *p >= '0' && *p <= '9' ? strspn(p, "0123456789") : 1;
            continue;
        }
        *out = v;
        found = true;
        p = end;
    }
    return found;
}

/* The rank of an execution trace, which only its name tells; -1. */
static int64_t rank_of_et(const loader *l, const char *path)
{
    const char *name = base_name(path);
    int64_t rank = -1;
    if (l->pattern && rank_by_pattern(name, l->pattern, l->c->arena, &rank))
        return rank;
    if (rank_by_name(name, &rank) || last_number(name, &rank)) return rank;
    return -1;
}

/* The rank of the process that wrote an execution trace. If several have its
 * number, which are on different hosts, or none has, it is that of its name; one
 * without a rank belongs to the only profile. UINT32_MAX: none. */
static uint32_t owner(const loader *l, uint32_t et)
{
    const sc_et_file *f = &l->et[et];
    int64_t rank = rank_of_et(l, f->path);
    uint32_t same = 0, found = UINT32_MAX, named = UINT32_MAX;
    for (uint32_t i = 0; i < l->n; i++) {
        bool is = f->pid >= 0 && sc_profiled_has_process(l->m[i], f->pid);
        same += is;
        if (is) found = i;
        if (rank >= 0 && l->m[i]->rank == rank) named = i;
    }
    if (same == 1) return found;
    if (rank < 0 && l->n == 1 && l->n_ets == 1) named = 0;
    if (same == 0 && f->pid >= 0 && named != UINT32_MAX)
        sc_text_add(l->warnings,
                    "%s: the profile of rank %lld has no process %lld, which "
                    "wrote this execution trace\n",
                    f->path, (long long)l->m[named]->rank, (long long)f->pid);
    return named;
}

static void say_linked(loader *l, const char *path, const sc_profiled *m,
                       const sc_et_linked *x)
{
    l->sum.nodes += x->nodes;
    l->sum.linked += x->linked;
    l->sum.repeats += x->repeats;
    l->sum.shaped += x->shaped;
    l->sum.comms += x->comms;
    l->ordered |= !x->by_record;
    if (x->linked < x->nodes)
        sc_text_add(l->warnings,
                    "%s: %u of %u operators are linked with the trace of rank "
                    "%lld; the others add nothing\n",
                    path, x->linked, x->nodes, (long long)m->rank);
}

static sc_status add_et(loader *l, uint32_t et)
{
    const char *path = l->et[et].path;
    uint32_t i = owner(l, et);
    sc_et_linked linked;
    if (i == UINT32_MAX)
        return sc_error(l->c->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(path),
                        "give the Kineto trace of its rank, too; `stepcast "
                        "predict` takes it as a model",
                        "an execution trace has no times, and no profile of "
                        "its process or rank is given");
    if (l->added[i])
        return sc_error(l->c->err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_file(path),
                        "give one execution trace for each rank",
                        "rank %lld already has the execution trace %.100s",
                        (long long)l->m[i]->rank, l->added[i]);
    l->added[i] = path;
    SC_TRY(sc_et_link(path, l->m[i], l->c->arena, &linked, l->c->err));
    say_linked(l, path, l->m[i], &linked);
    return SC_OK;
}

static sc_status add_ets(loader *l)
{
    sc_status first = SC_OK;
    l->added = SC_NEW_N(l->c->arena, const char *, l->n);
    if (!l->added) return sc_error_nomem(l->c->err);
    for (uint32_t i = 0; i < l->n_ets; i++) {
        sc_status s = add_et(l, i);
        if (s != SC_OK && first == SC_OK) first = s;
    }
    SC_TRY(first);
    if (l->n_ets == 0) return SC_OK;
    sc_text_add(l->assumptions,
                "execution traces: %u of %u operators are linked by %s; %u "
                "operators of the profile have shapes from there",
                l->sum.linked, l->sum.nodes,
                l->ordered ? "the order of calls" : "their numbers",
                l->sum.shaped);
    if (l->sum.comms)
        sc_text_add(l->assumptions, ", and %u collectives their sizes",
                    l->sum.comms);
    sc_text_add(l->assumptions, "\n");
    if (l->sum.repeats)
        sc_text_add(l->assumptions,
                    "%u operators of other steps, which call the same in the "
                    "same order as the step of the execution trace, have its "
                    "shapes\n",
                    l->sum.repeats);
    return SC_OK;
}

/* ---- the whole ----------------------------------------------------------- */

/* Which files are execution traces is known before ranks are numbered, because
 * these have none. */
static sc_status load_files(loader *l, const char *const *files)
{
    sc_status first = SC_OK;
    l->et = SC_NEW_N(l->c->arena, sc_et_file, (size_t)l->n_files + 1);
    if (!l->et) return sc_error_nomem(l->c->err);
    for (uint32_t i = 0; i < l->n_files; i++) {
        l->et[l->n_ets] = sc_et_file_look(files[i]);
        l->n_ets += l->et[l->n_ets].is;
    }
    for (uint32_t i = 0, et = 0; i < l->n_files; i++) {
        if (et < l->n_ets && l->et[et].path == files[i]) {
            et++;
            continue;
        }
        sc_status s = load_file(l, files[i]);
        if (s != SC_OK && first == SC_OK) first = s;
    }
    return first;
}

sc_status cli_replay_load(cli *c, const char *pattern,
                          const sc_replay_steps *steps,
                          const char *const *files, uint32_t n,
                          sc_text *warnings, sc_text *assumptions,
                          replay_set *out)
{
    loader l = {.c = c,
                .pattern = pattern,
                .warnings = warnings,
                .assumptions = assumptions,
                .n_files = n};
    SC_TRY(load_files(&l, files));
    SC_TRY(add_ets(&l));
    *out = (replay_set){
        .m = (const sc_profiled *const *)l.m, .n = l.n, .n_events = l.n_events};
    return sc_replay_prepare(out->m, out->n, steps, c->arena, warnings,
                             &out->model, c->err);
}

uint32_t cli_replay_job(const char *const *files)
{
    uint32_t n = 1;
    while (files[n] && sc_et_file_look(files[n]).is) n++;
    return n;
}
