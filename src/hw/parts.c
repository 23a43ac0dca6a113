/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - counts the parts of a machine, and adds up what its network draws. */
#include "hw/build.h"
#include "hw/hw_failures.h"
#include "hw/hw_parts.h"
#include "hw/read.h"

#include <math.h>

/* Ports of both sides of each tier, over the ports of a switch. */
sc_hw_parts sc_hw_count_parts(const sc_hw *hw, uint32_t ports)
{
    sc_hw_parts n = {.hosts = sc_hw_count(hw, SC_COMP_HOST),
                     .adapters = sc_hw_count(hw, SC_COMP_ADAPTER)};
    if (n.adapters <= 0) return n;
    const sc_dim *d = &hw->dim[hw->n_dims - 1];
    bool spines = d->leaf > 0 && d->leaf < d->size;
    bool cores = spines && d->pod > 0 && d->pod < d->size;
    double up = spines ? n.adapters / fmax(1, d->oversub) : 0;
    double top = cores ? up / fmax(1, d->core_oversub) : 0;
    n.links = n.adapters + up + top;
    n.switches = ceil((n.adapters + up) / ports) + ceil((up + top) / ports) +
                 ceil(top / ports);
    return n;
}

/* ---- power --------------------------------------------------------------- */

typedef struct row {
    double rate, adapter, switch_, link;
    int64_t ports;
} row;

#define AT(field) .offset = offsetof(row, field)
#define WATT(key, field, about)                                           \
    {                                                                     \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_WATT, AT(field), \
        .max = 1e6, .required = true, .help = about                       \
    }

static const sc_key row_keys[] = {{.name = "rate",
                                   .type = SC_T_QUANTITY,
                                   .unit = SC_U_RATE,
                                   AT(rate),
                                   .min = 1e6,
                                   .max = 1e15,
                                   .required = true,
                                   .help = "of a port"},
                                  WATT("adapter", adapter, "one adapter"),
                                  WATT("switch", switch_, "one switch"),
                                  {.name = "switch_ports",
                                   .type = SC_T_INT,
                                   .unit = SC_U_COUNT,
                                   AT(ports),
                                   .min = 2,
                                   .max = 65536,
                                   .required = true,
                                   .help = "its ports"},
                                  WATT("link", link, "both transceivers"),
                                  {.name = NULL}};

typedef struct file {
    const sc_node *sources, *rates;
} file;

static const sc_key file_keys[] = {{.name = "sources",
                                    .type = SC_T_NODE,
                                    .offset = offsetof(file, sources),
                                    .help = "where the values come from"},
                                   {.name = "rates",
                                    .type = SC_T_NODE,
                                    .offset = offsetof(file, rates),
                                    .required = true,
                                    .help = "NAME: {rate: ..., ...}"},
                                   {.name = NULL}};

static sc_status read_rows(sc_node *root, sc_arena *a,
                           const sc_part_power **out, uint32_t *n, sc_err *err)
{
    file f = {NULL, NULL};
    hw_values values;
    uint32_t count = 0;
    SC_TRY(sc_schema_read(file_keys, root, &f, NULL, a, err));
    if (f.rates->kind != SC_N_MAP || f.rates->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, f.rates->pos,
                        "write NAME: {rate: 400Gb/s, ...} for each",
                        "rates is no map, or empty");
    sc_part_power *p = SC_NEW_N(a, sc_part_power, f.rates->n);
    if (p == NULL) return sc_error_nomem(err);
    for (sc_node *c = f.rates->child; c; c = c->next) {
        row r = {0};
        if (c->kind != SC_N_MAP)
            return sc_error(err, SC_EINPUT, SC_C_TYPE, c->pos,
                            "write {rate: 400Gb/s, ...}",
                            "\"%.40s\" has no values", c->key);
        SC_TRY(hw_take_sources_of(c, f.sources, &values, a, err));
        SC_TRY(sc_schema_read(row_keys, c, &r, NULL, a, err));
        p[count++] = (sc_part_power){.rate = r.rate,
                                     .adapter_w = r.adapter,
                                     .switch_w = r.switch_,
                                     .link_w = r.link,
                                     .switch_ports = (uint32_t)r.ports};
    }
    *out = p;
    *n = count;
    return SC_OK;
}

sc_status sc_part_power_read(const char *text, size_t len, const char *name,
                             sc_arena *a, const sc_part_power **out,
                             uint32_t *n, sc_err *err)
{
    sc_node *root;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, name, a, &root, err));
    return read_rows(root, a, out, n, err);
}

/* The row of the nearest rate, as a ratio. */
static const sc_part_power *nearest(const sc_part_power *p, uint32_t n,
                                    double rate)
{
    const sc_part_power *best = p;
    for (uint32_t i = 1; i < n; i++)
        if (fabs(log(p[i].rate / rate)) < fabs(log(best->rate / rate)))
            best = &p[i];
    return best;
}

sc_status hw_network_power(sc_hw *hw, sc_arena *a, sc_err *err)
{
    const sc_embedded *e = sc_embedded_find("hw/network.yml");
    const sc_part_power *p;
    sc_node *root;
    uint32_t n;
    double rate = hw->n_dims > 0 ? hw->dim[hw->n_dims - 1].port_bw : 0;
    hw->network_power = (sc_network_power){0, 0, 0};
    if (hw->n_nodes < 2 || rate <= 0) return SC_OK;
    if (!e)
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "data/hw/network.yml is not built in");
    SC_TRY(sc_embedded_read(e, a, &root, err));
    SC_TRY(read_rows(root, a, &p, &n, err));
    p = nearest(p, n, rate);
    double scale = rate / p->rate;
    sc_hw_parts parts = sc_hw_count_parts(hw, p->switch_ports);
    hw->network_power =
        (sc_network_power){.adapters_w = scale * parts.adapters * p->adapter_w,
                           .switches_w = scale * parts.switches * p->switch_w,
                           .links_w = scale * parts.links * p->link_w};
    return SC_OK;
}
