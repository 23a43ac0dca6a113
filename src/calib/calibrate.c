/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - fits every fitted parameter to a directory of truth tables. */
#include "calib/curves.h"
#include "calib/fitfile.h"
#include "calib/heldout.h"
#include "calib/network.h"
#include "calib/stats.h"
#include "calib/stepfit.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES  ((size_t)64 << 20)
#define MAX_ROUNDS 10

typedef struct truth {
    const sc_progress *progress;
    sc_csv *runs; /* [n_runs] */
    uint32_t n_runs;
    const char **names; /* [n_runs] file names of the tables of runs */
    uint64_t runs_hash, network_hash;
    sc_csv network;
    const char *network_names; /* NULL: no table */
    calib_run *run;            /* [n_rows] of all tables of runs */
    uint32_t n_rows;
} truth;

/* ---- files ---------------------------------------------------------------------- */

static int is_csv(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 4 && e->d_name[0] != '.' &&
           strcmp(e->d_name + n - 4, ".csv") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Names of dir/<name>.csv, sorted. */
static sc_status list_tables(const char *dir, sc_arena *a, const char ***out,
                             uint32_t *n, sc_err *err)
{
    struct dirent **entry = NULL;
    int count = scandir(dir, &entry, is_csv, by_name);
    if (count < 0)
        return sc_error(err, SC_EIO, SC_C_IO, sc_pos_file(dir),
                        "name a directory of truth tables",
                        "can't list the directory");
    const char **names = SC_NEW_N(a, const char *, (size_t)count);
    bool failed = names == NULL;
    for (int i = 0; i < count; i++) {
        if (!failed) names[i] = sc_strdup(a, entry[i]->d_name);
        failed = failed || !names[i];
        free(entry[i]);
    }
    free(entry);
    if (failed) return sc_error_nomem(err);
    *out = names;
    *n = (uint32_t)count;
    return SC_OK;
}

/* Whether rows have an outcome, and none a step time. */
static bool only_outcomes(const sc_csv *t)
{
    int col = sc_csv_col(t, calib_column_name(C_ITER));
    if (sc_csv_col(t, calib_column_name(C_OUTCOME)) < 0)
        return calib_oom_table(t);
    for (uint32_t i = 0; i < t->n_rows; i++)
        if (sc_csv_get(t, i, col)[0]) return false;
    return true;
}

/* Appends the rows of a network table to those of another. */
static sc_status add_network(const sc_csv *table, sc_arena *a, truth *t,
                             sc_err *err)
{
    sc_csv *all = &t->network;
    SC_TRY(network_check(table, err));
    if (all->n_rows == 0) {
        *all = *table;
        return SC_OK;
    }
    uint32_t n = all->n_rows + table->n_rows, cols = all->n_cols;
    for (uint32_t i = 0; i < cols; i++)
        if (table->n_cols != cols ||
            strcmp(all->header[i], table->header[i]) != 0)
            return sc_error(err, SC_EINPUT, SC_C_CONFLICT,
                            sc_pos_file(table->file),
                            "give all network tables the same columns",
                            "the header differs from that of %s", all->file);
    const char **cells = SC_NEW_N(a, const char *, (size_t)n *cols);
    uint32_t *line = SC_NEW_N(a, uint32_t, n);
    if (!cells || !line) return sc_error_nomem(err);
    size_t mine = (size_t)all->n_rows * cols;
    memcpy(cells, all->cells, mine * sizeof *cells);
    memcpy(cells + mine, table->cells,
           (size_t)table->n_rows * cols * sizeof *cells);
    memcpy(line, all->line, all->n_rows * sizeof *line);
    memcpy(line + all->n_rows, table->line, table->n_rows * sizeof *line);
    all->cells = cells;
    all->line = line;
    all->n_rows = n;
    return SC_OK;
}

/* Keeps dir/name if it is a table of timed runs or of collectives. */
static sc_status read_table(const char *dir, const char *name, sc_arena *a,
                            truth *t, sc_err *err)
{
    char *text = NULL;
    size_t len = 0;
    sc_csv table = {0};
    const char *path = sc_sprintf(a, "%s/%s", dir, name);
    if (!path) return sc_error_nomem(err);
    SC_TRY(sc_file_read(path, MAX_BYTES, a, &text, &len, err));
    SC_TRY(sc_csv_parse(text, len, path, a, &table, err));
    if (calib_curves_table(&table)) {
        SC_TRY(add_network(&table, a, t, err));
        t->network_hash = sc_hash(text, len, t->network_hash);
        t->network_names = t->network_names
                               ? sc_sprintf(a, "%s, %s", t->network_names, name)
                               : name;
        if (!t->network_names) return sc_error_nomem(err);
    } else if (calib_runs_table(&table) && !only_outcomes(&table)) {
        t->names[t->n_runs] = name;
        t->runs[t->n_runs++] = table;
        t->runs_hash = sc_hash(text, len, t->runs_hash);
    }
    return SC_OK;
}

static sc_status read_truth(const char *dir, sc_arena *a, truth *out,
                            sc_err *err)
{
    const char **names = NULL;
    uint32_t n = 0;
    truth t = {0};
    SC_TRY(list_tables(dir, a, &names, &n, err));
    t.runs = SC_NEW_N(a, sc_csv, n);
    t.names = SC_NEW_N(a, const char *, n);
    if (!t.runs || !t.names) return sc_error_nomem(err);
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < n; i++) {
        sc_status s = read_table(dir, names[i], a, &t, err);
        if (first == SC_OK) first = s;
    }
    if (first != SC_OK) return first;
    if (!t.network_names || t.n_runs == 0)
        return sc_error(
            err, SC_EINPUT, SC_C_MISSING, sc_pos_file(dir),
            "data/validation of stepcast's sources is one",
            "there is no table of collectives, or none of training runs");
    *out = t;
    return SC_OK;
}

