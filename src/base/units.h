/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - numbers with units, as people write them.
 *
 * Every dimensional number a person writes carries its unit ("400Gb/s",
 * "50GB/s", "1.2us", "80GiB", "312TFLOP/s", "700W", "2.50USD/h"); a bare
 * number where a unit is needed is an error.  GB = 1e9 bytes, GiB = 2^30
 * bytes, b = bit, B = byte.  Inside the program a quantity is a double in the
 * base unit of its kind, named below.
 */
#ifndef SC_BASE_UNITS_H
#define SC_BASE_UNITS_H

#include "base/err.h"

typedef int64_t sc_time; /* picoseconds; 106 days fit */

#define SC_PS_PER_S 1000000000000LL
#define SC_TIME_MAX INT64_MAX

#define SC_GIB 1073741824.0 /* bytes */

typedef enum sc_unit {
    SC_U_NONE,   /* dimensionless: a bare number, "5%" or "5 %" = 0.05 */
    SC_U_COUNT,  /* whole number; K, M, G, T suffixes (1e3...) allowed */
    SC_U_BYTES,  /* bytes:        B kB MB GB TB KiB MiB GiB TiB */
    SC_U_RATE,   /* bytes/s:      [kMGT]B/s, [KMGT]iB/s, [kMGT]b/s = bit/s */
    SC_U_TIME,   /* seconds:      ps ns us ms s min h d */
    SC_U_FLOPS,  /* FLOP/s:       [GTPE]FLOP/s; also FLOPS spelling */
    SC_U_FLOP,   /* FLOP:         [GTPEZ]FLOP */
    SC_U_HERTZ,  /* Hz:           kHz MHz GHz */
    SC_U_WATT,   /* W:            mW W kW MW */
    SC_U_JOULE,  /* J:            J kJ MJ GJ kWh MWh */
    SC_U_USD,    /* US dollars:   "3USD", "$3", [kMG]USD */
    SC_U_PRICE,  /* USD/s:        "2.5USD/h" */
    SC_U_TARIFF, /* USD/J:        "0.08USD/kWh" */
    SC_U_CARBON, /* kg/J:         "0.4kg/kWh" */
    SC_N_UNITS
} sc_unit;

/* Parse `text` (whole string, surrounding blanks allowed) as a quantity of
 * kind `unit` into its base unit.  Finite values only; "NaN", "inf" and
 * overflow are SC_C_RANGE, a missing or foreign unit SC_C_UNIT (the hint
 * shows the number with legal units).  Works in every locale. */
sc_status sc_unit_parse(const char *text, sc_unit unit, sc_pos pos, double *out,
                        sc_err *err);

/* Shortest text that parses back to exactly the same double. */
void sc_unit_print(double value, sc_unit unit, char *buf, size_t size);

/* For people: about three digits ("1.23 ms", "42.0 GiB"). */
void sc_unit_print_short(double value, sc_unit unit, char *buf, size_t size);

/* The same, but in the unit in which `like` is printed, so that numbers of one
 * line have one unit. */
void sc_unit_print_like(double value, double like, sc_unit unit, char *buf,
                        size_t size);

const char *sc_unit_name(sc_unit unit);    /* "time" */
const char *sc_unit_example(sc_unit unit); /* "1.2us" */

/* Seconds to picoseconds, rounded up; saturates at SC_TIME_MAX.
 * Negative and NaN give 0. */
sc_time sc_time_from_s(double seconds);
double sc_time_to_s(sc_time t);

/* A finite double printed with the fewest digits that read back exactly;
 * locale-independent. */
void sc_double_print(double v, char *buf, size_t size);
#endif
