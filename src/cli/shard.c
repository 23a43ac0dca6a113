/* SPDX-License-Identifier: Apache-2.0 */
/* shard.c - `stepcast shard`: places embedding tables on devices. */
#include "shard/shard.h"

#include "cli/predict.h"
#include "cost/cost_optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct options {
    const char *cluster, *profile, *indices;
    int64_t batch;
    double memory;
    int sharder, optimizer; /* indices of names */
} options;

#define OFF(f) offsetof(options, f)
const sc_key cli_shard_keys[] = {
    {.name = "cluster",
     .type = SC_T_STRING,
     .offset = OFF(cluster),
     .flag = "--cluster",
     .meta = "SPEC",
     .help = "machine"},
    {.name = "batch",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(batch),
     .min = 1,
     .max = 1e9,
     .flag = "--batch",
     .meta = "N",
     .help = "samples of a step, on all devices together"},
    {.name = "sharder",
     .type = SC_T_ENUM,
     .offset = OFF(sharder),
     .def = "best",
     .names = sc_sharder_names,
     .flag = "--sharder",
     .help = "whose plan is printed; all are compared"},
    {.name = "optimizer",
     .type = SC_T_ENUM,
     .offset = OFF(optimizer),
     .def = "sgd",
     .names = sc_optimizer_names,
     .flag = "--optimizer",
     .help = "of the tables"},
    {.name = "table-memory",
     .type = SC_T_QUANTITY,
     .unit = SC_U_NONE,
     .offset = OFF(memory),
     .def = "0.8",
     .min = 0.01,
     .max = 1,
     .flag = "--table-memory",
     .meta = "FRACTION",
     .help = "part of each device's memory for tables and their exchanges"},
    {.name = "profile",
     .type = SC_T_STRING,
     .offset = OFF(profile),
     .flag = "--profile",
     .meta = "FILE",
     .help = "parameters as written by calibrate"},
    {.name = "indices",
     .type = SC_T_STRING,
     .offset = OFF(indices),
     .flag = "--indices",
     .meta = "FILE",
     .help = "instead: print the access of a table from the row numbers of a "
             "batch"},
    {0},
};

#define MAX_FILE ((size_t)1 << 30)

typedef struct work {
    const options *o;
    sc_cost cost;
    sc_shard_tables tables;
    sc_shard_job job;
    sc_shard_prices *prices;
    sc_shard_plan plan[SC_N_SHARDERS];
    sc_text t;
    sc_json j;
} work;

/* ---- input */

static sc_status read_text(cli *c, const char *file, char **text, size_t *len)
{
    char *raw;
    size_t n;
    SC_TRY(sc_file_read(file, MAX_FILE, c->arena, &raw, &n, c->err));
    return sc_unpack(raw, n, MAX_FILE, file, c->arena, text, len, c->err);
}

static bool is_csv(const char *file)
{
    size_t n = strlen(file);
    return (n > 4 && strcmp(file + n - 4, ".csv") == 0) ||
           strstr(file, ".csv.");
}

static sc_status load(cli *c, work *w, const char *file)
{
    const options *o = w->o;
    const sc_hw *hw;
    char *text;
    size_t len;
    SC_TRY(sc_hw_build(o->cluster, sc_pos_file("--cluster"), c->arena, &hw,
                       c->err));
    SC_TRY(sc_cost_builtin(c->arena, &w->cost, c->err));
    SC_TRY(sc_cost_profile(o->profile, c->arena, &w->cost, c->err));
    if (!hw->device)
        return sc_error(c->err, SC_EINPUT, SC_C_MISSING,
                        sc_pos_file("--cluster"), "add \"; device=h100-sxm\"",
                        "the cluster has no device");
    SC_TRY(read_text(c, file, &text, &len));
    SC_TRY(sc_shard_read(text, len, file, is_csv(file), c->arena, &w->tables,
                         c->err));
    w->job = (sc_shard_job){.hw = hw,
                            .cost = &w->cost,
                            .table = w->tables.table,
                            .n_tables = w->tables.n,
                            .batch = (double)o->batch,
                            .memory = o->memory,
                            .optimizer = sc_optimizer_names[o->optimizer],
                            .seed = (uint64_t)c->seed};
    return sc_shard_prices_new(&w->job, c->arena, &w->prices, c->err);
}

static sc_status plans(cli *c, work *w)
{
    for (int i = 0; i < SC_N_SHARDERS; i++) {
        SC_TRY(sc_shard_plan_of(w->prices, (sc_sharder)i, c->arena, &w->plan[i],
                                c->err));
        SC_TRY(sc_shard_simulate(w->prices, c->arena, &w->plan[i], c->err));
    }
    return SC_OK;
}

/* ---- output */

