/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads rows of a network table. A row that lacks a fact on which its price
 * depends is skipped and counted; no fact is guessed.
 */
#include "calib/cells.h"
#include "calib/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const network_skip_names[NETWORK_N_SKIPS] = {
    "used",
    "this version has no such collective",
    "the device is not in the catalogue",
    "the rate of the NICs between nodes is not stated",
    "the catalogue's node does not have these links",
    "the size, or both time and bandwidth are missing",
    "a group or algorithm that this cluster can't run",
};

typedef struct columns {
    int source, collective, gpu, gpus, nodes, nic, size, time, busbw, algo;
} columns;

static sc_status find_columns(const sc_csv *t, columns *c, sc_err *err)
{
    const struct {
        const char *name;
        int *col;
    } need[] = {
        {"source", &c->source},    {"collective", &c->collective},
        {"gpu", &c->gpu},          {"gpus", &c->gpus},
        {"nodes", &c->nodes},      {"nic", &c->nic},
        {"size_bytes", &c->size},  {"time_us", &c->time},
        {"busbw_GBps", &c->busbw}, {"algo", &c->algo},
    };

    sc_status status = SC_OK;
    for (size_t i = 0; i < SC_COUNT(need); i++) {
        *need[i].col = sc_csv_col(t, need[i].name);
        if (*need[i].col >= 0) continue;
        status =
            sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(t->file),
                     "the header must be that of data/validation/network.csv",
                     "column '%s' is missing", need[i].name);
    }
    return status;
}

/* ---- cells ------------------------------------------------------------------ */

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes/s of one node's NICs, read from free text: "8x CX-7 400G RoCE", "EFA
 * 4x100G", "8x Pollara 400 RoCE", "8x mlx5 (NDR400)", "EFA v2 3200 Gb/s" (all
 * of the node). 0: the text has no rate. `adapters` is their number, 0 if the
 * text does not count them. */
static double nic_rate(const char *text, double *adapters)
{
    static const struct {
        const char *word;
        double gbps;
    } speeds[] = {{"NDR", 400}, {"HDR", 200}, {"EDR", 100}};

    double count = 0, gbps = 0, total = 0;
    for (const char *s = text; *s;) {
        if (!is_digit(*s) || (s > text && s[-1] != ' ' && s[-1] != 'x')) {
            s++;
            continue;
        }
        double v = 0;
        for (; is_digit(*s) && v < 1e6; s++) v = v * 10 + (*s - '0');
        bool plain = starts(s, " RoCE") || starts(s, " IB");
        if (*s == 'x' && count == 0)
            count = v;
        else if (((*s == 'G' && s[1] != 'B') || plain) && gbps == 0)
            gbps = v;
        else if (starts(s, " Gb/s") && total == 0)
            total = v;
    }
    for (size_t i = 0; i < SC_COUNT(speeds) && gbps == 0; i++)
        if (strstr(text, speeds[i].word)) gbps = speeds[i].gbps;
    *adapters = total == 0 ? count : 0;
    if (total == 0) total = count * gbps;
    return total * 1e9 / 8;
}

static sc_net_kind kind(const char *text)
{
    static const struct {
        const char *word;
        sc_net_kind kind;
    } kinds[] = {{"EFA", SC_NETWORK_EFA},        {"TCPX", SC_NETWORK_TCP},
                 {"RoCE", SC_NETWORK_ROCE},      {"IB", SC_NETWORK_INFINIBAND},
                 {"NDR", SC_NETWORK_INFINIBAND}, {"HDR", SC_NETWORK_INFINIBAND},
                 {"EDR", SC_NETWORK_INFINIBAND}};

    for (size_t i = 0; i < SC_COUNT(kinds); i++)
        if (strstr(text, kinds[i].word)) return kinds[i].kind;
    return SC_NETWORK_UNKNOWN;
}

static int collective(const char *name)
{
    if (strcmp(name, "alltoall") == 0) return SC_ALL_TO_ALL;
    sc_coll coll = sc_coll_find(name);
    return coll == SC_N_COLLS || sc_coll_priced(coll) != coll ? -1 : (int)coll;
}

