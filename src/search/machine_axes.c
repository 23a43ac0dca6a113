/* SPDX-License-Identifier: Apache-2.0 */
/* machine_axes.c - the axes of machines, and the machine of their values. */
#include "hw/hw_keys.h"
#include "search/search_machines.h"
#include "search/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ----------------------------------------------------------------- */

static const sc_key units_key = {.name = "nodes",
                                 .type = SC_T_INT,
                                 .unit = SC_U_COUNT,
                                 .min = 1,
                                 .max = 1e6};
static const sc_key node_key = {.name = "node", .type = SC_T_STRING};
static const sc_key cluster_key = {.name = SC_MACHINE_AXIS_CLUSTER,
                                   .type = SC_T_STRING};

/* Keys whose values have an order, and whether larger ones are better.  Others
 * change what algorithms a library chooses from, or what can be divided. */
static const struct {
    const char *name;
    bool larger;
} orders[] = {{"nic_bw", true},
              {"bandwidth", true},
              {"nic_latency", false},
              {"fabric_latency", false},
              {"oversubscription", false},
              {"core_oversubscription", false},
              {"peak", true},
              {"memory", true},
              {"mem_bw", true},
              {"link_bw", true},
              {"host_bw", true},
              {"expanded_memory", true},
              {"expanded_bw", true},
              {"expanded_pool_bw", true},
              {"expanded_latency", false},
              {SC_MACHINE_AXIS_PRICE, true}};

static bool has_order(const char *name, bool *larger)
{
    for (size_t i = 0; i < SC_COUNT(orders); i++) {
        if (strcmp(orders[i].name, name) != 0) continue;
        *larger = orders[i].larger;
        return true;
    }
    return false;
}

static const sc_key *key_in(const sc_key *k, const char *name)
{
    while (k->name && strcmp(k->name, name) != 0) k++;
    return k->name ? k : NULL;
}

static const sc_key *find_key(const char *name, sc_machine_kind *kind)
{
    const sc_key *k;
    *kind = SC_MACHINE_UNITS;
    if (strcmp(name, units_key.name) == 0) return &units_key;
    *kind = SC_MACHINE_NODE;
    if (strcmp(name, node_key.name) == 0) return &node_key;
    *kind = SC_MACHINE_CLUSTER;
    if (strcmp(name, cluster_key.name) == 0) return &cluster_key;
    *kind = SC_MACHINE_KEY;
    if ((k = key_in(sc_hw_name_keys, name)) != NULL) return k;
    *kind = SC_MACHINE_FACTOR;
    return key_in(sc_hw_factor_keys, name);
}

static sc_status unknown(const char *name, sc_pos pos, sc_arena *a, sc_err *err)
{
    const char *names[64];
    uint32_t n = 0;
    names[n++] = units_key.name;
    names[n++] = node_key.name;
    names[n++] = cluster_key.name;
    for (const sc_key *k = sc_hw_name_keys; k->name && n < 48; k++)
        names[n++] = k->name;
    for (const sc_key *k = sc_hw_factor_keys; k->name && n < 63; k++)
        names[n++] = k->name;
    names[n] = NULL;
    const char *near = sc_nearest(name, names);
    return sc_error(err, search_status_at(pos), SC_C_UNKNOWN_KEY, pos,
                    near ? sc_sprintf(a, "did you mean %s?", near)
                         : "write nodes=, device=, nic_bw=, peak=, ...",
                    "\"%.40s\" is no key of a machine", name);
}

/* ---- values --------------------------------------------------------------- */

typedef struct list {
    const sc_key *key;
    bool names; /* values are names of the catalogue */
    sc_arena *a;
    sc_err *err;
    uint32_t n, cap;
    const char **text;
} list;

typedef struct number {
    double v;
    const char *text;
} number;

/* Whether the catalogue has a device or node of this name. */
static sc_status check_name(const list *l, const char *name, sc_pos pos)
{
    const sc_hw *hw;
    const sc_device *d;
    sc_err why;
    const char *spec = sc_sprintf(l->a, "%s:1", name);
    if (!spec) return sc_error_nomem(l->err);
    if (l->key == &node_key) return sc_hw_build(spec, pos, l->a, &hw, l->err);
    sc_err_init(&why);
    sc_status s = sc_device_find(name, l->a, &d, &why);
    if (s != SC_EINPUT) return s == SC_OK ? s : sc_error_nomem(l->err);
    return sc_error(l->err, SC_EINPUT, why.d[0].code, pos, why.d[0].hint, "%s",
                    why.d[0].msg);
}

