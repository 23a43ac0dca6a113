/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c - describes the entries of the catalogue. */
#include "cli/catalogue.h"

#include "cost/cost_anchor.h"
#include "model/model_net.h"

#include <stdio.h>
#include <string.h>

/* All cells but the last are left-aligned; the last may contain double
 * blanks. */
enum { COLUMNS = 8 };

static const char *cell_end(const char *at, const char *end)
{
    for (; at < end; at++)
        if (at[0] == ' ' && at + 1 < end && at[1] == ' ') return at;
    return end;
}

sc_status cli_columns(const char *lines, sc_arena *a, sc_text *out, sc_err *err)
{
    int width[COLUMNS] = {0};
    (void)a;
    for (int pass = 0; pass < 2; pass++)
        for (const char *line = lines; *line;) {
            const char *end = line + strcspn(line, "\n"), *at = line;
            for (int c = 0; c < COLUMNS && at <= end; c++) {
                const char *stop = c + 1 < COLUMNS ? cell_end(at, end) : end;
                int n = (int)(stop - at);
                bool last = stop >= end;
                if (pass == 0 && width[c] < n) width[c] = n;
                if (pass == 1)
                    sc_text_add(out, "%*.*s%s", last ? 0 : -width[c], n, at,
                                last ? "" : "  ");
                if (last) break;
                at = stop + 2;
            }
            if (pass == 1) sc_text_add(out, "\n");
            line = *end ? end + 1 : end;
        }
    return out->failed ? sc_error_nomem(err) : SC_OK;
}

static void cell(sc_text *out, double v, sc_unit unit)
{
    char text[32];
    if (v > 0)
        sc_unit_print_short(v, unit, text, sizeof text);
    else
        snprintf(text, sizeof text, "-");
    sc_text_add(out, "  %s", text);
}

static void put_positive(sc_json *j, const char *key, double v)
{
    sc_json_key(j, key);
    if (v > 0)
        sc_json_double(j, v);
    else
        sc_json_null(j);
}

/* ---- models */

static sc_status load_model(cli *c, const char *name, const sc_model **m)
{
    return sc_model_load(name, sc_pos_none(), c->arena, m, c->err);
}

sc_status catalogue_model_text(cli *c, const char *name, const sc_cost *cost,
                               sc_text *out)
{
    const sc_model *m = NULL;
    (void)cost;
    SC_TRY(load_model(c, name, &m));
    cell(out, (double)m->params, SC_U_COUNT);
    cell(out, m->active_params < m->params ? (double)m->active_params : 0,
         SC_U_COUNT);
    if (m->net)
        sc_text_add(out, "  %u operators  -", m->net->n_ops);
    else
        sc_text_add(out, "  %u  %lld", m->n_blocks, (long long)m->t.hidden);
    return SC_OK;
}

void catalogue_of_model(const sc_model *m, sc_json *j)
{
    sc_json_put_uint(j, "parameters", m->params);
    sc_json_put_uint(j, "active_parameters", m->active_params);
    sc_json_put_uint(j, "trained_parameters", m->trained_params);
    sc_json_put_uint(j, "mtp_parameters", m->mtp_params);
    sc_json_put_string(j, "form", m->net ? "operators" : "transformer");
    if (m->net) sc_json_put_uint(j, "operators", m->net->n_ops);
    if (!m->net) {
        sc_json_put_uint(j, "blocks", m->n_blocks);
        sc_json_key(j, "keys");
        sc_json_begin(j, '{');
        for (const sc_key *k = sc_transformer_keys; k->name; k++) {
            char text[512];
            const void *at = (const char *)&m->t + k->offset;
            bool empty = k->type == SC_T_STRING
                             ? *(const char *const *)at == NULL
                         : k->type == SC_T_INT ? *(const int64_t *)at == 0
                                               : false;
            if (empty) continue;
            sc_schema_print(k, &m->t, text, sizeof text);
            sc_json_key(j, k->name);
            if (k->type == SC_T_BOOL)
                sc_json_bool(j, *(const bool *)at);
            else if (k->type == SC_T_INT)
                sc_json_int(j, *(const int64_t *)at);
            else
                sc_json_string(j, text);
        }
        sc_json_end(j, '}');
    }
    if (m->source.text) sc_json_put_string(j, "source", m->source.text);
    if (m->source.date) sc_json_put_string(j, "date", m->source.date);
}

