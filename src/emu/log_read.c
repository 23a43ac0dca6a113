/* SPDX-License-Identifier: Apache-2.0 */
/* log_read.c - reads the log of a real rank. */
#include "emu/log.h"

#include <string.h>

#define MEMBERS_MAX ((uint64_t)1 << 27) /* members of all groups together */
#define WORLD_MAX   (1u << 24)

typedef struct reading {
    const uint8_t *data;
    const char *file;
    uint64_t n; /* slots behind the header */
    uint32_t world;
    uint64_t members; /* so far */
    sc_arena *a;
    sc_err *err;
    sc_emu_run *run;
} reading;

static log_slot slot_at(const reading *r, uint64_t i)
{
    log_slot s;
    memcpy(&s, r->data + (LOG_HEAD + i) * LOG_SLOT, sizeof s);
    return s;
}

static sc_status bad(const reading *r, uint64_t slot, sc_code code,
                     const char *what)
{
    return sc_error(r->err, SC_EINPUT, code,
                    sc_pos_byte(r->file, (LOG_HEAD + slot) * LOG_SLOT), NULL,
                    "%s", what);
}

static sc_status read_head(reading *r, size_t len, log_head *h)
{
    sc_pos pos = sc_pos_byte(r->file, 0);
    if (len < sizeof *h)
        return sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, pos, NULL,
                        "the file is too short for the log of a real rank");
    memcpy(h, r->data, sizeof *h);
    if (memcmp(h->magic, LOG_MAGIC, sizeof h->magic) != 0)
        return sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, pos, NULL,
                        "the file is not the log of a real rank");
    if (h->order != LOG_ORDER || h->version != LOG_VERSION)
        return sc_error(r->err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                        "a log is read on the machine that wrote it",
                        "the log is of another machine or version");
    if (h->world == 0 || h->rank >= h->world)
        return sc_error(r->err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "rank %u of a world of %u", h->rank, h->world);
    if (h->world > WORLD_MAX)
        return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, pos, NULL,
                        "a world of %u ranks", h->world);
    if (h->totals.now < 0 || h->totals.overhead < 0 || h->totals.late < 0)
        return sc_error(r->err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "a total is below zero");
    uint64_t slots = len / LOG_SLOT;
    slots = slots > LOG_HEAD ? slots - LOG_HEAD : 0;
    r->n = h->used < slots ? h->used : slots;
    r->world = h->world;
    return SC_OK;
}

/* ---- pass 1: counts ------------------------------------------------ */

/* Slots [i, *next) belong together; false: they are cut off. */
static bool extent(const reading *r, uint64_t i, uint64_t *next)
{
    log_slot s = slot_at(r, i);
    uint64_t n = i + 1;
    if (s.kind == LOG_GROUP)
        for (uint64_t got = 0; got < s.g.members; n++) {
            if (n >= r->n) return false;
            log_slot m = slot_at(r, n);
            if (m.kind != LOG_MEMBERS || m.g.n == 0 || m.g.n > LOG_RUNS) break;
            for (uint32_t k = 0; k < m.g.n; k++) got += m.g.u.run[k].n;
        }
    if (s.kind == LOG_SAID)
        for (uint64_t got = s.g.n; got < s.g.members; n++) {
            if (n >= r->n) return false;
            log_slot m = slot_at(r, n);
            if (m.kind != LOG_MORE || m.g.n == 0) break;
            got += m.g.n;
        }
    *next = n;
    return true;
}

static sc_status count(reading *r)
{
    sc_emu_run *out = r->run;
    uint64_t next = 0;
    for (uint64_t i = 0; i < r->n; i = next) {
        log_slot s = slot_at(r, i);
        if (!extent(r, i, &next)) {
            r->n = i;
            break;
        }
        if (s.kind == LOG_OP) {
            out->n_records++;
        } else if (s.kind == LOG_GROUP) {
            if (s.g.group >= LOG_GROUP_MAX)
                return bad(r, i, SC_C_RANGE, "the number of a group");
            if (s.g.group >= out->n_groups) out->n_groups = s.g.group + 1;
        } else if (s.kind == LOG_SAID) {
            out->n_texts++;
        } else if (s.kind == LOG_STEP) {
            out->n_marks++;
        } else {
            return bad(r, i, SC_C_SYNTAX, "a record is invalid");
        }
    }
    return SC_OK;
}

/* ---- pass 2 -------------------------------------------------------------- */

static sc_status read_op(reading *r, uint64_t i, const sc_emu_record *o,
                         sc_emu_record *out)
{
    if (o->coll >= SC_N_CALLED_COLLS)
        return bad(r, i, SC_C_SYNTAX, "an unknown operation");
    if (o->flags &
        ~(SC_EMU_ASYNC | SC_EMU_CANCELED | SC_EMU_DEVICE | SC_EMU_HELD))
        return bad(r, i, SC_C_SYNTAX, "unknown flags");
    if (o->group >= r->run->n_groups || r->run->group[o->group].n == 0)
        return bad(r, i, SC_C_RANGE, "a group that was not named before");
    if (o->peer >= r->world) return bad(r, i, SC_C_RANGE, "a rank too high");
    if (o->post < 0 || o->begin < 0 || o->end < 0 || o->waited < 0 ||
        o->resumed < 0)
        return bad(r, i, SC_C_RANGE, "a time is below zero");
    *out = *o;
    return SC_OK;
}