/* ---- network -------------------------------------------------------------------- */

static sc_status enough(uint32_t parameters, uint32_t rows, sc_err *err)
{
    if (parameters * CALIB_ROWS_PER_PARAMETER <= rows) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(),
                    "give more rows, or fix parameters (sd 0)",
                    "%u fitted parameters need %u rows, the tables have %u",
                    parameters, parameters * CALIB_ROWS_PER_PARAMETER, rows);
}

/* A program needs the rows for its own fitted keys. */
static sc_status enough_programs(const calib_fit_set *set, sc_err *err)
{
    for (uint32_t i = 0; i < set->n_programs; i++) {
        const sc_software *sw = set->program[i].run->sw;
        uint32_t rows = 0;
        for (uint32_t j = 0; j < set->n_programs; j++)
            rows += strcmp(set->program[j].run->sw->name, sw->name) == 0;
        SC_TRY(enough(sw->n_fitted, rows, err));
    }
    return SC_OK;
}

static sc_status enough_of(sc_param_set which, const calib_fit_set *set,
                           sc_err *err)
{
    sc_param p[SC_N_PARAMS];
    uint32_t n;
    (void)calib_fit_rows(set, which, &n);
    SC_TRY(enough(calib_fit_free(which, p), n, err));
    return which == SC_SET_PROGRAM ? enough_programs(set, err) : SC_OK;
}

static sc_status fit_network(const truth *t, sc_cost *cost, sc_arena *a,
                             sc_fit_files *out, sc_text *report, sc_err *err)
{
    sc_param which[SC_N_PARAMS];
    sc_fit_result *fit = SC_NEW(a, sc_fit_result);
    if (!fit) return sc_error_nomem(err);
    uint32_t n = calib_fit_free(SC_SET_NETWORK, which);
    SC_TRY(enough(n, t->network.n_rows, err));
    SC_TRY(sc_fit_network(&t->network, cost, fit, report, a, err));
    const char *from =
        sc_sprintf(a, "Fitted on %s, %u rows, hash %016llx.", t->network_names,
                   t->network.n_rows, (unsigned long long)t->network_hash);
    if (!from) return sc_error_nomem(err);
    sc_text *yml = &out->network;
    size_t start = yml->len;
    calib_fit_write(SC_SET_NETWORK, fit, from, yml);
    calib_covariance_write(fit, &out->covariance);
    sc_text_add(report, "\n");
    /* the step set is fitted with what the file says, not with more digits */
    return sc_cost_read(yml->buf + start, yml->len - start, "network.yml", a,
                        cost, err);
}