sc_status catalogue_model_json(cli *c, const char *name, const sc_cost *cost,
                               sc_json *j)
{
    const sc_model *m = NULL;
    (void)cost;
    SC_TRY(load_model(c, name, &m));
    catalogue_of_model(m, j);
    return SC_OK;
}

/* ---- devices */

static uint32_t rows_of_arch(const sc_device *d, const sc_cost *cost)
{
    const sc_held_out *h = &cost->held;
    return d->like ? 0 : sc_held_out_rows(h->arch, h->n_archs, d->arch);
}

sc_status catalogue_device_text(cli *c, const char *name, const sc_cost *cost,
                                sc_text *out)
{
    const sc_device *d = NULL;
    SC_TRY(sc_device_find(name, c->arena, &d, c->err));
    sc_text_add(out, "  %.4g GiB", (double)d->mem_bytes / SC_GIB);
    cell(out, d->peak[SC_BF16], SC_U_FLOPS);
    cell(out, d->mem_bw, SC_U_RATE);
    cell(out, d->link_bw, SC_U_RATE);
    cell(out, d->power_w, SC_U_WATT);
    sc_text_add(out, "  %u", rows_of_arch(d, cost));
    return SC_OK;
}

void catalogue_of_device(const sc_device *d, const sc_cost *cost, sc_json *j)
{
    sc_json_put_string(j, "title", d->title);
    sc_json_put_string(j, "vendor", d->vendor);
    sc_json_put_string(j, "generation", d->arch);
    sc_json_put_uint(j, "memory_bytes", d->mem_bytes);
    sc_json_key(j, "peak_flops");
    sc_json_begin(j, '{');
    for (int p = 0; p < SC_N_PRECISIONS; p++)
        if (d->peak[p] > 0)
            sc_json_put_double(j, sc_precision_names[p], d->peak[p]);
    sc_json_end(j, '}');
    sc_json_put_double(j, "vector_flops", d->vector_flops);
    sc_json_put_double(j, "memory_bytes_per_s", d->mem_bw);
    sc_json_put_uint(j, "cache_bytes", d->l2_bytes);
    sc_json_put_uint(j, "units", d->units);
    sc_json_put_double(j, "clock_hz", d->clock_hz);
    sc_json_put_double(j, "link_bytes_per_s", d->link_bw);
    sc_json_put_double(j, "host_bytes_per_s", d->host_bw);
    put_positive(j, "power_w", d->power_w);
    sc_json_put_uint(j, "rows_in_fit", rows_of_arch(d, cost));
}

sc_status catalogue_device_json(cli *c, const char *name, const sc_cost *cost,
                                sc_json *j)
{
    const sc_device *d = NULL;
    SC_TRY(sc_device_find(name, c->arena, &d, c->err));
    catalogue_of_device(d, cost, j);
    return SC_OK;
}

/* ---- clusters: one unit of each */

static sc_status load_cluster(cli *c, const char *name, const sc_hw **hw)
{
    const char *two = sc_sprintf(c->arena, "%s:2", name);
    sc_err quiet;
    if (!two) return sc_error_nomem(c->err);
    sc_err_init(&quiet);
    SC_TRY(sc_hw_build(name, sc_pos_none(), c->arena, hw, c->err));
    /* a single node has no network from which its adapters could be read */
    if ((*hw)->n_nodes == 1)
        (void)sc_hw_build(two, sc_pos_none(), c->arena, hw, &quiet);
    return SC_OK;
}

static const sc_dim *network(const sc_hw *hw)
{
    const sc_dim *d = &hw->dim[hw->n_dims - 1];
    return hw->n_nodes > 1 && d->ports ? d : NULL;
}

sc_status catalogue_cluster_text(cli *c, const char *name, const sc_cost *cost,
                                 sc_text *out)
{
    const sc_hw *hw = NULL;
    char rate[32];
    (void)cost;
    SC_TRY(load_cluster(c, name, &hw));
    sc_text_add(out, "  %u  %s", hw->node_size, hw->device->name);
    const sc_dim *net = network(hw);
    if (net) sc_unit_print_short(net->port_bw, SC_U_RATE, rate, sizeof rate);
    if (net)
        sc_text_add(out, "  %u x %s", net->ports, rate);
    else
        sc_text_add(out, "  -");
    return SC_OK;
}

