/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - the files of all ranks, folded into classes.
 *
 * Every file goes the same way: bytes, raw nodes, canonical form, class.  Only
 * the last step keeps anything: the nodes of a class that is new, and what its
 * slots mean for the rank.
 */
#include "trace/comms.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)UINT32_MAX) /* positions of bytes have 32 bits */

/* Suffixes in the order in which they are looked for. */
static const struct form {
    const char *suffix;
    bool text;
    sc_status (*decode)(const char *buf, size_t len, raw_trace *t);
} forms[] = {
    {".et", false, chakra_binary},
    {".et.zst", false, chakra_binary},
    {".et.gz", false, chakra_binary},
    {".json", true, chakra_json},
};

typedef struct session {
    sc_arena *a;        /* the workload's */
    sc_arena keep, tmp; /* of the whole read, of one file */
    sc_err *err;
    raw_trace raw;
    canon canon;
    comms comms;
    sc_map index; /* classes */
    sc_task_list *cls;
    uint32_t cap_cls;
    uint32_t *latest; /* [classes] the last rank of each */
    uint32_t cap_latest;
    sc_rank_trace *ranks; /* [n_ranks] */
    bool idle;            /* some have no file, their class is IDLE */
    sc_text *warnings;
    bool replayed; /* was warned of */
} session;

#define IDLE UINT32_MAX

/* A file may define a group "0" that has only some of the ranks. */
static bool zero_is_world(const sc_trace_opts *o, uint32_t n_ranks)
{
    if (o->zero_is_world) return true;
    for (uint32_t i = 0; i < o->n_groups; i++)
        if (strcmp(o->groups[i].name, "0") == 0)
            return o->groups[i].n == n_ranks;
    return true;
}

static sc_status begin(session *s, uint32_t n_ranks, uint32_t resolved,
                       const sc_trace_opts *o, sc_arena *a, sc_err *err)
{
    static const sc_trace_opts none = {.names = false};
    if (o == NULL) o = &none;
    memset(s, 0, sizeof *s);
    sc_arena_init(&s->keep, 0);
    sc_arena_init(&s->tmp, 0);
    s->a = a;
    s->err = err;
    s->warnings = o->warnings;
    s->raw.keep = s->canon.keep = s->comms.keep = &s->keep;
    s->raw.tmp = s->canon.tmp = &s->tmp;
    s->raw.tensors = s->canon.tensors = o->tensors;
    s->canon.names = o->names;
    s->canon.ids = o->ids;
    s->canon.micros = o->micros;
    s->canon.n_ranks = resolved;
    s->canon.zero_is_world = zero_is_world(o, n_ranks);
    s->canon.group_names.a = s->canon.tensor_names.a = &s->keep;
    s->comms.a = a;
    s->comms.names = &s->canon.group_names;
    s->comms.n_ranks = resolved;
    s->ranks = SC_NEW_N(a, sc_rank_trace, n_ranks);
    if (s->ranks == NULL) return sc_error_nomem(err);
    return comms_init(&s->comms, o->groups, o->n_groups, err);
}

static void end(session *s)
{
    sc_arena_free(&s->keep);
    sc_arena_free(&s->tmp);
}

/* ---- one rank */

static sc_status new_class(session *s, uint64_t hash, uint32_t *cls)
{
    SC_TRY(canon_cycle(&s->canon, &s->raw));
    uint32_t n = s->index.n;
    sc_task_list *v = sc_grow(s->a, s->cls, n, &s->cap_cls, 4, sizeof *v);
    uint32_t *latest =
        sc_grow(&s->keep, s->latest, n, &s->cap_latest, 16, sizeof *latest);
    if (v == NULL || latest == NULL) return sc_error_nomem(s->err);
    s->cls = v;
    s->latest = latest;
    const sc_task_list *like = n > 0 ? &v[n - 1] : NULL;
    SC_TRY(canon_copy(&s->canon, s->a, like, &v[n], s->err));
    if (!sc_map_add(&s->index, &s->keep, hash, n))
        return sc_error_nomem(s->err);
    *cls = n;
    latest[n] = SC_MAP_END;
    return SC_OK;
}

static bool is_of(const session *s, uint32_t i)
{
    const canon *c = &s->canon;
    return canon_equal(&s->cls[i], &c->list, c->ids) &&
           (!c->ids || !c->names || canon_same_names(c, &s->cls[i]));
}

static sc_status find_class(session *s, uint32_t *cls)
{
    const sc_task_list *l = &s->canon.list;
    uint64_t hash = canon_hash(l, s->canon.ids);
    uint32_t at = 0;
    do *cls = sc_map_next(&s->index, hash, &at);
    while (*cls != SC_MAP_END && !is_of(s, *cls));
    return *cls == SC_MAP_END ? new_class(s, hash, cls) : SC_OK;
}

