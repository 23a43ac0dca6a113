/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonread.c - reads JSON as events, with yajl.
 *
 * yajl reports how many bytes it has consumed. The last byte of a token
 * gives its first byte, and a cursor that only moves forward gives line and
 * column.
 */
#include "base/docread.h"
#include "base/utf8.h"

#include <string.h>
#include <yajl/yajl_parse.h>

typedef struct reader {
    doc_sink *sink;
    const char *text;
    size_t len;
    yajl_handle yajl;
    bool at_end;      /* all text was given; the last token may be pending */
    sc_status status; /* the status with which the caller stopped */
    size_t cursor;    /* bytes for which line and col are counted */
    uint32_t line, col;
} reader;

static size_t consumed(const reader *r)
{
    size_t n = r->at_end ? r->len : yajl_get_bytes_consumed(r->yajl);
    return n < r->len ? n : r->len;
}

static sc_pos position(reader *r, size_t offset)
{
    for (; r->cursor < offset; r->cursor++) {
        unsigned char c = (unsigned char)r->text[r->cursor];
        if (c == '\n') {
            r->line++;
            r->col = 1;
        } else if ((c & 0xC0) != 0x80) {
            r->col++;
        }
    }
    sc_pos p = {r->sink->file, r->line, r->col};
    return p;
}

/* The first byte of the string whose closing quote is at `close`; quotes inside
 * the string are escaped. */
static size_t string_start(const reader *r, size_t close)
{
    for (size_t i = close; i-- > r->cursor;) {
        size_t slashes = 0;
        if (r->text[i] != '"') continue;
        while (i > slashes && r->text[i - slashes - 1] == '\\') slashes++;
        if (slashes % 2 == 0) return i;
    }
    return r->cursor;
}

static int emit(reader *r, sc_event_kind kind, const char *text, size_t len,
                size_t start)
{
    sc_event ev = {.kind = kind, .text = text, .len = len};
    ev.quoted = r->text[start] == '"';
    ev.pos = position(r, start);
    r->status = doc_emit(r->sink, &ev);
    return r->status == SC_OK;
}

static int on_word(reader *r, const char *text, size_t len)
{
    return emit(r, SC_EV_SCALAR, text, len, consumed(r) - len);
}

static int on_null(void *ctx)
{
    return on_word(ctx, "null", 4);
}

static int on_bool(void *ctx, int value)
{
    return value ? on_word(ctx, "true", 4) : on_word(ctx, "false", 5);
}

static int on_number(void *ctx, const char *text, size_t len)
{
    return on_word(ctx, text, len);
}

static int on_text(reader *r, sc_event_kind kind, const unsigned char *text,
                   size_t len)
{
    size_t close = consumed(r) - 1, start = string_start(r, close);
    bool decoded = len != close - start - 1;
    if (decoded && !utf8_is_valid((const char *)text, len)) {
        r->status =
            sc_error(r->sink->err, SC_EINPUT, SC_C_SYNTAX, position(r, start),
                     NULL, "bad JSON: half a surrogate pair in a string");
        return 0;
    }
    return emit(r, kind, (const char *)text, len, start);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    return on_text(ctx, SC_EV_SCALAR, text, len);
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
    return on_text(ctx, SC_EV_KEY, text, len);
}

static int on_bracket(reader *r, sc_event_kind kind)
{
    return emit(r, kind, NULL, 0, consumed(r) - 1);
}

static int on_map(void *ctx)
{
    return on_bracket(ctx, SC_EV_MAP_BEGIN);
}

static int on_map_end(void *ctx)
{
    return on_bracket(ctx, SC_EV_MAP_END);
}

static int on_seq(void *ctx)
{
    return on_bracket(ctx, SC_EV_SEQ_BEGIN);
}

static int on_seq_end(void *ctx)
{
    return on_bracket(ctx, SC_EV_SEQ_END);
}

/* The start of the token that yajl refused; `end` is where yajl stopped. */
static size_t error_start(const reader *r, size_t end)
{
    static const char word[] = "+-.0123456789abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t start = end > r->cursor ? end - 1 : end;
    if (start < r->len && r->text[start] == '"') return string_start(r, start);
    if (start < r->len && strchr(word, r->text[start]) == NULL) return start;
    while (start > r->cursor && strchr(word, r->text[start - 1]) != NULL)
        start--;
    return start;
}

/* Common mistakes: texts that Python or JavaScript accept but JSON does not. */
static const char *help(const reader *r, size_t at)
{
    char c = '\0';
    if (at < r->len) c = r->text[at];
    size_t before = at;
    while (before > 0 && strchr(" \t\r\n", r->text[before - 1]) != NULL)
        before--;
    if ((c == '}' || c == ']') && before > 0 && r->text[before - 1] == ',')
        return "there must be no comma after the last element";
    if (c == 'N' || c == 'I') return "JSON has no NaN and no Infinity";
    if (c == '\'') return "strings need double quotes";
    if (c == '/' || c == '#') return "JSON has no comments";
    return NULL;
}

static sc_status syntax_error(reader *r)
{
    /* "parse error: unallowed token at this point in JSON text\n" */
    unsigned char *raw = yajl_get_error(r->yajl, 0, NULL, 0);
    if (raw == NULL) return sc_error_nomem(r->sink->err);
    const char *what = strstr((char *)raw, "error: ");
    what = what == NULL ? (char *)raw : what + strlen("error: ");
    bool truncated = strstr(what, "premature EOF") != NULL;
    bool in_string = strstr(what, " inside ") != NULL;
    size_t at = truncated   ? r->len
                : in_string ? consumed(r)
                            : error_start(r, consumed(r));
    sc_pos pos = position(r, at);
    sc_status s =
        truncated
            ? sc_error(r->sink->err, SC_EINPUT, SC_C_SYNTAX, pos,
                       "is the file complete?", "bad JSON: it ends too early")
            : sc_error(r->sink->err, SC_EINPUT, SC_C_SYNTAX, pos, help(r, at),
                       "bad JSON: %.*s", (int)strcspn(what, "\n."), what);
    yajl_free_error(r->yajl, raw);
    return s;
}

sc_status json_events(const char *text, size_t len, doc_sink *sink)
{
    static const yajl_callbacks callbacks = {
        on_null, on_bool, NULL,       NULL,   on_number, on_string,
        on_map,  on_key,  on_map_end, on_seq, on_seq_end};
    reader r = {.sink = sink, .text = text, .len = len, .line = 1, .col = 1};
    r.yajl = yajl_alloc(&callbacks, NULL, &r);
    if (r.yajl == NULL) return sc_error_nomem(sink->err);
    yajl_config(r.yajl, yajl_dont_validate_strings, 1); /* already done */
    yajl_status y = yajl_parse(r.yajl, (const unsigned char *)text, len);
    if (y == yajl_status_ok) {
        r.at_end = true;
        y = yajl_complete_parse(r.yajl);
    }
    sc_status s = r.status;
    if (y == yajl_status_error) s = syntax_error(&r);
    yajl_free(r.yajl);
    return s;
}
