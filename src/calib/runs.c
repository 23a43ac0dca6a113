/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - reads the rows of measured training runs. */
#include "calib/runs.h"

#include "model/model_net.h"

#include <math.h>
#include <string.h>

#define GIB 1073741824.0

/* Machines and software profiles that earlier rows have built. */
typedef struct cache_entry {
    uint64_t key;
    const void *value;
    const char *reason;
} cache_entry;

typedef struct cache {
    uint32_t n, cap;
    cache_entry *e;
} cache;

typedef struct reader {
    sc_arena *a;
    sc_err *err;
    int col[CALIB_N_COLUMNS];
    double scale[CALIB_N_COLUMNS]; /* to the column's unit */
    uint32_t n_extra;
    calib_extra *extra; /* [n_extra] of the table */
    cache hw, sw;
} reader;

/* ---- cells ---------------------------------------------------------------- */

static const char *const outcomes[] = {"", "ran", "oom", NULL};

/* Index in `outcomes`; -1: unknown. */
static int find_outcome(const char *text)
{
    for (int i = 0; outcomes[i]; i++)
        if (strcmp(text, outcomes[i]) == 0) return i;
    return -1;
}

static sc_status read_texts(const reader *r, const sc_csv *t, uint32_t row,
                            calib_cells *out)
{
    if (calib_oom_table(t))
        return calib_oom_cells(t, row, r->a, out->text, r->err);
    for (int c = 0; c < (int)CALIB_N_COLUMNS; c++) {
        const char *text = sc_csv_get(t, row, r->col[c]);
        out->text[c] = calib_cell_empty((calib_column)c, text) ? "" : text;
    }
    if (find_outcome(out->text[C_OUTCOME]) >= 0) return SC_OK;
    return sc_error(
        r->err, SC_EINPUT, SC_C_UNKNOWN_NAME,
        sc_csv_pos(t, row, r->col[C_OUTCOME]), "write ran, oom or nothing",
        "column outcome: \"%.40s\" is unknown", out->text[C_OUTCOME]);
}

static sc_status read_cells(const reader *r, const sc_csv *t, uint32_t row,
                            calib_cells *out)
{
    out->pos = sc_csv_pos(t, row, -1);
    sc_status first = read_texts(r, t, row, out);
    if (first != SC_OK && first != SC_EINPUT) return first;
    for (int c = 0; c < (int)CALIB_N_COLUMNS; c++) {
        const char *text = out->text[c];
        out->number[c] = NAN;
        if (calib_column_text((calib_column)c) || text[0] == '\0') continue;
        sc_status s = calib_read_number((calib_column)c, text,
                                        sc_csv_pos(t, row, r->col[c]),
                                        &out->number[c], r->err);
        if (first == SC_OK) first = s;
        out->number[c] *= r->scale[c];
    }
    out->n_extra = r->n_extra;
    out->extra = r->extra;
    for (uint32_t i = 0; i < r->n_extra; i++) {
        r->extra[i].text = sc_csv_get(t, row, r->extra[i].col);
        r->extra[i].pos = sc_csv_pos(t, row, r->extra[i].col);
    }
    return first;
}

/* Whether a header is the name of a key with lines below for its dashes. */
static bool names_key(const char *header, const char *key)
{
    for (; *key; key++, header++)
        if (*header != (*key == '-' ? '_' : *key)) return false;
    return *header == '\0';
}

static bool own_column(const reader *r, int col)
{
    for (int c = 0; c < (int)CALIB_N_COLUMNS; c++)
        if (r->col[c] == col) return true;
    return false;
}

