/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalogue.h - entries of the catalogue as rows of `list` and members of `show
 * --json`.
 *
 * Texts are cells after the name, each after two blanks. Numbers in JSON have
 * their unit in the name; docs/catalogue.md describes the members.
 */
#ifndef CLI_CATALOGUE_H
#define CLI_CATALOGUE_H

#include "cli/cli.h"
#include "cost/cost.h"
#include "hw/hw_failures.h"
#include "hw/hw_prices.h"
#include "model/model.h"
#include "plan/plan.h"

void catalogue_of_model(const sc_model *m, sc_json *out);
void catalogue_of_device(const sc_device *d, const sc_cost *cost, sc_json *out);
void catalogue_of_cluster(const sc_hw *hw, sc_json *out);
void catalogue_of_software(const sc_software *sw, const sc_cost *cost,
                           sc_json *out);

sc_status catalogue_model_text(cli *c, const char *name, const sc_cost *cost,
                               sc_text *out);
sc_status catalogue_model_json(cli *c, const char *name, const sc_cost *cost,
                               sc_json *out);
sc_status catalogue_device_text(cli *c, const char *name, const sc_cost *cost,
                                sc_text *out);
sc_status catalogue_device_json(cli *c, const char *name, const sc_cost *cost,
                                sc_json *out);
sc_status catalogue_cluster_text(cli *c, const char *name, const sc_cost *cost,
                                 sc_text *out);
sc_status catalogue_cluster_json(cli *c, const char *name, const sc_cost *cost,
                                 sc_json *out);
sc_status catalogue_software_text(cli *c, const char *name, const sc_cost *cost,
                                  sc_text *out);
sc_status catalogue_software_json(cli *c, const char *name, const sc_cost *cost,
                                  sc_json *out);
sc_status catalogue_parameter_text(cli *c, const char *name,
                                   const sc_cost *cost, sc_text *out);
sc_status catalogue_parameter_json(cli *c, const char *name,
                                   const sc_cost *cost, sc_json *out);

sc_status catalogue_failures_text(cli *c, const char *name, const sc_cost *cost,
                                  sc_text *out);
sc_status catalogue_failures_json(cli *c, const char *name, const sc_cost *cost,
                                  sc_json *out);

sc_status catalogue_prices_text(cli *c, const char *name, const sc_cost *cost,
                                sc_text *out);
sc_status catalogue_prices_json(cli *c, const char *name, const sc_cost *cost,
                                sc_json *out);

/* Values, and tables of failures and of prices, each value with its source. */
void show_values(const sc_value *v, uint32_t n, sc_text *out);
void show_failures(const sc_failures *f, sc_text *out);
void show_prices(const sc_prices *p, sc_text *out);

/* Aligns lines, whose cells are separated by two blanks, in columns. */
sc_status cli_columns(const char *lines, sc_arena *a, sc_text *out,
                      sc_err *err);

#endif
