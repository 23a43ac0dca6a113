/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power_table.c - compares measured power of nodes with predictions.
 *
 * A row of the table states a benchmark of MLPerf Training, its global batch
 * and the name of the system, as in the path of its result:
 * ".../8xSystem-H100-SXM-80GB/bert". Each row becomes a row of a table of runs,
 * with the model that the benchmark's rules prescribe.
 */
#include "calib/power_table.h"

#include "base/stats.h"
#include "calib/cells.h"
#include "calib/row.h"
#include "calib/stats.h"

#include <math.h>
#include <string.h>

static const char *const needed[] = {"round",
                                     "path",
                                     "nodes_measured",
                                     "gbs",
                                     "mean_node_power_w",
                                     "mean_power_per_gpu_w"};

bool calib_power_table(const sc_csv *t)
{
    for (size_t i = 0; i < SC_COUNT(needed); i++)
        if (sc_csv_col(t, needed[i]) < 0) return false;
    return true;
}

/* ---- cells --------------------------------------------------------------- */

typedef struct cells {
    const char *benchmark, *system; /* in the arena */
    const sc_device *device;
    const char *warning;
    double nodes, samples, node_w, device_w; /* NaN: an empty cell */
} cells;

static sc_status read_numbers(const sc_csv *t, uint32_t i, cells *out,
                              sc_err *err)
{
    const calib_cell cell[] = {
        {.col = sc_csv_col(t, "nodes_measured"),
         .high = 1e6,
         .to = &out->nodes},
        {.col = sc_csv_col(t, "gbs"), .high = 1e9, .to = &out->samples},
        {.col = sc_csv_col(t, "mean_node_power_w"),
         .high = 1e9,
         .to = &out->node_w},
        {.col = sc_csv_col(t, "mean_power_per_gpu_w"),
         .high = 1e6,
         .to = &out->device_w}};

    return calib_cells_read(t, i, cell, SC_COUNT(cell), err);
}

sc_status calib_power_check(const sc_csv *t, sc_err *err)
{
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < t->n_rows; i++) {
        cells c;
        sc_status s = read_numbers(t, i, &c, err);
        if (first == SC_OK) first = s;
    }
    return first;
}

/* The last folder is the benchmark, the one before it the system. */
static sc_status read_path(const char *path, sc_arena *a, cells *out,
                           sc_err *err)
{
    size_t end = strlen(path), from = end;
    while (from > 0 && path[from - 1] != '/') from--;
    size_t to = from > 0 ? from - 1 : 0, start = to;
    while (start > 0 && path[start - 1] != '/') start--;
    out->benchmark = sc_strndup(a, path + from, end - from);
    out->system = sc_strndup(a, path + start, to - start);
    if (!out->benchmark || !out->system) return sc_error_nomem(err);
    return sc_device_nearest(out->system, a, &out->device, &out->warning, err);
}

/* ---- runs ---------------------------------------------------------------- */

/* The models of the benchmarks (MLPerf Training's rules), as data/validation
 * names them: model, class, layers, hidden, heads, kv_heads, ffn, vocabulary,
 * positions. */
static const struct {
    const char *name, *model;
} benchmarks[] = {
    {"bert", "BERT-large,encoder,24,1024,16,16,4096,30522,512"},
    {"resnet", "ResNet-50 v1.5,cnn,,,,,,,"},
    {"ssd", "RetinaNet-ResNeXt50,cnn,,,,,,,"},
    {"retinanet", "RetinaNet-ResNeXt50,cnn,,,,,,,"},
    {"unet3d", "3D U-Net,cnn,,,,,,,"},
    {"dlrm_dcnv2", "DLRM-DCNv2 (Criteo-1TB multihot),recsys,,,,,,,"},
    {"llama2_70b_lora",
     "LLAMA2-70B-LoRA,dense-gqa,80,8192,64,8,28672,32000,8192"},
    {"stable_diffusion", "Stable Diffusion v2 (UNet 865M),diffusion,,,,,,,"},
    {"gpt3", "GPT3-175B,dense-gpt,96,12288,96,96,49152,51200,2048"},
};

static const char *model_of(const char *benchmark)
{
    for (size_t i = 0; i < SC_COUNT(benchmarks); i++)
        if (strcmp(benchmarks[i].name, benchmark) == 0)
            return benchmarks[i].model;
    return NULL;
}

static const char *const header =
    "model,model_class,layers,hidden,heads,kv_heads,ffn,vocab,seq_len,id,"
    "family,gpu,gpus,gpus_per_node,nodes,software,gbs,iter_s,quality\n";