/* The number of a value that has an order; `u` takes any field. */
static sc_status check(const list *l, const char *text, sc_pos pos, double *out)
{
    union {
        double real;
        int64_t whole;
        bool flag;
        int index;
        const char *text;
    } u;

    sc_key k = *l->key;
    k.offset = 0;
    SC_TRY(sc_schema_set(&k, text, pos, &u, l->a, l->err));
    *out = k.type == SC_T_QUANTITY ? u.real
           : k.type == SC_T_INT    ? (double)u.whole
                                   : 0;
    return SC_OK;
}

static sc_status add(list *l, const char *text)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->text[i], text) == 0) return SC_OK;
    const char **all = sc_grow(l->a, l->text, l->n, &l->cap, 16, sizeof *all);
    if (!all) return sc_error_nomem(l->err);
    l->text = all;
    all[l->n++] = text;
    return SC_OK;
}

static sc_status add_range(list *l, int64_t from, int64_t to)
{
    for (int64_t v = from; v <= to; v++) {
        const char *text = sc_sprintf(l->a, "%lld", (long long)v);
        if (!text) return sc_error_nomem(l->err);
        SC_TRY(add(l, text));
    }
    return SC_OK;
}

static sc_status add_word(list *l, const char *text, sc_pos pos)
{
    for (char *word;;) {
        bool range;
        int64_t from = 0, to = 0;
        double any;
        SC_TRY(search_next_value(&text, l->a, &word, l->err));
        if (!word) return SC_OK;
        SC_TRY(
            search_range(l->key, word, pos, l->a, &range, &from, &to, l->err));
        if (range) {
            SC_TRY(add_range(l, from, to));
            continue;
        }
        SC_TRY(check(l, word, pos, &any));
        if (l->names) SC_TRY(check_name(l, word, pos));
        SC_TRY(add(l, word));
    }
}

/* Names of machines have commas and blanks. */
static sc_status add_cluster(list *l, const char *text, sc_pos pos)
{
    const sc_hw *hw;
    sc_job job;
    sc_err why;
    sc_job_init(&job);
    job.cluster = text;
    sc_err_init(&why);
    sc_status s = sc_job_machine(&job, l->a, &hw, &why);
    if (s == SC_OK) return add(l, text);
    *l->err = why;
    if (s != SC_EINPUT || pos.line == 0) return s;
    sc_err_init(l->err); /* where the file names it */
    return sc_error(l->err, SC_EINPUT, why.d[0].code, pos, why.d[0].hint, "%s",
                    why.d[0].msg);
}

static int rising(const void *x, const void *y)
{
    const number *a = x, *b = y;
    return (a->v > b->v) - (a->v < b->v);
}

/* Puts the values of an axis with an order from the worst to the best. */
static sc_status sort(list *l, bool larger)
{
    number *all = SC_NEW_N(l->a, number, l->n);
    if (!all) return sc_error_nomem(l->err);
    for (uint32_t i = 0; i < l->n; i++) {
        SC_TRY(check(l, l->text[i], sc_pos_none(), &all[i].v));
        if (!larger) all[i].v = -all[i].v;
        all[i].text = l->text[i];
    }
    qsort(all, l->n, sizeof *all, rising);
    for (uint32_t i = 0; i < l->n; i++) l->text[i] = all[i].text;
    return SC_OK;
}

sc_status sc_machine_axis_read(const char *name, const sc_node *value,
                               sc_arena *a, sc_machine_axis *out, sc_err *err)
{
    sc_machine_kind kind;
    bool seq = value->kind == SC_N_SEQ, larger;
    list l = {.key = find_key(name, &kind), .a = a, .err = err};
    if (!l.key) return unknown(name, value->pos, a, err);
    l.names = l.key->type == SC_T_STRING;
    for (const sc_node *w = seq ? value->child : value; w;
         w = seq ? w->next : NULL) {
        if (w->kind != SC_N_SCALAR)
            return sc_error(err, SC_EINPUT, SC_C_TYPE, w->pos,
                            "write values such as [8, 16], or 1..8",
                            "the value is not a word");
        SC_TRY(kind == SC_MACHINE_CLUSTER ? add_cluster(&l, w->text, w->pos)
                                          : add_word(&l, w->text, w->pos));
    }
    if (l.n == 0)
        return sc_error(err, search_status_at(value->pos), SC_C_MISSING,
                        value->pos, "for example nodes=8,16,32",
                        "%s has no values", name);
    *out = (sc_machine_axis){.kind = kind,
                             .name = l.key->name,
                             .n = l.n,
                             .ordered = has_order(name, &larger)};
    if (out->ordered) SC_TRY(sort(&l, larger));
    out->value = l.text;
    return SC_OK;
}

