/* SPDX-License-Identifier: Apache-2.0 */
/* nccltests_row.c - turns results of nccl-tests into measurements: finds the
 * collective, the number of ranks and nodes, and the device. */
#include "coll/nccltests.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bandwidths are printed with two decimals, so smaller ones are too inexact. */
static const double least_algbw = 1;
static const double ratio_tolerance = 0.05;

/* ---- findings ---------------------------------------------------------------------- */

void nccl_error(nccl_reader *r, sc_code code, sc_pos pos, const char *hint,
                const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(r->err, &r->status, SC_EINPUT, code, pos, hint, fmt, args);
    va_end(args);
}

sc_status nccl_warn(nccl_reader *r, sc_pos pos, const char *what)
{
    void *array = sc_grow(r->a, r->out.warnings, r->out.n_warnings,
                          &r->cap_warnings, 16, sizeof *r->out.warnings);
    if (!array) return sc_error_nomem(r->err);
    r->out.warnings = array;
    const char *text = sc_sprintf(r->a, "%s:%u:%u: %s", r->file,
                                  (unsigned)pos.line, (unsigned)pos.col, what);
    if (!text) return sc_error_nomem(r->err);
    r->out.warnings[r->out.n_warnings++] = text;
    return SC_OK;
}

sc_status nccl_skip(nccl_reader *r, sc_pos pos, const char *why, bool quiet)
{
    if (r->out.n_skipped++ == 0) {
        r->skipped_at = pos;
        r->skipped = why;
    }
    return quiet ? SC_OK : nccl_warn(r, pos, why);
}

/* ---- tests ------------------------------------------------------------------------- */

void nccl_begin_test(nccl_reader *r)
{
    r->test = (nccl_test){.coll = -1};
}

/* Whether s[0..n) contains the letters of `word`, ignoring '_' and '-'. */
static bool mentions(const char *s, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = i, w = 0;
        while (k < n && word[w]) {
            char c = s[k];
            if (c >= 'A' && c <= 'Z') c = (char)(c + 32);
            if (c == word[w])
                w++;
            else if (c != '_' && c != '-')
                break;
            k++;
        }
        if (!word[w]) return true;
    }
    return false;
}

int nccl_program(const char *s, size_t n)
{
    static const struct {
        const char *word;
        int coll;
    } names[] = {{"allreduce", SC_ALL_REDUCE},
                 {"allgather", SC_ALL_GATHER},
                 {"reducescatter", SC_REDUCE_SCATTER},
                 {"alltoallv", -2},
                 {"alltoall", SC_ALL_TO_ALL},
                 {"sendrecv", SC_SENDRECV},
                 {"broadcast", SC_BROADCAST},
                 {"hypercube", -2},
                 {"gather", -2},
                 {"scatter", -2},
                 {"reduce", SC_REDUCE}};

    /* only the last part of a path, if it is a test's program or its log */
    for (size_t i = n; i-- > 0;) {
        if (s[i] != '/') continue;
        s += i + 1;
        n -= i + 1;
        break;
    }
    if (!mentions(s, n, "perf") && !mentions(s, n, ".log") &&
        !mentions(s, n, ".txt") && !mentions(s, n, ".out") &&
        !mentions(s, n, ".json"))
        return -1;
    for (size_t i = 0; i < SC_COUNT(names); i++)
        if (mentions(s, n, names[i].word)) return names[i].coll;
    return -1;
}

void nccl_name_test(nccl_reader *r, int program)
{
    r->test.begun = true;
    r->test.other = program == -2;
    r->test.coll = program >= 0 ? program : -1;
}

