/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_json.c - writes a live run as stepcast.emulate/1. */
#include "report/emulate_sum.h"
#include "report/origin.h"
#include "report/report_row.h"

#include <math.h>

static void put_time(sc_json *j, const char *key, sc_time t)
{
    sc_json_put_double(j, key, sc_time_to_s(t));
}

/* Writes null if the value is unknown. */
static void put_known(sc_json *j, const char *key, bool known, sc_time t)
{
    sc_json_put_double(j, key, known ? sc_time_to_s(t) : NAN);
}

static void put_end(sc_json *j, const char *status, const char *signal,
                    const sc_report_real *k)
{
    if (k->signal)
        sc_json_put_string(j, signal, k->signal);
    else
        sc_json_put_uint(j, status, (uint64_t)k->status);
}

static void rank(const sc_report_real *k, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "rank", k->rank);
    put_end(j, "status", "signal", k);
    sc_json_put_double(j, "cpu_s", k->cpu_s);
    sc_json_put_uint(j, "peak_rss_bytes", k->peak_rss_bytes);
    sc_json_put_uint(j, "preemptions", k->preemptions);
    sc_json_put_uint(j, "operations", k->run ? k->run->n_records : 0);
    sc_json_put_uint(j, "steps", k->n_steps);
    put_time(j, "clock_s", k->run ? k->run->totals.now : 0);
    put_time(j, "overhead_s", k->run ? k->run->totals.overhead : 0);
    sc_json_end(j, '}');
}

static void step(const sc_report_real *k, uint32_t i, sc_json *j)
{
    const sc_emu_step *s = &k->step[i];
    sc_time waited = 0;
    bool device = false;
    for (uint64_t n = 0; n < s->n; n++) {
        waited += k->run->record[s->first + n].waited;
        device |= k->run->record[s->first + n].flags & SC_EMU_DEVICE;
    }
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "rank", k->rank);
    sc_json_put_uint(j, "index", i);
    put_time(j, "begin_s", s->begin);
    put_time(j, "step_s", s->end - s->begin);
    put_known(j, "waited_s", !device, waited);
    put_known(j, "compute_s", !device, s->end - s->begin - waited);
    put_time(j, "in_flight_s", report_emulate_in_flight(k->run, s));
    sc_json_put_uint(j, "operations", s->n);
    sc_json_end(j, '}');
}

static void calls(const sc_report_calls *k, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "op", sc_coll_names[k->coll]);
    sc_json_put_uint(j, "bytes", k->bytes);
    sc_json_put_uint(j, "group_size", k->group_size);
    sc_json_put_uint(j, "count", k->count);
    put_time(j, "modelled_s", k->modelled);
    put_known(j, "waited_s", !k->device, k->waited);
    sc_json_end(j, '}');
}

static void provenance(const sc_report_emulation *s, sc_json *j)
{
    report_provenance(j);
    sc_json_put_uint(j, "seed", s->seed);
    report_inputs(s->input, s->n_inputs, j);
    sc_json_end(j, '}');
}

static void lists(const sc_report_emulation *s, sc_json *j)
{
    sc_json_key(j, "ranks");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->n; i++) rank(&s->rank[i], j);
    sc_json_end(j, ']');
    sc_json_key(j, "steps");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->rank[i].n_steps; k++)
            step(&s->rank[i], k, j);
    sc_json_end(j, ']');
    sc_json_key(j, "collectives");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->sum->n_calls; i++) calls(&s->sum->calls[i], j);
    sc_json_end(j, ']');
}

void sc_report_emulation_json(const sc_report_emulation *s, sc_json *j)
{
    const sc_report_emu_sum *m = s->sum;
    sc_json_put_string(j, "failure", s->failure);
    put_end(j, "command_status", "command_signal", &s->rank[s->command]);
    sc_json_put_string(j, "library", s->library);
    sc_json_put_double(j, "step_time_s", m->step_s);
    sc_json_put_double(j, "step_time_q1_s", m->step_q1_s);
    sc_json_put_double(j, "step_time_q3_s", m->step_q3_s);
    sc_json_put_double(j, "step_time_mean_s", m->step_mean_s);
    sc_json_put_double(j, "step_time_max_s", m->step_max_s);
    sc_json_put_double(j, "waited_s", m->waited_s);
    sc_json_put_double(j, "waited_for_ranks_s", m->waited_for_ranks_s);
    sc_json_put_double(j, "in_flight_s", m->in_flight_s);
    sc_json_put_double(j, "compute_s", m->compute_s);
    sc_json_put_double(j, "compute_spread", m->compute_spread);
    sc_json_put_double(j, "overhead_s", m->overhead_s);
    sc_json_put_double(j, "late_s", m->late_s);
    sc_json_put_uint(j, "unmodelled_calls", m->passed);
    sc_json_put_double(j, "wall_s", s->wall_s);
    lists(s, j);
    sc_json_put_strings(j, "assumptions", s->assumptions, s->n_assumptions);
    sc_json_put_strings(j, "warnings", s->warnings, s->n_warnings);
    provenance(s, j);
}