/* A table of the rank, or the equal one of the last rank of its class. */
static const uint32_t *table(session *s, const uint32_t *v, uint32_t n,
                             const uint32_t *other)
{
    if (other && (n == 0 || memcmp(v, other, n * sizeof *v) == 0)) return other;
    uint32_t *copy = SC_NEW_N(s->a, uint32_t, n);
    if (copy != NULL && n > 0) memcpy(copy, v, n * sizeof *copy);
    return copy;
}

static sc_status rank_of_class(session *s, uint32_t rank)
{
    static const sc_rank_trace none = {.cls = 0};
    const canon *c = &s->canon;
    uint32_t *groups = SC_NEW_N(&s->tmp, uint32_t, c->list.n_groups);
    if (groups == NULL) return sc_error_nomem(s->err);
    SC_TRY(comms_resolve(&s->comms, c, &s->raw, groups));
    sc_rank_trace *r = &s->ranks[rank];
    SC_TRY(find_class(s, &r->cls));
    uint32_t latest = s->latest[r->cls];
    const sc_rank_trace *o = latest == SC_MAP_END ? &none : &s->ranks[latest];
    r->groups = table(s, groups, c->list.n_groups, o->groups);
    r->peers = table(s, c->peers.value, c->list.n_peers, o->peers);
    r->tags = table(s, c->tags.value, c->list.n_tags, o->tags);
    s->latest[r->cls] = rank;
    bool ok = r->groups != NULL && r->peers != NULL && r->tags != NULL;
    return ok ? SC_OK : sc_error_nomem(s->err);
}

static sc_status take(session *s, uint32_t rank, const struct form *form,
                      const char *file, const char *buf, size_t len)
{
    s->canon.rank = rank;
    raw_begin(&s->raw, file, form->text, s->err);
    SC_TRY(form->decode(buf, len, &s->raw));
    if (s->raw.replayed && !s->replayed && s->warnings)
        sc_text_add(s->warnings,
                    "%.200s: warning: nodes for storage, data loading and "
                    "checkpoints take their recorded time on the host\n",
                    file);
    s->replayed = s->replayed || s->raw.replayed;
    SC_TRY(comms_define(&s->comms, &s->raw));
    SC_TRY(canon_build(&s->canon, &s->raw));
    return rank_of_class(s, rank);
}

/* Ranks without a file are a class of their own, which is the last one. */
static sc_status add_idle(session *s, uint32_t n_ranks, uint32_t *n_classes)
{
    sc_workload one;
    uint32_t n = s->index.n;
    sc_task_list *v = sc_grow(s->a, s->cls, n, &s->cap_cls, 4, sizeof *v);
    if (v == NULL) return sc_error_nomem(s->err);
    SC_TRY(sc_workload_idle(1, s->a, &one, s->err));
    s->cls = v;
    v[n] = one.classes[0];
    *n_classes = n + 1;
    for (uint32_t r = 0; r < n_ranks; r++)
        if (s->ranks[r].cls == IDLE) {
            s->ranks[r] = one.ranks[0];
            s->ranks[r].cls = n;
        }
    return SC_OK;
}

/* Whether any rank has a task. */
static sc_status has_tasks(const session *s, const char *name)
{
    for (uint32_t i = 0; i < s->index.n; i++)
        if (s->cls[i].n_tasks > 0) return SC_OK;
    return sc_error(s->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(name), NULL,
                    "an empty workload: no trace has a node");
}

static bool takes_time(const sc_task_list *l)
{
    for (uint32_t i = 0; i < l->n_tasks; i++)
        if (l->kind[i] >= SC_TASK_SEND || l->duration[i] > 0 || l->ops[i] > 0 ||
            l->size[i] > 0)
            return true;
    return false;
}

/* A converter that loses durations would lead to a makespan of nothing. */
static void warn_timeless(session *s, const char *name)
{
    for (uint32_t i = 0; i < s->index.n; i++)
        if (takes_time(&s->cls[i])) return;
    if (s->warnings)
        sc_text_add(
            s->warnings,
            "%.200s: warning: no node has a duration, operations, bytes "
            "or communication, so the makespan is meaningless\n",
            name);
}

static sc_status finish(session *s, const char *name, uint32_t n_ranks,
                        sc_workload *out)
{
    uint32_t n_classes = s->index.n;
    if (s->idle) SC_TRY(add_idle(s, n_ranks, &n_classes));
    sc_workload w = {.n_ranks = n_ranks,
                     .n_classes = n_classes,
                     .n_groups = s->comms.n,
                     .n_jobs = 1,
                     .classes = s->cls,
                     .ranks = s->ranks,
                     .groups = s->comms.group};
    w.jobs = SC_NEW(s->a, sc_rank_job);
    if (w.jobs == NULL) return sc_error_nomem(s->err);
    w.jobs->name = sc_strdup(s->a, name);
    w.jobs->n = n_ranks;
    if (w.jobs->name == NULL) return sc_error_nomem(s->err);
    *out = w;
    return SC_OK;
}

