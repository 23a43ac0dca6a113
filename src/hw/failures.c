/* SPDX-License-Identifier: Apache-2.0 */
/* failures.c - reads tables of observed failures. */
#include "hw/hw_failures.h"
#include "hw/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const sc_component_names[] = {
    "device",           "device_memory", "host",
    "host_maintenance", "adapter",       "network",
    "software",         "planned",       NULL};

/* The number with which the rate of a component grows. */
typedef enum population { DEVICES, HOSTS, ADAPTERS, N_POPULATIONS } population;

static const char *const population_names[] = {"devices", "hosts", "adapters"};

static const struct {
    population of;
    bool replaced;
} components[SC_N_COMPONENTS] = {
    [SC_COMP_DEVICE] = {DEVICES, true},
    [SC_COMP_DEVICE_MEMORY] = {DEVICES, true},
    [SC_COMP_HOST] = {HOSTS, true},
    [SC_COMP_HOST_MAINTENANCE] = {HOSTS, true},
    [SC_COMP_ADAPTER] = {ADAPTERS, true},
    [SC_COMP_NETWORK] = {ADAPTERS, false},
    [SC_COMP_SOFTWARE] = {HOSTS, false},
    [SC_COMP_PLANNED] = {HOSTS, false},
};

bool sc_component_replaced(sc_component c)
{
    return components[c].replaced;
}

/* ---- files --------------------------------------------------------------- */

typedef struct table {
    const char *title;
    const sc_node *sources, *causes[SC_N_COMPONENTS];
    double observed, restart, repair, slow_hosts, slow_time, slowdown;
    int64_t count[N_POPULATIONS];
} table;

#define AT(field) .offset = offsetof(table, field)
#define COUNT(key, which, about)                                             \
    {                                                                        \
        .name = key, .type = SC_T_INT, .unit = SC_U_COUNT, AT(count[which]), \
        .min = 1, .max = 0x1p40, .help = about                               \
    }
#define TIME(key, field, hi, about)                                       \
    {                                                                     \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_TIME, AT(field), \
        .min = 1e-3, .max = hi, .help = about                             \
    }
#define CAUSES(key, which, about)                                        \
    {                                                                    \
        .name = key, .type = SC_T_NODE, AT(causes[which]), .help = about \
    }

/* 300 years */
#define LONGEST 1e10

static const sc_key table_keys[] = {
    {.name = "title", .type = SC_T_STRING, AT(title), .help = "of what"},
    {.name = "sources",
     .type = SC_T_NODE,
     AT(sources),
     .help = "where the values come from"},
    {.name = "observed",
     .type = SC_T_QUANTITY,
     .unit = SC_U_TIME,
     AT(observed),
     .min = 1,
     .max = LONGEST,
     .required = true,
     .help = "for how long"},
    COUNT("devices", DEVICES, "that were observed"),
    COUNT("hosts", HOSTS, "that were observed"),
    COUNT("adapters", ADAPTERS, "network adapters that were observed"),
    TIME("restart", restart, LONGEST, "from a failure until training goes on"),
    TIME("repair", repair, LONGEST, "until a host is back in service"),
    {.name = "slow_hosts",
     .type = SC_T_QUANTITY,
     AT(slow_hosts),
     .max = 1e12,
     .help = "how often a host became slow"},
    TIME("slow_time", slow_time, LONGEST, "how long it was slow"),
    {.name = "slowdown",
     .type = SC_T_QUANTITY,
     AT(slowdown),
     .min = 1,
     .max = 1e3,
     .help = "time of a step with a slow host, relative to others"},
    CAUSES("device", SC_COMP_DEVICE, "causes: how often each stopped work"),
    CAUSES("device_memory", SC_COMP_DEVICE_MEMORY, "the same"),
    CAUSES("host", SC_COMP_HOST, "the same"),
    CAUSES("host_maintenance", SC_COMP_HOST_MAINTENANCE, "the same"),
    CAUSES("adapter", SC_COMP_ADAPTER, "the same"),
    CAUSES("network", SC_COMP_NETWORK, "of switches and cables"),
    CAUSES("software", SC_COMP_SOFTWARE, "the same"),
    CAUSES("planned", SC_COMP_PLANNED, "stops after a checkpoint"),
    {.name = NULL}};