/* ---- step ----------------------------------------------------------------------- */

/* A fit ends if its next round would lower the cost by less than this fraction.
 * Choices that change with the parameters change the cost by as much. */
#define STAYS 2e-3

/* Sets parameters to the rounded values that the file of a fit has. */
static sc_status as_written(sc_param_set which, const sc_fit_result *fit,
                            sc_arena *a, sc_cost *inout, sc_err *err)
{
    sc_text t;
    sc_text_init(&t);
    calib_fit_write(which, fit, "", &t);
    sc_status s = t.failed ? sc_error_nomem(err)
                           : sc_cost_read(t.buf, t.len, "fit", a, inout, err);
    sc_text_free(&t);
    return s;
}

/* Goes half of the way from `from` to `to`, because the whole step was too
 * large. */
static void half_way(const sc_param *which, uint32_t n, const sc_cost *from,
                     const sc_cost *to, sc_fit_result *out)
{
    for (uint32_t j = 0; j < n; j++) {
        sc_param p = which[j];
        out->value[p] = sqrt(from->p[p] * to->p[p]);
    }
}

/* The choices inferred for a row, and the parameters that its step depends on,
 * depend on the parameters. Rows are therefore predicted and fitted in turn
 * until the parameters no longer change. `inout` and `set` become those of the
 * best round. */
static sc_status fit_rounds(sc_param_set which, const truth *t, sc_cost *inout,
                            calib_fit_set *set, sc_fit_result *fit, sc_arena *a,
                            sc_err *err)
{
    sc_param p[SC_N_PARAMS];
    uint32_t n_free = calib_fit_free(which, p);
    double first = NAN, least = INFINITY;
    sc_cost at = *inout;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        calib_fit_set now;
        sc_fit_result next;
        sc_cost moved = at;
        SC_TRY(calib_fit_prepare(t->run, t->n_rows, &at, a, &now, err));
        SC_TRY(enough_of(which, &now, err));
        if (round == 0 && which == SC_SET_PROGRAM) {
            SC_TRY(calib_fit_scan(which, &now, &at, a, err));
            SC_TRY(calib_fit_prepare(t->run, t->n_rows, &at, a, &now, err));
            moved = at;
        }
        SC_TRY(calib_fit_set_of(which, &now, NULL, &moved, &next, a, err));
        sc_progress_tell(t->progress, "rounds of the fit", (uint64_t)round + 1,
                         MAX_ROUNDS);
        if (round == 0) first = next.cost_before;
        if (next.cost_before < least) {
            least = next.cost_before;
            *set = now;
            *fit = next;
            *inout = at;
            if (next.cost_after > (1 - STAYS) * next.cost_before) break;
        } else {
            half_way(p, n_free, inout, &at, &next);
        }
        SC_TRY(as_written(which, &next, a, &at, err));
    }
    memcpy(fit->value, inout->p, sizeof fit->value);
    fit->cost_before = first;
    fit->cost_after = least;
    return SC_OK;
}

/* Counts the rows that a fit uses: of transformers or of operator networks. */
static bool of_fit(const sc_valid_row *r, bool graphs)
{
    return r->counted && !r->unfitted && (r->kind == SC_KIND_GRAPH) == graphs;
}

