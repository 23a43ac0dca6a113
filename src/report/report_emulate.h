/* SPDX-License-Identifier: Apache-2.0 */
/* report_emulate.h - reports of a live run as text and as JSON. */
#ifndef SC_REPORT_EMULATE_H
#define SC_REPORT_EMULATE_H

#include "emu/emu_log.h"
#include "report/report.h"

/* One real rank. */
typedef struct sc_report_real {
    uint32_t rank;
    double cpu_s;         /* CPU time of its processes; NaN: unknown, and then
                           * the next two are 0 */
    uint64_t preemptions; /* times that other processes displaced them */
    uint64_t peak_rss_bytes;
    int status;            /* exit status; -1: ended by a signal */
    const char *signal;    /* "SIGSEGV"; NULL */
    const sc_emu_run *run; /* NULL: the rank called no collective */
    uint32_t n_steps;
    const sc_emu_step *step; /* [n_steps] */
    bool sure;               /* the steps were recognized with certainty */
} sc_report_real;

/* Calls of one kind by all real ranks. Times are summed over the ranks. */
typedef struct sc_report_calls {
    sc_coll coll;
    uint32_t group_size;
    uint64_t bytes, count, ended; /* `ended`: of `count` calls */
    sc_time modelled, waited;     /* from begin to end; time in which the
                                   * program only waited */
    bool device; /* SC_EMU_DEVICE: the waiting time is unknown */
} sc_report_calls;

/* Sums and means over a run. */
typedef struct sc_report_emu_sum {
    uint32_t n_calls;
    sc_report_calls *calls; /* [n_calls] longest modelled times first */
    uint64_t n_ops;         /* of all real ranks */
    uint64_t n_open;        /* operations that had not ended when the run did */
    uint64_t n_steps;       /* number of steps in the following values:
                             * without the first of each rank if it has more */
    double step_s, step_q1_s, step_q3_s; /* median, quartiles; NaN: no step */
    double step_mean_s, step_max_s;
    /* Means per step; NaN for waiting if any operation is SC_EMU_DEVICE. */
    double waited_s, waited_for_ranks_s; /* the part until the last member
                                          * arrived */
    double in_flight_s; /* an operation is in flight, from the arrival of its
                         * members on (on a device's stream: its own) */
    /* Time of steps without waiting: the median, and the distance between
     * quartiles over the median, of the rank with the largest; NaN: unknown. */
    double compute_s, compute_spread;
    bool device;       /* SC_EMU_DEVICE */
    double overhead_s; /* of all real ranks */
    double late_s;     /* per operation, mean; NaN: unknown */
    uint64_t passed;
} sc_report_emu_sum;

/* All pointers are borrowed. */
typedef struct sc_report_emulation {
    const sc_emu_config *config;
    const char *machine; /* as the user named it */
    const char *library; /* what was interposed: "gloo, nccl" */
    uint32_t n;
    const sc_report_real *rank; /* [n] */
    uint32_t command;           /* index of the rank whose exit status is the
                                 * run's */
    const char *failure;        /* why the run ended early; NULL: it did not */
    double wall_s;
    const sc_report_emu_sum *sum;
    uint64_t seed;
    uint32_t n_assumptions, n_warnings, n_inputs;
    const char *const *assumptions, *const *warnings; /* lines */
    const sc_report_input *input;
} sc_report_emulation;

/* Computes the sums from `rank` of `s`. */
sc_status sc_report_emulation_sum(const sc_report_emulation *s, sc_arena *a,
                                  sc_report_emu_sum *out, sc_err *err);

/* Prints a page: the step, the waiting times, the ranks. */
void sc_report_emulation_text(const sc_report_emulation *s, sc_text *out);

/* The JSON schema stepcast.emulate/1: members of an object,
 * from "failure" on. */
void sc_report_emulation_json(const sc_report_emulation *s, sc_json *out);
#endif
