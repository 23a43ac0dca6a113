/* SPDX-License-Identifier: Apache-2.0 */
/* replay_load.c - reads measured traces of several ranks. */
#include "cli/replay.h"

#include <stdlib.h>
#include <string.h>

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

static sc_status find_rank(cli *c, const char *pattern, sc_profiled *m,
                           uint32_t i, uint32_t n, sc_text *warnings,
                           sc_text *assumptions)
{
    const char *name = base_name(m->file);
    int64_t stated = m->rank;
    if (pattern) {
        if (rank_by_pattern(name, pattern, c->arena, &m->rank)) return SC_OK;
        return sc_error(c->err, SC_EINPUT, SC_C_REFERENCE, sc_pos_file(m->file),
                        "write --rank-pattern 'worker{rank}_*'",
                        "the name does not match the pattern of ranks");
    }
    if (stated >= 0) return SC_OK;
    if (rank_by_name(name, &m->rank)) {
        sc_text_add(assumptions, "%s is of rank %lld by its name\n", m->file,
                    (long long)m->rank);
        return SC_OK;
    }
    m->rank = i;
    if (n > 1)
        sc_text_add(warnings,
                    "%s does not state its rank: it is taken as rank %u, in "
                    "the order given\n",
                    m->file, i);
    return SC_OK;
}

/* Ranks of one file are numbered behind those before. */
static void number_ranks(sc_text *assumptions, const char *file, sc_profiled *m,
                         uint32_t n, uint32_t before)
{
    for (uint32_t i = 0; i < n; i++) m[i].rank = before + i;
    sc_text_add(assumptions,
                "%s has %u processes: they are ranks %u to %u, in the order of "
                "their devices\n",
                file, n, before, before + n - 1);
}

/* Adds the ranks of a file. */
static sc_status load_file(cli *c, const char *pattern, const char *file,
                           uint32_t n_files, sc_text *warnings,
                           sc_text *assumptions, replay_set *out)
{
    sc_text notes;
    sc_profiled *m = NULL;
    uint32_t n = 0;
    sc_text_init(&notes);
    sc_status s = sc_profiled_read_all(file, c->arena, &notes, &m, &n, c->err);
    for (const char *at = notes.buf; *at;) {
        int len = (int)strcspn(at, "\n");
        sc_text_add(warnings, "%s: %.*s\n", file, len, at);
        at += len + (at[len] == '\n');
    }
    sc_text_free(&notes);
    SC_TRY(s);
    if (n > 1)
        number_ranks(assumptions, file, m, n, out->n);
    else
        SC_TRY(
            find_rank(c, pattern, m, out->n, n_files, warnings, assumptions));
    for (uint32_t i = 0; i < n; i++) {
        const sc_profiled **grown = sc_grow(c->arena, (void *)out->m, out->n,
                                            &out->cap, 8, sizeof *grown);
        if (!grown) return sc_error_nomem(c->err);
        out->m = grown;
        out->m[out->n++] = &m[i];
        out->n_events +=
            m[i].n_spans + m[i].n_python + m[i].n_ignored + m[i].n_broken;
    }
    return SC_OK;
}

sc_status cli_replay_load(cli *c, const char *pattern,
                          const sc_replay_steps *steps,
                          const char *const *files, uint32_t n,
                          sc_text *warnings, sc_text *assumptions,
                          replay_set *out)
{
    sc_status first = SC_OK;
    *out = (replay_set){.n = 0};
    for (uint32_t i = 0; i < n; i++) {
        sc_status s =
            load_file(c, pattern, files[i], n, warnings, assumptions, out);
        if (s != SC_OK && first == SC_OK) first = s;
    }
    SC_TRY(first);
    return sc_replay_prepare(out->m, out->n, steps, c->arena, warnings,
                             &out->model, c->err);
}