/* The table divides the power of a node by its devices. */
static uint32_t devices_per_node(const cells *c)
{
    double n = c->device_w > 0 ? round(c->node_w / c->device_w) : 8;
    return n >= 1 && n <= 1024 ? (uint32_t)n : 8;
}

/* The row as a table of one run. `round` is "v4.0". */
static sc_status read_run(const cells *c, const char *round, sc_arena *a,
                          calib_run **out, sc_err *err)
{
    uint32_t nodes = (uint32_t)c->nodes, n;
    uint32_t each = devices_per_node(c);
    char *text = sc_sprintf(
        a, "%s%s,row,power,%s,%u,%u,%u,mlperf %.20s,%.0f,1,A\n", header,
        model_of(c->benchmark), c->device->name, nodes * each, each, nodes,
        round[0] == 'v' ? round + 1 : round, c->samples);
    sc_csv *t = SC_NEW(a, sc_csv);
    if (!text || !t) return sc_error_nomem(err);
    SC_TRY(sc_csv_parse(text, strlen(text), "power", a, t, err));
    return calib_runs_read(t, 1, a, out, &n, err);
}

static const char *unusable(const cells *c)
{
    if (!model_of(c->benchmark)) return "no model of this benchmark is known";
    if (!(c->node_w > 0)) return "no measured power";
    if (!(c->nodes >= 1 && c->samples >= 1)) return "no nodes or global batch";
    return NULL;
}

/* What a node draws for its devices, and what its datasheet leaves for the rest
 * of it. */
typedef struct node_watts {
    double devices, host;
} node_watts;

/* Watts per node of the predicted step. */
static sc_status predict_power(const cells *c, const char *round,
                               const sc_validate_opts *o, sc_arena *a,
                               sc_arena *scratch, sc_valid_row *r,
                               node_watts *x, sc_err *err)
{
    sc_err why;
    sc_prediction p;
    calib_run *run;
    sc_err_init(&why);
    sc_arena_reset(scratch);
    sc_status s = read_run(c, round, scratch, &run, &why);
    if (s == SC_OK && run->reason) {
        r->reason = sc_strdup(a, run->reason);
        return r->reason ? SC_OK : sc_error_nomem(err);
    }
    if (s == SC_OK) {
        sc_job job = run->job;
        job.engine = o->engine;
        job.brief = true;
        s = sc_predict(&job, run->hw, run->model, run->sw, o->cost, scratch, &p,
                       &why);
    }
    SC_TRY(calib_row_reason(s, &why, a, &r->reason, err));
    if (r->reason) return SC_OK;
    const sc_power *w = &p.power;
    r->predicted =
        w->total > 0 ? (w->devices + w->hosts + w->adapters) / run->hw->n_nodes
                     : NAN;
    if (!isfinite(r->predicted)) r->reason = "no power of this device is known";
    *x = (node_watts){w->devices / run->hw->n_nodes, run->hw->node_power_w};
    r->hw_device = c->device->name;
    return SC_OK;
}

/* ---- rows ---------------------------------------------------------------- */

typedef struct reader {
    const sc_validate_opts *o;
    sc_arena *a;
    sc_arena scratch;
    sc_err *err;
    sc_validation v;
    node_watts *node; /* [v.n_rows] */
    uint32_t cap, node_cap;
} reader;

static const char *file_name(const sc_csv *t)
{
    const char *slash = t->file ? strrchr(t->file, '/') : NULL;
    return slash ? slash + 1 : t->file ? t->file : "table";
}

static sc_status keep_warning(const reader *rd, const char *warning,
                              sc_valid_row *r)
{
    if (!warning) return SC_OK;
    const char **one = SC_NEW(rd->a, const char *);
    if (!one) return sc_error_nomem(rd->err);
    *one = warning;
    r->warnings = one;
    r->n_warnings = 1;
    return SC_OK;
}