static const char *seconds(double s, char buf[32])
{
    sc_unit_print_short(s, SC_U_TIME, buf, 32);
    return buf;
}

static const char *bytes(double b, char buf[32])
{
    sc_unit_print_short(b, SC_U_BYTES, buf, 32);
    return buf;
}

static void step_json(sc_json *j, const sc_shard_plan *p)
{
    const sc_shard_step *s = &p->step;
    sc_json_key(j, "fits");
    sc_json_bool(j, p->fits);
    sc_json_put_double(j, "step_s", p->simulated);
    sc_json_put_double(j, "estimate_s", s->step);
    sc_json_put_double(j, "indices_s", s->indices);
    sc_json_put_double(j, "forward_s", s->forward);
    sc_json_put_double(j, "exchange_s", s->exchange);
    sc_json_put_double(j, "gradients_s", s->gradients);
    sc_json_put_double(j, "backward_s", s->backward);
    sc_json_put_double(j, "reduce_s", s->reduce);
}

static void sharders(work *w)
{
    char a[32], b[32], f[32], x[32], g[32];
    sc_text_add(&w->t, "%-20s %9s %9s %9s %9s %9s\n", "sharder", "step",
                "estimate", "forward", "exchange", "backward");
    sc_json_key(&w->j, "sharders");
    sc_json_begin(&w->j, '[');
    for (int i = SC_N_SHARDERS; i-- > 0;) {
        const sc_shard_plan *p = &w->plan[i];
        const sc_shard_step *s = &p->step;
        sc_text_add(&w->t, "%-20s %9s %9s %9s %9s %9s%s\n", sc_sharder_names[i],
                    seconds(p->simulated, a), seconds(s->step, b),
                    seconds(s->forward, f), seconds(s->exchange, x),
                    seconds(s->backward, g), p->fits ? "" : "  does not fit");
        sc_json_begin(&w->j, '{');
        sc_json_put_string(&w->j, "sharder", sc_sharder_names[i]);
        step_json(&w->j, p);
        sc_json_end(&w->j, '}');
    }
    sc_json_end(&w->j, ']');
}

#define SHOWN_DEVICES 16u

static void devices(work *w, const sc_shard_plan *p)
{
    char f[32], b[32], s[32], m[32];
    uint32_t n = w->job.hw->n_devices;
    sc_text_add(&w->t, "\n%-6s %6s %9s %9s %11s %9s\n", "device", "parts",
                "forward", "backward", "sums/sample", "memory");
    sc_json_key(&w->j, "devices");
    sc_json_begin(&w->j, '[');
    for (uint32_t d = 0; d < n; d++) {
        const sc_shard_load *l = &p->load[d];
        double forward = l->forward + l->data_forward;
        double backward = l->backward + l->data_backward + l->data_update;
        uint32_t parts = l->parts + l->data_parts;
        if (d < SHOWN_DEVICES)
            sc_text_add(&w->t, "%-6u %6u %9s %9s %11s %9s\n", d, parts,
                        seconds(forward, f), seconds(backward, b),
                        bytes(l->sends, s), bytes(l->memory, m));
        sc_json_begin(&w->j, '{');
        sc_json_put_uint(&w->j, "device", d);
        sc_json_put_uint(&w->j, "parts", parts);
        sc_json_put_double(&w->j, "forward_s", forward);
        sc_json_put_double(&w->j, "backward_s", backward);
        sc_json_put_double(&w->j, "sums_bytes_per_sample", l->sends);
        sc_json_put_double(&w->j, "indices_bytes_per_sample", l->indices);
        sc_json_put_double(&w->j, "memory_bytes", l->memory);
        sc_json_end(&w->j, '}');
    }
    sc_json_end(&w->j, ']');
    if (n > SHOWN_DEVICES)
        sc_text_add(&w->t, "... %u more devices: --json lists all\n",
                    n - SHOWN_DEVICES);
}

static void place_text(sc_text *t, const sc_shard_table *table,
                       const sc_shard_place *x)
{
    sc_text_add(t, "%-12s %12.0f %6.0f  %-8s ", table->name, table->rows,
                table->width, sc_shard_split_names[x->split]);
    if (x->split == SC_SHARD_DATA) sc_text_add(t, "all");
    for (uint32_t i = 0; i < x->parts; i++)
        sc_text_add(t, "%s%u", i ? "," : "", x->device[i]);
    sc_text_add(t, "\n");
}