/* ---- files */

/* Traces compress well, but a ratio above a thousand is treated as an attack. */
static sc_status unpack(const char *buf, size_t len, const char *file,
                        sc_arena *tmp, char **out, size_t *out_len, sc_err *err)
{
    size_t max =
        len < (MAX_BYTES >> 11) - 1024 ? (len + 1024) << 11 : MAX_BYTES;
    return sc_unpack(buf, len, max - 1, file, tmp, out, out_len, err);
}

/* The file of a rank; the suffix of the previous rank is tried first. NULL if
 * there is none or memory is exhausted. */
static char *file_of(const char *prefix, uint32_t rank, const struct form **at,
                     sc_arena *tmp)
{
    for (size_t i = 0; i <= SC_COUNT(forms); i++) {
        const struct form *f = i == 0 ? *at : &forms[i - 1];
        char *path = sc_sprintf(tmp, "%s.%u%s", prefix, rank, f->suffix);
        if (path != NULL && access(path, F_OK) != 0) continue;
        *at = f;
        return path;
    }
    return NULL;
}

uint32_t sc_trace_ranks(const char *prefix)
{
    sc_arena tmp;
    const struct form *form = forms;
    uint32_t n = 0;
    sc_arena_init(&tmp, 0);
    while (n < UINT32_MAX && file_of(prefix, n, &form, &tmp) != NULL) {
        sc_arena_reset(&tmp);
        n++;
    }
    sc_arena_free(&tmp);
    return n;
}

bool sc_trace_exists(const char *prefix, uint32_t rank)
{
    sc_arena tmp;
    const struct form *form = forms;
    sc_arena_init(&tmp, 0);
    bool found = file_of(prefix, rank, &form, &tmp) != NULL;
    sc_arena_free(&tmp);
    return found;
}

static sc_status missing(const char *prefix, uint32_t rank, sc_arena *tmp,
                         sc_err *err)
{
    const char *path = sc_sprintf(tmp, "%s.%u.et", prefix, rank);
    if (path == NULL) return sc_error_nomem(err);
    if (rank == 0)
        return sc_error(err, SC_EIO, SC_C_IO, sc_pos_file(path),
                        "a trace is PREFIX.RANK.et (.et.gz, .et.zst) or "
                        "PREFIX.RANK.json, ranks from 0",
                        "no such trace");
    return sc_error(err, SC_EIO, SC_C_IO, sc_pos_file(path), NULL,
                    "no trace of rank %u; found ranks 0..%u", rank, rank - 1);
}

static sc_status read_rank(session *s, const char *prefix, uint32_t rank,
                           const struct form **form)
{
    char *buf;
    size_t len;
    sc_arena_reset(&s->tmp);
    const char *path = file_of(prefix, rank, form, &s->tmp);
    if (path == NULL) return missing(prefix, rank, &s->tmp, s->err);
    SC_TRY(sc_file_read(path, MAX_BYTES - 1, &s->tmp, &buf, &len, s->err));
    SC_TRY(unpack(buf, len, path, &s->tmp, &buf, &len, s->err));
    return take(s, rank, *form, path, buf, len);
}

sc_status sc_trace_read(const char *prefix, uint32_t n_ranks,
                        const sc_trace_opts *o, sc_arena *a, sc_workload *out,
                        sc_err *err)
{
    session s;
    const struct form *form = forms;
    sc_status st = begin(&s, n_ranks, n_ranks, o, a, err);
    for (uint32_t r = 0; st == SC_OK && r < n_ranks; r++) {
        bool idle = o != NULL && o->sparse && !sc_trace_exists(prefix, r);
        if (idle)
            s.ranks[r].cls = IDLE;
        else
            st = read_rank(&s, prefix, r, &form);
        s.idle = s.idle || idle;
    }
    if (st == SC_OK) st = has_tasks(&s, prefix);
    if (st == SC_OK) warn_timeless(&s, prefix);
    if (st == SC_OK) st = finish(&s, prefix, n_ranks, out);
    end(&s);
    return st;
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

sc_status sc_trace_read_one(const void *data, size_t len, const char *file,
                            const sc_trace_opts *o, sc_arena *a,
                            sc_workload *out, sc_err *err)
{
    session s;
    const struct form *form = forms;
    for (size_t i = 0; i < SC_COUNT(forms); i++)
        if (forms[i].text && ends_with(file, forms[i].suffix)) form = &forms[i];
    sc_status st = begin(&s, 1, 0, o, a, err);
    char *buf = NULL;
    if (st == SC_OK) st = unpack(data, len, file, &s.tmp, &buf, &len, err);
    if (st == SC_OK) st = take(&s, 0, form, file, buf, len);
    if (st == SC_OK) st = finish(&s, file, 1, out);
    end(&s);
    return st;
}
