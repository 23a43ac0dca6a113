/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_prices.h - what a machine costs if it is bought: lists of prices, built in
 * (data/hw/prices.yml) or of a file, and the numbers of parts.
 *
 * Units: USD, seconds, J.
 */
#ifndef SC_HW_PRICES_H
#define SC_HW_PRICES_H

#include "hw/hw_parts.h"

typedef struct sc_host_price {
    const char *device;
    double usd;              /* of a host with its devices and adapters */
    const sc_source *source; /* NULL: not given */
} sc_host_price;

typedef struct sc_prices {
    const char *name, *title;
    double switch_usd, link_usd,
        rack_usd;          /* a link: both transceivers, cable; a
                                              rack: its part for one host */
    uint32_t switch_ports; /* of the adapters' rate */
    double link_rate;      /* bytes/s to which switch and link belong; those of
                              other rates cost in proportion; 0: any */
    double expanded_usd;   /* of a GB of expanded memory; 0: not known */
    double life_s;         /* after which all is written off */
    double usd_per_j;      /* electricity */
    double pue;            /* where the machine has none; 0: 1 */
    uint32_t n_hosts;
    const sc_host_price *host; /* [n_hosts] */
    uint32_t n_values;
    const sc_value *values; /* [n_values] of everything but hosts */
} sc_prices;

/* A list of the catalogue, or of a file (NAME.yml), which may name another as
 * its `base`. Errors in the name are reported at `pos`. */
sc_status sc_prices_find(const char *name, sc_pos pos, sc_arena *a,
                         const sc_prices **out, sc_err *err);

/* Names of the built-in lists. */
sc_status sc_prices_list(sc_arena *a, const char ***names, uint32_t *n,
                         sc_err *err);

/* The text of such a file. */
sc_status sc_prices_read(const char *text, size_t len, const char *file,
                         sc_arena *a, const sc_prices **out, sc_err *err);

/* The price of a host with this device; NULL: not in the list. */
const sc_host_price *sc_prices_host(const sc_prices *p, const char *device);

#endif