static sc_status read_row(reader *rd, const sc_csv *t, uint32_t i)
{
    cells c;
    SC_TRY(read_numbers(t, i, &c, rd->err));
    SC_TRY(
        read_path(sc_csv_get(t, i, sc_csv_col(t, "path")), rd->a, &c, rd->err));
    rd->v.rows = sc_grow(rd->a, rd->v.rows, rd->v.n_rows, &rd->cap, 64,
                         sizeof *rd->v.rows);
    rd->node = sc_grow(rd->a, rd->node, rd->v.n_rows, &rd->node_cap, 64,
                       sizeof *rd->node);
    char *id = sc_sprintf(rd->a, "%s:%u", file_name(t), t->line[i]);
    char *family = sc_sprintf(rd->a, "power %s", c.benchmark);
    if (!rd->v.rows || !rd->node || !id || !family)
        return sc_error_nomem(rd->err);
    rd->node[rd->v.n_rows] = (node_watts){NAN, NAN};
    sc_valid_row r = {.id = id,
                      .family = family,
                      .device = c.device->name,
                      .model = c.system,
                      .reason = unusable(&c),
                      .measured = c.node_w,
                      .median = c.node_w,
                      .predicted = NAN,
                      .error = NAN,
                      .mem_measured = NAN,
                      .mem_predicted = NAN,
                      .low = NAN,
                      .high = NAN};
    if ((rd->o->family && !sc_glob(rd->o->family, r.family)) ||
        (rd->o->where && !sc_glob(rd->o->where, r.id)))
        return SC_OK;
    SC_TRY(keep_warning(rd, c.warning, &r));
    if (!r.reason)
        SC_TRY(predict_power(&c, sc_csv_get(t, i, sc_csv_col(t, "round")),
                             rd->o, rd->a, &rd->scratch, &r,
                             &rd->node[rd->v.n_rows], rd->err));
    r.counted = r.reason == NULL;
    if (r.counted) r.error = r.predicted / r.measured - 1;
    rd->v.rows[rd->v.n_rows++] = r;
    return SC_OK;
}

static sc_status read_tables(reader *rd, const sc_csv *tables, uint32_t n)
{
    sc_status first = SC_OK;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < tables[k].n_rows; i++) {
            sc_status s = read_row(rd, &tables[k], i);
            if (first == SC_OK) first = s;
            sc_progress_tell(rd->o->progress, "rows predicted", i + 1,
                             tables[k].n_rows);
        }
    }
    return first;
}

static sc_status read_all(reader *rd, const sc_csv *tables, uint32_t n_tables)
{
    sc_arena_init(&rd->scratch, rd->a->limit);
    sc_status s = read_tables(rd, tables, n_tables);
    sc_arena_free(&rd->scratch);
    return s;
}

sc_status calib_power_validate(const sc_csv *tables, uint32_t n_tables,
                               const sc_validate_opts *o, sc_arena *a,
                               sc_validation *out, sc_err *err)
{
    reader rd = {
        .o = o, .a = a, .err = err, .v = {.unit = "W", .kernels = true}};
    SC_TRY(read_all(&rd, tables, n_tables));
    SC_TRY(calib_summarise(&rd.v, a, err));
    *out = rd.v;
    return SC_OK;
}

/* ---- leave-out ----------------------------------------------------------- */

/* The parameter `host_power` from the rows that `label` does not call `name`:
 * the median of what a node draws beside its devices, over what its datasheet
 * leaves for it. */
static double host_power(const reader *rd, calib_label label, const char *name,
                         sc_weighted *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rd->v.n_rows; i++) {
        const sc_valid_row *r = &rd->v.rows[i];
        const node_watts *x = &rd->node[i];
        if (r->counted && x->host > 0 && !(name && !strcmp(label(r), name)))
            w[n++] = (sc_weighted){(r->measured - x->devices) / x->host, 1};
    }
    return sc_weighted_quantile(w, n, 0.5);
}

sc_status calib_power_leave_out(const sc_csv *tables, uint32_t n_tables,
                                calib_label label, const sc_validate_opts *o,
                                sc_arena *a, sc_validation *out, sc_err *err)
{
    reader rd = {
        .o = o, .a = a, .err = err, .v = {.unit = "W", .kernels = true}};
    SC_TRY(read_all(&rd, tables, n_tables));
    sc_weighted *w = SC_NEW_N(a, sc_weighted, (size_t)rd.v.n_rows + 1);
    if (!w) return sc_error_nomem(err);
    for (uint32_t i = 0; i < rd.v.n_rows; i++) {
        sc_valid_row *r = &rd.v.rows[i];
        double host = host_power(&rd, label, label(r), w);
        if (!r->counted) continue;
        if (!(rd.node[i].host > 0) || isnan(host)) {
            r->reason = "no other row shows the power of hosts";
            continue;
        }
        r->predicted = rd.node[i].devices + host * rd.node[i].host;
        r->error = r->predicted / r->measured - 1;
    }
    for (uint32_t i = 0; i < rd.v.n_rows; i++)
        rd.v.rows[i].counted = rd.v.rows[i].reason == NULL;
    SC_TRY(calib_summarise(&rd.v, a, err));
    SC_TRY(calib_summarise_parts(&rd.v, label, a, err));
    *out = rd.v;
    return SC_OK;
}
