/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - parses NAME=VALUE of --what-if. */
#include "emu/whatif.h"

#include <stdio.h>
#include <string.h>

#define LONGEST    64 /* longest text of a number with its unit */
#define MAX_FACTOR 1e6
#define MAX_STALL  1e6 /* seconds */
#define MAX_AT     ((uint64_t)1 << 53)

enum { LATENCY, BANDWIDTH, STRAGGLER, JITTER, STALL, FAIL };

static const char *const names[] = {
    "latency", "bandwidth", "straggler", "jitter", "stall", "fail", NULL};
static const char *const forms[] = {
    "write latency=+100us or latency=x2",
    "write bandwidth=x0.5",
    "write straggler=RANK:FACTOR, for example straggler=5:1.2",
    "write jitter=0.05 or jitter=5%",
    "write stall=RANK:TIME@N, for example stall=5:20ms@100",
    "write fail=RANK@N, for example fail=5@100"};

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

static sc_status factor(parse *p)
{
    p->at++; /* x */
    return number(p, '\0', SC_U_NONE, 1 / MAX_FACTOR, MAX_FACTOR);
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

/* @N to the end. */
static sc_status at_operation(parse *p)
{
    p->at++;
    if (!emu_whole(&p->at, MAX_AT, &p->w->at) || *p->at) return malformed(p);
    return SC_OK;
}

static sc_status latency(parse *p)
{
    if (*p->at == 'x') {
        p->w->what = SC_EMU_LATENCY_TIMES;
        return factor(p);
    }
    if (*p->at++ != '+') return malformed(p);
    p->w->what = SC_EMU_LATENCY_ADD;
    return number(p, '\0', SC_U_TIME, 0, MAX_STALL);
}

static sc_status bandwidth(parse *p)
{
    p->w->what = SC_EMU_BANDWIDTH_TIMES;
    return *p->at == 'x' ? factor(p) : malformed(p);
}

static sc_status straggler(parse *p)
{
    p->w->what = SC_EMU_STRAGGLER;
    SC_TRY(rank(p, ':'));
    return factor(p);
}

static sc_status stall(parse *p)
{
    p->w->what = SC_EMU_STALL;
    SC_TRY(rank(p, ':'));
    p->at++;
    SC_TRY(number(p, '@', SC_U_TIME, 0, MAX_STALL));
    return at_operation(p);
}

static sc_status fail(parse *p)
{
    p->w->what = SC_EMU_FAIL;
    SC_TRY(rank(p, '@'));
    return at_operation(p);
}

static sc_status value(parse *p)
{
    switch (p->name) {
    case LATENCY: return latency(p);
    case BANDWIDTH: return bandwidth(p);
    case STRAGGLER: return straggler(p);
    case STALL: return stall(p);
    case FAIL: return fail(p);
    default: break;
    }
    p->w->what = SC_EMU_JITTER;
    return number(p, '\0', SC_U_NONE, 0, 10);
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