static void add_families(const calib_fit_set *set, bool graphs, sc_text *out)
{
    const char *sep = "";
    for (uint32_t i = 0; i < set->n_rows; i++) {
        const char *family = set->rows[i].family;
        uint32_t count = 0;
        bool first = true;
        if (!of_fit(&set->rows[i], graphs)) continue;
        for (uint32_t j = 0; j < set->n_rows; j++) {
            if (!of_fit(&set->rows[j], graphs) ||
                strcmp(set->rows[j].family, family) != 0)
                continue;
            if (j < i) first = false;
            count++;
        }
        if (!first) continue;
        sc_text_add(out, "%s%s %u", sep, family, count);
        sep = ", ";
    }
}

/* Names the programs of a set's rows, for a comment. */
static void add_programs(const calib_fit_set *set, sc_text *out)
{
    const char *sep = "";
    for (uint32_t i = 0; i < set->n_programs; i++) {
        const char *name = set->program[i].choice->sw->name;
        uint32_t count = 0;
        bool first = true;
        for (uint32_t j = 0; j < set->n_programs; j++) {
            if (strcmp(set->program[j].choice->sw->name, name) != 0) continue;
            if (j < i) first = false;
            count++;
        }
        if (!first) continue;
        sc_text_add(out, "%s%s %u", sep, name, count);
        sep = ", ";
    }
}

static sc_status describe(const truth *t, const calib_fit_set *set,
                          sc_param_set which, sc_arena *a, const char **out,
                          sc_err *err)
{
    sc_text text;
    sc_text_init(&text);
    sc_text_add(&text, "Fitted on");
    for (uint32_t i = 0; i < t->n_runs; i++)
        sc_text_add(&text, "%s %s", i ? "," : "", t->names[i]);
    uint32_t n;
    (void)calib_fit_rows(set, which, &n);
    sc_text_add(&text, "; hash %016llx.\n%u configurations: ",
                (unsigned long long)t->runs_hash, n);
    if (which == SC_SET_PROGRAM)
        add_programs(set, &text);
    else
        add_families(set, which == SC_SET_GRAPH, &text);
    sc_text_add(&text, ".");
    *out = text.failed ? NULL : sc_strdup(a, text.buf);
    sc_text_free(&text);
    return *out ? SC_OK : sc_error_nomem(err);
}

/* Fits one set; `yml` receives the text of its file. */
static sc_status fit_set(sc_param_set which, const truth *t, sc_cost *cost,
                         calib_fit_set *set, sc_arena *a, sc_fit_files *out,
                         sc_text *report, sc_err *err)
{
    const char *from = NULL;
    sc_text *yml = which == SC_SET_GRAPH     ? &out->graph
                   : which == SC_SET_PROGRAM ? &out->program
                                             : &out->step;
    sc_fit_result *fit = SC_NEW(a, sc_fit_result);
    if (!fit) return sc_error_nomem(err);
    SC_TRY(fit_rounds(which, t, cost, set, fit, a, err));
    SC_TRY(describe(t, set, which, a, &from, err));
    calib_fit_write(which, fit, from, yml);
    calib_covariance_write(fit, &out->covariance);
    calib_fit_report(which, fit, report);
    return SC_OK;
}

/* Operator networks are fitted last, because the other sets affect them. */
static sc_status fit_runs(truth *t, sc_cost *cost, sc_arena *a,
                          sc_fit_files *out, sc_text *report, sc_err *err)
{
    calib_fit_set set = {0};
    SC_TRY(calib_runs_read(t->runs, t->n_runs, a, &t->run, &t->n_rows, err));
    SC_TRY(calib_learn_memory(t->run, t->n_rows, a, cost, err));
    SC_TRY(fit_set(SC_SET_STEP, t, cost, &set, a, out, report, err));
    if (set.n_programs > 0)
        SC_TRY(fit_set(SC_SET_PROGRAM, t, cost, &set, a, out, report, err));
    if (set.n_graphs > 0)
        SC_TRY(fit_set(SC_SET_GRAPH, t, cost, &set, a, out, report, err));
    sc_validation v = {.unit = "s", .n_rows = t->n_rows, .rows = set.rows};
    SC_TRY(calib_summarise(&v, a, err));
    sc_validation_text(&v, false, report);
    return SC_OK;
}

