/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc.h - reads files that people write: YAML and JSON with one interface of
 * events.
 *
 * sc_doc_events() streams a text as events; sc_doc_parse() builds a tree of
 * nodes from the same events. Every node keeps its file:line:column. Limits:
 * nesting 128, SC_DOC_MAX_BYTES of text. Duplicate keys are errors. All errors
 * of a file are reported in one pass as far as its syntax allows. YAML:
 * anchors, aliases and tags are refused (a billion-laughs file is
 * SC_C_UNSUPPORTED, not a crash). Text must be UTF-8.
 */
#ifndef SC_BASE_DOC_H
#define SC_BASE_DOC_H

#include "base/arena.h"

#define SC_DOC_MAX_BYTES ((size_t)256 << 20)
#define SC_DOC_MAX_DEPTH 128

typedef enum sc_format {
    SC_FMT_AUTO, /* JSON if the first non-blank byte is { or [, else YAML */
    SC_FMT_YAML,
    SC_FMT_JSON
} sc_format;

typedef enum sc_event_kind {
    SC_EV_MAP_BEGIN,
    SC_EV_KEY, /* text, len */
    SC_EV_MAP_END,
    SC_EV_SEQ_BEGIN,
    SC_EV_SEQ_END,
    SC_EV_SCALAR /* text, len, quoted; JSON null/true/false are unquoted */
} sc_event_kind;

typedef struct sc_event {
    sc_event_kind kind;
    const char *text; /* valid during the callback, not terminated */
    size_t len;
    bool quoted; /* a quoted string: never read as number or null */
    sc_pos pos;
} sc_event;

typedef sc_status (*sc_event_fn)(void *ctx, const sc_event *ev, sc_err *err);

/* `file` is only used in positions.  Stops at the first error that `fn`
 * returns and passes it up. */
sc_status sc_doc_events(const char *text, size_t len, sc_format fmt,
                        const char *file, sc_event_fn fn, void *ctx,
                        sc_err *err);

typedef enum sc_node_kind {
    SC_N_NULL,
    SC_N_SCALAR,
    SC_N_SEQ,
    SC_N_MAP
} sc_node_kind;

typedef struct sc_node sc_node;

struct sc_node {
    sc_node_kind kind;
    bool quoted;
    sc_pos pos;
    const char *key; /* of a map entry, else NULL; terminated */
    sc_pos key_pos;
    const char *text; /* scalar text; terminated */
    uint32_t n;       /* children of a map or sequence */
    sc_node *child;   /* first child */
    sc_node *next;    /* next sibling */
};

/* The tree lives in `arena`.  An empty file gives an SC_N_NULL node. */
sc_status sc_doc_parse(const char *text, size_t len, sc_format fmt,
                       const char *file, sc_arena *arena, sc_node **out,
                       sc_err *err);

/* Child of a map by key, or NULL. */
const sc_node *sc_node_get(const sc_node *map, const char *key);
#endif