/* "Ring (NVLS off)" means a ring; if the cell is empty, the library chose. */
static int algorithm(const char *text)
{
    char word[16];
    size_t n = 0;
    for (; n + 1 < sizeof(word) && text[n] && text[n] != ' '; n++)
        word[n] =
            (char)(text[n] >= 'A' && text[n] <= 'Z' ? text[n] + 32 : text[n]);
    word[n] = 0;
    return sc_algorithm_find(word);
}

static network_harness harness(const char *source)
{
    if (starts(source, "ml-engineering all_reduce_bench")) return NETWORK_BENCH;
    if (starts(source, "vTrain")) return NETWORK_HOST;
    return NETWORK_NONE;
}

/* ---- machines ---------------------------------------------------------------- */

typedef struct machine {
    const char *gpu, *nic;
    uint32_t nodes, per_node;
    const sc_hw *hw; /* NULL: `why` */
    network_skip why;
} machine;

typedef struct reader {
    const sc_csv *t;
    columns col;
    sc_arena *a;
    uint32_t n_machines;
    machine *machines; /* [t->n_rows] at most */
} reader;

/* The machine with the network that the text states: its kind and the number
 * of adapters. */
static const sc_hw *with_adapters(const sc_hw *hw, const char *text,
                                  double count, sc_arena *a)
{
    sc_hw *copy = SC_NEW(a, sc_hw);
    if (copy == NULL || hw->n_nodes < 2) return hw;
    *copy = *hw;
    sc_dim *d = &copy->dim[copy->n_dims - 1];
    d->network = kind(text);
    if (!(count >= 1 && count < 256)) return copy;
    double total = d->ports * d->port_bw;
    d->ports = (uint32_t)count;
    d->port_bw = total / count;
    d->rails = d->rails > 1 ? d->ports : 1;
    return copy;
}

static network_skip build(const reader *rd, machine *m)
{
    const sc_device *d;
    if (sc_device_find(m->gpu, rd->a, &d, NULL) != SC_OK)
        return NETWORK_SKIP_DEVICE;
    if (strstr(m->nic, "bridge")) return NETWORK_SKIP_LINK;
    double count = 0, nic = m->nodes > 1 ? nic_rate(m->nic, &count) : 0;
    if (m->nodes > 1 && !(nic > 0)) return NETWORK_SKIP_NIC;
    /* A few ranks are assumed to be part of a usual node of eight devices. */
    uint32_t size = m->per_node < 8 ? 8 : m->per_node;
    if (sc_hw_from_numbers(m->gpu, m->nodes, size, 0, nic / size,
                           sc_pos_file(rd->t->file), rd->a, &m->hw,
                           NULL) != SC_OK)
        return NETWORK_SKIP_PLACE;
    m->hw = with_adapters(m->hw, m->nic, count, rd->a);
    return NETWORK_USED;
}

static const machine *find_machine(reader *rd, const machine *want)
{
    for (uint32_t i = 0; i < rd->n_machines; i++) {
        const machine *m = &rd->machines[i];
        if (m->nodes == want->nodes && m->per_node == want->per_node &&
            strcmp(m->gpu, want->gpu) == 0 && strcmp(m->nic, want->nic) == 0)
            return m;
    }
    machine *m = &rd->machines[rd->n_machines++];
    *m = *want;
    m->why = build(rd, m);
    return m;
}

sc_place network_place(const sc_hw *hw, uint32_t ranks, uint32_t nodes)
{
    const uint32_t size[] = {ranks / nodes, nodes};
    const uint32_t stride[] = {1, hw->node_size};
    sc_place at = sc_hw_place(hw, 2, size, stride);
    at.peers = 1;
    return at;
}

/* ---- rows --------------------------------------------------------------------- */

typedef struct cells {
    double gpus, nodes, size, time, busbw;
} cells;

/* An empty cell is 0. */
static sc_status read_cells(const reader *rd, uint32_t i, cells *v, sc_err *err)
{
    const calib_cell cell[] = {
        {.col = rd->col.gpus, .high = 1e7, .to = &v->gpus},
        {.col = rd->col.nodes, .high = 1e6, .to = &v->nodes},
        {.col = rd->col.size, .high = 1e15, .to = &v->size},
        {.col = rd->col.time, .high = 1e12, .to = &v->time},
        {.col = rd->col.busbw, .high = 1e6, .to = &v->busbw}};

    SC_TRY(calib_cells_read(rd->t, i, cell, SC_COUNT(cell), err));
    for (size_t k = 0; k < SC_COUNT(cell); k++)
        if (isnan(*cell[k].to)) *cell[k].to = 0;
    return SC_OK;
}