void sc_fit_files_init(sc_fit_files *f)
{
    sc_text_init(&f->network);
    sc_text_init(&f->step);
    sc_text_init(&f->program);
    sc_text_init(&f->graph);
    sc_text_init(&f->covariance);
}

void sc_fit_files_free(sc_fit_files *f)
{
    sc_text_free(&f->network);
    sc_text_free(&f->step);
    sc_text_free(&f->program);
    sc_text_free(&f->graph);
    sc_text_free(&f->covariance);
}

/* Reads the parameters of the fit in DIR, and their hash. */
static sc_status read_covariance(const char *dir, sc_arena *a, sc_cost *inout,
                                 sc_err *err)
{
    const char *path = sc_sprintf(a, "%s/covariance.yml", dir);
    sc_covariance *cov = SC_NEW(a, sc_covariance);
    char *text = NULL;
    size_t len = 0;
    if (!path || !cov) return sc_error_nomem(err);
    SC_TRY(sc_file_read(path, MAX_BYTES, a, &text, &len, err));
    SC_TRY(sc_covariance_read(text, len, path, a, cov, err));
    inout->cov = cov;
    return SC_OK;
}

static sc_status read_fit(const char *dir, sc_arena *a, sc_cost *cost,
                          uint64_t *hash, sc_err *err)
{
    static const char *const names[] = {"network.yml", "step.yml",
                                        "program.yml", "graph.yml"};
    sc_cost_centres(cost);
    SC_TRY(sc_cost_forms(a, cost, err));
    *hash = 0;
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        char *text = NULL;
        size_t len = 0;
        const char *path = sc_sprintf(a, "%s/%s", dir, names[i]);
        if (!path) return sc_error_nomem(err);
        SC_TRY(sc_file_read(path, MAX_BYTES, a, &text, &len, err));
        SC_TRY(sc_cost_read(text, len, path, a, cost, err));
        *hash = sc_hash(text, len, *hash);
    }
    return read_covariance(dir, a, cost, err);
}

/* Starts the step and graph sets at an existing fit or at their centres. */
static sc_status start_at(const char *fit_dir, sc_arena *a, sc_cost *inout,
                          sc_err *err)
{
    sc_cost there;
    uint64_t hash;
    sc_param p[SC_N_PARAMS];
    if (!fit_dir) return SC_OK;
    SC_TRY(read_fit(fit_dir, a, &there, &hash, err));
    for (int set = SC_SET_STEP; set <= SC_SET_GRAPH; set++) {
        uint32_t n = calib_fit_free((sc_param_set)set, p);
        for (uint32_t j = 0; j < n; j++) inout->p[p[j]] = there.p[p[j]];
    }
    return SC_OK;
}

sc_status sc_calibrate_truth(const char *dir, const char *from,
                             const sc_progress *progress, sc_arena *a,
                             sc_fit_files *out, sc_text *report, sc_err *err)
{
    truth t = {.progress = progress};
    sc_cost cost;
    sc_cost_centres(&cost);
    SC_TRY(sc_cost_forms(a, &cost, err));
    SC_TRY(read_truth(dir, a, &t, err));
    SC_TRY(fit_network(&t, &cost, a, out, report, err));
    SC_TRY(start_at(from, a, &cost, err));
    SC_TRY(fit_runs(&t, &cost, a, out, report, err));
    if (out->network.failed || out->step.failed || out->program.failed ||
        out->graph.failed || out->covariance.failed || report->failed)
        return sc_error_nomem(err);
    return SC_OK;
}

/* ---- held out ------------------------------------------------------------------- */

static void count(sc_counted *list, uint32_t *n, const char *name)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (strcmp(list[i].name, name) != 0) continue;
        list[i].rows++;
        return;
    }
    list[*n].name = name;
    list[(*n)++].rows = 1;
}

static int by_counted(const void *a, const void *b)
{
    return strcmp(((const sc_counted *)a)->name, ((const sc_counted *)b)->name);
}

