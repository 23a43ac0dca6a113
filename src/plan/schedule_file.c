/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_file.c - reads schedule files. */
#include "plan/plan_schedule.h"

#include <stdio.h>
#include <string.h>

enum { MAX_CHUNKS = 64 };

typedef struct pass_at {
    uint32_t line, col;
} pass_at;

typedef struct reader {
    const char *file;
    sc_arena *a;
    sc_err *err;
    sc_status first;
    int placement;
    const sc_node *devices;
    uint32_t pp, chunks, ga, total;
    uint32_t *n, *cap; /* [pp] */
    sc_slot **slot;    /* [pp][n] */
    pass_at **at;      /* [pp][n] */
    uint8_t **seen;    /* [pp][chunks * ga] */
    bool splits;
} reader;

static const char *const placement_names[] = {"loop", "v", "bidirectional",
                                              NULL};
static const sc_schedule placements[] = {SC_SCH_INTERLEAVED, SC_SCH_ZB_V,
                                         SC_SCH_DUALPIPE};

static const sc_key keys[] = {
    {.name = "placement",
     .type = SC_T_ENUM,
     .offset = offsetof(reader, placement),
     .def = "loop",
     .names = placement_names,
     .help = "where chunks of layers are"},
    {.name = "devices",
     .type = SC_T_NODE,
     .offset = offsetof(reader, devices),
     .help = "passes of each device",
     .required = true},
    {0},
};

static void fail(reader *r, sc_code code, sc_pos pos, const char *hint,
                 const char *fmt, ...) SC_PRINTF(5, 6);

static void fail(reader *r, sc_code code, sc_pos pos, const char *hint,
                 const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(r->err, &r->first, SC_EINPUT, code, pos, hint, fmt, args);
    va_end(args);
}

static sc_pos pos_of(const reader *r, uint32_t dev, uint32_t i)
{
    return (sc_pos){r->file, r->at[dev][i].line, r->at[dev][i].col};
}

/* The text of a pass in a schedule file: "B3" or "B3.1". */
static const char *text_of(const sc_slot *s, char buf[40])
{
    char letter = "FBBW"[s->pass];
    if (s->chunk)
        snprintf(buf, 40, "%c%u.%u", letter, s->mb, s->chunk);
    else
        snprintf(buf, 40, "%c%u", letter, s->mb);
    return buf;
}

/* ---- words ----------------------------------------------------------- */

static bool number(const char **at, const char *end, uint32_t most,
                   uint32_t *out)
{
    const char *from = *at;
    uint32_t n = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        n = 10 * n + (uint32_t)(**at - '0');
        if (n > most) return false;
    }
    *out = n;
    return *at > from;
}

static bool word_read(const char *w, size_t len, sc_slot *out)
{
    const char *end = w + len;
    uint32_t mb = 0, chunk = 0;
    char letter = *w++;
    if (!number(&w, end, SC_SCHEDULE_PASSES - 1, &mb)) return false;
    if (w < end && *w == '.') {
        w++;
        if (!number(&w, end, MAX_CHUNKS - 1, &chunk)) return false;
    }
    uint8_t pass = letter == 'F' ? SC_FWD : letter == 'B' ? SC_BWD : SC_BWD_W;
    *out = (sc_slot){pass, (uint16_t)chunk, mb};
    return w == end && (letter == 'F' || letter == 'B' || letter == 'W');
}

static sc_status push(reader *r, uint32_t dev, sc_slot s, sc_pos pos)
{
    uint32_t n = r->n[dev], cap = r->cap[dev];
    sc_slot *slot = sc_grow(r->a, r->slot[dev], n, &cap, 64, sizeof *slot);
    pass_at *at = sc_grow(r->a, r->at[dev], n, &r->cap[dev], 64, sizeof *at);
    if (!slot || !at) return sc_error_nomem(r->err);
    slot[n] = s;
    at[n] = (pass_at){pos.line, pos.col};
    r->slot[dev] = slot;
    r->at[dev] = at;
    r->n[dev] = n + 1;
    if (s.mb >= r->ga) r->ga = s.mb + 1;
    if (s.chunk >= r->chunks) r->chunks = s.chunk + 1u;
    return SC_OK;
}

/* Reads the passes of one text.  In a text of several lines, columns of errors
 * count from its start. */
static sc_status words(reader *r, uint32_t dev, const sc_node *n)
{
    const char *t = n->text;
    static const char blank[] = " \t\r\n";
    while (*(t += strspn(t, blank))) {
        size_t len = strcspn(t, blank);
        sc_pos pos = n->pos;
        if (pos.col) pos.col += (uint32_t)(t - n->text) + n->quoted;
        sc_slot s;
        if (!word_read(t, len, &s))
            fail(r, SC_C_SYNTAX, pos, "write F0, B0, W0; F0.1 of chunk 1",
                 "\"%.*s\" is not a pass", (int)(len < 40 ? len : 40), t);
        else if (++r->total > SC_SCHEDULE_PASSES)
            return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, pos, NULL,
                            "more than %u passes", SC_SCHEDULE_PASSES);
        else
            SC_TRY(push(r, dev, s, pos));
        t += len;
    }
    return SC_OK;
}

