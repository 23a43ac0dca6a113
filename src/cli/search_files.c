/* SPDX-License-Identifier: Apache-2.0 */
/* search_files.c - checkpoints, parts and the log of rows of a search. */
#include "cli/search.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MOST = 64 << 20 };

/* ---- what ends a search --------------------------------------------------- */

static bool is_over(void *with)
{
    const search_files *f = with;
    return cli_now_s() >= f->end;
}

static bool is_interrupted(void *with)
{
    const search_files *f = with;
    return f->c->host->interrupted();
}

static void tell(void *with, const sc_search_sofar *s)
{
    search_files *f = with;
    char rate[24], best[40] = "", left[40];
    double spent = cli_now_s() - f->begun, all = (double)s->tasks;
    double done = all > 0 ? (double)s->done / all : 1;
    if (!cli_progress_due(f->c)) return;
    sc_unit_print_short((double)s->evaluated / spent, SC_U_COUNT, rate,
                        sizeof rate);
    if (s->best < INFINITY && f->o->goal == SC_GOAL_STEP_TIME)
        sc_unit_print_short(s->best, SC_U_TIME, best, sizeof best);
    double more = done > s->from ? spent * (1 - done) / (done - s->from) : 0;
    sc_unit_print_short(more, SC_U_TIME, left, sizeof left);
    char line[200], gap[60] = "";
    if (s->best < INFINITY && s->bound > 0)
        snprintf(gap, sizeof gap, ", bound %.3g %% below",
                 100 * (1 - s->bound / s->best));
    snprintf(line, sizeof line, "%.0f %%  %s/s  best %s%s  %s left", 100 * done,
             rate, *best ? best : "-", gap, left);
    cli_progress_say(f->c, line);
}

/* ---- checkpoints ------------------------------------------------------------ */

/* Makes the folders of a file's path. */
static void make_folders(const char *file, sc_arena *a)
{
    char *path = sc_strdup(a, file);
    for (char *at = path ? strchr(path + 1, '/') : NULL; at;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path,
                    0700); /* writing the file tells whether it is there */
        *at = '/';
    }
}

static sc_status write_checkpoint(search_files *f, sc_err *err)
{
    sc_bytes b = {0};
    if (f->unnamed) make_folders(f->file, f->c->arena);
    sc_search_saved_write(&f->saved, &b);
    sc_status s =
        b.failed ? sc_error_nomem(err)
                 : sc_file_write_durable(f->file, (char *)b.buf, b.len, err);
    sc_bytes_free(&b);
    f->saved_s = cli_now_s();
    return s;
}

/* A checkpoint that nobody asked for must not end a search. */
static void write_unnamed(search_files *f)
{
    sc_err unread;
    sc_err_init(&unread);
    f->saves = write_checkpoint(f, &unread) == SC_OK;
}

static sc_status save(void *with, const sc_search_saved *s, sc_err *err)
{
    search_files *f = with;
    (void)s;
    (void)err;
    /* the rows that the log has now are those of the tasks that are done */
    f->saved.kept = f->log_bytes;
    f->saved.kept_rows = f->log_rows;
    if (cli_now_s() - f->saved_s < f->o->every_s) return SC_OK;
    if (f->log && fsync(f->fd) != 0)
        return sc_error(f->c->err, SC_EIO, SC_C_IO, sc_pos_file(f->part), NULL,
                        "can't write: %s", sc_errno_text(errno));
    if (!f->unnamed) return write_checkpoint(f, f->c->err);
    if (f->saves) write_unnamed(f);
    return SC_OK;
}

static sc_status read_saved(search_files *f, const char *file,
                            sc_search_saved *out)
{
    char *text = NULL;
    size_t len = 0;
    cli *c = f->c;
    SC_TRY(sc_file_read(file, FILE_MOST, c->arena, &text, &len, c->err));
    SC_TRY(sc_search_saved_read(text, len, file, c->arena, out, c->err));
    return sc_search_saved_check(out, f->identity, c->err);
}