static void places(work *w, const sc_shard_plan *p)
{
    sc_text_add(&w->t, "\n%-12s %12s %6s  %-8s %s\n", "table", "rows", "width",
                "split", "devices");
    sc_json_key(&w->j, "tables");
    sc_json_begin(&w->j, '[');
    for (uint32_t i = 0; i < w->tables.n; i++) {
        const sc_shard_table *t = &w->tables.table[i];
        const sc_shard_place *x = &p->place[i];
        place_text(&w->t, t, x);
        sc_json_begin(&w->j, '{');
        sc_json_put_string(&w->j, "name", t->name);
        sc_json_put_double(&w->j, "rows", t->rows);
        sc_json_put_double(&w->j, "width", t->width);
        sc_json_put_double(&w->j, "pooling", t->pooling);
        sc_json_put_string(&w->j, "split", sc_shard_split_names[x->split]);
        sc_json_key(&w->j, "devices");
        sc_json_begin(&w->j, '[');
        for (uint32_t k = 0; k < x->parts; k++)
            sc_json_uint(&w->j, x->device[k]);
        sc_json_end(&w->j, ']');
        sc_json_end(&w->j, '}');
    }
    sc_json_end(&w->j, ']');
}

static void head(work *w)
{
    char size[32], room[32];
    double sum = 0;
    for (uint32_t i = 0; i < w->tables.n; i++)
        sum += 4 * w->tables.table[i].rows * w->tables.table[i].width;
    const sc_hw *hw = w->job.hw;
    sc_text_add(&w->t,
                "%u tables of %s on %u x %s (%s), batch %.0f; room for %s on "
                "each device\n\n",
                w->tables.n, bytes(sum, size), hw->n_devices, hw->device->name,
                hw->name, w->job.batch, bytes(sc_shard_room(w->prices), room));
    sc_json_put_string(&w->j, "schema", "stepcast.shard/1");
    sc_json_put_string(&w->j, "sharder", sc_sharder_names[w->o->sharder]);
    step_json(&w->j, &w->plan[w->o->sharder]);
    sc_json_put_double(&w->j, "table_bytes", sum);
    sc_json_put_double(&w->j, "room_bytes", sc_shard_room(w->prices));
}

static void say_full(work *w, const sc_shard_plan *p)
{
    char need[32], room[32];
    if (p->fits) return;
    sc_text_add(&w->t,
                "\nIt does not fit: device %u needs %s and has room for %s; "
                "%s.\n",
                p->full, bytes(p->load[p->full].memory, need),
                bytes(sc_shard_room(w->prices), room),
                w->o->sharder == SC_SHARD_BEST
                    ? "use more devices, or a larger --table-memory"
                    : "--sharder best also divides tables");
}

static sc_status print(cli *c, work *w)
{
    const sc_shard_plan *p = &w->plan[w->o->sharder];
    sc_text_init(&w->t);
    sc_json_init(&w->j, true);
    sc_json_begin(&w->j, '{');
    head(w);
    sharders(w);
    sc_text_add(&w->t, "\nplan of %s:\n", sc_sharder_names[w->o->sharder]);
    devices(w, p);
    places(w, p);
    say_full(w, p);
    sc_json_end(&w->j, '}');
    sc_status s = c->json ? cli_emit_json(c, &w->j) : cli_emit_text(c, &w->t);
    sc_text_free(&w->t);
    sc_json_free(&w->j);
    return s;
}

static sc_status print_access(cli *c, const char *file)
{
    char *text;
    size_t len;
    sc_access x;
    SC_TRY(read_text(c, file, &text, &len));
    SC_TRY(sc_access_of_indices(text, len, file, c->arena, &x, c->err));
    sc_text t;
    sc_json j;
    sc_text_init(&t);
    sc_json_init(&j, true);
    sc_access_print(&x, &t);
    sc_json_begin(&j, '{');
    sc_json_put_string(&j, "schema", "stepcast.access/1");
    sc_json_put_string(&j, "access", t.buf);
    sc_json_end(&j, '}');
    sc_text_add(&t, "\n");
    sc_status s = c->json ? cli_emit_json(c, &j) : cli_emit_text(c, &t);
    sc_text_free(&t);
    sc_json_free(&j);
    return s;
}

sc_status cli_shard(cli *c, int argc, char *const *argv)
{
    options o = {0};
    work w = {.o = &o};
    sc_opt_set set = {cli_shard_keys, &o, {{0}}};
    sc_words words = {0};
    SC_TRY(sc_schema_defaults(cli_shard_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    if (o.indices && words.n == 0) return print_access(c, o.indices);
    if (words.n != 1 || !o.cluster || !o.batch || o.indices)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "for example stepcast shard tables.csv --cluster "
                        "dgx-h100:1 --batch 4096",
                        "shard needs a file of tables, --cluster and --batch");
    SC_TRY(load(c, &w, words.w[0]));
    SC_TRY(plans(c, &w));
    SC_TRY(print(c, &w));
    return w.plan[o.sharder].fits ? SC_OK : SC_NO;
}
