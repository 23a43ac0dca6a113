/* SPDX-License-Identifier: Apache-2.0 */
/* saved.c - writes, reads and joins what searches have found so far. */
#include "search/run.h"

#include <stdio.h>
#include <string.h>

static const char magic[8] = "SCSRCH\n";

enum { VERSION = 1, RUNS_MOST = 1 << 20, PARTS_MOST = 1 << 16 };

uint64_t search_hash(const sc_search_jobs *jobs, const sc_search_options *o)
{
    sc_bytes b = {0};
    for (uint32_t i = 0; i < jobs->n; i++) {
        const sc_search_axis *x = &jobs->option[i].axis;
        sc_bytes_text(&b, jobs->option[i].key->name);
        sc_bytes_uint(&b, x->n);
        for (uint32_t k = 0; k < x->n; k++)
            sc_bytes_uint(&b, (uint64_t)x->value[k]);
    }
    sc_bytes_uint(&b, sc_search_space_points(jobs->space));
    sc_bytes_uint(&b, o->top);
    sc_bytes_uint(&b, o->kinds);
    sc_bytes_uint(&b, o->exhaustive);
    sc_bytes_uint(&b, o->only_best);
    sc_bytes_uint(&b, (uint64_t)o->goal);
    sc_bytes_double(&b, o->keep_free);
    sc_bytes_double(&b, o->slowest);
    uint64_t hash = b.failed ? 0 : sc_hash(b.buf, b.len, 0);
    sc_bytes_free(&b);
    return hash;
}

void sc_search_saved_init(sc_search_saved *s, const char *identity, sc_arena *a)
{
    *s = (sc_search_saved){
        .identity = identity, .shard = 1, .shards = 1, .a = a};
}

void sc_search_saved_free(sc_search_saved *s)
{
    for (uint32_t i = 0; i < s->n; i++) sc_bytes_free(&s->run[i].tally);
    s->n = 0;
}

bool sc_search_saved_done(const sc_search_saved *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->run[i].done < s->run[i].tasks) return false;
    return s->n > 0;
}

/* ---- the file --------------------------------------------------------------- */

void sc_search_saved_write(const sc_search_saved *s, sc_bytes *out)
{
    size_t from = out->len;
    sc_bytes_add(out, magic, sizeof magic);
    sc_bytes_uint(out, VERSION);
    sc_bytes_text(out, s->identity);
    sc_bytes_uint(out, s->shard);
    sc_bytes_uint(out, s->shards);
    sc_bytes_uint(out, s->kept);
    sc_bytes_uint(out, s->kept_rows);
    sc_bytes_uint(out, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        const sc_search_saved_run *run = &s->run[i];
        sc_bytes_uint(out, run->space);
        sc_bytes_uint(out, run->done);
        sc_bytes_uint(out, run->tasks);
        sc_bytes_uint(out, run->tally.len);
        sc_bytes_add(out, run->tally.buf, run->tally.len);
    }
    sc_bytes_seal(out, from);
}

static void read_run(sc_bytes_in *in, sc_search_saved_run *run)
{
    size_t at = in->at;
    run->space = sc_bytes_get_uint(in);
    run->done = (uint32_t)sc_bytes_get_most(in, UINT32_MAX);
    run->tasks = (uint32_t)sc_bytes_get_most(in, UINT32_MAX);
    uint64_t len = sc_bytes_get_uint(in);
    const uint8_t *tally = sc_bytes_take(in, len);
    if (run->done > run->tasks) sc_bytes_reject(in, at);
    if (tally) sc_bytes_add(&run->tally, tally, (size_t)len);
    if (run->tally.failed) sc_bytes_reject(in, at);
}

static void read_runs(sc_bytes_in *in, sc_search_saved *s)
{
    uint64_t n = sc_bytes_get_most(in, RUNS_MOST);
    if (n > in->n - in->at) sc_bytes_reject(in, in->at);
    if (in->bad) return;
    s->run = SC_NEW_N(s->a, sc_search_saved_run, (size_t)n + 1);
    s->cap = s->run ? (uint32_t)n + 1 : 0;
    for (uint64_t i = 0; s->run && i < n && !in->bad; i++)
        read_run(in, &s->run[s->n++]);
}

static sc_status damaged(const char *file, size_t at, const char *what,
                         sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_SYNTAX, sc_pos_byte(file, at),
                    "give a file that `stepcast search --save FILE` "
                    "wrote, or begin again without it",
                    "%s", what);
}

