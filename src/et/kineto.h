/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.h - inside et/: one event of a profiler's trace. */
#ifndef ET_KINETO_H
#define ET_KINETO_H

#include "et/et_kineto.h"

/* Reads the event whose brace is at `*p`, which moves behind it; its arguments go
 * to `args`. */
scan_status kineto_event_read(const char **p, const char *end,
                              sc_kineto_args *args, sc_kineto_event *out);

#endif