/* "3/16": part 3 of 16. */
static sc_status read_shard(search_files *f, uint32_t *shard, uint32_t *shards)
{
    cli *c = f->c;
    const char *text = f->o->shard;
    unsigned long i = 0, n = 0;
    char *end = NULL;
    *shard = *shards = 1;
    if (!text) return SC_OK;
    sc_pos pos = sc_pos_option(c->arena, "--shard", text);
    if (strcmp(text, "slurm") == 0) {
        text = c->host ? c->host->shard : NULL;
        if (!text)
            return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, pos,
                            "start it by `sbatch --array=1-16`, or give "
                            "--shard 3/16",
                            "this is no task of a job array");
    }
    if (*text >= '1' && *text <= '9') i = strtoul(text, &end, 10);
    if (end && *end == '/' && end[1] >= '1' && end[1] <= '9')
        n = strtoul(end + 1, &end, 10);
    if (!end || *end || i > n || n > 65536)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, pos,
                        "write part 3 of 16 as 3/16", "\"%.40s\" is no part",
                        text);
    *shard = (uint32_t)i;
    *shards = (uint32_t)n;
    return SC_OK;
}

static sc_status open_checkpoint(search_files *f, uint32_t shard,
                                 uint32_t shards)
{
    cli *c = f->c;
    const char *file = f->file;
    bool is = access(file, F_OK) == 0;
    if (f->unnamed && !f->o->resume) is = false;
    if (is && !f->o->resume)
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(file),
                        "continue with --resume, or remove it",
                        "the checkpoint exists");
    sc_search_saved_init(&f->saved, f->identity, c->arena);
    if (is) SC_TRY(read_saved(f, file, &f->saved));
    if (is && (f->saved.shard != shard || f->saved.shards != shards))
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(file),
                        "give each part a file of its own",
                        "the file is of part %u of %u", f->saved.shard,
                        f->saved.shards);
    f->saved.shard = shard;
    f->saved.shards = shards;
    f->saves = true;
    return SC_OK;
}

static sc_status join_parts(search_files *f, const sc_search_jobs *jobs,
                            sc_search_options *so)
{
    cli *c = f->c;
    uint32_t n = f->merge.n;
    sc_search_saved *part = SC_NEW_N(c->arena, sc_search_saved, n + 1);
    if (!part) return sc_error_nomem(c->err);
    if (n == 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_file("--merge"),
                        "for example --merge part-*.search",
                        "the files of the parts are not given");
    sc_status s = SC_OK;
    for (uint32_t i = 0; i < n && s == SC_OK; i++)
        s = read_saved(f, f->merge.w[i], &part[i]);
    if (s == SC_OK)
        s = sc_search_saved_join(jobs, so, part, n, c->arena, &f->saved,
                                 c->err);
    for (uint32_t i = 0; i < n; i++) sc_search_saved_free(&part[i]);
    return s;
}

/* ---- the log of rows ---------------------------------------------------------- */

static sc_status log_failed(const search_files *f)
{
    return sc_error(f->c->err, SC_EIO, SC_C_IO, sc_pos_file(f->part), NULL,
                    "can't write the log of rows: %s", sc_errno_text(errno));
}

static sc_status append(search_files *f, sc_bytes *b)
{
    size_t at = 0;
    sc_status s = b->failed ? sc_error_nomem(f->c->err) : SC_OK;
    while (s == SC_OK && at < b->len) {
        ssize_t put = write(f->fd, b->buf + at, b->len - at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) s = log_failed(f);
        if (put > 0) at += (size_t)put;
    }
    f->log_bytes += at;
    sc_bytes_free(b);
    return s;
}

static sc_status keep(void *with, uint64_t rows, const uint8_t *bytes,
                      size_t len, sc_err *err)
{
    search_files *f = with;
    sc_bytes b = {0};
    (void)err;
    sc_store_write_block(rows, bytes, len, &b);
    f->log_rows += rows;
    return append(f, &b);
}

