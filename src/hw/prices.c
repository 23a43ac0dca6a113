/* SPDX-License-Identifier: Apache-2.0 */
/* prices.c - reads lists of prices. */
#include "hw/hw_prices.h"
#include "hw/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct list {
    const char *title, *base;
    const sc_node *sources, *hosts;
    double switch_usd, link_usd, rack_usd, expanded_usd, life_s, usd_per_j, pue,
        link_rate;
    int64_t ports;
} list;

#define AT(field) .offset = offsetof(list, field)
#define USD(key, field, about)                                           \
    {                                                                    \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_USD, AT(field), \
        .max = 1e12, .help = about                                       \
    }

static const sc_key list_keys[] = {
    {.name = "title", .type = SC_T_STRING, AT(title), .help = "of what"},
    {.name = "base",
     .type = SC_T_STRING,
     AT(base),
     .help = "list of the catalogue whose prices hold unless given here"},
    {.name = "sources",
     .type = SC_T_NODE,
     AT(sources),
     .help = "where the values come from"},
    {.name = "hosts",
     .type = SC_T_NODE,
     AT(hosts),
     .help = "DEVICE: price of a host with its devices and adapters"},
    USD("switch", switch_usd, "one switch"),
    {.name = "switch_ports",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     AT(ports),
     .min = 2,
     .max = 65536,
     .help = "its ports, of the adapters' rate"},
    USD("link", link_usd, "both transceivers and the cable"),
    {.name = "link_rate",
     .type = SC_T_QUANTITY,
     .unit = SC_U_RATE,
     AT(link_rate),
     .min = 1e6,
     .max = 1e15,
     .help = "rate of these links and switches; others cost in proportion"},
    USD("rack", rack_usd, "part of a rack for one host"),
    USD("expanded_memory", expanded_usd,
        "a GB (10^9 bytes) of expanded memory, with its controllers and "
        "switches"),
    {.name = "service_life",
     .type = SC_T_QUANTITY,
     .unit = SC_U_TIME,
     AT(life_s),
     .min = 1,
     .max = 1e10,
     .help = "after which everything is written off"},
    {.name = "electricity",
     .type = SC_T_QUANTITY,
     .unit = SC_U_TARIFF,
     AT(usd_per_j),
     .max = 1,
     .help = "price of energy"},
    {.name = "pue",
     .type = SC_T_QUANTITY,
     AT(pue),
     .min = 1,
     .max = 10,
     .help = "power usage effectiveness, where the machine states none"},
    {.name = NULL}};

static sc_status catalogue(sc_arena *a, sc_node **root, sc_err *err)
{
    const sc_embedded *f = sc_embedded_find("hw/prices.yml");
    if (f != NULL) return sc_embedded_read(f, a, root, err);
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "data/hw/prices.yml is not built in");
}

static sc_status read_hosts(sc_node *root, const list *l, const sc_prices *base,
                            sc_arena *a, sc_prices *p, sc_err *err)
{
    hw_values sources = {0, NULL};
    sc_node *map = hw_entry(root, "hosts");
    uint32_t own = map != NULL && map->kind == SC_N_MAP ? map->n : 0;
    uint32_t more = base != NULL ? base->n_hosts : 0;
    sc_host_price *h = SC_NEW_N(a, sc_host_price, own + more);
    if (h == NULL) return sc_error_nomem(err);
    if (map != NULL && map->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, map->pos,
                        "write DEVICE: PRICE for each", "hosts is no map");
    if (own > 0) SC_TRY(hw_take_sources_of(map, l->sources, &sources, a, err));
    sc_status first = SC_OK;
    for (const sc_node *c = own > 0 ? map->child : NULL; c; c = c->next) {
        sc_status s = SC_OK;
        h[p->n_hosts].device = c->key;
        if (c->kind != SC_N_SCALAR)
            s = sc_error(err, SC_EINPUT, SC_C_TYPE, c->pos,
                         "write DEVICE: 310kUSD", "\"%.40s\" has no price",
                         c->key);
        else
            s = sc_unit_parse(c->text, SC_U_USD, c->pos, &h[p->n_hosts++].usd,
                              err);
        if (first == SC_OK) first = s;
    }
    for (uint32_t i = 0; i < p->n_hosts; i++)
        h[i].source = hw_source_of(&sources, h[i].device);
    for (uint32_t i = 0; i < more; i++) h[p->n_hosts++] = base->host[i];
    p->host = h;
    return first;
}

