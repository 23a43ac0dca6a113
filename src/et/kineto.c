/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.c - the root of a profiler's trace and its list of events. */
#include "et/kineto.h"

#include "et/root.h"

#include <string.h>

typedef struct reader {
    scan *s;
    const sc_kineto_sink *to;
    sc_kineto_damage *damage;
    sc_err *err;
    sc_kineto_args args; /* of the event at hand */
} reader;

/* ---- events -------------------------------------------------------------- */

static bool names_event(const scan_token *key)
{
    return SCAN_IS(key, "ph") || SCAN_IS(key, "name") || SCAN_IS(key, "cat") ||
           SCAN_IS(key, "pid") || SCAN_IS(key, "ts") || SCAN_IS(key, "tid");
}

/* Whether an event may begin with the brace at `p`: arguments do not have these
 * keys behind a comma or the bracket of the list. */
static scan_status begins_event(const scan *s, const char *begin, const char *p)
{
    const char *before = p, *q = p + 1;
    scan_token key;
    bool last;
    while (before > begin && (unsigned char)before[-1] <= ' ') before--;
    if (before == begin || (before[-1] != ',' && before[-1] != '['))
        return SCAN_BROKEN;
    scan_status got = scan_key(&q, s->end, &key, &last);
    if (got != SCAN_OK) return got;
    return !last && names_event(&key) ? SCAN_OK : SCAN_BROKEN;
}

/* Moves to the next event behind one that could not be read. */
static sc_status resynchronize(reader *r)
{
    scan *s = r->s;
    if (!r->damage->n_broken++) r->damage->broken = scan_pos(s, s->at);
    const char *p = s->at + 1;
    for (;;) {
        p = memchr(p, '{', (size_t)(s->end - p));
        scan_status got = p ? begins_event(s, s->at, p) : SCAN_MORE;
        if (got == SCAN_OK) {
            s->at = p;
            return SC_OK;
        }
        if (got == SCAN_BROKEN) {
            p++;
            continue;
        }
        /* Some bytes before the brace stay, to see what is before it. */
        const char *keep = p ? p : s->end;
        size_t back = (size_t)(keep - s->at) > 64 ? 64 : (size_t)(keep - s->at);
        s->at = keep - back;
        SC_TRY(scan_more(s));
        p = s->at + back;
    }
}

/* Reads a list of events; SC_NO: the file ends inside. */
static sc_status events(reader *r, const scan_token *list)
{
    scan *s = r->s;
    s->at = list->at + 1;
    for (;;) {
        sc_kineto_event e;
        const char *p = s->at;
        scan_status got = scan_blanks(&p, s->end);
        if (got == SCAN_OK && *p == ',') {
            s->at = p + 1;
            continue;
        }
        if (got == SCAN_OK && *p == ']') {
            s->at = p + 1;
            return SC_OK;
        }
        if (got == SCAN_OK) {
            s->at = p;
            got = *p == '{' ? kineto_event_read(&p, s->end, &r->args, &e)
                            : SCAN_BROKEN;
        }
        if (got == SCAN_MORE) SC_TRY(scan_more(s));
        if (got == SCAN_BROKEN) SC_TRY(resynchronize(r));
        if (got != SCAN_OK) continue;
        SC_TRY(r->to->event(r->to->ctx, &e));
        s->at = p;
    }
}

/* ---- the root ------------------------------------------------------------ */

static sc_status not_a_trace(reader *r, const char *what, const char *hint)
{
    return sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, scan_pos(r->s, r->s->at),
                    hint, "%s", what);
}

/* SC_NO: the file ends inside. */
static sc_status root(reader *r, bool *has_events)
{
    root_part part;
    scan_token key, value;
    sc_status s = root_begin(r->s, &part, &value);
    if (s == SC_NO) return not_a_trace(r, "the file is empty", SC_KINETO_HINT);
    SC_TRY(s);
    *has_events = part == ROOT_EVENTS;
    if (*has_events) return events(r, &value);
    while (part != ROOT_END && part != ROOT_BROKEN) {
        SC_TRY(root_next(r->s, &part, &key, &value));
        if (part == ROOT_NODES)
            return not_a_trace(r, "this is an execution trace, without times",
                               "give the trace of the profiler (Kineto)");
        if (part == ROOT_EVENTS) {
            *has_events = true;
            SC_TRY(events(r, &value));
            if (!r->to->member) return SC_OK;
        } else if (part == ROOT_MEMBER && r->to->member) {
            r->to->member(r->to->ctx, &key, &value);
        }
    }
    if (part == ROOT_BROKEN)
        return not_a_trace(r, "this is not JSON", SC_KINETO_HINT);
    return SC_OK;
}

sc_status sc_kineto_read(scan *s, const sc_kineto_sink *to,
                         sc_kineto_damage *out, sc_err *err)
{
    bool has_events = false;
    reader r = {.s = s, .to = to, .damage = out, .err = err};
    *out = (sc_kineto_damage){.n_broken = 0};
    sc_status status = root(&r, &has_events);
    if (status == SC_NO && !has_events)
        return not_a_trace(&r, "the file ends before its list of events",
                           SC_KINETO_HINT);
    if (status == SC_NO) {
        out->truncated = true;
        out->end = scan_pos(s, s->at);
        return SC_OK;
    }
    SC_TRY(status);
    if (!has_events)
        return not_a_trace(&r, "the file has no list of events",
                           SC_KINETO_HINT);
    return SC_OK;
}