/* Lists the columns that are options of `predict` or keys of model.yml. */
static sc_status find_extra(reader *r, const sc_csv *t)
{
    static const char model[] = "model.";
    r->n_extra = 0;
    r->extra = SC_NEW_N(r->a, calib_extra, t->n_cols);
    if (!r->extra) return sc_error_nomem(r->err);
    for (uint32_t c = 0; c < t->n_cols; c++) {
        const char *name = t->header[c];
        bool of_model = strncmp(name, model, sizeof model - 1) == 0;
        const sc_key *k = of_model ? sc_transformer_keys : sc_job_keys;
        if (of_model) name += sizeof model - 1;
        if (own_column(r, (int)c)) continue;
        while (k->name && !names_key(name, k->name)) k++;
        if (k->name)
            r->extra[r->n_extra++] =
                (calib_extra){.key = k, .of_model = of_model, .col = (int)c};
    }
    return SC_OK;
}

static sc_status find_columns(reader *r, const sc_csv *t)
{
    for (int c = 0; c < (int)CALIB_N_COLUMNS; c++)
        r->col[c] = calib_find_column(t, (calib_column)c, &r->scale[c]);
    return find_extra(r, t);
}

static uint64_t key_of(const calib_cells *c, bool parallel)
{
    uint64_t h = 0;
    for (int i = 0; i < (int)CALIB_N_COLUMNS; i++) {
        calib_role role = calib_column_role((calib_column)i);
        if (role == CALIB_CONFIG || (parallel && role == CALIB_PARALLEL))
            h = sc_hash(c->text[i], strlen(c->text[i]) + 1, h);
    }
    for (uint32_t i = 0; i < c->n_extra; i++)
        h = sc_hash(c->extra[i].text, strlen(c->extra[i].text) + 1, h);
    return h;
}

/* ---- reasons --------------------------------------------------------------- */

sc_status calib_row_reason(sc_status s, const sc_err *why, sc_arena *a,
                           const char **reason, sc_err *err)
{
    const sc_diag *d = why->n > 0 ? &why->d[0] : NULL;
    if (s == SC_OK) return SC_OK;
    if (s == SC_EINPUT || s == SC_EUSAGE || s == SC_NO) {
        *reason = d ? sc_strdup(a, d->msg) : "it can't be predicted";
        return *reason ? SC_OK : sc_error_nomem(err);
    }
    if (s == SC_ENOMEM || !d) return sc_error_nomem(err);
    return sc_error(err, s, d->code, (sc_pos){d->file, d->line, d->col},
                    d->hint[0] ? d->hint : NULL, "%s", d->msg);
}

/* Tokens per second of all devices; NaN. */
static double rate_of(const calib_cells *c)
{
    double rate = c->number[C_TOKENS] * c->number[C_GPUS];
    if (!(rate > 0)) rate = c->number[C_SAMPLES] * c->number[C_SEQ];
    return rate > 0 ? rate : NAN;
}

/* The step time of a row that states its rate alone. */
static double time_of_rate(const calib_cells *c)
{
    double seconds = c->number[C_GBS] * c->number[C_SEQ] / rate_of(c);
    if (!(seconds > 0)) seconds = c->number[C_GBS] / c->number[C_SAMPLES];
    return seconds > 0 && isfinite(seconds) ? seconds : NAN;
}

/* Sets the measurements that predictions are compared with. Rows of quality A
 * and B, or of none, are measured and complete. Memory that is a formula's is compared with
 * the same parts of the memory. */
static void set_measured(const calib_cells *c, const calib_facts *f,
                         calib_run *run)
{
    const char *q = c->text[C_QUALITY];
    bool good = !q[0] || strcmp(q, "A") == 0 || strcmp(q, "B") == 0;
    double iter = c->number[C_ITER];
    if (!(iter > 0)) iter = time_of_rate(c);
    run->rate = good && !(iter > 0) ? rate_of(c) : NAN;
    run->mem_formula =
        f->formula || strcmp(c->text[C_MEM_KIND], "formula") == 0;
    run->measured = good && iter > 0 ? iter : NAN;
    run->mem_measured = NAN;
    if ((good || run->mem_formula) && c->number[C_MEM] > 0)
        run->mem_measured = c->number[C_MEM] * GIB;
    int outcome = find_outcome(c->text[C_OUTCOME]);
    run->outcome = (uint8_t)(outcome > 0 ? outcome : CALIB_UNKNOWN);
    if (!outcome && good && iter > 0) run->outcome = CALIB_RAN;
    if (run->outcome == CALIB_OOM) run->measured = run->mem_measured = NAN;
    if (isfinite(run->measured) || run->rate > 0) return;
    if (run->outcome != CALIB_UNKNOWN && isnan(run->mem_measured)) return;
    bool stated = strcmp(q, "C") == 0 || strcmp(q, "D") == 0;
    run->unscored = good || run->mem_formula ? "no measured step time"
                    : stated ? "quality C or D: ambiguous or a duplicate"
                             : "quality is not A, B, C or D";
    if (isnan(run->mem_measured)) run->reason = run->unscored;
}