void catalogue_of_cluster(const sc_hw *hw, sc_json *j)
{
    const sc_dim *net = network(hw);
    sc_json_put_string(j, "device", hw->device->name);
    sc_json_put_uint(j, "devices_per_node", hw->node_size);
    sc_json_put_uint(j, "devices_per_host", hw->host_size);
    if (net) {
        sc_json_put_uint(j, "adapters_per_node", net->ports);
        sc_json_put_double(j, "adapter_bytes_per_s", net->port_bw);
        sc_json_put_uint(j, "rails", net->rails);
    }
    put_positive(j, "node_power_w", hw->node_power_w);
    sc_json_key(j, "dimensions");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < hw->n_dims; i++) {
        const sc_dim *d = &hw->dim[i];
        if (d == net) continue;
        sc_json_begin(j, '{');
        sc_json_put_string(j, "kind", sc_dim_kind_names[d->kind]);
        sc_json_put_uint(j, "size", d->size);
        sc_json_put_double(j, "bytes_per_s_per_device", d->bw);
        sc_json_put_double(j, "latency_s", d->latency_s);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
}

sc_status catalogue_cluster_json(cli *c, const char *name, const sc_cost *cost,
                                 sc_json *j)
{
    const sc_hw *hw = NULL;
    (void)cost;
    SC_TRY(load_cluster(c, name, &hw));
    catalogue_of_cluster(hw, j);
    return SC_OK;
}

/* ---- software and parameters */

static uint32_t rows_of_program(const sc_software *sw, const sc_cost *cost)
{
    const sc_held_out *h = &cost->held;
    return sc_held_out_rows(h->program, h->n_programs, sw->name);
}

sc_status catalogue_software_text(cli *c, const char *name, const sc_cost *cost,
                                  sc_text *out)
{
    const sc_software *sw = NULL;
    SC_TRY(sc_software_find(name, NULL, sc_pos_none(), c->arena, &sw, c->err));
    const sc_held_out *h = &cost->held;
    const char *sep = "  ";
    sc_text_add(out, "  %u  %u", sc_held_out_measured(h, name, NULL),
                rows_of_program(sw, cost));
    for (uint32_t i = 0; i < h->n_measured; i++) {
        const sc_measured *m = &h->measured[i];
        if (strcmp(m->program, name) != 0) continue;
        sc_text_add(out, "%s%s %u", sep, m->generation, m->rows);
        sep = ", ";
    }
    if (sep[0] == ' ') sc_text_add(out, "  -");
    sc_text_add(out, "  %s", sw->title ? sw->title : "-");
    return SC_OK;
}

void catalogue_of_software(const sc_software *sw, const sc_cost *cost,
                           sc_json *j)
{
    if (sw->title) sc_json_put_string(j, "title", sw->title);
    if (sw->source) sc_json_put_string(j, "source", sw->source);
    if (sw->base) sc_json_put_string(j, "base", sw->base->name);
    sc_json_put_uint(j, "rows_in_fit", rows_of_program(sw, cost));
    const sc_held_out *h = &cost->held;
    sc_json_key(j, "measured");
    sc_json_begin(j, '{');
    for (uint32_t i = 0; i < h->n_measured; i++)
        if (strcmp(h->measured[i].program, sw->name) == 0)
            sc_json_put_uint(j, h->measured[i].generation, h->measured[i].rows);
    sc_json_end(j, '}');
    sc_json_key(j, "fitted");
    sc_json_begin(j, '{');
    for (const sc_key *k = sc_software_keys; k->name; k++) {
        int p = sc_software_fitted(sw, k->offset);
        if (p < 0) continue;
        sc_json_put_double(j, k->name, cost->p[p]);
    }
    sc_json_end(j, '}');
}

sc_status catalogue_software_json(cli *c, const char *name, const sc_cost *cost,
                                  sc_json *j)
{
    const sc_software *sw = NULL;
    SC_TRY(sc_software_find(name, NULL, sc_pos_none(), c->arena, &sw, c->err));
    catalogue_of_software(sw, cost, j);
    return SC_OK;
}

static const sc_param_info *parameter(const char *name, uint32_t *at)
{
    for (*at = 0; *at < SC_N_PARAMS; ++*at)
        if (strcmp(sc_params[*at].name, name) == 0) return &sc_params[*at];
    return NULL;
}