static sc_status device(reader *r, uint32_t dev, const sc_node *n)
{
    if (n->kind == SC_N_SCALAR) return words(r, dev, n);
    if (n->kind == SC_N_SEQ) {
        for (const sc_node *c = n->child; c; c = c->next) {
            if (c->kind == SC_N_SCALAR)
                SC_TRY(words(r, dev, c));
            else
                fail(r, SC_C_TYPE, c->pos, "write F0, B0, W0",
                     "a pass must be a word");
        }
        return SC_OK;
    }
    fail(r, SC_C_TYPE, n->pos, "write - F0 B0 F1 B1",
         "device %u has no list of passes", dev);
    return SC_OK;
}

static sc_status devices(reader *r)
{
    const sc_node *list = r->devices;
    if (list->kind != SC_N_SEQ || list->n == 0)
        return sc_error(r->err, SC_EINPUT, SC_C_TYPE, list->pos,
                        "write a list with the passes of each device",
                        "devices must be a list");
    r->pp = list->n;
    r->n = SC_NEW_N(r->a, uint32_t, r->pp);
    r->cap = SC_NEW_N(r->a, uint32_t, r->pp);
    r->slot = SC_NEW_N(r->a, sc_slot *, r->pp);
    r->at = SC_NEW_N(r->a, pass_at *, r->pp);
    r->seen = SC_NEW_N(r->a, uint8_t *, r->pp);
    if (!r->n || !r->cap || !r->slot || !r->at || !r->seen)
        return sc_error_nomem(r->err);
    uint32_t dev = 0;
    for (const sc_node *c = list->child; c; c = c->next, dev++)
        SC_TRY(device(r, dev, c));
    return r->first;
}

/* ---- checks ---------------------------------------------------------- */

/* Number of passes of a device if none is missing. */
static uint64_t pairs(const reader *r)
{
    uint64_t ga = r->ga;
    return r->placement == 2 ? ga : ga * r->chunks;
}

static bool belongs(const reader *r, uint32_t chunk, uint32_t mb)
{
    return r->placement != 2 || chunk == (mb >= (r->ga + 1) / 2);
}

enum { HAS_F = 1, HAS_B = 2, HAS_W = 4 };

/* Checks one pass against the passes before it on the same device. */
static void check_pass(reader *r, uint32_t dev, uint32_t i)
{
    static const uint8_t bit[] = {HAS_F, HAS_B, HAS_B, HAS_W};
    sc_slot *s = &r->slot[dev][i];
    uint8_t *seen = &r->seen[dev][(size_t)s->chunk * r->ga + s->mb];
    char buf[40];
    const char *what = text_of(s, buf);
    if (!belongs(r, s->chunk, s->mb)) {
        fail(r, SC_C_CONFLICT, pos_of(r, dev, i),
             "the first half of the micro-batches enters at device 0 as chunk "
             "0, the second half at the last device as chunk 1",
             "%s enters the pipeline at the wrong end", what);
        return;
    }
    if (*seen & bit[s->pass])
        fail(r, SC_C_DUPLICATE, pos_of(r, dev, i), NULL, "%s runs twice", what);
    else if (s->pass != SC_FWD && !(*seen & HAS_F))
        fail(r, SC_C_CONFLICT, pos_of(r, dev, i), NULL,
             "%s before its forward pass", what);
    else if (s->pass == SC_BWD_W && !(*seen & HAS_B))
        fail(r, SC_C_CONFLICT, pos_of(r, dev, i), NULL,
             "%s before its backward pass", what);
    *seen |= bit[s->pass];
}

static void check_missing(reader *r, uint32_t dev, const sc_node *n)
{
    for (uint32_t c = 0; c < r->chunks; c++)
        for (uint32_t mb = 0; mb < r->ga; mb++) {
            uint8_t seen = r->seen[dev][(size_t)c * r->ga + mb];
            if (!belongs(r, c, mb) || (seen & HAS_B)) continue;
            char buf[40];
            sc_slot s = {seen & HAS_F ? SC_BWD : SC_FWD, (uint16_t)c, mb};
            fail(r, SC_C_MISSING, n->pos, NULL, "device %u never runs %s", dev,
                 text_of(&s, buf));
            return;
        }
}

static sc_status check_device(reader *r, uint32_t dev, const sc_node *n)
{
    unsigned long long least = 2 * pairs(r);
    if (least > r->n[dev]) {
        fail(r, SC_C_MISSING, n->pos, NULL,
             "device %u has %u passes; %u micro-batches of %u chunks need "
             "%llu or more",
             dev, r->n[dev], r->ga, r->chunks, least);
        return SC_OK;
    }
    r->seen[dev] = SC_NEW_N(r->a, uint8_t, (size_t)r->chunks * r->ga);
    if (!r->seen[dev]) return sc_error_nomem(r->err);
    for (uint32_t i = 0; i < r->n[dev]; i++) check_pass(r, dev, i);
    check_missing(r, dev, n);
    for (uint32_t i = 0; i < r->n[dev]; i++) {
        sc_slot *s = &r->slot[dev][i];
        uint8_t seen = r->seen[dev][(size_t)s->chunk * r->ga + s->mb];
        if (s->pass == SC_BWD && (seen & HAS_W)) s->pass = SC_BWD_X;
        r->splits = r->splits || s->pass == SC_BWD_X;
    }
    return SC_OK;
}