static sc_status read_list(sc_node *root, const char *name, sc_arena *a,
                           const sc_prices **out, sc_err *err)
{
    hw_values values;
    list l = {0};
    const sc_prices *base = NULL;
    sc_prices *p = SC_NEW(a, sc_prices);
    if (p == NULL) return sc_error_nomem(err);
    if (root->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos,
                        "docs/whole-run.md has the keys",
                        "this is no list of prices");
    const sc_node *of = sc_node_get(root, "base");
    if (of != NULL && of->kind == SC_N_SCALAR && strchr(of->text, '.'))
        return sc_error(err, SC_EINPUT, SC_C_REFERENCE, of->pos,
                        "name a list of the catalogue",
                        "a file can't be the base of another");
    if (of != NULL && of->kind == SC_N_SCALAR)
        SC_TRY(sc_prices_find(of->text, of->pos, a, &base, err));
    if (base != NULL)
        l = (list){.switch_usd = base->switch_usd,
                   .link_usd = base->link_usd,
                   .rack_usd = base->rack_usd,
                   .expanded_usd = base->expanded_usd,
                   .link_rate = base->link_rate,
                   .life_s = base->life_s,
                   .usd_per_j = base->usd_per_j,
                   .pue = base->pue,
                   .ports = base->switch_ports};
    SC_TRY(hw_take_sources(root, &values, a, err));
    SC_TRY(sc_schema_read(list_keys, root, &l, NULL, a, err));
    if (l.life_s <= 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, root->pos,
                        "for example service_life: 1461d",
                        "it is not known for how long the machine is used");
    *p = (sc_prices){.name = name,
                     .title = l.title ? l.title : name,
                     .switch_usd = l.switch_usd,
                     .link_usd = l.link_usd,
                     .rack_usd = l.rack_usd,
                     .expanded_usd = l.expanded_usd,
                     .link_rate = l.link_rate,
                     .switch_ports = l.ports > 0 ? (uint32_t)l.ports : 64,
                     .life_s = l.life_s,
                     .usd_per_j = l.usd_per_j,
                     .pue = l.pue,
                     .n_values = values.n,
                     .values = values.v};
    SC_TRY(read_hosts(root, &l, base, a, p, err));
    *out = p;
    return SC_OK;
}

sc_status sc_prices_list(sc_arena *a, const char ***names, uint32_t *n,
                         sc_err *err)
{
    sc_node *root;
    SC_TRY(catalogue(a, &root, err));
    return hw_names(root, a, names, n, err);
}

sc_status sc_prices_read(const char *text, size_t len, const char *file,
                         sc_arena *a, const sc_prices **out, sc_err *err)
{
    sc_node *root;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    return read_list(root, file, a, out, err);
}

sc_status sc_prices_find(const char *name, sc_pos pos, sc_arena *a,
                         const sc_prices **out, sc_err *err)
{
    sc_node *root;
    char *text;
    size_t len;
    if (hw_is_document(name)) {
        SC_TRY(sc_file_read(name, (size_t)1 << 20, a, &text, &len, err));
        return sc_prices_read(text, len, name, a, out, err);
    }
    SC_TRY(catalogue(a, &root, err));
    sc_node *l = hw_entry(root, name);
    if (l != NULL) return read_list(l, l->key, a, out, err);
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos,
                    "list-2024 is built in; a file (.yml) can have others",
                    "unknown list of prices \"%.80s\"", name);
}

const sc_host_price *sc_prices_host(const sc_prices *p, const char *device)
{
    for (uint32_t i = 0; i < p->n_hosts; i++)
        if (strcmp(p->host[i].device, device) == 0) return &p->host[i];
    return NULL;
}
