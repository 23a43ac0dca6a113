/* SPDX-License-Identifier: Apache-2.0 */
/* docread.h - shared by the readers of YAML and JSON: they pass events to the
 * caller and check the limits of both. */
#ifndef BASE_DOCREAD_H
#define BASE_DOCREAD_H

#include "base/doc.h"

typedef struct doc_sink {
    sc_event_fn fn;
    void *ctx;
    sc_err *err;
    const char *file;
    uint32_t depth;
} doc_sink;

/* Checks depth and text, then calls the caller's function. */
sc_status doc_emit(doc_sink *s, const sc_event *ev);

/* Whether the text is UTF-8 without NUL bytes and byte order mark. */
sc_status yaml_events(const char *text, size_t len, doc_sink *sink);
sc_status json_events(const char *text, size_t len, doc_sink *sink);

#endif