static bool ready(const reader *r, uint8_t *const *done, uint32_t dev,
                  const sc_slot *s, sc_slot *lacks, uint32_t *on)
{
    sc_schedule placement = placements[r->placement];
    uint32_t n = sc_schedule_stages(placement, r->pp, r->chunks);
    uint32_t v = sc_schedule_stage(placement, r->pp, r->chunks, dev, s->chunk);
    if (s->pass == SC_BWD_W) return true;
    if (s->pass == SC_FWD ? v == 0 : v + 1 == n) return true;
    v = s->pass == SC_FWD ? v - 1 : v + 1;
    *on = sc_schedule_device(placement, r->pp, r->chunks, v, s->mb, r->ga);
    *lacks = *s;
    lacks->chunk = (uint16_t)sc_schedule_chunk(placement, r->pp, r->chunks, v,
                                               s->mb, r->ga);
    uint8_t bit = s->pass == SC_FWD ? HAS_F : HAS_B;
    return done[*on][(size_t)lacks->chunk * r->ga + s->mb] & bit;
}

/* Runs the orders of all devices until none can continue, and reports the
 * passes that remain, because they wait for each other. */
static sc_status check_circle(reader *r)
{
    uint32_t *at = SC_NEW_N(r->a, uint32_t, r->pp), on = 0;
    sc_slot lacks = {0};
    if (!at) return sc_error_nomem(r->err);
    for (uint32_t d = 0; d < r->pp; d++)
        memset(r->seen[d], 0, (size_t)r->chunks * r->ga);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t d = 0; d < r->pp; d++)
            for (; at[d] < r->n[d]; at[d]++, moved = true) {
                const sc_slot *s = &r->slot[d][at[d]];
                if (!ready(r, r->seen, d, s, &lacks, &on)) break;
                if (s->pass != SC_BWD_W)
                    r->seen[d][(size_t)s->chunk * r->ga + s->mb] |=
                        s->pass == SC_FWD ? HAS_F : HAS_B;
            }
    }
    for (uint32_t d = 0; d < r->pp; d++) {
        if (at[d] == r->n[d]) continue;
        char mine[40], other[40];
        const sc_slot *s = &r->slot[d][at[d]];
        (void)ready(r, r->seen, d, s, &lacks, &on);
        fail(r, SC_C_CYCLE, pos_of(r, d, at[d]), NULL,
             "%s of device %u waits for %s of device %u, which can't run "
             "before it",
             text_of(s, mine), d, text_of(&lacks, other), on);
        break;
    }
    return r->first;
}

static sc_status check_all(reader *r)
{
    if (r->ga == 0)
        return sc_error(r->err, SC_EINPUT, SC_C_MISSING, r->devices->pos,
                        "write - F0 B0", "the schedule has no passes");
    if (r->placement > 0 && r->chunks > 2)
        return sc_error(r->err, SC_EINPUT, SC_C_CONFLICT, r->devices->pos, NULL,
                        "placement %s has only chunks 0 and 1, not %u",
                        placement_names[r->placement], r->chunks - 1);
    if (r->placement > 0) r->chunks = 2;
    uint32_t dev = 0;
    for (const sc_node *c = r->devices->child; c; c = c->next, dev++)
        SC_TRY(check_device(r, dev, c));
    return r->first == SC_OK ? check_circle(r) : r->first;
}

sc_status sc_schedule_read(const char *text, size_t len, const char *file,
                           sc_arena *a, const sc_schedule_file **out,
                           sc_err *err)
{
    reader r = {.a = a, .err = err};
    sc_node *root;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    r.file = root->pos.file;
    SC_TRY(sc_schema_defaults(keys, &r, a, err));
    SC_TRY(sc_schema_read(keys, root, &r, NULL, a, err));
    SC_TRY(devices(&r));
    SC_TRY(check_all(&r));
    sc_schedule_file *f = SC_NEW(a, sc_schedule_file);
    if (!f) return sc_error_nomem(err);
    *f = (sc_schedule_file){.file = r.file,
                            .placement = placements[r.placement],
                            .pp = r.pp,
                            .vpp = r.placement == 2 ? 1 : r.chunks,
                            .ga = r.ga,
                            .splits = r.splits,
                            .n = r.n,
                            .slot = r.slot};
    *out = f;
    return SC_OK;
}

sc_status sc_schedule_load(const char *path, sc_arena *a,
                           const sc_schedule_file **out, sc_err *err)
{
    char *text;
    size_t len;
    SC_TRY(sc_file_read(path, SC_DOC_MAX_BYTES, a, &text, &len, err));
    return sc_schedule_read(text, len, path, a, out, err);
}
