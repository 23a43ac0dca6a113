/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - the root of a JSON file of PyTorch, and what it says the file is. */
#include "et/root.h"

#include "et/et.h"

sc_status root_begin(scan *s, root_part *part, scan_token *value)
{
    while (scan_blanks(&s->at, s->end) != SCAN_OK) SC_TRY(scan_more(s));
    *part = *s->at == '{'   ? ROOT_OBJECT
            : *s->at == '[' ? ROOT_EVENTS
                            : ROOT_BROKEN;
    *value = (scan_token){SCAN_ARRAY, s->at, 0};
    s->at += *part == ROOT_OBJECT;
    return SC_OK;
}

/* What a key and the first byte of its value are. */
static root_part part_of(const scan_token *key, char first)
{
    if (first != '[') return ROOT_MEMBER;
    if (SCAN_IS(key, "nodes")) return ROOT_NODES;
    return SCAN_IS(key, "traceEvents") ? ROOT_EVENTS : ROOT_MEMBER;
}

sc_status root_next(scan *s, root_part *part, scan_token *key,
                    scan_token *value)
{
    for (;;) {
        bool last = false;
        const char *p = s->at;
        scan_status got = scan_key(&p, s->end, key, &last);
        *part = ROOT_END;
        if (got == SCAN_OK && last) return SC_OK;
        if (got == SCAN_OK) got = scan_blanks(&p, s->end);
        if (got == SCAN_OK) {
            *part = part_of(key, *p);
            *value = (scan_token){SCAN_ARRAY, p, 0};
            if (*part != ROOT_MEMBER) return SC_OK;
            got = scan_value(&p, s->end, value);
        }
        if (got == SCAN_OK) {
            s->at = p;
            return SC_OK;
        }
        *part = ROOT_BROKEN;
        if (got == SCAN_BROKEN) return SC_OK;
        SC_TRY(scan_more(s));
    }
}

/* ---- what a file is ------------------------------------------------------ */

static void head(const scan_token *key, const scan_token *value,
                 sc_et_head *out)
{
    if (SCAN_IS(key, "pid") && !scan_int(value, &out->pid)) out->pid = -1;
    if (SCAN_IS(key, "schema") && value->type == SCAN_STRING &&
        value->len < sizeof out->schema)
        scan_unescape(value, out->schema);
}

/* Other programs write lists, too; only events of timelines have a phase. */
static sc_status list_of_events(scan *s, bool *is)
{
    scan_token e, key, value;
    scan_status got;
    *is = false;
    for (;;) {
        const char *p = s->at + 1;
        got = scan_value(&p, s->end, &e);
        if (got != SCAN_MORE) break;
        SC_TRY(scan_more(s));
    }
    if (got != SCAN_OK || e.type != SCAN_OBJECT) return SC_OK;
    bool last = false;
    const char *p = e.at + 1, *end = e.at + e.len;
    while (!*is && scan_member(&p, end, &key, &value, &last) == SCAN_OK &&
           !last)
        *is = SCAN_IS(&key, "ph");
    return SC_OK;
}

static sc_status recognise(scan *s, sc_et_kind *kind, sc_et_head *out)
{
    root_part part;
    scan_token key, value;
    bool is = true;
    SC_TRY(root_begin(s, &part, &value));
    if (part == ROOT_EVENTS) SC_TRY(list_of_events(s, &is));
    while (part == ROOT_OBJECT || part == ROOT_MEMBER) {
        SC_TRY(root_next(s, &part, &key, &value));
        if (part == ROOT_MEMBER) head(&key, &value, out);
    }
    if (part == ROOT_NODES) *kind = SC_ET_NODES;
    if (part == ROOT_EVENTS && is) *kind = SC_ET_EVENTS;
    return SC_OK;
}

sc_status sc_et_recognise(sc_stream *in, const char *file, sc_et_kind *kind,
                          sc_et_head *out, sc_err *err)
{
    scan s;
    sc_err none;
    sc_err_init(&none);
    *kind = SC_ET_OTHER;
    *out = (sc_et_head){.pid = -1};
    sc_status status = scan_open(&s, in, file, &none);
    if (status == SC_OK) status = recognise(&s, kind, out);
    scan_close(&s);
    if (status == SC_EIO || status == SC_ENOMEM)
        return sc_error(err, status, none.d[0].code, sc_pos_file(file),
                        none.d[0].hint, "%s", none.d[0].msg);
    return SC_OK;
}
