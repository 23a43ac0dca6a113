/* SPDX-License-Identifier: Apache-2.0 */
/* report_mix.h - reports of a search for several jobs. */
#ifndef SC_REPORT_MIX_H
#define SC_REPORT_MIX_H

#include "report/report_search.h"
#include "search/search_mix.h"

/* At most `top` machines; `asked` is the job as all have it. */
void sc_report_mix_text(const sc_search_mix *m, uint32_t top, sc_text *out);
sc_status sc_report_mix_json(const sc_search_mix *m, uint32_t top,
                             sc_search_goal goal, const sc_job *asked,
                             sc_arena *a, sc_json *out, sc_err *err);

#endif
