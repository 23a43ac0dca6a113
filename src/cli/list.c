/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - `stepcast list`: a row for each entry of a catalogue. */
#include "cli/catalogue.h"
#include "cli/cli.h"
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

typedef struct list_opts {
    bool names;
} list_opts;

const sc_key cli_list_keys[] = {{.name = "names",
                                 .type = SC_T_BOOL,
                                 .offset = offsetof(list_opts, names),
                                 .flag = "--names",
                                 .help = "only the names, one on each line"},
                                {0}};

/* A description of an entry; its texts are printed in columns. */
typedef struct kind_of {
    const char *name;
    const char *heading;
    sc_status (*names)(sc_arena *a, const char ***names, uint32_t *n,
                       sc_err *err);
    sc_status (*text)(cli *c, const char *name, const sc_cost *cost,
                      sc_text *out);
    sc_status (*json)(cli *c, const char *name, const sc_cost *cost,
                      sc_json *out);
} kind_of;

static sc_status device_names(sc_arena *a, const char ***names, uint32_t *n,
                              sc_err *err)
{
    return sc_hw_list(true, a, names, n, err);
}

static sc_status cluster_names(sc_arena *a, const char ***names, uint32_t *n,
                               sc_err *err)
{
    return sc_hw_list(false, a, names, n, err);
}

static sc_status parameter_names(sc_arena *a, const char ***names, uint32_t *n,
                                 sc_err *err)
{
    *names = SC_NEW_N(a, const char *, SC_N_PARAMS);
    if (!*names) return sc_error_nomem(err);
    for (*n = 0; *n < SC_N_PARAMS; ++*n) (*names)[*n] = sc_params[*n].name;
    return SC_OK;
}

static const kind_of kinds[] = {
    {"models", "model  parameters  active  blocks  hidden", sc_model_list,
     catalogue_model_text, catalogue_model_json},
    {"devices", "device  memory  bf16  bandwidth  links  power  rows",
     device_names, catalogue_device_text, catalogue_device_json},
    {"clusters", "cluster  devices  device  adapters", cluster_names,
     catalogue_cluster_text, catalogue_cluster_json},
    {"software", "software  rows  in fits  on  what", sc_software_list,
     catalogue_software_text, catalogue_software_json},
    {"parameters", "parameter  value  unit  what", parameter_names,
     catalogue_parameter_text, catalogue_parameter_json},
    {"failures", "failures  per 1000 hosts and day  of what", sc_failures_list,
     catalogue_failures_text, catalogue_failures_json},
    {"prices", "prices  hosts  of what", sc_prices_list, catalogue_prices_text,
     catalogue_prices_json},
};

static const char *const kind_names[] = {"models",   "devices",    "clusters",
                                         "software", "parameters", "failures",
                                         "prices",   NULL};
static const char all_kinds[] =
    "models, devices, clusters, software, parameters, failures or prices";

static sc_status list_text(cli *c, const kind_of *k, const char **names,
                           uint32_t n, bool alone, const sc_cost *cost)
{
    sc_text t, rows;
    sc_status s = SC_OK;
    cli_text_init(c, false, &t);
    sc_text_init(&rows);
    if (!alone) sc_text_add(&rows, "%s\n", k->heading);
    for (uint32_t i = 0; i < n && s == SC_OK; i++) {
        sc_text_add(&rows, "%s", names[i]);
        if (!alone) s = k->text(c, names[i], cost, &rows);
        sc_text_add(&rows, "\n");
    }
    if (s == SC_OK) s = cli_columns(rows.buf, c->arena, &t, c->err);
    if (s == SC_OK) s = cli_emit_text(c, &t);
    sc_text_free(&rows);
    sc_text_free(&t);
    return s;
}

static sc_status names_json(cli *c, const char **names, uint32_t n)
{
    sc_json j;
    sc_json_init(&j, true);
    sc_json_begin(&j, '[');
    for (uint32_t i = 0; i < n; i++) sc_json_string(&j, names[i]);
    sc_json_end(&j, ']');
    sc_status s = cli_emit_json(c, &j);
    sc_json_free(&j);
    return s;
}

static sc_status list_json(cli *c, const kind_of *k, const char **names,
                           uint32_t n, const sc_cost *cost)
{
    sc_json j;
    sc_status s = SC_OK;
    sc_json_init(&j, true);
    sc_json_begin(&j, '{');
    sc_json_put_string(&j, "schema", "stepcast.list/1");
    sc_json_put_string(&j, "kind", k->name);
    sc_json_key(&j, "rows");
    sc_json_begin(&j, '[');
    for (uint32_t i = 0; i < n && s == SC_OK; i++) {
        sc_json_begin(&j, '{');
        sc_json_put_string(&j, "name", names[i]);
        s = k->json(c, names[i], cost, &j);
        sc_json_end(&j, '}');
    }
    sc_json_end(&j, ']');
    sc_json_end(&j, '}');
    if (s == SC_OK) s = cli_emit_json(c, &j);
    sc_json_free(&j);
    return s;
}

sc_status cli_list(cli *c, int argc, char *const *argv)
{
    sc_words words = {0};
    const char **names = NULL;
    uint32_t n = 0;
    list_opts o = {0};
    sc_cost cost;
    sc_opt_set set = {cli_list_keys, &o, {{0}}};
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (words.n != 1)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        all_kinds, "list needs one word");
    for (size_t i = 0; i < SC_COUNT(kinds); i++) {
        if (strcmp(words.w[0], kinds[i].name) != 0) continue;
        SC_TRY(kinds[i].names(c->arena, &names, &n, c->err));
        if (c->json && o.names) return names_json(c, names, n);
        if (o.names) return list_text(c, &kinds[i], names, n, true, NULL);
        SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
        if (c->json) return list_json(c, &kinds[i], names, n, &cost);
        return list_text(c, &kinds[i], names, n, false, &cost);
    }
    return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                    cli_hint(c, words.w[0], kind_names, all_kinds),
                    "can't list \"%.60s\"", words.w[0]);
}