typedef struct reader {
    const sc_node *root;
    table t;
    sc_failures out;
    sc_failure *failure;
    sc_arena *a;
    sc_err *err;
    sc_status first; /* error */
} reader;

static void keep(reader *r, sc_status s)
{
    if (r->first == SC_OK) r->first = s;
}

/* The place of a key, or of the table. */
static sc_pos pos_of(const reader *r, const char *key)
{
    const sc_node *n = sc_node_get(r->root, key);
    return n ? n->pos : r->root->pos;
}

/* The time that all members of a population were observed. */
static double exposure(reader *r, population of, sc_pos pos)
{
    int64_t n = r->t.count[of];
    if (n > 0) return (double)n * r->t.observed;
    char hint[80];
    snprintf(hint, sizeof hint, "give %s: how many were observed",
             population_names[of]);
    keep(r,
         sc_error(r->err, SC_EINPUT, SC_C_MISSING, pos, hint,
                  "failures of an unknown number of %s", population_names[of]));
    return INFINITY;
}

static void read_cause(reader *r, const sc_node *c, sc_component of,
                       const hw_values *sources)
{
    double times = 0;
    if (c->kind != SC_N_SCALAR) {
        keep(r, sc_error(r->err, SC_EINPUT, SC_C_TYPE, c->pos,
                         "write NAME: NUMBER, or NAME: [NUMBER, source]",
                         "\"%.40s\" has no number", c->key));
        return;
    }
    keep(r, sc_unit_parse(c->text, SC_U_NONE, c->pos, &times, r->err));
    if (!(times >= 0 && times <= 1e12)) {
        keep(r, sc_error(r->err, SC_EINPUT, SC_C_RANGE, c->pos, NULL,
                         "%.40s is outside 0 to 1e12", c->text));
        return;
    }
    double all = exposure(r, components[of].of, c->pos);
    sc_failure *f = &r->failure[r->out.n++];
    *f = (sc_failure){.name = c->key, .of = of, .rate = times / all};
    f->source = hw_source_of(sources, c->key);
}

static void read_causes(reader *r, sc_component of)
{
    hw_values sources = {0, NULL};
    sc_node *map = hw_entry(r->root, sc_component_names[of]);
    if (map == NULL) return;
    if (map->kind != SC_N_MAP) {
        keep(r,
             sc_error(r->err, SC_EINPUT, SC_C_TYPE, map->pos,
                      "write NAME: NUMBER for each cause",
                      "%s: this is no list of causes", sc_component_names[of]));
        return;
    }
    keep(r, hw_take_sources_of(map, r->t.sources, &sources, r->a, r->err));
    for (const sc_node *c = map->child; c != NULL; c = c->next)
        read_cause(r, c, of, &sources);
}

static uint32_t count_causes(const sc_node *root)
{
    uint32_t n = 0;
    for (int of = 0; of < (int)SC_N_COMPONENTS; of++) {
        const sc_node *map = sc_node_get(root, sc_component_names[of]);
        if (map != NULL && map->kind == SC_N_MAP) n += map->n;
    }
    return n;
}

static void read_slow(reader *r)
{
    const table *t = &r->t;
    if (!(t->slow_hosts > 0)) return;
    sc_pos pos = pos_of(r, "slow_hosts");
    if (t->slow_time <= 0 || t->slowdown < 1)
        keep(r, sc_error(r->err, SC_EINPUT, SC_C_MISSING, pos,
                         "give slow_time and slowdown",
                         "it is not known how slow these hosts were"));
    r->out.slow_rate = t->slow_hosts / exposure(r, HOSTS, pos);
    r->out.slow_s = t->slow_time;
    r->out.slowdown = t->slowdown;
}