/* Appends the members of a run; false: the run is invalid. */
static bool expand(const reading *r, const log_run *run, uint32_t *rank,
                   uint32_t n, uint32_t *filled, uint8_t *seen)
{
    if (run->n == 0 || run->n > n - *filled) return false;
    for (uint32_t k = 0; k < run->n; k++) {
        int64_t at = (int64_t)run->first + (int64_t)run->stride * k;
        if (at < 0 || at >= r->world || (seen[at / 8] >> (at % 8) & 1))
            return false;
        seen[at / 8] |= (uint8_t)(1u << (at % 8));
        rank[(*filled)++] = (uint32_t)at;
    }
    return true;
}

static sc_status read_group(reading *r, uint64_t i, const log_group *head)
{
    uint32_t n = head->members, filled = 0;
    sc_rank_group *g = &r->run->group[head->group];
    if (n == 0 || n > r->world)
        return bad(r, i, SC_C_RANGE, "a group of no or too many members");
    if (g->n != 0) return bad(r, i, SC_C_DUPLICATE, "a group named twice");
    if ((r->members += n) > MEMBERS_MAX)
        return bad(r, i, SC_C_TOO_BIG, "too many members of groups");
    uint32_t *rank = SC_NEW_N(r->a, uint32_t, n);
    const char *name = sc_sprintf(r->a, "%u", head->group);
    if (!rank || !name) return sc_error_nomem(r->err);
    sc_arena_mark mark = sc_arena_save(r->a);
    uint8_t *seen = SC_NEW_N(r->a, uint8_t, (size_t)r->world / 8 + 1);
    if (!seen) return sc_error_nomem(r->err);
    for (uint64_t at = i + 1; filled < n; at++) {
        if (at >= r->n) return bad(r, i, SC_C_SYNTAX, "members are missing");
        log_slot s = slot_at(r, at);
        if (s.kind != LOG_MEMBERS || s.g.group != head->group || s.g.n == 0 ||
            s.g.n > LOG_RUNS)
            return bad(r, at, SC_C_SYNTAX, "no members of the group before");
        for (uint32_t k = 0; k < s.g.n; k++)
            if (!expand(r, &s.g.u.run[k], rank, n, &filled, seen))
                return bad(r, at, SC_C_RANGE, "unknown members");
    }
    sc_arena_restore(r->a, mark);
    *g = (sc_rank_group){name, n, rank};
    return SC_OK;
}

static sc_status read_text(reading *r, uint64_t i, const log_group *head,
                           const char **out)
{
    char text[LOG_TEXT_MAX + 1];
    uint32_t n = 0;
    if (head->members == 0 || head->members > LOG_TEXT_MAX)
        return bad(r, i, SC_C_RANGE, "the length of a text");
    for (uint64_t at = i; n < head->members; at++) {
        log_slot s = at < r->n ? slot_at(r, at) : (log_slot){0};
        if (s.kind != (at == i ? LOG_SAID : LOG_MORE) || s.g.n == 0 ||
            s.g.n > LOG_TEXT || s.g.n > head->members - n)
            return bad(r, at, SC_C_SYNTAX, "no piece of a text");
        memcpy(text + n, s.g.u.text, s.g.n);
        n += s.g.n;
    }
    text[n] = '\0';
    *out = sc_sprintf(r->a, "%s: %s", head->error ? "error" : "warning", text);
    return *out ? SC_OK : sc_error_nomem(r->err);
}

static sc_status read_step(reading *r, uint64_t i, const sc_emu_record *o,
                           uint64_t record, uint64_t n)
{
    sc_emu_mark *m = r->run->mark;
    if (o->post < (n ? m[n - 1].at : 0))
        return bad(r, i, SC_C_RANGE, "a step ends before the one before it");
    m[n] = (sc_emu_mark){o->post, record};
    return SC_OK;
}

static sc_status fill(reading *r)
{
    sc_emu_run *out = r->run;
    uint64_t next = 0, ops = 0, marks = 0;
    uint32_t texts = 0;
    for (uint64_t i = 0; i < r->n; i = next) {
        log_slot s = slot_at(r, i);
        (void)extent(r, i, &next);
        if (s.kind == LOG_OP)
            SC_TRY(read_op(r, i, &s.op, &out->record[ops++]));
        else if (s.kind == LOG_GROUP)
            SC_TRY(read_group(r, i, &s.g));
        else if (s.kind == LOG_STEP)
            SC_TRY(read_step(r, i, &s.op, ops, marks++));
        else
            SC_TRY(read_text(r, i, &s.g, &out->text[texts++]));
    }
    return SC_OK;
}

sc_status sc_emu_log_read(const void *data, size_t len, const char *file,
                          sc_arena *a, sc_emu_run *out, sc_err *err)
{
    log_head h;
    sc_emu_run run = {0};
    reading r = {.data = data, .file = file, .a = a, .err = err, .run = &run};
    SC_TRY(read_head(&r, len, &h));
    run.rank = h.rank;
    run.world = h.world;
    run.totals = h.totals;
    SC_TRY(count(&r));
    run.group = SC_NEW_N(a, sc_rank_group, run.n_groups);
    run.record = SC_NEW_N(a, sc_emu_record, run.n_records);
    run.text = SC_NEW_N(a, const char *, run.n_texts);
    run.mark = SC_NEW_N(a, sc_emu_mark, run.n_marks);
    if (!run.group || !run.record || !run.text || !run.mark)
        return sc_error_nomem(err);
    SC_TRY(fill(&r));
    *out = run;
    return SC_OK;
}

sc_status sc_emu_log_load(const char *path, sc_arena *a, sc_emu_run *out,
                          sc_err *err)
{
    char *data;
    size_t len;
    SC_TRY(sc_file_read(path, LOG_BYTES, a, &data, &len, err));
    return sc_emu_log_read(data, len, path, a, out, err);
}
