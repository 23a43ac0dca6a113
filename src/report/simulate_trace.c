/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_trace.c - tasks of all ranks as Chrome and Perfetto draw them. */
#include <stepcast/report_simulate.h>

#include "report/chrome.h"

#include <stdio.h>

/* A receive may wait while something is sent: it has a line of its own. */
enum { HOST, DEVICE, COMM, RECEIVE, N_THREADS };

static const char *const threads[N_THREADS] = {"host", "device",
                                               "communication", "receive"};

static unsigned thread_of(const sc_task_list *l, uint32_t i)
{
    if (l->flags[i] & SC_TASK_CPU) return HOST;
    if (l->kind[i] == SC_TASK_RECV) return RECEIVE;
    return l->kind[i] == SC_TASK_COMP ? DEVICE : COMM;
}

static const char *kind_of(const sc_task_list *l, uint32_t i)
{
    return l->kind[i] == SC_TASK_COLL ? sc_task_coll_names[l->coll[i]]
                                      : sc_task_kind_names[l->kind[i]];
}

static void args(const sc_workload *w, uint32_t rank, uint32_t i, sc_json *j)
{
    const sc_rank_trace *t = &w->ranks[rank];
    const sc_task_list *l = &w->classes[t->cls];
    bool pair = l->kind[i] == SC_TASK_SEND || l->kind[i] == SC_TASK_RECV;
    sc_json_key(j, "args");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "id", l->id[i]);
    if (l->size[i]) sc_json_put_uint(j, "bytes", l->size[i]);
    if (l->ops[i]) sc_json_put_uint(j, "flops", l->ops[i]);
    if (l->kind[i] == SC_TASK_COLL && l->group[i] != SC_TASK_WORLD)
        sc_json_put_string(j, "group", w->groups[t->groups[l->group[i]]].name);
    if (pair) sc_json_put_uint(j, "peer", t->peers[l->peer[i]]);
    sc_json_end(j, '}');
}

static void event(const sc_workload *w, uint32_t rank, uint32_t i,
                  const sc_task_span *s, sc_json *j)
{
    const sc_task_list *l = &w->classes[w->ranks[rank].cls];
    bool named = l->name && l->name[i][0];
    sc_json_begin(j, '{');
    sc_json_put_string(j, "ph", "X");
    sc_json_put_string(j, "name", named ? l->name[i] : kind_of(l, i));
    sc_json_put_string(j, "cat", kind_of(l, i));
    chrome_place(j, rank, thread_of(l, i));
    sc_json_put_double(j, "ts", (double)s->start / 1e6);
    sc_json_put_double(j, "dur", (double)(s->end - s->start) / 1e6);
    args(w, rank, i, j);
    sc_json_end(j, '}');
}

static void events_of(const sc_workload *w, const sc_simulate_result *r,
                      uint32_t rank, sc_json *j)
{
    const sc_task_list *l = &w->classes[w->ranks[rank].cls];
    const sc_task_span *s = r->span[rank];
    char name[32];
    snprintf(name, sizeof name, "rank %u", rank);
    chrome_meta(j, "process_name", rank, 0, name);
    for (unsigned k = 0; k < N_THREADS; k++)
        chrome_meta(j, "thread_name", rank, k, threads[k]);
    for (uint32_t i = 0; i < l->n_tasks; i++)
        if (s[i].end >= 0) event(w, rank, i, &s[i], j);
}

void sc_report_simulation_trace(const sc_workload *w,
                                const sc_simulate_result *r, sc_json *out)
{
    sc_json_begin(out, '{');
    sc_json_put_string(out, "displayTimeUnit", "ns");
    sc_json_key(out, "traceEvents");
    sc_json_begin(out, '[');
    for (uint32_t i = 0; i < r->n_ranks; i++) events_of(w, r, i, out);
    sc_json_end(out, ']');
    sc_json_end(out, '}');
}