/* Counts the fitted rows of every device generation and program. */
static sc_status list_seen(const calib_fit_set *set, sc_arena *a,
                           sc_held_out *h, sc_err *err)
{
    size_t most = (size_t)set->n + set->n_graphs + 1;
    sc_counted *arch = SC_NEW_N(a, sc_counted, most);
    sc_counted *program = SC_NEW_N(a, sc_counted, most);
    if (!arch || !program) return sc_error_nomem(err);
    for (uint32_t i = 0; i < set->n; i++) {
        const sc_run *r = set->fit[i].choice;
        count(arch, &h->n_archs, r->hw->device->arch);
        count(program, &h->n_programs, r->sw->name);
    }
    for (uint32_t i = 0; i < set->n_graphs; i++)
        count(program, &h->n_programs, set->net[i].run->sw->name);
    qsort(arch, h->n_archs, sizeof *arch, by_counted);
    qsort(program, h->n_programs, sizeof *program, by_counted);
    h->arch = arch;
    h->program = program;
    return SC_OK;
}

static int by_measured(const void *a, const void *b)
{
    const sc_measured *x = a, *y = b;
    int order = strcmp(x->program, y->program);
    return order ? order : strcmp(x->generation, y->generation);
}

/* Counts all compared rows of every program on every generation of devices. */
static sc_status list_measured(const calib_fit_set *set, const calib_run *run,
                               sc_arena *a, sc_held_out *h, sc_err *err)
{
    sc_measured *m = SC_NEW_N(a, sc_measured, (size_t)set->n_rows + 1);
    uint32_t n = 0;
    if (!m) return sc_error_nomem(err);
    for (uint32_t i = 0; i < set->n_rows; i++) {
        if (!set->rows[i].counted) continue;
        const sc_software *sw =
            set->choice[i].sw ? set->choice[i].sw : run[i].sw;
        const sc_measured one = {sw->name, run[i].hw->device->arch, 1};
        uint32_t k = 0;
        while (k < n && by_measured(&m[k], &one) != 0) k++;
        if (k == n) m[n++] = (sc_measured){one.program, one.generation, 0};
        m[k].rows++;
    }
    qsort(m, n, sizeof *m, by_measured);
    h->measured = m;
    h->n_measured = n;
    return SC_OK;
}

sc_status sc_calibrate_held_out(const char *dir, const char *fit_dir,
                                const sc_progress *progress, sc_arena *a,
                                sc_text *yml, sc_text *report, sc_err *err)
{
    truth t = {0};
    sc_cost cost;
    sc_held_out h;
    calib_run *run = NULL;
    uint32_t n = 0;
    calib_fit_set set = {0};
    const char *from = NULL;
    sc_held_out_none(&h);
    SC_TRY(read_truth(dir, a, &t, err));
    SC_TRY(read_fit(fit_dir, a, &cost, &h.fit, err));
    SC_TRY(calib_runs_read(t.runs, t.n_runs, a, &run, &n, err));
    SC_TRY(calib_learn_memory(run, n, a, &cost, err));
    h.memory = cost.held.memory;
    SC_TRY(calib_leave_families(run, n, &cost, progress, a, &set, &h.effects,
                                err));
    SC_TRY(calib_held_out_intervals(set.rows, n, NULL, a, &h, err));
    SC_TRY(list_seen(&set, a, &h, err));
    SC_TRY(list_measured(&set, run, a, &h, err));
    SC_TRY(describe(&t, &set, SC_SET_STEP, a, &from, err));
    calib_held_out_write(&h, set.rows, n, from, yml);
    sc_validation v = {.unit = "s",
                       .n_rows = n,
                       .rows = set.rows,
                       .left_out = "family",
                       .nested = true};
    SC_TRY(calib_summarise(&v, a, err));
    sc_validation_text(&v, false, report);
    calib_held_out_report(&h, set.rows, n, report);
    return yml->failed || report->failed ? sc_error_nomem(err) : SC_OK;
}