static network_skip read_row(reader *rd, uint32_t i, const cells *v,
                             const sc_cost *c, network_row *r)
{
    const sc_csv *t = rd->t;
    int coll = collective(sc_csv_get(t, i, rd->col.collective));
    if (coll < 0) return NETWORK_SKIP_COLLECTIVE;
    uint32_t ranks = (uint32_t)v->gpus, nodes = (uint32_t)v->nodes;
    if (!(v->size > 0) || (!(v->time > 0) && !(v->busbw > 0)))
        return NETWORK_SKIP_NUMBERS;
    if (nodes == 0 || ranks < 2 || ranks % nodes) return NETWORK_SKIP_PLACE;
    machine want = {.gpu = sc_csv_get(t, i, rd->col.gpu),
                    .nic = sc_csv_get(t, i, rd->col.nic),
                    .nodes = nodes,
                    .per_node = ranks / nodes};
    const machine *m = find_machine(rd, &want);
    if (!m->hw) return m->why;
    r->hw = m->hw;
    r->at = network_place(m->hw, ranks, nodes);
    r->coll = (sc_coll)coll;
    r->algorithm = algorithm(sc_csv_get(t, i, rd->col.algo));
    r->harness = harness(sc_csv_get(t, i, rd->col.source));
    r->bytes = v->size;
    r->seconds = v->time > 0 ? v->time * 1e-6
                             : v->size * sc_coll_bus_factor(r->coll, ranks) /
                                   (v->busbw * 1e9);
    r->line = t->line[i];
    sc_coll_price price;
    sc_status s = sc_cost_coll(c, r->hw, r->coll, r->bytes, &r->at,
                               r->algorithm, &price, NULL);
    return s == SC_OK ? NETWORK_USED : NETWORK_SKIP_PLACE;
}

/* Sources measure differently, so each has its own groups. */
static uint32_t find_group(network_rows *rows, const char *source,
                           const network_row *r)
{
    const char *gpu = r->hw->device->name;
    for (uint32_t i = 0; i < rows->n_groups; i++) {
        network_group *g = &rows->group[i];
        if (g->ranks == r->at.n && g->nodes == r->at.nodes &&
            g->coll == r->coll && strcmp(g->gpu, gpu) == 0 &&
            strcmp(g->source, source) == 0)
            return i;
    }
    rows->group[rows->n_groups] =
        (network_group){gpu, source, r->at.n, r->at.nodes, 0, r->coll};
    return rows->n_groups++;
}

static sc_status read_rows(reader *rd, const sc_cost *c, network_rows *out,
                           sc_err *err)
{
    sc_status status = SC_OK;
    for (uint32_t i = 0; i < rd->t->n_rows; i++) {
        cells v;
        sc_status s = read_cells(rd, i, &v, err);
        if (s != SC_OK) {
            status = s;
            continue;
        }
        network_row *r = &out->row[out->n];
        network_skip why = read_row(rd, i, &v, c, r);
        out->skipped[why]++;
        if (why != NETWORK_USED) continue;
        const char *source = sc_csv_get(rd->t, i, rd->col.source);
        r->group = find_group(out, source, r);
        out->group[r->group].n++;
        out->n++;
    }
    return status;
}

sc_status network_check(const sc_csv *table, sc_err *err)
{
    reader rd = {.t = table};
    sc_status first = SC_OK;
    SC_TRY(find_columns(table, &rd.col, err));
    for (uint32_t i = 0; i < table->n_rows; i++) {
        cells v;
        sc_status s = read_cells(&rd, i, &v, err);
        if (first == SC_OK) first = s;
    }
    return first;
}

sc_status network_read(const sc_csv *table, const sc_cost *c, sc_arena *a,
                       network_rows *out, sc_err *err)
{
    reader rd = {.t = table, .a = a};
    SC_TRY(find_columns(table, &rd.col, err));
    uint32_t n = table->n_rows;
    *out = (network_rows){.n_table = n};
    rd.machines = SC_NEW_N(a, machine, n);
    out->row = SC_NEW_N(a, network_row, n);
    out->group = SC_NEW_N(a, network_group, n);
    if (!rd.machines || !out->row || !out->group) return sc_error_nomem(err);
    return read_rows(&rd, c, out, err);
}