sc_status sc_search_saved_read(const void *data, size_t len, const char *file,
                               sc_arena *a, sc_search_saved *out, sc_err *err)
{
    sc_search_saved s = {.file = file, .a = a};
    sc_bytes_in in = sc_bytes_from(data, len);
    const uint8_t *head = sc_bytes_take(&in, sizeof magic);
    if (!head || memcmp(head, magic, sizeof magic) != 0)
        return damaged(file, 0, "the file is no checkpoint of a search", err);
    if (sc_bytes_get_uint(&in) != VERSION)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_byte(file, sizeof magic),
                        "begin again without --resume",
                        "the checkpoint is of another version of stepcast");
    s.identity = sc_bytes_get_text(&in, a);
    s.shard = (uint32_t)sc_bytes_get_most(&in, PARTS_MOST);
    size_t at = in.at;
    s.shards = (uint32_t)sc_bytes_get_most(&in, PARTS_MOST);
    if (s.shard == 0 || s.shard > s.shards) sc_bytes_reject(&in, at);
    s.kept = sc_bytes_get_uint(&in);
    s.kept_rows = sc_bytes_get_uint(&in);
    read_runs(&in, &s);
    at = in.bad ? in.bad_at : in.at;
    if (in.bad || !sc_bytes_sealed(&in, 0) || in.at != in.n) {
        sc_search_saved_free(&s);
        return damaged(file, at, "the checkpoint is damaged or cut off", err);
    }
    *out = s;
    return SC_OK;
}

/* ---- identity ------------------------------------------------------------- */

/* Columns of a line that an error shows. */
static int shown(const char *line)
{
    size_t n = strcspn(line, "\n");
    return n < 80 ? (int)n : 80;
}

/* The first line of `x` that `y` lacks; NULL: it has all. */
static const char *missing(const char *x, const char *y)
{
    for (; *x; x += strcspn(x, "\n") + 1) {
        size_t n = strcspn(x, "\n");
        const char *at = y;
        while (*at && (strcspn(at, "\n") != n || memcmp(at, x, n) != 0))
            at += strcspn(at, "\n") + (at[strcspn(at, "\n")] != 0);
        if (!*at) return x;
        if (!x[n]) break;
    }
    return NULL;
}

sc_status sc_search_saved_check(const sc_search_saved *s, const char *identity,
                                sc_err *err)
{
    const char *theirs = missing(s->identity, identity);
    const char *ours = missing(identity, s->identity);
    bool both = theirs && ours;
    if (!theirs && !ours) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(s->file),
                    "repeat its options, or begin again without it",
                    "the file is of another search, with%s %.*s%s%.*s",
                    theirs ? "" : "out", shown(theirs ? theirs : ours),
                    theirs ? theirs : ours, both ? " instead of " : "",
                    both ? shown(ours) : 0, both ? ours : "");
}

/* ---- parts ------------------------------------------------------------------ */

static sc_status check_part(const sc_search_saved *p, uint32_t shards,
                            uint64_t hash, sc_err *err)
{
    sc_pos pos = sc_pos_file(p->file);
    if (p->shards != shards)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                        "give the parts of one search",
                        "it is one of %u parts, and another file one of %u",
                        p->shards, shards);
    if (p->n != 1 || p->run[0].space != hash)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                        "repeat its options", "the file is of another search");
    if (p->run[0].done == p->run[0].tasks) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_MISSING, pos,
                    "continue it with --resume",
                    "part %u of %u is not done: %u of %u meshes", p->shard,
                    shards, p->run[0].done, p->run[0].tasks);
}

static sc_status check_all(const sc_search_saved *part, uint32_t n,
                           uint64_t hash, sc_err *err)
{
    uint32_t shards = part[0].shards;
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < n; i++) {
        sc_status s = check_part(&part[i], shards, hash, err);
        if (first == SC_OK) first = s;
        for (uint32_t k = 0; k < i; k++)
            if (part[k].shard == part[i].shard)
                return sc_error(err, SC_EINPUT, SC_C_DUPLICATE,
                                sc_pos_file(part[i].file),
                                "give each part once", "part %u is given twice",
                                part[i].shard);
    }
    for (uint32_t want = 1; want <= shards && first == SC_OK; want++) {
        uint32_t i = 0;
        while (i < n && part[i].shard != want) i++;
        if (i == n)
            first = sc_error(err, SC_EINPUT, SC_C_MISSING,
                             sc_pos_file("--merge"), "give the files of all",
                             "part %u of %u is missing", want, shards);
    }
    return first;
}

sc_status sc_search_saved_join(const sc_search_jobs *jobs,
                               const sc_search_options *o,
                               const sc_search_saved *part, uint32_t n,
                               sc_arena *a, sc_search_saved *out, sc_err *err)
{
    search_tally all, one;
    sc_search_saved_run *run = SC_NEW(a, sc_search_saved_run);
    uint64_t hash = search_hash(jobs, o), tasks = 0;
    if (!run || !search_tally_init(&all, jobs, o, a) ||
        !search_tally_init(&one, jobs, o, a))
        return sc_error_nomem(err);
    SC_TRY(check_all(part, n, hash, err));
    for (uint32_t i = 0; i < n; i++) {
        const sc_bytes *b = &part[i].run[0].tally;
        sc_bytes_in in = sc_bytes_from(b->buf, b->len);
        if (!search_tally_read(&one, &in) || in.at != in.n)
            return damaged(part[i].file, 0, "the part is damaged", err);
        search_tally_join(&all, &one);
        tasks += part[i].run[0].tasks;
    }
    sc_search_saved_init(out, part[0].identity, a);
    out->run = run;
    out->n = out->cap = 1;
    run->space = hash;
    run->done = run->tasks = (uint32_t)tasks;
    search_tally_write(&all, &run->tally);
    return all.failed || run->tally.failed ? sc_error_nomem(err) : SC_OK;
}
