/* SPDX-License-Identifier: Apache-2.0 */
/* written_trace.h - small traces, event by event. */
#ifndef TESTS_WRITTEN_TRACE_H
#define TESTS_WRITTEN_TRACE_H

#include "traces.h"

#include <stdarg.h>

static sc_text events, notes; /* notes: of the last one that was read */

static inline void event(const char *cat, const char *name, int tid, double ts,
                         double dur, const char *fmt, ...) SC_PRINTF(6, 7);

static inline void event(const char *cat, const char *name, int tid, double ts,
                         double dur, const char *fmt, ...)
{
    va_list ap;
    sc_text_add(&events,
                "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,"
                "\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
                events.len > 1 ? "," : "", cat, name, tid, ts, dur);
    va_start(ap, fmt);
    sc_text_add_v(&events, fmt, ap);
    va_end(ap);
    sc_text_add(&events, "}}");
}

static inline void step(double to)
{
    event("user_annotation", "ProfilerStep#1", 1, 0, to, "\"x\":0");
}

static inline void call(const char *name, double ts, double dur, int id)
{
    event("cuda_runtime", name, 1, ts, dur, "\"correlation\":%d", id);
}

static inline void kernel(const char *name, int stream, double ts, double dur,
                          int id)
{
    event("kernel", name, stream, ts, dur,
          "\"device\":0,\"stream\":%d,\"correlation\":%d", stream, id);
}

/* A trace of the events so far, and `extra` members of the root. */
static inline const sc_profiled *read_written(const char *extra)
{
    sc_profiled *m = SC_NEW(&arena, sc_profiled);
    sc_text text;
    sc_text_init(&text);
    sc_text_add(&text, "{%s\"traceEvents\":[%s]}", extra, events.buf);
    sc_profiled_read_memory(text.buf, text.len, "t.json", &arena, &notes, m,
                            &err);
    no_error();
    sc_text_free(&text);
    return m;
}

/* That trace as the only one of a job. */
static inline sc_replay_model *written(const char *extra)
{
    sc_replay_model *x;
    sc_text_free(&notes);
    sc_text_init(&notes);
    const sc_profiled *m = read_written(extra);
    sc_replay_prepare(&m, 1, &(sc_replay_steps){0, UINT32_MAX}, &arena, &notes,
                      &x, &err);
    no_error();
    return x;
}

static inline int open_texts(void **state)
{
    sc_text_init(&events);
    sc_text_init(&notes);
    return setup(state);
}

static inline int close_texts(void **state)
{
    sc_text_free(&events);
    sc_text_free(&notes);
    return teardown(state);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, open_texts, close_texts)

#endif