/* ---- machines and software -------------------------------------------------- */

static const cache_entry *cache_get(const cache *c, uint64_t key)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->e[i].key == key) return &c->e[i];
    return NULL;
}

static sc_status cache_put(reader *r, cache *c, cache_entry e)
{
    cache_entry *grown = sc_grow(r->a, c->e, c->n, &c->cap, 32, sizeof *grown);
    if (!grown) return sc_error_nomem(r->err);
    c->e = grown;
    c->e[c->n++] = e;
    return SC_OK;
}

/* Submissions to one benchmark round run the software of the device's vendor.
 * The model's name counts too, because each benchmark has a program of its own: the
 * most specific name ("mlperf 4.1 google sd-unet") is tried first.  A name that
 * is not known is the nearest to the most specific one. */
static sc_status find_software(reader *r, const char *name, const char *date,
                               sc_pos pos, const calib_run *run,
                               const sc_software **out, sc_err *err)
{
    const char *vendor = run->hw->device->vendor;
    bool network = run->model->net != NULL;
    char spelled[64];
    const char *net = network ? run->model->net->name : spelled;
    calib_catalogue_name(run->model_name, spelled, sizeof spelled);
    const char *own[4] = {NULL};
    if (!name && network) name = "default for operator networks";
    if (!name)
        return sc_software_nearest(NULL, date, run->hw->device, pos, r->a, out,
                                   err);
    if (net) own[0] = sc_sprintf(r->a, "%s %s %s", name, vendor, net);
    if (net) own[1] = sc_sprintf(r->a, "%s %s", name, net);
    own[2] = sc_sprintf(r->a, "%s %s", name, vendor);
    own[3] = name;
    for (size_t i = 0; i < SC_COUNT(own); i++) {
        sc_err quiet;
        sc_err_init(&quiet);
        if (own[i] &&
            sc_software_find(own[i], date, pos, r->a, out, &quiet) == SC_OK)
            return SC_OK;
    }
    return sc_software_nearest(network ? own[0] : name, date, run->hw->device,
                               pos, r->a, out, err);
}

static sc_status set_software(reader *r, const calib_cells *c, const char *name,
                              calib_run *run)
{
    const char *date = c->text[C_DATE];
    const char *vendor = run->hw->device->vendor;
    const char *arch = run->hw->device->arch;
    uint64_t key = sc_hash(date, strlen(date) + 1, name != NULL);
    key = sc_hash(vendor, strlen(vendor) + 1, key);
    key = sc_hash(arch, strlen(arch) + 1, key);
    const sc_net *g = run->model->net;
    const char *model = g ? g->name : run->model_name;
    key = sc_hash(model, strlen(model) + 1, key);
    if (name) key = sc_hash(name, strlen(name) + 1, key);
    const cache_entry *hit = cache_get(&r->sw, key);
    if (!hit) {
        sc_err why;
        sc_err_init(&why);
        const sc_software *sw = NULL;
        cache_entry e = {key, NULL, NULL};
        sc_status s = find_software(r, name, date[0] ? date : NULL, c->pos, run,
                                    &sw, &why);
        SC_TRY(calib_row_reason(s, &why, r->a, &e.reason, r->err));
        e.value = sw;
        SC_TRY(cache_put(r, &r->sw, e));
        hit = &r->sw.e[r->sw.n - 1];
    }
    run->sw = hit->value;
    run->reason = hit->reason;
    return SC_OK;
}

