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

sc_status cli_replay_load(cli *c, const char *pattern,
                          const sc_replay_steps *steps,
                          const char *const *files, uint32_t n,
                          sc_text *warnings, sc_text *assumptions,
                          replay_set *out)
{
    sc_status first = SC_OK;
    *out = (replay_set){.n = 0};
    out->m = SC_NEW_N(c->arena, const sc_profiled *, n);
    if (!out->m) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < n; i++) {
        sc_text notes;
        sc_profiled *m = SC_NEW(c->arena, sc_profiled);
        if (!m) return sc_error_nomem(c->err);
        sc_text_init(&notes);
        sc_status s = sc_profiled_read(files[i], c->arena, &notes, m, c->err);
        for (const char *at = notes.buf; *at;) {
            int len = (int)strcspn(at, "\n");
            sc_text_add(warnings, "%s: %.*s\n", files[i], len, at);
            at += len + (at[len] == '\n');
        }
        sc_text_free(&notes);
        if (s == SC_OK)
            s = find_rank(c, pattern, m, i, n, warnings, assumptions);
        if (s != SC_OK && first == SC_OK) first = s;
        out->m[out->n++] = m;
        out->n_events += m->n_spans + m->n_python + m->n_ignored + m->n_broken;
    }
    SC_TRY(first);
    return sc_replay_prepare(out->m, n, steps, c->arena, warnings, &out->model,
                             c->err);
}
