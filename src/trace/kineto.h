/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.h - inside trace/: reads the trace of PyTorch's profiler of one rank. */
#ifndef TRACE_KINETO_H
#define TRACE_KINETO_H

#include "base/stream.h"
#include "trace/trace_profiled.h"

sc_status kineto_read(sc_stream *in, const char *file, sc_arena *a,
                      sc_text *warnings, sc_profiled *out, sc_err *err);

#endif