/* The number of devices: that of the nodes or of the degrees where the row does
 * not state it; NaN: neither is stated. */
static double devices_of(const calib_cells *c)
{
    double n = c->number[C_GPUS];
    if (isnan(n)) n = c->number[C_NODES] * c->number[C_PER_NODE];
    if (isnan(n))
        n = c->number[C_TP] * c->number[C_PP] * c->number[C_DP] *
            fmax(c->number[C_CP], 1);
    return n;
}

/* Divides the devices into nodes.  Devices that do not fill their nodes evenly
 * are as many nodes as they need, if necessary of fewer devices. */
static sc_status divide(reader *r, calib_run *run, const calib_cells *c,
                        double *nodes, double *per)
{
    double gpus = devices_of(c);
    *per = c->number[C_PER_NODE];
    *nodes = c->number[C_NODES];
    if (isnan(gpus) || gpus > 1e7) {
        run->reason = "the number of devices is not stated";
        return SC_OK;
    }
    if (isnan(*per) && isnan(*nodes)) *per = fmin(gpus, 8);
    if (isnan(*nodes)) *nodes = ceil(gpus / *per);
    /* The run uses a part of each domain (64 of the 72 devices of a rack). */
    if (*nodes * *per != gpus && fmod(gpus, *nodes) == 0) *per = gpus / *nodes;
    if (*nodes * *per == gpus) return SC_OK;
    double most = fmin(isnan(*per) ? ceil(gpus / *nodes) : *per, gpus);
    for (*per = most; fmod(gpus, *per) != 0;) --*per;
    *nodes = gpus / *per;
    return calib_warn(run, r->a, r->err,
                      "gpus is not nodes times gpus_per_node: %.0f nodes of "
                      "%.0f devices",
                      *nodes, *per);
}

/* Builds the machine of a row, with the nearest known device. */
static sc_status build_hw(reader *r, const calib_cells *c, double nodes,
                          double per, const sc_hw **out, sc_err *why)
{
    double intra = isnan(c->number[C_INTRA]) ? 0 : c->number[C_INTRA];
    double inter = isnan(c->number[C_INTER]) ? 0 : c->number[C_INTER];
    const char *device, *near;
    const sc_device *any;
    const sc_hw *hw;
    SC_TRY(sc_hw_nearest(c->text[C_GPU], true, r->a, &device, &near, why));
    if (!near) {
        SC_TRY(sc_device_nearest(device, r->a, &any, &near, why));
        if (near) device = any->name;
    }
    SC_TRY(sc_hw_from_numbers(device, (uint32_t)nodes, (uint32_t)per,
                              intra * 1e9, inter * 1e9, c->pos, r->a, &hw,
                              why));
    *out = hw;
    if (!near) return SC_OK;
    sc_hw *own = SC_NEW(r->a, sc_hw);
    if (!own) return sc_error_nomem(why);
    *own = *hw;
    own->nearest = near;
    *out = own;
    return SC_OK;
}

static sc_status set_hw(reader *r, const calib_cells *c, const calib_facts *f,
                        calib_run *run)
{
    static const calib_column parts[] = {C_GPU, C_INTRA, C_INTER};
    uint64_t key = f->network;
    double size[2];
    SC_TRY(divide(r, run, c, &size[0], &size[1]));
    if (run->reason) return SC_OK;
    for (size_t i = 0; i < SC_COUNT(parts); i++)
        key = sc_hash(c->text[parts[i]], strlen(c->text[parts[i]]) + 1, key);
    key = sc_hash(size, sizeof size, key);
    const cache_entry *hit = cache_get(&r->hw, key);
    if (!hit) {
        cache_entry e = {key, NULL, NULL};
        sc_err why;
        sc_err_init(&why);
        const sc_hw *hw = NULL;
        sc_status s = build_hw(r, c, size[0], size[1], &hw, &why);
        if (s == SC_OK && f->network)
            SC_TRY(sc_hw_with_network(hw, f->network, r->a, &hw, r->err));
        SC_TRY(calib_row_reason(s, &why, r->a, &e.reason, r->err));
        e.value = hw;
        SC_TRY(cache_put(r, &r->hw, e));
        hit = &r->hw.e[r->hw.n - 1];
    }
    run->hw = hit->value;
    run->reason = hit->reason;
    return SC_OK;
}

