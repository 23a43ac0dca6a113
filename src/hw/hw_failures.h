/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_failures.h - how often components of a machine fail: tables of what was
 * observed, built in (data/hw/failures.yml) or of a file.
 *
 * A table has the machine that was observed, the time, and how often each cause
 * stopped work. Units: seconds, 1/s.
 */
#ifndef SC_HW_FAILURES_H
#define SC_HW_FAILURES_H

#include "hw/hw.h"

/* What a cause belongs to, and with whose number its rate grows. */
typedef enum sc_component {
    SC_COMP_DEVICE,
    SC_COMP_DEVICE_MEMORY, /* per device */
    SC_COMP_HOST,
    SC_COMP_HOST_MAINTENANCE, /* of single hosts, unplanned; per host */
    SC_COMP_ADAPTER,
    SC_COMP_NETWORK,  /* switches and cables; per adapter */
    SC_COMP_SOFTWARE, /* per host */
    SC_COMP_PLANNED,  /* stops after a checkpoint; per host */
    SC_N_COMPONENTS
} sc_component;

extern const char *const sc_component_names[]; /* "device" ...; NULL ends */
/* Whether a failure takes a host out of service until it is repaired. */
bool sc_component_replaced(sc_component c);

typedef struct sc_failure {
    const char *name; /* "faulty GPU" */
    sc_component of;
    double rate;             /* 1/s for each component */
    const sc_source *source; /* NULL: not given */
} sc_failure;

typedef struct sc_failures {
    const char *name, *title;
    double restart_s, repair_s; /* 0: not given */
    double slow_rate;           /* of slow hosts, 1/s for each; 0: none */
    double slow_s, slowdown;    /* how long and by what factor they are slow */
    uint32_t n;
    const sc_failure *failure; /* [n] */
    uint32_t n_values;         /* other values with their sources */
    const sc_value *values;    /* [n_values] */
} sc_failures;

/* A table of the catalogue, or of a file (NAME.yml). Errors in the name are
 * reported at `pos`. */
sc_status sc_failures_find(const char *name, sc_pos pos, sc_arena *a,
                           const sc_failures **out, sc_err *err);

/* The text of such a file. */
sc_status sc_failures_read(const char *text, size_t len, const char *file,
                           sc_arena *a, const sc_failures **out, sc_err *err);

/* Names of the built-in tables. */
sc_status sc_failures_list(sc_arena *a, const char ***names, uint32_t *n,
                           sc_err *err);

/* How many of a component's parts a machine has. */
double sc_hw_count(const sc_hw *hw, sc_component c);

/* Failures of the whole machine per second: of all causes but planned stops, or
 * only of those after which a host is repaired; planned stops. */
double sc_failures_rate(const sc_failures *f, const sc_hw *hw, bool replaced);
double sc_failures_planned(const sc_failures *f, const sc_hw *hw);

#endif