static sc_status write_head(search_files *f, const sc_search_jobs *jobs)
{
    cli *c = f->c;
    sc_store_head h = {.identity = f->identity, .objective = "", .n = jobs->n};
    sc_bytes b = {0};
    if (f->o->goal != SC_GOAL_STEP_TIME)
        h.objective = sc_search_goal_names[f->o->goal];
    h.axis = SC_NEW_N(c->arena, sc_store_axis, jobs->n + 1);
    for (uint32_t i = 0; h.axis && i < jobs->n; i++) {
        const sc_search_option *o = &jobs->option[i];
        sc_store_axis *x = &h.axis[i];
        *x = (sc_store_axis){.name = o->key->name,
                             .number = o->key->type == SC_T_INT,
                             .n = o->axis.n};
        x->value = SC_NEW_N(c->arena, const char *, x->n + 1);
        if (!x->value) return sc_error_nomem(c->err);
        for (uint32_t k = 0; k < x->n; k++) {
            char buf[200];
            x->number = x->number && o->axis.value[k] >= 0;
            sc_search_option_print(o, k, buf, sizeof buf);
            x->value[k] = sc_strdup(c->arena, buf);
            if (!x->value[k]) return sc_error_nomem(c->err);
        }
    }
    if (!h.axis) return sc_error_nomem(c->err);
    sc_store_write_head(&h, &b);
    return append(f, &b);
}

/* A log that is continued loses what came after the checkpoint. */
static sc_status open_log(search_files *f, const sc_search_jobs *jobs)
{
    cli *c = f->c;
    struct stat st;
    uint64_t size = f->saved.kept;
    f->part = sc_sprintf(c->arena, "%s.part", f->log);
    if (!f->part) return sc_error_nomem(c->err);
    if (size > 0 && access(f->part, F_OK) != 0 &&
        rename(f->log, f->part) != 0 && errno != ENOENT)
        return log_failed(f);
    f->fd = open(f->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (f->fd < 0 || fstat(f->fd, &st) != 0) return log_failed(f);
    if ((uint64_t)st.st_size < size)
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(f->part),
                        "begin again without --resume",
                        "the log of rows is shorter than its checkpoint says");
    if (ftruncate(f->fd, (off_t)size) != 0 ||
        lseek(f->fd, (off_t)size, SEEK_SET) < 0)
        return log_failed(f);
    f->log_bytes = size;
    f->log_rows = f->saved.kept_rows;
    return size ? SC_OK : write_head(f, jobs);
}

static sc_status end_log(search_files *f)
{
    sc_bytes b = {0};
    sc_store_write_end(f->log_rows, &b);
    SC_TRY(append(f, &b));
    if (fsync(f->fd) != 0 || rename(f->part, f->log) != 0) return log_failed(f);
    return SC_OK;
}

static sc_status read_keep(search_files *f)
{
    const char *const *w = f->o->keep;
    if (!w) return SC_OK;
    if (strcmp(w[0], "all") != 0 || !w[1] || w[2])
        return sc_error(f->c->err, SC_EUSAGE, SC_C_OPTION,
                        sc_pos_option(f->c->arena, "--keep", w[0]),
                        "write --keep all FILE, once",
                        "only all rows can be kept");
    f->log = w[1];
    return SC_OK;
}

/* ---- one search ---------------------------------------------------------------- */