sc_status nccl_device(nccl_reader *r, uint32_t rank, const char *host,
                      const char *device, sc_pos pos)
{
    nccl_test *t = &r->test;
    if (t->rows) { /* a new test that has no header of its own */
        nccl_begin_test(r);
    }
    if (t->n_lines++ == 0) t->at = pos;
    t->begun = true;
    t->n_rank0 += rank == 0;
    if (rank > t->max_rank) t->max_rank = rank;
    if (t->device && strcmp(t->device, device) != 0) t->mixed = true;
    if (!t->device) t->device = sc_strdup(r->a, device);
    if (!t->device) return sc_error_nomem(r->err);
    for (uint32_t i = t->n_hosts; i-- > 0;)
        if (strcmp(t->hosts[i], host) == 0) return SC_OK;
    void *array = sc_grow(r->a, t->hosts, t->n_hosts, &t->cap_hosts, 16,
                          sizeof *t->hosts);
    if (!array) return sc_error_nomem(r->err);
    t->hosts = array;
    t->hosts[t->n_hosts] = sc_strdup(r->a, host);
    return t->hosts[t->n_hosts++] ? SC_OK : sc_error_nomem(r->err);
}

/* ---- what a row belongs to ------------------------------------------------------------ */

/* Determines the facts of a test once. */
static void unknown(nccl_reader *r, sc_code code, sc_pos pos, const char *hint,
                    const char *what)
{
    if (r->test.reported.line == 0) nccl_error(r, code, pos, hint, "%s", what);
    r->test.reported.line = 1;
}

static bool find_ranks(nccl_reader *r, const nccl_result *v, sc_nccl_row *row)
{
    const nccl_test *t = &r->test;
    uint32_t ranks = t->n_lines ? t->max_rank + 1 : 0;
    uint32_t nodes = t->n_lines == ranks ? t->n_hosts : 0;
    if (t->n_rank0 > 1 && t->max_rank == 0 && !r->o->ranks) {
        unknown(r, SC_C_CONFLICT, t->at, "build nccl-tests with MPI=1",
                "every process is rank 0: each ran alone");
        return false;
    }
    if (r->o->ranks) ranks = r->o->ranks;
    if (r->o->nodes) nodes = r->o->nodes;
    if (t->mixed && !r->o->device) {
        unknown(r, SC_C_UNSUPPORTED, t->at, NULL,
                "ranks have different kinds of devices");
        return false;
    }
    if (ranks == 0 || nodes == 0) {
        unknown(r, SC_C_MISSING, t->n_lines ? t->at : v->pos,
                "say how many ranks and nodes it ran on",
                t->n_lines ? "lines '# Rank ...' of some ranks are missing"
                           : "no lines '# Rank ...' before the results");
        return false;
    }
    row->ranks = ranks;
    row->nodes = nodes;
    row->device = r->o->device ? r->o->device : t->device ? t->device : "";
    if (ranks >= 2 && nodes <= ranks && ranks % nodes == 0) return true;
    unknown(r, SC_C_CONFLICT, t->n_lines ? t->at : v->pos, NULL,
            ranks < 2 ? "one rank moves nothing"
                      : "nodes have different numbers of ranks");
    return false;
}

/* busbw / algbw of a row; NaN if rounding makes it useless. */
static double ratio(const nccl_result *v, int k)
{
    return v->algbw[k] >= least_algbw ? v->busbw[k] / v->algbw[k] : NAN;
}

/* The only collective whose logs have these columns; -1: not known. */
static int by_columns(const nccl_result *v, int k, uint32_t ranks)
{
    double q = ratio(v, k), n = ranks;
    if (v->rooted == 1 && v->reduces >= 0)
        return v->reduces ? SC_REDUCE : SC_BROADCAST;
    if (v->reduces != 1 || isnan(q) || ranks < 3) return -1;
    if (fabs(q * n / (2 * (n - 1)) - 1) < ratio_tolerance) return SC_ALL_REDUCE;
    return -1;
}

