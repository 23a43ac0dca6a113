/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - parses NAME=VALUE of --what-if. */
#include "emu/whatif.h"

#include <stdio.h>
#include <string.h>

#define LONGEST    64 /* longest text of a number with its unit */
#define MAX_FACTOR 1e6
#define MAX_STALL  1e6 /* seconds */
#define MAX_AT     ((uint64_t)1 << 53)

static const char *const names[] = {
    "latency", "bandwidth", "straggler", "jitter", "stall", "fail", NULL};
static const char *const forms[] = {
    "write latency=+100us or latency=x2",
    "write bandwidth=x0.5",
    "write straggler=RANK:FACTOR, for example straggler=5:1.2",
    "write jitter=0.05 or jitter=5%",
    "write stall=RANK:TIME@N, for example stall=5:20ms@100",
    "write fail=RANK@N, for example fail=5@100"};

/* A value's parts: r rank, f factor, t time, j share, n operation; other
 * characters are themselves. */
static const struct {
    sc_emu_what what;
    const char *parts;
} kinds[] = {{SC_EMU_LATENCY_TIMES, "xf"}, {SC_EMU_BANDWIDTH_TIMES, "xf"},
             {SC_EMU_STRAGGLER, "r:f"},    {SC_EMU_JITTER, "j"},
             {SC_EMU_STALL, "r:t@n"},      {SC_EMU_FAIL, "r@n"}};

bool emu_whole(const char **at, uint64_t limit, uint64_t *out)
{
    uint64_t v = 0;
    const char *s = *at;
    if (*s < '0' || *s > '9') return false;
    for (; *s >= '0' && *s <= '9'; s++) {
        v = v * 10 + (uint64_t)(*s - '0');
        if (v >= limit) return false;
    }
    *at = s;
    *out = v;
    return true;
}

/* ---- one what-if --------------------------------------------------------- */

typedef struct parse {
    const char *at; /* remaining text */
    int name;
    uint32_t world;
    sc_emu_whatif *w;
    sc_err *err;
} parse;

static sc_status malformed(const parse *p)
{
    return sc_error(p->err, SC_EUSAGE, SC_C_SYNTAX, p->w->pos, forms[p->name],
                    "this is not a value of %s", names[p->name]);
}

/* A number up to the character `end`, within [lo, hi]. */
static sc_status number(parse *p, char end, sc_unit unit, double lo, double hi)
{
    char text[LONGEST];
    const char *stop = strchr(p->at, end);
    size_t n = stop ? (size_t)(stop - p->at) : 0;
    if (n == 0 || n >= sizeof text) return malformed(p);
    memcpy(text, p->at, n);
    text[n] = '\0';
    sc_status first = p->err ? p->err->status : SC_OK;
    if (sc_unit_parse(text, unit, p->w->pos, &p->w->value, p->err) != SC_OK) {
        if (p->err && first == SC_OK) p->err->status = SC_EUSAGE;
        return SC_EUSAGE;
    }
    p->at = stop;
    if (p->w->value >= lo && p->w->value <= hi) return SC_OK;
    return sc_error(p->err, SC_EINPUT, SC_C_RANGE, p->w->pos, forms[p->name],
                    "%s is out of range", text);
}

/* Parses RANK and the character `end`, which is not consumed. */
static sc_status rank(parse *p, char end)
{
    uint64_t v;
    if (!emu_whole(&p->at, (uint64_t)UINT32_MAX, &v) || *p->at != end)
        return malformed(p);
    p->w->rank = (uint32_t)v;
    if (v < p->world) return SC_OK;
    return sc_error(p->err, SC_EINPUT, SC_C_RANGE, p->w->pos, forms[p->name],
                    "rank %u: ranks are 0 to %u", p->w->rank, p->world - 1);
}

/* One part; `end` is what follows it. */
static sc_status part(parse *p, char what, char end)
{
    switch (what) {
    case 'r': return rank(p, end);
    case 'f': return number(p, end, SC_U_NONE, 1 / MAX_FACTOR, MAX_FACTOR);
    case 't': return number(p, end, SC_U_TIME, 0, MAX_STALL);
    case 'j': return number(p, end, SC_U_NONE, 0, 10);
    case 'n':
        return emu_whole(&p->at, MAX_AT, &p->w->at) && *p->at == end
                   ? SC_OK
                   : malformed(p);
    default: return *p->at++ == what ? SC_OK : malformed(p);
    }
}

static sc_status value(parse *p)
{
    const char *parts = kinds[p->name].parts;
    p->w->what = kinds[p->name].what;
    if (p->w->what == SC_EMU_LATENCY_TIMES && *p->at == '+') {
        p->w->what = SC_EMU_LATENCY_ADD;
        parts = "+t";
    }
    for (; *parts; parts++) SC_TRY(part(p, *parts, parts[1]));
    return SC_OK;
}

static sc_status unknown(const char *name, sc_pos pos, sc_err *err)
{
    char hint[64];
    const char *near = sc_nearest(name, names);
    snprintf(hint, sizeof hint, "did you mean %s?", near ? near : "");
    return sc_error(err, SC_EUSAGE, SC_C_UNKNOWN_NAME, pos,
                    near ? hint
                         : "the kinds are latency, bandwidth, straggler, "
                           "jitter, stall and fail",
                    "there is no what-if \"%s\"", name);
}

sc_status emu_whatif_parse(const char *text, uint32_t world, sc_pos pos,
                           sc_emu_whatif *out, sc_err *err)
{
    char name[24];
    sc_emu_whatif w = {.pos = pos};
    size_t n = strcspn(text, "=");
    snprintf(name, sizeof name, "%.*s", n < 23 ? (int)n : 23, text);
    parse p = {.at = text + n + 1, .world = world, .w = &w, .err = err};
    while (names[p.name] && strcmp(names[p.name], name) != 0) p.name++;
    if (!names[p.name]) return unknown(name, pos, err);
    if (text[n] == '\0') return malformed(&p);
    SC_TRY(value(&p));
    *out = w;
    return SC_OK;
}