static sc_status check(const search_files *f, bool sizes)
{
    const search_opts *o = f->o;

    const struct {
        bool is;
        const char *flag, *why, *hint;
    } rule[] = {
        {o->resume && !f->file, "--resume", "the checkpoint is not named",
         "give --save FILE"},
        {o->shard && !o->save, "--shard",
         "there is no file for what the part finds", "give --save FILE"},
        {o->shard && o->merge, "--shard", "parts are searched or merged",
         "leave one of them out"},
        {o->merge && o->save, "--merge", "what is merged is not searched",
         "leave out --save"},
        {o->merge && o->keep, "--merge", "parts have their own logs of rows",
         "leave out --keep"},
        {sizes && (o->shard || o->merge), o->merge ? "--merge" : "--shard",
         "a search over several machines has no parts",
         "search each machine or number of --nodes on its own"},
        {sizes && o->keep, "--keep", "a log of rows is of one machine",
         "search each machine or number of --nodes on its own"},
    };

    for (size_t i = 0; i < SC_COUNT(rule); i++)
        if (rule[i].is)
            return sc_error(f->c->err, SC_EUSAGE, SC_C_CONFLICT,
                            sc_pos_file(rule[i].flag), rule[i].hint, "%s",
                            rule[i].why);
    return SC_OK;
}

/* Without --save, a checkpoint is in the user's cache until the search is done,
 * so that --resume continues a search that was ended unexpectedly. */
static sc_status name_checkpoint(search_files *f)
{
    const search_opts *o = f->o;
    cli *c = f->c;
    f->file = o->save;
    if (o->save || o->shard || o->merge || o->keep || !c->host ||
        !c->host->cache || !f->identity)
        return SC_OK;
    uint64_t hash = sc_hash(f->identity, strlen(f->identity), 0);
    f->unnamed = true;
    f->file = sc_sprintf(c->arena, "%s/search-%016llx", c->host->cache,
                         (unsigned long long)hash);
    return f->file ? SC_OK : sc_error_nomem(c->err);
}

sc_status search_files_open(search_files *f, const sc_search_jobs *jobs,
                            sc_search_options *so)
{
    cli *c = f->c;
    const search_opts *o = f->o;
    uint32_t shard, shards;
    f->fd = -1;
    f->begun = cli_now_s();
    f->saved_s = f->begun;
    f->end = f->begun + o->budget_s;
    f->first = cli_is_first(c);
    so->with = f;
    so->stop = o->budget_s > 0 ? is_over : NULL;
    SC_TRY(name_checkpoint(f));
    SC_TRY(check(f, !jobs));
    SC_TRY(read_keep(f));
    SC_TRY(read_shard(f, &shard, &shards));
    if (shards > 1) {
        so->shard = shard;
        so->shards = shards;
    }
    if (f->log) so->exhaustive = true;
    if (f->log) so->keep = keep;
    if (o->merge) {
        SC_TRY(join_parts(f, jobs, so));
        so->saved = &f->saved;
    }
    if (f->file && c->host) so->interrupted = is_interrupted;
    if (so->interrupted) is_interrupted(f); /* watches from now on */
    if (!f->first) return SC_OK;
    so->tell = cli_progress(c) ? tell : NULL;
    if (f->file) {
        SC_TRY(open_checkpoint(f, shard, shards));
        so->saved = &f->saved;
        so->save = save;
    }
    return f->log ? open_log(f, jobs) : SC_OK;
}

sc_status search_files_close(search_files *f, sc_status s)
{
    cli *c = f->c;
    cli_progress_end(c);
    if (s == SC_OK && f->log && f->first) s = end_log(f);
    /* a search within a budget can go on later */
    bool done = s == SC_OK && f->o->budget_s <= 0;
    if (f->unnamed && f->saves && done) {
        unlink(f->file);
    } else if (f->saves && f->unnamed && (s == SC_OK || s == SC_EINTR)) {
        write_unnamed(f);
    } else if (f->saves && (s == SC_OK || s == SC_EINTR)) {
        sc_status wrote = write_checkpoint(f, c->err);
        if (wrote != SC_OK) s = wrote;
    }
    if (f->fd >= 0) close(f->fd);
    sc_search_saved_free(&f->saved);
    if (s != SC_EINTR) return s;
    return sc_error(c->err, SC_EINTR, SC_C_IO, sc_pos_none(),
                    f->first && !f->saves
                        ? "no checkpoint could be written; give --save FILE"
                        : "the same command with --resume continues it",
                    "interrupted");
}
