/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - `stepcast calibrate --truth DIR`. */
#include <stepcast/calib.h>

#include "cli/cli.h"

typedef struct options {
    const char *truth, *into;
} options;

const sc_key cli_calibrate_keys[] = {
    {.name = "truth",
     .type = SC_T_STRING,
     .offset = offsetof(options, truth),
     .flag = "--truth",
     .meta = "DIR",
     .help = "directory of truth tables (data/validation)"},
    {.name = "into",
     .type = SC_T_STRING,
     .offset = offsetof(options, into),
     .def = "data/fit",
     .flag = "--into",
     .meta = "DIR",
     .help = "directory for network.yml and step.yml"},
    {0},
};

static sc_status write_fit(const cli *c, const char *dir, const char *name,
                           const sc_text *text)
{
    const char *path = sc_sprintf(c->arena, "%s/%s", dir, name);
    if (!path) return sc_error_nomem(c->err);
    return sc_file_write(path, text->buf, text->len, c->err);
}

static void parameters_json(const sc_cost *cost, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_key(j, "schema");
    sc_json_string(j, "stepcast.calibrate/1");
    sc_json_key(j, "parameters");
    sc_json_begin(j, '{');
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        if (!(sc_params[i].sd > 0)) continue;
        sc_json_key(j, sc_params[i].name);
        sc_json_double(j, cost->p[i]);
    }
    sc_json_end(j, '}');
    sc_json_end(j, '}');
}

static sc_status print_json(cli *c, const sc_text *network, const sc_text *step)
{
    sc_cost cost;
    sc_cost_centres(&cost);
    SC_TRY(sc_cost_read(network->buf, network->len, "network.yml", c->arena,
                        &cost, c->err));
    SC_TRY(sc_cost_read(step->buf, step->len, "step.yml", c->arena, &cost,
                        c->err));
    sc_json j;
    sc_json_init(&j, true);
    parameters_json(&cost, &j);
    sc_status s = cli_emit_json(c, &j);
    sc_json_free(&j);
    return s;
}

static sc_status calibrate(cli *c, const options *o, sc_text *network,
                           sc_text *step, sc_text *report)
{
    SC_TRY(
        sc_calibrate_truth(o->truth, c->arena, network, step, report, c->err));
    SC_TRY(write_fit(c, o->into, "network.yml", network));
    SC_TRY(write_fit(c, o->into, "step.yml", step));
    return c->json ? print_json(c, network, step) : cli_emit_text(c, report);
}

sc_status cli_calibrate(cli *c, int argc, char *const *argv)
{
    options o = {0};
    sc_opt_set set = {.keys = cli_calibrate_keys, .target = &o};
    sc_words words;
    SC_TRY(sc_schema_defaults(cli_calibrate_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (!o.truth || words.n > 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "stepcast calibrate --truth data/validation",
                        o.truth ? "calibrate takes no file names"
                                : "nothing to fit on is named");
    sc_text network, step, report;
    sc_text_init(&network);
    sc_text_init(&step);
    sc_text_init(&report);
    sc_status s = calibrate(c, &o, &network, &step, &report);
    sc_text_free(&network);
    sc_text_free(&step);
    sc_text_free(&report);
    return s;
}
