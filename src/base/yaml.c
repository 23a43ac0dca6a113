/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - reads YAML as events, with libyaml. */
#include "base/docread.h"
#include "base/utf8.h"

#include <yaml.h>

/* What is expected next at each level of nesting. */
typedef enum expect { EXPECT_ITEM, EXPECT_KEY, EXPECT_VALUE } expect;

typedef struct reader {
    doc_sink *sink;
    expect level[SC_DOC_MAX_DEPTH + 1]; /* [0] is the document */
    uint32_t n_docs;
} reader;

static sc_pos position(const reader *r, yaml_mark_t m)
{
    sc_pos p = {r->sink->file, (uint32_t)m.line + 1, (uint32_t)m.column + 1};
    return p;
}

static sc_status syntax_error(const reader *r, const yaml_parser_t *p,
                              const char *text, size_t len)
{
    sc_err *err = r->sink->err;
    const char *what = p->problem == NULL ? "not readable" : p->problem;
    if (p->error == YAML_MEMORY_ERROR) return sc_error_nomem(err);
    if (p->error == YAML_READER_ERROR)
        return sc_error(
            err, SC_EINPUT, SC_C_SYNTAX,
            utf8_position(text, len, p->problem_offset, r->sink->file), NULL,
            "bad YAML: %s", what);
    return sc_error(err, SC_EINPUT, SC_C_SYNTAX, position(r, p->problem_mark),
                    NULL, "bad YAML: %s%s%s", what,
                    p->context == NULL ? "" : " ",
                    p->context == NULL ? "" : p->context);
}

/* Refuses anchors, aliases and tags: no file needs them, and they make
 * documents of exponential size possible. */
static sc_status check_plain(const reader *r, const yaml_event_t *e)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (e->type == YAML_SCALAR_EVENT) {
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
    } else if (e->type == YAML_SEQUENCE_START_EVENT) {
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
    } else if (e->type == YAML_MAPPING_START_EVENT) {
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
    }
    const char *what = e->type == YAML_ALIAS_EVENT ? "aliases"
                       : anchor != NULL            ? "anchors"
                       : tag != NULL               ? "tags"
                                                   : NULL;
    if (what == NULL) return SC_OK;
    return sc_error(r->sink->err, SC_EINPUT, SC_C_UNSUPPORTED,
                    position(r, e->start_mark),
                    "write the value out, or put the text in quotes",
                    "YAML %s are not supported", what);
}

/* Handles the start of a collection. It can not be a key; as a value it
 * completes the entry. */
static sc_status value_begins(reader *r, const yaml_event_t *e)
{
    expect *now = &r->level[r->sink->depth];
    if (*now == EXPECT_KEY)
        return sc_error(r->sink->err, SC_EINPUT, SC_C_TYPE,
                        position(r, e->start_mark), NULL,
                        "a key must be a single word or string");
    if (*now == EXPECT_VALUE) *now = EXPECT_KEY;
    return SC_OK;
}

static sc_status scalar(reader *r, const yaml_event_t *e)
{
    expect *now = &r->level[r->sink->depth];
    sc_event ev = {.kind = *now == EXPECT_KEY ? SC_EV_KEY : SC_EV_SCALAR,
                   .text = (const char *)e->data.scalar.value,
                   .len = e->data.scalar.length,
                   .quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
                   .pos = position(r, e->start_mark)};
    if (*now != EXPECT_ITEM)
        *now = *now == EXPECT_KEY ? EXPECT_VALUE : EXPECT_KEY;
    return doc_emit(r->sink, &ev);
}

static sc_status collection(reader *r, const yaml_event_t *e)
{
    bool map = e->type == YAML_MAPPING_START_EVENT;
    sc_event ev = {.kind = map ? SC_EV_MAP_BEGIN : SC_EV_SEQ_BEGIN,
                   .pos = position(r, e->start_mark)};
    SC_TRY(value_begins(r, e));
    SC_TRY(doc_emit(r->sink, &ev));
    r->level[r->sink->depth] = map ? EXPECT_KEY : EXPECT_ITEM;
    return SC_OK;
}

static sc_status handle(reader *r, const yaml_event_t *e)
{
    sc_event end = {.pos = position(r, e->start_mark)};
    SC_TRY(check_plain(r, e));
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->n_docs++ == 0) return SC_OK;
        return sc_error(r->sink->err, SC_EINPUT, SC_C_UNSUPPORTED,
                        position(r, e->start_mark), NULL,
                        "the file has more than one YAML document");
    case YAML_SCALAR_EVENT: return scalar(r, e);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT: return collection(r, e);
    case YAML_MAPPING_END_EVENT:
        end.kind = SC_EV_MAP_END;
        return doc_emit(r->sink, &end);
    case YAML_SEQUENCE_END_EVENT:
        end.kind = SC_EV_SEQ_END;
        return doc_emit(r->sink, &end);
    default: return SC_OK;
    }
}

sc_status yaml_events(const char *text, size_t len, doc_sink *sink)
{
    reader r = {.sink = sink};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return sc_error_nomem(sink->err);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    sc_status s = SC_OK;
    for (bool more = true; more && s == SC_OK;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            s = syntax_error(&r, &parser, text, len);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        s = handle(&r, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return s;
}