static int rising_quantity(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

sc_status sc_machine_axis_of(const sc_search_option *o, sc_arena *a,
                             sc_machine_axis *out, sc_err *err)
{
    uint32_t n = o->axis.n;
    bool ordered = o->key->type == SC_T_QUANTITY; /* bandwidth, power */
    sc_search_option *own = SC_NEW(a, sc_search_option);
    double *quantity = SC_NEW_N(a, double, n);
    const char **text = SC_NEW_N(a, const char *, n);
    if (!own || !quantity || !text) return sc_error_nomem(err);
    *own = *o;
    memcpy(quantity, o->quantity, n * sizeof *quantity);
    if (ordered) qsort(quantity, n, sizeof *quantity, rising_quantity);
    own->quantity = quantity;
    for (uint32_t i = 0; i < n; i++) {
        char buf[64];
        sc_search_option_print(own, i, buf, sizeof buf);
        text[i] = sc_strdup(a, buf);
        if (!text[i]) return sc_error_nomem(err);
    }
    *out = (sc_machine_axis){.kind = SC_MACHINE_OPTION,
                             .name = o->key->name,
                             .n = n,
                             .value = text,
                             .ordered = ordered,
                             .option = own};
    return SC_OK;
}

/* ---- a machine ------------------------------------------------------------ */

/* "h100-sxm*{peak=2" and ",mem_bw=2" are "h100-sxm*{peak=2,mem_bw=2}". */
static const char *with_factors(const char *device, const char *factors,
                                sc_arena *a)
{
    size_t n = strlen(device);
    if (!*factors) return device;
    if (n > 0 && device[n - 1] == '}')
        return sc_sprintf(a, "%.*s,%s}", (int)n - 1, device, factors);
    return sc_sprintf(a, "%s*{%s}", device, factors);
}

/* The device that a machine has without its axes. */
static sc_status usual_device(const char *cluster, sc_arena *a,
                              const char **out, sc_err *err)
{
    const sc_hw *hw;
    sc_job job;
    sc_job_init(&job);
    job.cluster = cluster;
    SC_TRY(sc_job_machine(&job, a, &hw, err));
    *out = hw->device->name;
    return SC_OK;
}

sc_status sc_machine_set(const sc_machine_axis *axis, uint32_t n,
                         const uint32_t *digit, sc_arena *a, sc_job *job,
                         sc_err *err)
{
    const char *spec = job->cluster, *device = NULL, *factors = "", *keys = "";
    for (uint32_t i = 0; i < n; i++)
        if (axis[i].kind == SC_MACHINE_CLUSTER) spec = axis[i].value[digit[i]];
    for (uint32_t i = 0; i < n; i++) {
        const char *v = axis[i].value[digit[i]], *name = axis[i].name;
        if (axis[i].kind == SC_MACHINE_OPTION) {
            sc_search_option_set(axis[i].option, digit[i], job);
            continue;
        }
        if (axis[i].kind == SC_MACHINE_CLUSTER) continue;
        if (sc_cluster_units(spec) == 0)
            return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                            sc_pos_option(a, "--machine", name),
                            "give a cluster with a number: dgx-h100:64",
                            "%s of %.60s can't be changed", name, spec);
        if (axis[i].kind == SC_MACHINE_UNITS)
            spec = sc_cluster_resized(spec, strtoull(v, NULL, 10), a);
        else if (axis[i].kind == SC_MACHINE_NODE)
            spec = sc_sprintf(a, "%s%s", v, spec + strcspn(spec, ":;"));
        else if (axis[i].kind == SC_MACHINE_FACTOR)
            factors = strcmp(v, "1") == 0
                          ? factors
                          : sc_sprintf(a, "%s%s%s=%s", factors,
                                       *factors ? "," : "", name, v);
        else if (strcmp(name, "device") == 0)
            device = v;
        else
            keys = sc_sprintf(a, "%s; %s=%s", keys, name, v);
        if (!spec || !factors || !keys) return sc_error_nomem(err);
    }
    if (*factors && !device) SC_TRY(usual_device(spec, a, &device, err));
    if (device && !(device = with_factors(device, factors, a)))
        return sc_error_nomem(err);
    job->cluster = device ? sc_sprintf(a, "%s; device=%s%s", spec, device, keys)
                          : sc_sprintf(a, "%s%s", spec, keys);
    return job->cluster ? SC_OK : sc_error_nomem(err);
}