static bool find_coll(nccl_reader *r, const nccl_result *v, int k,
                      sc_nccl_row *row)
{
    int coll = r->test.coll;
    if (r->o->coll >= 0) {
        coll = r->o->coll;
    } else if (r->test.other || (coll < 0 && r->mentioned == -2)) {
        unknown(r, SC_C_UNSUPPORTED, v->pos, NULL,
                "this collective is not modelled");
        return false;
    }
    if (coll < 0) coll = r->mentioned;
    if (coll < 0) coll = by_columns(v, k, row->ranks);
    if (coll < 0) {
        unknown(r, SC_C_MISSING, v->pos,
                "keep the command line in the log, or name the file after "
                "the test: all_gather.log",
                "the log does not name the collective");
        return false;
    }
    row->coll = (sc_coll)coll;
    double q = ratio(v, k), want = sc_coll_bus_factor(row->coll, row->ranks);
    if (isnan(q) || fabs(q / want - 1) < ratio_tolerance) return true;
    nccl_error(r, SC_C_CONFLICT, v->pos,
               "is this the right collective and number of ranks?",
               "busbw/algbw is %.3f; %s on %u ranks has %.3f", q,
               sc_coll_names[row->coll], (unsigned)row->ranks, want);
    return false;
}

/* nccl-tests prints size / time as algbw, so both have to agree within the two
 * decimals of algbw and the digits of the time. */
static bool check_algbw(nccl_reader *r, const nccl_result *v, int k)
{
    double got = v->algbw[k], want = v->bytes / v->time[k] * 1e-3;
    if (isnan(got) || fabs(got - want) <= 0.02 + ratio_tolerance * want)
        return true;
    nccl_error(r, SC_C_CONFLICT, v->pos,
               "size, time and algbw of a row belong together",
               "algbw is %.2f, but %.0f bytes in %g us are %.2f GB/s", got,
               v->bytes, v->time[k], want);
    return false;
}

/* With -C the printed time is the CPU's, but bandwidths still belong to the
 * collective's time. */
static void time_of_bandwidth(nccl_result *v)
{
    for (int k = 0; k < 2; k++) {
        if (!v->cpu[k]) continue;
        bool told = v->algbw[k] >= least_algbw;
        v->time[k] = told ? v->bytes / v->algbw[k] * 1e-3 : NAN;
    }
}

sc_status nccl_add(nccl_reader *r, const nccl_result *read)
{
    nccl_result result = *read, *v = &result;
    time_of_bandwidth(v);
    if (!r->test.rows) r->tables++;
    r->test.rows = true;
    if (v->bytes <= 0)
        return nccl_skip(r, v->pos, "a row of no bytes is skipped", true);
    if (v->bytes > 1e15) {
        nccl_error(r, SC_C_RANGE, v->pos, NULL,
                   "a size of %g bytes is not possible", v->bytes);
        return SC_OK;
    }
    /* from 0.1 % on, because old versions print the largest error here */
    if (v->wrong >= 1)
        return nccl_skip(r, v->pos, "a row with wrong results is skipped",
                         false);
    int k = v->time[0] > 0 ? 0 : 1;
    if (!(v->time[k] > 0))
        return nccl_skip(r, v->pos,
                         v->cpu[0] || v->cpu[1]
                             ? "a row with the CPU's time alone is skipped"
                             : "a row without a time is skipped",
                         false);
    if (v->time[k] > 1e12) {
        nccl_error(r, SC_C_RANGE, v->pos, NULL,
                   "a time of %g us is not possible", v->time[k]);
        return SC_OK;
    }
    sc_nccl_row row = {.bytes = v->bytes,
                       .time_s = v->time[k] * 1e-6,
                       .in_place_s = v->time[1] * 1e-6,
                       .algbw = v->algbw[k] * 1e9,
                       .busbw = v->busbw[k] * 1e9,
                       .type = v->type,
                       .table = r->tables - 1,
                       .pos = v->pos};
    if (!check_algbw(r, v, k) || !find_ranks(r, v, &row) ||
        !find_coll(r, v, k, &row))
        return SC_OK;
    void *array = sc_grow(r->a, r->out.rows, r->out.n_rows, &r->cap_rows, 16,
                          sizeof *r->out.rows);
    if (!array) return sc_error_nomem(r->err);
    r->out.rows = array;
    r->out.rows[r->out.n_rows++] = row;
    return SC_OK;
}