sc_status catalogue_parameter_text(cli *c, const char *name,
                                   const sc_cost *cost, sc_text *out)
{
    uint32_t at;
    const sc_param_info *p = parameter(name, &at);
    (void)c;
    if (p) sc_text_add(out, "  %.5g  %s  %s", cost->p[at], p->unit, p->text);
    return SC_OK;
}

sc_status catalogue_parameter_json(cli *c, const char *name,
                                   const sc_cost *cost, sc_json *j)
{
    uint32_t at;
    const sc_param_info *p = parameter(name, &at);
    sc_covariance cov;
    if (!p) return SC_OK;
    sc_json_put_double(j, "value", cost->p[at]);
    sc_json_put_string(j, "unit", p->unit);
    sc_json_put_string(j, "origin",
                       sc_param_origin_names[sc_param_origin_of(p)]);
    sc_json_put_string(j, "text", p->text);
    if (!(p->sd > 0)) return SC_OK;
    SC_TRY(sc_covariance_builtin(c->arena, &cov, c->err));
    sc_json_put_double(j, "centre", p->centre);
    sc_json_put_double(j, "prior_sd", p->sd);
    sc_json_put_double(j, "standard_error",
                       sc_covariance_error(&cov, (sc_param)at));
    return SC_OK;
}

/* ---- failures and prices */

static void put_source(const sc_source *x, sc_json *j)
{
    if (!x) return;
    sc_json_put_string(j, "source", x->text);
    sc_json_put_string(j, "date", x->date);
}

static sc_status failures_of(cli *c, const char *name, const sc_failures **f)
{
    return sc_failures_find(name, sc_pos_none(), c->arena, f, c->err);
}

/* Failures of 1000 hosts with 8 devices and 8 adapters each, per day. */
static sc_status usual_rate(cli *c, const sc_failures *f, double *out)
{
    const sc_hw *hw;
    SC_TRY(sc_hw_build("dgx-h100:1000", sc_pos_none(), c->arena, &hw, c->err));
    *out = 86400 * sc_failures_rate(f, hw, false);
    return SC_OK;
}

sc_status catalogue_failures_text(cli *c, const char *name, const sc_cost *cost,
                                  sc_text *out)
{
    const sc_failures *f;
    double rate;
    (void)cost;
    SC_TRY(failures_of(c, name, &f));
    SC_TRY(usual_rate(c, f, &rate));
    sc_text_add(out, "  %.3g  %s", rate, f->title);
    return SC_OK;
}

sc_status catalogue_failures_json(cli *c, const char *name, const sc_cost *cost,
                                  sc_json *j)
{
    const sc_failures *f;
    double rate;
    (void)cost;
    SC_TRY(failures_of(c, name, &f));
    SC_TRY(usual_rate(c, f, &rate));
    sc_json_put_string(j, "title", f->title);
    sc_json_put_double(j, "per_1000_hosts_day", rate);
    sc_json_put_double(j, "restart_s", f->restart_s);
    sc_json_put_double(j, "repair_s", f->repair_s);
    sc_json_key(j, "causes");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < f->n; i++) {
        const sc_failure *x = &f->failure[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "cause", x->name);
        sc_json_put_string(j, "component", sc_component_names[x->of]);
        sc_json_put_double(j, "per_component_hour", 3600 * x->rate);
        put_source(x->source, j);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    return SC_OK;
}

static sc_status prices_of(cli *c, const char *name, const sc_prices **p)
{
    return sc_prices_find(name, sc_pos_none(), c->arena, p, c->err);
}

sc_status catalogue_prices_text(cli *c, const char *name, const sc_cost *cost,
                                sc_text *out)
{
    const sc_prices *p;
    (void)cost;
    SC_TRY(prices_of(c, name, &p));
    sc_text_add(out, "  %u  %s", p->n_hosts, p->title);
    return SC_OK;
}

sc_status catalogue_prices_json(cli *c, const char *name, const sc_cost *cost,
                                sc_json *j)
{
    const sc_prices *p;
    (void)cost;
    SC_TRY(prices_of(c, name, &p));
    sc_json_put_string(j, "title", p->title);
    sc_json_key(j, "hosts");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < p->n_hosts; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "device", p->host[i].device);
        sc_json_put_double(j, "usd", p->host[i].usd);
        put_source(p->host[i].source, j);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_key(j, "prices");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < p->n_values; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "key", p->values[i].key);
        sc_json_put_string(j, "value", p->values[i].text);
        put_source(&p->values[i].source, j);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    return SC_OK;
}