/* Reads one table over `name`. */
static sc_status read_table(sc_node *root, const char *name, sc_arena *a,
                            const sc_failures **out, sc_err *err)
{
    hw_values values = {0, NULL};
    sc_failures *f = SC_NEW(a, sc_failures);
    reader r = {.root = root, .a = a, .err = err};
    if (f == NULL) return sc_error_nomem(err);
    if (root->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos,
                        "docs/whole-run.md has the keys",
                        "this is no table of failures");
    r.failure = SC_NEW_N(a, sc_failure, count_causes(root));
    if (r.failure == NULL) return sc_error_nomem(err);
    r.first = hw_take_sources(root, &values, a, err);
    sc_status s = sc_schema_read(table_keys, root, &r.t, NULL, a, err);
    keep(&r, s);
    if (s != SC_OK) return r.first;
    for (int of = 0; of < (int)SC_N_COMPONENTS; of++)
        read_causes(&r, (sc_component)of);
    read_slow(&r);
    SC_TRY(r.first);
    *f = r.out;
    f->name = name;
    f->title = r.t.title ? r.t.title : name;
    f->restart_s = r.t.restart;
    f->repair_s = r.t.repair;
    f->failure = r.failure;
    f->n_values = values.n;
    f->values = values.v;
    *out = f;
    return SC_OK;
}

sc_status sc_failures_read(const char *text, size_t len, const char *file,
                           sc_arena *a, const sc_failures **out, sc_err *err)
{
    sc_node *root;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    return read_table(root, file, a, out, err);
}

/* ---- the catalogue ------------------------------------------------------- */

static sc_status catalogue(sc_arena *a, sc_node **root, sc_err *err)
{
    const sc_embedded *f = sc_embedded_find("hw/failures.yml");
    if (f != NULL) return sc_embedded_read(f, a, root, err);
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "data/hw/failures.yml is not built in");
}

sc_status sc_failures_list(sc_arena *a, const char ***names, uint32_t *n,
                           sc_err *err)
{
    sc_node *root;
    SC_TRY(catalogue(a, &root, err));
    return hw_names(root, a, names, n, err);
}

sc_status sc_failures_find(const char *name, sc_pos pos, sc_arena *a,
                           const sc_failures **out, sc_err *err)
{
    sc_node *root;
    char *text, hint[160];
    const char **names;
    size_t len;
    uint32_t n;
    if (hw_is_document(name)) {
        SC_TRY(sc_file_read(name, (size_t)1 << 20, a, &text, &len, err));
        return sc_failures_read(text, len, name, a, out, err);
    }
    SC_TRY(catalogue(a, &root, err));
    sc_node *t = hw_entry(root, name);
    if (t != NULL) return read_table(t, t->key, a, out, err);
    SC_TRY(sc_failures_list(a, &names, &n, err));
    const char *near = sc_nearest(name, names);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean %.60s?", near);
    else
        snprintf(hint, sizeof hint,
                 "\"stepcast list failures\" names them all; a file (.yml) can "
                 "describe others");
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos, hint,
                    "unknown table of failures \"%.80s\"", name);
}

/* ---- machines ------------------------------------------------------------ */

static double adapters(const sc_hw *hw)
{
    uint32_t ports = hw->n_dims > 0 ? hw->dim[hw->n_dims - 1].ports : 0;
    double n = 0;
    if (ports == 0) return 0;
    for (uint32_t g = 0; g < hw->n_groups; g++)
        n += (double)hw->groups[g].n * hw->groups[g].ports;
    return hw->n_groups > 0 ? n : (double)hw->n_nodes * ports;
}

double sc_hw_count(const sc_hw *hw, sc_component c)
{
    switch (components[c].of) {
    case DEVICES: return hw->n_devices;
    case HOSTS: return fmax(1, (double)hw->n_devices / hw->host_size);
    default: return adapters(hw);
    }
}

double sc_failures_rate(const sc_failures *f, const sc_hw *hw, bool replaced)
{
    double sum = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        sc_component of = f->failure[i].of;
        if (of == SC_COMP_PLANNED || (replaced && !components[of].replaced))
            continue;
        sum += f->failure[i].rate * sc_hw_count(hw, of);
    }
    return sum;
}

double sc_failures_planned(const sc_failures *f, const sc_hw *hw)
{
    double sum = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->failure[i].of == SC_COMP_PLANNED)
            sum += f->failure[i].rate * sc_hw_count(hw, SC_COMP_PLANNED);
    return sum;
}