/* ---- rows ---------------------------------------------------------------- */

static sc_status read_run(reader *r, const calib_cells *c, calib_run *run)
{
    run->id = c->text[C_ID];
    run->family = c->text[C_FAMILY];
    run->device = c->text[C_GPU];
    run->model_name = c->text[C_MODEL];
    run->pos = c->pos;
    run->config_key = key_of(c, true);
    run->group_key = key_of(c, false);
    calib_facts facts;
    sc_job_init(&run->job);
    SC_TRY(calib_read_words(c, r->a, run, &facts, r->err));
    set_measured(c, &facts, run);
    if (run->reason) return SC_OK;
    const char *software = NULL;
    SC_TRY(calib_run_expand(c, &facts, r->a, run, &software, r->err));
    if (!run->reason) SC_TRY(set_hw(r, c, &facts, run));
    /* Tables call block scales "MX" even on devices that have no units for
     * MX. */
    if (!run->reason && run->job.precision == SC_RECIPE_MXFP8 &&
        run->hw->device->peak[SC_FP4] <= 0)
        run->job.precision = SC_RECIPE_FP8_BLOCK;
    if (run->reason) return SC_OK;
    SC_TRY(set_software(r, c, software, run));
    if (!run->reason && run->sw->nearest)
        SC_TRY(calib_warn(run, r->a, r->err, "%s", run->sw->nearest));
    SC_TRY(sc_job_devices(&run->job, run->hw, r->a, &run->hw, r->err));
    if (!run->reason && run->hw->nearest)
        SC_TRY(calib_warn(run, r->a, r->err, "%s", run->hw->nearest));
    return SC_OK;
}

static sc_status read_table(reader *r, const sc_csv *t, calib_run *out)
{
    if (!calib_runs_table(t))
        return sc_error(r->err, SC_EINPUT, SC_C_MISSING,
                        (sc_pos){t->file, 1, 1},
                        "data/validation/README.md lists the columns",
                        "this is not a table of training runs: it has no "
                        "column %s",
                        calib_missing_column(t));
    SC_TRY(find_columns(r, t));
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < t->n_rows; i++) {
        calib_cells c;
        sc_status s = read_cells(r, t, i, &c);
        if (s == SC_OK && first == SC_OK) SC_TRY(read_run(r, &c, &out[i]));
        if (first == SC_OK) first = s;
    }
    return first;
}

sc_status calib_runs_check(const sc_csv *t, sc_arena *a, sc_err *err)
{
    reader r = {.a = a, .err = err};
    sc_status first = SC_OK;
    SC_TRY(find_columns(&r, t));
    for (uint32_t i = 0; i < t->n_rows; i++) {
        calib_cells c;
        sc_status s = read_cells(&r, t, i, &c);
        if (first == SC_OK) first = s;
    }
    return first;
}

sc_status calib_runs_read(const sc_csv *tables, uint32_t n_tables, sc_arena *a,
                          calib_run **out, uint32_t *n, sc_err *err)
{
    size_t total = 0;
    for (uint32_t i = 0; i < n_tables; i++) total += tables[i].n_rows;
    if (total > UINT32_MAX / 2)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "more than 2 G rows");
    calib_run *run = SC_NEW_N(a, calib_run, total);
    if (!run) return sc_error_nomem(err);
    reader r = {.a = a, .err = err};
    sc_status first = SC_OK;
    size_t at = 0;
    for (uint32_t i = 0; i < n_tables; i++) {
        sc_status s = read_table(&r, &tables[i], run + at);
        at += tables[i].n_rows;
        if (first == SC_OK) first = s;
    }
    if (first != SC_OK) return first;
    *out = run;
    *n = (uint32_t)total;
    return SC_OK;
}
